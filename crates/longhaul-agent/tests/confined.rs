//! What a confined command cannot do: write protected paths, connect to sockets of other programs, read what is hidden.
//! Each test runs real commands with the launcher of the examples.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use common::Ground;
use longhaul_agent::{Bash, BashSettings, Confinement, Enforced, Envelope, Form, Jobs, Writing};
use serde_json::json;

/// The example `launcher`, which is built with the tests.
fn launcher() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let launcher = tests.parent().unwrap().with_file_name("examples").join("launcher");
    assert!(launcher.exists(), "build it first: cargo build -p longhaul-agent --example launcher");
    launcher
}

/// A launcher for a system that has no mounts for this user.
fn launcher_without_mounts(folder: &Path) -> PathBuf {
    let script = folder.join("without-mounts");
    let lines = format!(
        "#!/bin/sh\ncase \" $* \" in\n*' -- '*) exec {0} \"$@\" ;;\n*) {0} \"$@\" | sed s/protected=true/protected=false/ ;;\nesac\n",
        launcher().display()
    );
    std::fs::write(&script, lines).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
    script
}

/// A project with a repository, whose commands are confined.
struct Confined {
    ground: Ground,
    enforced: Enforced,
    _jobs: Jobs,
}

impl Confined {
    fn new() -> Self {
        Self::with(&launcher(), |_| {})
    }

    fn with(launcher: &Path, change: impl FnOnce(&Ground)) -> Self {
        Self::hiding(launcher, change, |_| Vec::new())
    }

    fn hiding(
        launcher: &Path,
        change: impl FnOnce(&Ground),
        hidden: impl FnOnce(&Ground) -> Vec<PathBuf>,
    ) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut ground = Ground::in_folder(folder);
        git(ground.project.root(), &["init", "-q", "-b", "main"]);
        change(&ground);
        let mut settings = BashSettings {
            confinement: Confinement::By(launcher.to_owned()),
            hidden: hidden(&ground),
            ..BashSettings::default()
        };
        for name in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"] {
            settings.environment.push((name.into(), "somebody".into()));
        }
        let bash = Bash::new(&ground.project, settings).unwrap();
        let (enforced, _jobs) = (bash.confinement(), bash.jobs());
        ground.tools.add(Box::new(bash));
        Self { ground, enforced, _jobs }
    }

    async fn run(&self, command: &str) -> Envelope {
        self.ground.run("Bash", json!({ "command": command })).await
    }

    async fn says(&self, command: &str) -> String {
        self.run(command).await.shown(Form::Plain)
    }

    /// Whether this kernel has what a test is about.
    fn has(&self, what: bool) -> bool {
        if !what {
            println!("skipped: this system enforces {:?} only", self.enforced);
        }
        what
    }
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(folder).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.env("GIT_ALLOW_PROTOCOL", "file").output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Ways to have the next git of a person run a program.
const ATTACKS: [&str; 12] = [
    "git config core.fsmonitor 'touch ../PWN'",
    "printf '[core]\\nfsmonitor = touch ../PWN\\n' >> .git/config",
    "mkdir -p .git/hooks; echo 'touch ../PWN' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
    "cd .git && echo x >> config",
    "mv .git .git2 && mkdir .git && cp -r .git2/* .git && echo x >> .git/config",
    "rm -rf .git",
    "ln .git/config alias; echo x >> alias",
    "ln -s .git/config soft; echo x >> soft",
    "mkdir -p .git/info; echo '* filter=x' > .git/info/attributes",
    "git add a && echo x >> .git/config",
    "umount .git 2>&1; unshare -Urm umount .git; echo x >> .git/config",
    "nsenter -t $PPID -m -- sh -c 'echo x >> .git/config' || echo x >> /proc/$PPID/cwd/.git/config",
];

#[tokio::test]
async fn commands_cannot_write_the_repository() {
    let shell = Confined::new();
    if !shell.has(shell.enforced.protected) {
        return;
    }
    shell.ground.write("a", "a");
    let before = tree(&shell.ground.path(".git"));
    for attack in ATTACKS {
        let refused = shell.says(attack).await;
        assert_eq!(tree(&shell.ground.path(".git")), before, "{attack}: {refused}");
        // The working directory may have stayed in there.
        shell.run("cd \"$OLDPWD\" 2> /dev/null; cd \"$(git rev-parse --show-toplevel)\"").await;
    }
    // From inside, too, where the last command ended.
    shell.run("cd .git").await;
    let inside = shell.says("pwd; echo x >> config").await;
    assert!(inside.contains("/.git") && inside.contains("Read-only file system"), "{inside}");
    shell.run("cd ..").await;
    // The rest of the project can be written, by a new file in the root as well.
    assert_eq!(
        shell.says("echo new > new && mkdir target && mv new target/ && cat target/new").await,
        "new\n"
    );
}

