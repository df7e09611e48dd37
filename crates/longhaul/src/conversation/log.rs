//! The log: every message as it came, in order, and what the host said beside them. It is
//! append-only and never edited; steps and turns are derived as messages arrive. Broken
//! input is kept byte for byte and mended only where it is shown (`repair`).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::conversation::bond::{Bond, bonds_with, loads_tool};
use crate::conversation::edition::Editions;
use crate::conversation::fact::{Fact, FactKind, Note, Noted};
use crate::conversation::frame::Frame;
use crate::conversation::message::{Block, Message, Role, ToolCall, ToolResult};
use crate::conversation::repair::{Edited, Shown};
use crate::conversation::step::{Exchange, LateAnswer, Outline, Turn, Unit, UnitKind};
use crate::session::journal::Entry;

/// The position of a message in its log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Position(pub u32);

impl Position {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A run of messages: from `start` up to, not including, `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    /// The first message.
    pub start: Position,
    /// The one after the last.
    pub end: Position,
}

impl Span {
    /// From `start` up to, not including, `end`.
    pub fn new(start: u32, end: u32) -> Self {
        Self { start: Position(start), end: Position(end) }
    }

    /// As a range of indices.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start.index()..self.end.index()
    }

    /// How many messages.
    pub fn len(self) -> usize {
        self.range().len()
    }

    /// True if there is none.
    pub fn is_empty(self) -> bool {
        self.range().is_empty()
    }

    /// True if a message is in both.
    pub fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// True if `at` is in it.
    pub fn contains(self, at: Position) -> bool {
        self.range().contains(&at.index())
    }
}

/// Why a run may be neither folded nor hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stays {
    /// A system message.
    System,
    /// A result that loads a tool: the model has the tool as long as the result is in view.
    ToolReference,
    /// A call whose result may still come from the provider.
    UnfinishedCall,
}

/// A conversation, append-only. A session is a path through a tree of messages: a fork shares
/// the messages before it.
///
/// ```
/// use longhaul::{Block, Json, Log, Message, Role};
/// use longhaul::conversation::UnitKind;
///
/// let mut log = Log::new();
/// log.push(Message::user("What is in a.txt?"));
/// log.push(Message::new(Role::Assistant, vec![Block::call("c1", "Read", Json::empty_object())]));
/// log.push(Message::result("c1", "hello"));
/// log.push(Message::assistant("It says hello."));
///
/// let kinds: Vec<_> = log.units().iter().map(|unit| (unit.kind, unit.span.len())).collect();
/// assert_eq!(kinds, [(UnitKind::User, 1), (UnitKind::Step, 2), (UnitKind::Step, 1)]);
/// assert!(log.turns()[0].ended);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Log {
    messages: Vec<Arc<Message>>,
    notes: Vec<Noted>,
    /// Where the newest note of each kind and key stands, and the frame in force.
    facts: HashMap<(FactKind, Box<str>), usize>,
    frame: Option<usize>,
    /// How many different prompts frames have made.
    prompts: usize,
    /// Where system messages stand that must stay.
    system: Vec<Position>,
    /// System messages that take the place of one at the head.
    editions: Editions,
    /// The newest message that sets something for its turn.
    turn_control: Option<Position>,
    /// Where results stand that load tools.
    tool_references: Vec<Position>,
    outline: Outline,
}

impl Log {
    /// An empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a message. No field of it changes the frame: see [`note_frame`](Self::note_frame).
    pub fn push(&mut self, message: impl Into<Arc<Message>>) -> Position {
        let message = message.into();
        let at = self.end();
        self.outline.push(at, &message);
        if message.role() == Role::System {
            self.push_system(at, &message);
        }
        if message.results().any(loads_tool) {
            self.tool_references.push(at);
        }
        self.messages.push(message);
        at
    }

    fn push_system(&mut self, at: Position, message: &Message) {
        let head = self.leading_system();
        if at.index() >= head && self.editions.take(at, message, &self.messages, head) {
            return;
        }
        self.system.push(at);
        if message.is_turn_control()
            && let Some(before) = self.turn_control.replace(at)
            && before.index() >= head
            && let Ok(known) = self.system.binary_search(&before)
        {
            // What it set was for its own turn: it may go with that turn.
            self.system.remove(known);
        }
    }

    /// How many system messages stand before all others.
    pub(crate) fn leading_system(&self) -> usize {
        self.units().iter().take_while(|unit| unit.kind == UnitKind::System).count()
    }

