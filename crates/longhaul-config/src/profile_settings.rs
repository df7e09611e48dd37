//! The settings of a profile: a table of names, kinds and places. What a setting is called, what
//! it may be and where it goes stands here, in one row.

use longhaul::digest::Ends;
use longhaul::policy::{OnFailure, STRATEGIES};
use longhaul::summary::Template;
use longhaul::{Profile, Strategy, Summariser};

use crate::value::{NO_LIMIT, ValueKind, names_in, whole};

/// A setting of profiles.
pub struct ProfileSetting {
    /// Its name.
    pub name: &'static str,
    /// What it may be.
    pub kind: ValueKind,
    /// What it says.
    pub says: &'static str,
    /// The profiles that heed it; all if none is named.
    pub of: &'static [&'static str],
    /// Reads it from a profile.
    pub get: fn(&Profile) -> String,
    /// Writes it into a profile. The value was checked.
    pub set: fn(&mut Profile, &str),
}

const PERCENT: ValueKind = ValueKind::Number(0, 99);
const COUNT: ValueKind = ValueKind::Number(0, 1_000_000);

macro_rules! number {
    ($name:literal, $kind:expr, $says:literal, $of:expr, $($path:ident).+) => {
        ProfileSetting {
            name: $name,
            kind: $kind,
            says: $says,
            of: $of,
            get: |profile| profile.$($path).+.to_string(),
            set: |profile, value| {
                if let Some(value) = whole(value).and_then(|value| value.try_into().ok()) {
                    profile.$($path).+ = value;
                }
            },
        }
    };
}

macro_rules! limit {
    ($name:literal, $least:literal, $says:literal, $($path:ident).+) => {
        ProfileSetting {
            name: $name,
            kind: ValueKind::Limit($least),
            says: $says,
            of: &[],
            get: |profile| match profile.$($path).+ {
                usize::MAX => NO_LIMIT.to_owned(),
                limit => limit.to_string(),
            },
            set: |profile, value| {
                let limit = whole(value).and_then(|value| usize::try_from(value).ok());
                profile.$($path).+ = limit.unwrap_or(usize::MAX);
            },
        }
    };
}

macro_rules! flag {
    ($name:literal, $says:literal, $of:expr, $($path:ident).+) => {
        ProfileSetting {
            name: $name,
            kind: ValueKind::Flag,
            says: $says,
            of: $of,
            get: |profile| profile.$($path).+.to_string(),
            set: |profile, value| profile.$($path).+ = value == "true",
        }
    };
}

