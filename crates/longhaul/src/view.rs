//! The view: what the model is sent, a function of log and ledger alone. In three parts:
//! **stable** (system prompt and tools of the frame, the profile's note, project rules), **growing** (the
//! history, with summaries in the place of what they fold) and **volatile** (one tail for what
//! changes often). Nothing is copied: parts share the messages of the log.
//!
//! Without an edit the view grows by what is new. After an edit it is walked anew from the first place that
//! the edit reaches, over what is visible, not over what was folded; what did not change keeps its place in
//! memory.

pub(crate) mod cache;
pub(crate) mod cache_returns;
mod edited;
pub(crate) mod keep;
pub(crate) mod prefix;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::conversation::frame::Frame;
use crate::conversation::log::{Log, Position};
use crate::conversation::message::{Message, Role};
use crate::conversation::repair::Shown;
use crate::conversation::step::Unit;
use crate::edits::edit::{Edit, EditId, EditKind, EditText, Placement};
use crate::edits::ledger::Ledger;
use crate::edits::voice::Voice;
use crate::size::meter::{Measure, Meter};
use crate::size::tokens::Tokens;

use edited::edited;

pub use cache::{PromptCache, Sent, pays_back};
pub use keep::{KeepItem, KeepKey, Kept, RULE_FILES, is_rule_file};
pub use prefix::Prefix;

/// Where a part of a view comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// What the profile tells the model.
    Note,
    /// The project rules that stand before the history.
    Rules,
    /// A message of the log, or what became of it.
    Message(Position),
    /// A fold or a hide.
    Edit(EditId),
    /// A note of the host that stays where it was sent: its number.
    HostNote(usize),
    /// The tail: what changes often.
    Tail,
}

impl Source {
    /// Where in the log it stands, or what it stands for begins. The note, rules and the tail are no part
    /// of the log: they stand before and behind it.
    pub(crate) fn start(self, ledger: &Ledger) -> Position {
        match self {
            Self::Message(at) => at,
            Self::Edit(id) => {
                let span = ledger.get(id).and_then(|edit| edit.kind.spans().first().copied());
                span.map_or(Position(0), |span| span.start)
            }
            Self::HostNote(number) => ledger.host_note(number).map_or(Position(0), |note| note.at),
            Self::Note | Self::Rules => Position(0),
            Self::Tail => Position(u32::MAX),
        }
    }

    /// The edit, if it is one.
    pub(crate) fn edit(self) -> Option<EditId> {
        match self {
            Self::Edit(id) => Some(id),
            Self::Note | Self::Rules | Self::Message(_) | Self::HostNote(_) | Self::Tail => None,
        }
    }
}

/// One message of a view.
#[derive(Debug, Clone)]
pub struct Part {
    /// Where it comes from.
    pub source: Source,
    /// What is sent.
    pub message: Arc<Message>,
    /// Its size.
    pub measure: Measure,
}

/// Where a stable prefix of a request ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// Behind system prompt and tools of the frame.
    Frame,
    /// Behind so many parts of the view.
    After(usize),
}

/// What a host sends: the frame, then the parts, then the tail. A wire format makes a request of it
/// and asks the provider's cache to remember each of the ends.
#[derive(Debug, Clone)]
pub struct Outgoing<'a> {
    /// System prompt, tools and settings, if the host has set any.
    pub frame: Option<&'a Frame>,
    /// The stable and the growing part, in order.
    pub parts: &'a [Part],
    /// The volatile part: behind the last end.
    pub tail: Option<&'a Part>,
    /// Where stable prefixes end, in their order.
    pub ends: Vec<End>,
    /// What the answer may have at most, where the provider refuses what the frame asks for.
    pub shorter_answer: Option<Tokens>,
}

impl<'a> Outgoing<'a> {
    /// The messages, in their order, the tail included.
    pub fn messages(&self) -> impl Iterator<Item = &'a Arc<Message>> {
        self.parts.iter().chain(self.tail).map(|part| &part.message)
    }
}

/// What stands before the messages: system prompt and tools of the frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fixed {
    /// Which frame of the log it is; none is 0.
    pub version: usize,
    /// Its size.
    pub measure: Measure,
}

