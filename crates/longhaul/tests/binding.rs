//! Models that bind thinking to its prefix: whatever a host does, every signed block that is sent follows what produced
//! it. covers: DESIGN rule 12.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::histories::histories;
use common::twin::{Twin, seal, thinks};
use common::*;
use longhaul::conversation::{Opaque, Thinking, ToolResult};
use longhaul::{
    Block, Cursor, EditId, EditKind, Entry, Extra, Frame, Json, LedgerError, Message, Meter, Models,
    Position, Prepared, Profile, Role, Seal, Seals, Session, Source, Ticket, Time, Tokens, Why,
};
use proptest::prelude::*;

fn binding(window: u64) -> longhaul::Model {
    let model = Models::builtin().find("claude-opus-5-5").clone();
    assert!(model.binds);
    longhaul::Model { window: Tokens(window), ..model }
}

fn start(profile: Profile, window: u64) -> Session {
    let mut session = Session::new(profile, binding(window)).with_meter(Meter::neutral());
    session.set_frame(frame(0));
    session
}

fn frame(tool: u8) -> Frame {
    let json = format!(
        r#"{{"system":"Be brief.","tools":[{{"name":"Read"}},{{"name":"T{tool}"}}],"max_tokens":500}}"#
    );
    Frame::from_json(&Json::new(json).unwrap()).unwrap()
}

/// A client that works with a provider that binds, through a session.
#[derive(Clone)]
struct Work {
    session: Session,
    twin: Twin,
    calls: usize,
    /// What the client has: nothing of ours is in it.
    client: Vec<Message>,
    /// The host reports signatures.
    reports: bool,
    clock: i64,
}

impl Work {
    fn of(session: Session) -> Self {
        Self { session, twin: Twin::default(), calls: 0, client: Vec::new(), reports: false, clock: 0 }
    }

    fn push(&mut self, message: Message) {
        self.client.push(message.clone());
        self.session.push(message);
    }

    fn prepare(&mut self) -> Option<Ticket> {
        self.clock += 1_000_000;
        loop {
            match self.session.prepare(Some(Time(self.clock))) {
                Ok(Prepared::Send(ticket)) => return Some(ticket),
                Ok(Prepared::Summarise(job)) => {
                    _ = self.session.resolve(job.id, common::histories::answer(&job))
                }
                Err(_) => return None,
            }
        }
    }

    /// One step: a request, an answer that thinks, and a result.
    fn step(&mut self, bytes: usize, thinking: &str) {
        let Some(ticket) = self.prepare() else { return };
        assert_eq!(self.session.audit(), []);
        let thinking = self.twin.answer(&self.session, thinking);
        if self.reports
            && let Block::Thinking(thinking) = &thinking
        {
            self.session.signed(ticket, thinking.seal.data());
        }
        self.acted(thinking, bytes);
    }

    /// The same past us: the client's own messages were sent.
    fn step_past_us(&mut self, bytes: usize) {
        let frame = self.session.log().frame().cloned();
        let thinking = self.twin.answer_client(frame.as_ref(), &self.client, "Past you.");
        self.acted(thinking, bytes);
    }

    fn acted(&mut self, thinking: Block, bytes: usize) {
        self.calls += 1;
        let id = format!("call_{}", self.calls);
        self.push(thinks(thinking, &id));
        let line = format!("line of {id} with value_{} in it\n", self.calls);
        self.push(Message::result(id, line.repeat(bytes / line.len() + 1)));
    }

    fn unbound(&self) -> usize {
        self.session.ledger().unbound().map(|unbound| unbound.lost.len()).sum()
    }

    fn folds(&self) -> usize {
        self.session.ledger().edits().filter(|(edit, _)| matches!(edit.kind, EditKind::Fold { .. })).count()
    }
}

#[test]
fn a_fold_takes_the_thinking_behind_it_once_and_what_is_thought_after_it_stays() {
    let mut work = Work::of(start(by_limits(), 8_000));
    work.push(Message::user("Mend the parser, please."));
    let mut shown = Vec::new();
    for n in 0..60 {
        work.step(600, &format!("Thought {n}: {}", "I look closer. ".repeat(40)));
        shown.push(thoughts(&work.session));
    }
    assert!(work.folds() >= 3, "{} folds", work.folds());
    // Nothing but folds takes any, and all that is thought in between is there.
    let falls = shown.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert_eq!(falls, work.session.ledger().unbound().filter(|unbound| !unbound.lost.is_empty()).count());
    assert!(shown.windows(2).all(|pair| pair[1] <= pair[0] + 1));
    assert!(shown.iter().max() > Some(&5), "{shown:?}");
    // It is part of the edit: how much goes with it, and its beginning stays as the agent's words.
    let lost =
        work.session.ledger().edits().map(|(edit, _)| edit.price.thinking).filter(|lost| !lost.is_nothing());
    assert_eq!(lost.map(|lost| lost.messages as usize).sum::<usize>(), work.unbound());
    let unbound = work.session.ledger().unbound().find(|unbound| !unbound.lost.is_empty()).unwrap();
    let excerpt = &unbound.lost[0].excerpts[0];
    assert!(excerpt.text.starts_with("Thought ") && excerpt.text.chars().count() <= 301, "{}", excerpt.text);
    // What went can be recalled.
    let handle = unbound.lost[0].original.to_string();
    let text = work.session.recall(&handle, &longhaul::RecallPart::Whole).unwrap();
    assert!(text.starts_with("Thought "), "{text}");
}

