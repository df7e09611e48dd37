//! A session: one conversation on its way through its window. Messages come in by `push`, what is
//! to be sent goes out by `prepare` and `outgoing`, what the provider reported comes back by
//! `observe`. Sans-I/O: time and text are passed in; what needs the outside is returned as a job.
//!
//! A session is its [`journal`]; everything else is a fold of it (`state`) or a memo of that fold.
//! Decisions are made here and in `compaction`, `folding` and `editing`; each ends as an entry.

mod authors;
mod checkpoints;
mod compaction;
mod editing;
mod folding;
pub mod journal;
mod limits;
mod loading;
mod progress;
mod requests;
mod sizes;
mod state;

use std::fmt;
use std::sync::Arc;

use crate::conversation::fact::{Fact, FactKind};
use crate::conversation::frame::Frame;
use crate::conversation::log::{Log, Position};
use crate::conversation::message::{Block, Message, Role, Time, ToolResult};
use crate::digest::{self, ToolKind};
use crate::edits::archive::{Archive, Original, RecallError, RecallPart, recall, regex_of};
use crate::edits::edit::{Edit, EditId, EditKind, EditText, Why};
use crate::edits::guard::{Audit, Audited, Check, Refusal, Rule, Violation};
use crate::edits::ledger::{Ledger, LedgerError};
use crate::policy::breaker::Tripped;
use crate::policy::profile::Profile;
use crate::policy::strategy::RulesSeen;
use crate::policy::task::Task;
use crate::size::budget::Budget;
use crate::size::meter::{Measure, Meter};
use crate::size::models::Model;
use crate::size::tokens::{Count, Tokens};
use crate::size::usage::Usage;
use crate::summary::job::Job;
use crate::view::cache::Sent;
use crate::view::keep::{self, KeepSet};
use crate::view::{Outgoing, Part, Source, View};

use checkpoints::Checkpoints;
use journal::{Allowed, Counting, Cursor, Entry, Journal, RecallBy, Seals, Ticket};
pub use loading::{Known, LoadError};
pub use sizes::Snapshot;
use state::{LostText, State};

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
    /// How far rules of the profile have looked: what they need not look at again.
    rules_seen: RulesSeen,
    /// The view is as the last `prepare` left it, within the limits of then.
    prepared: bool,
    notices: Vec<Notice>,
    checkpoints: Checkpoints,
    /// Where texts are that the session itself does not have.
    store: Option<Arc<dyn Archive>>,
}

/// What `prepare` answers.
#[derive(Debug, Clone)]
pub enum Prepared {
    /// Send what [`outgoing`](Session::outgoing) gives. A job may be open beside it:
    /// [`job`](Session::job).
    Send(Ticket),
    /// Have this summary written first, [`resolve`](Session::resolve) it and prepare again.
    Summarise(Job),
}

/// What does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TooLarge {
    /// System prompt, tools and system messages alone.
    System,
    /// A message that cannot be cut further.
    Message(Position),
    /// All that must stay, together.
    Together,
}

/// Why there is nothing to send.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    /// What must stay is over the hard limit.
    #[error("{} {tokens} tokens, over the limit of {hard} (window {window})", what.says())]
    TooLarge {
        /// What.
        what: TooLarge,
        /// Its size.
        tokens: Tokens,
        /// The hard limit.
        hard: Tokens,
        /// The window that gives it.
        window: Tokens,
    },
}

impl TooLarge {
    fn says(self) -> String {
        match self {
            Self::System => "system prompt and tools alone have".to_owned(),
            Self::Message(at) => {
                format!("message {} cannot be cut further; with what must stay the request has", at.0)
            }
            Self::Together => "what must stay has".to_owned(),
        }
    }
}

