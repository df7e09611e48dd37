use super::*;
use crate::conversation::json::Json;
use crate::conversation::message::Block;
use proptest::prelude::*;
use serde_json::json;

fn call(name: &str, arguments: &Value) -> ToolCall {
    let Block::ToolCall(call) = Block::call("c", name, Json::from(arguments)) else { unreachable!() };
    call
}

fn exec(source: &str) -> ToolCall {
    call("exec", &json!({ "input": source }))
}

/// The calls of a script: name and arguments.
fn made(source: &str) -> Vec<(String, Value)> {
    let call = exec(source);
    let made = made_by(&call);
    assert!(made.is_script(), "{source}");
    made.calls().iter().map(|call| (call.name.to_string(), call.arguments.value())).collect()
}

/// The commands that a script runs.
fn commands(source: &str) -> Vec<String> {
    let command = |arguments: Value| arguments["cmd"].as_str().unwrap_or("?").to_owned();
    made(source).into_iter().map(|(_, arguments)| command(arguments)).collect()
}

fn result(text: &str) -> ToolResult {
    let Block::ToolResult(result) = Block::result("c", text) else { unreachable!() };
    result
}

/// What each call printed.
fn outputs<'a>(source: &str, result: &'a ToolResult) -> Vec<&'a str> {
    let call = exec(source);
    made_by(&call).outputs(result).into_iter().map(|range| &result.text[range]).collect()
}

#[test]
fn calls_as_models_write_them() {
    let source = r#"
        // Look at both: tools.exec_command({cmd: "not this one"})
        const root = "/srv/shop";
        const r = await Promise.all([
          tools.exec_command({cmd: "sed -n '1,80p' src/cart.rs", workdir: root, "yield_time_ms": 1_000,}),
          tools.exec_command({ 'cmd': 'rg -n "total\\(" src', workdir: `${root}/api`, max_output_tokens: 2000 }), /* last */
        ]);
        text(r[0].output); text("tools.apply_patch('nor this one')");
        await tools.update_plan({plan: [{step: "Fix rounding", status: "in_progress"}, {step: 'Test', status: "pending"}]});
        await tools?.write_stdin({session_id: -7, chars: "", wait: null, deep: [[1.5, true], {}]});
        await tools["mcp__docs__search"]("tax rules");
    "#;
    assert_eq!(
        made(source),
        [
            (
                "exec_command".to_owned(),
                json!({"cmd": "sed -n '1,80p' src/cart.rs", "workdir": "/srv/shop", "yield_time_ms": 1000})
            ),
            (
                "exec_command".to_owned(),
                json!({"cmd": "rg -n \"total\\(\" src", "workdir": "/srv/shop/api", "max_output_tokens": 2000})
            ),
            (
                "update_plan".to_owned(),
                json!({"plan": [{"step": "Fix rounding", "status": "in_progress"}, {"step": "Test", "status": "pending"}]})
            ),
            (
                "write_stdin".to_owned(),
                json!({"session_id": -7, "chars": "", "wait": null, "deep": [[1.5, true], {}]})
            ),
            ("mcp__docs__search".to_owned(), json!({"input": "tax rules"})),
        ]
    );
}

