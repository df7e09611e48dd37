//! The settings of a profile: a table of names, kinds and places. What a setting is called, what
//! it may be and where it goes stands here, in one row.

use longhaul::{Ends, OnFailure, Profile, STRATEGIES, Strategy, Summariser, TEMPLATES, Template};

/// What a value must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A whole number in these bounds.
    Number(u64, u64),
    /// A number with one place behind the point, in these bounds.
    Decimal(f64, f64),
    /// `true` or `false`.
    Flag,
    /// The name of a profile.
    Profile,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Names of strategies, in their order.
    Strategies,
    /// The name of a template.
    Template,
    /// Any text.
    Text,
}

/// A setting of profiles.
pub struct OfProfile {
    /// Its name.
    pub name: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// What it says.
    pub says: &'static str,
    /// The profiles that heed it; all if none is named.
    pub of: &'static [&'static str],
    /// Reads it from a profile.
    pub get: fn(&Profile) -> String,
    /// Writes it into a profile. The value was checked.
    pub set: fn(&mut Profile, &str),
}

const PERCENT: Kind = Kind::Number(0, 99);
const COUNT: Kind = Kind::Number(0, 1_000_000);
const NO_LIMIT: u64 = 1 << 40;

macro_rules! number {
    ($name:literal, $kind:expr, $says:literal, $of:expr, $($path:ident).+) => {
        OfProfile {
            name: $name,
            kind: $kind,
            says: $says,
            of: $of,
            get: |profile| (profile.$($path).+ as u64).min(NO_LIMIT).to_string(),
            set: |profile, value| {
                if let Ok(value) = value.parse() {
                    profile.$($path).+ = value;
                }
            },
        }
    };
}

macro_rules! flag {
    ($name:literal, $says:literal, $of:expr, $($path:ident).+) => {
        OfProfile {
            name: $name,
            kind: Kind::Flag,
            says: $says,
            of: $of,
            get: |profile| profile.$($path).+.to_string(),
            set: |profile, value| profile.$($path).+ = value == "true",
        }
    };
}

