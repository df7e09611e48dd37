//! The ledger: the edits of a journal, and what became of them. Edits are applied, undone and
//! redone by entries; which edits are active, and which is outermost, follows from them. Spans of active edits are nested or disjoint, and the outermost shows.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::conversation::log::{Position, Span};
use crate::conversation::message::Message;
use crate::edits::archive::Handle;
use crate::edits::edit::{Edit, EditId, EditKind, EditText, Why};
use crate::edits::unbound::{Runs, Unbound};
use crate::edits::voice::Voice;
use crate::session::journal::Entry;
use crate::view::keep::{self, KeepKey, Kept};

/// What became of an edit.
#[derive(Debug, Clone)]
struct Standing {
    edit: Arc<Edit>,
    active: bool,
    held: bool,
}

/// A part of a run of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stretch {
    /// A fold or a hide that stands in the place of what it covers.
    Edit(EditId),
    /// Messages that no fold and no hide has taken.
    Messages(Span),
}

/// Why an edit cannot be undone or redone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// There is no such edit.
    #[error("there is no edit {}", .0.0)]
    Unknown(EditId),
    /// It is in that state already.
    #[error("edit {} is {state} already", .edit.0)]
    Already {
        /// Which.
        edit: EditId,
        /// `active` or `undone`.
        state: &'static str,
    },
    /// A text that would be shown is not in the store.
    #[error("the text {handle} of edit {} is not in the store", .edit.0)]
    Lost {
        /// Which.
        edit: EditId,
        /// The handle of its text.
        handle: Handle,
    },
    /// What it covers must stay now, or is not there.
    #[error("edit {} cannot be made again: what it covers must stay now", .0.0)]
    Protected(EditId),
    /// An edit that was made since stands in its way.
    #[error("edit {} cannot be made again: edit {} was made since and stands in its way", .edit.0, .other.0)]
    InTheWay {
        /// Which.
        edit: EditId,
        /// The other one.
        other: EditId,
    },
}

/// A note of the host that stays where it was sent.
#[derive(Debug, Clone)]
pub(crate) struct HostNote {
    /// It stands before this message.
    pub(crate) at: Position,
    pub(crate) message: Arc<Message>,
    /// The items that it states.
    pub(crate) kept: Vec<Kept>,
    /// Later notes state all its items again, and an edit has changed what stands before it.
    dropped: bool,
}

/// The edits of a journal and what became of them.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    edits: Vec<Standing>,
    /// Active edits inside messages, oldest first.
    inside: HashMap<Position, Vec<EditId>>,
    /// Outermost active spans, by their start.
    outer: BTreeMap<Position, (Position, EditId)>,
    note: Option<Arc<str>>,
    rules: Option<Arc<str>>,
    note_voice: Option<Voice>,
    rules_voice: Option<Voice>,
    /// The voice of all texts, since the provider refused them in another.
    revoiced: Option<Voice>,
    /// Notes of the host that stay where they were sent, in order.
    host_notes: Vec<HostNote>,
    /// Where signed thinking is gone for good.
    unbound: Vec<Arc<Unbound>>,
    unbound_runs: Runs,
    /// What stays of it.
    excerpts: HashMap<(Position, usize), Arc<str>>,
    /// Edits that a person took back: few.
    held: Vec<EditId>,
    /// How often anything but a new edit changed what is shown: an undo, a redo, another note, other rules.
    changes: usize,
    /// How often an edit was made again.
    redone: usize,
}

impl Ledger {
    /// What the profile tells the model.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The rules that stand before the history, as they were in force when they were last written there.
    pub fn rules(&self) -> Option<&str> {
        self.rules.as_deref().filter(|rules| !rules.is_empty())
    }

    /// The voice of the note.
    pub(crate) fn note_voice(&self) -> Option<Voice> {
        self.revoiced.or(self.note_voice)
    }

    /// The voice of the rules.
    pub(crate) fn rules_voice(&self) -> Option<Voice> {
        self.revoiced.or(self.rules_voice)
    }

    /// The voice of the text of an edit.
    pub(crate) fn voice_of(&self, edit: &Edit) -> Option<Voice> {
        self.revoiced.or(edit.voice)
    }

