//! Steps and turns, derived message by message. A **step** is an assistant message with the
//! results of its calls: nothing cuts inside it. A **turn** runs from a user message to the
//! end of the answer. What is broken in the input is found here, once, when it arrives.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use crate::conversation::log::{Position, Span};
use crate::conversation::message::{Block, Message, Role, Seal};
use crate::conversation::repair::{Missing, NoteReason, Repair};

/// What a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnitKind {
    /// A system message.
    System,
    /// A summary of older messages.
    Summary,
    /// A user message.
    User,
    /// An assistant message with all results of its calls.
    Step,
    /// A tool message that answers no open call.
    Stray,
}

/// Messages that nothing may cut apart. The units of a log are a partition of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// What it is.
    pub kind: UnitKind,
    /// Its messages.
    pub span: Span,
}

/// From a user message to the end of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Its first message. It ends where the next turn starts.
    pub start: Position,
    /// The last assistant message asked for nothing more. A turn that never ended but has
    /// a successor was broken off.
    pub ended: bool,
    /// Its first step, if it has one.
    pub first_step: Option<Position>,
}

/// What a person asked, and the message that answered it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// The messages before the model went to work.
    pub(crate) asked: Span,
    pub(crate) answer: Position,
}

/// Calls that have no result yet, in their order, found by id.
#[derive(Debug, Clone, Default)]
struct Pending {
    calls: BTreeMap<u32, Missing>,
    by_id: HashMap<Box<str>, VecDeque<u32>>,
}

impl Pending {
    fn push(&mut self, original: &str, missing: Missing) {
        let number = self.calls.last_key_value().map_or(0, |(last, _)| last + 1);
        self.calls.insert(number, missing);
        self.by_id.entry(original.into()).or_default().push_back(number);
    }

    /// Finds the oldest call of this id, and ticks it off.
    fn take(&mut self, id: &str) -> Option<Missing> {
        let number = self.by_id.get_mut(id)?.pop_front()?;
        self.calls.remove(&number)
    }

    fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}

/// A call that the provider runs itself. Its result comes in the same answer, or in a later one of the
/// same turn.
#[derive(Debug, Clone)]
struct ServerCall {
    /// Its id as it came, and as it is shown.
    id: Box<str>,
    shown: Box<str>,
    at: Position,
}

/// What a tool of the provider said in a later answer than the one that called it. Both live or die
/// together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LateAnswer {
    /// The message with the call.
    pub(crate) call: Position,
    /// The message with the result.
    pub(crate) result: Position,
    /// The block that is the result.
    pub(crate) block: usize,
}

/// The step that results may still come for: no assistant or user message came after it.
#[derive(Debug, Clone)]
struct OpenStep {
    unit: usize,
    pending: Pending,
    answered: HashSet<Box<str>>,
}

/// Units, turns, and what is broken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outline {
    units: Vec<Unit>,
    turns: Vec<Turn>,
    open: Option<OpenStep>,
    /// The first message with words of a person.
    first_words: Option<Position>,
    /// A person has spoken in the newest turn.
    is_asked: bool,
    /// Answers in the newest turn that a host wrote itself, behind what it attached.
    own_answers: u8,
    /// The newest step.
    newest_step: Option<usize>,
    /// Calls of the running turn that the provider runs itself and has not finished.
    unfinished: Vec<ServerCall>,
    /// Results of such calls that came in a later answer.
    late_answers: Vec<LateAnswer>,
    /// How often each call id was used, generated ids included.
    ids: HashMap<Box<str>, u32>,
    repairs: BTreeMap<Position, Vec<Repair>>,
    /// Calls that got no result, by the first message of their step.
    missing: BTreeMap<Position, Vec<Missing>>,
}

/// Whether a message without calls is an answer: one that was broken off before its first word
/// is none, and what was asked is still to be done.
fn answers(message: &Message) -> bool {
    message.blocks().iter().any(|block| match block {
        Block::Text(text) => !text.text.trim().is_empty(),
        Block::Thinking(_) => false,
        _ => true,
    })
}

impl Outline {
    pub(crate) fn units(&self) -> &[Unit] {
        &self.units
    }

    pub(crate) fn turns(&self) -> &[Turn] {
        &self.turns
    }

    pub(crate) fn newest_step(&self) -> Option<Unit> {
        self.newest_step.map(|unit| self.units[unit])
    }

    pub(crate) fn first_words(&self) -> Option<Position> {
        self.first_words
    }

    pub(crate) fn late_answers(&self) -> &[LateAnswer] {
        &self.late_answers
    }

    /// True if a run holds a call whose result may still come from the provider.
    pub(crate) fn has_unfinished(&self, run: Span) -> bool {
        self.unfinished.iter().any(|call| run.contains(call.at))
    }

