//! A session: one conversation on its way through its window. Messages come in by `push`, what is
//! to be sent goes out by `prepare` and `outgoing`, what the provider reported comes back by
//! `observe`. Sans-I/O: time and text are passed in; what needs the outside is returned as a job.
//!
//! A session is its [`journal`]; everything else is a fold of it or a memo of that fold.
//!
//! | what | where |
//! |---|---|
//! | entries, and how they are stored and loaded | `journal`, `loading`, `retracing`, `forking`, `checkpoints` |
//! | the fold, part by part | `state`: `limits`, `sizes`, `requests`, `progress`, `authors`, `binding` |
//! | decisions, each of which ends as an entry | `entering` (`push`), `compaction` (`prepare`), `jobs` (`resolve`), `folding`, `editing`, `switching`, `undoing`, `voices` |
//! | what a host says and hears | `host_facts`, `reports`, `prepared`, `notice`, `reading`, `sent_by_host` |
//! | memos: view and keep set | `following` |

mod authors;
mod binding;
mod carrying;
mod chaining;
mod checkpoints;
mod compaction;
mod editing;
mod entering;
mod folding;
mod following;
mod forking;
mod host_facts;
mod jobs;
pub mod journal;
mod limits;
mod loading;
mod notice;
mod prepared;
mod progress;
mod reading;
mod reports;
mod requests;
mod retracing;
mod room;
mod sent_by_host;
mod sizes;
mod state;
mod switching;
mod undoing;
mod voices;

use std::sync::Arc;

use crate::conversation::frame::Frame;
use crate::conversation::log::Log;
use crate::conversation::message::Time;
use crate::edits::archive::Archive;
use crate::edits::edit::EditKind;
use crate::edits::ledger::Ledger;
use crate::edits::voice::Voice;
use crate::policy::breaker::Tripped;
use crate::policy::profile::Profile;
use crate::policy::strategy::RulesSeen;
use crate::policy::task::Work;
use crate::size::budget::Budget;
use crate::size::meter::{Measure, Meter};
use crate::size::models::Model;
use crate::size::tokens::{Count, Tokens};
use crate::summary::uses::Uses;
use crate::view::cache::Sent;
use crate::view::keep::KeepSet;
use crate::view::{Outgoing, View};

use checkpoints::Checkpoints;
use journal::{Counting, Cursor, Entry, Journal, Ticket};
pub use loading::{Known, LoadError};
pub use notice::{Cramped, Notice, Stays};
pub use prepared::{PrepareError, Prepared, TooLarge};
pub use reading::Found;
pub use reports::Overflow;
pub use sizes::Snapshot;
use state::State;

/// One conversation.
///
/// ```
/// use longhaul::{Message, Models, Prepared, Profile, Session, Tokens};
///
/// let model = Models::builtin().find("claude-sonnet-4-5").clone();
/// let mut session = Session::new(Profile::longhaul(), model).with_window(Tokens(8_000));
/// session.push(Message::user("Why does the build fail?"));
/// match session.prepare(None)? {
///     Prepared::Send(ticket) => assert_eq!((ticket.0, session.outgoing().parts.len()), (1, 1)),
///     Prepared::Summarise(job) => unreachable!("the extractor asks for none: {job:?}"),
/// }
/// # Ok::<(), longhaul::PrepareError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Session {
    profile: Profile,
    journal: Journal,
    state: State,
    /// What must be kept, as log and ledger say.
    keep: KeepSet,
    /// What the log says of names and files.
    uses: Uses,
    /// What the log says of the kind of work, up to the last compaction.
    work: Work,
    /// How far rules of the profile have looked: what they need not look at again.
    rules_seen: RulesSeen,
    /// The view is as the last `prepare` left it, within the limits of then.
    prepared: bool,
    notices: Vec<Notice>,
    /// The frame that the host set last, where it makes the prompt of this version: what is of the request
    /// alone is in no journal.
    newest_frame: Option<(usize, Frame)>,
    checkpoints: Checkpoints,
    /// Where texts are that the session itself does not have.
    store: Option<Arc<dyn Archive>>,
    /// What the client has taken away of the conversation itself, as its newest request shows.
    taken_away: Measure,
    /// The voice that new texts have, where the host knows which one the provider takes.
    known_voice: Option<Voice>,
}

impl Session {
    /// An empty session for a model.
    pub fn new(profile: Profile, model: Model) -> Self {
        let model = Arc::new(model);
        let mut journal = Journal::default();
        journal.append(Entry::Began { version: journal::VERSION, model: model.clone() });
        Self::of(profile, journal, State::new(model, Vec::new()))
    }

    fn of(profile: Profile, journal: Journal, state: State) -> Self {
        Self {
            profile,
            journal,
            state,
            keep: KeepSet::default(),
            uses: Uses::default(),
            work: Work::default(),
            rules_seen: RulesSeen::default(),
            prepared: false,
            notices: Vec::new(),
            newest_frame: None,
            checkpoints: Checkpoints::default(),
            store: None,
            taken_away: Measure::default(),
            known_voice: None,
        }
    }

    /// With another window than the model's.
    pub fn with_window(mut self, window: Tokens) -> Self {
        self.set_window(window);
        self
    }

    /// Goes by another profile from here on, as if the session were loaded with it. What was done stays done.
    pub fn set_profile(&mut self, profile: Profile) {
        self.profile = profile;
        // They go by the names that the profile knows of tools.
        (self.uses, self.work) = (Uses::default(), Work::default());
        self.rules_seen = RulesSeen::default();
        self.prepared = false;
    }

    /// With another meter than the model's own.
    pub fn with_meter(mut self, meter: Meter) -> Self {
        self.record(Entry::Counted(match meter.calibration() {
            None => Counting::Neutral,
            Some(calibration) => Counting::Model(calibration.clone()),
        }));
        self
    }

