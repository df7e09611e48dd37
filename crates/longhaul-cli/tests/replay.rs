//! `longhaul replay` as a user runs it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

fn longhaul(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("longhaul").unwrap();
    // No settings but those that are built in.
    command.env("HOME", "/nonexistent").env_remove("XDG_CONFIG_HOME").env_remove("LONGHAUL_CONFIG");
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")).args(args);
    command
}

fn stdout(args: &[&str]) -> String {
    String::from_utf8(longhaul(args).assert().success().get_output().stdout.clone()).unwrap()
}

/// One line on stderr, and the exit code.
fn failure(args: &[&str]) -> (String, i32) {
    let output = longhaul(args).assert().failure().get_output().clone();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.stdout.is_empty() || !args.contains(&"--json"), "{:?}", output.stdout);
    (text, output.status.code().unwrap())
}

/// Times vary from run to run.
fn without_times(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with("Preparing a view took")).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_table_for_people() {
    insta::assert_snapshot!(without_times(&stdout(&["replay", "small.jsonl"])));
}

/// A session of sixty steps that think, without signatures: those of published recordings are gone.
fn thinking(folder: &Path) -> String {
    let file = folder.join("thinks.jsonl");
    let ask = |n: usize| serde_json::json!({"role": "assistant", "content": [{"type": "thinking", "text": "I look closer at it. ".repeat(10)}, {"type": "tool_call", "id": format!("c{n}"), "name": "Read", "arguments": {"path": format!("src/file_{n}.rs")}}]});
    let answer = |n: usize| serde_json::json!({"role": "tool", "content": [{"type": "tool_result", "id": format!("c{n}"), "text": format!("fn function_{n}() {{}}\n").repeat(40)}]});
    let asked = serde_json::json!({"role": "user", "content": [{"type": "text", "text": "Read all."}]});
    let lines = std::iter::once(asked).chain((0..60).flat_map(|n| [ask(n), answer(n)]));
    fs::write(&file, lines.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// covers: DESIGN rule 12, in `replay`.
#[test]
fn folds_take_the_thinking_after_them_where_the_model_binds_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = thinking(folder.path());
    let line = |more: &[&str]| -> Value {
        let args = [&["replay", &file, "--window", "8000", "--meter", "neutral", "--json"], more].concat();
        serde_json::from_str(&stdout(&args)).unwrap()
    };
    let (free, bound, named) = (line(&[]), line(&["--bound"]), line(&["--model", "claude-opus-5-5"]));
    let share = |line: &Value, what: &str| line[format!("thinking_{what}")].as_f64().unwrap();
    for line in [&free, &bound, &named] {
        let sum = share(line, "kept") + share(line, "lost_folds") + share(line, "lost_others");
        assert!((sum - 1.0).abs() < 1e-9, "{line}");
        assert_eq!((line["violations"].as_u64(), share(line, "lost_others")), (Some(0), 0.0), "{line}");
    }
    assert!(share(&bound, "kept") < share(&free, "kept") && share(&bound, "kept") > 0.0, "{free} {bound}");
    assert!(share(&named, "kept") < share(&free, "kept"));
    let shown = stdout(&["replay", &file, "--window", "8000", "--meter", "neutral", "--bound", "--edits"]);
    assert!(shown.contains("Of the thinking before each call, "), "{shown}");
    assert!(shown.contains("; and the thinking of "), "{shown}");
    assert!(!stdout(&["replay", &file, "--window", "8000"]).contains("Of the thinking"));
    // Where nobody thought there is nothing to tell.
    let silent = folder.path().join("silent.jsonl");
    fs::write(
        &silent,
        "{\"role\":\"user\",\"content\":\"Hello.\"}\n{\"role\":\"assistant\",\"content\":\"Hi.\"}\n",
    )
    .unwrap();
    let none = stdout(&["replay", silent.to_str().unwrap(), "--bound", "--json"]);
    assert!(none.contains(r#""thinking_kept":null"#), "{none}");
}

#[test]
fn every_edit_is_shown_as_it_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("long.jsonl");
    let ask = |n: usize| serde_json::json!({"role": "assistant", "content": [{"type": "tool_call", "id": format!("c{n}"), "name": "Read", "arguments": {"path": format!("src/file_{n}.rs")}}]});
    let answer = |n: usize| serde_json::json!({"role": "tool", "content": [{"type": "tool_result", "id": format!("c{n}"), "text": format!("fn function_{n}() {{}}\n").repeat(100)}]});
    let asked = serde_json::json!({"role": "user", "content": [{"type": "text", "text": "Read all."}]});
    let lines = std::iter::once(asked).chain((0..60).flat_map(|n| [ask(n), answer(n)]));
    std::fs::write(&file, lines.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let shown = stdout(&["replay", file.to_str().unwrap(), "--window", "8000", "--edits"]);
    let edits: Vec<&str> = shown.lines().filter(|line| line.starts_with("  before call ")).collect();
    assert!(edits.len() > 3, "{shown}");
    for words in [" fold: ", " → ", ", forced (hard limit); ", " billed again"] {
        assert!(edits[0].contains(words), "{}", edits[0]);
    }
    // The figures follow.
    assert!(shown.lines().last().unwrap().starts_with("Preparing a view took"), "{shown}");
}

#[test]
fn the_table_fits_80_columns() {
    for line in stdout(&["replay", "small.jsonl", "small.jsonl"]).lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn the_json_line_has_the_fields_of_the_contract() {
    let line: Value = serde_json::from_str(&stdout(&["replay", "small.jsonl", "--json"])).unwrap();
    let fields: Vec<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
    let contract = "transcript profile window calls errors tokens_full tokens_sent peak_full peak_sent cost_full \
                    cost_sent losing prefix_breaks edits retention in_line near reachable prepare_us_p50 prepare_us_p99 \
                    growth_error_p50 growth_error_p90 violations thinking_kept thinking_lost_folds thinking_lost_others \
                    summary_calls summary_input summary_output \
                    summary_failed summary_cost";
    assert_eq!(fields, contract.split_whitespace().collect::<Vec<_>>());
    assert_eq!((line["calls"].as_u64(), line["window"].as_u64()), (Some(4), Some(200_000)));
    let window = |args: &[&str]| {
        let line: Value = serde_json::from_str(&stdout(args)).unwrap();
        line["window"].as_u64().unwrap()
    };
    // covers: S-1
    for (profile, own) in
        [("mini", 128_000), ("archive", 200_000), ("transform", 200_000), ("progressive", 200_000)]
    {
        let replay = ["replay", "small.jsonl", "--json", "--profile", profile];
        assert_eq!(window(&replay), own, "{profile}");
        assert_eq!(window(&[&replay[..], &["--model", "gpt-4.1"]].concat()), 1_047_576, "{profile}");
        assert_eq!(window(&[&replay[..], &["--model", "nobody-knows-it"]].concat()), own, "{profile}");
        assert_eq!(window(&[&replay[..], &["--model", "gpt-4.1", "--window", "64000"]].concat()), 64_000);
    }
    // The log is sent whole, and the placeholder of the call that got no result.
    assert!(line["cost_sent"].as_u64() > line["cost_full"].as_u64());
    assert_eq!(line["losing"], true);
    assert!(line["tokens_sent"].as_u64().unwrap() < line["tokens_full"].as_u64().unwrap() + 30);
}

fn views(file: &str, more: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("views.jsonl");
    let args = [&["replay", file, "--views", out.to_str().unwrap()], more].concat();
    longhaul(&args).assert().success();
    let mut views: Vec<Value> =
        fs::read_to_string(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for view in &mut views {
        assert!(view["prepare_us"].is_u64());
        view["prepare_us"] = 0.into();
    }
    views
}

#[test]
fn views_hold_the_whole_log_before_each_call() {
    let views = views("small.jsonl", &[]);
    assert_eq!(views.len(), 4);
    let upto: Vec<u64> = views.iter().map(|view| view["upto"].as_u64().unwrap()).collect();
    assert_eq!(upto, [2, 4, 6, 9]);
    insta::assert_snapshot!(serde_json::to_string_pretty(&views[3]).unwrap());
}

/// A file cut after a call gives the same lines: nothing in a view comes from later.
#[test]
fn views_do_not_look_ahead() {
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/small.jsonl")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let whole = views("small.jsonl", &["--meter", "model"]);
    let folder = tempfile::tempdir().unwrap();
    for (call, view) in whole.iter().enumerate() {
        let path = folder.path().join("cut.jsonl");
        let upto = view["upto"].as_u64().unwrap() as usize;
        fs::write(&path, lines[..=upto].join("\n")).unwrap();
        let mut cut = views(path.to_str().unwrap(), &["--meter", "model"]);
        let mut last = cut.pop().unwrap();
        last["transcript"] = view["transcript"].clone();
        assert_eq!(&last, view, "call {call}");
    }
}

#[test]
fn a_call_that_does_not_fit_is_said_and_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("big.jsonl");
    let big = format!(
        "{{\"role\":\"system\",\"content\":\"{}\"}}\n{{\"role\":\"assistant\",\"content\":\"ok\"}}\n",
        "word ".repeat(2_000)
    );
    fs::write(&path, big).unwrap();
    let views = views(path.to_str().unwrap(), &["--window", "1000", "--meter", "neutral"]);
    assert_eq!(views[0]["messages"], Value::Array(vec![]));
    assert_eq!(
        views[0]["error"],
        "system prompt and tools alone have 2504 tokens, over the limit of 850 (window 1000)"
    );
}

#[test]
fn recorded_compaction_is_left_out_and_gzip_and_stdin_are_read() {
    let text = "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"user\",\"content\":\"sum\",\"compact_summary\":true}\n\
                {\"role\":\"assistant\",\"content\":\"b\"}\n";
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packed, text.as_bytes()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("views.jsonl");
    for input in [text.as_bytes().to_vec(), packed.finish().unwrap()] {
        longhaul(&["replay", "-", "--views", out.to_str().unwrap()]).write_stdin(input).assert().success();
        let view: Value = serde_json::from_str(&fs::read_to_string(&out).unwrap()).unwrap();
        assert_eq!(view["upto"], 1);
    }
}

#[test]
fn views_never_overwrite_a_transcript() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.jsonl");
    fs::write(&path, "{\"role\":\"user\",\"content\":\"a\"}\n").unwrap();
    let path = path.to_str().unwrap();
    let (text, code) = failure(&["replay", path, "--views", path]);
    assert!(text.ends_with("in.jsonl: is one of the transcripts; views go to another file\n"), "{text}");
    assert_eq!(code, 2);
    assert!(fs::read_to_string(path).unwrap().contains("user"));
    assert_eq!(failure(&["replay", path, "--views", "-"]).1, 2);
    assert_eq!(
        failure(&["replay", path, "--profile", "nobody"]).0,
        "error: there is no profile \"nobody\"; there is longhaul, thrifty, safe, mini, transform, archive, progressive\n"
    );
}

#[test]
fn bad_input_is_one_line_and_exit_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let broken = file("broken.jsonl", b"{\"role\":\"user\",\"content\":\"hi\"}\n{\"role\":\"cat\"}\n");
    let empty = file("empty.jsonl", b"");
    let cases: [(&[&str], &str); 4] = [
        (&["replay", "none.jsonl"], "error: none.jsonl: no such file\n"),
        (&["replay", "small.jsonl#3"], "error: small.jsonl: has no conversation 3: the last is 0\n"),
        (&["replay", &empty], "empty.jsonl: has no messages\n"),
        (&["replay", "small.jsonl", "--views", "no/such/folder"], "No such file or directory (os error 2)\n"),
    ];
    for (args, expected) in cases {
        let (text, code) = failure(args);
        assert!(text.ends_with(expected), "{text}");
        assert_eq!((text.lines().count(), code), (1, 2), "{text}");
    }
    // A line that cannot be read is said; the rest is read.
    let output = longhaul(&["replay", &broken]).assert().success().get_output().clone();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.ends_with("line 2: role \"cat\" is not one of system, user, assistant, tool, summary\n"),
        "{said}"
    );
    assert_eq!(failure(&["replay", "small.jsonl", "--window", "12"]).1, 2);
    assert_eq!(failure(&["fly"]).1, 2);
    assert_eq!(failure(&[]).1, 2);
}

#[test]
fn a_cut_last_line_is_said_on_stderr() {
    let text =
        "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"assistant\",\"content\":\"b\"}\n{\"role\":\"us";
    let output =
        longhaul(&["replay", "-", "--json"]).write_stdin(text).assert().success().get_output().clone();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "-: line 3: cut off after 11 bytes, left out\n");
}

