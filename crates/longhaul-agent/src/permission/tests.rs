//! Verdicts on calls, as people write rules and models write commands.

use super::*;

fn runs(command: &str) -> Effect {
    Effect::Runs(command.to_owned())
}

fn permissions(mode: Mode, allow: &[&str], deny: &[&str]) -> Permissions {
    let mut permissions = Permissions::new(mode);
    allow.iter().for_each(|rule| permissions.allow(rule).unwrap());
    deny.iter().for_each(|rule| permissions.deny(rule).unwrap());
    permissions
}

fn is_asked(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Ask(_))
}

#[test]
fn a_mode_says_what_is_done_without_asking() {
    let change = Effect::Changes("src/a.rs".into());
    let table = [
        (Mode::Ask, Verdict::Ask(None), Verdict::Ask(None)),
        (Mode::Edits, Verdict::Allow, Verdict::Ask(None)),
        (Mode::All, Verdict::Allow, Verdict::Allow),
    ];
    for (mode, edit, bash) in table {
        let permissions = Permissions::new(mode);
        assert_eq!(permissions.verdict("Read", &Effect::Reads), Verdict::Allow);
        assert_eq!(permissions.verdict("Edit", &change), edit, "{mode:?}");
        assert_eq!(permissions.verdict("Bash", &runs("make")), bash, "{mode:?}");
    }
    let read_only = permissions(Mode::ReadOnly, &["Bash(make)", "Edit"], &[]);
    for effect in [change, runs("make"), Effect::Foreign("mcp__a__b".into())] {
        assert!(matches!(read_only.verdict("Edit", &effect), Verdict::Deny(_)), "{effect:?}");
    }
    assert_eq!(read_only.verdict("Read", &Effect::Reads), Verdict::Allow);
}

#[test]
fn a_deny_always_wins() {
    let all = permissions(Mode::All, &["Bash", "Edit"], &["Bash(rm)", "Edit(secrets/**)", "mcp__mail__*"]);
    assert_eq!(all.verdict("Bash", &runs("cargo fmt")), Verdict::Allow);
    assert!(matches!(all.verdict("Write", &Effect::Changes("secrets/a/key".into())), Verdict::Deny(_)));
    assert_eq!(all.verdict("Write", &Effect::Changes("src/a".into())), Verdict::Allow);
    let mail = Effect::Foreign("mcp__mail__send".into());
    assert!(matches!(all.verdict("mcp__mail__send", &mail), Verdict::Deny(_)));
}

