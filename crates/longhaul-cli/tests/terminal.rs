//! `longhaul` in a terminal, as a person uses it: a real pty, and the fake provider behind it.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use longhaul_fake::{Answer, Counts, Fake, Settings, Trouble};
use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};
use serde_json::json;
use tempfile::TempDir;

/// The longest that anything is waited for. Nothing goes by it but a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a project and a place for sessions.
fn ground() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("project/src")).unwrap();
    std::fs::create_dir_all(folder.path().join("data")).unwrap();
    std::fs::write(folder.path().join("project/src/parser.rs"), "fn last_line() {}\n").unwrap();
    folder
}

/// What the terminal has shown so far.
#[derive(Default)]
struct Shown {
    text: Mutex<(Vec<u8>, bool)>,
    more: Condvar,
}

/// A person at a terminal.
struct Person {
    pty: Arc<Pty>,
    child: Child,
    shown: Arc<Shown>,
    /// All before it was looked at.
    seen: usize,
}

/// What the program is started with.
fn environment(fake: &Fake, folder: &Path) -> Vec<(&'static str, String)> {
    vec![
        ("PATH", std::env::var("PATH").unwrap()),
        ("TERM", "xterm-256color".to_owned()),
        ("HOME", folder.display().to_string()),
        ("LONGHAUL_STORE", folder.join("data/sessions.db").display().to_string()),
        ("OPENAI_API_KEY", "key-of-the-test".to_owned()),
        ("OPENAI_BASE_URL", fake.base_url() + "/v1"),
    ]
}

impl Person {
    fn start(fake: &Fake, folder: &Path, arguments: &[&str]) -> Self {
        Self::start_with(fake, folder, arguments, &[])
    }