#[test]
fn a_model_that_does_not_bind_keeps_what_it_thought() {
    let mut session = Session::new(by_limits(), model("m", 8_000)).with_meter(Meter::neutral());
    session.push(Message::user("Mend the parser."));
    for n in 0..40 {
        session.prepare(None).unwrap();
        session.push(thought("I look closer.", &format!("c{n}")));
        session.push(Message::result(format!("c{n}"), "a line of text\n".repeat(60)));
    }
    assert!(session.ledger().edits().next().is_some() && session.ledger().unbound().next().is_none());
    assert!(
        session.since(Cursor(0)).all(|entry| !matches!(entry, Entry::Sent(sent) if sent.prefix.is_some()))
    );
}

#[test]
fn changed_rules_are_written_before_the_history_when_that_costs_no_thinking() {
    let rules_at_head = |model: longhaul::Model| {
        let mut work = Work::of(Session::new(by_limits(), model).with_meter(Meter::neutral()));
        work.push(Message::user("Mend the parser."));
        work.session.set_rules("CODE_LAW.md", Some("Tabs."));
        (0..3).for_each(|_| work.step(100, "Hm."));
        work.session.set_rules("CODE_LAW.md", Some("Spaces."));
        work.clock += 86_400_000_000;
        work.step(100, "After a day.");
        work.session.ledger().rules().is_some_and(|rules| rules.contains("Spaces."))
    };
    assert!(rules_at_head(Models::builtin().find("claude-opus-4-5").clone()), "nothing is bound");
    assert!(!rules_at_head(binding(100_000)), "all thinking would go");
}

#[test]
fn facts_stand_as_notes_where_they_were_sent() {
    let mut work = Work::of(start(by_limits(), 100_000));
    work.push(Message::user("Mend the parser."));
    work.step(100, "One.");
    work.session.pin("p", "Never touch main.");
    work.session.set_rules("CODE_LAW.md", Some("Tabs."));
    work.step(100, "Two.");
    work.session.set_todos(Some("[ ] parser"));
    work.step(100, "Three.");
    work.step(100, "Four.");
    work.session.set_todos(Some("[x] parser"));
    work.session.set_rules("CODE_LAW.md", Some("Spaces."));
    work.session.set_goal("Mend the lexer.");
    work.step(100, "Five.");
    work.session.unpin("p");
    work.step(100, "Six.");
    work.step(100, "Seven.");
    assert_eq!((work.unbound(), work.twin.seen), (0, 1 + 2 + 3 + 4 + 5 + 6));
    assert!(work.session.view().tail().is_none());
    let notes = work.session.view().parts().iter().filter(|part| matches!(part.source, Source::HostNote(_)));
    let notes: Vec<String> = notes.map(|part| part.message.texts().collect()).collect();
    insta::assert_snapshot!(notes.join("\n---\n"));
    // The newest state is loaded, and a retry says nothing twice.
    work.prepare();
    let before = work.session.view().parts().len();
    work.prepare();
    assert_eq!(work.session.view().parts().len(), before);
    assert_eq!(reload(&work.session).view().parts().len(), before);
    assert_eq!(sent(&reload(&work.session)), sent(&work.session));
}

#[test]
fn a_fold_drops_notes_that_later_ones_state_again() {
    let mut work = Work::of(start(by_limits(), 4_000));
    work.push(Message::user("Mend the parser."));
    for n in 0..60 {
        work.session.set_todos(Some(&format!("[ ] step {n}")));
        work.step(400, "Hm.");
    }
    assert!(work.folds() >= 2);
    let notes = work.session.view().parts().iter().filter(|part| matches!(part.source, Source::HostNote(_)));
    let since = work.session.ledger().edits().last().unwrap().0.kind.spans().last().unwrap().end;
    let steps = (work.session.log().end().0 - since.0) as usize / 2;
    assert!(notes.count() <= steps, "one for each step that is there");
    assert!(text(&work.session).contains("step 59"));
}

#[test]
fn undo_restores_everything_but_thinking() {
    let mut work = Work::of(start(by_limits(), 8_000));
    work.push(Message::user("Mend the parser."));
    while work.folds() == 0 {
        work.step(600, "I look closer.");
    }
    (0..3).for_each(|_| work.step(100, "After the fold."));
    let since = thoughts(&work.session);
    assert!(since >= 3);
    let fold =
        work.session.ledger().edits().find(|(edit, _)| matches!(edit.kind, EditKind::Fold { .. })).unwrap().0;
    let (id, first) = (fold.id, fold.kind.spans()[0].start);
    assert_eq!(work.session.thinking_after(first).0, since);
    work.session.set_window(Tokens(100_000));
    work.session.undo(id).unwrap();
    work.step(100, "Undone.");
    assert_eq!(thoughts(&work.session), 0, "what was thought since the fold goes too");
    assert!(text(&work.session).contains("value_1 in it"));
    work.session.redo(id).unwrap();
    work.step(100, "Again.");
    work.step(100, "On.");
}