#[test]
fn a_deny_cannot_be_spelled_around() {
    let all = permissions(Mode::All, &["Bash"], &["Bash(rm)", "Bash(git push)", "Bash(git reset --hard)"]);
    for command in [
        "rm -rf x",
        "cd a && rm x",
        "echo $(rm x)",
        "echo \"`rm x`\"",
        "/bin/rm x",
        "sudo rm x",
        "sudo -u root -n rm x",
        "true;rm x",
        "'rm' x",
        "r''m x",
        "r\\m x",
        "\\rm x",
        "\"rm\" x",
        "r\\\nm x",
        "$'rm' x",
        "$'r\\x6d' x",
        "!rm x",
        "! rm x",
        "command rm x",
        "command -p rm x",
        "exec -a ls rm x",
        "builtin rm x",
        "env rm x",
        "env -i A=1 rm x",
        "A=1 rm x",
        "busybox rm x",
        "echo x | xargs rm",
        "xargs -0 -n 1 rm < x",
        "find . -name x -exec rm {} \\;",
        "find . -ok true \\; -execdir rm -f {} +",
        "sh -c 'rm x'",
        "bash -ec \"r''m x\"",
        "eval rm x",
        "eval \"sh -c 'rm x'\"",
        "trap 'rm x' EXIT",
        "nohup nice -n 5 timeout -k 1 5 rm x &",
        "time -p rm x",
        "if true; then rm x; fi",
        "while rm x; do :; done",
        "for f in *; do rm $f; done",
        "(cd a; rm x)",
        "{ rm x; }",
        "echo <(rm x)",
        "RM x",
        "case a in a) rm x;; esac",
        "> x rm y",
        "&>x rm y",
        "time { rm x; }",
        "time -p -- rm x",
        "time ! git -C . push",
        "/usr/lib/git-core/git-push origin",
        "for PATH in a; do rm x; done",
        "find . -exec sh -c 'rm x' {} \\;",
        "git push",
        "git -C . push",
        "git p'us'h",
        "git --no-pager -C a push origin",
        "git --git-dir=.git push",
        "git push --force",
        "git reset --hard",
        "git reset HEAD~1 --har",
    ] {
        let verdict = all.verdict("Bash", &runs(command));
        assert!(matches!(verdict, Verdict::Deny(_)), "{command:?}: {verdict:?}");
    }
    // Nobody can tell: a person is asked, though every rule and the mode would let these run.
    for command in [
        "$X x",
        "X=rm; $X x",
        "X=rm",
        "r${X}m x",
        "$(echo rm) x",
        "{rm,x}",
        "/bin/r? x",
        "git $X",
        "git p",
        "git -c alias.x=push x",
        "git -c alias.x='!rm y' x",
        "git rebase -x 'rm x'",
        "git rebase -qfx 'rm x' HEAD~1",
        "git grep -lOrm x",
        "git clone -qu 'rm x' a b",
        "git fetch --u='rm x' a",
        "[[ 1 -eq 1 && 'a[$(r\\m v)]' -eq 0 ]]",
        "git rebase -x'rm x' main",
        "git clone -c core.fsmonitor='r\\m x' y",
        "git clone --conf core.fsmonitor='r\\m x' y",
        "git fetch --upload-pack='rm x'",
        "echo rm x | sh",
        "sh < x",
        "sh -s",
        "bash <(echo rm x)",
        "bash <<< 'r\\m x'",
        "sh -c \"$X\"",
        "python3 -c 'import os'",
        "perl -ne 'x' y",
        "node -e 'x'",
        "python3 < x",
        "awk 'BEGIN { system(\"r\" \"m x\") }'",
        "sed '1e r\\m x' y",
        "sed s/x.y/rm/e y",
        "ssh host ls",
        "parallel ls",
        "PATH=. ls",
        "GIT_SSH_COMMAND=x git fetch",
        "LD_PRELOAD=x ls",
        "EDITOR='rm x' git commit",
        "make SHELL=rm",
        "docker run x rm y",
        "alias x=y",
        "export PATH=.",
        "export \"$X\"",
        "f() { ls; }",
        "echo $((1))",
        "xargs git < x",
        "env --unknown ls",
        "sudo -Z x ls",
        "echo 'rm x' | xargs -I{} sh -c '{}'",
        "echo 'rm x' | xargs -Iy sh -c y",
        "find . -exec sh -c '{}' \\;",
        "[[ x -eq 1 ]]",
        "test -v 'a[$(rm x)]'",
        "x='a[$(r\\m y)]'",
        "a[x]=1",
        "echo ${x:y}",
        "echo ${!x}",
        "printf -v 'a[x]' y",
        "for PATH in .; do ls; done",
        "launch git -C . push",
        "launch 'r\\m x'",
        "valgrind $X",
        "python3 -W ignore -c 'x'",
        "perl -Mx y",
        ". /dev/stdin",
        "source <(echo rm)",
        "compgen -W '$(x)'",
        "-x",
    ] {
        let verdict = all.verdict("Bash", &runs(command));
        assert!(matches!(verdict, Verdict::Ask(Some(_))), "{command:?}: {verdict:?}");
    }
    for command in [
        "ls",
        "cargo test -p x 2>&1 | tail -5",
        "git commit -m 'rm x, then push'",
        "git log --grep push",
        "git reset HEAD x",
        "git -C a status",
        "echo rm x",
        "grep -rn 'rm x' src > out.txt",
        "FOO=1 cargo test",
        "sed -i 's/a/b/g' src/a.rs",
        "sed -n '10,20p' x.txt",
        "awk '{ print $1 }' x",
        "for f in a b; do echo $f; done",
        "cat > x.txt <<'E'\nrm\nE",
        "python3 scripts/x.py",
        "bash scripts/x.sh",
        "make",
        "rmdir x",
        "python3 -m pytest tests",
        "[ -f x ] && test -n \"$X\" || printf '%s\\n' \"$X\"",
        "[[ 1 -eq 2 ]]",
        "export X=1; source x.sh",
        "find . -name '*.rs' -exec grep -l x {} +",
        "ls | xargs -I{} cat {}",
        "time cargo build",
        "jq '.a[\"b\"]' x.json",
    ] {
        assert_eq!(all.verdict("Bash", &runs(command)), Verdict::Allow, "{command:?}");
    }
}