/// All of them.
pub const OF_PROFILES: &[OfProfile] = &[
    number!("warn", PERCENT, "a person is warned, in percent of the window", &[], shares.warn),
    number!("trigger", PERCENT, "compaction starts", &[], shares.trigger),
    number!("target", PERCENT, "what it works to", &[], shares.target),
    number!(
        "keep_recent",
        Kind::Number(0, 90),
        "the newest part that is left alone, in percent of the window",
        &["longhaul"],
        keep_recent
    ),
    number!("summary", Kind::Number(1, 50), "the longest summary, in percent of the window", &[], summary),
    number!(
        "entry_bytes",
        Kind::Number(1_000, NO_LIMIT),
        "a result enters with at most so many bytes",
        &[],
        cut.bytes
    ),
    number!("entry_characters", Kind::Number(500, NO_LIMIT), "… characters", &[], cut.characters),
    number!("entry_lines", Kind::Number(10, NO_LIMIT), "… lines", &[], cut.lines),
    OfProfile {
        name: "entry_ends",
        kind: Kind::OneOf(&["both", "head", "tail"]),
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
        Kind::Number(0, 1_000),
        "lines of an old result from its start",
        &["transform"],
        constants.summary_head_lines
    ),
    number!(
        "summary_tail_lines",
        Kind::Number(0, 1_000),
        "… and from its end",
        &["transform"],
        constants.summary_tail_lines
    ),
    number!(
        "min_retain_rounds",
        Kind::Number(1, 1_000_000),
        "the newest rounds that keep every message",
        &["archive"],
        constants.min_retain_rounds
    ),
    number!(
        "merge_above",
        PERCENT,
        "summaries are merged past this share of the window",
        &["archive"],
        constants.merge_above
    ),
    number!("merge_to", Kind::Number(1, 50), "… down to this", &["archive"], constants.merge_to),
    number!(
        "min_messages",
        COUNT,
        "no compaction before so many messages",
        &["archive"],
        triggers.min_messages
    ),
    number!(
        "sliding_window_size",
        Kind::Number(1, 1_000_000),
        "the newest messages that the sliding window keeps",
        &["progressive"],
        constants.sliding_window_size
    ),
    OfProfile {
        name: "importance_score_threshold",
        kind: Kind::Decimal(0.0, 10.0),
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
        Kind::Number(1, 1_000_000),
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
    OfProfile {
        name: "mark",
        kind: Kind::Text,
        says: "the model asks for a compaction by this text on a line of its own; empty is none",
        of: &["progressive"],
        get: |profile| profile.triggers.mark.as_deref().unwrap_or_default().to_owned(),
        set: |profile, value| profile.triggers.mark = (!value.is_empty()).then(|| value.into()),
    },
    flag!("end_of_turn", "by the last prompt of a turn that has ended", &["mini"], triggers.end_of_turn),
    flag!("at_trigger", "at the trigger already, not only over it", &["archive"], triggers.inclusive),
    flag!("by_task", "the kind of work decides what is tried first", &["progressive"], by_task),
    flag!("pin_mark", "text behind <Pin> in a user message is pinned", &["progressive"], pin_mark),
    OfProfile {
        name: "summariser",
        kind: Kind::OneOf(&["extractor", "model"]),
        says: "who writes summaries",
        of: &[],
        get: |profile| if profile.summariser == Summariser::Host { "model" } else { "extractor" }.to_owned(),
        set: |profile, value| {
            profile.summariser = if value == "model" { Summariser::Host } else { Summariser::Extractor };
        },
    },
    OfProfile {
        name: "summary_model",
        kind: Kind::Text,
        says: "the model that writes them; empty is the current one",
        of: &[],
        get: |profile| profile.summary_model.as_deref().unwrap_or_default().to_owned(),
        set: |profile, value| profile.summary_model = (!value.is_empty()).then(|| value.into()),
    },
    number!("summary_timeout", Kind::Number(1, 86_400), "seconds that it may take", &[], summary_timeout),
    OfProfile {
        name: "on_failure",
        kind: Kind::OneOf(&["extract", "keep", "cut", "next"]),
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
    OfProfile {
        name: "rules",
        kind: Kind::Strategies,
        says: "what is done before every call",
        of: &[],
        get: |profile| names(&profile.rules),
        set: |profile, value| profile.rules = strategies(value),
    },
    OfProfile {
        name: "ladder",
        kind: Kind::Strategies,
        says: "what is tried, in this order, until the target is met",
        of: &[],
        get: |profile| names(&profile.ladder),
        set: |profile, value| profile.ladder = strategies(value),
    },
    OfProfile {
        name: "finished",
        kind: Kind::Template,
        says: "the form of a summary of finished turns",
        of: &[],
        get: |profile| profile.templates.finished.name.to_owned(),
        set: |profile, value| {
            profile.templates.finished = Template::find(value).unwrap_or(profile.templates.finished)
        },
    },
    OfProfile {
        name: "running",
        kind: Kind::Template,
        says: "the form of a summary inside a running turn",
        of: &[],
        get: |profile| profile.templates.running.name.to_owned(),
        set: |profile, value| {
            profile.templates.running = Template::find(value).unwrap_or(profile.templates.running)
        },
    },
];

impl OfProfile {
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
    let names = value.split(',').map(str::trim);
    names.filter_map(|name| STRATEGIES.iter().copied().find(|strategy| strategy.name == name)).collect()
}

impl Kind {
    /// Whether a value will do; else what is wrong with it.
    pub fn check(self, value: &str, profiles: &[String]) -> Result<(), String> {
        let meant = |value: &str, known: Vec<&str>| {
            let near = nearest(value, known.iter().map(|name| (*name).to_owned()));
            format!("is {near:?} meant?")
        };
        match self {
            Self::Number(least, most) => match value.replace('_', "").parse::<u64>() {
                Ok(number) if (least..=most).contains(&number) => Ok(()),
                _ => Err(format!("is {value:?}, not a whole number from {least} to {most}")),
            },
            Self::Decimal(least, most) => match value.parse::<f64>() {
                Ok(number) if (least..=most).contains(&number) => Ok(()),
                _ => Err(format!("is {value:?}, not a number from {least} to {most}")),
            },
            Self::Flag if matches!(value, "true" | "false") => Ok(()),
            Self::Flag => Err(format!("is {value:?}, neither true nor false")),
            Self::Profile if profiles.iter().any(|name| name == value) => Ok(()),
            Self::Profile => {
                let known = profiles.iter().map(String::as_str).collect();
                Err(format!("is {value:?}; there is no such profile, {}", meant(value, known)))
            }
            Self::OneOf(words) if words.contains(&value) => Ok(()),
            Self::OneOf(words) => Err(format!("is {value:?}, not one of {}", words.join(", "))),
            Self::Strategies => {
                let mut names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
                match names.find(|name| !STRATEGIES.iter().any(|strategy| strategy.name == *name)) {
                    None => Ok(()),
                    Some(name) => {
                        let known = STRATEGIES.iter().map(|strategy| strategy.name).collect();
                        Err(format!("names {name:?}; there is no such strategy, {}", meant(name, known)))
                    }
                }
            }
            Self::Template if Template::find(value).is_some() => Ok(()),
            Self::Template => {
                let known = TEMPLATES.iter().map(|template| template.name).collect();
                Err(format!("is {value:?}; there is no such template, {}", meant(value, known)))
            }
            Self::Text => Ok(()),
        }
    }

    /// Whether a value is written in quotes.
    pub fn is_text(self) -> bool {
        !matches!(self, Self::Number(..) | Self::Decimal(..) | Self::Flag | Self::Strategies)
    }
}

/// The name that differs least.
pub fn nearest(name: &str, known: impl Iterator<Item = String>) -> String {
    known.min_by_key(|known| distance(name, known)).unwrap_or_default()
}

/// How many letters must be changed, added or left out to make one of the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