#[test]
fn a_conversation_that_is_joined_halfway_is_sent_as_it_came() {
    let mut past = Work::of(start(by_limits(), 100_000));
    past.push(Message::user("Mend the parser."));
    (0..6).for_each(|_| past.step_past_us(200));
    // Noise that would be left out on entry.
    past.push(thinks(past.twin.clone().answer_client(Some(&frame(0)), &past.client, "Run it."), "noisy"));
    past.push(Message::result("noisy", "Compiling a\n".repeat(400)));
    past.step_past_us(100);
    let mut joined = Work { client: Vec::new(), ..Work::of(start(Profile::longhaul(), 100_000)) };
    (joined.twin, joined.calls) = (past.twin.clone(), 100);
    past.client.into_iter().for_each(|message| joined.push(message));
    joined.step(100, "I join.");
    assert_eq!(joined.unbound(), 0);
    assert!(joined.twin.seen >= 7);
    joined.step(100, "And go on.");
    assert_eq!(joined.unbound(), 0);
}

#[test]
fn other_tools_take_all_thinking_and_a_switch_between_claude_models_takes_none() {
    let mut work = Work::of(start(by_limits(), 100_000));
    work.push(Message::user("Mend the parser."));
    (0..4).for_each(|_| work.step(100, "Hm."));
    let other = Models::builtin().find("claude-sonnet-5-5").clone();
    work.session.switch(longhaul::Model { window: Tokens(100_000), ..other }, Seals::Engine);
    (0..2).for_each(|_| work.step(100, "I am another."));
    work.session.switch(binding(100_000), Seals::Engine);
    work.step(100, "Back.");
    assert_eq!((work.unbound(), thoughts(&work.session)), (0, 6));
    // The order of tools does not count, another tool does.
    let mut turned = frame(0);
    turned.tools.reverse();
    work.session.set_frame(turned);
    work.step(100, "The same tools.");
    assert_eq!(work.unbound(), 0);
    work.session.set_frame(frame(1));
    work.step(100, "Other tools.");
    assert_eq!((work.unbound(), thoughts(&work.session)), (8, 0));
}

#[test]
fn thinking_of_finished_turns_goes_from_the_oldest_on() {
    let mut work = Work::of(start(Profile::transform(), 100_000));
    for turn in 0..6 {
        work.push(Message::user(format!("Request {turn}.")));
        (0..3).for_each(|_| work.step(100, "Hm."));
        work.push(Message::assistant("Done."));
    }
    work.push(Message::user("One more."));
    work.step(100, "Well.");
    assert!(thoughts(&work.session) <= 1, "T-L2: the newest alone");
}

#[test]
fn what_the_provider_refuses_is_left_out_for_good() {
    let mut work = Work::of(start(by_limits(), 100_000));
    work.push(Message::user("Mend the parser."));
    (0..6).for_each(|_| work.step(100, "Hm."));
    work.prepare();
    assert_eq!(thoughts(&work.session), 6);
    work.session.refused_thinking(Position(0));
    assert_eq!(thoughts(&work.session), 0);
    work.step(100, "On.");
    let work = Work { session: reload(&work.session), ..work };
    assert_eq!(thoughts(&work.session), 1, "the answer that has come since");

    let mut session = encrypted(3);
    assert_eq!(thoughts(&session), 3);
    session.refused_thinking(Position(0));
    ready(&mut session);
    assert_eq!(thoughts(&session), 0);
}

/// A session with encrypted reasoning of OpenAI, which is bound to nothing and may be refused all the same.
fn encrypted(steps: usize) -> Session {
    let mut session = Session::new(by_limits(), model("gpt-6-sol", 100_000)).with_meter(Meter::neutral());
    session.push(Message::user("Mend the parser."));
    for n in 0..steps {
        let seal = Seal::Encrypted(format!("e{n}").into());
        let thinking = Block::Thinking(Thinking { text: "".into(), seal, extra: Extra::NONE });
        session.push(thinks(thinking, &format!("c{n}")));
        session.push(Message::result(format!("c{n}"), format!("line of call {n}\n").repeat(40)));
        ready(&mut session);
    }
    session
}

#[test]
fn a_refusal_that_names_a_message_leaves_the_thinking_before_it() {
    let mut work = Work::of(start(by_limits(), 100_000));
    work.push(Message::user("Mend the parser."));
    (0..6).for_each(|_| work.step(100, "Hm."));
    // The fourth answer is at message 7.
    work.session.refused_thinking(Position(7));
    assert_eq!((thoughts(&work.session), work.unbound()), (3, 3));
    work.step(100, "On.");
    work.step(100, "And on.");
    work.prepare();
    assert_eq!((thoughts(&work.session), work.unbound()), (5, 3));
    assert_eq!(thoughts(&reload(&work.session)), 5);

    let mut session = encrypted(4);
    session.refused_thinking(Position(5));
    ready(&mut session);
    assert_eq!(thoughts(&session), 2);
}

