//! A profile: triggers, rules, ladder, templates and constants of one way to compact, as a value.
//! Other ways are other values, not other code.

use crate::digest::{Aliases, Cut};
use crate::edits::voice::Voice;
use crate::policy::dial::Dial;
use crate::policy::strategy::{self, Strategy};
use crate::size::budget::{Budget, Shares};
use crate::size::tokens::Tokens;
use crate::summary::{self, Choose, LinePrice, Template};

/// What people said has so many bytes of a summary whose lines must pay.
const PEOPLE: usize = 4_000;
/// … and what was done, decided and found has so many.
const SLOTS: usize = 2_000;

/// One way to compact.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its name.
    pub name: Box<str>,
    /// What it does, in one sentence.
    pub says: Box<str>,
    /// The window, where neither the user nor the model's row says what it is.
    pub window: Tokens,
    /// Where limits stand in the window, or in the usable room.
    pub shares: Shares,
    /// When compaction starts.
    pub triggers: Triggers,
    /// What a result may have when it enters; the rest is under a handle.
    pub cut: Cut,
    /// A result enters without its noise: progress, repeated lines, data; with a thrifty dial also tests that
    /// passed.
    pub entry_digests: bool,
    /// What is done before every call, whatever the size.
    pub rules: Vec<&'static Strategy>,
    /// What is tried, in this order, until the target is met.
    pub ladder: Vec<&'static Strategy>,
    /// The kind of work decides what is tried before the ladder.
    pub by_task: bool,
    /// The newest part of the history that no fold of turns or steps touches unless the hard
    /// limit demands it, in percent of what the shares are of: the window, or the usable room.
    pub keep_recent: u8,
    /// What stands before the first answer is left alone unless the hard limit demands it, as long as it
    /// has at most this share, in percent of what the hard limit leaves beside the system layer. 0 is never.
    pub keep_opening: u8,
    /// The newest steps that no fold of turns or steps touches, as long as they fit into that share; 0
    /// is as many as fit.
    pub keep_steps: usize,
    /// Characters that stay of each block of thinking that goes because a model binds it to what stands before it.
    pub thinking_excerpt: usize,
    /// What signed thinking is worth that a fold by price takes with it, in percent of what its tokens cost when they
    /// were written. The model thinks some of it again.
    pub thinking_worth: u8,
    /// What lines of the past must be worth, and when a fold pays back. Without it a summary is filled with
    /// the best lines, and only limits start a compaction.
    pub dial: Option<Dial>,
    /// In whose place summaries stand.
    pub voice: Voice,
    /// The longest summary, in percent of what the shares are of.
    pub summary: u8,
    /// The form of a summary of finished turns, and of one inside a running turn.
    pub templates: Templates,
    /// Who writes summaries.
    pub summariser: Summariser,
    /// Summaries are written beside the work: between trigger and hard limit requests go out while one
    /// is open. Without it the work waits for each.
    pub background: bool,
    /// What is done when the summariser fails.
    pub on_failure: OnFailure,
    /// How long the summariser may take, in seconds.
    pub summary_timeout: u32,
    /// The model that writes summaries; the current one if none is named.
    pub summary_model: Option<Box<str>>,
    /// Compact down to the target whenever the provider's cache has lost the prefix anyway.
    pub when_cold: bool,
    /// Text behind `<Pin>` in a person's message is pinned.
    pub pin_mark: bool,
    /// Tools beside those that are known.
    pub aliases: Aliases,
    /// The figures of its strategies.
    pub constants: Constants,
}

