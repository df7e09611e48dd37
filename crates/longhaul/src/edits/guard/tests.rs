//! The check of an edit and the audit of a view say the same.

use proptest::prelude::*;

use super::*;
use crate::conversation::json::{Extra, Json};
use crate::conversation::log::Position;
use crate::conversation::message::{Opaque, Text, Thinking, ToolCall, ToolResult, Words};
use crate::edits::edit::{Edit, EditPrice, EditText, Placement};
use crate::policy::profile::Profile;
use crate::session::{Prepared, Session};
use crate::size::models::Models;

/// A conversation with every kind of thing an edit may not touch.
fn log() -> impl Strategy<Value = Vec<Message>> {
    let round = (0..9u8, 1..4usize, any::<bool>()).prop_map(|(kind, calls, answered)| {
        let thinking = |seal| {
            let mut extra = Extra::NONE;
            extra.set("id", Json::string("rs_1"));
            Block::Thinking(Thinking { text: "thought ".repeat(20).into(), seal, extra })
        };
        let call = |server| {
            let arguments = Json::new(format!("{{\"text\":\"{}\"}}", "x".repeat(600))).unwrap();
            Block::ToolCall(ToolCall {
                id: "c".into(),
                name: "Write".into(),
                arguments,
                server,
                extra: Extra::NONE,
            })
        };
        let mut blocks = match kind {
            0 => vec![thinking(Seal::Signed("s".into()))],
            1 => vec![thinking(Seal::Encrypted("e".into()))],
            2 => vec![thinking(Seal::Open)],
            3 => vec![call(true), Block::result("c", "hits ".repeat(200))],
            // The result comes in a later answer, or never.
            4 => vec![call(true), Block::text("words ".repeat(100))],
            5 => vec![Block::result("c", "hits ".repeat(200)), cites()],
            6 => vec![thinking(Seal::Redacted(None)), Block::text("words ".repeat(100))],
            _ => vec![Block::text("words ".repeat(100))],
        };
        blocks.extend((0..calls - 1).map(|_| call(false)));
        let mut messages = vec![Message::new(Role::Assistant, blocks)];
        messages.extend((0..calls - 1).map(|_| match kind {
            7 => loading(),
            _ => Message::result("c", "line of a result\n".repeat(60)),
        }));
        if !answered {
            messages.pop();
        }
        messages
    });
    let other = prop_oneof![
        2 => Just(vec![Message::user("do this ".repeat(30))]),
        1 => Just(vec![Message::system("rule ".repeat(30))]),
    ];
    prop::collection::vec(prop_oneof![3 => round, 1 => other], 2..12).prop_map(|all| all.concat())
}

/// Text that cites what a tool of the provider found.
fn cites() -> Block {
    let mut extra = Extra::NONE;
    extra.set("citations", Json::new("[1]").unwrap());
    Block::Text(Text { text: "as found ".repeat(60).into(), words: Words::All, extra })
}

/// A result that loads a tool.
fn loading() -> Message {
    let value = Json::new(r#"{"type":"tool_reference","tool_name":"WebFetch"}"#).unwrap();
    let Block::ToolResult(result) = Block::result("c", "line of a result\n".repeat(60)) else { panic!() };
    let content = Some(vec![Block::Opaque(Opaque { value, extra: Extra::NONE })].into());
    Message::new(Role::Tool, vec![Block::ToolResult(ToolResult { content, ..result })])
}

fn kind() -> impl Strategy<Value = EditKind> {
    let at = || (0..24u32).prop_map(Position);
    let span = (0..20u32, 1..8u32).prop_map(|(start, len)| Span::new(start, start + len));
    let spans = prop::collection::vec(span, 1..3);
    let text = || prop_oneof![4 => Just("short"), 1 => Just("")].prop_map(EditText::from);
    prop_oneof![
        (at(), 0..4usize, text()).prop_map(|(at, block, text)| EditKind::Digest { at, block, text }),
        (at(), 0..4usize, any::<bool>()).prop_map(|(at, block, object)| {
            let arguments = Json::new(if object { "{}" } else { "[]" }).unwrap();
            EditKind::DigestArgs { at, block, arguments }
        }),
        at().prop_map(|at| EditKind::DropThinking { at }),
        (spans.clone(), text()).prop_map(|(spans, text)| EditKind::Hide { spans, text }),
        (spans, text()).prop_map(|(spans, text)| EditKind::Fold {
            spans,
            placement: Placement::InPlace,
            kept: vec![],
            text,
            summary: None,
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// What the check lets through, the audit finds nothing wrong with; what it refuses by
    /// a rule, the audit finds once it is made all the same.
    #[test]
    fn the_check_of_an_edit_and_the_audit_of_the_view_agree(messages in log(), kinds in prop::collection::vec(kind(), 1..6)) {
        let mut session = Session::new(Profile::longhaul(), Models::builtin().find("gpt-4o").clone()).with_window(Tokens(1 << 30));
        for message in messages {
            session.push(message);
        }
        prop_assert!(matches!(session.prepare(None), Ok(Prepared::Send(_))));
        let mut audited = Audited::default();
        for kind in kinds {
            let (before, after) = (Tokens(100), Tokens(if matches!(&kind, EditKind::Hide { text, .. } if text.is_empty()) { 100 } else { 5 }));
            let why = Why::Asked;
            let verdict = session.check_edit(&kind, why, before, after);
            if matches!(verdict, Err(Refusal::Nothing(_) | Refusal::Held)) {
                continue;
            }
            let mut trial = session.clone();
            trial.force(Edit {
                id: trial.ledger().next_id(), kind: kind.clone(), strategy: "test".into(), why, before, after,
                price: EditPrice::default(), originals: vec![], voice: None, depends: vec![],
            });
            let found = trial.audit();
            // An audit that goes on from the last one finds the same.
            prop_assert_eq!(session.audit_again(&mut audited), []);
            prop_assert_eq!(&trial.audit_again(&mut audited.clone()), &found);
            match verdict {
                Ok(()) => {
                    prop_assert_eq!(&found, &[], "{:?}", kind);
                    session = trial;
                }
                Err(refusal) => prop_assert!(!found.is_empty(), "{:?} was refused ({}) and nothing is wrong", kind, refusal),
            }
        }
    }
}