#[test]
fn no_undo_brings_refused_reasoning_back() {
    let mut session = encrypted(3);
    session.refused_thinking(Position(0));
    let drops: Vec<EditId> = session.ledger().edits().map(|(edit, _)| edit.id).collect();
    assert_eq!(drops.len(), 3);
    for edit in drops {
        assert_eq!(session.undo(edit), Err(LedgerError::Protected(edit)));
    }
    assert_eq!(thoughts(&session), 0);

    // Nor that of steps that were folded when the provider refused it.
    let mut session = encrypted(12);
    session.compact_now();
    ready(&mut session);
    let fold = session.ledger().edits().find(|(edit, _)| matches!(edit.kind, EditKind::Fold { .. }));
    let fold = fold.expect("a fold").0.id;
    session.refused_thinking(Position(0));
    session.undo(fold).unwrap();
    ready(&mut session);
    assert!(text(&session).contains("line of call 1\nline of call 1\n"), "{}", text(&session));
    assert_eq!(thoughts(&session), 0);
}

#[test]
fn a_fork_leaves_out_what_was_refused() {
    let mut work = Work::of(start(by_limits(), 100_000));
    work.push(Message::user("Mend the parser."));
    (0..6).for_each(|_| work.step(100, "Hm."));
    work.session.refused_thinking(Position(5));
    for fork in [work.session.fork(Position(9)).unwrap(), work.session.fork_with_edits(Position(9)).unwrap()]
    {
        assert_eq!((thoughts(&fork), fork.log().end()), (2, Position(9)));
        assert_eq!(thoughts(&reload(&fork)), 2);
        assert_eq!(thoughts(&fork.fork(Position(7)).unwrap()), 2);
    }
    assert!(work.session.fork(Position(4)).unwrap().ledger().unbound().next().is_none());

    let mut session = encrypted(4);
    session.refused_thinking(Position(0));
    let mut fork = session.fork(Position(5)).unwrap();
    ready(&mut fork);
    assert_eq!(thoughts(&fork), 0);
}

#[test]
fn refused_thinking_is_not_sent_past_us() {
    let mut work = Work::of(start(by_limits(), 100_000));
    work.push(Message::user("Mend the parser."));
    (0..4).for_each(|_| work.step(100, "Hm."));
    assert_eq!(work.session.thinking_kept_outside(), None);
    work.session.refused_thinking(Position(5));
    assert_eq!(work.session.thinking_kept_outside(), Some(2));
    assert_eq!(work.session.stale_outside(), Some(Position(5)));
}

/// The client's own history has the thinking again that an answer was produced without.
#[test]
fn what_was_produced_without_earlier_thinking_is_not_kept_behind_it() {
    let mut work = Work::of(start(by_limits(), 100_000));
    work.push(Message::user("Mend the parser."));
    (0..3).for_each(|_| work.step(100, ""));
    assert_eq!(work.session.thinking_kept_outside(), None);
    // No words stay of it: the prefix is the same without it.
    work.session.unbind_from(Position(0));
    work.prepare();
    assert_eq!(work.session.thinking_kept_outside(), Some(3), "the answer that is awaited");
    work.step(100, "");
    assert_eq!(work.session.thinking_kept_outside(), Some(3));
    let newest = Position(work.session.log().end().0 - 2);
    assert_eq!(work.session.stale_outside(), Some(newest));
}

#[test]
fn a_long_answer_goes_on_after_a_pause() {
    let mut work = Work::of(start(by_limits(), 100_000));
    work.push(Message::user("Look around."));
    for _ in 0..3 {
        work.prepare();
        let thinking = work.twin.answer(&work.session, "Still at it.");
        work.push(Message::new(Role::Assistant, vec![thinking, Block::text("More to come.")]));
    }
    work.prepare();
    _ = work.twin.answer(&work.session, "Done.");
    assert_eq!((work.unbound(), thoughts(&work.session)), (0, 3));
}

#[test]
fn what_a_client_may_keep_of_its_own_is_known() {
    let mut work = Work::of(start(by_limits(), 8_000));
    work.session.read_signatures();
    work.reports = true;
    work.push(Message::user("Mend the parser."));
    while work.folds() == 0 {
        assert_eq!(work.session.thinking_kept_outside(), None);
        work.step(600, "I look closer.");
    }
    // The fold was made for the newest request: its answer alone would be refused after the client's own messages.
    let produced = work.calls - 1;
    assert_eq!(work.session.thinking_kept_outside(), Some(produced));
    work.step(600, "On.");
    assert_eq!(work.session.thinking_kept_outside(), Some(produced));
    let mut loaded = reload(&work.session);
    assert_eq!(loaded.thinking_kept_outside(), Some(produced));
}