/// When compaction starts, beside the hard limit, which every profile heeds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Triggers {
    /// At the trigger already, not only over it.
    pub inclusive: bool,
    /// By the prompt of the last call, and only when a turn has ended.
    pub end_of_turn: bool,
    /// Warning, trigger and target are shares that the messages alone may have: system prompt and tools
    /// come beside them. The hard limit counts everything.
    pub messages_alone: bool,
    /// Not before the conversation has so many messages.
    pub min_messages: usize,
    /// So many calls since the last full summary ask for one; 0 is never.
    pub calls: u64,
    /// The model asks for it by this text on a line of its own.
    pub mark: Option<Box<str>>,
    /// A person asks for it by `<Summary>` in their own words, outside of code.
    pub summary_mark: bool,
    /// Who asks, a person or the model, asks for a full summary.
    pub full_when_asked: bool,
}

impl Triggers {
    /// True for a request of a size that starts a compaction.
    pub(crate) fn is_reached(&self, size: Tokens, budget: &Budget) -> bool {
        size > budget.trigger || self.inclusive && size == budget.trigger
    }
}

/// The forms of summaries.
#[derive(Debug, Clone, Copy)]
pub struct Templates {
    /// Of turns that ended.
    pub finished: &'static Template,
    /// Of steps of a running turn.
    pub running: &'static Template,
}

/// Figures of the strategies, under the names that their seeds gave them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constants {
    /// The newest tool results that stay whole.
    pub keep_recent_tool_results: usize,
    /// The newest messages with thinking that keep it.
    pub keep_recent_thinking: usize,
    /// The newest messages that the window never drops.
    pub keep_recent_messages: usize,
    /// Lines of a digest by position, from the start.
    pub summary_head_lines: usize,
    /// … and from the end.
    pub summary_tail_lines: usize,
    /// The newest finished rounds that keep every message, beside the running one.
    pub min_retain_rounds: usize,
    /// Results of finished rounds stay as they came, instead of becoming digests.
    pub raw_rounds: bool,
    /// Appended summaries are merged past this share of the window, in percent.
    pub merge_above: u8,
    /// … and down to this.
    pub merge_to: u8,
    /// The newest messages that the sliding window keeps.
    pub sliding_window_size: usize,
    /// Units of this score and more are kept, in tenths.
    pub importance_score_threshold: u32,
    /// The newest units of little score that are kept all the same.
    pub keep_recent_others: usize,
    /// Messages in a chunk.
    pub incremental_summary_chunk_size: usize,
}

impl Default for Constants {
    fn default() -> Self {
        Self {
            keep_recent_tool_results: 6,
            keep_recent_thinking: 1,
            keep_recent_messages: 20,
            summary_head_lines: 3,
            summary_tail_lines: 2,
            min_retain_rounds: 10,
            raw_rounds: false,
            merge_above: 10,
            merge_to: 5,
            sliding_window_size: 9,
            importance_score_threshold: 30,
            keep_recent_others: 5,
            incremental_summary_chunk_size: 20,
        }
    }
}

/// Who writes summaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Summariser {
    /// The built-in extractor: no model, no network.
    Extractor,
    /// The host, asked by a job.
    Host,
}

/// What is done when the summariser has failed twice, or took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// The extractor writes the summary.
    Extract,
    /// The history stays as it is; the extractor steps in when the hard limit forces it.
    Keep,
    /// What was to be summarised is cut without a summary.
    Cut,
    /// The next strategy is tried.
    Next,
}

impl Profile {
    /// The default: when carrying what is finished has cost more than a fold, it becomes the lines that the
    /// work is likely to need (docs/default-profile.md).
    pub fn longhaul() -> Self {
        Self {
            name: "longhaul".into(),
            says: "folds what is finished into the lines that the work is likely to need, when carrying it has cost more than the fold".into(),
            window: Tokens(200_000),
            shares: Shares { warn: 70, trigger: 98, target: 60 },
            triggers: Triggers::default(),
            cut: Cut { bytes: 50_000, ..Cut::NONE },
            entry_digests: true,
            rules: Vec::new(),
            ladder: vec![&strategy::FOLD_TURNS, &strategy::FOLD_STEPS, &strategy::OLD_RESULTS],
            by_task: false,
            keep_recent: 24,
            keep_steps: 7,
            thinking_excerpt: 300,
            thinking_worth: 25,
            dial: Some(Dial::DEFAULT),
            keep_opening: 15,
            voice: Voice::User,
            summary: 42,
            templates: Templates { finished: &summary::FINISHED, running: &summary::HAND_OFF },
            summariser: Summariser::Extractor,
            background: true,
            on_failure: OnFailure::Extract,
            summary_timeout: 120,
            summary_model: None,
            when_cold: true,
            pin_mark: false,
            aliases: Aliases::default(),
            constants: Constants::default(),
        }
    }