    /// Where system messages stand that no edit may take, in order: on their own, or between a call and
    /// its result. Of those that set something for their turn it is the newest. A later edition of a
    /// system prompt has the place of the first.
    pub fn system_messages(&self) -> &[Position] {
        &self.system
    }

    /// The message that is shown in the place of this one: a later edition of the system prompt, or itself.
    pub(crate) fn edition_at(&self, place: Position) -> Position {
        self.editions.newest(place).unwrap_or(place)
    }

    /// True if the message is an edition of the system prompt, which is not shown where it came.
    pub(crate) fn is_moved(&self, at: Position) -> bool {
        self.editions.is_moved(at)
    }

    /// How often another system prompt came to stand at the head.
    pub(crate) fn head_changes(&self) -> usize {
        self.editions.changes()
    }

    /// What a run holds that no edit may take, if anything.
    pub(crate) fn stays_in(&self, run: Span) -> Option<Stays> {
        let any = |ats: &[Position]| {
            let next = ats.partition_point(|at| *at < run.start);
            ats.get(next).is_some_and(|at| *at < run.end)
        };
        match () {
            () if any(&self.system) => Some(Stays::System),
            () if any(&self.tool_references) => Some(Stays::ToolReference),
            () if self.has_unfinished(run) => Some(Stays::UnfinishedCall),
            () => None,
        }
    }

    /// True if a run holds a call whose result may still come from the provider.
    pub(crate) fn has_unfinished(&self, run: Span) -> bool {
        self.outline.has_unfinished(run)
    }

    /// Where results stand that load tools, in order.
    pub(crate) fn tool_references(&self) -> &[Position] {
        &self.tool_references
    }

    /// True if the block is a result that loads a tool, or the call of one.
    pub(crate) fn is_of_tool_reference(&self, at: Position, block: usize) -> bool {
        match self.get(at).and_then(|message| message.blocks().get(block)) {
            Some(Block::ToolResult(result)) => loads_tool(result),
            Some(Block::ToolCall(call)) => self.unit_of(at).is_some_and(|unit| {
                let results = self.messages[unit.span.range()].iter().flat_map(|message| message.results());
                results.filter(|result| result.id == call.id).any(loads_tool)
            }),
            _ => false,
        }
    }

    /// Results of calls that the provider ran in an earlier message.
    pub(crate) fn late_answers(&self) -> &[LateAnswer] {
        self.outline.late_answers()
    }

    /// The bonds inside a message, those with calls of earlier messages included.
    pub(crate) fn bonds(&self, at: Position, message: &Message) -> Vec<Bond> {
        let late =
            |block: usize| self.late_answers().iter().any(|late| (late.result, late.block) == (at, block));
        bonds_with(message, late)
    }

    /// The runs without units whose other half, in another unit, is not among them.
    pub(crate) fn with_whole_bonds(&self, mut runs: Vec<Span>) -> Vec<Span> {
        let has = |runs: &[Span], at: Position| runs.iter().any(|run| run.contains(at));
        // Each pass takes a unit out: this ends.
        while let Some(half) = self.late_answers().iter().find_map(|late| {
            match (has(&runs, late.call), has(&runs, late.result)) {
                (true, false) => Some(late.call),
                (false, true) => Some(late.result),
                _ => None,
            }
        }) {
            let out =
                self.unit_of(half).map_or(Span { start: half, end: Position(half.0 + 1) }, |unit| unit.span);
            let cut = |run: Span| {
                let before = Span { start: run.start, end: run.end.min(out.start) };
                let behind = Span { start: run.start.max(out.end), end: run.end };
                [before, behind].into_iter().filter(|run| run.start < run.end)
            };
            runs = runs.into_iter().flat_map(cut).collect();
        }
        runs
    }

    /// Appends a fact of the host, unless it says what is known already.
    pub fn note_fact(&mut self, fact: impl Into<Arc<Fact>>) -> bool {
        let fact = fact.into();
        let known = self.fact(fact.kind, &fact.key);
        if known == fact.text.as_deref() {
            return false;
        }
        self.note(Noted { at: self.end(), note: Note::Fact(fact) });
        true
    }

    /// Appends a frame, unless it is the one in force.
    pub fn note_frame(&mut self, frame: impl Into<Arc<Frame>>) -> bool {
        let frame = frame.into();
        if self.frame() == Some(&frame) {
            return false;
        }
        self.note(Noted { at: self.end(), note: Note::Frame(frame) });
        true
    }