#[test]
fn thinking_of_a_view_fails_where_the_client_goes_on_without_us() {
    let mut work = Work::of(start(by_limits(), 8_000));
    work.push(Message::user("Mend the parser."));
    while work.folds() == 0 {
        assert_eq!(work.session.stale_outside(), None);
        work.step(600, "I look closer.");
    }
    // The first answer to a view with the fold.
    let first = Position(work.session.log().end().0 - 2);
    assert_eq!(work.session.stale_outside(), Some(first));
    work.step(100, "On.");
    assert_eq!(work.session.stale_outside(), Some(first));
    assert_eq!(reload(&work.session).stale_outside(), Some(first));
    // A note of ours is enough, and other tools of the client's own change everything.
    let mut work = Work::of(start(by_limits(), 100_000));
    work.push(Message::user("Mend the parser."));
    work.step(100, "One.");
    work.session.pin("p", "Never touch main.");
    work.step(100, "Two.");
    assert_eq!(work.session.stale_outside(), Some(Position(3)));
    work.session.set_frame(frame(1));
    assert_eq!(work.session.stale_outside(), Some(Position(1)));
}

#[test]
fn what_went_past_us_is_sent_as_it_came_and_keeps_its_thinking() {
    let mut work = Work::of(start(Profile::longhaul(), 100_000));
    work.session.read_signatures();
    work.reports = true;
    work.push(Message::user("Mend the parser."));
    work.step(100, "Before.");
    for _ in 0..3 {
        work.step_past_us(100);
        // Noise, which would be left out of a new result.
        let id = format!("noise_{}", work.calls);
        let thinking = work.twin.answer_client(work.session.log().frame(), &work.client, "Run it.");
        work.push(thinks(thinking, &id));
        work.push(Message::result(id, "Compiling a\n".repeat(400)));
    }
    work.step(100, "With you again.");
    assert_eq!((work.unbound(), thoughts(&work.session)), (0, 7));
}

#[test]
fn an_answer_that_was_reported_is_known_in_a_fork() {
    let mut work = Work::of(start(by_limits(), 100_000));
    work.session.read_signatures();
    work.push(Message::user("Mend the parser."));
    let ticket = work.prepare().unwrap();
    let thinking = work.twin.answer(&work.session, "Hm.");
    let Block::Thinking(signed) = &thinking else { panic!() };
    work.session.signed(ticket, signed.seal.data());
    // The client writes its input anew, and sends the answer behind it.
    work.session = work.session.fork_with_edits(Position(0)).unwrap();
    work.client.clear();
    work.push(Message::user("Mend the lexer."));
    work.push(thinks(thinking, "c1"));
    work.push(Message::result("c1", "text"));
    work.reports = true;
    work.step(100, "On.");
    assert_eq!(work.unbound(), 1);
}

#[test]
fn thinking_of_another_provider_comes_back_with_it() {
    let other = |name: &str| longhaul::Model { name: name.into(), binds: false, ..binding(100_000) };
    let mut work = Work::of(Session::new(by_limits(), other("kimi-k9")).with_meter(Meter::neutral()));
    work.push(Message::user("Mend the parser."));
    (0..3).for_each(|_| work.step(100, "Hm."));
    work.prepare();
    assert_eq!(thoughts(&work.session), 3);
    work.session.switch(binding(100_000), Seals::Engine);
    work.prepare();
    assert_eq!(thoughts(&work.session), 0);
    work.session.switch(other("kimi-k9"), Seals::Engine);
    work.prepare();
    assert_eq!(thoughts(&work.session), 3);
}

/// The client sends what came from a message on again, changed.
fn rewrite(work: &mut Work, from: usize, change: impl Fn(usize, Message) -> Message) {
    let later = work.client.split_off(from);
    work.session = work.session.fork_with_edits(Position(from as u32)).unwrap();
    later.into_iter().enumerate().for_each(|(at, message)| work.push(change(from + at, message)));
}

fn without_thinking(message: &Message) -> Message {
    let blocks = message.blocks().iter().filter(|block| !matches!(block, Block::Thinking(_)));
    Message::new(message.role(), blocks.cloned().collect())
}

#[test]
fn thinking_after_a_gap_that_a_client_made_goes() {
    for reports in [true, false] {
        let mut work = Work { reports, ..Work::of(start(by_limits(), 100_000)) };
        if reports {
            work.session.read_signatures();
        }
        work.push(Message::user("Mend the parser."));
        (0..4).for_each(|_| work.step(100, "Hm."));
        // The second of four answers comes back without what it thought: the messages before the third are the same.
        rewrite(&mut work, 3, |at, message| if at == 3 { without_thinking(&message) } else { message });
        work.step(100, "On.");
        work.prepare();
        // The first, and what was thought since.
        assert_eq!(thoughts(&work.session), 2, "reports: {reports}");
        let mut loaded = reload(&work.session);
        ready(&mut loaded);
        assert_eq!(thoughts(&loaded), 2);
    }
}