/// What the model is sent.
#[derive(Debug, Clone, Default)]
pub struct View {
    fixed: Fixed,
    parts: Vec<Part>,
    measure: Measure,
    /// Of it, what stands for folds and hides.
    folds: Measure,
    tail: Option<Part>,
    settled: Settled,
    unchanged: usize,
    /// Edits before this one were shown.
    edits_seen: EditId,
    /// How often the ledger had been turned then.
    changes_seen: usize,
    /// System messages before all others.
    leading: usize,
    /// Folds stand behind the system prompt.
    has_hints: bool,
    /// How often another system prompt had come to stand there.
    head_changes: usize,
    /// Messages before this one were shown.
    shown_end: Position,
    made: Made,
    /// The way to count has changed: nothing that was counted holds.
    recounted: bool,
}

/// Up to here nothing that arrives can change what is shown.
#[derive(Debug, Clone, Copy, Default)]
struct Settled {
    units: usize,
    parts: usize,
    measure: Measure,
    folds: Measure,
}

/// Parts that edits made, to be used again after the next edit.
#[derive(Debug, Clone, Default)]
struct Made {
    units: HashMap<Position, (Look, Vec<Part>)>,
    /// One part; two where what code wrote and what it quotes stand in different places.
    folds: HashMap<EditId, Vec<Part>>,
}

/// What the look of a unit follows from, beside the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Look {
    /// Edits inside its messages.
    edits: Vec<EditId>,
    /// How many of its messages have lost their thinking.
    unbound: usize,
}

impl Look {
    fn of(ledger: &Ledger, unit: &Unit) -> Self {
        let ats = || unit.span.range().map(|at| Position(at as u32));
        Self {
            edits: ats().flat_map(|at| ledger.inside(at)).copied().collect(),
            unbound: ats().filter(|at| ledger.is_unbound(*at)).count(),
        }
    }
}

/// What a view is made from.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub(crate) log: &'a Log,
    pub(crate) ledger: &'a Ledger,
    pub(crate) meter: &'a Meter,
    pub(crate) sizes: &'a [Measure],
}

impl Sources<'_> {
    /// The first place in the log whose look edits from this one on may have changed: where a unit, or a run that
    /// another edit covers, begins.
    pub(crate) fn first_reached(&self, first_new: EditId) -> Option<Position> {
        let spans = self.ledger.edits_since(first_new).flat_map(|(edit, _)| edit.kind.spans());
        spans.map(|span| self.start_of_run(span.start)).min()
    }

    /// True if an edit from this one on stands behind the system prompt, before the history.
    pub(crate) fn has_hint_since(&self, first_new: EditId) -> bool {
        self.ledger.edits_since(first_new).any(|(edit, _)| is_hint(&edit.kind))
    }

    /// True for the fold that stands directly after the system prompt.
    fn follows_system_prompt(&self, edit: &Edit) -> bool {
        let hint = self
            .ledger
            .outermost()
            .filter_map(|(_, id)| self.ledger.get(id))
            .find(|edit| is_hint(&edit.kind));
        let head = self.log.units().get(self.log.leading_system()).map(|unit| unit.span.start);
        match hint {
            Some(hint) => hint.id == edit.id,
            None => head.is_some_and(|head| starts_at(&edit.kind, head)),
        }
    }

    fn start_of_run(&self, at: Position) -> Position {
        let unit = self.log.unit_of(at).map_or(at, |unit| unit.span.start);
        self.ledger.covering(at).map_or(unit, |(span, _)| span.start.min(unit))
    }
}

impl View {
    /// The stable and the growing part, in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The volatile part: after the last cache mark, if there is any.
    pub fn tail(&self) -> Option<&Part> {
        self.tail.as_ref()
    }

    /// What stands before the messages.
    pub fn fixed(&self) -> Fixed {
        self.fixed
    }

    /// Its size, with what stands before the messages and the tail.
    pub fn measure(&self) -> Measure {
        self.fixed.measure + self.measure + self.tail.as_ref().map(|tail| tail.measure).unwrap_or_default()
    }

    /// The size of what stands for folds and hides.
    pub(crate) fn folds(&self) -> Measure {
        self.folds
    }

