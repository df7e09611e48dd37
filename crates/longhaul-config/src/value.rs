//! What a setting may be, and what is wrong with a value that it may not.

use longhaul::digest::ToolKind;
use longhaul::policy::STRATEGIES;
use longhaul::summary::{TEMPLATES, Template};

use crate::nearest::nearest;
use crate::size::{shown_size, size_of, tokens_of};

/// What a value must be.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ValueKind {
    /// A whole number in these bounds.
    Number(u64, u64),
    /// Tokens: a whole number, or one with `k` or `M` behind it, in these bounds.
    Tokens(u64, u64),
    /// Bytes: a whole number, or one with `k`, `M`, `G` or `T` behind it, in these bounds.
    Size(u64, u64),
    /// A number with one place behind the point, in these bounds.
    Decimal(f64, f64),
    /// `true` or `false`.
    Flag,
    /// The name of a profile.
    Profile,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Names of strategies, in their order, with commas between them.
    Strategies,
    /// The name of a template.
    Template,
    /// The kind of a tool.
    Tool,
    /// The path of a file, or a URL, which may hold a password.
    Place,
    /// The name of a variable of the environment.
    VariableName,
    /// Any text.
    Text,
}

/// Why a setting cannot have a value. Reads on from the name of the setting.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// A table, a date, a list of something else than texts.
    #[error("has a value of a kind that no setting has")]
    NoKind,
    /// No whole number, or none in the bounds.
    #[error("is {value:?}, not a whole number from {least} to {most}")]
    NotWhole {
        /// The value.
        value: String,
        /// The least that it may be.
        least: u64,
        /// The most that it may be.
        most: u64,
    },
    /// No number of bytes, or none in the bounds.
    #[error("is {value:?}, not a number of bytes from {} to {}, such as 32k, 64M or 10G", shown_size(*least), shown_size(*most))]
    NotSize {
        /// The value.
        value: String,
        /// The least that it may be.
        least: u64,
        /// The most that it may be.
        most: u64,
    },
    /// No number, or none in the bounds.
    #[error("is {value:?}, not a number from {least} to {most}")]
    NotNumber {
        /// The value.
        value: String,
        /// The least that it may be.
        least: f64,
        /// The most that it may be.
        most: f64,
    },
    /// No flag.
    #[error("is {value:?}, neither true nor false")]
    NotFlag {
        /// The value.
        value: String,
    },
    /// None of the words that there are.
    #[error("is {value:?}, not one of {}", words.join(", "))]
    NotOneOf {
        /// The value.
        value: String,
        /// What it may be.
        words: Vec<&'static str>,
    },
    /// No name of a variable. The value is not said: it may be a key.
    #[error("is not the name of a variable of the environment; a key itself stands in no file of settings")]
    NotVariable,
    /// The name of no profile.
    #[error("is {value:?}; there is no such profile, is {nearest:?} meant?")]
    NoProfile {
        /// The value.
        value: String,
        /// The profile that may be meant.
        nearest: String,
    },
    /// The name of no template.
    #[error("is {value:?}; there is no such template, is {nearest:?} meant?")]
    NoTemplate {
        /// The value.
        value: String,
        /// The template that may be meant.
        nearest: String,
    },
    /// A list with the name of no strategy.
    #[error("names {name:?}; there is no such strategy, is {nearest:?} meant?")]
    NoStrategy {
        /// The name.
        name: String,
        /// The strategy that may be meant.
        nearest: String,
    },
}

impl ValueKind {
    /// Whether a value will do; else what is wrong with it.
    pub(crate) fn check<'a>(
        self,
        text: &str,
        profiles: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<(), ValueError> {
        let value = || text.to_owned();
        match self {
            Self::Number(least, most) => match text.replace('_', "").parse::<u64>() {
                Ok(number) if (least..=most).contains(&number) => Ok(()),
                _ => Err(ValueError::NotWhole { value: value(), least, most }),
            },
            Self::Tokens(least, most) => match tokens_of(text) {
                Some(tokens) if (least..=most).contains(&tokens) => Ok(()),
                _ => Err(ValueError::NotWhole { value: value(), least, most }),
            },
            Self::Size(least, most) => match size_of(text) {
                Some(bytes) if (least..=most).contains(&bytes) => Ok(()),
                _ => Err(ValueError::NotSize { value: value(), least, most }),
            },
            Self::Decimal(least, most) => match text.parse::<f64>() {
                Ok(number) if (least..=most).contains(&number) => Ok(()),
                _ => Err(ValueError::NotNumber { value: value(), least, most }),
            },
            Self::Flag if matches!(text, "true" | "false") => Ok(()),
            Self::Flag => Err(ValueError::NotFlag { value: value() }),
            Self::Profile if profiles.clone().any(|name| name == text) => Ok(()),
            Self::Profile => Err(ValueError::NoProfile { value: value(), nearest: nearest(text, profiles) }),
            Self::OneOf(words) if words.contains(&text) => Ok(()),
            Self::OneOf(words) => Err(ValueError::NotOneOf { value: value(), words: words.to_vec() }),
            Self::Strategies => {
                let known = || STRATEGIES.iter().map(|strategy| strategy.name);
                match names_in(text).find(|name| !known().any(|known| known == *name)) {
                    None => Ok(()),
                    Some(name) => {
                        Err(ValueError::NoStrategy { name: name.to_owned(), nearest: nearest(name, known()) })
                    }
                }
            }
            Self::Template if Template::find(text).is_some() => Ok(()),
            Self::Template => {
                let known = TEMPLATES.iter().map(|template| template.name);
                Err(ValueError::NoTemplate { value: value(), nearest: nearest(text, known) })
            }
            Self::Tool if tool_kind(text).is_some() => Ok(()),
            Self::Tool => {
                let words = ToolKind::NAMES.iter().map(|(name, _)| *name).collect();
                Err(ValueError::NotOneOf { value: value(), words })
            }
            Self::VariableName if is_variable(text) => Ok(()),
            Self::VariableName => Err(ValueError::NotVariable),
            Self::Place | Self::Text => Ok(()),
        }
    }
}

/// A name that a variable may have; none is one too.
fn is_variable(text: &str) -> bool {
    let digit_first = text.starts_with(|c: char| c.is_ascii_digit());
    !digit_first && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The kind of tool that goes by this name.
pub(crate) fn tool_kind(name: &str) -> Option<ToolKind> {
    ToolKind::NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
}

/// The names in a list, as `ladder` has them.
pub(crate) fn names_in(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty())
}