    /// With a store that `recall`, `undo` and `redo` ask for texts that the session itself does not have.
    /// Texts that were kept apart from the journal are needed when it is loaded: see [`Known`].
    pub fn with_store(mut self, store: Arc<dyn Archive>) -> Self {
        self.store = Some(store);
        self
    }

    /// Makes something happen: the only way that what is journalled changes.
    fn record(&mut self, entry: Entry) {
        self.prepared = false;
        let counted_by = self.meter().way();
        self.state.apply(&entry);
        // It shows text that the rules of the profile have not looked at.
        let uncovers = match &entry {
            Entry::Undo { .. } | Entry::Redo { .. } => true,
            Entry::Edit(edit) => matches!(edit.kind, EditKind::Answer { .. }),
            _ => false,
        };
        // What saves nothing where tokens are counted in one way may save something in another.
        if uncovers || self.meter().way() != counted_by {
            self.rules_seen = RulesSeen::default();
        }
        self.journal.append(entry);
    }

    /// All that happened.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The place behind the newest entry of the journal.
    pub fn cursor(&self) -> Cursor {
        self.journal.end()
    }

    /// What happened since: what a store appends.
    ///
    /// ```
    /// use longhaul::{Message, Models, Profile, Session};
    /// use longhaul::session::journal::{Cursor, Entry};
    ///
    /// let mut session = Session::new(Profile::longhaul(), Models::builtin().find("gpt-4o").clone());
    /// session.push(Message::user("Hello."));
    /// let lines: Vec<String> =
    ///     session.since(Cursor(0)).map(|entry| serde_json::to_string(entry).unwrap()).collect();
    ///
    /// let entries = lines.iter().map(|line| serde_json::from_str::<Entry>(line).unwrap());
    /// let loaded = Session::load(Profile::longhaul(), entries)?;
    /// assert_eq!(loaded.log().messages(), session.log().messages());
    /// # Ok::<(), longhaul::LoadError>(())
    /// ```
    pub fn since(&self, cursor: Cursor) -> impl Iterator<Item = &Entry> {
        self.journal.since(cursor)
    }

    /// Sizes of messages, so that they need not be counted again when the journal is loaded. One for
    /// each way to count that was used.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        self.state.sizes.snapshots()
    }

    /// The size of the next request as far as it is prepared.
    pub fn size(&self) -> Count {
        self.meter().estimate(self.state.view.measure())
    }

    /// The size of the whole log as it came, with system prompt and tools: what a request would be if nothing
    /// were ever taken out here. What the client itself has taken away is not in it (see
    /// [`set_taken_away`](Self::set_taken_away)).
    pub fn full(&self) -> Measure {
        self.state.view.fixed().measure + (self.state.sizes.total() - self.taken_away)
    }

    /// What is to be sent, as the last `prepare` made it. Right after a load, a fork or a switch it is
    /// what would be shown, whatever its size.
    pub fn outgoing(&self) -> Outgoing<'_> {
        let view = &self.state.view;
        let newest = self.newest_frame.as_ref();
        let newest = newest.filter(|(version, _)| *version == self.log().frame_version());
        Outgoing {
            frame: newest.map(|(_, frame)| frame).or(self.log().frame()),
            parts: view.parts(),
            tail: view.tail(),
            ends: view.stable_ends(),
            shorter_answer: self.shorter_answer(),
        }
    }

    /// The window in which the provider wants prompt and allowed answer together, if it does.
    pub fn shared_window(&self) -> Option<Tokens> {
        self.state.limits.shared_window()
    }

    /// What the request may allow its answer, if the provider refuses what it asks for: prompt and answer
    /// together pass the window.
    pub fn shorter_answer(&self) -> Option<Tokens> {
        self.state.limits.shorter_answer(self.size().tokens)
    }

    /// The view of the last `prepare`, whether or not it fits.
    pub fn view(&self) -> &View {
        &self.state.view
    }

    /// What sending the last request cost.
    pub fn sent(&self) -> Option<Sent> {
        self.state.requests.last.map(|last| Sent { billed: last.billed, broke: last.broke, cold: last.cold })
    }

    /// The request that was sent last.
    pub fn last_ticket(&self) -> Option<Ticket> {
        self.state.requests.last.map(|last| last.ticket)
    }

    /// Why compaction is stopped, if it is.
    pub fn stopped(&self) -> Option<&Tripped> {
        self.state.progress.breaker.why(self.state.requests.calls, self.size().tokens)
    }

    /// The log.
    pub fn log(&self) -> &Log {
        &self.state.log
    }

    /// The ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.state.ledger
    }

    /// The size of each message of the log.
    pub fn sizes(&self) -> &[Measure] {
        self.state.sizes.all()
    }

    /// The meter.
    pub fn meter(&self) -> &Meter {
        &self.state.sizes.meter
    }

    /// The limits.
    pub fn budget(&self) -> Budget {
        let budget = self.state.limits.budget(&self.profile);
        let system = || self.tokens(self.state.system_layer());
        if self.profile.shares_are_of_room() {
            budget.in_room(system(), self.profile.shares)
        } else if self.profile.triggers.messages_alone {
            budget.beside(system())
        } else {
            budget
        }
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.state.limits.model
    }

    /// The profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Tokens of the model for something that was counted.
    fn tokens(&self, measure: Measure) -> Tokens {
        self.meter().tokens(measure).tokens
    }

    /// True if the provider's cache has lost the prefix by `now`.
    fn is_cold(&self, now: Option<Time>) -> bool {
        self.state.requests.cache.is_cold(now, &self.state.cache_rule())
    }
}