#[test]
fn thinking_that_a_client_has_put_in_another_order_goes() {
    let mut work = Work { reports: true, ..Work::of(start(by_limits(), 100_000)) };
    work.session.read_signatures();
    work.push(Message::user("Mend the parser."));
    work.step(100, "Hm.");
    let ticket = work.prepare().unwrap();
    let blocks = work.twin.answer_thrice(&work.session);
    let seals: Vec<&str> = blocks.iter().filter_map(seal).collect();
    work.session.signed(ticket, seals);
    // What stays, with the thinking of the first step, of an answer that comes as one message and as two.
    for (order, stay_of_one, stay_of_two) in [([0, 1, 2], 4, 4), ([1, 0, 2], 1, 1), ([0, 2, 1], 1, 2)] {
        let [one, two, three] = order.map(|at| blocks[at].clone());
        let call = thinks(three.clone(), "c2").blocks()[1].clone();
        let whole =
            Message::new(Role::Assistant, vec![one.clone(), two.clone(), three.clone(), call.clone()]);
        let first = Message::new(Role::Assistant, vec![one, Block::text("I look.")]);
        let parts = vec![first, Message::new(Role::Assistant, vec![two, three, call])];
        for (answer, stay) in [(vec![whole], stay_of_one), (parts, stay_of_two)] {
            let mut work = work.clone();
            answer.into_iter().for_each(|message| work.push(message));
            work.push(Message::result("c2", "text"));
            work.prepare();
            assert_eq!(work.session.audit(), []);
            assert_eq!(thoughts(&work.session), stay, "{order:?}");
        }
    }
}

