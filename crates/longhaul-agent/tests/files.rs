//! The tools that work on files, as a model sees them.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use common::Ground;
use longhaul_agent::{Code, Effect, Form, Status};
use serde_json::json;

// covers: A-TOOLS, A-ENVELOPE
#[tokio::test]
async fn every_tool_answers_with_the_envelope() {
    let ground = Ground::with(&[("src/a.rs", "fn a() {}\n")]);
    for (tool, arguments, data) in [
        ("LS", json!({}), "entries"),
        ("Glob", json!({"pattern": "**/*.rs"}), "paths"),
        ("Grep", json!({"pattern": "fn"}), "matches"),
        ("Read", json!({"path": "src/a.rs"}), "content"),
        ("Edit", json!({"path": "src/a.rs", "old": "a()", "new": "b()"}), "changed_lines"),
        ("MultiEdit", json!({"path": "src/a.rs", "edits": [{"old": "b()", "new": "c()"}]}), "applied"),
        ("Write", json!({"path": "new.txt", "content": "x\n"}), "created"),
    ] {
        let json = ground.run(tool, arguments.clone()).await.to_json();
        assert_eq!(json["status"], "success", "{tool}: {json}");
        assert!(!json["data"][data].is_null(), "{tool}: {json}");
        assert!(json["text"].as_str().is_some_and(|text| !text.is_empty()), "{tool}");
        assert_eq!(json["context"]["params_input"], arguments, "{tool}");
        assert!(json["stats"]["time_ms"].is_number(), "{tool}");
    }
}

#[tokio::test]
async fn bad_arguments_and_unknown_tools_are_said_so_that_a_model_can_mend_them() {
    let ground = Ground::new();
    let (code, message) = ground.refuses("Read", json!({"file": 3})).await;
    assert_eq!(code, Code::InvalidParam);
    assert!(message.contains("missing field `path`"), "{message}");
    let (code, message) = ground.refuses("Browse", json!({})).await;
    assert_eq!(code, Code::NoSuchTool);
    assert!(message.contains("LS, Glob, Grep, Read, Edit, MultiEdit, Write"), "{message}");
    // The case of a letter is not minded.
    assert!(!ground.run("ls", json!({})).await.is_error());
}

#[tokio::test]
async fn no_tool_leaves_the_root() {
    let ground = Ground::with(&[("a.txt", "a\n")]);
    std::fs::write(ground.outside("secret"), "secret\n").unwrap();
    symlink(ground.outside(""), ground.path("out")).unwrap();
    symlink(ground.outside("secret"), ground.path("link")).unwrap();
    symlink(ground.outside("fresh"), ground.path("dangling")).unwrap();
    let absolute = ground.outside("secret").display().to_string();
    for path in
        ["../secret", "out/secret", "link", "dangling", "/etc/passwd", &absolute, "a.txt/../../secret"]
    {
        for (tool, arguments) in [
            ("Read", json!({"path": path})),
            ("LS", json!({"path": path})),
            ("Glob", json!({"pattern": "*", "path": path})),
            ("Grep", json!({"pattern": "secret", "path": path})),
            ("Edit", json!({"path": path, "old": "secret", "new": "x"})),
            ("Write", json!({"path": path, "content": "x"})),
        ] {
            ground.refuses(tool, arguments).await;
        }
    }
    // A walk follows no link.
    let found = ground.says("Grep", json!({"pattern": "secret"})).await;
    assert_eq!(found, "nothing fits `secret`");
    assert_eq!(std::fs::read_to_string(ground.outside("secret")).unwrap(), "secret\n");
    assert!(!ground.outside("fresh").exists());
}

#[tokio::test]
async fn a_folder_is_listed_in_order_and_a_huge_one_in_part() {
    let ground = Ground::with(&[("b.txt", ""), ("a/x", ""), (".hidden", "")]);
    symlink("b.txt", ground.path("link")).unwrap();
    assert_eq!(ground.says("LS", json!({"path": ""})).await, ".hidden\na/\nb.txt\nlink@");
    std::fs::create_dir(ground.path("many")).unwrap();
    for n in 0..3_000 {
        std::fs::write(ground.path(&format!("many/f{n:05}")), "").unwrap();
    }
    let listed = ground.run("LS", json!({"path": "many"})).await;
    assert_eq!((listed.status, &listed.data["total"]), (Status::Partial, &json!(3_000)));
    assert_eq!(listed.data["entries"].as_array().unwrap().len(), 1_000);
    let plain = listed.shown(Form::Plain);
    assert!(
        plain.starts_with("f00000\n") && plain.ends_with("3000 entries in all, the first 1000 are shown")
    );
    std::fs::create_dir(ground.path("none")).unwrap();
    assert_eq!(ground.says("LS", json!({"path": "none"})).await, "none is empty");
}

