//! What a setting may be, and what is wrong with a value that it may not.

use longhaul::Dial;
use longhaul::digest::ToolKind;
use longhaul::policy::{DialError, STRATEGIES};
use longhaul::summary::{TEMPLATES, Template};

use crate::nearest::nearest;
use crate::size::{shown_size, size_of, tokens_of};

/// What a value must be.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ValueKind {
    /// A whole number in these bounds.
    Number(u64, u64),
    /// A whole number of at least this, or `none`.
    Limit(u64),
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
    /// Rules for permissions, with commas between them.
    Rules,
    /// The name of a template.
    Template,
    /// A dial, or `off`.
    Dial,
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
    /// No dial.
    #[error("is {0}")]
    NotDial(DialError),
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
    /// No limit, and not `none`.
    #[error("is {value:?}, neither a whole number from {least} on nor none")]
    NotLimit {
        /// The value.
        value: String,
        /// The least that it may be.
        least: u64,
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
    /// A list with something that is no rule.
    #[error("has {rule:?}, which is no rule; one is the name of a tool, or `Tool(what)`")]
    NoRule {
        /// What is no rule.
        rule: String,
    },
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
            Self::Number(least, most) => match whole(text) {
                Some(number) if (least..=most).contains(&number) => Ok(()),
                _ => Err(ValueError::NotWhole { value: value(), least, most }),
            },
            Self::Limit(_) if text == NO_LIMIT => Ok(()),
            Self::Limit(least) => match whole(text) {
                Some(number) if number >= least => Ok(()),
                _ => Err(ValueError::NotLimit { value: value(), least }),
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
            Self::Rules => match rules_in(text).find(|rule| !is_rule(rule)) {
                None => Ok(()),
                Some(rule) => Err(ValueError::NoRule { rule: rule.to_owned() }),
            },
            Self::Template if Template::find(text).is_some() => Ok(()),
            Self::Template => {
                let known = TEMPLATES.iter().map(|template| template.name);
                Err(ValueError::NoTemplate { value: value(), nearest: nearest(text, known) })
            }
            Self::Dial if text == "off" => Ok(()),
            Self::Dial => match text.parse::<Dial>() {
                Ok(_) => Ok(()),
                Err(error) => Err(ValueError::NotDial(error)),
            },
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

/// What a limit that there is not is called.
pub(crate) const NO_LIMIT: &str = "none";

/// A whole number, as people and TOML write it: `50_000` too.
pub(crate) fn whole(text: &str) -> Option<u64> {
    text.replace('_', "").parse().ok()
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

/// The rules in a list, as `agent.allow` has them. A comma inside of `Tool(…)` parts no rules.
pub fn rules_in(list: &str) -> impl Iterator<Item = &str> {
    let mut rest = list;
    std::iter::from_fn(move || {
        let is_end = |at: &usize| {
            let rule = rest[..*at].trim();
            !rule.contains('(') || rule.ends_with(')')
        };
        let end = rest.match_indices(',').map(|(at, _)| at).find(is_end);
        let (rule, after) = end.map_or((rest, ""), |at| (&rest[..at], &rest[at + 1..]));
        rest = after;
        (!rule.is_empty() || !after.is_empty()).then(|| rule.trim())
    })
    .filter(|rule| !rule.is_empty())
}

/// The name of a tool, alone or with something in brackets.
fn is_rule(text: &str) -> bool {
    let (name, what) = text.split_once('(').map_or((text, None), |(name, what)| (name, Some(what)));
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*' | '.');
    !name.is_empty() && name.chars().all(is_name) && what.is_none_or(|what| what.ends_with(')'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_or_none() {
        let check = |text| ValueKind::Limit(10).check(text, [].into_iter());
        for good in ["10", "50_000", "none"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["9", "no", "-1", ""] {
            let problem = format!("is {bad:?}, neither a whole number from 10 on nor none");
            assert_eq!(check(bad).unwrap_err().to_string(), problem);
        }
    }

    #[test]
    fn rules_are_parted_where_they_end() {
        let rules = |list| rules_in(list).collect::<Vec<_>>();
        assert!(rules(" , ").is_empty() && rules("").is_empty());
        assert_eq!(
            rules("Edit, Bash(cargo test),Edit(src/**)"),
            ["Edit", "Bash(cargo test)", "Edit(src/**)"]
        );
        assert_eq!(rules("Bash(echo a, b), Write"), ["Bash(echo a, b)", "Write"]);
        assert_eq!(rules("Bash(echo (), Bash(rm)"), ["Bash(echo ()", "Bash(rm)"]);
        assert_eq!(rules("Bash(rm"), ["Bash(rm"]);
        assert!(ValueKind::Rules.check("Edit, mcp__docs__*", [].into_iter()).is_ok());
        for bad in ["Bash(rm", "rm -rf", "(x)"] {
            assert!(ValueKind::Rules.check(bad, [].into_iter()).is_err(), "{bad}");
        }
    }
}