    /// How many of the first parts are certainly the same as in the view that was sent last.
    pub fn unchanged(&self) -> usize {
        self.unchanged
    }

    /// This view is sent: changes are counted from here.
    pub(crate) fn mark_sent(&mut self) {
        self.unchanged = self.parts.len();
    }

    /// Where the provider's cache should remember prefixes, in their order, at most four: behind
    /// the frame, behind system messages and rules, behind the last summary, behind what no
    /// longer changes, and behind the last part.
    pub fn stable_ends(&self) -> Vec<End> {
        const MOST: usize = 4;
        let head = self.parts.iter().take_while(|part| is_head(part)).count();
        let summary = self.parts.iter().rposition(|part| matches!(part.source, Source::Edit(_)));
        let mut ends = vec![head, summary.map_or(0, |at| at + 1), self.settled.parts, self.parts.len()];
        ends.sort_unstable();
        ends.dedup();
        ends.retain(|end| *end > 0);
        let frame = self.fixed.measure != Measure::default();
        // The end of the settled part lies shortly before the last: it is the one to spare.
        if ends.len() + usize::from(frame) > MOST {
            ends.remove(MOST - 2);
        }
        frame.then_some(End::Frame).into_iter().chain(ends.into_iter().map(End::After)).collect()
    }

    pub(crate) fn set_fixed(&mut self, fixed: Fixed) {
        (self.fixed, self.recounted) = (fixed, false);
    }

    /// Forgets everything: the way to count has changed.
    pub(crate) fn recount(&mut self) {
        *self = Self { recounted: true, ..Self::default() };
    }

    /// True if what stands before the messages is to be counted anew.
    pub(crate) fn is_recounted(&self) -> bool {
        self.recounted
    }

    pub(crate) fn set_tail(&mut self, tail: Option<Part>) {
        self.tail = tail;
    }

    /// What a fold or a hide will be shown as: it was counted when the edit was made.
    pub(crate) fn is_made(&mut self, id: EditId, part: Part) {
        self.made.folds.insert(id, vec![part]);
    }

    /// Shows what log and ledger have beyond what was shown.
    pub(crate) fn follow(&mut self, from: Sources<'_>) {
        let reached = from.first_reached(self.edits_seen).filter(|at| *at < self.shown_end);
        let head_end = from.log.units().get(from.log.leading_system()).map(|unit| unit.span.start);
        let in_head = |at: Position| head_end.is_none_or(|end| at <= end) || self.has_hints;
        let anew = self.changes_seen != from.ledger.changes()
            || from.has_hint_since(self.edits_seen)
            || reached.is_some_and(in_head);
        (self.edits_seen, self.changes_seen) = (from.ledger.next_id(), from.ledger.changes());
        // What stands behind the system prompt moves when another system message joins it.
        let leading = from.log.leading_system();
        let moves = leading != self.leading && self.parts.iter().any(is_of_host);
        self.leading = leading;
        let other_head = self.head_changes != from.log.head_changes();
        self.head_changes = from.log.head_changes();
        if anew || moves || other_head {
            self.rebuild(from);
        } else {
            reached.into_iter().for_each(|at| self.unsettle(from, at));
            let first = self.settled.parts;
            let before = self.parts.split_off(first);
            (self.measure, self.folds) = (self.settled.measure, self.settled.folds);
            self.walk(from);
            self.unchanged = self.unchanged.min(first + common(&before, &self.parts[first..]));
        }
        self.shown_end = from.log.end();
    }

    /// An edit may have changed what is shown from here on.
    fn unsettle(&mut self, from: Sources<'_>, at: Position) {
        let units = from.log.units().partition_point(|unit| unit.span.start < at);
        if units >= self.settled.units {
            return;
        }
        let parts = &self.parts[..self.settled.parts];
        let parts = &parts[..parts.partition_point(|part| part.source.start(from.ledger) < at)];
        let (mut measure, mut folds) = (Measure::default(), Measure::default());
        for part in parts {
            measure += part.measure;
            if part.source.edit().is_some() {
                folds += part.measure;
            }
        }
        self.settled = Settled { units, parts: parts.len(), measure, folds };
    }

