//! A session: one conversation on its way through its window. Messages come in by `push`,
//! a view goes out by `prepare`, what the provider reported comes back by `observe`. Sans-I/O:
//! time and text are passed in; what needs the outside is returned as a job.

mod compaction;
mod edits;
mod folding;
mod saved;

use std::collections::HashMap;
use std::sync::Arc;

use crate::conversation::fact::{Fact, FactKind};
use crate::conversation::frame::Frame;
use crate::conversation::log::{At, Log};
use crate::conversation::message::{Block, Message, Role, Time, ToolResult};
use crate::digest::{self, ToolKind};
use crate::edits::archive::{Archive, MemoryArchive, Original, Part as RecallPart, RecallError, recall};
use crate::edits::edit::{Edit, EditId, EditKind, Why};
use crate::edits::guard::{Audit, Audited, Check, Violation};
use crate::edits::ledger::{Event, Ledger, LedgerError};
use crate::policy::breaker::{Breaker, Tripped};
use crate::policy::profile::Profile;
use crate::policy::strategy::Ruled;
use crate::policy::task::Task;
use crate::size::budget::Budget;
use crate::size::meter::{Measure, Meter, Way};
use crate::size::models::Model;
use crate::size::tokens::{Count, Tokens};
use crate::size::usage::Usage;
use crate::summary::job::Job;
use crate::view::cache::{PromptCache, Sent};
use crate::view::keep::{self, KeepItem, KeepKey};
use crate::view::{Fixed, Part, Source, Sources, View};

use compaction::Compaction;
pub use saved::{LoadError, Saved, State};

/// One conversation.
///
/// ```
/// use longhaul::{Message, Models, Prepared, Profile, Session, Tokens};
///
/// let model = Models::builtin().find("claude-sonnet-4-5").clone();
/// let mut session = Session::new(Profile::longhaul(), model).with_window(Tokens(8_000));
/// session.push(Message::user("Why does the build fail?"));
/// match session.prepare(None)? {
///     Prepared::Ready(view) => assert_eq!(view.parts().len(), 1),
///     Prepared::NeedsSummary(job) => unreachable!("the extractor asks for none: {job:?}"),
/// }
/// # Ok::<(), longhaul::PrepareError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Session {
    profile: Profile,
    model: Model,
    window: Option<Tokens>,
    budget: Budget,
    meter: Meter,
    log: Log,
    ledger: Ledger,
    archive: MemoryArchive,
    sizes: Vec<Measure>,
    /// Sizes by other ways to count, as far as they were counted.
    other_sizes: HashMap<Way, Vec<Measure>>,
    total: Measure,
    /// Of that, system messages.
    system: Measure,
    view: View,
    keep: Keep,
    cache: PromptCache,
    sent: Option<Sent>,
    breaker: Breaker,
    calls: u64,
    asked: bool,
    /// What the next compaction is to be about.
    focus: Option<Box<str>>,
    /// The size of a request that the provider refused as too long.
    overflowed: Option<Tokens>,
    /// The prompt of the last call, as it was reported or counted.
    last_prompt: Tokens,
    /// The call at which the last full summary was made.
    full_at: u64,
    /// What rules have looked at.
    ruled: Ruled,
    /// The kind of work, if the host says so.
    task: Option<Task>,
    /// The compaction that is being made: it may wait for summaries.
    compaction: Option<Compaction>,
    /// At this call a summary failed, and the history was kept.
    kept_at: Option<u64>,
    job: Option<Job>,
    next_job: u64,
    /// The view of the last `prepare`, as this model counts it.
    sent_size: Option<Measure>,
    /// How many parts the view had when the last request was begun.
    shown_before: usize,
    /// Messages before this one were written by a model that is no longer here.
    foreign_end: At,
}

/// The keep set as it was last looked at.
#[derive(Debug, Clone, Default)]
struct Keep {
    items: Vec<KeepItem>,
    notes_seen: Option<usize>,
    goal_seen: Option<At>,
    room_seen: usize,
    /// The items are new, and whether rules must be shown is not decided.
    rules_due: bool,
}