    /// Where the step starts whose calls still wait for results: it may take in what follows.
    pub(crate) fn waiting(&self) -> Option<Position> {
        let open = self.open.as_ref().filter(|open| !open.pending.is_empty())?;
        Some(self.units[open.unit].span.start)
    }

    /// Closes the open step if a call of it waits for a result.
    pub(crate) fn close_waiting_step(&mut self) -> bool {
        let waiting = self.open.as_ref().is_some_and(|open| !open.pending.is_empty());
        if waiting {
            self.close_step();
        }
        waiting
    }

    /// Only the open step and what stands after it can still change.
    pub(crate) fn settled_units(&self) -> usize {
        self.open.as_ref().map_or(self.units.len(), |open| open.unit)
    }

    /// What must be mended in the message.
    pub(crate) fn repairs(&self, at: Position) -> &[Repair] {
        self.repairs.get(&at).map_or(&[], Vec::as_slice)
    }

    /// Calls of the step that have no result.
    pub(crate) fn missing(&self, unit: &Unit) -> Vec<&Missing> {
        let closed = self.missing.get(&unit.span.start).map_or(&[][..], Vec::as_slice);
        let open = self.open.as_ref().filter(|open| self.units[open.unit].span.start == unit.span.start);
        closed.iter().chain(open.iter().flat_map(|open| open.pending.calls.values())).collect()
    }

    /// Takes in the next message.
    pub(crate) fn push(&mut self, at: Position, message: &Message) {
        self.find_bad_blocks(at, message);
        match message.role() {
            Role::Assistant => self.push_step(at, message),
            _ if message.results().next().is_some() => self.push_results(at, message),
            Role::User => self.push_user(at, message),
            Role::System => self.push_unit(UnitKind::System, at),
            Role::Summary => self.push_unit(UnitKind::Summary, at),
            Role::Tool => {
                self.repair(at, Repair::AsUser);
                self.push_unit(UnitKind::Stray, at);
            }
        }
    }

    fn push_unit(&mut self, kind: UnitKind, at: Position) {
        self.units.push(Unit { kind, span: Span { start: at, end: Position(at.0 + 1) } });
    }

    fn push_user(&mut self, at: Position, message: &Message) {
        let running = self.turns.last().filter(|turn| !turn.ended);
        let joins = running.is_some_and(|turn| turn.first_step.is_none() || message.is_attachment());
        if !joins {
            self.begin_turn(at);
        }
        if !message.is_attachment() {
            self.is_asked = true;
            self.close_step();
        }
        if message.words().next().is_some() {
            self.first_words.get_or_insert(at);
        }
        self.push_unit(UnitKind::User, at);
    }

    fn push_step(&mut self, at: Position, message: &Message) {
        self.close_step();
        self.newest_step = Some(self.units.len());
        self.push_unit(UnitKind::Step, at);
        let mut pending = Pending::default();
        for (block, content) in message.blocks().iter().enumerate() {
            let renamed = match content {
                Block::ToolCall(call) => {
                    let id = self.unused_id(&call.id);
                    if call.server {
                        self.unfinished.push(ServerCall { id: call.id.clone(), shown: id.clone(), at });
                    } else {
                        pending.push(&call.id, Missing { id: id.clone(), name: call.name.clone() });
                    }
                    (id != call.id).then_some(id)
                }
                // The provider ran the tool itself.
                Block::ToolResult(result) => match self.finish(&result.id, at) {
                    Some(call) => {
                        if call.at != at {
                            self.late_answers.push(LateAnswer { call: call.at, result: at, block });
                        }
                        (call.shown != result.id).then_some(call.shown)
                    }
                    None => {
                        self.repair(at, Repair::AsNote { block, reason: NoteReason::Unknown });
                        None
                    }
                },
                _ => None,
            };
            if let Some(id) = renamed {
                self.repair(at, Repair::Rename { block, id });
            }
        }
        // Who goes on unasked begins a turn: the one before has ended for good.
        if self.turns.last().is_none_or(|turn| turn.ended) {
            self.begin_turn(at);
        }
        if self.is_own_answer(at, message) {
            self.own_answers += 1;
        } else if let Some(turn) = self.turns.last_mut() {
            turn.first_step.get_or_insert(at);
            // What a turn left unfinished is never finished once a person has gone on.
            self.unfinished.retain(|call| call.at >= turn.start);
            turn.ended = pending.is_empty() && self.unfinished.is_empty() && answers(message);
        }
        self.open = Some(OpenStep { unit: self.units.len() - 1, pending, answered: HashSet::new() });
    }

    fn begin_turn(&mut self, start: Position) {
        self.turns.push(Turn { start, ended: false, first_step: None });
        (self.is_asked, self.own_answers) = (false, 0);
    }