#[tokio::test]
async fn names_that_are_no_text_can_be_listed_and_read() {
    let ground = Ground::new();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
    std::fs::write(ground.project.root().join(name), "coffee\n").unwrap();
    let listed = ground.says("LS", json!({})).await;
    assert_eq!(listed, "caf\\xe9.txt");
    assert_eq!(ground.says("Read", json!({"path": listed})).await, "1\tcoffee\n");
    assert_eq!(ground.says("Grep", json!({"pattern": "coffee"})).await, "caf\\xe9.txt:1:coffee\n");
}

#[tokio::test]
async fn glob_finds_by_name_newest_first_and_leaves_out_what_git_ignores() {
    let ground = Ground::with(&[
        (".gitignore", "target/\n"),
        ("src/lib.rs", ""),
        ("src/deep/mod.rs", ""),
        ("target/out.rs", ""),
        ("main.rs", ""),
    ]);
    let old = std::fs::File::options().write(true).open(ground.path("src/lib.rs")).unwrap();
    old.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let found = ground.says("Glob", json!({"pattern": "**/*.rs"})).await;
    let mut lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.pop(), Some("src/lib.rs"));
    lines.sort_unstable();
    assert_eq!(lines, ["main.rs", "src/deep/mod.rs"]);
    assert_eq!(ground.says("Glob", json!({"pattern": "*.rs"})).await, "main.rs");
    assert_eq!(ground.says("Glob", json!({"pattern": "*.rs", "path": "src"})).await, "src/lib.rs");
    assert_eq!(ground.says("Glob", json!({"pattern": "*.py"})).await, "no file fits `*.py`");
    assert_eq!(ground.refuses("Glob", json!({"pattern": "a[" })).await.0, Code::InvalidParam);
}

#[tokio::test]
async fn grep_shows_lines_files_counts_and_context() {
    let ground = Ground::with(&[
        ("b.rs", "fn one() {}\nlet x = one();\nfn two() {}\n"),
        ("a.py", "def one(): pass\n"),
        (".git/config", "one\n"),
        ("bin", "one\0two\n"),
    ]);
    let grep = |arguments| ground.says("Grep", arguments);
    let all = grep(json!({"pattern": "one"})).await;
    assert_eq!(all, "a.py:1:def one(): pass\nb.rs:1:fn one() {}\nb.rs:2:let x = one();\n");
    assert_eq!(grep(json!({"pattern": "one", "glob": "*.rs", "show": "counts"})).await, "b.rs:2\n");
    assert_eq!(grep(json!({"pattern": "ONE", "ignore_case": true, "show": "files"})).await, "a.py\nb.rs\n");
    assert_eq!(
        grep(json!({"pattern": "two", "context": 1})).await,
        "b.rs-2-let x = one();\nb.rs:3:fn two() {}\n"
    );
    assert_eq!(grep(json!({"pattern": "^fn two", "path": "b.rs"})).await, "b.rs:3:fn two() {}\n");
    let multi = grep(json!({"pattern": r"one\(\) \{\}.let", "multiline": true})).await;
    assert_eq!(multi, "b.rs:1:fn one() {}\nb.rs:2:let x = one();\n");
    let some = ground.run("Grep", json!({"pattern": "one", "limit": 1})).await;
    assert_eq!((some.status, &some.data["total"]), (Status::Partial, &json!(3)));
    let (code, message) = ground.refuses("Grep", json!({"pattern": "a("})).await;
    assert_eq!(code, Code::InvalidParam);
    assert!(message.contains("unclosed group"), "{message}");
}