    /// The parts from a unit on, made anew.
    pub(crate) fn walked_from(from: Sources<'_>, unit: usize) -> Vec<Part> {
        let mut view = Self { settled: Settled { units: unit, ..Settled::default() }, ..Self::default() };
        view.walk(from);
        view.parts
    }

    fn rebuild(&mut self, from: Sources<'_>) {
        let before = std::mem::take(&mut self.parts);
        (self.measure, self.folds) = (Measure::default(), Measure::default());
        self.settled = Settled::default();
        // The system prompt, where it is a message: nothing stands before it.
        let settled = from.log.leading_system().min(from.log.settled_units());
        (0..settled).for_each(|unit| self.show(from, unit));
        let (note, rules) = (from.ledger.note(), from.ledger.rules());
        self.show_of_host(from, Source::Note, note.zip(Some(from.ledger.note_voice())), &before);
        self.show_of_host(from, Source::Rules, rules.zip(Some(from.ledger.rules_voice())), &before);
        let hints = from.ledger.outermost().filter_map(|(_, id)| from.ledger.get(id));
        let mut seen: HashSet<EditId> = HashSet::new();
        let hints: Vec<&Arc<Edit>> =
            hints.filter(|edit| is_hint(&edit.kind) && seen.insert(edit.id)).collect();
        self.has_hints = !hints.is_empty();
        for edit in hints {
            self.made.fold(edit, from).into_iter().for_each(|part| self.push(part));
        }
        self.settle(settled);
        self.walk(from);
        self.unchanged = self.unchanged.min(common(&before, &self.parts));
    }

    /// Shows a text that stands behind the system prompt, as the message that it was before.
    fn show_of_host(
        &mut self,
        from: Sources<'_>,
        source: Source,
        text: Option<(&str, Option<Voice>)>,
        before: &[Part],
    ) {
        let Some((text, voice)) = text else { return };
        let is_known = |message: &Message| message.voice() == voice && keep::text_of(message) == text;
        let same = |part: &&Part| part.source == source && is_known(&part.message);
        let message = match before.iter().find(same) {
            Some(part) => part.message.clone(),
            None => keep::host_message(text.to_owned(), voice),
        };
        self.push(Part { source, measure: from.meter.message(&message), message });
    }

    /// Shows the units that are not settled.
    fn walk(&mut self, from: Sources<'_>) {
        let units = from.log.units();
        let mut at = self.settled.units;
        while let Some(unit) = units.get(at) {
            self.show_host_notes(from, at);
            if let Some((span, id)) = from.ledger.covering(unit.span.start) {
                if let Some(edit) = from.ledger.get(id).filter(|edit| starts_at(&edit.kind, span.start)) {
                    self.made.fold(edit, from).into_iter().for_each(|part| self.push(part));
                }
                at += units[at..].partition_point(|unit| unit.span.start < span.end);
            } else {
                self.show(from, at);
                at += 1;
            }
            if at <= from.log.settled_units() {
                self.settle(at);
            }
        }
        self.show_host_notes(from, at);
    }

    /// Shows the notes of the host between a unit and the one before it.
    fn show_host_notes(&mut self, from: Sources<'_>, unit: usize) {
        let units = from.log.units();
        let before = unit.checked_sub(1).and_then(|before| units.get(before)).map(|unit| unit.span.start);
        let end = units.get(unit).map_or(Position(u32::MAX), |unit| unit.span.start);
        for (number, note) in from.ledger.host_notes_in(before, end) {
            let (message, measure) = (note.message.clone(), from.meter.message(&note.message));
            self.push(Part { source: Source::HostNote(number), message, measure });
        }
    }

    /// So many units are shown for good.
    fn settle(&mut self, units: usize) {
        let Self { measure, folds, .. } = *self;
        self.settled = Settled { units, parts: self.parts.len(), measure, folds };
    }