#[test]
fn help_has_examples() {
    insta::assert_snapshot!(stdout(&["replay", "--help"]));
    insta::assert_snapshot!(stdout(&["--help"]));
}

#[test]
fn colours_only_where_they_are_wanted() {
    let piped = stdout(&["replay", "small.jsonl"]);
    assert!(!piped.contains('\x1b'));
    let mut command = longhaul(&["replay", "small.jsonl"]);
    let forced = command.env("CLICOLOR_FORCE", "1").assert().success().get_output().stdout.clone();
    assert!(forced.contains(&0x1b));
}

/// Where a file has usage, that is the size: what it does not hold counts too.
#[test]
fn sizes_are_those_that_were_billed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("billed.jsonl");
    let mut lines = vec![serde_json::json!({"role": "user", "content": "Read it all."}).to_string()];
    for n in 0..60_u64 {
        let call = serde_json::json!({"type": "tool_call", "id": format!("c{n}"), "name": "Read", "arguments": {"path": format!("f{n}.rs")}});
        let usage = serde_json::json!({"input": 3, "cache_read": 30_000 + n * 2_500, "cache_write": 2_500, "output": 20});
        let model = "claude-opus-4-5";
        lines.push(
            serde_json::json!({"role": "assistant", "content": [call], "usage": usage, "model": model})
                .to_string(),
        );
        let words: String = (0..700).map(|word| format!("word{} ", (word * 7 + n) % 97)).collect();
        let result = serde_json::json!({"type": "tool_result", "id": format!("c{n}"), "text": words});
        lines.push(serde_json::json!({"role": "tool", "content": [result]}).to_string());
    }
    fs::write(&path, lines.join("\n")).unwrap();
    let replayed = |more: &[&str]| -> Value {
        serde_json::from_str(&stdout(&[&["replay", path.to_str().unwrap(), "--json"], more].concat()))
            .unwrap()
    };
    let billed = 33_003 + 59 * 2_500;
    let ours = replayed(&["--window", "1M"])["peak_full"].as_u64().unwrap();
    assert!(ours.abs_diff(billed) * 20 < billed, "{ours} {billed}");
    let neutral = replayed(&["--window", "1M", "--meter", "neutral"])["peak_full"].as_u64().unwrap();
    assert!(neutral * 3 < billed * 2, "{neutral}");
    // What a provider would have compacted is compacted here.
    assert!(replayed(&[])["edits"].as_u64().unwrap() > 0);
    assert!(replayed(&[])["peak_sent"].as_u64().unwrap() <= 170_000);
}

