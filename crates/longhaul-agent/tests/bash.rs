//! The tool `Bash`, as a model sees it. Whatever a test runs, nothing of it lives on: each looks when it ends.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::Ground;
use longhaul_agent::{
    Bash, BashSettings, Code, Confinement, Effect, Envelope, Form, Jobs, Status, Toolbox, Writing,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A project with the tool, and a variable in the environment of all commands to know them by.
struct Shell {
    ground: Ground,
    jobs: Option<Jobs>,
    mark: String,
}

impl Shell {
    fn new() -> Self {
        Self::with(Ground::new(), |_| {})
    }

    fn with(mut ground: Ground, change: impl FnOnce(&mut BashSettings)) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let mark = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut settings = BashSettings::default();
        settings.environment.push(("BASH_TEST_MARK".into(), OsString::from(format!("{mark};"))));
        change(&mut settings);
        let bash = Bash::new(&ground.project, settings).unwrap();
        let jobs = Some(bash.jobs());
        ground.tools.add(Box::new(bash));
        Self { ground, jobs, mark }
    }

    async fn call(&self, arguments: Value) -> Envelope {
        self.ground.run("Bash", arguments).await
    }

    async fn run(&self, command: &str) -> Envelope {
        self.call(json!({ "command": command })).await
    }

    async fn says(&self, command: &str) -> String {
        self.ground.says("Bash", json!({ "command": command })).await
    }

    /// Starts a job and gives its id.
    async fn start(&self, command: &str) -> String {
        let started = self.call(json!({ "command": command, "background": true })).await;
        started.data["job"].as_str().unwrap_or_else(|| panic!("{started:?}")).to_owned()
    }

    /// Looks at a job until what it wrote since, or its state, has this in it.
    async fn hear(&self, job: &str, expected: &str) -> String {
        let mut heard = String::new();
        for _ in 0..1_000 {
            let look = self.call(json!({ "job": job })).await.shown(Form::Plain);
            heard.push_str(&look.replace(&format!("{job} runs"), ""));
            if heard.contains(expected) {
                return heard;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{job} never said {expected:?}: {heard:?}")
    }

    /// Processes of ours that live.
    fn living(&self) -> Vec<PathBuf> {
        let mark = format!("BASH_TEST_MARK={};", self.mark);
        let is_ours = |process: &PathBuf| {
            let environment = std::fs::read(process.join("environ")).unwrap_or_default();
            environment.windows(mark.len()).any(|part| part == mark.as_bytes())
        };
        let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        processes.filter(is_ours).collect()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.ground.tools = Toolbox::empty();
        self.jobs = None;
        if !std::thread::panicking() {
            assert_eq!(self.living(), Vec::<PathBuf>::new(), "these live on");
        }
    }
}

// covers: A-TOOLS, A-ENVELOPE, A-BASH
#[tokio::test]
async fn a_command_that_fails_is_a_result_with_its_exit_code() {
    let shell = Shell::new();
    let good = shell.run("echo out; echo err >&2").await;
    assert_eq!((good.status, good.shown(Form::Plain)), (Status::Success, "out\nerr\n".to_owned()));
    let data = json!({
        "command": "echo out; echo err >&2", "exit_code": 0, "signal": null, "stdout": "out\n", "stderr": "err\n",
        "truncated": false, "output_file": null, "cwd": ".",
    });
    assert_eq!(Value::Object(good.data), data);
    let bad = shell.run("echo bad >&2; exit 2").await;
    assert_eq!((bad.status, bad.shown(Form::Plain)), (Status::Success, "bad\nexit code 2".to_owned()));
    assert_eq!((&bad.data["exit_code"], bad.text.as_str()), (&json!(2), "The command ended: exit code 2"));
    assert_eq!(shell.says("true").await, "(no output)");
    assert_eq!(shell.says("printf 'no end'; false").await, "no end\nexit code 1");
    let killed = shell.run("kill -9 $$").await;
    assert_eq!((&killed.data["exit_code"], &killed.data["signal"]), (&Value::Null, &json!("SIGKILL")));
    assert_eq!(killed.shown(Form::Plain), "ended by SIGKILL");
}

#[tokio::test]
async fn the_shell_speaks_of_the_command_alone() {
    let shell = Shell::new();
    let missing = shell.says("true\nno-such-program").await;
    assert_eq!(missing, "bash: line 2: no-such-program: command not found\nexit code 127");
    let broken = shell.says("if then").await;
    assert!(broken.contains("`if then'") && broken.ends_with("exit code 2"), "{broken}");
    assert!(!broken.contains("trap"), "{broken}");
    assert_eq!(shell.says("cat <<'E'\na $b \"c\"\nE\necho \"$0 $#\"").await, "a $b \"c\"\nbash 1\n");
    // A trap of the command's own, another program in its place, a shell that ends on errors.
    assert_eq!(shell.says("trap 'echo bye' EXIT; echo hi").await, "hi\nbye\n");
    assert_eq!(shell.says("exec echo hi").await, "hi\n");
    assert_eq!(shell.says("set -eu; false; echo no").await, "exit code 1");
}

#[tokio::test]
async fn both_streams_stand_in_the_order_in_which_they_came() {
    let shell = Shell::new();
    let wait = |name: &str| format!("until [ -e {name} ]; do sleep 0.01; done");
    let command =
        format!("echo one; {}; echo two >&2; {}; echo three; echo -n four >&2; exit 4", wait("a"), wait("b"));
    let job = shell.start(&command).await;
    let mut all = shell.hear(&job, "one\n").await;
    shell.ground.write("a", "");
    all += &shell.hear(&job, "two\n").await;
    shell.ground.write("b", "");
    all += &shell.hear(&job, "has ended").await;
    assert_eq!(all, "one\ntwo\nthree\nfour\njob-1 has ended: exit code 4");
}

#[tokio::test]
async fn the_working_directory_is_kept_and_never_leaves_the_project() {
    let shell = Shell::new();
    let root = shell.ground.project.root().display().to_string();
    let into = shell.run("mkdir -p 'a b/c' && cd 'a b' && cd c").await;
    assert_eq!(into.data["cwd"], "a b/c");
    assert_eq!(shell.says("pwd; cd ..; exit 3").await, format!("{root}/a b/c\nexit code 3"));
    assert_eq!(shell.says("pwd").await, format!("{root}/a b\n"));
    // A subshell and a job change nothing.
    shell.says("(cd c)").await;
    let job = shell.start("cd c; pwd").await;
    shell.hear(&job, "exit code 0").await;
    assert_eq!(shell.says("pwd").await, format!("{root}/a b\n"));
    // Gone, since and by the command itself.
    std::fs::remove_dir_all(shell.ground.path("a b")).unwrap();
    let gone = "Note: The working directory is the project root again: a b is gone.";
    assert_eq!(shell.says("pwd").await, format!("{root}\n{gone}"));
    assert_eq!(shell.says("pwd").await, format!("{root}\n"));
    let removed = shell.says("mkdir d; cd d; rmdir ../d").await;
    assert_eq!(removed, "Note: The working directory is the project root again: d is gone.");
    // … and by one that cannot say where it ends.
    shell.says("mkdir e; cd e").await;
    let removed = shell.says("rmdir ../e; exec true").await;
    assert_eq!(removed, "Note: The working directory is the project root again: e is gone.");
    // Outside, by a link too.
    let outside = shell.run("cd /usr; pwd").await;
    let note = "Note: The working directory is the project root again: /usr is outside the project.";
    assert_eq!((outside.shown(Form::Plain), &outside.data["cwd"]), (format!("/usr\n{note}"), &json!(".")));
    assert!(shell.says("ln -s /usr link; cd link").await.ends_with("/usr is outside the project."));
    assert_eq!(shell.says("pwd").await, format!("{root}\n"));
}

/// The agent reads where a command ended: a link would have it read what the command must not, and a pipe would have it
/// wait for ever.
#[tokio::test]
async fn nothing_in_the_place_of_the_file_with_the_directory_is_read() {
    let shell = Shell::new();
    std::fs::write(shell.ground.path("secret"), "/a/secret").unwrap();
    let file = "trap - EXIT; rm -f \"$LONGHAUL_DIRECTORY_FILE\"";
    for command in ["ln -s \"$PWD/secret\"", "mkfifo", "mkdir", "ln -s /dev/zero"] {
        let says = shell.says(&format!("{file}; {command} \"$LONGHAUL_DIRECTORY_FILE\"")).await;
        assert_eq!(says, "(no output)", "{command}");
        _ = shell.says("rm -rf \"$LONGHAUL_DIRECTORY_FILE\"").await;
    }
}

#[tokio::test]
async fn a_command_that_ignores_every_request_ends_at_its_limit() {
    let shell = Shell::new();
    let command = "trap '' TERM INT HUP; echo before; (trap '' TERM; while :; do sleep 1; done) & \
        while :; do sleep 1; done";
    let late = shell.call(json!({"command": command, "timeout": 2})).await;
    assert_eq!((late.status, late.error.as_ref().unwrap().code), (Status::Error, Code::Timeout));
    let plain = late.shown(Form::Plain);
    assert!(plain.starts_with("Error: the command took longer than 2 s and was ended;"), "{plain}");
    assert!(plain.ends_with("\nbefore\n"), "{plain}");
    assert_eq!((&late.data["stdout"], &late.data["exit_code"]), (&json!("before\n"), &Value::Null));
    assert_eq!(shell.living(), Vec::<PathBuf>::new());
    for timeout in [0.0, -1.0] {
        let refused = shell.call(json!({"command": "true", "timeout": timeout})).await;
        assert_eq!(refused.error.unwrap().code, Code::InvalidParam);
    }
}

#[tokio::test]
async fn a_command_has_time_to_say_why_it_ends() {
    let shell = Shell::new();
    let command = "trap 'echo tidied up; exit 1' TERM; echo ready; while :; do sleep 0.1; done";
    let late = shell.call(json!({"command": command, "timeout": 2})).await;
    assert_eq!(late.data["stdout"], "ready\ntidied up\n", "{late:?}");
}

#[tokio::test]
async fn what_outlives_its_parent_is_ended_and_not_waited_for() {
    let shell = Shell::new();
    // It holds stdout; it has closed everything; its parent is gone; it has left the group, and the environment.
    for command in [
        "sleep 1000 & echo started",
        "sleep 1000 >/dev/null 2>&1 & echo started",
        "(sh -c 'sleep 1000 & exit' ); echo started",
        "setsid sleep 1000 & echo started",
        "setsid -f sleep 1000 >/dev/null 2>&1; echo started",
        "(setsid sh -c 'sleep 1000 & sleep 1000' >/dev/null 2>&1 &); echo started",
    ] {
        let said = shell.says(command).await;
        assert!(said.starts_with("started\nNote: ") && said.contains("left running"), "{command}: {said}");
        assert_eq!(shell.living(), Vec::<PathBuf>::new(), "{command}");
    }
    // What ends by itself in a moment is heard to its end, and nothing is said.
    assert_eq!(shell.says("(sleep 0.2; echo late) & echo soon").await, "soon\nlate\n");
}

#[tokio::test]
async fn what_left_the_group_ends_at_the_limit_too() {
    let shell = Shell::new();
    let marked = "setsid sleep 1001 & setsid -f sleep 1001; sleep 1001";
    // Without its mark it is found by its parent.
    let unmarked = "env -i setsid sleep 1001 & echo $! >pid; sleep 1001";
    for command in [marked, unmarked] {
        let late = shell.call(json!({"command": command, "timeout": 2})).await;
        assert_eq!(late.error.unwrap().code, Code::Timeout);
        assert_eq!(shell.living(), Vec::<PathBuf>::new(), "{command}");
    }
    let pid = shell.ground.content("pid");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
}

#[tokio::test]
async fn the_user_stops_a_command() {
    let shell = Shell::new();
    let stop = CancellationToken::new();
    let command = json!({"command": "echo begun; touch begun; sleep 1000"});
    let running = shell.ground.tools.run("Bash", command.clone(), &stop);
    let stopping = async {
        while !shell.ground.path("begun").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(running, stopping);
    assert_eq!(ended.error.as_ref().unwrap().code, Code::Interrupted);
    assert_eq!(ended.shown(Form::Plain), "Error: Bash was stopped by the user\nbegun\n");
    // One that was stopped before it began does nothing.
    std::fs::remove_file(shell.ground.path("begun")).unwrap();
    let never = shell.ground.tools.run("Bash", command, &stop).await;
    assert_eq!(never.error.unwrap().code, Code::Interrupted);
    assert!(!shell.ground.path("begun").exists());
}

#[tokio::test]
async fn a_call_that_is_dropped_ends_its_command() {
    let shell = Shell::new();
    let call = shell.run("touch begun; setsid sleep 1000 & sleep 1000");
    let begun = async {
        while !shell.ground.path("begun").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        ended = call => panic!("{ended:?}"),
        () = begun => {}
    }
    assert_eq!(shell.living(), Vec::<PathBuf>::new());
}

// covers: A-TRUNC
#[tokio::test]
async fn a_gigabyte_is_read_in_bounded_memory() {
    let shell = Shell::new();
    let huge = shell.run("yes | head -c 1G; echo the end >&2").await;
    assert_eq!((huge.status, &huge.data["exit_code"]), (Status::Partial, &json!(0)));
    assert_eq!(huge.stats["output_bytes"], json!((1_u64 << 30) + 8));
    assert!(huge.stats["kept_bytes"].as_u64().unwrap() < 3 << 20, "{:?}", huge.stats);
    let plain = huge.shown(Form::Plain);
    assert!(plain.len() < 52 << 10 && plain.lines().count() < 2_010);
    assert!(plain.starts_with("y\ny\n") && plain.contains("\nthe end\n"));
    let note = plain.lines().last().unwrap();
    assert!(note.starts_with("Note: The first 64 MB of the output are in "), "{note}");
    let file = huge.data["output_file"].as_str().unwrap();
    assert_eq!(std::fs::metadata(file).unwrap().len(), 64 << 20);
}

// covers: A-TRUNC
#[tokio::test]
async fn what_is_left_out_can_be_read_and_searched() {
    let shell = Shell::new();
    let long = shell.run("seq 1 5000; seq 1 3 >&2").await;
    assert_eq!((long.status, &long.data["truncated"]), (Status::Partial, &json!(true)));
    let plain = long.shown(Form::Plain);
    assert!(plain.starts_with("1\n2\n") && plain.contains("\n5000\n"), "{plain}");
    assert!(plain.contains("\n… 3003 lines are left out here …\n"), "{plain}");
    assert_eq!(long.data["stderr"], "1\n2\n3\n");
    let file = long.data["output_file"].as_str().unwrap();
    assert!(plain.ends_with(&format!("Note: The whole output is in {file}: use Read or Grep.")), "{plain}");
    let read = shell.ground.says("Read", json!({"path": file, "offset": 2_500, "limit": 1})).await;
    assert!(read.starts_with("2500\t2500\n"), "{read}");
    let found = shell.ground.says("Grep", json!({"path": file, "pattern": "^4321$"})).await;
    assert!(found.contains(":4321:4321\n"), "{found}");
    // It is no file of the project.
    let refused = shell.ground.refuses("Write", json!({"path": file, "content": ""})).await;
    assert_eq!(refused.0, Code::OutsideRoot);
    // Errors in JSON are as small as in plain text.
    let both = shell.run("seq 1 20000; seq 1 20000 >&2").await;
    assert!(both.shown(Form::Json).len() < 80 << 10, "{}", both.shown(Form::Json).len());
}

#[tokio::test]
async fn bytes_that_are_no_text_do_no_harm() {
    let shell = Shell::new();
    let said = shell.says("printf 'a\\0b\\xff\\001\\033[31mred\\033[0m \\xc3\\xa4\\n'").await;
    assert_eq!(said, "ab\u{fffd}red ä\n");
    let random = shell.run("head -c 200000 /dev/urandom").await;
    assert_eq!(random.data["truncated"], json!(true));
    let shown = random.shown(Form::Plain);
    assert!(!shown.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
    let file = random.data["output_file"].as_str().unwrap();
    assert_eq!(std::fs::metadata(file).unwrap().len(), 200_000);
}

#[tokio::test]
async fn a_progress_bar_is_its_last_state() {
    let shell = Shell::new();
    let bar = "for n in $(seq 1 10000); do printf '\\r%d of 10000' $n; done; echo; echo done";
    let ran = shell.run(bar).await;
    assert_eq!((ran.status, ran.shown(Form::Plain)), (Status::Success, "10000 of 10000\ndone\n".to_owned()));
    assert_eq!(ran.data["output_file"], Value::Null);
    assert_eq!(std::fs::read_dir(shell.ground.outside("outputs")).unwrap().count(), 0);
}

#[tokio::test]
async fn commands_see_no_keys_no_terminal_and_no_input() {
    let shell = Shell::with(Ground::new(), |settings| {
        for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "LONGHAUL_TOKEN", "GITHUB_TOKEN"] {
            settings.environment.push((name.into(), "value-of-it".into()));
        }
        settings.environment.push(("TERM".into(), "xterm-256color".into()));
    });
    assert_eq!(shell.says("env | grep value-of-it").await, "GITHUB_TOKEN=value-of-it\n");
    assert_eq!(shell.says("echo $TERM $PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT").await, "dumb cat cat 0\n");
    assert_eq!(shell.says("cat; read line; echo \"read: $?\"; tty").await, "read: 1\nnot a tty\nexit code 1");
}

#[tokio::test]
async fn a_job_is_heard_in_parts_and_stopped() {
    let shell = Shell::new();
    let started = shell.call(json!({"command": "echo one; sleep 1000", "background": true})).await;
    assert_eq!((&started.data["job"], &started.data["running"]), (&json!("job-1"), &json!(true)));
    assert_eq!(shell.hear("job-1", "one\n").await, "one\n");
    let look = shell.call(json!({"job": "job-1"})).await;
    assert_eq!((look.shown(Form::Plain), &look.data["stdout"]), ("job-1 runs".to_owned(), &json!("")));
    assert_eq!((&look.data["running"], &look.data["exit_code"]), (&json!(true), &Value::Null));
    let file = look.data["output_file"].as_str().unwrap();
    assert_eq!(shell.ground.says("Read", json!({"path": file})).await, "1\tone\n");
    // Commands go on beside it.
    assert_eq!(shell.says("echo beside").await, "beside\n");
    assert_eq!(shell.jobs.as_ref().unwrap().running(), ["job-1"]);
    let stopped = shell.call(json!({"job": "job-1", "stop": true})).await;
    assert_eq!((stopped.text.as_str(), &stopped.data["running"]), ("job-1 was stopped", &json!(false)));
    assert_eq!(shell.living(), Vec::<PathBuf>::new());
    assert!(shell.jobs.as_ref().unwrap().running().is_empty());
    // One that ends by itself.
    let job = shell.start("echo two; exit 3").await;
    assert_eq!(shell.hear(&job, "has ended").await, "two\njob-2 has ended: exit code 3");
    let again = shell.call(json!({"job": job, "stop": true})).await;
    assert_eq!((again.text.as_str(), &again.data["exit_code"]), ("job-2 has ended: exit code 3", &json!(3)));
    let (code, message) = shell.ground.refuses("Bash", json!({"job": "job-7"})).await;
    assert_eq!((code, message.as_str()), (Code::NotFound, "there is no job `job-7`; there are job-1, job-2"));
}

#[tokio::test]
async fn jobs_end_with_the_agent() {
    let stubborn = "trap '' TERM; setsid sleep 1000 & echo begun; while :; do sleep 1; done";
    // It says goodbye.
    let shell = Shell::new();
    for _ in 0..3 {
        let job = shell.start(stubborn).await;
        shell.hear(&job, "begun").await;
    }
    let jobs = shell.jobs.clone().unwrap();
    jobs.end_all().await;
    assert!(jobs.running().is_empty());
    assert_eq!(shell.living(), Vec::<PathBuf>::new());
    // It does not.
    let mut shell = Shell::new();
    let job = shell.start(stubborn).await;
    shell.hear(&job, "begun").await;
    assert!(!shell.living().is_empty());
    shell.ground.tools = Toolbox::empty();
    drop((jobs, shell.jobs.take()));
    assert_eq!(shell.living(), Vec::<PathBuf>::new());
}

#[test]
fn jobs_end_with_the_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let shell = runtime.block_on(async {
        let shell = Shell::new();
        let job = shell.start("setsid sleep 1000 & echo begun; sleep 1000").await;
        shell.hear(&job, "begun").await;
        shell
    });
    assert!(!shell.living().is_empty());
    drop(runtime);
    assert_eq!(shell.living(), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn there_is_room_for_sixteen_jobs() {
    let shell = Shell::new();
    for _ in 0..16 {
        shell.start("sleep 1000").await;
    }
    let more = json!({"command": "touch no", "background": true});
    let (code, message) = shell.ground.refuses("Bash", more.clone()).await;
    assert_eq!((code, message.as_str()), (Code::TooLarge, "16 jobs run already; stop one first"));
    shell.call(json!({"job": "job-5", "stop": true})).await;
    // The one that has ended makes room.
    assert_eq!(shell.call(more).await.data["job"], "job-17");
    assert_eq!(shell.ground.refuses("Bash", json!({"job": "job-5"})).await.0, Code::NotFound);
    shell.jobs.as_ref().unwrap().end_all().await;
}

#[tokio::test]
async fn a_job_that_floods_is_bounded() {
    let shell = Shell::new();
    let job = shell.start("yes | head -c 200M; echo the end").await;
    let mut looks = Vec::new();
    loop {
        let look = shell.call(json!({"job": job})).await;
        assert!(look.stats["kept_bytes"].as_u64().unwrap() < 3 << 20);
        assert!(look.shown(Form::Plain).len() < 52 << 10);
        looks.push(look.stats["output_bytes"].as_u64().unwrap());
        if look.data["running"] == false {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(looks.iter().sum::<u64>(), (200 << 20) + 8);
}

#[tokio::test]
async fn permission_is_asked_for_what_runs() {
    let shell = Shell::new();
    let effect = |arguments| shell.ground.tools.effect("Bash", &arguments);
    assert_eq!(effect(json!({"command": "rm -rf x"})), Effect::Runs("rm -rf x".to_owned()));
    assert_eq!(effect(json!({"command": "serve", "background": true})), Effect::Runs("serve".to_owned()));
    assert_eq!(effect(json!({"job": "job-1"})), Effect::None);
    assert_eq!(effect(json!({"job": "job-1", "stop": true})), Effect::None);
    assert_eq!(effect(json!({"command": 3})), Effect::None);
    for wrong in
        [json!({}), json!({"command": " "}), json!({"command": "a", "job": "b"}), json!({"command": "a\0b"})]
    {
        assert_eq!(effect(wrong.clone()), Effect::None);
        assert_eq!(shell.ground.refuses("Bash", wrong).await.0, Code::InvalidParam);
    }
    // What the command is for may be said.
    assert_eq!(shell.ground.says("Bash", json!({"command": "echo a", "description": "Says a"})).await, "a\n");
}

#[tokio::test]
async fn a_command_that_is_too_long_for_the_system_is_refused() {
    let shell = Shell::new();
    let (code, message) =
        shell.ground.refuses("Bash", json!({"command": format!("echo {}", "x".repeat(5 << 20))})).await;
    assert_eq!(code, Code::TooLarge);
    assert_eq!(
        message,
        "the command has 5242885 bytes, more than the system takes; put it into a file and run that"
    );
    assert_eq!(shell.says("echo still here").await, "still here\n");
}

#[tokio::test]
async fn without_bash_there_is_sh_and_without_both_an_error() {
    let ground = Ground::new();
    let programs = ground.outside("programs");
    std::fs::create_dir(&programs).unwrap();
    let only = |settings: &mut BashSettings| {
        settings.environment.retain(|(name, _)| name != "PATH");
        settings.environment.push(("PATH".into(), programs.clone().into()));
    };
    let mut settings = BashSettings::default();
    only(&mut settings);
    let error = Bash::new(&ground.project, settings).err().unwrap();
    assert_eq!(error.to_string(), "there is neither `bash` nor `sh` in PATH");
    // A file that cannot be run is none.
    std::fs::write(programs.join("bash"), "").unwrap();
    std::os::unix::fs::symlink("/bin/sh", programs.join("sh")).unwrap();
    let shell = Shell::with(ground, only);
    let said = shell.run("mkdir() { /bin/mkdir \"$@\"; }; mkdir sub; cd sub; echo \"$0\"; exit 5").await;
    assert_eq!((said.shown(Form::Plain), &said.data["cwd"]), ("sh\nexit code 5".to_owned(), &json!("sub")));
}

/// The example `launcher`, which is built with the tests.
fn launcher() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let launcher = tests.parent().unwrap().with_file_name("examples").join("launcher");
    assert!(launcher.exists(), "build it first: cargo build -p longhaul-agent --example launcher");
    launcher
}

#[tokio::test]
async fn confined_commands_write_inside_the_project_only() {
    // Not in a temporary folder: those may be written to.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    if folder.path().starts_with(std::env::temp_dir()) {
        println!("skipped: this build is in a temporary folder, and those may be written to");
        return;
    }
    let ground = Ground::in_folder(folder);
    let extra = ground.outside("extra");
    std::fs::create_dir(&extra).unwrap();
    let settings = || BashSettings { confinement: Confinement::By(launcher()), ..BashSettings::default() };
    let enforced = Bash::new(&ground.project, settings()).unwrap().confinement();
    let shell = Shell::with(ground, |chosen| {
        chosen.confinement = settings().confinement;
        chosen.writable.push(extra);
        for name in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"] {
            chosen.environment.push((name.into(), "somebody".into()));
        }
    });
    // It is said once.
    let first = shell.run("echo inside > file && cat file").await;
    assert_eq!(first.shown(Form::Plain), "inside\n");
    assert_eq!(first.context["confinement"], enforced.writing.as_str());
    assert!(!shell.run("true").await.context.contains_key("confinement"));
    if enforced.writing != Writing::Confined {
        println!("skipped: this system enforces {enforced:?} of a confinement");
        return;
    }
    std::fs::write(shell.ground.outside("precious"), "precious").unwrap();
    for command in [
        "echo x > ../new",
        "echo x > ../precious",
        ": >> ../precious",
        "rm ../precious",
        "mv ../precious ../moved",
        "mv ../precious .",
        "ln file ../link",
        "mkdir ../folder",
        "truncate -s 0 ../precious",
        "setsid sh -c 'echo x > ../new'",
        "ln -s .. up; echo x > up/new",
    ] {
        let refused = shell.run(command).await;
        assert_ne!(refused.data["exit_code"], json!(0), "{command}");
        assert!(
            refused.data["stderr"].as_str().unwrap().contains("Permission denied"),
            "{command}: {refused:?}"
        );
    }
    assert_eq!(std::fs::read_to_string(shell.ground.outside("precious")).unwrap(), "precious");
    assert!(!shell.ground.outside("new").exists());
    // Reading, temporary files, devices, other folders that are allowed, links and moves inside.
    assert_eq!(shell.says("cat ../precious").await, "precious");
    let fine = "set -e; t=$(mktemp); echo a > $t; rm $t; echo b > /dev/null; echo c > ../extra/c; \
        mkdir -p d/e; mv file d/e/; ln d/e/file d/hard; ln -s d soft; : > d/hard; echo d > /dev/stderr; cd d/e";
    let ran = shell.run(fine).await;
    assert_eq!((ran.shown(Form::Plain), &ran.data["cwd"]), ("d\n".to_owned(), &json!("d/e")));
    shell.run("cd ../..").await;
    let git =
        "git init -q . && git add -A && git commit -qm first && git log --format=%s && git status --short";
    assert_eq!(shell.says(git).await, "first\n");
    // Jobs too.
    let job = shell.start("echo x > ../new").await;
    assert!(shell.hear(&job, "has ended").await.contains("Permission denied"));
    let described = shell.ground.tools.definitions().find(|tool| tool.name == "Bash").unwrap();
    assert!(
        described.description.contains("Commands can write only inside the project and to temporary files")
    );
}

#[tokio::test]
async fn a_launcher_that_does_not_work_is_an_error_and_no_command_runs_without_it() {
    let ground = Ground::new();
    for (launcher, expected) in [("/no/such/launcher", "No such file"), ("/bin/false", "does not work")] {
        let settings =
            BashSettings { confinement: Confinement::By(launcher.into()), ..BashSettings::default() };
        let error = Bash::new(&ground.project, settings).err().unwrap().to_string();
        assert!(error.contains(launcher) && error.contains(expected), "{error}");
    }
    // Without any, that is said.
    let shell = Shell::with(ground, |_| {});
    assert_eq!(shell.run("true").await.context["confinement"], "none");
}
