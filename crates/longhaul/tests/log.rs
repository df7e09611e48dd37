//! Steps, turns and repair, through the public API.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashSet;

use longhaul::conversation::{Fact, FactKind, Image, PLACEHOLDER, Shown, Text, Thinking, UnitKind, Words};
use longhaul::{
    Block, Extra, Frame, Json, Log, Message, Meter, Models, Position, Profile, Role, Seal, Session, Span,
    Tokens, ToolCall,
};
use proptest::prelude::*;

fn call(id: &str) -> Block {
    Block::call(id, "Read", Json::empty_object())
}

fn asks(ids: &[&str]) -> Message {
    Message::new(Role::Assistant, ids.iter().map(|id| call(id)).collect())
}

fn attachment(text: &str) -> Message {
    Message::user(text).with_attachment()
}

fn new_session(window: u64) -> Session {
    let model = Models::builtin().find("gpt-4o").clone();
    // Logs are looked at here: nothing is folded by its price.
    let profile = Profile { dial: None, ..Profile::longhaul() };
    Session::new(profile, model).with_window(Tokens(window)).with_meter(Meter::neutral())
}

fn log_of(messages: impl IntoIterator<Item = Message>) -> Log {
    let mut log = Log::new();
    for message in messages {
        log.push(message);
    }
    log
}

/// What the model is shown, as one line a message.
fn shown(log: &Log) -> Vec<String> {
    log.show(log.units()).map(|shown| line(&resolve(log, &shown))).collect()
}

fn resolve(log: &Log, shown: &Shown) -> Message {
    match shown {
        Shown::AsIs(at) => (**log.get(*at).unwrap()).clone(),
        Shown::Made(_, message) => (**message).clone(),
    }
}

fn line(message: &Message) -> String {
    let blocks: Vec<String> = message
        .blocks()
        .iter()
        .map(|block| match block {
            Block::Text(b) => b.text.to_string(),
            Block::Thinking(b) => format!("({})", b.text),
            Block::ToolCall(b) => format!("{}?", b.id),
            Block::ToolResult(b) => format!("{}={}", b.id, b.text),
            Block::Image(_) => "image".into(),
            Block::Opaque(_) => "opaque".into(),
        })
        .collect();
    format!("{}: {}", message.role().name(), blocks.join(" | "))
}

#[test]
fn a_result_inside_a_stray_result_is_text_when_it_is_shown() {
    let inner = Block::result("c1", "inner words");
    let outer = Block::ToolResult(longhaul::ToolResult {
        id: "c1".into(),
        name: None,
        text: "outer words".into(),
        content: Some([inner, Block::call("c2", "Read", Json::empty_object())].into()),
        is_error: false,
        extra: Extra::NONE,
    });
    let mut log = Log::new();
    log.push(Message::new(Role::Tool, vec![outer]));
    let shown: Vec<Shown> = log.show(log.units()).collect();
    let [Shown::Made(_, message)] = shown.as_slice() else { panic!("{shown:?}") };
    assert!(message.blocks().iter().all(|block| matches!(block, Block::Text(_))), "{message:?}");
    assert!(format!("{message:?}").contains("inner words"));
}

#[test]
fn a_step_is_an_answer_with_its_results_and_a_turn_ends_with_the_answer() {
    let log = log_of([
        Message::system("rules"),
        Message::user("do it"),
        asks(&["a", "b"]),
        Message::result("a", "1"),
        Message::result("b", "2"),
        Message::assistant("done"),
        Message::user("more"),
        asks(&["c"]),
    ]);
    let units: Vec<_> = log.units().iter().map(|u| (u.kind, u.span.start.0, u.span.end.0)).collect();
    use UnitKind::*;
    assert_eq!(units, [(System, 0, 1), (User, 1, 2), (Step, 2, 5), (Step, 5, 6), (User, 6, 7), (Step, 7, 8)]);
    let turns: Vec<_> = log.turns().iter().map(|t| (t.start.0, t.ended)).collect();
    assert_eq!(turns, [(1, true), (6, false)]);
    assert_eq!(log.running_turn().unwrap().range(), 6..8);
    assert_eq!(log.unit_of(Position(3)).unwrap().span.start, Position(2));
    assert_eq!(log.unit_of(Position(99)), None);
}