    /// Takes in an entry of the journal.
    pub(crate) fn apply(&mut self, entry: &Entry) {
        match entry {
            Entry::Message(message) => _ = self.push(message.clone()),
            Entry::Fact(fact) => _ = self.note_fact(fact.clone()),
            Entry::Frame(frame) => _ = self.note_frame(frame.clone()),
            Entry::Sent(sent) if sent.closed => _ = self.close_step(),
            Entry::StepClosed => _ = self.close_step(),
            _ => {}
        }
    }

    fn note(&mut self, noted: Noted) {
        match &noted.note {
            Note::Fact(fact) => _ = self.facts.insert((fact.kind, fact.key.clone()), self.notes.len()),
            Note::Frame(frame) => {
                if !self.frame().is_some_and(|known| known.is_same_prompt(frame)) {
                    self.prompts += 1;
                }
                self.frame = Some(self.notes.len());
            }
        }
        self.notes.push(noted);
    }

    /// The position that the next message will have; also the number of messages.
    pub fn end(&self) -> Position {
        // A log of 2³² messages does not fit into memory.
        Position(u32::try_from(self.messages.len()).unwrap_or(u32::MAX))
    }

    /// The message at a position.
    pub fn get(&self, at: Position) -> Option<&Arc<Message>> {
        self.messages.get(at.index())
    }

    /// All messages, as they came.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Facts and frames, with the position they were said at.
    pub fn notes(&self) -> &[Noted] {
        &self.notes
    }

    /// The frame in force.
    pub fn frame(&self) -> Option<&Frame> {
        match &self.notes.get(self.frame?)?.note {
            Note::Frame(frame) => Some(frame),
            Note::Fact(_) => None,
        }
    }

    /// How many different prompts frames have made; names the one in force. Frames of one
    /// [`key`](Frame::key) have the same.
    pub fn frame_version(&self) -> usize {
        self.prompts
    }

    /// Names the newest frame: one of the same prompt may have other tools that wait until they are found.
    pub(crate) fn frame_place(&self) -> Option<usize> {
        self.frame
    }

    /// What is known under this kind and key.
    pub fn fact(&self, kind: FactKind, key: &str) -> Option<&str> {
        match &self.notes.get(*self.facts.get(&(kind, key.into()))?)?.note {
            Note::Fact(fact) => fact.text.as_deref(),
            Note::Frame(_) => None,
        }
    }

    /// Where it was said.
    pub(crate) fn fact_at(&self, kind: FactKind, key: &str) -> Option<Position> {
        self.notes.get(*self.facts.get(&(kind, key.into()))?).map(|noted| noted.at)
    }

    /// Keys of a kind that were known once and were taken back.
    pub(crate) fn taken_back(&self, kind: FactKind) -> Vec<&str> {
        let keys = self.facts.keys().filter(|(k, key)| *k == kind && self.fact(kind, key).is_none());
        let mut keys: Vec<&str> = keys.map(|(_, key)| &**key).collect();
        keys.sort_unstable();
        keys
    }

    /// Everything known of a kind: keys and texts, in the order they were last said.
    pub fn facts(&self, kind: FactKind) -> Vec<(&str, &str)> {
        let mut known: Vec<usize> =
            self.facts.iter().filter(|((k, _), _)| *k == kind).map(|(_, at)| *at).collect();
        known.sort_unstable();
        let facts = known.into_iter().filter_map(|at| match &self.notes[at].note {
            Note::Fact(fact) => Some((&*fact.key, fact.text.as_deref()?)),
            Note::Frame(_) => None,
        });
        facts.collect()
    }

    /// The units: a partition of the log into what nothing may cut.
    pub fn units(&self) -> &[Unit] {
        self.outline.units()
    }

    /// The unit that holds the message at a position.
    pub fn unit_of(&self, at: Position) -> Option<&Unit> {
        self.unit_index(at).map(|index| &self.units()[index])
    }

    /// The call that a result in this message answers.
    pub fn call_of(&self, at: Position, result: &ToolResult) -> Option<&ToolCall> {
        let step = self.get(self.unit_of(at)?.span.start)?;
        step.calls().find(|call| call.id == result.id)
    }

    /// The number of that unit.
    pub fn unit_index(&self, at: Position) -> Option<usize> {
        let index = self.units().partition_point(|unit| unit.span.start <= at).checked_sub(1)?;
        self.units()[index].span.contains(at).then_some(index)
    }