    /// True for the answer that a host writes itself behind what it attaches ("Ok, I will use these files"):
    /// no person has asked anything yet, and no model has thought or called. What is attached and the request
    /// that follows are one input then.
    fn is_own_answer(&self, at: Position, message: &Message) -> bool {
        /// More in a row are a conversation of its own, such as events that a model answers: it must end somewhere.
        const MOST: u8 = 8;
        let says = |block: &Block| matches!(block, Block::Text(_));
        let follows = self.turns.last().is_some_and(|turn| turn.start < at && turn.first_step.is_none());
        follows && !self.is_asked && self.own_answers < MOST && message.blocks().iter().all(says)
    }

    /// Finds the call that a result of the provider answers, in this answer or before, and ticks it off.
    fn finish(&mut self, id: &str, at: Position) -> Option<ServerCall> {
        let here = self.unfinished.iter().position(|call| call.at == at && *call.id == *id);
        let found = here.or_else(|| self.unfinished.iter().position(|call| *call.id == *id))?;
        Some(self.unfinished.remove(found))
    }

    fn push_results(&mut self, at: Position, message: &Message) {
        let mut repairs = Vec::new();
        let mut matched = false;
        for (block, result) in message.blocks().iter().enumerate() {
            let Block::ToolResult(result) = result else { continue };
            match self.answer(&result.id) {
                Answer::Open(id) => {
                    matched = true;
                    if id != result.id {
                        repairs.push(Repair::Rename { block, id });
                    }
                }
                Answer::None(reason) => repairs.push(Repair::AsNote { block, reason }),
            }
        }
        for repair in repairs {
            self.repair(at, repair);
        }
        match &self.open {
            Some(open) if matched => {
                // What came between call and result belongs to the step now.
                self.units.truncate(open.unit + 1);
                self.units[open.unit].span.end = Position(at.0 + 1);
            }
            // Words of a person beside results that answer nothing: they begin a turn.
            _ if message.words().next().is_some() => self.push_user(at, message),
            _ => self.push_unit(UnitKind::Stray, at),
        }
    }

    /// Finds the open call that a result answers, and ticks it off.
    fn answer(&mut self, id: &str) -> Answer {
        let late = self.ids.contains_key(id);
        let Some(open) = &mut self.open else {
            return Answer::None(if late { NoteReason::Late } else { NoteReason::Unknown });
        };
        if let Some(call) = open.pending.take(id) {
            open.answered.insert(id.into());
            return Answer::Open(call.id);
        }
        Answer::None(match () {
            () if open.answered.contains(id) => NoteReason::Doubled,
            () if late => NoteReason::Late,
            () => NoteReason::Unknown,
        })
    }

    /// No result that comes from now on can be shown as one.
    fn close_step(&mut self) {
        let Some(open) = self.open.take() else { return };
        if !open.pending.is_empty() {
            let start = self.units[open.unit].span.start;
            self.missing.insert(start, open.pending.calls.into_values().collect());
        }
    }

    /// The id itself the first time, then a variant that nobody used.
    fn unused_id(&mut self, id: &str) -> Box<str> {
        let base = if id.is_empty() { "call" } else { id };
        let mut used = self.ids.get(base).copied().unwrap_or(0);
        let mut unused: Box<str> = base.into();
        while used > 0 && self.ids.contains_key(&unused) {
            used += 1;
            unused = format!("{base}_{used}").into();
        }
        if *unused != *base {
            self.ids.insert(unused.clone(), 1);
        }
        self.ids.insert(base.into(), used.max(1));
        unused
    }

    /// Providers refuse text that is empty or blank, and calls that no model made; unsealed
    /// thinking without text says nothing either. A system message of an API says something without any
    /// text (per-turn control), and the client knows what its provider takes.
    fn find_bad_blocks(&mut self, at: Position, message: &Message) {
        let may_be_empty = message.role() == Role::System && message.is_from_api();
        for (block, content) in message.blocks().iter().enumerate() {
            let empty = match content {
                Block::Text(text) => text.text.trim_start().is_empty(),
                Block::Thinking(t) => t.seal == Seal::Open && t.text.trim_start().is_empty(),
                _ => false,
            };
            if empty && !may_be_empty {
                self.repair(at, Repair::Empty { block });
            }
            if message.role() != Role::Assistant && matches!(content, Block::ToolCall(_)) {
                self.repair(at, Repair::StrayCall { block });
            }
        }
        if message.blocks().is_empty() && !may_be_empty {
            self.repair(at, Repair::NoContent);
        }
    }

    fn repair(&mut self, at: Position, repair: Repair) {
        self.repairs.entry(at).or_default().push(repair);
    }
}

enum Answer {
    /// It answers the open call that is shown under this id.
    Open(Box<str>),
    /// It answers none.
    None(NoteReason),
}