#[test]
fn texts_in_every_kind_of_quotation_mark() {
    assert_eq!(
        commands(r#"tools.exec_command({cmd: 'it\'s \x41 \u0042 \u{1F600} \uD83D\uDE00'})"#),
        ["it's A B 😀 😀"]
    );
    assert_eq!(
        commands("tools.exec_command({cmd: `cat <<'E'\\n\\`x\\` $HOME \\${Y}\nE`})"),
        ["cat <<'E'\n`x` $HOME ${Y}\nE"]
    );
    assert_eq!(commands(r"tools.exec_command({cmd: String.raw`grep '\d+\n' a`})"), [r"grep '\d+\n' a"]);
    assert_eq!(
        commands(r#"tools.exec_command({cmd: "cd a" + " && " + ('make ' + 'x')})"#),
        ["cd a && make x"]
    );
    assert_eq!(commands(r#"tools.exec_command({cmd: ["set -e", `make`].join("\n")})"#), ["set -e\nmake"]);
    // A template may hold a call, and a call stands where an expression does.
    assert_eq!(commands(r#"text(`out: ${(await tools.exec_command({cmd: "ls"})).output}`)"#), ["ls"]);
    assert_eq!(
        commands(r#"if (/["'`]/.test(x)) await tools.exec_command({cmd: "ls /"}); else y = a / b / c"#),
        ["ls /"]
    );
}

#[test]
fn variables_loops_and_small_functions() {
    for source in [
        "const a = 'make lint'\nlet b = `make test`\nawait tools.exec_command({cmd: a}); await tools.exec_command({cmd: b})",
        "const jobs = ['make lint', 'make test']; await Promise.all(jobs.map(cmd => tools.exec_command({cmd})))",
        "for (const job of ['lint', 'test']) { text((await tools.exec_command({cmd: `make ${job}`})).output) }",
        "const jobs = [['a', 'make lint'], ['b', 'make test']];\nfor (const [name, cmd] of jobs) await tools.exec_command({cmd});",
        "const jobs = [{cmd: 'make lint'}, {cmd: 'make test'}]; jobs.forEach(async (job) => tools.exec_command(job))",
        "const jobs = ['make lint', 'make test']; for (let i = 0; i < jobs.length; i++) await tools.exec_command({cmd: jobs[i]});",
        "const run = (cmd, ms = 1000) => tools.exec_command({cmd, yield_time_ms: ms});\nawait run('make lint'); await run('make test')",
        "async function run(target) { return await tools.exec_command({cmd: 'make ' + target}) }\nfor (const t of ['lint', 'test']) {}\nrun('lint'); run('test')",
        "const run = async c => { const r = await tools.exec_command({cmd: c}); text(r.output) };\n['make lint', 'make test'].forEach(run)",
        "const {exec_command: sh} = tools; await sh({cmd: 'make lint'}); const go = tools.exec_command; go({cmd: 'make test'})",
        "const all = {x: 'make lint', y: 'make test'}; for (const [k, v] of Object.entries(all)) await tools.exec_command({cmd: v})",
        "let base = {workdir: '/a'}; tools.exec_command({...base, cmd: 'make lint'}); tools.exec_command({...base, cmd: 'make test'})",
    ] {
        assert_eq!(commands(source), ["make lint", "make test"], "{source}");
    }
}

#[test]
fn what_cannot_be_read_stays_as_it_is() {
    // No call: the script is the call.
    for source in [
        "const hits = ALL_TOOLS.filter(tool => tool.name); text(hits)",
        "tools",
        "tools.",
        "text('tools.x()')",
    ] {
        let call = exec(source);
        assert!(!made_by(&call).is_script(), "{source}");
    }
    for call in
        [call("exec", &json!({"command": "ls tools.d"})), call("Bash", &json!({"input": "tools.a({})"}))]
    {
        assert_eq!(made_by(&call).calls(), std::slice::from_ref(&call));
    }
    // An expression stays as its source, a variable that nobody knows is left out.
    assert_eq!(
        made("tools.exec_command({cmd: quote(name), workdir, timeout: 2 * 60, n: 1})"),
        [("exec_command".to_owned(), json!({"cmd": "quote(name)", "timeout": "2 * 60", "n": 1}))]
    );
    assert_eq!(made("tools.go(next(1))"), [("go".to_owned(), json!({"input": "next(1)"}))]);
    assert_eq!(commands("tools.exec_command({cmd: `make ${target}`})"), ["make ${target}"]);
    // A script that was cut.
    assert_eq!(commands("tools.exec_command({cmd: 'ls', workdir: '/a"), ["ls"]);
}

#[test]
fn a_patch_is_found_wherever_it_stands() {
    const PATCH: &str = "*** Begin Patch\\n*** Update File: src/tax.rs\\n@@\\n-a\\n+b\\n*** End Patch";
    for source in [
        format!("await tools.apply_patch(\"{PATCH}\")"),
        format!("const patch = `{PATCH}`;\ntext(await tools.apply_patch(patch))"),
        format!("const patch = clean(`{PATCH}`);\ntext(await tools.apply_patch(patch))"),
        format!("const patches = make({{one: '{PATCH}'}}); for (const p of patches) await tools.apply_patch(p)"),
        "await tools.apply_patch(['*** Begin Patch', '*** Update File: src/tax.rs', '+b', '*** End Patch'].join('\\n'))".to_owned(),
        "const f = 'src/tax.rs'; await tools.apply_patch(`*** Begin Patch\n*** Update File: ${f}\n+b\n*** End Patch`)".to_owned(),
    ] {
        let made = made(&source);
        assert_eq!(made.len(), 1, "{source}");
        let patch = made[0].1["input"].as_str().unwrap();
        assert!(patch.contains("*** Update File: src/tax.rs\n"), "{source}: {patch}");
    }
}

#[test]
fn a_script_of_node_reads_and_writes_files() {
    let source = "const fs = await import('node:fs/promises'); const dir = 'web';\n\
        const old = await fs.readFile(`${dir}/app.js`, 'utf8');\n\
        await fs.writeFile(dir + '/app.js', old.replace('a', 'b'));\n\
        for (const f of ['x.tmp', 'y.tmp']) fs.rmSync(f); execSync('npm test');\n\
        await fs.writeFile(unknown, '');";
    let call = call("mcp__node_repl__js", &json!({"code": source, "title": "Edit"}));
    let made = made_by(&call);
    let made: Vec<_> = made.calls().iter().map(|call| (&*call.name, call.arguments.as_str())).collect();
    let wanted = [
        ("read_file", r#"{"path":"web/app.js"}"#),
        ("write_file", r#"{"path":"web/app.js"}"#),
        ("edit_file", r#"{"path":"x.tmp"}"#),
        ("edit_file", r#"{"path":"y.tmp"}"#),
        ("shell", r#"{"command":"npm test"}"#),
    ];
    assert_eq!(made, wanted);
    // The same inside of a script.
    let outer = exec("await tools.mcp__node_repl__js({title: 'a', code: `fs.readFileSync('a.txt')`})");
    let names: Vec<Box<str>> = made_by(&outer).calls().iter().map(|call| call.name.clone()).collect();
    assert_eq!(names, [Box::from("read_file")]);
}

const TWO: &str =
    "const r = await Promise.all([tools.exec_command({cmd: 'a'}), tools.exec_command({cmd: 'b'})]);";

#[test]
fn outputs_fall_apart_where_the_script_says_so() {
    let head = "Script completed\nWall time 0.2 seconds\nOutput:\n\n";
    for (print, printed, wanted) in [
        (
            "r.forEach((x, i) => text(`--- ${i} ---\\n${x.output}`))",
            "--- 0 ---\none\ntwo\n--- 1 ---\nthree\n",
            ["one\ntwo\n", "three\n"],
        ),
        (
            "text('## first\\n' + r[0].output); text('## second\\n' + r[1].output)",
            "## first\none\n## second\ntwo",
            ["one\n", "two"],
        ),
        ("text(r.map(x => x.output).join('\\n=====\\n'))", "one\n=====\ntwo", ["one\n", "two"]),
    ] {
        let result = result(&format!("{head}{printed}"));
        assert_eq!(outputs(&format!("{TWO} {print}"), &result), wanted, "{print}");
    }
    // The output has such a line of its own, or nothing stands between the outputs: they stay together.
    for (print, printed) in [
        (
            "for (const [i, x] of r.entries()) text(`--- ${i} ---\\n${x.output}`)",
            "--- 0 ---\n--- old ---\n--- 1 ---\nb",
        ),
        ("for (const x of r) text(x.output)", "one\ntwo\n"),
    ] {
        let result = result(&format!("{head}{printed}"));
        assert_eq!(outputs(&format!("{TWO} {print}"), &result), [printed], "{print}");
    }
}

#[test]
fn outputs_fall_apart_where_the_host_keeps_them_apart() {
    let blocks = ["Script completed\nWall time 0.2 seconds\nOutput:\n", "one\n", "two"].map(Block::text);
    let text = "Script completed\nWall time 0.2 seconds\nOutput:\n\none\n\ntwo";
    let result = ToolResult { content: Some(blocks.into()), ..result(text) };
    assert_eq!(outputs(&format!("{TWO} for (const x of r) text(x.output)"), &result), ["one\n", "two"]);
}

#[test]
fn the_header_of_the_host_is_no_output() {
    let cut = "Script completed\nWall time 4.4 seconds\nOutput:\n\nWarning: truncated output (original token count: 9000)\nTotal output lines: 700\n\nfirst";
    let one = "text((await tools.exec_command({cmd: 'a'})).output)";
    for (text, output) in [
        (cut, "first"),
        (
            "Script failed\nWall time 1 seconds\nOutput:\n\nScript error:\nError: no",
            "Script error:\nError: no",
        ),
        ("Script running with cell ID 7\nWall time 11.0 seconds\nOutput:\n", ""),
        ("plain\nOutput:\nx", "plain\nOutput:\nx"),
        ("", ""),
    ] {
        assert_eq!(outputs(one, &result(text)), [output], "{text}");
    }
}

#[test]
fn the_reader_is_linear_and_bounded() {
    let work = |source: &str| {
        let start = std::time::Instant::now();
        assert!(!made_by(&exec(source)).calls().is_empty());
        start.elapsed()
    };
    for (piece, end) in [
        ("tools.a(", ""),
        ("tools.a({b: [", ""),
        ("[", ""),
        ("({[`${", ""),
        ("x = /[", ""),
        ("const f = () => f(f()); ", "f()"),
        ("a += 'x'; tools.a(a); ", ""),
        ("const a = [[", ""),
        ("a = {b: ", ""),
        ("l.map(x => ", ""),
        ("function f(a, ", ""),
        ("text(`", ""),
        ("tools.apply_patch(p); '*** Begin Patch'; ", ""),
        ("a = [a, a, a, a]; ", "tools.a(a)"),
        ("(", "tools.a(1)"),
        ("\\", "tools"),
    ] {
        let long = piece.repeat((400 << 10) / piece.len()) + end + " tools";
        let took = work(&long);
        // A debug build on a slow machine reads some 5 MB a second; the square would be hours.
        assert!(took.as_secs() < 10, "{piece}: {took:?}");
    }
    // What is written twice at each step is not written two to the fortieth times.
    let source =
        format!("let a = 'x'; {} tools.exec_command({{cmd: a.length + a}})", "a = a + a; ".repeat(40));
    assert!(made_by(&exec(&source)).calls()[0].arguments.as_str().len() < 100_000);
    // Nor is a loop in a loop run for ever.
    let many = format!("const l = [{}]; l.map(a => l.map(b => tools.x(a)))", "1,".repeat(5_000));
    assert!(made_by(&exec(&many)).calls().len() <= 64);
}

fn source() -> impl Strategy<Value = String> {
    let pieces = [
        "tools",
        ".",
        "exec_command",
        "apply_patch",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "`",
        "${",
        "'",
        "\"",
        "\\",
        "\n",
        ",",
        ":",
        ";",
        "=",
        "=>",
        "+",
        "const ",
        "for (",
        " of ",
        "x",
        "y",
        "function f",
        "f(",
        "text(",
        ".map(",
        "...",
        "String.raw`",
        "/",
        "//",
        "/*",
        "*/",
        "1.5",
        "-",
        "?.",
        "é",
        "\\u{1F6",
        "\\uD83D",
        "*** Begin Patch\n",
        "*** Update File: ",
        "\n*** Move to: a/b.rs\n",
        "*** Add File: it's\\n@@",
        "cmd: 'ls'",
        "await ",
        "fs.readFile(",
        ".join(",
        "Object.entries(",
        "JSON.stringify(",
        "++",
        "[x]",
        "async ",
        "true",
        "null",
    ];
    prop::collection::vec(
        prop_oneof![9 => prop::sample::select(pieces.to_vec()).prop_map(str::to_owned), 1 => "\\PC{0,9}"],
        0..60,
    )
    .prop_map(|pieces| pieces.concat())
}

/// The files that the calls of a script patch, in order of their names.
fn patched(source: &str) -> Vec<String> {
    let call = exec(source);
    let made = made_by(&call);
    let texts =
        made.calls().iter().filter_map(|call| Some(call.arguments.value()["input"].as_str()?.to_owned()));
    let mut files: Vec<String> = texts.flat_map(|text| found_by_regex(&text)).collect();
    files.sort();
    files.dedup();
    files
}

/// What a regular expression finds that knows nothing of JavaScript.
fn found_by_regex(text: &str) -> Vec<String> {
    let pattern = r#"\*\*\* (?:Update File|Add File|Delete File|Move to): ([\w./ -]*[\w./-])"#;
    let found = regex::Regex::new(pattern).unwrap();
    let mut files: Vec<String> = found.captures_iter(text).map(|found| found[1].to_owned()).collect();
    files.sort();
    files.dedup();
    files
}

#[test]
fn every_file_that_a_script_patches_is_named() {
    let many: String = (0..300).map(|n| format!("await tools.apply_patch(`*** Begin Patch\n*** Update File: src/f{n}.rs\n+x\n*** End Patch`);\n")).collect();
    let rounds: Vec<String> =
        (0..90).map(|n| format!("'*** Begin Patch\\n*** Add File: a{n}.md\\n+x\\n*** End Patch'")).collect();
    let long = format!(
        "// {}\n{}",
        "x".repeat(LONGEST),
        "await tools.apply_patch('*** Begin Patch\\n*** Delete File: far/away.rs\\n*** End Patch')"
    );
    let scripts = [
        many,
        format!("for (const p of [{}]) await tools.apply_patch(p);", rounds.join(", ")),
        long,
        "const w = (f) => f;\nawait tools.apply_patch(w('*** Begin Patch\\n*** Update File: a b.rs\\n*** Move to: c.rs\\n@@\\n'));".to_owned(),
        "const lines = ['*** Begin Patch', '*** Update File: one.rs', '@@', \"*** Add File: two.rs\" ].concat(); await tools.apply_patch(lines.join('\\n'))".to_owned(),
        "if (a) { await tools.apply_patch(`*** Begin Patch\n*** Update File: x.rs\n`.replace('a', 'b')) }".to_owned(),
        "await tools.exec({input: \"await tools.apply_patch('*** Begin Patch\\\\n*** Update File: deep.rs\\\\n@@\\\\n')\"})".to_owned(),
    ];
    for source in &scripts {
        assert_eq!(patched(source), found_by_regex(source), "{}", &source[..source.len().min(300)]);
    }
}

#[test]
fn a_path_that_a_script_computes_is_not_named_by_its_first_part() {
    for source in [
        "tools.exec_command({cmd: 'ls'}); await go('*** Update File: src/' + name)",
        "tools.exec_command({cmd: 'ls'}); await go(`*** Update File: ${root}/x.rs`)",
        "tools.exec_command({cmd: 'ls'}); text.replace(/^\\*\\*\\* Update File: (.*)/, '')",
    ] {
        assert_eq!(patched(source), Vec::<String>::new(), "{source}");
    }
    let named = "await go('*** Update File: src/x.rs' + '\\n@@'); tools.exec_command({cmd: 'ls'})";
    assert_eq!(patched(named), ["src/x.rs"]);
}

#[test]
fn files_that_are_named_by_their_headers_alone_leave_outputs_with_their_calls() {
    let source = "await go('*** Update File: a.rs');\nconst [x, y] = [await tools.exec_command({cmd: 'x'}), await tools.exec_command({cmd: 'y'})];\ntext('--- one\\n' + x.output); text('--- two\\n' + y.output)";
    let said = result("Script completed\nOutput:\n--- one\nfirst\n--- two\nsecond\n");
    assert_eq!(outputs(source, &said), ["", "first\n", "second\n"]);
    let alone = "await go('*** Update File: a.rs'); text(await tools.exec_command({cmd: 'x'}))";
    assert_eq!(outputs(alone, &result("first\n")), ["", "first\n"]);
}

proptest! {
    #[test]
    fn a_header_anywhere_in_a_script_is_named(before in source(), name in "[a-z]{1,9}/[a-z]{1,9}[.]rs", place in 0usize..3) {
        let header = format!("*** Update File: {name}");
        let source = match place {
            0 => format!("{before}\n`\n{header}\n`"),
            1 => format!("{before}\n'{header}\\n@@ x'"),
            _ => format!("{before}\n\"{header}\","),
        };
        let call = exec(&source);
        let made = made_by(&call);
        let named = made.calls().iter().any(|call| call.arguments.as_str().contains(&header));
        prop_assert!(named, "{}", source);
    }

    #[test]
    fn no_script_makes_it_stumble(source in source(), printed in "(Script completed\nOutput:\n)?(\\PC{0,20}\n|--- [0-9]\n|é\n){0,12}") {
        for source in [source.clone(), format!("{source}`'\")]}}; tools.exec_command({{cmd: 'last'}})")] {
            let call = exec(&source);
            let made = made_by(&call);
            prop_assert!(!made.calls().is_empty());
            let result = result(&printed);
            let parts = made.outputs(&result);
            prop_assert!(parts.len() == 1 || parts.len() == made.calls().len());
            let mut from = 0;
            for part in parts {
                prop_assert!(part.start >= from && result.text.get(part.clone()).is_some());
                from = part.end;
            }
        }
    }

    #[test]
    fn a_literal_is_read_as_it_was_written(value in "\\PC{0,40}[\n\t'\"`$\\\\]{0,4}", place in 0usize..3) {
        let quoted = serde_json::to_string(&value).unwrap();
        let source = match place {
            0 => format!("tools.exec_command({{cmd: {quoted}}})"),
            1 => format!("const c = {quoted};\ntools.exec_command({{cmd: c, n: [1, {{}}]}})"),
            _ => format!("[{quoted}].map(async (c) => (await tools.exec_command({{cmd: c}})).output)"),
        };
        prop_assert_eq!(commands(&source), [value]);
    }
}