/// A session of one model is one of that model from its first call on: nothing is dropped, nothing is billed twice.
#[test]
fn a_session_of_one_model_has_no_switch() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("one.jsonl");
    let mut lines =
        vec![serde_json::json!({"role": "user", "content": [{"type": "text", "text": "Read all."}]})];
    for n in 0..8 {
        lines.push(serde_json::json!({"role": "assistant", "model": "claude-opus-4-5",
            "content": [{"type": "thinking", "text": "Hm, this one.", "signature": "c2ln"},
                        {"type": "tool_call", "id": format!("c{n}"), "name": "Read", "arguments": {"path": "a.rs"}}],
            "usage": {"input": 3, "output": 9, "cache_read": 20_000 + 200 * n, "cache_write": 200}}));
        lines.push(serde_json::json!({"role": "tool",
            "content": [{"type": "tool_result", "id": format!("c{n}"), "text": "fn a() {}\n".repeat(40)}]}));
    }
    fs::write(&file, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let path = file.to_str().unwrap();
    let line: Value = serde_json::from_str(&stdout(&["replay", path, "--json"])).unwrap();
    assert_eq!((line["edits"].as_u64(), line["prefix_breaks"].as_u64()), (Some(0), Some(0)));
    let cost = |name: &str| line[name].as_f64().unwrap();
    assert!((cost("cost_sent") / cost("cost_full") - 1.0).abs() < 0.01, "{line}");
    // The page of a call is of one scale: what was read and what is new are all of it.
    let page: Value = serde_json::from_str(&stdout(&["explain", path, "--call", "2", "--json"])).unwrap();
    let tokens = |name: &str| page[name].as_u64().unwrap();
    assert!(tokens("read") > 20_000, "{page}");
    assert_eq!(tokens("read") + tokens("written"), tokens("tokens"));
}