#[test]
fn a_command_is_allowed_if_each_part_of_it_is_and_nothing_is_hidden_in_it() {
    let ask = permissions(Mode::Ask, &["Bash(git diff:*)", "Bash(cargo test)", "Bash(head)"], &[]);
    for good in [
        "git diff",
        "git diff --stat HEAD",
        "git diff 'a b'",
        "git diff -U5 -w --name-only main..HEAD -- src",
        "git di'ff' \\\n --stat",
        "cargo test -p x",
        "cargo test --workspace -- --nocapture /x",
        "cargo test 2>&1 | head -50",
        "git diff && cargo test # all of it",
        "cargo test >/dev/null",
    ] {
        assert_eq!(ask.verdict("Bash", &runs(good)), Verdict::Allow, "{good}");
    }
    for bad in [
        "git",
        "git push",
        "git difftool",
        "git diff; rm x",
        "git diff && rm x",
        "git diff | sh",
        "git diff & rm x",
        "git diff > x",
        "git diff $(rm x)",
        "git diff `rm x`",
        "git diff \"$(rm x)\"",
        "git diff\nrm x",
        "FOO=1 git diff",
        "GIT_EXTERNAL_DIFF=x git diff",
        "git diff <(rm x)",
        "(git diff)",
        "git diff || curl x",
        "gitdiff",
        "git diff {a,b}",
        "",
        ";",
        "git diff &&",
        "git diff 'x",
        "git\u{a0}diff x\r\nrm",
        "git diff *",
        "git diff ~/x",
        "echo tidy  # comment\ntouch PWN\necho end",
        // What an option of an allowed command would do.
        "git diff --no-index a b",
        "git diff --no-inde a b",
        "git diff --output=x",
        "git diff --output x",
        "git diff -o x",
        "git diff --ext-diff",
        "git diff --textconv",
        "git diff -O/etc/passwd",
        "git diff /etc/passwd /etc/shadow",
        "git diff -- ../x ../../y",
        "git -c core.pager=x diff",
        "git -C .. diff",
        "git --git-dir=x diff",
        "git --work-tree=/ diff",
        "git diff -S --output=x",
        "cargo test --config x",
        "cargo test --manifest-path /x",
        "cargo +x test",
        "head /etc/passwd",
    ] {
        let verdict = ask.verdict("Bash", &runs(bad));
        assert_eq!(verdict, Verdict::Ask(None), "{bad:?}");
    }
}

#[test]
fn the_folder_is_not_left_by_builtins() {
    let ask = permissions(Mode::Ask, &["Bash(cd)", "Bash(cat)", "Bash(printf)"], &[]);
    assert_eq!(ask.verdict("Bash", &runs("cd src && cat a.rs")), Verdict::Allow);
    for bad in ["cd && cat x", "cd .. && cat x", "cd - && cat x", "printf -v PATH .; cat x", "cd a b"] {
        assert!(is_asked(&ask.verdict("Bash", &runs(bad))), "{bad}");
    }
}

#[test]
fn a_rule_without_a_table_is_the_start_of_a_command() {
    let ask =
        permissions(Mode::Ask, &["Bash(git)", "Bash(npm run build *)", "Bash(git diff --no-index)"], &[]);
    for good in ["git add . && git commit -m 'a; b'", "npm run build -- --x", "git diff --no-index a b"] {
        assert_eq!(ask.verdict("Bash", &runs(good)), Verdict::Allow, "{good}");
    }
    assert!(is_asked(&ask.verdict("Bash", &runs("npm run lint"))));
    let more =
        permissions(Mode::Ask, &["Bash(git diff --no-index)", "Bash(grep)", "Bash(find)", "Bash(rg)"], &[]);
    for good in [
        "git diff --no-index --stat a b",
        "grep -rn /api src",
        "find . -name '*.rs' -type f",
        "rg -n a/b src",
    ] {
        assert_eq!(more.verdict("Bash", &runs(good)), Verdict::Allow, "{good}");
    }
    for bad in [
        "git diff --no-index a /etc/passwd",
        "grep x /etc/passwd",
        "grep -ie x /etc/passwd",
        "grep /etc/passwd -e x",
        "grep /etc/passwd --regexp=x",
        "rg /etc --files",
        "grep -f /etc/passwd x",
        "find . -delete",
        "find . -exec rm {} \\;",
        "find . -fprint x",
        "find / -name x",
        "rg --pre x y",
        "rg x ../y",
    ] {
        assert!(is_asked(&more.verdict("Bash", &runs(bad))), "{bad}");
    }
}