    /// The voice that all texts have, since the provider refused them in another.
    pub(crate) fn revoiced(&self) -> Option<Voice> {
        self.revoiced
    }

    /// Notes of the host that may be shown, with their numbers, in order.
    pub(crate) fn host_notes(&self) -> impl DoubleEndedIterator<Item = (usize, &HostNote)> {
        self.host_notes.iter().enumerate().filter(|(_, note)| self.is_shown(note))
    }

    /// Those behind the message at `after` (all from the first on, if it is none), and not behind the one at `upto`.
    pub(crate) fn host_notes_in(
        &self,
        after: Option<Position>,
        upto: Position,
    ) -> impl Iterator<Item = (usize, &HostNote)> {
        let first = after.map_or(0, |after| self.host_notes.partition_point(|note| note.at <= after));
        let end = self.host_notes.partition_point(|note| note.at <= upto);
        let shown = move |number: usize| {
            let note = &self.host_notes[number];
            self.is_shown(note).then_some((number, note))
        };
        (first..end).filter_map(shown)
    }

    fn is_shown(&self, note: &HostNote) -> bool {
        let before = note.at.0.checked_sub(1).map(Position);
        !note.dropped && before.is_none_or(|at| self.covering(at).is_none())
    }

    /// A note of the host by its number.
    pub(crate) fn host_note(&self, number: usize) -> Option<&HostNote> {
        self.host_notes.get(number)
    }

    /// The newest note that is shown and states this item.
    pub(crate) fn newest_note_of(&self, key: &KeepKey) -> Option<&Kept> {
        let mut newest = self.host_notes().rev();
        newest.find_map(|(_, note)| note.kept.iter().find(|kept| kept.key == *key))
    }

    /// All that is known of signed thinking that is gone for good, in the order it went.
    pub fn unbound(&self) -> impl Iterator<Item = &Unbound> {
        self.unbound.iter().map(|unbound| &**unbound)
    }

    /// True if signed thinking of a message is gone for good.
    pub fn is_unbound(&self, at: Position) -> bool {
        self.unbound_runs.contains(at)
    }

    /// What stays of a block of thinking that is gone.
    pub(crate) fn excerpt(&self, at: Position, block: usize) -> Option<&Arc<str>> {
        self.excerpts.get(&(at, block))
    }

    /// True if all messages are shown as they came, with nothing of the host among them.
    pub fn is_untouched(&self) -> bool {
        let hosts = self.note.is_some() || self.rules().is_some() || !self.host_notes.is_empty();
        !hosts && self.unbound_runs.is_empty() && !self.edits().any(|(_, active)| active)
    }

    /// How often anything but a new edit changed what is shown.
    pub(crate) fn changes(&self) -> usize {
        self.changes
    }

    /// How often an edit was made again.
    pub(crate) fn redone(&self) -> usize {
        self.redone
    }

    /// All edits ever made, in order; true if active.
    pub fn edits(&self) -> impl Iterator<Item = (&Arc<Edit>, bool)> {
        self.edits.iter().map(|state| (&state.edit, state.active))
    }

    /// The edits from a number on. Costs nothing for those before.
    pub(crate) fn edits_since(&self, first: EditId) -> impl Iterator<Item = (&Arc<Edit>, bool)> {
        let new = self.edits.get(first.0 as usize..).unwrap_or_default();
        new.iter().map(|state| (&state.edit, state.active))
    }

    /// An edit.
    pub fn get(&self, id: EditId) -> Option<&Arc<Edit>> {
        self.edits.get(id.0 as usize).map(|state| &state.edit)
    }

    /// True if the edit holds now.
    pub fn is_active(&self, id: EditId) -> bool {
        self.edits.get(id.0 as usize).is_some_and(|state| state.active)
    }

    /// The number of the next edit.
    pub fn next_id(&self) -> EditId {
        EditId(u32::try_from(self.edits.len()).unwrap_or(u32::MAX))
    }

    /// Active edits inside a message, oldest first.
    pub fn inside(&self, at: Position) -> &[EditId] {
        self.inside.get(&at).map_or(&[], Vec::as_slice)
    }