    /// The turns. What stands before the first belongs to none.
    pub fn turns(&self) -> &[Turn] {
        self.outline.turns()
    }

    /// The messages of the turn with this number.
    pub fn turn_span(&self, turn: usize) -> Option<Span> {
        let start = self.turns().get(turn)?.start;
        let end = self.turns().get(turn + 1).map_or(self.end(), |next| next.start);
        Some(Span { start, end })
    }

    /// The messages of the running turn: the one whose answer has not come.
    pub fn running_turn(&self) -> Option<Span> {
        let last = self.turns().len().checked_sub(1)?;
        if self.turns()[last].ended { None } else { self.turn_span(last) }
    }

    /// What the model may be shown of these units (all of them: `log.units()`): every
    /// message as it came, or mended where a provider would refuse it.
    pub fn show<'a>(&'a self, units: &'a [Unit]) -> impl Iterator<Item = Shown> + 'a {
        units.iter().flat_map(|unit| self.show_edited(unit, &|_, _| None))
    }

    /// The same for one unit, whose messages an edit may have changed: `edited` gives the
    /// blocks of such a message, in their places, with `None` for those that are gone.
    pub(crate) fn show_edited(&self, unit: &Unit, edited: &Edited<'_>) -> Vec<Shown> {
        let mut shown = self.outline.show(&self.messages, unit, edited);
        shown.retain(|shown| !self.is_moved(shown.at()));
        for shown in &mut shown {
            if let Some(newest) = self.editions.newest(shown.at()) {
                *shown = Shown::Made(shown.at(), self.messages[newest.index()].clone());
            }
        }
        shown
    }

    /// Where the first words of a person stand: the goal until another is set.
    pub fn goal_message(&self) -> Option<Position> {
        self.outline.first_words()
    }

    /// What stands before the first answer: rules, the environment, the first request. All of the log
    /// while no model has answered; an answer that a host wrote itself behind what it attached is none.
    ///
    /// ```
    /// use longhaul::{Log, Message, Span};
    /// let mut log = Log::new();
    /// log.push(Message::user("The rules of this project: …"));
    /// log.push(Message::user("What is in a.txt?"));
    /// log.push(Message::assistant("It says hello."));
    /// assert_eq!(log.opening(), Span::new(0, 2));
    /// ```
    pub fn opening(&self) -> Span {
        let answer = self.turns().iter().find_map(|turn| turn.first_step);
        Span { start: Position(0), end: answer.unwrap_or(self.end()) }
    }

    /// The answer to what a person asked in this message: the last words of its turn, or what else ended
    /// it, if it has ended. Of several messages before one answer each is answered by it.
    pub(crate) fn answer_to(&self, asked: Position) -> Option<Position> {
        let exchange = self.exchange_at(asked)?;
        self.requests_of(exchange).any(|at| at == asked).then_some(exchange.answer)
    }

    /// What a person asked in an exchange, message by message.
    fn requests_of(&self, exchange: Exchange) -> impl Iterator<Item = Position> {
        let asked = exchange.asked.range().map(|at| Position(at as u32));
        asked.filter(|at| self.messages[at.index()].words().next().is_some())
    }

    /// Requests that are answered inside these runs and would seem open without a word of it: those that
    /// stand beside the runs, and the first one, which is the goal wherever it stands.
    pub(crate) fn answered_by(&self, spans: &[Span]) -> Vec<Position> {
        let inside = |at: Position| spans.iter().any(|span| span.contains(at));
        let first = self.goal_message().filter(|at| self.answer_to(*at).is_some_and(inside));
        let beside = spans.iter().flat_map(|span| self.answered_in(*span));
        let beside = beside.filter(|at| !inside(*at) && first != Some(*at));
        first.into_iter().chain(beside).collect()
    }

    /// What was asked before this run and is answered in it: its turn began before the run.
    pub(crate) fn answered_in(&self, span: Span) -> impl Iterator<Item = Position> {
        let exchange = self.exchange_at(span.start).filter(|exchange| span.contains(exchange.answer));
        let asked = exchange.into_iter().flat_map(|exchange| self.requests_of(exchange));
        asked.take_while(move |at| *at < span.start)
    }

