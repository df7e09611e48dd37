//! Loading: a journal is replayed, entry by entry. What no engine writes is refused with a sentence.
//! A journal that was cut short is the journal of an earlier moment: it is taken as it is.

use std::sync::Arc;

use super::journal::{self, Entry, Journal};
use super::sizes::Snapshot;
use super::state::{LostText, State};
use super::{Cursor, Session};
use crate::conversation::log::{Log, Position, Span};
use crate::edits::archive::{Archive, Handle};
use crate::edits::edit::{Edit, EditId, Why};
use crate::edits::ledger::{Ledger, nests};
use crate::policy::profile::Profile;

/// Why a session cannot be loaded: its journal is not one that was saved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The first entry is missing.
    #[error("the journal does not begin with its first entry")]
    NoBeginning,
    /// A later version of the engine wrote it.
    #[error("the journal has version {0}; this engine reads up to version {VERSION}", VERSION = journal::VERSION)]
    Version(u32),
    /// An entry is missing, or stands twice.
    #[error("entry {at} of the journal has edit {} where edit {} should be", .found.0, .expected.0)]
    OutOfOrder {
        /// The number of the entry.
        at: usize,
        /// The edit that stands there.
        found: EditId,
        /// The one that should.
        expected: EditId,
    },
    /// A line that is no entry.
    #[error("entry {at} of the journal cannot be read: {problem}")]
    Line {
        /// The number of the entry.
        at: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// The text of an edit that is shown is not in the store.
    #[error("the text {handle} of edit {} is not in the store", .edit.0)]
    Lost {
        /// Which edit.
        edit: EditId,
        /// The handle of its text.
        handle: Handle,
    },
    /// An edit that no engine makes.
    #[error("entry {at} of the journal: edit {} {problem}", .edit.0)]
    Edit {
        /// The number of the entry.
        at: usize,
        /// Which edit.
        edit: EditId,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Thinking went from messages that are not there.
    #[error("entry {at} of the journal takes thinking from messages that are not there")]
    Thinking {
        /// The number of the entry.
        at: usize,
    },
    /// A summary was asked for of messages that are not there.
    #[error("entry {at} of the journal: job {job} covers messages that are not there")]
    Job {
        /// The number of the entry.
        at: usize,
        /// Which job.
        job: u64,
    },
}

/// What is known beside the journal when a session is loaded. All of it may be missing.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// Sizes of messages, which are not counted again.
    pub sizes: Vec<Snapshot>,
    /// Where texts are that are not in the journal.
    pub store: Option<Arc<dyn Archive>>,
}

impl Session {
    /// The session of a journal. What no engine wrote is refused. An operation that the journal was cut
    /// off in is finished: entries may be appended, which a store finds behind its own cursor.
    pub fn load(profile: Profile, entries: impl IntoIterator<Item = Entry>) -> Result<Self, LoadError> {
        Self::load_with(profile, entries, Known::default())
    }

    /// The same with what is known beside it.
    pub fn load_with(
        profile: Profile,
        entries: impl IntoIterator<Item = Entry>,
        known: Known,
    ) -> Result<Self, LoadError> {
        let mut journal = Journal::default();
        entries.into_iter().for_each(|entry| journal.append(entry));
        let model = match journal.get(Cursor(0)) {
            Some(Entry::Began { version, .. }) if *version > journal::VERSION => {
                return Err(LoadError::Version(*version));
            }
            Some(Entry::Began { model, .. }) => model.clone(),
            _ => return Err(LoadError::NoBeginning),
        };
        let mut state = State::new(model, known.sizes);
        let mut number = 0;
        state.replay(journal.since(Cursor(0)), known.store.as_deref(), |state, entry| {
            number += 1;
            check(number - 1, entry, &state.log, &state.ledger)
        })?;
        let mut session = Self { store: known.store, ..Self::of(profile, journal, state) };
        session.finish();
        session.look();
        Ok(session)
    }

    /// Ends what the journal was cut off in: a message whose result was to enter shorter, a switch of
    /// models that was to leave reasoning out. Both are functions of what is there.
    fn finish(&mut self) {
        let Some(last) = self.log().end().0.checked_sub(1).map(Position) else { return };
        let of_last = |entry: &Entry| {
            let Entry::Edit(edit) = entry else { return false };
            edit.why == Why::Entry && edit.kind.spans() == [Span::new(last.0, last.0 + 1)]
        };
        let behind = || self.journal.since(self.journal.before(last)).skip(1);
        let (none, entry_edits) = (behind().next().is_none(), behind().all(of_last));
        if none {
            self.entered(last);
        } else if entry_edits {
            self.enter_results(last);
        }
        self.mind_seals();
    }
}

impl From<LostText> for LoadError {
    fn from(LostText { edit, handle }: LostText) -> Self {
        Self::Lost { edit, handle }
    }
}

/// What no engine writes would break a rule, or worse.
pub(super) fn check(at: usize, entry: &Entry, log: &Log, ledger: &Ledger) -> Result<(), LoadError> {
    match entry {
        Entry::Began { .. } if at > 0 => Err(LoadError::NoBeginning),
        Entry::Edit(edit) => {
            let expected = ledger.next_id();
            if edit.id != expected {
                return Err(LoadError::OutOfOrder { at, found: edit.id, expected });
            }
            let problem = problem_of(edit, log, ledger);
            problem.map_or(Ok(()), |problem| Err(LoadError::Edit { at, edit: edit.id, problem }))
        }
        Entry::Undo { edit, .. } | Entry::Redo { edit } if *edit >= ledger.next_id() => {
            Err(LoadError::Edit { at, edit: *edit, problem: "is not there" })
        }
        Entry::Unbound(unbound) if unbound.span.is_empty() || unbound.span.end > log.end() => {
            Err(LoadError::Thinking { at })
        }
        Entry::JobOpened(question) if question.spans.iter().any(|span| span.end > log.end()) => {
            Err(LoadError::Job { at, job: question.id })
        }
        _ => Ok(()),
    }
}

fn problem_of(edit: &Edit, log: &Log, ledger: &Ledger) -> Option<&'static str> {
    let spans = edit.kind.spans();
    if spans.is_empty() || spans.iter().any(|span| span.is_empty()) {
        return Some("covers nothing");
    }
    if spans.iter().any(|span| span.end > log.end()) {
        return Some("covers messages that are not there");
    }
    // More than one could name each other without end.
    if edit.originals.len() != 1 {
        return Some("has not one original");
    }
    let starts = |at: Position| log.unit_of(at).is_none_or(|unit| unit.span.start == at);
    let cuts = |span: &Span| !starts(span.start) || !starts(span.end);
    if edit.kind.replaces_runs() && spans.iter().any(cuts) {
        return Some("begins or ends inside a step");
    }
    let across = |span: &Span| {
        let mut others = ledger.overlapping(*span).filter_map(|(_, id)| ledger.get(id));
        others.any(|other| !nests(&edit.kind, &other.kind))
    };
    (edit.kind.replaces_runs() && spans.iter().any(across)).then_some("cuts across another")
}