    fn show(&mut self, from: Sources<'_>, unit: usize) {
        let unit = &from.log.units()[unit];
        let look = Look::of(from.ledger, unit);
        if look == Look::default() {
            return self.show_parts(from, from.log.show_edited(unit, &|_, _| None));
        }
        // A step that is still open may change with the next result: it is not remembered.
        let settled = from.log.units()[..from.log.settled_units()]
            .last()
            .is_some_and(|last| last.span.start >= unit.span.start);
        if let Some((made_as, parts)) = self.made.units.get(&unit.span.start)
            && settled
            && *made_as == look
        {
            return parts.clone().into_iter().for_each(|part| self.push(part));
        }
        let first = self.parts.len();
        self.show_parts(from, from.log.show_edited(unit, &|at, message| edited(from.ledger, at, message)));
        if settled {
            self.made.units.insert(unit.span.start, (look, self.parts[first..].to_vec()));
        }
    }

    fn show_parts(&mut self, from: Sources<'_>, shown: Vec<Shown>) {
        for shown in shown {
            let (at, message, measure) = match shown {
                Shown::AsIs(at) => (at, from.log.messages()[at.index()].clone(), from.sizes[at.index()]),
                Shown::Made(at, message) => {
                    // A later edition was counted when it came.
                    let edition = from.log.edition_at(at);
                    let measure = match from.sizes.get(edition.index()).filter(|_| edition != at) {
                        Some(size) => *size,
                        None => from.meter.message(&message),
                    };
                    (at, message, measure)
                }
            };
            self.push(Part { source: Source::Message(at), message, measure });
        }
    }

    fn push(&mut self, part: Part) {
        self.measure += part.measure;
        if let Source::Edit(_) = part.source {
            self.folds += part.measure;
        }
        self.parts.push(part);
    }
}

impl Made {
    /// A fold or a hide. Nothing that a fold quotes gains the rank of the system prompt: directly after it the facts alone
    /// stand in the system's place, and the quotes after them in the user's. In the middle of the conversation all of it
    /// stands in the user's place. A provider that refuses user text of ours gets all of it in the system's.
    fn fold(&mut self, edit: &Edit, from: Sources<'_>) -> Vec<Part> {
        let text = edit.kind.text().map(EditText::shared).unwrap_or_default();
        let (user, system) = (Some(Voice::User), Some(Voice::System));
        let voice = from.ledger.voice_of(edit);
        let parts = edit.kind.facts_and_quotes().filter(|_| voice == system);
        let said: Vec<(Arc<str>, Option<Voice>)> = match parts {
            Some(_) if from.ledger.revoiced() == system => vec![(text, voice)],
            Some((facts, quotes)) if !facts.is_empty() && from.follows_system_prompt(edit) => {
                vec![(facts.into(), system), (quotes.into(), user)]
            }
            Some(_) => vec![(text, user)],
            None => vec![(text, voice)],
        };
        let voices = said.iter().map(|(_, voice)| *voice);
        if let Some(parts) = self.folds.get(&edit.id)
            && parts.iter().map(|part| part.message.voice()).eq(voices)
        {
            return parts.clone();
        }
        let parts = said.into_iter().map(|(text, voice)| {
            let message = Arc::new(Message::voiced(Role::Summary, text, voice));
            Part { source: Source::Edit(edit.id), measure: from.meter.message(&message), message }
        });
        let parts: Vec<Part> = parts.collect();
        self.folds.insert(edit.id, parts.clone());
        parts
    }
}

/// How many parts are the same, from the first on.
fn common(before: &[Part], now: &[Part]) -> usize {
    before.iter().zip(now).take_while(|(a, b)| Arc::ptr_eq(&a.message, &b.message)).count()
}

/// The note or the rules.
fn is_of_host(part: &Part) -> bool {
    matches!(part.source, Source::Note | Source::Rules)
}

fn is_head(part: &Part) -> bool {
    is_of_host(part) || part.message.role() == Role::System
}

fn is_hint(kind: &EditKind) -> bool {
    matches!(kind, EditKind::Fold { placement: Placement::SystemHint, .. })
}

/// True if the replacement of the edit stands here.
fn starts_at(kind: &EditKind, at: Position) -> bool {
    match kind {
        EditKind::Fold { spans, placement: Placement::InPlace, .. } | EditKind::Hide { spans, .. } => {
            spans.first().is_some_and(|span| span.start == at)
        }
        EditKind::Fold { placement: Placement::SystemHint, .. }
        | EditKind::Digest { .. }
        | EditKind::Answer { .. }
        | EditKind::DigestArgs { .. }
        | EditKind::DropThinking { .. } => false,
    }
}