#[tokio::test]
async fn without_mounts_the_repository_is_restored_and_the_model_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let shell = Confined::with(&launcher_without_mounts(folder.path()), |_| {});
    assert!(!shell.enforced.protected);
    let config = shell.ground.content(".git/config");
    let said = shell.says("git config core.fsmonitor evil; echo x > .git/hooks/post-commit; echo done").await;
    assert!(said.starts_with("done\n"), "{said}");
    assert!(said.contains("Note: The command changed .git/config, which is protected"), "{said}");
    assert!(said.contains("Note: .git/config was restored."), "{said}");
    assert!(said.contains("The command made .git/hooks/post-commit"), "{said}");
    assert_eq!(shell.ground.content(".git/config"), config);
    assert!(shell.ground.content(".git/config.set-aside").contains("evil"));
    assert!(!shell.ground.path(".git/hooks/post-commit").exists());
    // A job is looked at when it has ended.
    let job = shell.ground.run("Bash", json!({ "command": "rm .git/config", "background": true })).await;
    let job = job.data["job"].clone();
    let mut said = String::new();
    for _ in 0..1_000 {
        if said.contains("has ended") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        said = shell.ground.run("Bash", json!({ "job": job })).await.shown(Form::Plain);
    }
    assert!(said.contains(".git/config was restored"), "{said}");
    assert_eq!(shell.ground.content(".git/config"), config);
    assert!(!shell.says("git add -A; git commit -qm x; git log --format=%s").await.contains("Note"));
}

#[tokio::test]
async fn plain_git_commands_write_the_repository_and_run_no_hooks() {
    let shell = Confined::with(&launcher(), |ground| {
        ground.write("a", "a");
        ground.write(".git/hooks/pre-commit", "#!/bin/sh\ntouch HOOK\n");
        let executable = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(ground.path(".git/hooks/pre-commit"), executable).unwrap();
        git(ground.project.root(), &["config", "core.fsmonitor", "touch FSMONITOR"]);
    });
    let said = shell.says("git add -A && git commit -q -m 'The first one' && git log --format=%s").await;
    assert_eq!(said, "The first one\n");
    assert_eq!(shell.says("git checkout -q -b other; git branch --show-current").await, "other\n");
    assert!(!shell.ground.path("HOOK").exists() && !shell.ground.path("FSMONITOR").exists());
    if !shell.has(shell.enforced.protected) {
        return;
    }
    // Settings are what they were, whatever a git command writes into them.
    let config = shell.ground.content(".git/config");
    let said = shell.says("git branch --set-upstream-to=main").await;
    assert!(
        said.contains("The command changed .git/config") && said.contains(".git/config was restored"),
        "{said}"
    );
    assert_eq!(shell.ground.content(".git/config"), config);
    // A repository of the command's own is not the project's.
    let filter = "git init -q own && cd own && git config filter.x.clean 'echo x >> ../.git/config; cat' \
        && echo '* filter=x' > .gitattributes && echo a > a";
    shell.run(filter).await;
    shell.run("git add -A").await;
    shell.run("git commit -qm own").await;
    shell.run("cd ..").await;
    assert_eq!(shell.ground.content(".git/config"), config);
    // As a submodule, its settings are those of the project too: that is reported, once.
    let said = shell.says("git add -A").await;
    assert!(said.contains("Note: The command added own, a repository of its own"), "{said}");
    assert!(!shell.says("git commit -qm 'With a submodule'").await.contains("submodule: "));
}