    /// The default with the smallest bill.
    pub fn thrifty() -> Self {
        Self {
            name: "thrifty".into(),
            says: "as longhaul, and keeps less of the past: the smallest bill".into(),
            dial: Some(Dial::THRIFTY),
            ..Self::longhaul()
        }
    }

    /// The default with the longest memory.
    pub fn safe() -> Self {
        Self {
            name: "safe".into(),
            says: "as longhaul, and keeps more of the past: the longest memory".into(),
            dial: Some(Dial::SAFE),
            ..Self::longhaul()
        }
    }

    /// Seed 000: when a turn has ended and the prompt was large, the whole history becomes one
    /// hint in the system layer.
    pub fn mini() -> Self {
        Self {
            name: "mini".into(),
            says: "when a turn has ended whose last prompt was large, the whole history becomes one summary in the system layer".into(),
            window: Tokens(128_000),
            // Its compaction takes everything.
            shares: Shares { warn: 70, trigger: 80, target: 0 },
            triggers: Triggers { end_of_turn: true, ..Triggers::default() },
            cut: Cut { characters: 8_000, ..Cut::NONE },
            ladder: vec![&strategy::REBUILD],
            templates: Templates { finished: &summary::REBUILD, running: &summary::REBUILD },
            voice: Voice::System,
            summary: 20,
            on_failure: OnFailure::Keep,
            ..Self::plain()
        }
    }

    /// Seed 001: before every call old results are shortened and old thinking goes; over 75 % the
    /// oldest messages go.
    pub fn transform() -> Self {
        Self {
            name: "transform".into(),
            says: "before every call shortens all but the newest results and drops old thinking; then drops the oldest messages until all fits".into(),
            shares: Shares { warn: 70, trigger: 75, target: 75 },
            triggers: Triggers { messages_alone: true, ..Triggers::default() },
            cut: Cut { bytes: 50 << 10, ..Cut::NONE },
            rules: vec![&strategy::NEWEST_RESULTS, &strategy::OLD_THINKING],
            ladder: vec![&strategy::DROP_OLDEST],
            ..Self::plain()
        }
    }

    /// Seeds 002 and 003: results of finished turns become digests by tool; at 80 % all but the
    /// newest rounds become a summary that is appended to the ones before.
    pub fn archive() -> Self {
        Self {
            name: "archive".into(),
            says: "digests results when their turn ends; archives all but the newest rounds in an appended summary".into(),
            shares: Shares { warn: 70, trigger: 80, target: 60 },
            triggers: Triggers { inclusive: true, min_messages: 3, ..Triggers::default() },
            cut: Cut { bytes: 50 << 10, lines: 2_000, ..Cut::NONE },
            rules: vec![&strategy::FINISHED_RESULTS],
            ladder: vec![
                &strategy::MERGE_SUMMARIES,
                &strategy::ARCHIVE_ROUNDS,
                &strategy::ARCHIVE_KEPT,
                &strategy::FOLD_RUNNING,
            ],
            templates: Templates { finished: &summary::ARCHIVE, running: &summary::HAND_OFF },
            voice: Voice::System,
            summary: 10,
            on_failure: OnFailure::Cut,
            ..Self::plain()
        }
    }