    /// The text or arguments that the newest active edit shows in the place of a block.
    pub fn shown(&self, at: Position, block: usize) -> Option<&str> {
        self.inside(at).iter().rev().filter_map(|id| self.get(*id)).find_map(|edit| match &edit.kind {
            EditKind::Digest { block: b, text, .. } | EditKind::Answer { block: b, text, .. }
                if *b == block =>
            {
                Some(&**text)
            }
            EditKind::DigestArgs { block: b, arguments, .. } if *b == block => Some(arguments.as_str()),
            _ => None,
        })
    }

    /// The text by which the host answers in the place of a block, if it does.
    pub fn answer(&self, at: Position, block: usize) -> Option<&str> {
        self.inside(at).iter().rev().filter_map(|id| self.get(*id)).find_map(|edit| match &edit.kind {
            EditKind::Answer { block: b, text: EditText::Here(text), .. } if *b == block => Some(&**text),
            _ => None,
        })
    }

    /// The handles of all texts by which the host answers inside a run.
    pub(crate) fn answers_in(&self, run: Span) -> impl Iterator<Item = Handle> {
        let edits =
            run.range().flat_map(|at| self.inside(Position(at as u32))).filter_map(|id| self.get(*id));
        edits.filter_map(|edit| match &edit.kind {
            EditKind::Answer { text, .. } => Some(text.handle()),
            _ => None,
        })
    }

    /// True if an active edit dropped the thinking of a message.
    pub fn dropped_thinking(&self, at: Position) -> bool {
        let edits = self.inside(at).iter().filter_map(|id| self.get(*id));
        edits.into_iter().any(|edit| matches!(edit.kind, EditKind::DropThinking { .. }))
    }

    /// The outermost edit whose span holds the message, with that span.
    pub fn covering(&self, at: Position) -> Option<(Span, EditId)> {
        let (start, (end, id)) = self.outer.range(..=at).next_back()?;
        (*end > at).then_some((Span { start: *start, end: *end }, *id))
    }