/// All of them.
pub const PROFILE_SETTINGS: &[ProfileSetting] = &[
    number!(
        "warn",
        PERCENT,
        "a person is warned, in percent of the window, or of the usable room where there is a dial",
        &[],
        shares.warn
    ),
    number!("trigger", PERCENT, "compaction starts", &[], shares.trigger),
    number!("target", PERCENT, "what it works to; 0 takes everything", &[], shares.target),
    ProfileSetting {
        name: "dial",
        kind: ValueKind::Dial,
        says: "how many recalls one avoided miss may cost: thrifty, default, safe, or 1 to 100; off leaves it to the limits",
        of: &["longhaul", "thrifty", "safe"],
        get: |profile| profile.dial.map_or("off".to_owned(), |dial| dial.to_string()),
        set: |profile, value| profile.dial = value.parse().ok(),
    },
    number!(
        "keep_steps",
        COUNT,
        "the newest steps that are left alone, as far as they fit into that part; 0 is as many as fit",
        &["longhaul", "thrifty", "safe"],
        keep_steps
    ),
    number!(
        "thinking_excerpt",
        COUNT,
        "where a model binds thinking to what stands before it: characters that stay of each block that an edit takes with it",
        &[],
        thinking_excerpt
    ),
    number!(
        "thinking_worth",
        ValueKind::Number(0, 100),
        "… what such thinking is worth to a fold by price, in percent of what writing it cost",
        &["longhaul", "thrifty", "safe"],
        thinking_worth
    ),
    number!(
        "keep_recent",
        ValueKind::Number(0, 90),
        "the newest part that is left alone, in percent of the same",
        &["longhaul", "thrifty", "safe"],
        keep_recent
    ),
    number!(
        "keep_opening",
        ValueKind::Number(0, 90),
        "what stands before the first answer is left alone up to this share, in percent of the room beside the system layer",
        &[],
        keep_opening
    ),
    number!("summary", ValueKind::Number(1, 50), "the longest summary, in percent of the same", &[], summary),
    limit!("entry_bytes", 1_000, "a result enters with at most so many bytes; none: no limit", cut.bytes),
    limit!("entry_characters", 500, "… characters", cut.characters),
    limit!("entry_lines", 10, "… lines", cut.lines),
    ProfileSetting {
        name: "entry_ends",
        kind: ValueKind::OneOf(&["both", "head", "tail"]),
        says: "what is kept of a result that enters cut",
        of: &[],
        get: |profile| {
            match profile.cut.ends {
                Ends::Both => "both",
                Ends::Head => "head",
                Ends::Tail => "tail",
            }
            .to_owned()
        },
        set: |profile, value| {
            profile.cut.ends = match value {
                "head" => Ends::Head,
                "tail" => Ends::Tail,
                _ => Ends::Both,
            };
        },
    },
    flag!("entry_digests", "a result enters without its noise", &[], entry_digests),
    flag!("when_cold", "compact when the prompt cache has gone cold anyway", &[], when_cold),
    number!(
        "keep_recent_tool_results",
        COUNT,
        "the newest results that stay whole",
        &["transform"],
        constants.keep_recent_tool_results
    ),
    number!(
        "keep_recent_thinking",
        COUNT,
        "the newest messages that keep their thinking",
        &["transform"],
        constants.keep_recent_thinking
    ),
    number!(
        "keep_recent_messages",
        COUNT,
        "the newest messages that the window never drops",
        &["transform"],
        constants.keep_recent_messages
    ),
    number!(
        "summary_head_lines",
        ValueKind::Number(0, 1_000),
        "lines of an old result from its start",
        &["transform"],
        constants.summary_head_lines
    ),
    number!(
        "summary_tail_lines",
        ValueKind::Number(0, 1_000),
        "… and from its end",
        &["transform"],
        constants.summary_tail_lines
    ),
    number!(
        "min_retain_rounds",
        ValueKind::Number(1, 1_000_000),
        "the newest finished rounds that keep every message",
        &["archive"],
        constants.min_retain_rounds
    ),
    flag!("raw_rounds", "results of finished rounds stay as they came", &["archive"], constants.raw_rounds),
    number!(
        "merge_above",
        PERCENT,
        "summaries are merged past this share of the window",
        &["archive"],
        constants.merge_above
    ),
    number!("merge_to", ValueKind::Number(1, 50), "… down to this", &["archive"], constants.merge_to),
    number!(
        "min_messages",
        COUNT,
        "no compaction before so many messages",
        &["archive"],
        triggers.min_messages
    ),
    number!(
        "sliding_window_size",
        ValueKind::Number(1, 1_000_000),
        "the newest messages that the sliding window keeps",
        &["progressive"],
        constants.sliding_window_size
    ),
    ProfileSetting {
        name: "importance_score_threshold",
        kind: ValueKind::Decimal(0.0, 10.0),
        says: "units of this score are kept",
        of: &["progressive"],
        get: |profile| {
            let tenths = profile.constants.importance_score_threshold;
            format!("{}.{}", tenths / 10, tenths % 10)
        },
        set: |profile, value| {
            if let Ok(score) = value.parse::<f64>() {
                profile.constants.importance_score_threshold = (score * 10.0).round() as u32;
            }
        },
    },
    number!(
        "keep_recent_others",
        COUNT,
        "the newest units of little score that are kept",
        &["progressive"],
        constants.keep_recent_others
    ),
    number!(
        "incremental_summary_chunk_size",
        ValueKind::Number(1, 1_000_000),
        "messages in a chunk",
        &["progressive"],
        constants.incremental_summary_chunk_size
    ),
    number!(
        "conversation_turn_threshold",
        COUNT,
        "calls until a full summary; 0 is never",
        &["progressive"],
        triggers.calls
    ),
    ProfileSetting {
        name: "mark",
        kind: ValueKind::Text,
        says: "the model asks for a compaction by this text on a line of its own; empty is none",
        of: &["progressive"],
        get: |profile| profile.triggers.mark.as_deref().unwrap_or_default().to_owned(),
        set: |profile, value| profile.triggers.mark = (!value.is_empty()).then(|| value.into()),
    },
    flag!(
        "summary_mark",
        "a person asks for a compaction by <Summary> in their message",
        &["progressive"],
        triggers.summary_mark
    ),
    flag!(
        "full_when_asked",
        "who asks for a compaction, a person or the model, gets a full summary",
        &["progressive"],
        triggers.full_when_asked
    ),
    flag!("end_of_turn", "by the last prompt of a turn that has ended", &["mini"], triggers.end_of_turn),
    flag!(
        "messages_alone",
        "warn, trigger and target count the messages alone, without system prompt and tools",
        &["transform"],
        triggers.messages_alone
    ),
    flag!("at_trigger", "at the trigger already, not only over it", &["archive"], triggers.inclusive),
    flag!("by_task", "the kind of work decides what is tried first", &["progressive"], by_task),
    flag!("pin_mark", "text behind <Pin> in a user message is pinned", &["progressive"], pin_mark),
    ProfileSetting {
        name: "summariser",
        kind: ValueKind::OneOf(&["extractor", "model"]),
        says: "who writes summaries",
        of: &[],
        get: |profile| if profile.summariser == Summariser::Host { "model" } else { "extractor" }.to_owned(),
        set: |profile, value| {
            profile.summariser = if value == "model" { Summariser::Host } else { Summariser::Extractor };
        },
    },
    ProfileSetting {
        name: "summary_model",
        kind: ValueKind::Text,
        says: "the model that writes them; empty is the current one",
        of: &[],
        get: |profile| profile.summary_model.as_deref().unwrap_or_default().to_owned(),
        set: |profile, value| profile.summary_model = (!value.is_empty()).then(|| value.into()),
    },
    flag!("background", "the work goes on while a model writes a summary", &[], background),
    number!(
        "summary_timeout",
        ValueKind::Number(1, 86_400),
        "seconds that it may take",
        &[],
        summary_timeout
    ),
    ProfileSetting {
        name: "on_failure",
        kind: ValueKind::OneOf(&["extract", "keep", "cut", "next"]),
        says: "when no summary comes: the extractor writes it, history is kept, cut, or the next strategy is tried",
        of: &[],
        get: |profile| {
            match profile.on_failure {
                OnFailure::Extract => "extract",
                OnFailure::Keep => "keep",
                OnFailure::Cut => "cut",
                OnFailure::Next => "next",
            }
            .to_owned()
        },
        set: |profile, value| {
            profile.on_failure = match value {
                "keep" => OnFailure::Keep,
                "cut" => OnFailure::Cut,
                "next" => OnFailure::Next,
                _ => OnFailure::Extract,
            };
        },
    },
    ProfileSetting {
        name: "rules",
        kind: ValueKind::Strategies,
        says: "what is done before every call",
        of: &[],
        get: |profile| names(&profile.rules),
        set: |profile, value| profile.rules = strategies(value),
    },
    ProfileSetting {
        name: "ladder",
        kind: ValueKind::Strategies,
        says: "what is tried, in this order, until the target is met",
        of: &[],
        get: |profile| names(&profile.ladder),
        set: |profile, value| profile.ladder = strategies(value),
    },
    ProfileSetting {
        name: "finished",
        kind: ValueKind::Template,
        says: "the form of a summary of finished turns",
        of: &[],
        get: |profile| profile.templates.finished.name.to_owned(),
        set: |profile, value| {
            profile.templates.finished = Template::find(value).unwrap_or(profile.templates.finished)
        },
    },
    ProfileSetting {
        name: "running",
        kind: ValueKind::Template,
        says: "the form of a summary inside a running turn",
        of: &[],
        get: |profile| profile.templates.running.name.to_owned(),
        set: |profile, value| {
            profile.templates.running = Template::find(value).unwrap_or(profile.templates.running)
        },
    },
];

impl ProfileSetting {
    /// Whether a profile that goes by these names heeds it.
    pub fn is_for(&self, name: &str, base: &str) -> bool {
        self.of.is_empty()
            || self.of.contains(&name)
            || self.of.contains(&base)
            || Profile::find(name).is_none()
    }
}

fn names(strategies: &[&'static Strategy]) -> String {
    strategies.iter().map(|strategy| strategy.name).collect::<Vec<_>>().join(", ")
}

fn strategies(value: &str) -> Vec<&'static Strategy> {
    let find = |name: &str| STRATEGIES.iter().copied().find(|strategy| strategy.name == name);
    names_in(value).filter_map(find).collect()
}
