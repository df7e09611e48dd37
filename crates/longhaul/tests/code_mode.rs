//! Code mode: the calls inside a script are calls, wherever the engine tells what happened.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::*;
use longhaul::{Block, EditKind, Extra, Json, Message, Profile, Role, Session, ToolCall};
use serde_json::json;

/// A step of one script and what it printed.
fn script(session: &mut Session, id: &str, source: &str, printed: &str) {
    let arguments = Json::from(&json!({ "input": source }));
    session.push(Message::new(Role::Assistant, vec![Block::call(id, "exec", arguments)]));
    let more: String = (0..60).map(|n| format!("a line that nobody needs again {n}\n")).collect();
    let text = format!("Script completed\nWall time 0.3 seconds\nOutput:\n\n{more}{printed}");
    session.push(Message::result(id, text));
}

/// The texts of all folds.
fn folded(session: &Session) -> String {
    let texts = session.ledger().edits().filter_map(|(edit, _)| match &edit.kind {
        EditKind::Fold { text, .. } => Some(text.to_string()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// A turn in which scripts alone change files, and then steps until it is folded.
fn patched(profile: Profile) -> Session {
    let mut session = Session::new(profile, model("m", 20_000)).with_meter(longhaul::Meter::neutral());
    session.push(Message::user("Round the totals of the shop."));
    let patch =
        "*** Begin Patch\\n*** Update File: shop/src/total_of_cart.rs\\n@@\\n-floor\\n+round\\n*** End Patch";
    script(&mut session, "a", &format!("const p = \"{patch}\";\ntext(await tools.apply_patch(p));"), "{}");
    let source = "for (const f of ['shop/src/tax_of_item.rs', 'shop/src/tax_of_order.rs'])\n\
        await tools.apply_patch(`*** Begin Patch\n*** Add File: ${f}\n+b\n*** End Patch`);";
    script(&mut session, "b", source, "{}\n{}");
    let heredoc = "tools.exec_command({cmd: `apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: shop/src/old_tax_table.rs\n*** End Patch\nEOF`})";
    script(&mut session, "c", heredoc, "Done!");
    let test =
        "const r = await tools.exec_command({cmd: 'cargo test -p shop_of_things'}); text(JSON.stringify(r))";
    script(&mut session, "d", test, "{\"exit_code\":101,\"output\":\"error: total_of_cart is 7, not 8\"}");
    session.push(Message::assistant("The totals are rounded now."));
    session.push(Message::user("Go on."));
    for n in 0..60 {
        step(&mut session, n, 2_000);
        ready(&mut session);
        if folded(&session).contains("cargo test") {
            break;
        }
    }
    session
}

#[test]
fn a_fold_names_every_file_that_a_script_patched() {
    for profile in [by_limits(), Profile::longhaul()] {
        let session = patched(profile);
        let text = folded(&session);
        for path in [
            "shop/src/total_of_cart.rs",
            "shop/src/tax_of_item.rs",
            "shop/src/tax_of_order.rs",
            "shop/src/old_tax_table.rs",
        ] {
            assert!(text.contains(path), "{path}\n{text}");
        }
    }
}

/// However many files a session has patched, every request names each of them: after several folds, and after folds that
/// the window forced.
#[test]
fn many_patched_files_are_named_in_every_request() {
    for (files, window) in [(42, 32_000), (42, 64_000), (300, 32_000), (300, 64_000)] {
        let mut session =
            Session::new(Profile::longhaul(), model("m", window)).with_meter(longhaul::Meter::neutral());
        session.push(Message::user("Move every report to the new format."));
        let name = |n: usize| format!("shop/src/reports/of_region_{n}/total_{n}.rs");
        let (mut patched, mut folds) = (0, 0);
        for n in 0..150 {
            // Three files a script, read and patched in turn.
            let some: Vec<usize> = (patched..files.min(patched + 3)).collect();
            patched += some.len();
            let source: String = some
                .iter()
                .map(|n| format!("await tools.apply_patch(`*** Begin Patch\n*** Update File: {}\n@@\n-a\n+b\n*** End Patch`);\n", name(*n)))
                .collect();
            if source.is_empty() {
                step(&mut session, n, 2_000);
            } else {
                script(&mut session, &format!("s{n}"), &source, "Done!");
            }
            ready(&mut session);
            let shown = format!("{:?}", sent(&session));
            let missing: Vec<String> = (0..patched).map(name).filter(|name| !shown.contains(name)).collect();
            assert_eq!(missing, [""; 0], "{files} files, window {window}, call {n}");
            folds = folded(&session).len();
        }
        assert!(folds > 0);
    }
}

#[test]
fn a_file_that_a_script_patched_is_one_that_was_changed() {
    let text = folded(&patched(Profile::longhaul()));
    assert!(text.contains("`shop/src/total_of_cart.rs`: changed 1×"), "{text}");
    assert!(text.contains("`shop/src/old_tax_table.rs`: changed 1×"), "{text}");
}

#[test]
fn a_fold_tells_what_scripts_ran_and_how_it_ended() {
    let text = folded(&patched(by_limits()));
    assert!(text.contains("cargo test -p shop_of_things") && text.contains("101"), "{text}");
    assert!(text.contains("Call apply_patch: ") && text.contains("Call exec_command: "), "{text}");
    assert!(!text.contains("Call exec: ") && !text.contains("tools.exec_command"), "{text}");
}

/// What is folded after a script that failed with this error.
fn folded_after_failure(script: &str, error: &str) -> String {
    let mut session =
        Session::new(Profile::longhaul(), model("m", 20_000)).with_meter(longhaul::Meter::neutral());
    session.push(Message::user("Round the totals."));
    let arguments = Json::from(&json!({ "input": script }));
    session.push(Message::new(Role::Assistant, vec![Block::call("a", "exec", arguments)]));
    let more: String = (0..60).map(|n| format!("a line that nobody needs again {n}\n")).collect();
    let text = format!("Script failed\nWall time 0.1 seconds\nOutput:\n\n{more}\nScript error:\n{error}\n");
    session.push(Message::result("a", text));
    session.push(Message::assistant("That did not work."));
    session.push(Message::user("Go on."));
    for n in 0..60 {
        step(&mut session, n, 2_000);
        ready(&mut session);
        if !folded(&session).is_empty() {
            break;
        }
    }
    folded(&session)
}

/// A script that patches one file, and nothing else but for these words after it.
fn patching(path: &str, then: &str) -> String {
    format!(
        "const r = await tools.apply_patch('*** Begin Patch\\n*** Update File: {path}\\n*** End Patch');{then}"
    )
}

#[test]
fn a_patch_that_failed_changes_no_file() {
    let script = patching("shop/src/never_there.rs", "");
    let text = folded_after_failure(&script, "Error: apply_patch verification failed: no such file");
    assert!(!text.contains("never_there.rs`: changed") && text.contains("apply_patch"), "{text}");
}

/// A script may fail after its patch was applied: the file is changed.
#[test]
fn a_patch_of_a_script_that_failed_later_changes_its_file() {
    let alone = patching("shop/src/rounded.rs", "\ntext(result.output)");
    let beside = patching("shop/src/rounded.rs", "\nawait tools.exec_command({cmd: 'cargo test -p shop'})");
    for (script, error) in [
        (&alone, "ReferenceError: result is not defined"),
        (&alone, "TypeError: the patch has no property output"),
        (&beside, "Error: exec_command timed out after the patch"),
    ] {
        let text = folded_after_failure(script, error);
        assert!(text.contains("`shop/src/rounded.rs`: changed 1×"), "{error}\n{text}");
        assert!(text.contains(error), "the error is named: {text}");
    }
}

/// Calls that a program of the provider makes are calls of the host: the program comes before them, its own
/// result after theirs.
#[test]
fn calls_of_a_program_of_the_provider_are_calls_like_others() {
    let mut session = session(20_000);
    session.push(Message::user("Which of the stores sold the most?"));
    for n in 0..60 {
        let program = Block::ToolCall(ToolCall {
            id: format!("srvtoolu_{n}").into(),
            name: "code_execution".into(),
            arguments: Json::from(&json!({"code": "rows = await read_file('a.csv')\nprint(len(rows))"})),
            server: true,
            extra: Extra::NONE,
        });
        let mut extra = Extra::NONE;
        let caller = json!({"type": "code_execution_20260120", "tool_id": format!("srvtoolu_{n}")});
        extra.set("caller", Json::from(&caller));
        let called = Block::ToolCall(ToolCall {
            id: format!("toolu_{n}").into(),
            name: "Edit".into(),
            arguments: Json::from(&json!({"file_path": format!("stores/report_{n}.md")})),
            server: false,
            extra,
        });
        session.push(Message::new(Role::Assistant, vec![program, called]));
        session.push(Message::result(format!("toolu_{n}"), "one row of the report\n".repeat(90)));
        let done = Block::result(format!("srvtoolu_{n}"), "90\n");
        session.push(Message::new(Role::Assistant, vec![done, Block::text("Done with this one.")]));
        session.push(Message::user("And the next."));
        ready(&mut session);
    }
    assert!(folded(&session).contains("`stores/report_0.md`: changed 1×"), "{}", folded(&session));
    // No call is in view without its result, and no result without its call.
    let shown = sent(&session);
    let ids = |is_call: bool| {
        let blocks = shown.iter().flat_map(Message::blocks).filter_map(move |block| match block {
            Block::ToolCall(call) if is_call => Some(call.id.to_string()),
            Block::ToolResult(result) if !is_call => Some(result.id.to_string()),
            _ => None,
        });
        blocks.collect::<std::collections::BTreeSet<String>>()
    };
    assert_eq!(ids(true), ids(false));
    // What the program is written in is not read as a script.
    assert!(!folded(&session).contains("a.csv`"), "{}", folded(&session));
}