    /// Outermost spans that overlap this one, in order.
    pub fn overlapping(&self, span: Span) -> impl Iterator<Item = (Span, EditId)> + '_ {
        let first = self.covering(span.start).map_or(span.start, |(outer, _)| outer.start);
        self.outer
            .range(first..span.end.max(first))
            .map(|(start, (end, id))| (Span { start: *start, end: *end }, *id))
    }

    /// All outermost spans, in order.
    pub fn outermost(&self) -> impl Iterator<Item = (Span, EditId)> + '_ {
        self.outer.iter().map(|(start, (end, id))| (Span { start: *start, end: *end }, *id))
    }

    /// What a run of the log holds as it is shown now, in order.
    pub(crate) fn stretches(&self, run: Span) -> Vec<Stretch> {
        let mut stretches = Vec::new();
        let mut at = run.start;
        while at < run.end {
            at = match self.covering(at) {
                Some((outer, id)) => {
                    let first = self.get(id).and_then(|edit| edit.kind.spans().first().copied());
                    // An edit of several runs stands at its first.
                    if first.is_some_and(|first| first.start == outer.start) {
                        stretches.push(Stretch::Edit(id));
                    }
                    outer.end
                }
                None => {
                    let next = self.outer.range(at..run.end).next().map_or(run.end, |(start, _)| *start);
                    stretches.push(Stretch::Messages(Span { start: at, end: next }));
                    next
                }
            };
        }
        stretches
    }

    /// True if a person took back an edit of this message and wants it so.
    pub fn is_held(&self, at: Position) -> bool {
        self.held_spans().any(|span| span.contains(at))
    }

    /// True if an edit that is held takes in any of these messages.
    pub(crate) fn holds(&self, run: Span) -> bool {
        self.held_spans().any(|span| span.overlaps(run))
    }

    fn held_spans(&self) -> impl Iterator<Item = Span> {
        self.held.iter().filter_map(|id| self.get(*id)).flat_map(|edit| edit.kind.spans())
    }

    /// True if any edit is held at all.
    pub fn holds_any(&self) -> bool {
        !self.held.is_empty()
    }

    /// Takes in an entry of the journal. The guard has let it through, or it is loaded.
    pub(crate) fn apply(&mut self, entry: &Entry, end: Position) {
        match entry {
            Entry::Edit(edit) => {
                self.drop_restated(edit);
                self.edits.push(Standing { edit: edit.clone(), active: true, held: false });
                self.show(edit);
            }
            Entry::Undo { edit, held } => self.turn(*edit, false, *held),
            Entry::Redo { edit } => {
                self.turn(*edit, true, false);
                self.redone += 1;
            }
            Entry::Voiced(voice) => {
                self.revoiced = Some(*voice);
                for note in &mut self.host_notes {
                    note.message = keep::host_message(keep::text_of(&note.message), Some(*voice));
                }
                self.changes += 1;
            }
            Entry::NoteShown { text, voice } => {
                self.note = text.clone();
                self.note_voice = *voice;
                self.changes += 1;
            }
            Entry::RulesShown { text, voice } => {
                self.rules = Some(text.clone());
                self.rules_voice = *voice;
                self.changes += 1;
            }
            Entry::HostNote { text, kept, voice } => {
                let message = keep::host_message(text.to_string(), self.revoiced.or(*voice));
                self.host_notes.push(HostNote { at: end, message, kept: kept.clone(), dropped: false });
            }
            Entry::Unbound(unbound) => {
                self.unbound_runs.add(unbound.span);
                for lost in &unbound.lost {
                    let excerpts = lost.excerpts.iter();
                    self.excerpts.extend(excerpts.map(|e| ((lost.at, e.block), e.text.clone())));
                }
                self.unbound.push(unbound.clone());
                self.changes += 1;
            }
            _ => {}
        }
    }

    /// Drops notes after an edit whose items later notes state again: what follows the edit is billed again anyway.
    fn drop_restated(&mut self, edit: &Edit) {
        let breaks = match edit.why {
            Why::Entry | Why::Host | Why::Switched | Why::Refused => false,
            Why::Rule | Why::Forced(_) | Why::Cold | Why::PaysBack | Why::Asked => true,
        };
        if !breaks || matches!(edit.kind, EditKind::DropThinking { .. }) {
            return;
        }
        let Some(start) = edit.kind.spans().first().map(|span| span.start) else { return };
        let mut restated: Vec<KeepKey> = Vec::new();
        for note in self.host_notes.iter_mut().rev().take_while(|note| note.at > start) {
            note.dropped |= note.kept.iter().all(|kept| restated.contains(&kept.key));
            if !note.dropped {
                restated.extend(note.kept.iter().map(|kept| kept.key.clone()));
            }
        }
    }

    fn turn(&mut self, edit: EditId, active: bool, held: bool) {
        self.changes += 1;
        let Some(standing) = self.edits.get_mut(edit.0 as usize) else { return };
        (standing.active, standing.held) = (active, held);
        if standing.edit.kind.replaces_runs() {
            return self.reindex();
        }
        // A switch of models turns thousands of these.
        for at in standing.edit.kind.spans().into_iter().map(|span| span.start) {
            let here = self.inside.entry(at).or_default();
            here.retain(|other| *other != edit);
            if active {
                here.insert(here.partition_point(|other| *other < edit), edit);
            }
        }
        self.held.retain(|other| *other != edit);
        if held {
            self.held.insert(self.held.partition_point(|other| *other < edit), edit);
        }
    }

    /// Active edits that are shown and whose texts are with a store.
    pub(crate) fn texts_apart(&self) -> Vec<(EditId, Handle)> {
        let apart = |id: EditId| match self.get(id)?.kind.text()? {
            EditText::Apart { apart } => Some((id, *apart)),
            EditText::Here(_) => None,
        };
        let inside = self.inside.iter().filter(|(at, _)| self.covering(**at).is_none());
        let shown = self.outermost().map(|(_, id)| id).chain(inside.flat_map(|(_, ids)| ids.iter().copied()));
        let mut found: Vec<(EditId, Handle)> = shown.filter_map(apart).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The text of an edit came from the store.
    pub(crate) fn fetched(&mut self, id: EditId, text: &str) {
        let standing = self.edits.get_mut(id.0 as usize);
        let kept = standing.and_then(|standing| Arc::make_mut(&mut standing.edit).kind.text_mut());
        kept.into_iter().for_each(|kept| *kept = text.into());
    }

    /// Puts an active edit into the indices.
    fn show(&mut self, edit: &Edit) {
        match &edit.kind {
            EditKind::Digest { at, .. }
            | EditKind::DigestArgs { at, .. }
            | EditKind::DropThinking { at }
            | EditKind::Answer { at, .. } => {
                self.inside.entry(*at).or_default().push(edit.id);
            }
            EditKind::Fold { spans, .. } | EditKind::Hide { spans, .. } => {
                for span in spans {
                    let stays = |(outer, id): (Span, EditId)| {
                        let further = || self.get(id).is_some_and(|o| reaches_beyond(&o.kind, &edit.kind));
                        outer.end >= span.end && (outer != *span || further())
                    };
                    if self.covering(span.start).is_some_and(stays) {
                        continue;
                    }
                    let inner: Vec<Position> =
                        self.outer.range(span.start..span.end).map(|(start, _)| *start).collect();
                    inner.iter().for_each(|start| _ = self.outer.remove(start));
                    self.outer.insert(span.start, (span.end, edit.id));
                }
            }
        }
    }

    /// After an undo or redo, which are rare: the indices from all active edits.
    fn reindex(&mut self) {
        self.inside.clear();
        self.outer.clear();
        let active: Vec<Arc<Edit>> = self.edits.iter().filter(|s| s.active).map(|s| s.edit.clone()).collect();
        active.iter().for_each(|edit| self.show(edit));
        self.held = self.edits.iter().filter(|state| state.held).map(|state| state.edit.id).collect();
    }

    /// What must be undone with this edit: those that were made from it, and itself last.
    pub fn dependents(&self, id: EditId) -> Result<Vec<EditId>, LedgerError> {
        let state = self.edits.get(id.0 as usize).ok_or(LedgerError::Unknown(id))?;
        if !state.active {
            return Err(LedgerError::Already { edit: id, state: "undone" });
        }
        let mut gone = vec![id];
        // Later edits alone can depend on earlier ones: one pass finds all.
        for state in &self.edits[id.0 as usize..] {
            if state.active && state.edit.depends.iter().any(|on| gone.contains(on)) {
                gone.push(state.edit.id);
            }
        }
        gone.reverse();
        Ok(gone)
    }

    /// Checks that an undone edit can be made again.
    pub fn can_redo(&self, id: EditId) -> Result<(), LedgerError> {
        let state = self.edits.get(id.0 as usize).ok_or(LedgerError::Unknown(id))?;
        if state.active {
            return Err(LedgerError::Already { edit: id, state: "active" });
        }
        let across = self
            .edits()
            .filter(|(_, active)| *active)
            .find(|(other, _)| !nests(&state.edit.kind, &other.kind));
        match across {
            Some((other, _)) => Err(LedgerError::InTheWay { edit: id, other: other.id }),
            None => Ok(()),
        }
    }
}

/// True if an edit has runs that are not inside those of another.
pub(crate) fn reaches_beyond(edit: &EditKind, other: &EditKind) -> bool {
    let others = other.spans();
    let inside = |run: &Span| others.iter().any(|o| o.start <= run.start && run.end <= o.end);
    !edit.spans().iter().all(inside)
}

/// True if two edits are disjoint, or one is wholly inside a run of the other.
pub(crate) fn nests(a: &EditKind, b: &EditKind) -> bool {
    let (a, b) = (a.spans(), b.spans());
    let overlap = |x: &Span, y: &Span| x.overlaps(*y);
    let holds = |outer: &Span, inner: &Span| outer.start <= inner.start && inner.end <= outer.end;
    let disjoint = !a.iter().any(|x| b.iter().any(|y| overlap(x, y)));
    let inside = |inner: &[Span], outer: &[Span]| inner.iter().all(|x| outer.iter().any(|y| holds(y, x)));
    disjoint || inside(&a, &b) || inside(&b, &a)
}