#[test]
fn two_user_messages_in_a_row_are_one_turn_and_so_is_an_attachment_inside_one() {
    let log = log_of([
        Message::user("first"),
        Message::user("and second"),
        asks(&["a"]),
        Message::result("a", "1"),
        attachment("reminder"),
        Message::assistant("done"),
        attachment("a new turn begins with what comes after an answer"),
    ]);
    let starts: Vec<_> = log.turns().iter().map(|t| t.start.0).collect();
    assert_eq!(starts, [0, 6]);
}

/// aider and Qwen Code answer themselves what they attach: that is no answer, and the files stay with the request.
#[test]
fn what_a_harness_answers_itself_ends_no_turn() {
    let mut log = log_of([
        attachment("Here are files for your reference."),
        Message::assistant("Ok."),
        Message::user("Fix the importer."),
        Message::assistant("Done."),
        attachment("I have added these files."),
        Message::assistant("Ok, any changes will be to those files."),
        Message::user("Now the exporter."),
    ]);
    let turns = |log: &Log| log.turns().iter().map(|t| (t.start.0, t.ended)).collect::<Vec<_>>();
    assert_eq!(turns(&log), [(0, true), (4, false)]);
    assert_eq!(log.opening(), Span::new(0, 3));
    assert_eq!(log.current_input(), Some(Span::new(4, 7)));
    // Events that a model answers one by one are turns that end, all the same.
    log.push(Message::assistant("Done too."));
    for _ in 0..30 {
        log.push(attachment("An event."));
        log.push(Message::assistant("Noted."));
    }
    assert!(log.turns().len() > 4 && log.current_input().is_none_or(|input| input.len() < 20));
    // So is what a model has thought about.
    let thought = Message::new(Role::Assistant, vec![Block::thinking("Hm."), Block::text("Noted.")]);
    let log = log_of([attachment("An event."), thought, Message::user("Go on.")]);
    assert_eq!(turns(&log), [(0, true), (2, false)]);
}

#[test]
fn what_a_harness_says_begins_no_turn_and_is_no_goal() {
    let none = |text: &str| Text { text: text.into(), words: Words::None, extra: Extra::NONE };
    let loaded = || Message::new(Role::User, vec![Block::Text(none("Tool loaded."))]).with_attachment();
    let log = log_of([
        // `/clear`, and what it printed.
        Message::new(Role::User, vec![Block::Text(none("<command-name>/clear</command-name>"))])
            .with_attachment(),
        attachment("<local-command-stdout></local-command-stdout>"),
        Message::user("Fix the importer."),
        asks(&["a"]),
        Message::result("a", "loaded"),
        loaded(),
        asks(&["b"]),
        loaded(),
        // It came too late for nobody: a word of the host closes no step.
        Message::result("b", "1"),
        Message::assistant("Done."),
    ]);
    let starts: Vec<_> = log.turns().iter().map(|turn| turn.start.0).collect();
    assert_eq!(starts, [0]);
    assert_eq!(log.goal_message(), Some(Position(2)));
    assert_eq!(log.unit_of(Position(8)).unwrap().span.start, Position(6));
}

#[test]
fn a_picture_without_words_is_no_goal_but_begins_a_turn() {
    let image = Image { source: Json::empty_object(), size: None, extra: Extra::NONE };
    let log = log_of([
        Message::user("first"),
        Message::assistant("done"),
        Message::new(Role::User, vec![Block::Image(image.clone())]),
        Message::assistant("A cat."),
    ]);
    assert_eq!(log.turns().len(), 2);
    let log = log_of([Message::new(Role::User, vec![Block::Image(image)]), Message::user("What is it?")]);
    assert_eq!(log.goal_message(), Some(Position(1)));
}