/// Something that a person may want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The prompt has grown past the warning of the budget. Said once each time it does.
    Large {
        /// The size of the prompt.
        size: Tokens,
        /// The warning that it passed.
        warn: Tokens,
    },
    /// A strategy proposed an edit that the guard refused.
    Refused {
        /// The strategy.
        strategy: &'static str,
        /// Why.
        refusal: Refusal,
    },
    /// Compaction is stopped for a while.
    Stopped(Tripped),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Large { size, warn } => write!(f, "the prompt has {size} tokens, more than {warn}"),
            Self::Refused { strategy, refusal } => write!(f, "{strategy}: {refusal}"),
            Self::Stopped(tripped) => tripped.fmt(f),
        }
    }
}

/// A line of the log that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The message.
    pub at: Position,
    /// The number of the line among the texts of the message, from 1.
    pub number: usize,
    /// The line.
    pub line: Box<str>,
}

/// A request that a provider refused as too long: what it said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overflow {
    /// The tokens of the prompt, if the provider named them.
    pub prompt: Option<Tokens>,
    /// The tokens that fit, if the provider named them: they are the window from now on.
    pub window: Option<Tokens>,
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
            rules_seen: RulesSeen::default(),
            prepared: false,
            notices: Vec::new(),
            checkpoints: Checkpoints::default(),
            store: None,
        }
    }

    /// With another window than the model's.
    pub fn with_window(mut self, window: Tokens) -> Self {
        self.set_window(window);
        self
    }

    /// With another meter than the model's own.
    pub fn with_meter(mut self, meter: Meter) -> Self {
        self.record(Entry::Counted(match meter.calibration() {
            None => Counting::Neutral,
            Some(calibration) => Counting::Model(calibration.clone()),
        }));
        self
    }

    /// With a store that is asked for texts that the session itself does not have.
    pub fn with_store(mut self, store: Arc<dyn Archive>) -> Self {
        self.store = Some(store);
        self
    }

    /// Makes something happen: the only way that a session changes.
    fn record(&mut self, entry: Entry) {
        self.prepared = false;
        self.state.apply(&entry);
        let shows_other = match &entry {
            Entry::Undo { .. } | Entry::Redo { .. } => true,
            Entry::Edit(edit) => matches!(edit.kind, EditKind::Answer { .. }),
            _ => false,
        };
        if shows_other {
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

    /// Appends a message and counts it, once. A result that is too large enters cut.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) -> Position {
        let message = message.into();
        let at = self.log().end();
        self.record(Entry::Message(message));
        self.entered(at);
        at
    }

    /// Decides what follows from a message that has just come.
    fn entered(&mut self, at: Position) {
        if let Some(message) = self.log().get(at).cloned() {
            self.look_for_marks(at, &message);
        }
        self.enter_results(at);
    }

    /// Decides how the results of a message enter. What was decided is not decided again.
    fn enter_results(&mut self, at: Position) {
        let Some(message) = self.log().get(at).cloned() else { return };
        for (block, content) in message.blocks().iter().enumerate() {
            if let Block::ToolResult(result) = content
                && self.ledger().shown(at, block).is_none()
            {
                self.enter(at, &message, block, result);
            }
        }
    }

    /// Decided once, before it was ever sent: such an edit breaks no prefix.
    fn enter(&mut self, at: Position, message: &Arc<Message>, block: usize, result: &ToolResult) {
        let cut = self.profile.cut;
        if result.text.len() <= cut.bytes.min(cut.characters).min(cut.lines) && !self.profile.entry_digests {
            return;
        }
        let original = Original::Block(message.clone(), block);
        let handle = || original.handle();
        let step = self.log().unit_of(at).and_then(|unit| self.log().get(unit.span.start));
        let call = step.and_then(|step| step.calls().find(|call| call.id == result.id));
        let text = if self.profile.entry_digests {
            let tool = call.map_or(ToolKind::Other, |call| self.profile.aliases.kind_of(call));
            let subject = || call.map(|call| tool.subject(&call.arguments)).unwrap_or_default();
            digest::entry(&result.text, tool, subject, cut.bytes, handle)
        } else {
            None
        };
        let name = call.map_or("tool", |call| &call.name);
        let text = match text {
            Some(text) => Some(cut.apply(&text, name, handle).unwrap_or(text)),
            None => cut.apply(&result.text, name, handle),
        };
        if let Some(text) = text {
            let kind = EditKind::Digest { at, block, text: text.into() };
            // Refused only where a tool of the provider must stay as it is.
            _ = self.edit_inside(kind, original, "entry", Why::Entry);
        }
    }

    /// What a message itself asks for: text to be pinned, a compaction.
    fn look_for_marks(&mut self, at: Position, message: &Message) {
        let texts = message.texts();
        match message.role() {
            Role::User if self.profile.pin_mark && !message.is_attachment() => {
                let pinned: Vec<String> = texts
                    .filter_map(|text| text.split_once("<Pin>"))
                    .map(|(_, text)| text.replace("</Pin>", "").trim().to_owned())
                    .filter(|text| !text.is_empty())
                    .collect();
                if !pinned.is_empty() {
                    self.pin(keep::pin_name(at), pinned.join("\n"));
                }
            }
            Role::Assistant => {
                let Some(mark) = &self.profile.triggers.mark else { return };
                if texts.flat_map(str::lines).any(|line| line.trim() == &**mark) {
                    self.record(Entry::Asked { focus: None, by_model: true });
                }
            }
            _ => {}
        }
    }

    /// Takes in what the provider reported for a request.
    pub fn observe(&mut self, ticket: Ticket, usage: &Usage) {
        self.reported(ticket, usage.prompt());
    }

    fn reported(&mut self, ticket: Ticket, prompt: Tokens) {
        let Some(size) = self.state.requests.size(ticket) else { return };
        // A report that is far from anything this view can be teaches nothing.
        let absurd = prompt > self.tokens(size).scaled(16_000_000) + Tokens(1_000_000);
        if prompt > Tokens::ZERO && !absurd {
            self.record(Entry::Usage { ticket, prompt });
        }
    }

    /// Teaches the meter from a record of other requests: the prompt grew by so much when this was
    /// added.
    pub fn teach(&mut self, added: Measure, growth: i64) {
        self.record(Entry::Taught { added, growth });
    }

    /// Compacts at the next `prepare`, whatever the size.
    pub fn compact_now(&mut self) {
        self.record(Entry::Asked { focus: self.state.progress.focus.clone(), by_model: false });
    }

    /// Compacts at the next `prepare`; what is said of this is kept first.
    pub fn compact_now_on(&mut self, focus: impl Into<Box<str>>) {
        let focus: Box<str> = focus.into();
        let focus = (!focus.trim().is_empty()).then_some(focus);
        self.record(Entry::Asked { focus, by_model: false });
    }

    /// The provider refused a request as too long: the next one is compacted, whatever it counts
    /// here, and a window that the provider named is the window from now on.
    pub fn overflowed(&mut self, ticket: Ticket, said: Overflow) {
        /// No provider has a smaller window: it is not one that was named.
        const SMALLEST: Tokens = Tokens(1_000);
        let known = self.state.requests.size(ticket);
        // It was sent to the model before, or long ago: it says nothing of the next one.
        if known.is_none() && (1..=self.state.requests.calls).contains(&ticket.0) {
            return;
        }
        if let Some(prompt) = said.prompt {
            self.reported(ticket, prompt);
        }
        if known.is_none() {
            self.look();
        }
        let sent = self.meter().estimate(known.unwrap_or(self.state.view.measure()));
        let size = sent.tokens.min(self.budget().window);
        let window = said.window.filter(|window| *window >= SMALLEST);
        self.record(Entry::Refused { ticket: known.map(|_| ticket), size, window });
    }

    /// What kind of work this is, for profiles that ask. Else it is found from the tool calls.
    pub fn set_task(&mut self, task: Task) {
        self.record(Entry::Task(task));
    }

    /// Another window than the one so far.
    pub fn set_window(&mut self, window: Tokens) {
        self.allow(Allowed { window: Some(window), ..self.state.limits.allowed() });
    }

    /// The longest answer that requests ask for: so much is kept free. Without it, the frame says it
    /// or the model's row.
    pub fn set_max_output(&mut self, tokens: Tokens) {
        self.allow(Allowed { max_output: Some(tokens), ..self.state.limits.allowed() });
    }

    /// How long the provider is asked to remember prefixes. Without it, the model's row says it.
    pub fn set_cache_lifetime(&mut self, seconds: u64) {
        self.allow(Allowed { cache_lifetime_s: Some(seconds), ..self.state.limits.allowed() });
    }

    fn allow(&mut self, allowed: Allowed) {
        if allowed != self.state.limits.allowed() {
            self.record(Entry::Limited(allowed));
        }
    }

    /// How the model gets back what was taken out: summaries say it behind `recall HANDLE`.
    pub fn set_recall(&mut self, by: RecallBy) {
        if by != self.state.recall_by {
            self.record(Entry::RecallBy(by));
        }
    }

    /// Takes an edit back, and with it those that were made from it. All are named, and held: only
    /// the hard limit takes them again.
    pub fn undo(&mut self, edit: EditId) -> Result<Vec<EditId>, LedgerError> {
        let gone = self.ledger().dependents(edit)?;
        if let Some(edit) =
            gone.iter().find(|id| self.ledger().get(**id).is_some_and(|e| e.why == Why::Switched))
        {
            return Err(LedgerError::Protected(*edit));
        }
        let entries: Vec<Entry> = gone.iter().map(|id| Entry::Undo { edit: *id, held: true }).collect();
        self.fetch_for(&entries)?;
        entries.into_iter().for_each(|entry| self.record(entry));
        // What reappears may hold reasoning that this model cannot read.
        self.mind_seals();
        Ok(gone)
    }

    /// Makes an edit again.
    pub fn redo(&mut self, edit: EditId) -> Result<(), LedgerError> {
        self.ledger().can_redo(edit)?;
        if let Some(known) = self.ledger().get(edit) {
            // What a switch dropped is no edit of a person: it comes and goes with the model.
            if !self.may_hold(known) || known.why == Why::Switched {
                return Err(LedgerError::Protected(edit));
            }
            if let Some(other) = keep::also_kept_by(known, self.ledger()) {
                return Err(LedgerError::InTheWay { edit, other });
            }
        }
        let redo = Entry::Redo { edit };
        self.fetch_for(std::slice::from_ref(&redo))?;
        self.record(redo);
        Ok(())
    }

    /// Gets the texts that these entries will bring into view, if they are with the store.
    fn fetch_for(&mut self, entries: &[Entry]) -> Result<(), LedgerError> {
        let mut ledger = self.ledger().clone();
        entries.iter().for_each(|entry| ledger.apply(entry));
        let fetched = self.state.fetch(&ledger.texts_apart(), self.store.as_deref());
        fetched.map_err(|LostText { edit, handle }| LedgerError::Lost { edit, handle })
    }

    /// Shows a text in the place of what a tool result says: the host answers the call itself, where
    /// the client could not. The text may be longer than what it replaces.
    pub fn answer(
        &mut self,
        at: Position,
        block: usize,
        text: impl Into<Arc<str>>,
    ) -> Result<EditId, Refusal> {
        let message = self.log().get(at).cloned().ok_or(Refusal::Nothing("there is no such message"))?;
        let kind = EditKind::Answer { at, block, text: EditText::Here(text.into()) };
        self.edit_inside(kind, Original::Block(message, block), "host", Why::Host)
    }

    /// Sets what the work is for.
    pub fn set_goal(&mut self, goal: impl Into<Box<str>>) {
        self.note(Fact::new(FactKind::Goal, goal));
    }

    /// Text that must stay, under a name.
    pub fn pin(&mut self, name: impl Into<Box<str>>, text: impl Into<Box<str>>) {
        self.note(Fact::keyed(FactKind::Pin, name, text));
    }

    /// Text that need not stay any longer.
    pub fn unpin(&mut self, name: impl Into<Box<str>>) {
        self.note(Fact::gone(FactKind::Pin, name));
    }

    /// Something to remember, under a name; the newest ten are shown.
    pub fn remember(&mut self, name: impl Into<Box<str>>, text: impl Into<Box<str>>) {
        self.note(Fact::keyed(FactKind::Memory, name, text));
    }

    /// A file of project rules; `None` if it is gone.
    pub fn set_rules(&mut self, path: impl Into<Box<str>>, text: Option<&str>) {
        self.note(Fact { kind: FactKind::Rules, key: path.into(), text: text.map(Into::into) });
    }

    /// The task list; `None` if there is none.
    pub fn set_todos(&mut self, text: Option<&str>) {
        self.note(Fact { kind: FactKind::Todos, key: "".into(), text: text.map(Into::into) });
    }

    /// What `git diff --stat` says; `None` if nothing.
    pub fn set_git_stat(&mut self, text: Option<&str>) {
        self.note(Fact { kind: FactKind::GitStat, key: "".into(), text: text.map(Into::into) });
    }

    /// A fact of the host, unless it says what is known already.
    fn note(&mut self, fact: Fact) {
        if self.log().fact(fact.kind, &fact.key) != fact.text.as_deref() {
            self.record(Entry::Fact(Arc::new(fact)));
        }
    }

    /// System prompt, tools and settings. For another model see [`switch`](Self::switch).
    pub fn set_frame(&mut self, frame: Frame) {
        match self.log().frame() {
            Some(known) if *known == frame => {}
            // Only its secrets are others: a loaded journal has none.
            Some(known) if known.key() == frame.key() => self.state.log.refresh_frame(frame),
            _ => self.record(Entry::Frame(Arc::new(frame))),
        }
    }

    /// Goes on with another model: everything is counted as it counts, and the next `prepare`
    /// compacts if its window is smaller. A window that the host has set holds for every model, and
    /// the frame, which names the model to the provider, is the host's to change. Reasoning that only another model can read is left out,
    /// and comes back with its model; unless the client behind the host sees to that itself.
    pub fn switch(&mut self, model: Model, seals: Seals) {
        self.record(Entry::Switched { model: Arc::new(model), seals });
        self.mind_seals();
        self.look();
    }

    /// Leaves out sealed reasoning of other models, and brings that of this one back.
    fn mind_seals(&mut self) {
        let dropped = self.ledger().edits().filter(|(edit, active)| *active && edit.why == Why::Switched);
        let back: Vec<EditId> = dropped
            .filter(|(edit, _)| match edit.kind {
                EditKind::DropThinking { at } => !self.state.authors.is_foreign(at),
                _ => false,
            })
            .map(|(edit, _)| edit.id)
            .collect();
        for edit in back {
            self.record(Entry::Undo { edit, held: false });
        }
        if self.state.authors.seals == Seals::Client {
            return;
        }
        let sealed = |block: &Block| matches!(block, Block::Thinking(t) if t.seal.is_sealed());
        let written = &self.log().messages()[..self.state.authors.own_from().index()];
        let foreign = written.iter().enumerate().filter(|(_, message)| message.blocks().iter().any(sealed));
        let foreign = foreign.map(|(at, message)| (Position(at as u32), message.clone()));
        let foreign = foreign.filter(|(at, _)| self.state.authors.is_foreign(*at));
        let foreign: Vec<_> = foreign.filter(|(at, _)| !self.ledger().dropped_thinking(*at)).collect();
        for (at, message) in foreign {
            // Refused where a fold has taken it.
            _ = self.edit_inside(
                EditKind::DropThinking { at },
                Original::Thinking(message),
                "model-switch",
                Why::Switched,
            );
        }
    }

    /// A session of its own that shares everything that happened before the message at `end` came:
    /// the same as a new session that was told the same. Fails only if a store has lost a text.
    pub fn fork(&self, end: Position) -> Result<Self, LoadError> {
        let cursor = self.journal.before(end);
        let whole = cursor == self.journal.end();
        let mut fork = if whole { self.clone() } else { self.replayed(cursor)? };
        fork.notices.clear();
        fork.record(Entry::Forked { end: end.min(self.log().end()) });
        fork.look();
        Ok(fork)
    }

    /// The session as it was at a place of its journal. Each entry was made or checked here: nothing
    /// can be wrong with it but that the store has lost a text.
    fn replayed(&self, end: Cursor) -> Result<Self, LoadError> {
        let journal = self.journal.prefix(end);
        let (from, mut state) = match self.checkpoints.before(end) {
            Some(checkpoint) => checkpoint,
            None => (Cursor(0), State::new(self.first_model(), self.snapshots())),
        };
        state.replay(journal.since(from), self.store.as_deref(), |_, _| Ok::<_, LoadError>(()))?;
        let (checkpoints, store) = (self.checkpoints.upto(end), self.store.clone());
        Ok(Self { checkpoints, store, ..Self::of(self.profile.clone(), journal, state) })
    }

    /// The model that the journal began with.
    fn first_model(&self) -> Arc<Model> {
        match self.journal.get(Cursor(0)) {
            Some(Entry::Began { model, .. }) => model.clone(),
            // Every journal begins so.
            _ => self.state.limits.model.clone(),
        }
    }

    fn may_hold(&self, edit: &Edit) -> bool {
        Check { log: self.log(), ledger: self.ledger(), why: edit.why }.may_hold(&edit.kind)
    }

    /// Reads back what an edit took out. Where the session does not have it, its store is asked.
    pub fn recall(&self, handle: &str, part: &RecallPart) -> Result<String, RecallError> {
        let own = recall(&self.state.originals.of(self.log()), handle, part);
        match (&own, &self.store) {
            (Err(RecallError::Unknown(_)), Some(store)) => recall(&**store, handle, part),
            _ => own,
        }
    }

    /// Lines of the whole log that a regular expression fits, the newest `most` of them, in order.
    /// Nothing that was taken out is hidden from it.
    pub fn search(&self, pattern: &str, most: usize) -> Result<Vec<Found>, RecallError> {
        let regex = regex_of(pattern)?;
        let mut found = Vec::new();
        for (at, message) in self.log().messages().iter().enumerate().rev() {
            let at = Position(at as u32);
            let texts = message.blocks().iter().enumerate();
            let texts =
                texts.map(|(number, block)| self.ledger().answer(at, number).unwrap_or(text_of(block)));
            let lines = texts.flat_map(str::lines).enumerate();
            let mut hits: Vec<_> = lines.filter(|(_, line)| regex.is_match(line)).collect();
            hits.reverse();
            let hits = hits.into_iter().take(most - found.len());
            found.extend(hits.map(|(number, line)| Found { at, number: number + 1, line: line.into() }));
            if found.len() == most {
                break;
            }
        }
        found.reverse();
        Ok(found)
    }

    /// All rules that do not hold. Behind a `prepare`, for what is sent; else for what would be shown
    /// now, whose size no `prepare` has looked at yet.
    pub fn audit(&self) -> Vec<Violation> {
        self.audit_again(&mut Audited::default())
    }

    /// The same for who audits view after view: edits that were right are not looked at again.
    pub fn audit_again(&self, audited: &mut Audited) -> Vec<Violation> {
        if self.prepared {
            return self.audit_view(audited);
        }
        let mut now = self.clone();
        now.look();
        let mut found = now.audit_view(audited);
        found.retain(|violation| violation.rule != Rule::UnderLimit);
        found
    }

    fn audit_view(&self, audited: &mut Audited) -> Vec<Violation> {
        let State { log, ledger, sizes, view, originals, .. } = &self.state;
        let audit = Audit {
            log,
            ledger,
            meter: &sizes.meter,
            sizes: sizes.all(),
            view,
            items: self.keep.items(),
            budget: &self.budget(),
            archive: &originals.of(log),
        };
        audit.run(audited)
    }

    /// The size of the next request as far as it is prepared.
    pub fn size(&self) -> Count {
        self.meter().estimate(self.state.view.measure())
    }

    /// The size of the whole log as it came, with system prompt and tools: what a request
    /// would be if nothing were ever taken out.
    pub fn full(&self) -> Measure {
        self.state.view.fixed().measure + self.state.sizes.total()
    }

    /// What is to be sent, as the last `prepare` made it.
    pub fn outgoing(&self) -> Outgoing<'_> {
        let view = &self.state.view;
        Outgoing {
            frame: self.log().frame(),
            parts: view.parts(),
            tail: view.tail(),
            ends: view.stable_ends(),
        }
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

    /// What a person may want to know, since this was last asked.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    fn notice(&mut self, notice: Notice) {
        /// A host that never asks does not fill memory.
        const MOST: usize = 64;
        if self.notices.len() == MOST {
            self.notices.remove(0);
        }
        self.notices.push(notice);
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
        self.state.limits.budget(&self.profile)
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.state.limits.model
    }

    /// The profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Brings the view up to log and ledger, and decides what stands before the history.
    fn follow(&mut self) {
        self.follow_keep_set();
        let first = self.state.requests.calls == 0;
        if let Some(text) = self.keep.rules_to_show(self.ledger(), first) {
            self.record(Entry::RulesShown { text: text.into() });
            self.follow_keep_set();
        }
        self.follow_view();
    }

    /// The same where no request is made: nothing is decided. Who asks for the size, or reports
    /// one, before the next `prepare` finds what would be sent.
    fn look(&mut self) {
        self.follow_keep_set();
        self.follow_view();
    }

    fn follow_keep_set(&mut self) {
        // What stands before the messages takes of the room.
        self.state.look_at_frame();
        let room = self.keep_room();
        self.keep.follow(&self.state.log, &self.state.ledger, room);
    }

    fn follow_view(&mut self) {
        self.state.look();
        let now = self.keep.tail(self.log(), self.ledger());
        let State { view, sizes, .. } = &mut self.state;
        if view.tail().map(|tail| keep::text_of(&tail.message)).unwrap_or_default() == now {
            return;
        }
        let tail = (!now.is_empty()).then(|| {
            let message = keep::host_message(now);
            Part { source: Source::Tail, measure: sizes.meter.message(&message), message }
        });
        view.set_tail(tail);
    }

    /// Half of what the hard limit leaves beside the system layer, in bytes by the neutral
    /// measure.
    fn keep_room(&self) -> usize {
        let system = self.state.view.fixed().measure + self.state.sizes.system();
        let room = self.budget().hard - self.tokens(system);
        let room = usize::try_from(room.0).unwrap_or(usize::MAX).saturating_mul(2);
        // In rough steps: the meter learns with every call, and what is shown should not change.
        room - room % (room / 16).max(1).next_power_of_two()
    }

    /// Tokens of the model for something that was counted.
    fn tokens(&self, measure: Measure) -> Tokens {
        self.meter().tokens(measure).tokens
    }

    /// The price of time: true if the provider's cache has lost the prefix by now.
    fn is_cold(&self, now: Option<Time>) -> bool {
        self.state.requests.cache.is_cold(now, &self.state.limits.cache())
    }
}

/// What a search looks at.
fn text_of(block: &Block) -> &str {
    match block {
        Block::Text(b) => &b.text,
        Block::Thinking(b) => &b.text,
        Block::ToolCall(b) => b.arguments.as_str(),
        Block::ToolResult(b) => &b.text,
        Block::Image(_) | Block::Opaque(_) => "",
    }
}