/// What `prepare` gives.
#[derive(Debug)]
pub enum Prepared<'a> {
    /// Send this.
    Ready(&'a View),
    /// Have this written first, then `resolve` it and `prepare` again.
    NeedsSummary(Job),
}

/// What does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooLarge {
    /// System prompt, tools and system messages alone.
    System,
    /// A message that cannot be cut further.
    Message(At),
    /// All that must stay, together.
    Together,
}

/// Why there is no view to send.
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

impl Session {
    /// An empty session for a model.
    pub fn new(profile: Profile, model: Model) -> Self {
        let window = Self::window_of(&model, &profile);
        let budget = Budget::with_shares(window, model.max_output, profile.shares);
        Self {
            profile,
            budget,
            meter: Meter::for_model(&model),
            model,
            window: None,
            log: Log::new(),
            ledger: Ledger::default(),
            archive: MemoryArchive::default(),
            sizes: Vec::new(),
            other_sizes: HashMap::new(),
            total: Measure::default(),
            system: Measure::default(),
            view: View::default(),
            keep: Keep::default(),
            cache: PromptCache::new(),
            sent: None,
            breaker: Breaker::default(),
            calls: 0,
            asked: false,
            focus: None,
            overflowed: None,
            last_prompt: Tokens::ZERO,
            full_at: 0,
            ruled: Ruled::default(),
            task: None,
            compaction: None,
            kept_at: None,
            job: None,
            next_job: 0,
            sent_size: None,
            shown_before: 0,
            foreign_end: At(0),
        }
    }

    /// The window of a model; of one that nobody knows, the profile's.
    fn window_of(model: &Model, profile: &Profile) -> Tokens {
        if model.is_unknown() { profile.window } else { model.window }
    }

    /// With another window than the model's.
    pub fn with_window(mut self, window: Tokens) -> Self {
        self.window = Some(window);
        self.budget = Budget::with_shares(window, self.model.max_output, self.profile.shares);
        self
    }

    /// With another meter than the model's own. For an empty session.
    pub fn with_meter(mut self, meter: Meter) -> Self {
        self.recount(meter);
        self
    }