/// A session of this model that reads one file after the other.
fn long_session(folder: &Path, model: &str) -> String {
    let file = folder.join(format!("{model}.jsonl"));
    let mut lines =
        vec![serde_json::json!({"role": "user", "content": [{"type": "text", "text": "Read all."}]})];
    for n in 0..200 {
        lines.push(serde_json::json!({"role": "assistant", "model": model, "content":
            [{"type": "tool_call", "id": format!("c{n}"), "name": "Bash", "arguments": {"command": format!("ls {n}")}}]}));
        let text: String = (0..15).map(|line| format!("plain words {n} of no importance {line}\n")).collect();
        lines.push(serde_json::json!({"role": "tool",
            "content": [{"type": "tool_result", "id": format!("c{n}"), "text": text}]}));
    }
    lines.push(serde_json::json!({"role": "assistant", "model": model, "content": [{"type": "text", "text": "Read."}]}));
    fs::write(&file, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// The bill, the cost of sending everything, and the number of edits.
fn paid(file: &str, more: &[&str]) -> [u64; 3] {
    let line: Value =
        serde_json::from_str(&stdout(&[&["replay", file, "--json", "--window", "200000"], more].concat()))
            .unwrap();
    ["cost_sent", "cost_full", "edits"].map(|name| line[name].as_u64().unwrap())
}

/// The model's meter follows the models of the recording: so do decisions and the bill.
#[test]
fn calls_are_billed_at_the_prices_that_the_engine_decides_by() {
    let folder = tempfile::tempdir().unwrap();
    let opus = long_session(folder.path(), "claude-opus-5-5");
    let own = paid(&opus, &[]);
    assert!(own[2] > 0, "{own:?}");
    // A token from its cache costs a twentieth.
    assert_eq!(own, paid(&opus, &["--prices", "0.05,1.25"]));
    assert_ne!(own[1], paid(&opus, &["--prices", "0.1,1.25"])[1]);
    assert!(
        stdout(&["replay", &opus])
            .replace('\n', " ")
            .contains("a repeated prefix × 0.05, what is new × 1.25)")
    );
    // A model that is named: its prices, in both. Its cents save no fold.
    let [sent, full, edits] = paid(&opus, &["--model", "gpt-5-nano"]);
    assert_eq!((sent, edits), (full, 0));
    // The same with the neutral meter, whichever model the recording names.
    let neutral = |more: &[&str]| paid(&opus, &[&["--meter", "neutral"], more].concat());
    assert_eq!(neutral(&[]), neutral(&["--prices", "0.1,1.25"]));
    assert_eq!(neutral(&["--model", "claude-opus-5-5"]), neutral(&["--prices", "0.05,1.25"]));
    // Two models: each call at the prices of its own.
    let nano = long_session(folder.path(), "gpt-5-nano");
    let both = stdout(&["replay", &opus, &nano]).replace('\n', " ");
    assert!(both.contains("(in tokens: each call at the prices of its model)"), "{both}");
}

/// `--decide-at` is the one exception: it changes what is decided, and not the bill.
#[test]
fn deciding_by_another_price_changes_no_bill() {
    let folder = tempfile::tempdir().unwrap();
    let file = long_session(folder.path(), "claude-opus-5-5");
    for meter in ["neutral", "model"] {
        let at = |more: &[&str]| paid(&file, &[&["--meter", meter, "--prices", "0.025,1.25"], more].concat());
        let own = at(&[]);
        assert_eq!(own, at(&["--decide-at", "0.025,1.25"]));
        let other = at(&["--decide-at", "0.2,1.25"]);
        assert_eq!(own[1], other[1], "{meter}");
        assert_ne!((own[0], own[2]), (other[0], other[2]), "{meter}");
    }
}

/// A session that cost more than sending everything is counted, in its row and in all.
#[test]
fn sessions_that_lose_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.jsonl");
    fs::write(
        &whole,
        "{\"role\":\"user\",\"content\":\"Hi.\"}\n{\"role\":\"assistant\",\"content\":\"Hi.\"}\n",
    )
    .unwrap();
    let text = stdout(&["replay", "small.jsonl", whole.to_str().unwrap()]);
    let last = |name: &str| {
        let row = text.lines().find(|line| line.starts_with(name)).unwrap();
        row.split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!([last("transcript"), last("small"), last("whole"), last("all")], ["lose", "1", "0", "1"]);
    let said = text.replace('\n', " ");
    assert!(
        said.contains("1 of 2 sessions cost more than sending everything: together 0.7% of its bill."),
        "{said}"
    );
    let alone = stdout(&["replay", whole.to_str().unwrap()]);
    assert!(!alone.contains("more than sending everything"), "{alone}");
}