#[test]
fn a_message_of_the_user_breaks_a_running_turn_off() {
    let log = log_of([Message::user("go"), asks(&["a"]), Message::user("stop"), Message::assistant("ok")]);
    let turns: Vec<_> = log.turns().iter().map(|t| (t.start.0, t.ended)).collect();
    assert_eq!(turns, [(0, false), (2, true)]);
}

// covers: S-4
#[test]
fn unanswered_calls_get_a_placeholder_and_a_late_result_becomes_a_note() {
    let log = log_of([
        Message::user("go"),
        asks(&["a", "b"]),
        Message::result("a", "1"),
        Message::user("stop"),
        Message::assistant("ok"),
        Message::result("b", "2"),
        Message::user("go on"),
    ]);
    assert_eq!(
        shown(&log),
        [
            "user: go",
            "assistant: a? | b?",
            "tool: a=1",
            &format!("tool: b={PLACEHOLDER}"),
            "user: stop",
            "assistant: ok",
            "user: [Result of a tool, call b, arrived late]\n2",
            "user: go on",
        ]
    );
}

#[test]
fn results_stand_right_after_their_calls_whatever_came_between() {
    let log = log_of([
        Message::user("go"),
        asks(&["a", "b"]),
        attachment("reminder"),
        Message::result("b", "2"),
        Message::system("note"),
        Message::result("a", "1"),
        Message::assistant("ok"),
    ]);
    assert_eq!(log.units().len(), 3);
    assert_eq!(
        shown(&log),
        [
            "user: go",
            "assistant: a? | b?",
            "tool: b=2",
            "tool: a=1",
            "user: reminder",
            "system: note",
            "assistant: ok"
        ]
    );
}

#[test]
fn doubled_ids_are_told_apart_in_call_and_result() {
    let log = log_of([
        Message::user("go"),
        asks(&["a", "a"]),
        Message::result("a", "1"),
        Message::result("a", "2"),
        Message::result("a", "3"),
        asks(&["a", ""]),
        Message::result("", "4"),
        Message::result("a", "5"),
    ]);
    assert_eq!(
        shown(&log),
        [
            "user: go",
            "assistant: a? | a_2?",
            "tool: a=1",
            "tool: a_2=2",
            "user: [Result of a tool, call a, arrived a second time]\n3",
            "assistant: a_3? | call?",
            "tool: call=4",
            "tool: a_3=5",
        ]
    );
}

#[test]
fn a_result_nobody_asked_for_is_a_note() {
    let log = log_of([
        Message::user("go"),
        Message::result("x", "1"),
        Message::new(Role::Tool, vec![Block::text("t")]),
    ]);
    assert_eq!(
        shown(&log),
        ["user: go", "user: [Result of a tool, call x, answers no known call]\n1", "user: t"]
    );
    assert_eq!(log.units()[1].kind, UnitKind::Stray);
}

#[test]
fn empty_content_is_kept_and_not_shown() {
    let log = log_of([
        Message::user(""),
        Message::new(Role::User, vec![]),
        Message::new(Role::Assistant, vec![Block::text(" \n"), Block::thinking(""), call("a")]),
        Message::result("a", ""),
        Message::new(Role::Assistant, vec![Block::text("")]),
    ]);
    assert_eq!(log.messages().len(), 5);
    assert_eq!(shown(&log), ["assistant: a?", "tool: a="]);
}

#[test]
fn sealed_thinking_without_text_is_shown() {
    let sealed = Thinking { text: "".into(), seal: Seal::Redacted(None), extra: Extra::NONE };
    let log = log_of([Message::user("go"), Message::new(Role::Assistant, vec![Block::Thinking(sealed)])]);
    assert_eq!(shown(&log).len(), 2);
}

#[test]
fn a_tool_of_the_provider_owes_no_result() {
    let search = ToolCall {
        id: "s".into(),
        name: "web_search".into(),
        arguments: Json::empty_object(),
        server: true,
        extra: Extra::NONE,
    };
    let log = log_of([
        Message::user("go"),
        Message::new(
            Role::Assistant,
            vec![Block::ToolCall(search), Block::result("s", "hits"), Block::text("found")],
        ),
    ]);
    assert!(log.turns()[0].ended);
    assert_eq!(shown(&log).len(), 2);
}