    /// Appends a message and counts it, once. A result that is too large enters cut.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) -> At {
        let message = message.into();
        let size = self.meter.message(&message);
        self.append(message, size)
    }

    fn append(&mut self, message: Arc<Message>, size: Measure) -> At {
        self.sizes.push(size);
        self.total += size;
        if message.role() == Role::System {
            self.system += size;
        }
        let frames = self.log.frame_version();
        let at = self.log.push(message.clone());
        if self.log.frame_version() != frames {
            self.follow_frame();
        }
        self.look_for_marks(at, &message);
        for (block, content) in message.blocks().iter().enumerate() {
            if let Block::ToolResult(result) = content {
                self.enter(at, &message, block, result);
            }
        }
        at
    }

    /// Decided once, before it was ever sent: such an edit breaks no prefix.
    fn enter(&mut self, at: At, message: &Arc<Message>, block: usize, result: &ToolResult) {
        let cut = self.profile.cut;
        if result.text.len() <= cut.bytes.min(cut.characters).min(cut.lines) && !self.profile.entry_digests {
            return;
        }
        let original = Original::Block(message.clone(), block);
        let handle = || original.handle();
        let step = self.log.unit_of(at).and_then(|unit| self.log.get(unit.span.start));
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
    fn look_for_marks(&mut self, at: At, message: &Message) {
        let texts = message.blocks().iter().filter_map(|block| match block {
            Block::Text(text) => Some(&*text.text),
            _ => None,
        });
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
                self.asked |= texts.flat_map(str::lines).any(|line| line.trim() == &**mark);
            }
            _ => {}
        }
    }

    /// Takes in what the provider reported for the view of the last `prepare`.
    pub fn observe(&mut self, usage: &Usage) {
        let (Some(view), prompt) = (self.sent_size, usage.prompt()) else { return };
        // A report that is far from anything this view can be teaches nothing.
        let absurd = prompt > self.tokens(view).scaled(16_000_000) + Tokens(1_000_000);
        if prompt > Tokens::ZERO && !absurd {
            self.last_prompt = prompt;
            self.meter.observe(view, prompt);
            self.ledger.record(Event::Usage { view, prompt });
        }
    }

    /// Compacts at the next `prepare`, whatever the size.
    pub fn compact_now(&mut self) {
        self.asked = true;
        // One that waits worked to less.
        self.compaction = None;
        self.breaker.reset();
    }

    /// Compacts at the next `prepare`; what is said of this is kept first.
    pub fn compact_now_on(&mut self, focus: impl Into<Box<str>>) {
        let focus: Box<str> = focus.into();
        self.focus = (!focus.trim().is_empty()).then_some(focus);
        self.compact_now();
    }

    /// The provider refused the last request as too long: the next one is compacted, whatever
    /// it counts here.
    pub fn overflowed(&mut self) {
        if self.sent_size.is_none() {
            self.look();
        }
        let sent = self.meter.estimate(self.sent_size.unwrap_or(self.view.measure()));
        self.overflowed = Some(sent.tokens.min(self.budget.window));
        self.breaker.reset();
    }

    /// What kind of work this is, for profiles that ask. Else it is found from the tool calls.
    pub fn set_task(&mut self, task: Task) {
        self.task = Some(task);
    }

    /// Takes an edit back, and with it those that were made from it. All are named, and held:
    /// only the hard limit may take them again.
    pub fn undo(&mut self, edit: EditId) -> Result<Vec<EditId>, LedgerError> {
        if self.ledger.get(edit).is_some_and(|edit| edit.why == Why::Switched) {
            return Err(LedgerError::Protected(edit));
        }
        let gone = self.ledger.dependents(edit)?;
        for id in &gone {
            self.ledger.record(Event::Undo { edit: *id, held: true });
        }
        // What reappears may hold reasoning that this model cannot read.
        self.drop_foreign_seals();
        self.ruled = Ruled::default();
        self.breaker.reset();
        Ok(gone)
    }

    /// Makes an edit again.
    pub fn redo(&mut self, edit: EditId) -> Result<(), LedgerError> {
        self.ledger.can_redo(edit)?;
        if let Some(known) = self.ledger.get(edit) {
            if !self.may_hold(known) {
                return Err(LedgerError::Protected(edit));
            }
            if let Some(other) = self.also_keeps(known) {
                return Err(LedgerError::InTheWay { edit, other });
            }
        }
        self.ledger.record(Event::Redo { edit });
        self.ruled = Ruled::default();
        Ok(())
    }

    /// Sets what the work is for.
    pub fn set_goal(&mut self, goal: impl Into<Box<str>>) {
        self.log.note_fact(Fact::new(FactKind::Goal, goal));
    }

    /// Text that must stay, under a name.
    pub fn pin(&mut self, name: impl Into<Box<str>>, text: impl Into<Box<str>>) {
        self.log.note_fact(Fact::keyed(FactKind::Pin, name, text));
    }

    /// Text that need not stay any longer.
    pub fn unpin(&mut self, name: impl Into<Box<str>>) {
        self.log.note_fact(Fact::gone(FactKind::Pin, name));
    }

    /// Something to remember, under a name; the newest ten are shown.
    pub fn remember(&mut self, name: impl Into<Box<str>>, text: impl Into<Box<str>>) {
        self.log.note_fact(Fact::keyed(FactKind::Memory, name, text));
    }

    /// A file of project rules; `None` if it is gone.
    pub fn set_rules(&mut self, path: impl Into<Box<str>>, text: Option<&str>) {
        self.log.note_fact(Fact { kind: FactKind::Rules, key: path.into(), text: text.map(Into::into) });
    }

    /// The task list; `None` if there is none.
    pub fn set_todos(&mut self, text: Option<&str>) {
        self.log.note_fact(Fact { kind: FactKind::Todos, key: "".into(), text: text.map(Into::into) });
    }

    /// What `git diff --stat` says; `None` if nothing.
    pub fn set_git_stat(&mut self, text: Option<&str>) {
        self.log.note_fact(Fact { kind: FactKind::GitStat, key: "".into(), text: text.map(Into::into) });
    }

    /// System prompt, tools and settings. For another model see [`switch`](Self::switch).
    pub fn set_frame(&mut self, frame: Frame) {
        if self.log.note_frame(frame) {
            self.follow_frame();
        }
    }

    /// Goes on with another model: everything is counted anew, reasoning that only the old one
    /// can read goes, and the next `prepare` compacts if its window is smaller.
    pub fn switch(&mut self, model: Model) {
        if model.name != self.model.name {
            self.foreign_end = self.log.end();
            self.drop_foreign_seals();
            self.breaker.reset();
            // It has seen nothing of this.
            self.cache = PromptCache::new();
        }
        // What they worked to was of the other window; what was sent, of the other model.
        (self.compaction, self.job, self.sent_size, self.overflowed) = (None, None, None, None);
        self.budget = {
            let window = self.window.unwrap_or_else(|| Self::window_of(&model, &self.profile));
            Budget::with_shares(window, model.max_output, self.profile.shares)
        };
        let meter = Meter::for_model(&model);
        self.model = model;
        self.recount(meter);
        self.look();
    }

    fn drop_foreign_seals(&mut self) {
        let sealed = |block: &Block| matches!(block, Block::Thinking(t) if t.seal.is_sealed());
        let written = &self.log.messages()[..self.foreign_end.min(self.log.end()).index()];
        let foreign = written.iter().enumerate().filter(|(_, message)| message.blocks().iter().any(sealed));
        let foreign = foreign.map(|(at, message)| (At(at as u32), message.clone()));
        for (at, message) in foreign.filter(|(at, _)| !self.ledger.dropped_thinking(*at)).collect::<Vec<_>>()
        {
            // Refused where a fold has taken it.
            _ = self.edit_inside(
                EditKind::DropThinking { at },
                Original::Thinking(message),
                "model-switch",
                Why::Switched,
            );
        }
    }

    /// Goes on with another meter. What it counted before is not counted again.
    fn recount(&mut self, meter: Meter) {
        if self.meter.way() != meter.way() {
            let before = std::mem::take(&mut self.sizes);
            self.other_sizes.insert(self.meter.way(), before);
            self.sizes = self.other_sizes.remove(&meter.way()).unwrap_or_default();
            let new = &self.log.messages()[self.sizes.len()..];
            self.sizes.extend(new.iter().map(|message| meter.message(message)));
            self.sum_sizes();
            let version = self.view.fixed().version;
            self.view = View::default();
            self.view.set_fixed(Fixed { version, measure: Measure::default() });
            self.keep.notes_seen = None;
        }
        self.meter = meter;
    }

    fn sum_sizes(&mut self) {
        self.total = self.sizes.iter().copied().sum();
        let system =
            self.log.messages().iter().zip(&self.sizes).filter(|(message, _)| message.role() == Role::System);
        self.system = system.map(|(_, size)| *size).sum();
    }

    /// A session of its own that shares everything before the message at `end`. Edits that
    /// reach further, or cover what is the current input there, are undone.
    pub fn fork(&self, end: At) -> Self {
        let end = end.min(self.log.end());
        let mut fork = self.clone();
        fork.log = self.log.fork(end);
        fork.sizes.truncate(end.index());
        fork.other_sizes.clear();
        fork.sum_sizes();
        // What was sent of what comes later is not this session's.
        fork.ledger = Ledger::default();
        for event in self.ledger.events() {
            if !matches!(event, Event::PlaceholderSent { end: at } if *at > end) {
                fork.ledger.record(event.clone());
            }
        }
        fork.ledger.record(Event::Forked { end });
        fork.take_back(|fork, edit| !fork.may_hold(edit));
        fork.view = View::default();
        fork.keep = Keep::default();
        fork.cache = PromptCache::new();
        fork.job = None;
        fork.breaker.reset();
        (fork.asked, fork.focus, fork.overflowed, fork.compaction) = (false, None, None, None);
        (fork.last_prompt, fork.kept_at) = (Tokens::ZERO, None);
        fork.ruled = Ruled::default();
        fork.foreign_end = fork.foreign_end.min(end);
        fork.sent_size = None;
        fork.meter.forget_base();
        fork.look();
        fork
    }

    fn may_hold(&self, edit: &Edit) -> bool {
        Check { log: &self.log, ledger: &self.ledger, why: edit.why }.may_hold(&edit.kind)
    }

    /// Reads back what an edit took out.
    pub fn recall(&self, handle: &str, part: &RecallPart) -> Result<String, RecallError> {
        recall(&self.archive, handle, part)
    }

    /// All rules that do not hold for the view of the last `prepare`.
    pub fn audit(&self) -> Vec<Violation> {
        self.audit_again(&mut Audited::default())
    }

    /// The same for who audits view after view: edits that were right are not looked at again.
    pub fn audit_again(&self, audited: &mut Audited) -> Vec<Violation> {
        let Self { log, ledger, meter, sizes, view, budget, archive, .. } = self;
        Audit { log, ledger, meter, sizes, view, items: &self.keep.items, budget, archive }.run(audited)
    }

    /// The size of the next request as far as it is prepared.
    pub fn size(&self) -> Count {
        self.meter.estimate(self.view.measure())
    }

    /// The size of the whole log as it came, with system prompt and tools: what a request
    /// would be if nothing were ever taken out.
    pub fn full(&self) -> Measure {
        self.view.fixed().measure + self.total
    }

    /// The view of the last `prepare`, whether or not it fits.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// What sending the view of the last `prepare` cost.
    pub fn sent(&self) -> Option<Sent> {
        self.sent
    }

    /// Why compaction is stopped, if it is.
    pub fn stopped(&self) -> Option<&Tripped> {
        self.breaker.why(self.calls, self.size().tokens)
    }

    /// The log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The archive.
    pub fn archive(&self) -> &MemoryArchive {
        &self.archive
    }

    /// The size of each message of the log.
    pub fn sizes(&self) -> &[Measure] {
        &self.sizes
    }

    /// The meter.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The meter, to be taught.
    pub fn meter_mut(&mut self) -> &mut Meter {
        &mut self.meter
    }

    /// The limits.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Brings the view up to log and ledger.
    fn follow(&mut self) {
        self.follow_notes();
        self.show_rules();
        self.follow_view();
    }

    /// The same where no request is made: nothing is decided. Who asks for the size, or reports
    /// one, before the next `prepare` finds what would be sent.
    fn look(&mut self) {
        self.follow_notes();
        self.follow_view();
    }

    fn follow_view(&mut self) {
        let Self { log, ledger, meter, sizes, view, .. } = self;
        view.follow(Sources { log, ledger, meter, sizes });
        self.follow_keep_set();
    }

    /// Facts and frames that were said since.
    fn follow_notes(&mut self) {
        let (notes, goal) = (self.log.notes().len(), self.log.goal_message());
        if self.keep.notes_seen != Some(notes) {
            self.follow_frame();
        }
        let room = self.keep_room();
        if self.keep.notes_seen == Some(notes) && self.keep.goal_seen == goal && self.keep.room_seen == room {
            return;
        }
        (self.keep.notes_seen, self.keep.goal_seen, self.keep.room_seen) = (Some(notes), goal, room);
        let mut items = keep::items(&self.log, self.ledger.rules());
        for (handle, original) in keep::fit(&mut items, room) {
            self.archive.put(handle, original);
        }
        (self.keep.items, self.keep.rules_due) = (items, true);
    }

    /// Rules stand before the history: as they were first read, or shorter when the window is.
    fn show_rules(&mut self) {
        if !std::mem::take(&mut self.keep.rules_due) {
            return;
        }
        // Rules that are known when the first request is made stand before the history.
        let rules = self.keep.items.iter();
        let rules =
            rules.filter(|item| matches!(item.key, KeepKey::Rules(_)) && &*item.text != keep::NO_LONGER);
        let rules: Vec<KeepItem> = rules.cloned().collect();
        let first = self.calls == 0 && !rules.is_empty() && self.ledger.rules().is_none();
        // A smaller window: what was shown may have to be cut. Only then is it worth the history.
        let text = keep::render(&rules);
        // The marks and names beside what was cut are not counted there.
        let beside = self.keep.room_seen / 8 + 200 * rules.len();
        let room = self.keep.room_seen.saturating_add(beside);
        let too_long = |shown: &str| shown.len() > room && text.len() < shown.len();
        if first || !rules.is_empty() && self.ledger.rules().is_some_and(too_long) {
            self.ledger.record(Event::RulesShown { text: text.into() });
        }
    }

    fn follow_frame(&mut self) {
        let fixed = Fixed {
            version: self.log.frame_version(),
            measure: self.log.frame().map(|frame| self.meter.frame(frame)).unwrap_or_default(),
        };
        if fixed != self.view.fixed() {
            self.view.set_fixed(fixed);
            self.meter.forget_base();
        }
    }

    /// Half of what the hard limit leaves beside the system layer, in bytes by the neutral
    /// measure.
    fn keep_room(&self) -> usize {
        let room = self.budget.hard - self.tokens(self.view.fixed().measure + self.system);
        let room = usize::try_from(room.0).unwrap_or(usize::MAX).saturating_mul(2);
        // In rough steps: the meter learns with every call, and what is shown should not change.
        room - room % (room / 16).max(1).next_power_of_two()
    }

    /// What is in no other place of the view stands in the tail.
    fn follow_keep_set(&mut self) {
        let missing: Vec<KeepItem> =
            self.keep.items.iter().filter(|item| !self.is_shown(item)).cloned().collect();
        let now = keep::render(&missing);
        if self.view.tail().map(|tail| keep::text_of(&tail.message)).unwrap_or_default() == now {
            return;
        }
        let tail = (!now.is_empty()).then(|| {
            let message = keep::host_message(now);
            Part { source: Source::Tail, measure: self.meter.message(&message), message }
        });
        self.view.set_tail(tail);
    }

    /// True if the item stands in the history or in a summary.
    fn is_shown(&self, item: &KeepItem) -> bool {
        if matches!(item.key, KeepKey::Rules(_)) {
            return self.ledger.rules().is_some_and(|rules| keep::are_in(rules, item, &self.log));
        }
        if item.source.is_some_and(|at| self.ledger.covering(at).is_none()) {
            return true;
        }
        let kept = |kind: &EditKind| match kind {
            EditKind::Fold { kept, .. } => {
                kept.iter().any(|kept| kept.key == item.key && kept.text == item.handle)
            }
            _ => false,
        };
        let mut folds = self.ledger.outermost().filter_map(|(_, id)| self.ledger.get(id));
        folds.any(|edit| kept(&edit.kind))
    }

    /// Tokens of the model for something that was counted.
    fn tokens(&self, measure: Measure) -> Tokens {
        self.meter.tokens(measure).tokens
    }

    /// Where in the view this message stands, or will.
    fn part_of(&self, at: At) -> usize {
        self.view.parts().partition_point(|part| match part.source {
            Source::Message(here) => here < at,
            Source::Edit(id) => self
                .ledger
                .get(id)
                .and_then(|edit| edit.kind.spans().first().copied())
                .is_some_and(|span| span.start < at),
            Source::Rules => true,
            Source::Tail => false,
        })
    }

    /// The price of time: true if the provider's cache has lost the prefix by now.
    fn is_cold(&self, now: Option<Time>) -> bool {
        self.cache.is_cold(now, &self.model.cache)
    }
}