#[test]
fn a_tool_that_waits_to_be_found_counts_from_its_name_on() {
    let late = |about: &str| {
        let json = format!(
            r#"{{"system":"Be brief.","tools":[{{"name":"Read"}},{{"name":"Late","description":"{about}","defer_loading":true}}]}}"#
        );
        Frame::from_json(&Json::new(json).unwrap()).unwrap()
    };
    let mut work = Work::of(start(by_limits(), 100_000));
    work.session.set_frame(late("One."));
    work.push(Message::user("Mend the parser."));
    work.step(100, "Which tool?");
    // Nobody has named it.
    work.session.set_frame(late("Two."));
    work.step(100, "I search.");
    let Some(Block::ToolResult(result)) = Message::result("c", "").blocks().first().cloned() else {
        panic!()
    };
    let value = Json::new(r#"{"type":"tool_reference","tool_name":"Late"}"#).unwrap();
    let content = Some(vec![Block::Opaque(Opaque { value, extra: Extra::NONE })].into());
    let found = Message::new(Role::Tool, vec![Block::ToolResult(ToolResult { content, ..result })]);
    work.prepare();
    let thinking = work.twin.answer(&work.session, "Found.");
    work.push(thinks(thinking, "c"));
    work.push(found);
    (0..2).for_each(|_| work.step(100, "With the tool."));
    work.prepare();
    assert_eq!((thoughts(&work.session), work.unbound()), (5, 0));
    // What was thought after its name is bound to what it is.
    work.session.set_frame(late("Three."));
    work.step(100, "It has changed.");
    work.prepare();
    assert_eq!((thoughts(&work.session), work.unbound()), (4, 2));
    let frames = work.session.since(Cursor(0)).filter(|entry| matches!(entry, Entry::Frame(_))).count();
    work.session.set_frame(late("Three."));
    assert_eq!(
        work.session.since(Cursor(0)).filter(|entry| matches!(entry, Entry::Frame(_))).count(),
        frames
    );
    assert_eq!(thoughts(&reload(&work.session)), 4);
}

#[test]
fn signatures_do_not_travel_between_models_that_nobody_knows() {
    let unknown = || longhaul::Model { window: Tokens(100_000), ..Models::builtin().find("acme-1").clone() };
    let named = |name: &str| Frame { model: Some(name.into()), ..frame(0) };
    let mut work = Work::of(Session::new(by_limits(), unknown()).with_meter(Meter::neutral()));
    work.session.set_frame(named("acme-1"));
    work.push(Message::user("Mend the parser."));
    (0..3).for_each(|_| work.step(100, "Hm."));
    let switch = |work: &mut Work, name: &str| {
        work.session.switch(unknown(), Seals::Engine);
        work.session.set_frame(named(name));
        work.prepare();
        thoughts(&work.session)
    };
    assert_eq!(switch(&mut work, "acme-1"), 3, "the same model");
    assert_eq!(switch(&mut work, "other-2"), 0);
    work.step(100, "I am another.");
    assert_eq!(switch(&mut work, "acme-1"), 3, "back again, without what the other one thought");
    let mut loaded = Work { session: reload(&work.session), ..work };
    assert_eq!(switch(&mut loaded, "other-2"), 1);
    // Where no frame names it, it may be any.
    let mut work = Work::of(Session::new(by_limits(), unknown()).with_meter(Meter::neutral()));
    work.push(Message::user("Mend the parser."));
    work.step(100, "Hm.");
    work.session.switch(unknown(), Seals::Engine);
    work.prepare();
    assert_eq!(thoughts(&work.session), 0);
}

#[test]
fn no_fold_is_made_while_a_call_waits() {
    for binds in [true, false] {
        let model = longhaul::Model { binds, ..binding(100_000) };
        let mut work = Work::of(Session::new(by_limits(), model).with_meter(Meter::neutral()));
        work.session.set_frame(frame(0));
        work.push(Message::user("Mend the parser."));
        (0..20).for_each(|_| work.step(600, "Hm."));
        // Over the trigger, and under the hard limit.
        work.session.set_window(Tokens(work.session.size().tokens.0 * 100 / 78));
        let thinking = work.twin.answer(&work.session, "Two at once.");
        let Block::ToolCall(second) = call("b").blocks()[0].clone() else { panic!() };
        let answer = [thinks(thinking, "a").blocks(), &[Block::ToolCall(second)]].concat();
        work.push(Message::new(Role::Assistant, answer));
        work.push(Message::result("a", "text"));
        work.prepare().unwrap();
        let budget = work.session.budget();
        let folds = work.folds();
        assert_eq!(folds == 0, binds, "{folds} folds of a model that binds: {binds}");
        if binds {
            assert!((budget.trigger..=budget.hard).contains(&work.session.size().tokens));
        }
        work.push(Message::user("And now?"));
        work.prepare().unwrap();
        assert!(work.folds() > 0, "no call waits any longer");
    }
}

/// Works until a fold is made by price; how many steps that took. Stops before `most`.
fn folded_after(worth: u8, most: usize) -> (Work, usize) {
    let profile = Profile { thinking_worth: worth, ..Profile::longhaul() };
    let mut work = Work::of(start(profile, 1_000_000));
    work.push(Message::user("Mend the parser."));
    for n in 0..most {
        work.step(2_500, &"I look closer. ".repeat(150));
        if work.folds() > 0 {
            assert_eq!(work.session.ledger().edits().last().unwrap().0.why, Why::PaysBack);
            return (work, n);
        }
    }
    (work, most)
}

#[test]
fn a_fold_by_price_waits_for_what_thinking_is_worth_unless_a_turn_begins_or_the_cache_is_cold() {
    const MOST: usize = 300;
    let after = [0, 25, 100].map(|worth| folded_after(worth, MOST).1);
    assert!(after[0] < after[1] && after[1] + 4 < after[2] && after[2] < MOST, "{after:?}");
    // Where a fold that counts thinking waits.
    let folds_of = |change: &dyn Fn(&mut Work)| {
        let (mut work, _) = folded_after(100, after[2] - 1);
        change(&mut work);
        work.prepare().unwrap();
        let edits = work.session.ledger().edits().map(|(edit, _)| edit.why);
        edits.collect::<Vec<_>>()
    };
    assert_eq!(folds_of(&|_| {}), []);
    let turn = folds_of(&|work| work.push(Message::user("Something else.")));
    assert!(!turn.is_empty() && turn.iter().all(|why| *why == Why::PaysBack), "{turn:?}");
    let cold = folds_of(&|work| work.clock += 86_400_000_000);
    assert!(!cold.is_empty() && cold.iter().all(|why| *why == Why::Cold), "{cold:?}");
}

#[test]
fn lost_thinking_leaves_the_beginning_of_its_text_and_nothing_where_it_has_none() {
    let mut work = Work::of(start(by_limits(), 100_000));
    work.push(Message::user("Mend the parser."));
    let (long, just, short) = ("ä".repeat(301), "b".repeat(300), "\n Hm. ");
    for thinking in ["", "  ", &long, &just, short] {
        work.step(100, thinking);
    }
    work.prepare();
    work.session.unbind_from(Position(0));
    let answers = work.session.view().parts().iter().filter(|part| part.message.calls().next().is_some());
    let left: Vec<String> = answers.map(|part| part.message.texts().collect()).collect();
    assert_eq!(left, ["", "", &format!("{}…", "ä".repeat(300)), &*just, "Hm."]);
    let blocks = work.session.view().parts().iter().map(|part| part.message.blocks().len());
    assert_eq!(
        blocks.collect::<Vec<_>>(),
        [1, 1, 1, 1, 1, 2, 1, 2, 1, 2, 1],
        "nothing stands for a block without text"
    );
}

#[derive(Debug, Clone)]
enum Op {
    Ask,
    Step(usize, usize),
    PastUs(usize),
    Retry,
    Pin(u8),
    Unpin(u8),
    Todos(u8),
    Rules(u8),
    Goal(u8),
    GitStat(u8),
    Undo(usize),
    Redo(usize),
    Compact,
    /// The client goes back by so many messages and on from there.
    Rewind(usize),
    /// The client writes an older result anew, and sends what came after it again.
    Rewrite(usize),
    Tools(u8),
    Switch(u8),
    Reload,
    Window(u64),
    Pause,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => Just(Op::Ask),
        30 => (0usize..1_500, 0usize..600).prop_map(|(bytes, thinking)| Op::Step(bytes, thinking)),
        2 => (0usize..900).prop_map(Op::PastUs),
        2 => Just(Op::Retry),
        2 => (0u8..3).prop_map(Op::Pin),
        1 => (0u8..3).prop_map(Op::Unpin),
        3 => (0u8..9).prop_map(Op::Todos),
        1 => (0u8..4).prop_map(Op::Rules),
        1 => (0u8..4).prop_map(Op::Goal),
        1 => (0u8..4).prop_map(Op::GitStat),
        2 => (0usize..30).prop_map(Op::Undo),
        2 => (0usize..30).prop_map(Op::Redo),
        1 => Just(Op::Compact),
        2 => (1usize..12).prop_map(Op::Rewind),
        1 => (1usize..12).prop_map(Op::Rewrite),
        1 => (0u8..2).prop_map(Op::Tools),
        2 => (0u8..4).prop_map(Op::Switch),
        2 => Just(Op::Reload),
        1 => prop::sample::select(vec![3_000u64, 6_000, 12_000, 100_000]).prop_map(Op::Window),
        1 => Just(Op::Pause),
    ]
}