/// Only the provider answers its own tools inside an answer.
#[test]
fn a_result_inside_the_answer_that_called_is_none() {
    let log = log_of([
        Message::user("go"),
        Message::new(Role::Assistant, vec![call("a"), Block::result("a", "r")]),
    ]);
    assert_eq!(
        shown(&log),
        [
            "user: go",
            "assistant: a?",
            &format!("tool: a={PLACEHOLDER}"),
            "user: [Result of a tool, call a, answers no known call]\nr"
        ]
    );
}

#[test]
fn a_question_beside_a_late_result_opens_a_turn() {
    let both = Message::new(Role::User, vec![Block::result("a", "1"), Block::text("and now?")]);
    let log =
        log_of([Message::user("go"), asks(&["a"]), Message::user("stop"), Message::assistant("ok"), both]);
    assert_eq!(log.turns().len(), 3);
    assert_eq!(log.units().last().unwrap().kind, UnitKind::User);
}

#[test]
fn many_parallel_calls_are_no_trouble() {
    let ids: Vec<String> = (0..50_000).map(|n| format!("c{n}")).collect();
    let refs: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut log = log_of([Message::user("go"), asks(&refs)]);
    for id in ids.iter().rev().chain(&ids).chain(&["unknown".to_owned()]) {
        log.push(Message::result(id.as_str(), "r"));
    }
    assert_eq!(log.show(log.units()).count(), 2 + 100_001);
}

#[test]
fn a_fork_does_not_know_the_frame_of_what_comes_after() {
    let mut session = new_session(8_000);
    session.push(Message::user("a"));
    session.push(Message::user("b"));
    session.set_frame(Frame { model: Some("m".into()), ..Frame::default() });
    assert_eq!(session.fork(Position(1)).unwrap().log().frame(), None);
    assert!(session.fork(Position(2)).unwrap().log().frame().is_some());
}

#[test]
fn a_call_that_no_model_made_is_text() {
    let log = log_of([Message::user("go"), Message::new(Role::User, vec![call("a")])]);
    assert_eq!(shown(&log), ["user: go", "user: [Call of Read that no model made]\n{}"]);
}

#[test]
fn several_results_and_words_in_one_message() {
    let both = Message::new(
        Role::User,
        vec![Block::result("a", "1"), Block::result("b", "2"), Block::text("and now")],
    );
    let log = log_of([Message::user("go"), asks(&["a", "b"]), both]);
    assert_eq!(shown(&log), ["user: go", "assistant: a? | b?", "user: a=1 | b=2 | and now"]);
    assert_eq!(log.turns().len(), 1);
}

#[test]
fn facts_are_appended_when_they_change() {
    let mut log = Log::new();
    assert!(log.note_fact(Fact::new(FactKind::Goal, "ship")));
    assert!(!log.note_fact(Fact::new(FactKind::Goal, "ship")));
    log.push(Message::user("go"));
    log.note_fact(Fact::keyed(FactKind::Pin, "1", "keep me"));
    log.note_fact(Fact::keyed(FactKind::Pin, "2", "me too"));
    log.note_fact(Fact::gone(FactKind::Pin, "1"));
    log.note_fact(Fact::new(FactKind::Goal, "ship it"));
    assert_eq!(log.fact(FactKind::Goal, ""), Some("ship it"));
    assert_eq!(log.facts(FactKind::Pin), [("2", "me too")]);
    assert_eq!(log.notes().len(), 5);
    assert_eq!(log.notes()[1].at, Position(1));
}

#[test]
fn fields_of_a_message_are_not_believed() {
    let fields =
        r#"{"attachment":true,"compact":true,"compact_summary":true,"extra":{"frame":{"model":"m"}}}"#;
    let message = Message::user("go").with_extra(serde_json::from_str(fields).unwrap());
    assert!(!message.is_attachment() && !message.is_recorded_compaction());
    let mut session = new_session(8_000);
    session.push(message);
    assert_eq!(session.log().frame(), None);
    assert_eq!(session.log().turns().len(), 1);
}