    /// The exchange that this message belongs to, if its turn has ended. Who goes on unasked
    /// goes on with what was asked before.
    fn exchange_at(&self, at: Position) -> Option<Exchange> {
        let turns = self.turns();
        let is_unasked = |turn: &Turn| turn.first_step == Some(turn.start);
        let here = turns.partition_point(|turn| turn.start <= at);
        let first = turns[..here].iter().rposition(|turn| !is_unasked(turn))?;
        let next = turns[here..].iter().find(|turn| !is_unasked(turn));
        let Turn { start, ended, first_step } = turns[first];
        let end = next.map_or(self.end(), |turn| turn.start);
        let message = |at: &Position| &self.messages[at.index()];
        let back = |from: Position, to: Position| (from.0..to.0).rev().map(Position);
        let is_step = |at: &Position| message(at).role() == Role::Assistant;
        // What ended the turn is its answer, also without words: a picture.
        let own_end = turns.get(first + 1).map_or(self.end(), |turn| turn.start);
        let last = back(start, own_end).find(is_step).filter(|_| ended)?;
        let answers = |at: &Position| {
            let says = message(at).texts().any(|text| !text.trim().is_empty());
            says && is_step(at) && message(at).calls().next().is_none()
        };
        let answer = back(last, end).find(answers).unwrap_or(last);
        Some(Exchange { asked: Span { start, end: answer.min(first_step?) }, answer })
    }

    /// What the person said last, where the running turn begins: the messages before its
    /// first step.
    pub fn current_input(&self) -> Option<Span> {
        let span = self.running_turn()?;
        let end = self.turns().last()?.first_step.unwrap_or(span.end);
        (end > span.start).then_some(Span { start: span.start, end })
    }

    /// The newest step, if it is in the running turn.
    pub fn newest_step(&self) -> Option<Unit> {
        let turn = self.running_turn()?;
        self.outline.newest_step().filter(|unit| unit.span.start >= turn.start)
    }

    /// What must stay whole: the current input and the newest step.
    ///
    /// ```
    /// use longhaul::{Block, Json, Log, Message, Role, Span};
    /// let mut log = Log::new();
    /// log.push(Message::user("What is in a.txt?"));
    /// for id in ["c1", "c2"] {
    ///     log.push(Message::new(Role::Assistant, vec![Block::call(id, "Read", Json::empty_object())]));
    ///     log.push(Message::result(id, "hello"));
    /// }
    /// assert!(log.protected().eq([Span::new(0, 1), Span::new(3, 5)]));
    /// ```
    pub fn protected(&self) -> impl Iterator<Item = Span> + Clone + use<> {
        [self.current_input(), self.newest_step().map(|unit| unit.span)].into_iter().flatten()
    }

    /// Where the step starts whose calls still wait for results. It may take in what follows
    /// it, so nothing from there on can be folded.
    pub fn waiting(&self) -> Option<Position> {
        self.outline.waiting()
    }

    /// The calls that still wait for results, in their order: what a host runs next, also after a restart.
    ///
    /// ```
    /// use longhaul::{Block, Json, Log, Message, Role};
    /// let call = |id: &str| Block::call(id, "Read", Json::new("{}").unwrap());
    /// let mut log = Log::new();
    /// log.push(Message::new(Role::Assistant, vec![call("a"), call("b")]));
    /// log.push(Message::result("a", "fn main() {}"));
    /// assert_eq!(log.waiting_calls().iter().map(|call| &*call.id).collect::<Vec<_>>(), ["b"]);
    /// ```
    pub fn waiting_calls(&self) -> Vec<&ToolCall> {
        let Some(start) = self.waiting() else { return Vec::new() };
        let step = &self.messages()[start.index()..];
        let results = step.iter().flat_map(|message| message.results());
        let answered: HashSet<&str> = results.map(|result| &*result.id).collect();
        let calls = step.iter().flat_map(|message| message.calls());
        calls.filter(|call| !answered.contains(&*call.id)).collect()
    }

    /// No result that comes from now on is shown as one: a placeholder was sent for it.
    /// False if no call waited for a result.
    pub fn close_step(&mut self) -> bool {
        self.outline.close_waiting_step()
    }

    /// How many of the first units can no longer change, whatever arrives.
    pub fn settled_units(&self) -> usize {
        self.outline.settled_units()
    }

    /// True if the unit is shown exactly as it came.
    pub fn is_whole(&self, unit: &Unit) -> bool {
        let as_came = |at: Position| !self.is_moved(at) && self.editions.newest(at).is_none();
        self.outline.is_whole(unit) && unit.span.range().all(|at| as_came(Position(at as u32)))
    }
}