#[tokio::test]
async fn linked_work_trees_and_submodules_are_protected_too() {
    let mut main = PathBuf::new();
    let shell = Confined::with(&launcher(), |ground| {
        let root = ground.project.root();
        main = ground.outside("main");
        std::fs::create_dir(&main).unwrap();
        let library = ground.outside("library");
        std::fs::create_dir(&library).unwrap();
        for (folder, file) in [(&main, "a"), (&library, "b")] {
            git(folder, &["init", "-q", "-b", "main"]);
            std::fs::write(folder.join(file), file).unwrap();
            git(folder, &["add", "-A"]);
            git(folder, &["commit", "-qm", "first"]);
        }
        std::fs::remove_dir_all(root.join(".git")).unwrap();
        git(&main, &["worktree", "add", "-q", "-f", "-B", "linked", root.to_str().unwrap()]);
        git(
            root,
            &["-c", "protocol.file.allow=always", "submodule", "-q", "add", library.to_str().unwrap(), "lib"],
        );
        git(root, &["commit", "-qm", "A submodule"]);
    });
    if !shell.has(shell.enforced.protected) {
        return;
    }
    let (git_file, submodule) = (shell.ground.content(".git"), shell.ground.content("lib/.git"));
    for attack in
        ["rm -f .git lib/.git", "echo x > .git", "echo x > lib/.git", "mv lib/.git x; mkdir lib/.git"]
    {
        let refused = shell.says(attack).await;
        assert!(refused.contains("Read-only") || refused.contains("busy"), "{attack}: {refused}");
    }
    assert_eq!((shell.ground.content(".git"), shell.ground.content("lib/.git")), (git_file, submodule));
    // Commits in both: their repository is outside the project.
    assert_eq!(shell.says("echo c > c; cd lib; echo d > d").await, "(no output)");
    assert_eq!(
        shell.says("git add -A && git commit -qm 'In the library' && git log -1 --format=%s").await,
        "In the library\n"
    );
    shell.run("cd ..").await;
    assert_eq!(
        shell.says("git add -A && git commit -qm 'In the tree' && git log -1 --format=%s").await,
        "In the tree\n"
    );
    assert_eq!(git(&main, &["log", "-1", "--format=%s", "linked"]), "In the tree\n");
}

#[tokio::test]
async fn protected_paths_are_read_only_and_new_ones_are_set_aside() {
    let shell = Confined::with(&launcher(), |ground| {
        ground.write(".vscode/tasks.json", "{}");
        ground.write("AGENTS.md", "rules");
        std::os::unix::fs::symlink("AGENTS.md", ground.path("CLAUDE.md")).unwrap();
        std::os::unix::fs::symlink("GEMINI.md", ground.path("GEMINI.md")).unwrap();
        std::os::unix::fs::symlink("nowhere", ground.path(".mcp.json")).unwrap();
    });
    if !shell.has(shell.enforced.protected) {
        return;
    }
    for attack in
        ["echo x > .vscode/tasks.json", "echo x > .vscode/new", "echo x > AGENTS.md", "echo x > CLAUDE.md"]
    {
        let refused = shell.says(attack).await;
        assert!(refused.contains("Read-only file system"), "{attack}: {refused}");
    }
    let said =
        shell.says("rm CLAUDE.md; echo x > CLAUDE.md; mkdir -p .github/workflows; echo x > .envrc").await;
    for name in [".envrc", ".github/workflows", "CLAUDE.md"] {
        assert!(said.contains(&format!("{name}, which is protected: it is now {name}.set-aside")), "{said}");
    }
    assert!(!shell.ground.path(".envrc").exists() && !shell.ground.path(".github/workflows").exists());
    assert_eq!(shell.ground.content("CLAUDE.md"), "rules");
    assert_eq!(shell.ground.content(".envrc.set-aside"), "x\n");
}

#[tokio::test]
async fn commands_cannot_connect_to_sockets_of_other_programs() {
    let shell = Confined::new();
    if !shell.has(shell.enforced.sockets) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let stream = UnixListener::bind(folder.path().join("stream")).unwrap();
    stream.set_nonblocking(true).unwrap();
    let datagrams = UnixDatagram::bind(folder.path().join("datagrams")).unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let place = folder.path().display();
    let script = format!(
        "import socket, sys\n\
        def tried(name, what):\n    try:\n        what()\n        print(name, 'works')\n    except OSError as e:\n        print(name, e.strerror)\n\
        tried('stream', lambda: socket.socket(socket.AF_UNIX).connect('{place}/stream'))\n\
        tried('datagram', lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', '{place}/datagrams'))\n\
        tried('pair of datagrams', lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', '{place}/datagrams'))\n\
        pair = socket.socketpair()\n\
        tried('pair', lambda: pair[0].send(b'x'))\n\
        tried('internet', lambda: socket.socket(socket.AF_INET).bind(('127.0.0.1', 0)))\n"
    );
    shell.ground.write("connect.py", script);
    let said = shell.says("python3 connect.py").await;
    let refused = "Permission denied";
    assert_eq!(
        said,
        format!(
            "stream {refused}\ndatagram {refused}\npair of datagrams {refused}\npair works\ninternet works\n"
        )
    );
    assert!(stream.accept().is_err() && datagrams.recv(&mut [0; 8]).is_err());
    // As it was found.
    let name = format!("longhaul-test-{}", std::process::id());
    let tmux = shell.says(&format!("tmux -L {name} new-session -d 'touch ../PWN'; echo $?")).await;
    assert!(!tmux.ends_with("\n0\n") && tmux != "0\n", "{tmux}");
    assert!(!shell.ground.outside("PWN").exists());
}