#[test]
fn a_frame_is_noted_and_counts() {
    let frame = r#"{"model":"m","tools":[{"name":"Read","description":"reads a file"}]}"#;
    let mut session = new_session(8_000);
    session.push(Message::user("go"));
    session.set_frame(Frame::from_json(&Json::new(frame).unwrap()).unwrap());
    session.prepare(None).unwrap();
    let with_tools = session.size().tokens;
    assert_eq!(session.log().frame().unwrap().model.as_deref(), Some("m"));
    let mut bare = new_session(8_000);
    bare.push(Message::user("go"));
    bare.prepare(None).unwrap();
    assert!(with_tools > bare.size().tokens);
    let mut log = Log::new();
    assert!(log.note_frame(Frame::default()));
    assert!(!log.note_frame(Frame::default()));
}

#[test]
fn a_fork_shares_messages_and_goes_its_own_way() {
    let mut session = new_session(8_000);
    for message in [Message::user("go"), asks(&["a"]), Message::result("a", "1"), Message::assistant("done")]
    {
        session.push(message);
    }
    session.set_goal("later");
    let mut fork = session.fork(Position(2)).unwrap();
    assert!(std::sync::Arc::ptr_eq(&fork.log().messages()[1], &session.log().messages()[1]));
    assert_eq!(fork.log().fact(FactKind::Goal, ""), None);
    fork.push(Message::result("a", "other"));
    assert_eq!(shown(fork.log()), ["user: go", "assistant: a?", "tool: a=other"]);
    assert_eq!(shown(session.log()).len(), 4);
}

#[test]
fn what_does_not_fit_is_an_error_that_names_it() {
    let mut session = new_session(1_000);
    session.push(Message::system("x".repeat(4_000)));
    session.push(Message::user("hi"));
    let error = session.prepare(None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "system prompt and tools alone have 1004 tokens, over the limit of 850 (window 1000)"
    );
}

/// Conversations as they come from the world: mostly sound, with every kind of fault.
fn messages() -> impl Strategy<Value = Vec<Message>> {
    let id = || prop::sample::select(vec!["a", "b", "c", "d", ""]);
    let block = prop_oneof![
        4 => id().prop_map(call),
        2 => "[ a-z]{0,6}".prop_map(Block::text),
        1 => "[a-z]{0,3}".prop_map(Block::thinking),
        1 => id().prop_map(|id| Block::result(id, "r")),
    ];
    let message = prop_oneof![
        4 => prop::collection::vec(block, 0..4).prop_map(|blocks| Message::new(Role::Assistant, blocks)),
        5 => (id(), "[a-z]{0,3}").prop_map(|(id, text)| Message::result(id, text)),
        1 => (id(), id()).prop_map(|(a, b)| {
            Message::new(Role::Tool, vec![Block::result(a, "1"), Block::text("t"), Block::result(b, "2")])
        }),
        2 => "[ a-z]{0,6}".prop_map(Message::user),
        1 => Just(attachment("note")),
        1 => Just(Message::system("s")),
        1 => Just(Message::new(Role::Summary, vec![Block::text("sum")])),
        1 => Just(Message::new(Role::Tool, vec![])),
        1 => (prop::sample::select(vec![Role::Tool, Role::User, Role::System]), id()).prop_map(|(role, id)| {
            Message::new(role, vec![call(id), Block::result(id, "r")])
        }),
    ];
    prop::collection::vec(message, 0..40)
}