    fn start_with(fake: &Fake, folder: &Path, arguments: &[&str], more: &[(&'static str, &str)]) -> Self {
        let mut person = Self::at(fake, folder, arguments, more);
        person.sees("context ");
        // The terminal itself shows a line that is typed before the prompt.
        person.sees("\n> ");
        person
    }

    /// A person who runs a command that does not prompt.
    fn at(fake: &Fake, folder: &Path, arguments: &[&str], more: &[(&'static str, &str)]) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(24, 80)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        command = command.current_dir(folder.join("project")).args(arguments).env_clear();
        for (name, value) in environment(fake, folder) {
            command = command.env(name, value);
        }
        for (name, value) in more {
            command = command.env(name, value);
        }
        let child = command.spawn(pts).unwrap();
        let (pty, shown) = (Arc::new(pty), Arc::new(Shown::default()));
        let (reader, screen) = (pty.clone(), shown.clone());
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // A terminal whose program has ended is at its end, or an error.
            while let Ok(read) = (&*reader).read(&mut piece) {
                if read == 0 {
                    break;
                }
                screen.text.lock().unwrap().0.extend_from_slice(&piece[..read]);
                screen.more.notify_all();
            }
            screen.text.lock().unwrap().1 = true;
            screen.more.notify_all();
        });
        Self { pty, child, shown, seen: 0 }
    }

    fn types(&mut self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    fn says(&mut self, line: &str) {
        self.types(&format!("{line}\r"));
    }

    /// Waits for a text behind all that was looked at; gives what came up to its end.
    fn sees(&mut self, want: &str) -> String {
        let found = |text: &[u8]| {
            let new = plain(&text[self.seen..]);
            new.contains(want)
        };
        let text = self.shown.text.lock().unwrap();
        let (text, late) = self
            .shown
            .more
            .wait_timeout_while(text, PATIENCE, |(text, ended)| !found(text) && !*ended)
            .unwrap();
        let new = plain(&text.0[self.seen..]);
        assert!(new.contains(want), "{want:?} is not there ({late:?}):\n{new}");
        // The end of the piece that has it.
        let end = (self.seen..=text.0.len()).find(|end| plain(&text.0[self.seen..*end]).contains(want));
        self.seen = end.unwrap();
        new
    }

    /// All bytes that came.
    fn raw(&self) -> Vec<u8> {
        self.shown.text.lock().unwrap().0.clone()
    }

    /// Waits for the end.
    fn leaves(mut self) -> (ExitStatus, String) {
        let text = self.shown.text.lock().unwrap();
        let (text, _) = self.shown.more.wait_timeout_while(text, PATIENCE, |(_, ended)| !*ended).unwrap();
        assert!(text.1, "it goes on:\n{}", plain(&text.0));
        let all = plain(&text.0);
        drop(text);
        (self.child.wait().unwrap(), all)
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Without what a terminal obeys.
fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    anstream::adapter::strip_str(&text).to_string().replace('\r', "")
}

fn edit() -> Answer {
    Answer::new().call("Edit", json!({"path": "src/parser.rs", "old": "last_line", "new": "line"}))
}

fn read() -> Answer {
    Answer::new().call("Read", json!({"path": "src/parser.rs"}))
}

fn parser(folder: &TempDir) -> String {
    std::fs::read_to_string(folder.path().join("project/src/parser.rs")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_types_and_gets_an_answer() {
    let answer = "# Found\n\nThe parser **drops** the last line:\n\n```rust\nlet a = 1;\n```\n- mend it\n";
    let (folder, fake) = (ground(), Settings::new().answer(read()).answer(answer).start().await);
    let mut person = Person::start(&fake, folder.path(), &[]);
    person.says("What is wrong with @src/parser.rs?");
    person.sees("● Read src/parser.rs");
    person.sees("└ Lines 1 to 1 of 1 of src/parser.rs");
    let shown = person.sees("context ");
    assert!(shown.contains("Found\n") && shown.contains("The parser drops the last line:"), "{shown}");
    assert!(shown.contains("  let a = 1;") && shown.contains("• mend it"), "{shown}");
    person.types("\x04");
    let (status, all) = person.leaves();
    assert!(status.success() && all.contains("longhaul --resume "), "{all}");
    assert_eq!(fake.violations(), Vec::<String>::new());
    // What was typed is remembered, for this user alone.
    let history = folder.path().join("data/longhaul.history");
    assert!(std::fs::read_to_string(&history).unwrap().contains("What is wrong"));
    let mode = std::os::unix::fs::PermissionsExt::mode(&history.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_in_a_slow_stream_leaves_a_session_that_goes_on() {
    let slow = Trouble::HangAfter(12);
    let settings = Settings::new().answers(["Line one.\n\nLine two is slow and never ends", "Gone on."]);
    let (folder, fake) = (ground(), settings.trouble(1..=1, slow).start().await);
    let mut person = Person::start(&fake, folder.path(), &["--api", "openai"]);
    person.says("Say two lines.");
    person.sees("Line one.");
    // What is typed meanwhile waits.
    person.says("And what now?");
    person.sees("(waits its turn)");
    person.sees("… ");
    person.types("\x03");
    person.sees("interrupted: say what to do instead");
    person.sees("> And what now?");
    person.sees("Line one.");
    person.sees("context ");
    person.says("/quit");
    let (status, all) = person.leaves();
    assert!(status.success(), "{all}");
    let sent = fake.log().last().unwrap().body.to_string();
    assert!(sent.contains("Say two lines.") && sent.contains("And what now?"), "{sent}");
    assert_eq!(fake.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_twice_leaves_and_the_session_is_stored() {
    let (folder, fake) = (ground(), Settings::new().trouble(.., Trouble::Hang).start().await);
    let mut person = Person::start(&fake, folder.path(), &[]);
    // A line that was begun is cleared, however often.
    for line in ["half a line", "another", "a third"] {
        person.types(line);
        person.sees(line);
        person.types("\x03");
        person.sees("\n> ");
    }
    person.types("\x03");
    person.sees("/quit or Ctrl-D leaves, and so does Ctrl-C once more");
    person.says("Anybody there?");
    // The request is out before it is interrupted.
    while fake.log().is_empty() && fake.open_connections() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    person.types("\x03");
    person.sees("interrupted");
    person.types("\x03");
    person.sees("Ctrl-C once more");
    person.types("\x03");
    let (status, _) = person.leaves();
    assert!(status.success());
    let mut person = Person::start(&fake, folder.path(), &["--continue"]);
    person.says("/resume");
    person.sees("● ");
    person.sees("Anybody there?");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_yes_no_and_always() {
    let back =
        Answer::new().call("Edit", json!({"path": "src/parser.rs", "old": "fn line", "new": "fn last_line"}));
    let settings = Settings::new()
        .answer(read())
        .answer(edit())
        .answer("Not then.")
        .answer(edit())
        .answer("Done.")
        .answer(back)
        .answer(edit())
        .answer("Done twice.");
    let (folder, fake) = (ground(), settings.start().await);
    let mut person = Person::start(&fake, folder.path(), &[]);
    person.says("Rename it.");
    person.sees("Edit would change src/parser.rs:");
    person.sees("  │ -fn last_line() {}");
    person.sees("  │ +fn line() {}");
    let question =
        "Allow Edit src/parser.rs? [y]es / [a]lways \"Edit(src/**)\" / [p] always, in this project";
    person.sees(question);
    person.sees("\n? ");
    person.says("not before Friday");
    person.sees("Not then.");
    person.sees("context ");
    assert_eq!(parser(&folder), "fn last_line() {}\n");
    assert!(fake.log().last().unwrap().body.to_string().contains("says: not before Friday"));

    person.says("It is Friday.");
    person.sees("Allow Edit");
    person.says("y");
    person.sees("+fn line() {}");
    person.sees("Done.");
    person.sees("context ");
    assert_eq!(parser(&folder), "fn line() {}\n");

    person.says("Back, and again.");
    person.sees("Allow Edit");
    person.says("a");
    let shown = person.sees("Done twice.");
    assert!(!shown.contains("Allow"), "{shown}");
    person.sees("context ");
    assert_eq!(parser(&folder), "fn line() {}\n");
    person.says("/permissions");
    person.sees("allow Edit(src/**)");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_asked_for_by_its_words_and_always_holds_for_those() {
    let bash = |command: &str| Answer::new().call("Bash", json!({"command": command}));
    let settings = Settings::new()
        .answer(bash("echo one > made.txt"))
        .answer(bash("echo two"))
        .answer(bash("echo three"))
        .answer("Said.");
    let (folder, fake) = (ground(), settings.start().await);
    let mut person = Person::start(&fake, folder.path(), &["--unconfined"]);
    person.says("Say it.");
    person.sees("● Bash echo one > made.txt");
    person.sees("  │ echo one > made.txt");
    person.sees("it may write wherever you may");
    person.sees("Allow Bash? [y]es / [e] and another command / [n]o / or type why not");
    person.says("y");
    person.sees("  │ echo two");
    person.sees("Allow Bash? [y]es / [e] and another command / [a]lways \"Bash(echo)\"");
    person.says("a");
    person.sees("● Bash echo three");
    let shown = person.sees("Said.");
    assert!(!shown.contains("Allow"), "{shown}");
    assert_eq!(std::fs::read_to_string(folder.path().join("project/made.txt")).unwrap(), "one\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_command_is_read_to_its_end_and_may_be_edited() {
    let long: String = (0..60).map(|line| format!("echo {line}\n")).collect();
    let bash = |command: &str| Answer::new().call("Bash", json!({"command": command}));
    let script = [bash(&format!("{long}touch TAIL")), bash("touch made")];
    let (folder, fake) = (ground(), Settings::new().answers(script).answer("Said.").start().await);
    let mut person = Person::start(&fake, folder.path(), &["--unconfined"]);
    person.says("Say it.");
    person.sees("Page 1 of 4: Enter shows the next one");
    person.says("y");
    person.sees("Page 2 of 4");
    person.says("");
    person.sees("Page 3 of 4");
    person.says("");
    person.sees("  │ touch TAIL");
    person.sees("Allow Bash?");
    person.says("n");
    person.sees("  │ touch made");
    person.sees("Allow Bash?");
    person.says("e touch edited");
    person.sees("Said.");
    let exists = |name: &str| folder.path().join("project").join(name).exists();
    assert!(exists("edited") && !exists("made") && !exists("TAIL"));
    assert!(fake.log().last().unwrap().body.to_string().contains("This is what ran: touch edited"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_may_be_kept_for_the_project() {
    let bash = || Answer::new().call("Bash", json!({"command": "echo two"}));
    let settings = Settings::new().answer(bash()).answer("Said.").answer(bash()).answer("Said again.");
    let (folder, fake) = (ground(), settings.start().await);
    let mut person = Person::start(&fake, folder.path(), &["--unconfined"]);
    person.says("Say it.");
    person.sees("Allow Bash?");
    person.says("p");
    person.sees("allowed.json has the rule now");
    person.sees("Said.");
    person.sees("context ");
    drop(person);
    let mut person = Person::start(&fake, folder.path(), &["--unconfined"]);
    person.says("Once more.");
    let shown = person.sees("Said again.");
    assert!(!shown.contains("Allow"), "{shown}");
    let kept = std::fs::read_to_string(folder.path().join(".config/longhaul/allowed.json")).unwrap();
    assert!(kept.contains("Bash(echo)"), "{kept}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_was_begun_before_a_question_does_not_answer_it() {
    let settings = Settings::new().answer(read()).answer(edit()).answers(["Renamed.", "Indeed."]);
    let slow = Trouble::Slow { first: Duration::from_secs(2), between: Duration::ZERO };
    let (folder, fake) = (ground(), settings.trouble(2..=2, slow).start().await);
    let mut person = Person::start(&fake, folder.path(), &[]);
    person.says("Rename it.");
    person.sees("● Read");
    person.types("ye");
    person.sees("ye");
    person.sees("Allow Edit");
    person.types("s\r");
    person.sees("(waits its turn)");
    assert_eq!(parser(&folder), "fn last_line() {}\n");
    person.says("y");
    person.sees("Renamed.");
    person.sees("> yes");
    person.sees("Indeed.");
    assert_eq!(parser(&folder), "fn line() {}\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_command_is_interrupted() {
    let bash = Answer::new().call("Bash", json!({"command": "echo begun > begun.txt; sleep 600"}));
    let (folder, fake) = (ground(), Settings::new().answer(bash).answer("Stopped.").start().await);
    let mut person = Person::start(&fake, folder.path(), &["--unconfined", "--permissions", "all"]);
    person.says("Wait long.");
    person.sees("● Bash echo begun");
    while !folder.path().join("project/begun.txt").exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    person.types("\x03");
    person.sees("interrupted: say what to do instead");
    person.says("And now?");
    person.sees("Stopped.");
    assert_eq!(fake.violations(), Vec::<String>::new());
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_job_ends_with_the_agent() {
    let job =
        Answer::new().call("Bash", json!({"command": "echo $$ > job.txt; sleep 600", "background": true}));
    let (folder, fake) = (ground(), Settings::new().answer(job).answer("It runs.").start().await);
    let mut person = Person::start(&fake, folder.path(), &["--unconfined", "--permissions", "all"]);
    person.says("Start it.");
    person.sees("It runs.");
    person.sees("context ");
    let file = folder.path().join("project/job.txt");
    while !std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n')) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let process = Path::new("/proc").join(std::fs::read_to_string(&file).unwrap().trim());
    assert!(process.exists());
    person.says("/quit");
    assert!(person.leaves().0.success());
    // A process that was ended is gone when its parent has seen it.
    for _ in 0..2_000 {
        if !process.exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the job is still there: {}", process.display());
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_runs_outlives_a_window_that_is_closed() {
    use rustix::process::Signal;
    for (signal, arguments) in [(Signal::HUP, &[][..]), (Signal::TERM, &["--unconfined"])] {
        let bash = Answer::new().call("Bash", json!({"command": "echo $$ > run.txt; sleep 600; true"}));
        let (folder, fake) = (ground(), Settings::new().answer(bash).start().await);
        let arguments = [&["--permissions", "all"], arguments].concat();
        let mut person = Person::start(&fake, folder.path(), &arguments);
        person.says("Wait long.");
        let file = folder.path().join("project/run.txt");
        while !std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n')) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let process = Path::new("/proc").join(std::fs::read_to_string(&file).unwrap().trim());
        let agent = rustix::process::Pid::from_child(&person.child);
        rustix::process::kill_process(agent, signal).unwrap();
        person.leaves();
        for _ in 0..2_000 {
            if !process.exists() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(!process.exists(), "it is still there after {signal:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_after_escape_is_ctrl_c() {
    let (folder, fake) = (ground(), Settings::new().answer(read()).answer(edit()).start().await);
    let mut person = Person::start(&fake, folder.path(), &[]);
    // A person takes longer than a terminal that sends a key of several bytes.
    let escape_and_ctrl_c = |person: &mut Person| {
        person.types("\x1b");
        std::thread::sleep(Duration::from_millis(400));
        person.types("\x03");
    };
    person.says("Rename it.");
    person.sees("Allow Edit");
    escape_and_ctrl_c(&mut person);
    person.sees("interrupted");
    person.sees("context ");
    escape_and_ctrl_c(&mut person);
    person.sees("/quit or Ctrl-D leaves");
    escape_and_ctrl_c(&mut person);
    assert!(person.leaves().0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_ends_it_while_nobody_reads_the_pipe_that_it_prints_to() {
    use rustix::process::{Pid, Signal, kill_process};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let long = "A long answer. ".repeat(20_000);
    let (folder, fake) = (ground(), Settings::new().answer(long.as_str()).start().await);
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_longhaul"));
    command.current_dir(folder.path().join("project")).env_clear().envs(environment(&fake, folder.path()));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let (mut lines, mut out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    lines.write_all(b"Tell me.\n").await.unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("A long answer") {
        seen.push(out.read_u8().await.unwrap());
    }
    let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    tokio::time::timeout(PATIENCE, child.wait()).await.expect("it goes on").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_at_a_question_is_no_and_interrupts() {
    let (folder, fake) = (ground(), Settings::new().answer(read()).answer(edit()).start().await);
    let mut person = Person::start(&fake, folder.path(), &[]);
    person.says("Rename it.");
    person.sees("Allow Edit");
    person.types("\x03");
    person.sees("interrupted");
    assert_eq!(parser(&folder), "fn last_line() {}\n");
    // The call has a result, so that the next request is whole.
    person.says("Leave it.");
    person.sees("context ");
    assert_eq!(fake.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_show_and_change_the_context() {
    let (folder, fake) = (ground(), Settings::new().answers(["Yes.", "Again."]).start().await);
    let mut person = Person::start(&fake, folder.path(), &["--window", "16000"]);
    person.says("Hello?");
    person.sees("Yes.");
    person.sees("context ");
    person.says("/context");
    person.sees("│sss");
    person.sees("system and tools");
    person.sees("the whole session has");
    person.says("/pin never touch the migrations");
    person.sees("pinned: it stays");
    person.says("/pins");
    person.sees("1  never touch the migrations");
    person.says("/goal ship it");
    person.sees("the goal is set");
    person.says("/remember tests need a database");
    person.sees("remembered");
    person.says("/compact the parser");
    person.sees("nothing could go now");
    person.says("Again?");
    person.sees("Again.");
    assert!(fake.log().last().unwrap().body.to_string().contains("never touch the migrations"));
    person.says("/unpin 1");
    person.sees("no longer pinned: never touch the migrations");
    person.says("/contxt");
    person.sees("there is no command /contxt; is /context meant?");
    person.says("/model gpt-4o");
    person.sees("gpt-4o goes on from here");
    person.says("/profile archive");
    person.sees("the profile archive goes on from here");
    person.says("/cost");
    person.sees("read from cache");
    person.says("/undo 99");
    person.sees("there is no edit 99");
    person.says("/recall");
    person.sees("nothing was taken out");
    person.says("/fork");
    person.sees("going on in a copy; /resume ");
    person.says("/export out.jsonl");
    person.sees("written to out.jsonl");
    person.says("/clear");
    person.sees("a new session; /resume ");
    person.says("/help");
    person.sees("/permissions [MODE]");
    person.says("/quit");
    let (status, all) = person.leaves();
    assert!(status.success(), "{all}");
    let exported = std::fs::read_to_string(folder.path().join("project/out.jsonl")).unwrap();
    assert!(exported.contains("Hello?") && exported.contains("Again."), "{exported}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_gone_on_with_by_continue() {
    let (folder, fake) = (ground(), Settings::new().answers(["Blue.", "It was blue."]).start().await);
    let mut person = Person::start(&fake, folder.path(), &[]);
    person.says("Which colour?");
    person.sees("Blue.");
    person.sees("context ");
    person.types("\x04");
    person.leaves();
    // A session in which nothing was said is none to go on with.
    let mut person = Person::start(&fake, folder.path(), &[]);
    person.types("\x04");
    assert!(!person.leaves().1.contains("goes on with it"));
    let mut person = Person::start(&fake, folder.path(), &["--continue"]);
    assert!(plain(&person.raw()).contains("goes on after 2 messages; you said last: Which colour?"));
    person.says("What did you say?");
    person.sees("It was blue.");
    let sent = fake.log().last().unwrap().body.to_string();
    assert!(sent.contains("Which colour?") && sent.contains("Blue."), "{sent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_terminal_may_change_its_size_in_mid_turn() {
    let slow = Trouble::HangAfter(10);
    let text = "Some words, then more of them.\n\nThese are never seen.";
    let settings = Settings::new().answers([text, "word ".repeat(30).as_str()]);
    let (folder, fake) = (ground(), settings.trouble(1..=1, slow).start().await);
    let mut person = Person::start(&fake, folder.path(), &["--api", "openai"]);
    person.says("Say words.");
    person.sees("Some words");
    person.types("half a line");
    person.sees("half a line");
    person.pty.resize(Size::new(30, 40)).unwrap();
    person.types(" and the rest\r");
    person.sees("(waits its turn)");
    person.types("\x03");
    person.sees("> half a line and the rest");
    let shown = person.sees("context ");
    assert!(shown.lines().all(|line| line.chars().count() <= 60), "{shown}");
    person.says("More?");
    person.sees("word word word word word word word word\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_model_says_does_not_move_the_cursor() {
    let hostile =
        "Look: \x1b[2J\x1b[H\x1b]0;owned\x07 and \u{9b}31m and &#27;[5m\r\n\n```\n\x1b[8mhidden\n```\nEnd.\n";
    let call = Answer::new().call("Grep", json!({"pattern": "\u{1b}]52;c;ZXZpbA==\u{7}"}));
    let (folder, fake) = (ground(), Settings::new().answer(call).answer(hostile).start().await);
    let mut person = Person::start(&fake, folder.path(), &[]);
    person.says("Go.");
    person.sees("● Grep");
    person.sees("End.");
    person.sees("context ");
    let raw = String::from_utf8_lossy(&person.raw()).into_owned();
    for bad in ["\x1b[2J", "\x1b]0;", "\x1b]52", "\x1b[8m", "\x1b[5m", "\u{9b}", "\x07"] {
        assert!(!raw.contains(bad), "{bad:?} in {raw:?}");
    }
    assert!(raw.contains("[2J") && raw.contains("hidden"), "{raw:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_color_has_no_colours() {
    let (folder, fake) = (ground(), Settings::new().answer(read()).answer("**Done.**").start().await);
    let mut person = Person::start_with(&fake, folder.path(), &[], &[("NO_COLOR", "1")]);
    person.says("Go.");
    person.sees("Done.");
    person.sees("context ");
    let raw = String::from_utf8_lossy(&person.raw()).into_owned();
    let colours = raw.split("\x1b[").skip(1).any(|rest| {
        let end = rest.find(|c: char| c.is_ascii_alphabetic());
        end.is_some_and(|end| rest[end..].starts_with('m'))
    });
    assert!(!colours, "{raw:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_lines_and_pasted_text_are_one_message() {
    let (folder, fake) = (ground(), Settings::new().answers(["One.", "Two.", "Three."]).start().await);
    let mut person = Person::start(&fake, folder.path(), &[]);
    person.says("first \\");
    person.says("second");
    person.sees("One.");
    person.sees("context ");
    assert!(fake.log().last().unwrap().body.to_string().contains("first \\nsecond"));
    person.types("\x1b[200~pasted\nlines\x1b[201~\r");
    person.sees("Two.");
    person.sees("context ");
    assert!(fake.log().last().unwrap().body.to_string().contains("pasted\\nlines"));
    person.types("@src/pa\t is it\r");
    person.sees("Three.");
    assert!(fake.log().last().unwrap().body.to_string().contains("@src/parser.rs"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_taken_out_is_undone_made_again_and_recalled() {
    let folder = ground();
    for number in 1..=4 {
        let lines: String =
            (1..=200).map(|line| format!("{line} of file {number}: nothing to see here\n")).collect();
        std::fs::write(folder.path().join(format!("project/{number}.txt")), lines).unwrap();
    }
    let read = |number: usize| Answer::new().call("Read", json!({"path": format!("{number}.txt")}));
    let fake = Settings::new().answers((1..=4).map(read)).answer("Nothing is there.").start().await;
    let mut person = Person::start(&fake, folder.path(), &["--window", "10000"]);
    person.says("Look at all files.");
    person.sees("compacted: ");
    person.sees("Nothing is there.");
    person.sees("context ");
    person.says("/context");
    person.sees(": /undo takes the newest back");
    person.sees("/compact would make ");
    person.says("/compact the files");
    person.sees("room is made before the next request:");
    person.sees("/compact would make ");
    person.says("/undo");
    person.sees("undone: ");
    person.sees("context ");
    person.says("/redo");
    person.sees("made again: ");
    person.sees("context ");
    person.says("/recall");
    let listed = person.sees("message");
    let listed = listed + &person.sees("\n> ");
    let handle = listed
        .split_whitespace()
        .find(|word| word.len() == 12 && word.chars().all(|c| c.is_ascii_hexdigit()));
    person.says(&format!("/recall {} 4-8", handle.unwrap_or_else(|| panic!("no handle in {listed}"))));
    person.sees("nothing to see here");
    person.says("/quit");
    assert!(person.leaves().0.success());
    assert_eq!(fake.violations(), Vec::<String>::new());
}

/// The program without a terminal.
async fn piped(fake: Option<&Fake>, folder: &Path, lines: &str) -> std::process::Output {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_longhaul"));
    command.current_dir(folder.join("project")).env_clear().env("HOME", folder);
    fake.into_iter().for_each(|fake| _ = command.envs(environment(fake, folder)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    _ = tokio::io::AsyncWriteExt::write_all(&mut stdin, lines.as_bytes()).await;
    drop(stdin);
    child.wait_with_output().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_from_a_pipe_are_a_turn_each_without_escapes() {
    let settings = Settings::new().answer(read()).answer("**One.**").answer(edit()).answer("Two.");
    let (folder, fake) = (ground(), settings.start().await);
    let output = piped(Some(&fake), folder.path(), "First.\n\nSecond.\n/pins\n").await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && !text.contains('\x1b'), "{text}");
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} is not in\n{text}"));
    assert!(
        at("> First.") < at("One.") && at("One.") < at("> Second.") && at("Two.") < at("nothing is pinned")
    );
    // Nobody is there to be asked.
    assert!(text.contains("not allowed: Edit of src/parser.rs"), "{text}");
    assert_eq!(parser(&folder), "fn last_line() {}\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_two_lines_say_what_to_do() {
    let folder = ground();
    let output = piped(None, folder.path(), "Hello.\n").await;
    let says = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(says.lines().count(), 2, "{says}");
    assert!(says.contains("ANTHROPIC_API_KEY") && says.contains("longhaul demo --agent"), "{says}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_model_thinks_is_shown_as_far_as_the_person_wants() {
    let thinking =
        || Answer::new().thinking("The parser is short.\nIt drops nothing.\x1b[2J").text("Nothing is wrong.");
    let (folder, fake) =
        (ground(), Settings::new().answers([thinking(), thinking(), thinking()]).start().await);
    let mut person = Person::start(&fake, folder.path(), &["--api", "openai"]);
    person.says("What is wrong?");
    person.sees("∴ The parser is short.");
    let shown = person.sees("context ");
    assert!(shown.contains("Nothing is wrong.") && !shown.contains("It drops"), "{shown}");
    person.says("/thinking whole");
    person.sees("whole: what the model thinks is shown");
    person.says("Really?");
    person.sees("∴ The parser is short.");
    person.sees("  It drops nothing.[2J");
    person.sees("context ");
    person.says("/thinking none");
    person.sees("none: ");
    person.says("Really?");
    let shown = person.sees("context ");
    assert!(!shown.contains("∴"), "{shown}");
    person.says("/thinking much");
    person.sees("much is none of none, short, whole");
    // An answer in a pipe is the answer.
    let fake = Settings::new().answer(thinking()).start().await;
    let output = piped(Some(&fake), folder.path(), "What is wrong?\n").await;
    assert!(!String::from_utf8(output.stdout).unwrap().contains("The parser is short"));
}

#[tokio::test(flavor = "multi_thread")]
async fn how_commands_are_kept_in_is_said_at_the_start_and_with_the_permissions() {
    let (folder, fake) = (ground(), Settings::new().start().await);
    let mut person = Person::start(&fake, folder.path(), &[]);
    let greeting = plain(&person.raw());
    let lines: Vec<&str> = ["commands ", "read-only: ", "out of reach: ", "not confined: "]
        .iter()
        .filter_map(|start| greeting.lines().find_map(|line| line.find(start).map(|at| line[at..].trim())))
        .collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:?}");
    // Without Landlock one line says it all.
    assert!(lines.len() == 4 || lines[0].contains("not confined"), "{lines:?}");
    person.says("/permissions");
    for line in lines {
        person.sees(line);
    }
    let person = Person::start(&fake, folder.path(), &["--unconfined"]);
    assert!(plain(&person.raw()).contains("commands are not confined: they can write wherever you may"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_cannot_reach_the_terminal() {
    for arguments in [&["--permissions", "all"][..], &["--permissions", "all", "--unconfined"]] {
        // What a program does that asks for a password.
        let ask = "printf 'pass%s: ' word > /dev/tty && read answer < /dev/tty; echo \"code $?\"; \
                   echo \"session $(cut -d' ' -f6 /proc/$$/stat) of $$\"";
        let bash = Answer::new().call("Bash", json!({"command": ask, "timeout": 20}));
        let (folder, fake) = (ground(), Settings::new().answer(bash).answer("Asked.").start().await);
        let mut person = Person::start(&fake, folder.path(), arguments);
        let begun = std::time::Instant::now();
        person.says("Ask me.");
        person.sees("Asked.");
        assert!(begun.elapsed() < Duration::from_secs(15), "it waited");
        assert!(!plain(&person.raw()).contains("password: "), "{}", plain(&person.raw()));
        let sent = fake.log().last().unwrap().body.to_string();
        assert!(!sent.contains("code 0") && sent.contains("code "), "{sent}");
        if cfg!(target_os = "linux") {
            let session = sent.split("session ").nth(2).or(sent.split("session ").last()).unwrap();
            let words: Vec<&str> =
                session.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty()).collect();
            assert_eq!(words[0], words[1], "{sent}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_whose_lines_were_not_all_done_says_so_by_its_exit_code() {
    let folder = ground();
    let fake = Settings::new().answers(["One.", "Two."]).trouble(1..=1, Trouble::Status(401)).start().await;
    let output = piped(Some(&fake), folder.path(), "First.\nSecond.\n").await;
    let text = String::from_utf8(output.stdout).unwrap();
    // The lines behind it are done all the same.
    assert!(output.status.code() == Some(1) && text.contains("> Second."), "{text}");
    let output = piped(Some(&fake), folder.path(), "/no-such-command\n").await;
    assert_eq!(output.status.code(), Some(2));
    let output = piped(Some(&fake), folder.path(), "/pins\n").await;
    assert_eq!(output.status.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_goes_on_says_what_it_had_cost() {
    let billed = |text: &str| {
        Answer::new().text(text).usage(Counts { prompt: 2_000, output: 100_000, ..Counts::default() })
    };
    let (folder, fake) = (ground(), Settings::new().answers([billed("One."), billed("Two.")]).start().await);
    let mut person = Person::start(&fake, folder.path(), &["--model", "gpt-4o"]);
    person.says("First?");
    person.sees("One.");
    person.sees("$1.00");
    person.types("\x04");
    person.leaves();
    let mut person = Person::start(&fake, folder.path(), &["--model", "gpt-4o", "--continue"]);
    assert!(plain(&person.raw()).contains("$0.00 + $1.00 before"), "{}", plain(&person.raw()));
    person.says("Second?");
    person.sees("Two.");
    person.sees("$1.00 + $1.00 before");
    person.says("/cost");
    person.sees("before this run");
    person.says("/clear");
    person.sees("a new session");
    person.sees("$0.00 · ");
}

/// The address holds the gateway's token, so it is printed for a person and never into a file.
#[tokio::test(flavor = "multi_thread")]
async fn wrap_names_the_page_of_its_inspector() {
    let (folder, fake) = (ground(), Settings::new().start().await);
    let mut person = Person::at(&fake, folder.path(), &["wrap", "sh", "--", "-c", "read line"], &[]);
    person.sees("longhaul: inspector at http://");
    let url = person.sees("\n");
    let (address, path) = url.trim().split_once('/').unwrap();
    let mut page = std::net::TcpStream::connect(address).unwrap();
    write!(page, "GET /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    page.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 303 ") && answer.contains("set-cookie: longhaul-inspect-"),
        "{answer}"
    );
    person.types("\r");
    let (status, all) = person.leaves();
    assert!(status.success() && all.ends_with("longhaul: no calls\n"), "{all}");
    assert_eq!(all.matches("inspector at").count(), 1, "{all}");
}