#[test]
fn a_protected_path_is_asked_for_in_every_mode_unless_a_rule_names_it() {
    let change = |path: &str| Effect::Changes(path.to_owned());
    for mode in [Mode::Ask, Mode::Edits, Mode::All] {
        let wide = permissions(
            mode,
            &["Edit", "Write(**)", "Edit(.github/**)", "Edit(.github/workflows/ci.yml)"],
            &[],
        );
        for path in [".git/config", ".github/workflows/cd.yml", "AGENTS.md", "a/.envrc", ".vscode/tasks.json"]
        {
            let verdict = wide.verdict("Write", &change(path));
            assert_eq!(verdict, Verdict::Ask(Some(format!("{path} is protected"))), "{mode:?}");
        }
        assert_eq!(wide.verdict("Write", &change(".github/workflows/ci.yml")), Verdict::Allow);
        assert_eq!(wide.verdict("Write", &change("src/a.rs")), Verdict::Allow);
    }
    let all = permissions(Mode::All, &["Bash"], &[]);
    for command in [
        "echo x >> .git/config",
        "cp x ./.git/hooks/y",
        "dd if=x of=.envrc",
        "ls | tee .GIT/config",
        "sed -i s/a/b/ AGENTS.md",
    ] {
        assert!(is_asked(&all.verdict("Bash", &runs(command))), "{command}");
    }
    for command in
        ["cat < .git/config > x", "grep x .github/workflows/ci.yml", "git add AGENTS.md", "sed -n 1p .envrc"]
    {
        assert_eq!(all.verdict("Bash", &runs(command)), Verdict::Allow, "{command}");
    }
    let denied = permissions(Mode::All, &["Edit(AGENTS.md)"], &["Edit(*.md)"]);
    assert!(matches!(denied.verdict("Edit", &change("AGENTS.md")), Verdict::Deny(_)));
}

#[test]
fn the_rule_that_is_offered_is_not_too_wide() {
    let rule = |command: &str| rule_for("Bash", &runs(command));
    assert_eq!(rule("git status --short").as_deref(), Some("Bash(git status)"));
    assert_eq!(rule("ls -la").as_deref(), Some("Bash(ls)"));
    assert_eq!(rule("git diff --no-index a b").as_deref(), Some("Bash(=git diff --no-index a b)"));
    assert_eq!(rule("npm run build").as_deref(), Some("Bash(=npm run build)"));
    assert_eq!(rule("python3 x.py").as_deref(), Some("Bash(=python3 x.py)"));
    for none in ["cd a && make", "echo $HOME > x", "python3 -c 'x y'", "make > x", "A=1 make"] {
        assert_eq!(rule(none), None, "{none}");
    }
    let of_file = |path: &str| rule_for("Write", &Effect::Changes(path.into())).unwrap();
    assert_eq!(of_file("a.txt"), "Edit(a.txt)");
    assert_eq!(of_file("src/b/a.rs"), "Edit(src/b/**)");
    assert_eq!(of_file("src/[b]/a.rs"), "Edit(src/[[]b[]]/**)");
    assert_eq!(of_file(".github/workflows/ci.yml"), "Edit(.github/workflows/ci.yml)");
    // A rule that is offered lets the call run that it was offered for.
    for effect in [
        runs("git status -s"),
        runs("npm test"),
        Effect::Changes("src/[b]/a.rs".into()),
        Effect::Changes(".envrc".into()),
    ] {
        let allowed = permissions(Mode::Ask, &[&rule_for("Bash", &effect).unwrap()], &[]);
        assert_eq!(allowed.verdict("Bash", &effect), Verdict::Allow, "{effect:?}");
    }
}

#[test]
fn a_rule_that_cannot_be_read_is_said() {
    for bad in ["", "Bash(git", "two words", "Edit(a[)"] {
        let error = Permissions::default().allow(bad).unwrap_err();
        assert!(error.to_string().contains("is no rule for permissions"), "{error}");
    }
}
