//! `longhaul run` against the fake provider, as a person and as a script would use it.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::process::Output;

use longhaul_fake::{Answer, Fake, Settings, Trouble};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder with a project and a place for sessions.
fn ground() -> TempDir {
    // Not in the folder for temporary files: that may always be written to.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::create_dir_all(folder.path().join("project/src")).unwrap();
    std::fs::write(folder.path().join("project/src/parser.rs"), "fn last_line() {}\n").unwrap();
    folder
}

async fn run(fake: Option<&Fake>, folder: &Path, arguments: &[&str]) -> Output {
    command(fake, folder, arguments).output().await.unwrap()
}

fn command(fake: Option<&Fake>, folder: &Path, arguments: &[&str]) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_longhaul"));
    command.current_dir(folder.join("project")).arg("run").args(arguments).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", folder);
    command.env("LONGHAUL_STORE", folder.join("sessions.db"));
    if let Some(fake) = fake {
        command.env("OPENAI_API_KEY", "key-of-the-test").env("OPENAI_BASE_URL", fake.base_url() + "/v1");
    }
    command.stdin(std::process::Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn mending() -> Settings {
    Settings::new()
        .answer(Answer::new().text("I look.").call("Read", json!({"path": "src/parser.rs"})))
        .answer(
            Answer::new().call("Edit", json!({"path": "src/parser.rs", "old": "last_line", "new": "line"})),
        )
        .answer("It is mended.")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_is_on_stdout_and_progress_on_stderr() {
    let (folder, fake) = (ground(), mending().start().await);
    let output = run(Some(&fake), folder.path(), &["--permissions", "edits", "Mend the parser."]).await;
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{err}");
    assert_eq!(out, "It is mended.\n");
    assert!(
        err.contains("Read src/parser.rs") && err.contains("src/parser.rs was changed: 1 line added"),
        "{err}"
    );
    assert!(err.lines().last().unwrap().starts_with("longhaul: 3 calls; billed "), "{err}");
    assert_eq!(
        std::fs::read_to_string(folder.path().join("project/src/parser.rs")).unwrap(),
        "fn line() {}\n"
    );
    assert_eq!(fake.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_allowed_is_not_done_where_nobody_is_asked() {
    let (folder, fake) = (ground(), mending().start().await);
    let output = run(Some(&fake), folder.path(), &["Mend the parser."]).await;
    let err = text(&output.stderr);
    assert!(output.status.success(), "{err}");
    assert!(err.contains("  │ -fn last_line() {}\n  │ +fn line() {}\n"), "{err}");
    assert!(err.contains("not allowed: Edit of src/parser.rs (--allow 'Edit(src/**)' lets it)"), "{err}");
    assert_eq!(
        std::fs::read_to_string(folder.path().join("project/src/parser.rs")).unwrap(),
        "fn last_line() {}\n"
    );
    assert!(fake.log().last().unwrap().body.to_string().contains("nobody is there to be asked"));
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_run_where_they_are_allowed_and_write_inside_the_project() {
    let folder = ground();
    let bash = |command: &str| Answer::new().call("Bash", json!({"command": command}));
    let script =
        [bash("wc -l < src/parser.rs"), bash("echo x > inside && echo y > ../outside"), bash("rm -rf src")];
    let fake = Settings::new().answers(script).answer("Done.").start().await;
    let allowed = ["--permissions", "all", "--deny", "Bash(rm)", "Count."];
    let output = run(Some(&fake), folder.path(), &allowed).await;
    assert_eq!(text(&output.stdout), "Done.\n", "{}", text(&output.stderr));
    let sent = fake.log().last().unwrap().body.to_string();
    assert!(sent.contains("a rule denies it: Bash(rm)"), "{sent}");
    assert!(folder.path().join("project/inside").exists() && folder.path().join("project/src").exists());
    match sent.contains("Permission denied") {
        true => assert!(!folder.path().join("outside").exists()),
        false => eprintln!("skipped: this system does not confine commands"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_of_a_command_is_shown_where_nobody_is_asked() {
    let folder = ground();
    let command =
        format!("echo tidy  # comment\ntouch PWN{}; touch TAIL\necho \u{202e}end", " ".repeat(3_000));
    let settings =
        || Settings::new().answer(Answer::new().call("Bash", json!({"command": command}))).answer("Done.");
    let fake = settings().start().await;
    let output = run(Some(&fake), folder.path(), &["--permissions", "ask", "Tidy."]).await;
    let err = text(&output.stderr);
    let want = format!(
        "  │ echo tidy  # comment\n  │ touch PWN{}; touch TAIL\n  │ echo ⟨U+202E⟩end\n",
        " ".repeat(3_000)
    );
    assert!(err.contains(&want), "{err}");
    assert!(!folder.path().join("project/PWN").exists());
    // A script gets the same as a value.
    let fake = settings().start().await;
    let output = run(Some(&fake), folder.path(), &["--json", "Tidy."]).await;
    let lines = text(&output.stdout);
    let denied = lines.lines().find(|line| line.contains("\"denied\"")).unwrap();
    let denied: serde_json::Value = serde_json::from_str(denied).unwrap();
    assert_eq!(denied["consent"]["command"], command);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_be_what_a_rule_denies_is_not_run_and_the_model_is_told_why() {
    let folder = ground();
    let bash = |command: &str| Answer::new().call("Bash", json!({"command": command}));
    let script = [bash("X=r; ${X}m -r src"), bash("echo x >> .git/config")];
    let fake = Settings::new().answers(script).answer("Done.").start().await;
    run(Some(&fake), folder.path(), &["--permissions", "all", "--deny", "Bash(rm)", "Tidy."]).await;
    let sent = fake.log().last().unwrap().body.to_string();
    assert!(sent.contains("the shell fills in the name of a program"), "{sent}");
    assert!(sent.contains(".git/config is protected"), "{sent}");
    assert!(folder.path().join("project/src").exists() && !folder.path().join("project/.git").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_gone_on_with() {
    let (folder, fake) =
        (ground(), Settings::new().answers(["Blue.", "It was blue.", "Blue, I said."]).start().await);
    run(Some(&fake), folder.path(), &["Which colour?"]).await;
    let output = run(Some(&fake), folder.path(), &["--continue", "What did you say?"]).await;
    assert_eq!(text(&output.stdout), "It was blue.\n", "{}", text(&output.stderr));
    let output = run(Some(&fake), folder.path(), &["--resume", "last", "Again?"]).await;
    assert_eq!(text(&output.stdout), "Blue, I said.\n", "{}", text(&output.stderr));
    let sent = fake.log().last().unwrap().body.to_string();
    for said in ["Which colour?", "Blue.", "What did you say?", "It was blue.", "Again?"] {
        assert!(sent.contains(said), "{said}");
    }
    let other = tempfile::tempdir().unwrap();
    let elsewhere = ["--project", other.path().to_str().unwrap(), "--continue", "x"];
    let output = run(Some(&fake), folder.path(), &elsewhere).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("there is no session of this project yet"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_loses_no_more_than_the_reply_on_its_way() {
    for killed_at in 2..=4 {
        let look = |n: usize| {
            Answer::new().text(&format!("Look {n}.")).call("Read", json!({"path": "src/parser.rs"}))
        };
        let script = Settings::new().answers([look(1), look(2), look(3)]).answers(["Seen.", "Seen all."]);
        let (folder, fake) =
            (ground(), script.trouble(killed_at..=killed_at, Trouble::HangAfter(1)).start().await);
        let mut child = command(Some(&fake), folder.path(), &["Look at it."]).spawn().unwrap();
        while fake.log().len() < killed_at {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        child.kill().await.unwrap();
        let output = run(Some(&fake), folder.path(), &["--continue", "Go on."]).await;
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(fake.violations(), Vec::<String>::new());
        // All that was said before is in the last request, once.
        let sent = fake.log().last().unwrap().body.to_string();
        for said in (1..killed_at)
            .map(|n| format!("Look {n}."))
            .chain(["Look at it.".to_owned(), "Go on.".to_owned()])
        {
            assert_eq!(sent.matches(&said).count(), 1, "{said} in {sent}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_objects_of_a_versioned_schema() {
    let (folder, fake) = (ground(), mending().start().await);
    let output = run(Some(&fake), folder.path(), &["--json", "--permissions", "edits", "Mend it."]).await;
    let events: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.iter().all(|event| event["v"] == 1));
    let names: Vec<&str> = events.iter().filter_map(|event| event["event"].as_str()).collect();
    let step = ["request", "usage", "call", "result"];
    let want = ["session", "request", "text", "usage", "call", "result"].into_iter();
    let want: Vec<&str> = want.chain(step).chain(["request", "text", "usage", "end"]).collect();
    assert_eq!(names, want);
    let end = events.last().unwrap();
    assert_eq!(
        (&end["how"], &end["answer"], &end["calls"]),
        (&json!("answered"), &json!("It is mended."), &json!(3))
    );
    let changed = events.iter().filter(|event| event["event"] == "result").nth(1).unwrap();
    assert_eq!(changed["result"]["data"]["path"], "src/parser.rs");
    assert!(text(&output.stderr).is_empty(), "{}", text(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_wrong_is_one_sentence_and_an_exit_code() {
    let folder = ground();
    let without_key = run(None, folder.path(), &["Hello."]).await;
    let err = text(&without_key.stderr);
    assert_eq!(without_key.status.code(), Some(2));
    assert!(
        err.contains("set ANTHROPIC_API_KEY or OPENAI_API_KEY") && err.contains("longhaul demo"),
        "{err}"
    );
    let fake = Settings::new().trouble(1..=9, Trouble::Status(401)).start().await;
    let refused = run(Some(&fake), folder.path(), &["Hello."]).await;
    let err = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1));
    assert!(err.contains("error:") && !err.contains("key-of-the-test"), "{err}");
    for (arguments, says) in [
        (&["  "][..], "there is no task"),
        (&["--allow", "Bash(", "x"][..], "is no rule for permissions"),
        (&["--project", "missing", "x"][..], "missing: No such file"),
        (&["--resume", "zzzz", "x"][..], "is no session"),
        (&["--profile", "none", "x"][..], "none"),
    ] {
        let output = run(Some(&fake), folder.path(), arguments).await;
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?} {err}");
        assert!(err.contains(says), "{arguments:?}: {err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_tools_that_do_not_answer_are_said_and_hinder_nobody() {
    let folder = ground();
    let servers = folder.path().join(".config/longhaul/mcp.json");
    std::fs::create_dir_all(servers.parent().unwrap()).unwrap();
    std::fs::write(&servers, r#"{"mcpServers": {"gone": {"command": "there-is-no-such-program"}}}"#).unwrap();
    let fake = Settings::new().answers(["Hello.", "Hello."]).start().await;
    let output = run(Some(&fake), folder.path(), &["Hello."]).await;
    assert_eq!(text(&output.stdout), "Hello.\n");
    assert!(text(&output.stderr).contains("the MCP server gone: `there-is-no-such-program` cannot be run"));
    std::fs::write(&servers, "{").unwrap();
    let output = run(Some(&fake), folder.path(), &["Hello."]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("mcp.json: these are no settings of MCP servers"));
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_that_are_used_up_are_said() {
    let folder = ground();
    let look = || Answer::new().call("LS", json!({}));
    let fake = Settings::new().answers([look(), look(), look(), look()]).start().await;
    let output = run(Some(&fake), folder.path(), &["--steps", "3", "Look."]).await;
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("3 steps were used up; `--continue` goes on"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_without_tool_calls_works_in_text() {
    let folder = ground();
    let fake = Settings::new()
        .answer("Thought: I look.\nAction: Read[{\"path\": \"src/parser.rs\"}]")
        .answer("Thought: I know.\nAction: Finish[It has one function.]")
        .start()
        .await;
    let output = run(Some(&fake), folder.path(), &["--react", "--api", "openai", "What is in it?"]).await;
    assert_eq!(text(&output.stdout), "It has one function.\n", "{}", text(&output.stderr));
    let sent = fake.log().last().unwrap().body.clone();
    assert!(sent.get("tools").is_none());
    let last = sent["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(
        last.contains("[tool] {\\\"tool_name\\\":\\\"Read\\\",\\\"step\\\":1,\\\"status\\\":\\\"success\\\""),
        "{last}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_the_user_hold_and_those_of_a_project_do_not() {
    let (folder, fake) = (ground(), mending().start().await);
    let user = folder.path().join(".config/longhaul");
    std::fs::create_dir_all(&user).unwrap();
    let url = fake.base_url() + "/v1";
    let settings = format!(
        "[agent]\nmodel = \"gpt-4o\"\nbase_url = \"{url}\"\nkey_env = \"MY_KEY\"\nallow = [\"Edit(src/**)\"]\nsteps = 2\n"
    );
    std::fs::write(user.join("config.toml"), settings).unwrap();
    let theirs = "[agent]\nbase_url = \"http://127.0.0.1:9/v1\"\npermissions = \"all\"\n";
    std::fs::write(folder.path().join("project/longhaul.toml"), theirs).unwrap();

    let output = command(None, folder.path(), &["Mend it."]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2));
    let says = text(&output.stderr);
    assert!(says.contains("the variable MY_KEY: it is named by `agent.key_env`"), "{says}");

    // The steps of the user's file are two; the flag says three.
    let mut with_key = command(None, folder.path(), &["--steps", "3", "Mend it."]);
    let output = with_key.env("MY_KEY", "a-key").output().await.unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(out, "It is mended.\n", "{err}");
    assert!(err.contains("src/parser.rs was changed"), "{err}");
    let ignored: Vec<&str> = err.lines().filter(|line| line.contains(" are ignored: ")).collect();
    assert_eq!(ignored.len(), 1, "{err}");
    assert!(ignored[0].contains("longhaul.toml: `agent.base_url`, `agent.permissions` are"), "{err}");
    assert_eq!(fake.log()[0].body["model"], "gpt-4o");

    // Two steps are all that the file allows.
    let (folder_of_steps, fake) = (folder, mending().start().await);
    let mut again =
        command(None, folder_of_steps.path(), &["--base-url", &(fake.base_url() + "/v1"), "Mend it."]);
    assert_eq!(again.env("MY_KEY", "a-key").output().await.unwrap().status.code(), Some(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_model_thinks_is_progress_and_an_event_of_its_own() {
    let folder = ground();
    let thinking = || Answer::new().thinking("I wonder.\nAnd I know.").text("Yes.");
    let fake = Settings::new().answers([thinking(), thinking(), thinking()]).start().await;
    let output = run(Some(&fake), folder.path(), &["--api", "openai", "Well?"]).await;
    let err = text(&output.stderr);
    assert_eq!(text(&output.stdout), "Yes.\n");
    assert!(err.contains("∴ I wonder.") && !err.contains("And I know."), "{err}");
    let output = run(Some(&fake), folder.path(), &["--api", "openai", "--thinking", "none", "Well?"]).await;
    assert!(!text(&output.stderr).contains("wonder"), "{}", text(&output.stderr));
    let output = run(Some(&fake), folder.path(), &["--api", "openai", "--json", "Well?"]).await;
    let events: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let thought = events.iter().find(|event| event["event"] == "thinking").unwrap();
    assert_eq!((&thought["v"], &thought["text"]), (&json!(1), &json!("I wonder.\nAnd I know.")));
    assert_eq!(events.last().unwrap()["usd_before"], 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_asked_again_is_said_to_be() {
    let folder = ground();
    let fake = Settings::new().answer("Here.").trouble(1..=1, Trouble::Status(503)).start().await;
    let output = run(Some(&fake), folder.path(), &["Hello?"]).await;
    let err = text(&output.stderr);
    assert_eq!(text(&output.stdout), "Here.\n", "{err}");
    assert!(
        err.contains("the provider failed with status 503") && err.contains("; it is tried again in "),
        "{err}"
    );
    // A model that no table has is called by its name.
    let fake = Settings::new().answer("Here.").start().await;
    let output = run(Some(&fake), folder.path(), &["--json", "--model", "mine-1", "Hello?"]).await;
    let first: Value = serde_json::from_str(text(&output.stdout).lines().next().unwrap()).unwrap();
    assert_eq!(first["model"], "mine-1");
    let output = run(None, folder.path(), &["--base-url", "not-a-url", "Hello?"]).await;
    assert!(text(&output.stderr).starts_with("error: the base URL \"not-a-url\" is none: "));
}

/// A reader that stops in the middle, as a pager does whose user has seen enough.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_it_while_nobody_reads_what_it_prints() {
    use rustix::process::{Pid, Signal, kill_process};
    use tokio::io::AsyncReadExt;
    let long = "A long answer. ".repeat(20_000);
    for (signal, arguments) in [(Signal::TERM, &["--json", "Tell me."][..]), (Signal::INT, &["Tell me."])] {
        let (folder, fake) = (ground(), Settings::new().answer(long.as_str()).start().await);
        let mut command = command(Some(&fake), folder.path(), arguments);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut seen = Vec::new();
        while !text(&seen).contains("A long answer") {
            seen.push(out.read_u8().await.unwrap());
        }
        let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        let ended = tokio::time::timeout(std::time::Duration::from_secs(60), child.wait()).await;
        assert_eq!(ended.expect("it goes on").unwrap().code(), Some(130), "{arguments:?}");
    }
}

/// The agent's own environment is what a command reads in `/proc/$PPID/environ`.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn keys_are_not_in_the_environment_of_the_program() {
    let folder = ground();
    let bash = |command: &str| Answer::new().call("Bash", json!({"command": command}));
    let look = "readlink /proc/$PPID/exe; tr '\\0' '\\n' < /proc/$PPID/environ; tr '\\0' ' ' < /proc/$PPID/cmdline; ls -l /proc/$PPID/fd; env";
    let fake = Settings::new().answers([bash(look)]).answer("Done.").start().await;
    let settings = folder.path().join("settings.toml");
    std::fs::write(&settings, "[agent]\nkey_env = \"MY_SERVER\"\napi = \"openai\"\n").unwrap();
    let mut command = command(Some(&fake), folder.path(), &["--permissions", "all", "--unconfined", "Look."]);
    command.env("LONGHAUL_CONFIG", &settings).env("MY_SERVER", "secret-of-mine");
    command.env("ANTHROPIC_API_KEY", "secret-of-claude").env("LONGHAUL_TOKEN", "secret-of-a-gateway");
    let child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(text(&output.stdout), "Done.\n", "{}", text(&output.stderr));
    // The provider was sent the key all the same.
    let sent = fake.log()[0].headers.clone();
    assert!(sent.contains(&("authorization".to_owned(), "[key]".to_owned())), "{sent:?}");
    let sent = fake.log().last().unwrap().body.to_string();
    // Only root may look at all.
    let is_root = rustix::process::geteuid().is_root();
    assert!(sent.contains("LONGHAUL_KEYS_FROM=") == is_root, "{sent}");
    assert!(!sent.contains("secret-of"), "{sent}");
    assert!(!sent.contains("key-of-the-test"), "{sent}");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn commands_cannot_read_what_is_stored_but_their_own_outputs() {
    let folder = ground();
    let settings = folder.path().join(".config/longhaul/mcp.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(&settings, r#"{"mcpServers": {}, "word": "settings-are-here"}"#).unwrap();
    let bash = |command: &str| Answer::new().call("Bash", json!({"command": command}));
    let look = "cat ../sessions.db ../sessions.db-wal ../.config/longhaul/mcp.json; echo \"code $?\"";
    let outputs = "cat ../.local/share/longhaul/outputs/* | tail -n 1";
    let answers = [bash("seq 1 100000"), bash(look), bash(outputs)];
    let fake = Settings::new().answers(answers).answer("Done.").start().await;
    let output =
        run(Some(&fake), folder.path(), &["--permissions", "all", "Look for the-word-i-said."]).await;
    assert_eq!(text(&output.stdout), "Done.\n", "{}", text(&output.stderr));
    if text(&output.stderr).contains("not enforced") {
        println!("skipped: this system does not hide files");
        return;
    }
    let results: Vec<String> = fake
        .log()
        .iter()
        .map(|sent| sent.body["input"].as_array().unwrap().last().unwrap().to_string())
        .collect();
    assert!(results[2].contains("Permission denied") && results[2].contains("code 1"), "{}", results[2]);
    assert!(
        !results[2].contains("settings-are-here") && !results[2].contains("the-word-i-said"),
        "{}",
        results[2]
    );
    assert!(results[3].contains("100000"), "{}", results[3]);
}