#[tokio::test]
async fn a_file_is_read_by_pages() {
    let text: String = (1..=5_000).map(|n| format!("line {n}\n")).collect();
    let ground = Ground::with(&[("long.txt", &text), ("empty", "")]);
    let first = ground.run("Read", json!({"path": "long.txt"})).await;
    assert_eq!(first.status, Status::Partial);
    let plain = first.shown(Form::Plain);
    assert!(plain.starts_with("1\tline 1\n2\tline 2\n"), "{}", &plain[..40]);
    assert!(plain.ends_with("2000\tline 2000\n… 3000 lines more: offset 2001 goes on\n"));
    let part = ground.says("Read", json!({"path": "long.txt", "offset": 4_999, "limit": 10})).await;
    assert_eq!(part, "4999\tline 4999\n5000\tline 5000\n");
    assert_eq!(ground.says("Read", json!({"path": "empty"})).await, "empty is empty");
    let behind = ground.says("Read", json!({"path": "long.txt", "offset": 9_000})).await;
    assert_eq!(behind, "long.txt has only 5000 lines");
    let (code, message) = ground.refuses("Read", json!({"path": "lomg.txt"})).await;
    assert_eq!(
        (code, message.as_str()),
        (Code::NotFound, "there is no `lomg.txt`; did you mean `long.txt`?")
    );
}