#[tokio::test]
async fn hidden_files_cannot_be_read_and_everything_else_can() {
    let shell = Confined::hiding(
        &launcher(),
        |ground| {
            for (name, text) in
                [("state/store.db", "secret"), ("state/token", "secret"), ("open/file", "open")]
            {
                let path = ground.outside(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            std::os::unix::fs::symlink(ground.outside("state"), ground.outside("link")).unwrap();
            ground.write("inside/key", "secret");
            ground.write("store.db", "secret");
        },
        |ground| vec![ground.outside("state"), ground.path("inside"), ground.path("store.db")],
    );
    if !shell.has(shell.enforced.hidden) {
        return;
    }
    for attack in [
        "cat ../state/store.db",
        "cat ../state/token",
        "cat ../link/token",
        "cd ../state && cat token",
        "ln ../state/token here; cat here",
        "mv inside other; cat other/key",
        "cat inside/key store.db",
        "cp store.db copy; cat copy",
        "rm -rf inside store.db; cat inside/key",
    ] {
        let said = shell.says(attack).await;
        assert!(!said.contains("secret"), "{attack}: {said}");
    }
    let outside = shell.ground.outside("open/file");
    let fine = format!(
        "cat {}; ls ../state; echo new > new; cat new; t=$(mktemp); echo t > $t; cat $t; rm $t",
        outside.display()
    );
    assert_eq!(shell.says(&fine).await, "openstore.db\ntoken\nnew\nt\n");
    assert_eq!(std::fs::read_to_string(shell.ground.path("inside/key")).unwrap(), "secret");
    assert_eq!(std::fs::read_to_string(shell.ground.path("store.db")).unwrap(), "secret");
}

#[test]
fn a_user_without_privileges_is_confined_as_well() {
    // Without being root there is nothing to try: all other tests are that.
    let folder = tempfile::tempdir().unwrap();
    let launch = folder.path().join("launcher");
    std::fs::copy(launcher(), &launch).unwrap();
    let all = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(folder.path(), all.clone()).unwrap();
    for name in ["project", "project/.git"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        std::fs::set_permissions(folder.path().join(name), all.clone()).unwrap();
    }
    let (project, kept) = (folder.path().join("project"), folder.path().join("project/.git"));
    let run = |command: &[&str]| {
        let mut setpriv = Command::new("setpriv");
        setpriv.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&launch);
        setpriv.arg("exec-confined").arg("--write").arg(&project).arg("--keep").arg(&kept).args(command);
        setpriv.current_dir(&project).output()
    };
    let probed = run(&[]).ok().map(|output| String::from_utf8(output.stdout).unwrap()).unwrap_or_default();
    if !probed.contains("protected=true") {
        println!("skipped: not root, or no user namespaces here: {probed}");
        return;
    }
    let script =
        "id -u; echo x > new && echo y > .git/config || unshare -Urm umount .git || umount .git || mv .git g";
    let output = run(&["--", "sh", "-c", script]).unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "65534\n");
    assert!(project.join("new").exists() && kept.exists() && !kept.join("config").exists());
}

#[tokio::test]
async fn the_environment_and_the_memory_of_the_agent_cannot_be_read() {
    let shell = Confined::new();
    if !shell.has(shell.enforced.writing != Writing::Everywhere) {
        return;
    }
    let said = shell.says("cat /proc/$PPID/environ | wc -c; head -c 1 /proc/$PPID/mem | wc -c").await;
    assert!(said.contains("Permission denied") && said.contains("0\n"), "{said}");
}

fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path)
            } else {
                found.push((path.clone(), std::fs::read(path).unwrap()))
            }
        }
    }
    found.sort();
    found
}