fn apply(work: &mut Work, op: &Op) {
    match op {
        Op::Ask => work.push(Message::user("And now?")),
        Op::Step(bytes, thinking) => work.step(*bytes, &"I think. ".repeat(*thinking / 9)),
        Op::PastUs(bytes) if work.reports => work.step_past_us(*bytes),
        Op::PastUs(bytes) => work.step(*bytes, ""),
        Op::Retry => _ = work.prepare(),
        Op::Pin(n) => work.session.pin(n.to_string(), format!("Pinned {n}, {}.", work.calls)),
        Op::Unpin(n) => work.session.unpin(n.to_string()),
        Op::Todos(n) => work.session.set_todos((*n > 0).then(|| format!("[ ] todo {n}")).as_deref()),
        Op::Rules(n) => work.session.set_rules("LAW.md", (*n > 0).then(|| format!("Rule {n}.")).as_deref()),
        Op::Goal(n) => work.session.set_goal(format!("Goal {n}.")),
        Op::GitStat(n) => work.session.set_git_stat((*n > 0).then(|| format!("{n} files")).as_deref()),
        Op::Undo(n) => _ = work.session.undo(EditId(*n as u32)),
        Op::Redo(n) => _ = work.session.redo(EditId(*n as u32)),
        Op::Compact => work.session.compact_now(),
        Op::Rewind(back) => {
            let end = work.client.len().saturating_sub(*back);
            // Whole steps alone: a call waits for its result.
            let end = (0..=end)
                .rev()
                .find(|end| work.client[..*end].last().is_none_or(|m| m.role() != Role::Assistant));
            let end = end.unwrap_or(0);
            work.client.truncate(end);
            work.session = work.session.fork_with_edits(Position(end as u32)).unwrap();
        }
        Op::Rewrite(back) => {
            let at = work.client.len().saturating_sub(*back);
            let Some(at) = (at..work.client.len()).find(|at| work.client[*at].role() == Role::Tool) else {
                return;
            };
            let mut later = work.client.split_off(at);
            let id = later[0].results().next().unwrap().id.clone();
            later[0] = Message::result(id, "[Cleared]");
            work.session = work.session.fork_with_edits(Position(at as u32)).unwrap();
            later.into_iter().for_each(|message| work.push(message));
        }
        Op::Tools(n) => work.session.set_frame(frame(*n)),
        Op::Switch(n) => {
            let name = ["claude-opus-5-5", "claude-sonnet-5-5", "claude-opus-5", "claude-fable-5-2"]
                [usize::from(*n)];
            let window = work.session.budget().window;
            let model = longhaul::Model { window, ..Models::builtin().find(name).clone() };
            work.session.switch(model, if work.reports { Seals::Client } else { Seals::Engine });
        }
        Op::Reload => work.session = reload(&work.session),
        Op::Window(tokens) => work.session.set_window(Tokens(*tokens)),
        Op::Pause => work.clock += 3_600_000_000,
    }
}

proptest! {
    #![proptest_config(histories(600))]

    /// No request is refused, whatever happens before it, and no audit finds what the provider would find.
    #[test]
    fn every_signed_block_follows_what_produced_it(ops in prop::collection::vec(op(), 1..90), window in prop::sample::select(vec![3_000u64, 6_000, 16_000]), profile in 0usize..8, reports: bool) {
        let profile = Profile::all().into_iter().nth(profile).unwrap_or_else(Profile::longhaul);
        let mut work = Work { reports, ..Work::of(start(profile, window)) };
        if reports {
            work.session.read_signatures();
        }
        work.push(Message::user("Mend the parser."));
        for op in &ops {
            apply(&mut work, op);
            prop_assert_eq!(work.session.audit(), []);
        }
    }
}