    /// Seed 004: strategies by the kind of work, from light to heavy; a full summary last, after
    /// 200 calls, or when a person or the model asks.
    pub fn progressive() -> Self {
        Self {
            name: "progressive".into(),
            says: "tries strategies by the kind of work, from light to heavy; a full summary last".into(),
            shares: Shares { warn: 70, trigger: 75, target: 60 },
            triggers: Triggers {
                calls: 200,
                mark: Some("!!!SUMMARY!!!".into()),
                summary_mark: true,
                full_when_asked: true,
                ..Triggers::default()
            },
            cut: Cut { bytes: 50_000, ..Cut::NONE },
            ladder: vec![
                &strategy::SLIDING_WINDOW,
                &strategy::IMPORTANCE,
                &strategy::KEY_EVENTS,
                &strategy::INCREMENTS,
                &strategy::FULL_SUMMARY,
            ],
            by_task: true,
            templates: Templates { finished: &summary::FINISHED, running: &summary::HAND_OFF },
            summary: 15,
            on_failure: OnFailure::Next,
            pin_mark: true,
            ..Self::plain()
        }
    }

    /// What the seeds' profiles share.
    fn plain() -> Self {
        Self {
            entry_digests: false,
            summary: 36,
            when_cold: false,
            background: false,
            keep_recent: 0,
            keep_steps: 0,
            dial: None,
            keep_opening: 0,
            ..Self::longhaul()
        }
    }

    /// Nothing but the digests on entry, to see what they are worth.
    pub fn entry_only() -> Self {
        Self { name: "entry digests only".into(), ladder: Vec::new(), when_cold: false, ..Self::longhaul() }
    }

    /// Which lines of the past a summary keeps.
    pub(crate) fn choose(&self) -> Choose {
        match self.dial {
            None => Choose::Fill,
            Some(dial) => {
                Choose::Pay(LinePrice { byte: dial.byte(), text: dial.text(), slots: SLOTS, people: PEOPLE })
            }
        }
    }

    /// Warning, trigger and target are shares of the usable room. Profiles without a dial have shares of the
    /// window, as their seeds say.
    pub fn shares_are_of_room(&self) -> bool {
        self.dial.is_some() && !self.triggers.messages_alone
    }

    /// What a command printed or a search found enters as its best half where it has more bytes than this,
    /// unless it is source.
    pub(crate) fn long_output(&self) -> Option<usize> {
        self.dial.and_then(Dial::long_output)
    }

    /// How many tokens of the newest part no fold touches, unless the hard limit demands it.
    pub(crate) fn newest_part(&self, budget: &Budget) -> Tokens {
        /// In a small window the newest part is worth more than a long summary.
        const LEAST: (Tokens, u8) = (Tokens(8_000), 35);
        let share = budget.shared.percent(self.keep_recent);
        match self.dial {
            Some(_) => share.max(LEAST.0.min(budget.shared.percent(LEAST.1))),
            None => share,
        }
    }

    /// All built-in profiles.
    pub fn all() -> Vec<Self> {
        vec![
            Self::longhaul(),
            Self::thrifty(),
            Self::safe(),
            Self::mini(),
            Self::transform(),
            Self::archive(),
            Self::progressive(),
        ]
    }

    /// The built-in profile of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|profile| &*profile.name == name)
    }

    /// What the model is told of this profile, if anything. A session sends it behind the system prompt,
    /// from its first request on.
    ///
    /// ```
    /// use longhaul::Profile;
    /// assert!(Profile::progressive().system_note().unwrap().contains("!!!SUMMARY!!!"));
    /// assert_eq!(Profile::longhaul().system_note(), None);
    /// ```
    pub fn system_note(&self) -> Option<String> {
        self.triggers.mark.as_ref().map(|mark| {
            format!(
                "When the conversation holds much that is no longer needed, print {mark} on a line of its own: \
                 older messages are then summarised, and you go on with the task."
            )
        })
    }
}