/// What a provider refuses: calls without a result before the next message, results without
/// a call, ids used twice, empty messages.
fn refusals(view: &[Message]) -> Vec<String> {
    let mut faults = Vec::new();
    let (mut open, mut ids) = (HashSet::new(), HashSet::new());
    for message in view {
        if message.blocks().is_empty() {
            faults.push("empty message".into());
        }
        let answers = message.role() != Role::Assistant && message.results().next().is_some();
        if !answers && !open.is_empty() {
            faults.push(format!("unanswered {open:?}"));
            open.clear();
        }
        for block in message.blocks() {
            match block {
                Block::ToolCall(call) => {
                    if !ids.insert(call.id.clone()) {
                        faults.push(format!("id twice: {}", call.id));
                    }
                    let inside = message.results().any(|result| result.id == call.id);
                    if !inside {
                        open.insert(call.id.clone());
                    }
                }
                Block::ToolResult(result)
                    if message.role() != Role::Assistant && !open.remove(&result.id) =>
                {
                    faults.push(format!("no call for {}", result.id));
                }
                Block::Text(text) if text.text.trim().is_empty() => faults.push("empty text".into()),
                _ => {}
            }
        }
    }
    if !open.is_empty() {
        faults.push(format!("unanswered at the end {open:?}"));
    }
    faults
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn units_are_a_partition_and_turns_are_in_order(messages in messages()) {
        let log = log_of(messages.clone());
        let mut next = 0;
        for unit in log.units() {
            prop_assert_eq!(unit.span.start.0, next);
            prop_assert!(!unit.span.is_empty());
            next = unit.span.end.0;
            let first = log.get(unit.span.start).unwrap().role();
            prop_assert_eq!(unit.kind == UnitKind::Step, first == Role::Assistant);
        }
        prop_assert_eq!(next as usize, messages.len());
        prop_assert!(log.turns().windows(2).all(|pair| pair[0].start < pair[1].start));
        for turn in log.turns() {
            prop_assert_eq!(log.unit_of(turn.start).unwrap().span.start, turn.start);
        }
        // What came in is kept as it came.
        for (kept, came) in log.messages().iter().zip(&messages) {
            prop_assert_eq!(&**kept, came);
        }
    }

    #[test]
    fn what_is_shown_is_never_refused(messages in messages()) {
        let log = log_of(messages);
        let view: Vec<Message> = log.show(log.units()).map(|shown| resolve(&log, &shown)).collect();
        let faults = refusals(&view);
        prop_assert!(faults.is_empty(), "{:?}\n{:#?}", faults, shown(&log));
        // A sound unit is shown as it came, and only such a one.
        for unit in log.units() {
            let as_is = log.show(std::slice::from_ref(unit)).all(|shown| matches!(shown, Shown::AsIs(_)));
            prop_assert!(as_is || !log.is_whole(unit));
        }
    }

    /// The same bytes at each call, and each call extends the one before: what was sent
    /// once stays as it was sent.
    #[test]
    fn views_only_grow_from_call_to_call(messages in messages()) {
        let mut session = new_session(200_000);
        for (at, message) in messages.iter().enumerate() {
            if message.role() == Role::Assistant {
                session.prepare(None).unwrap();
                let log = log_of(messages[..at].iter().cloned());
                let anew: Vec<Message> = log.show(log.units()).map(|shown| resolve(&log, &shown)).collect();
                let kept: Vec<Message> = session.view().parts().iter().map(|part| (*part.message).clone()).collect();
                prop_assert_eq!(&kept, &anew);
                let sum = session.view().parts().iter().map(|part| part.measure).sum();
                prop_assert_eq!(session.view().measure(), sum);
                prop_assert!(!session.sent().unwrap().broke);
            }
            session.push(message.clone());
        }
    }

    #[test]
    fn a_fork_is_the_log_cut_short(messages in messages(), cut in 0usize..40) {
        let cut = cut.min(messages.len());
        let mut session = new_session(1 << 30);
        messages.iter().for_each(|message| _ = session.push(message.clone()));
        let fork = session.fork(Position(cut as u32)).unwrap();
        let (fork, short) = (fork.log(), log_of(messages[..cut].iter().cloned()));
        prop_assert_eq!(fork.units(), short.units());
        prop_assert_eq!(fork.turns(), short.turns());
        prop_assert_eq!(shown(fork), shown(&short));
    }
}