#[tokio::test]
async fn what_is_large_wide_or_no_text_is_read_with_care() {
    let ground = Ground::new();
    // 40 MB, which is not held.
    let line = "x".repeat(79) + "\n";
    ground.write("huge", line.repeat(500_000));
    let part = ground.says("Read", json!({"path": "huge", "offset": 500_000})).await;
    assert_eq!(part, format!("500000\t{line}"));
    ground.write("wide", "é".repeat(3_000) + "\nshort\n");
    let wide = ground.run("Read", json!({"path": "wide"})).await;
    assert_eq!(wide.status, Status::Partial);
    assert!(wide.shown(Form::Plain).contains("é… (1000 characters more)\n2\tshort\n"));
    ground.write("program", b"\x7fELF\0\0");
    assert_eq!(ground.refuses("Read", json!({"path": "program"})).await.0, Code::Binary);
    ground.write("latin", b"caf\xe9\n");
    assert_eq!(ground.refuses("Read", json!({"path": "latin"})).await.0, Code::Binary);
    assert_eq!(ground.refuses("Read", json!({"path": "."})).await.0, Code::InvalidParam);
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("größe\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    ground.write("utf16", utf16);
    assert_eq!(ground.says("Read", json!({"path": "utf16"})).await, "1\tgröße\n");
    ground.write("dot.png", b"\x89PNG\r\n\x1a\nrest");
    let image = ground.run("Read", json!({"path": "dot.png"})).await;
    assert_eq!((image.images.len(), image.images[0].media_type), (1, "image/png"));
    // A pipe that nobody writes into is not waited for.
    rustix::fs::mkfifoat(rustix::fs::CWD, ground.path("pipe"), rustix::fs::Mode::RUSR).unwrap();
    assert_eq!(ground.refuses("Read", json!({"path": "pipe"})).await.0, Code::InvalidParam);
}

// covers: A-MTIME
#[tokio::test]
async fn a_file_that_somebody_else_changed_is_noticed_when_it_is_read_again() {
    let ground = Ground::with(&[("a.txt", "one\n")]);
    let read = || ground.run("Read", json!({"path": "a.txt"}));
    let first = read().await;
    assert!(first.data["mtime"].as_u64().is_some_and(|ms| ms > 1_700_000_000_000));
    assert_eq!(first.data["modified_externally"], false);
    // The agent's own change is not somebody else's.
    ground.says("Edit", json!({"path": "a.txt", "old": "one", "new": "two"})).await;
    assert_eq!(read().await.data["modified_externally"], false);
    ground.says("Write", json!({"path": "a.txt", "content": "three\n"})).await;
    assert_eq!(read().await.data["modified_externally"], false);
    ground.write("a.txt", "four\n");
    let noticed = read().await;
    assert_eq!(noticed.data["modified_externally"], true);
    assert_eq!(noticed.shown(Form::Plain), "Note: a.txt was modified externally.\n1\tfour\n");
    assert!(noticed.shown(Form::Json).contains("Note: a.txt was modified externally."));
    // Once.
    assert_eq!(read().await.data["modified_externally"], false);
}

#[tokio::test]
async fn only_what_was_read_and_is_still_the_same_is_changed() {
    let ground = Ground::with(&[("a.txt", "one\n"), ("b.txt", "b\n")]);
    let edit = json!({"path": "a.txt", "old": "one", "new": "two"});
    let write = json!({"path": "b.txt", "content": "mine"});
    assert_eq!(ground.refuses("Edit", edit.clone()).await.0, Code::NotRead);
    assert_eq!(ground.refuses("Write", write.clone()).await.0, Code::NotRead);
    ground.says("Read", json!({"path": "a.txt"})).await;
    ground.says("Read", json!({"path": "b.txt"})).await;
    ground.write("a.txt", "one, and more\n");
    ground.write("b.txt", "theirs");
    assert_eq!(ground.refuses("Edit", edit.clone()).await.0, Code::Changed);
    assert_eq!(ground.refuses("Write", write.clone()).await.0, Code::Changed);
    assert_eq!(ground.content("b.txt"), "theirs");
    // A file that was only touched is the same.
    ground.says("Read", json!({"path": "a.txt"})).await;
    let file = std::fs::File::options().write(true).open(ground.path("a.txt")).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    ground.says("Edit", edit).await;
    assert_eq!(ground.content("a.txt"), "two, and more\n");
}

#[tokio::test]
async fn an_edit_is_exact_and_unique_or_everywhere() {
    let ground = Ground::with(&[("a.rs", "let a = 1;\nlet b = 1;\n    let c = 2;\n")]);
    ground.says("Read", json!({"path": "a.rs"})).await;
    let (code, message) = ground.refuses("Edit", json!({"path": "a.rs", "old": "= 1", "new": "= 3"})).await;
    assert_eq!(code, Code::NotUnique);
    assert!(message.contains("stands 2 times in `a.rs` (lines 1, 2)"), "{message}");
    let all = ground.run("Edit", json!({"path": "a.rs", "old": "= 1", "new": "= 3", "all": true})).await;
    assert_eq!(all.data["changed_lines"], json!([[1, 1], [2, 2]]));
    assert_eq!(ground.content("a.rs"), "let a = 3;\nlet b = 3;\n    let c = 2;\n");
    assert!(all.shown(Form::Plain).contains("-let a = 1;\n-let b = 1;\n+let a = 3;\n+let b = 3;"));
    // The nearest text is shown, and whether only white space differs.
    let (code, message) =
        ground.refuses("Edit", json!({"path": "a.rs", "old": "let  c = 2;", "new": ""})).await;
    assert_eq!(code, Code::NoMatch);
    assert!(
        message.contains("only white space differs from lines 3 on, which are:\n3\t    let c = 2;"),
        "{message}"
    );
    let (_, message) =
        ground.refuses("Edit", json!({"path": "a.rs", "old": "let a = 3;\nlet bb = 3;", "new": ""})).await;
    assert!(message.contains("the nearest text is:\n1\tlet a = 3;\n2\tlet b = 3;"), "{message}");
    for (old, new) in [("", "x"), ("let", "let")] {
        let refused = ground.refuses("Edit", json!({"path": "a.rs", "old": old, "new": new})).await;
        assert_eq!(refused.0, Code::InvalidParam);
    }
}

#[tokio::test]
async fn several_edits_are_made_all_or_none() {
    let ground = Ground::with(&[("a.txt", "one\ntwo\n")]);
    ground.says("Read", json!({"path": "a.txt"})).await;
    let edits = |last: &str| {
        json!({"path": "a.txt", "edits": [
            {"old": "one", "new": "1\n1"}, {"old": "1\n1", "new": "first"}, {"old": last, "new": "2"},
        ]})
    };
    let (code, message) = ground.refuses("MultiEdit", edits("three")).await;
    assert_eq!(code, Code::NoMatch);
    assert!(message.starts_with("edit 3 of 3: ") && message.ends_with("(none was made)"), "{message}");
    assert_eq!(ground.content("a.txt"), "one\ntwo\n");
    assert_eq!(ground.run("MultiEdit", edits("two")).await.data["applied"], 3);
    assert_eq!(ground.content("a.txt"), "first\n2\n");
    assert_eq!(
        ground.refuses("MultiEdit", json!({"path": "a.txt", "edits": []})).await.0,
        Code::InvalidParam
    );
}

#[tokio::test]
async fn a_change_keeps_line_endings_encoding_and_mode() {
    let ground = Ground::with(&[("dos.txt", "one\r\ntwo\r\nthree\r\n"), ("run.sh", "#!/bin/sh\necho a\n")]);
    std::fs::set_permissions(ground.path("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("größe\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    ground.write("utf16.txt", &utf16);
    ground.write("mark.txt", "\u{feff}one\n");
    for (path, old, new) in [
        ("dos.txt", "one\ntwo", "1\n2"),
        ("run.sh", "echo a", "echo b"),
        ("utf16.txt", "größe", "grösse"),
        ("mark.txt", "one", "two"),
    ] {
        ground.says("Read", json!({"path": path})).await;
        ground.says("Edit", json!({"path": path, "old": old, "new": new})).await;
    }
    ground.says("Edit", json!({"path": "dos.txt", "old": "three", "new": "3\n4"})).await;
    assert_eq!(ground.content("dos.txt"), "1\r\n2\r\n3\r\n4\r\n");
    assert_eq!(ground.path("run.sh").metadata().unwrap().permissions().mode() & 0o777, 0o755);
    let want: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("grösse\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    assert_eq!(std::fs::read(ground.path("utf16.txt")).unwrap(), want);
    assert_eq!(ground.content("mark.txt"), "\u{feff}two\n");
    // Nothing of ours is left behind.
    let left = std::fs::read_dir(ground.project.root()).unwrap().flatten();
    assert!(left.into_iter().all(|entry| !entry.file_name().to_string_lossy().starts_with(".longhaul")));
}

#[tokio::test]
async fn a_file_is_written_whole_with_its_folders() {
    let ground = Ground::new();
    let made = ground.says("Write", json!({"path": "a/b/c.txt", "content": "one\ntwo\n"})).await;
    assert_eq!(made, "a/b/c.txt was created: 2 lines");
    // What it wrote it knows.
    ground.says("Edit", json!({"path": "a/b/c.txt", "old": "one", "new": "1"})).await;
    let over = ground.says("Write", json!({"path": "a/b/c.txt", "content": "three\n"})).await;
    assert!(over.starts_with("a/b/c.txt was changed: 1 line added, 2 removed\n"), "{over}");
    assert_eq!(ground.content("a/b/c.txt"), "three\n");
    assert_eq!(ground.refuses("Write", json!({"path": "a", "content": ""})).await.0, Code::InvalidParam);
    let mode = ground.path("a/b/c.txt").metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode & 0o600, 0o600);
    // A file that the user has made read-only stays as it is.
    std::fs::set_permissions(ground.path("a/b/c.txt"), std::fs::Permissions::from_mode(0o444)).unwrap();
    let refused = ground.refuses("Write", json!({"path": "a/b/c.txt", "content": "four"})).await;
    assert_eq!(refused.0, Code::AccessDenied);
}

#[tokio::test]
async fn what_a_call_would_do_is_known_before() {
    let ground = Ground::new();
    let effect = |tool: &str, arguments| ground.tools.effect(tool, &arguments);
    assert_eq!(effect("Read", json!({"path": "a"})), Effect::Reads);
    assert_eq!(effect("Edit", json!({"path": "a", "old": "b", "new": "c"})), Effect::Changes("a".into()));
    assert_eq!(effect("Write", json!({"file_path": "a", "content": ""})), Effect::Changes("a".into()));
    // A call that cannot be read does nothing.
    assert_eq!(effect("Write", json!({"path": "a"})), Effect::None);
    assert_eq!(effect("Nothing", json!({})), Effect::None);
}

#[tokio::test]
async fn of_many_matches_those_of_the_first_files_are_shown_and_all_are_counted() {
    let ground = Ground::new();
    let line = format!("needle {}\n", "x".repeat(90));
    for n in 0..40 {
        ground.write(&format!("f{n:02}.txt"), line.repeat(100));
    }
    let found = ground.run("Grep", json!({"pattern": "needle", "limit": 100_000})).await;
    assert_eq!((found.status, &found.data["total"]), (Status::Partial, &json!(4_000)));
    let plain = found.shown(Form::Plain);
    assert!(plain.starts_with("f00.txt:1:needle x") && plain.contains("f04.txt:1:"));
    assert!(plain.contains("4000 matching lines in 40 files") && plain.len() < 60_000, "{}", plain.len());
    // The same whichever file was searched first.
    for _ in 0..5 {
        let again = ground.run("Grep", json!({"pattern": "needle", "limit": 100_000})).await;
        assert_eq!(again.shown(Form::Plain), plain);
    }
    // A match of very many lines is as large as any other result.
    ground.write("long.txt", format!("begin\n{}end\n", "middle\n".repeat(200_000)));
    let long =
        ground.says("Grep", json!({"pattern": "begin.*end", "multiline": true, "path": "long.txt"})).await;
    assert!(long.starts_with("long.txt:1:begin\n") && long.len() < 60_000, "{}", long.len());
}
