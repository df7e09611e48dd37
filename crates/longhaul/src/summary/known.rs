//! What is known of a summary beside the messages that it is made of: the goal in words, the technical
//! context that the host told, and from when to when it reaches. No model is asked for these.

use super::{Language, facts, sentences};
use crate::conversation::fact::FactKind;
use crate::conversation::log::{Log, Span};
use crate::conversation::message::Time;

/// What is known of a summary beside its material.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known<'a> {
    /// What the work is for, in about a line.
    pub(crate) goal: Option<String>,
    /// Languages, frameworks and versions, as the host says.
    pub(crate) stack: Option<&'a str>,
    /// Operating system, shell and variables, as the host says.
    pub(crate) environment: Option<&'a str>,
    /// Where it begins and where it ends.
    pub(super) range: [Moment; 2],
}

/// Where something stands in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    Time(Time),
    /// The number of a message, from 1.
    Number(u32),
}

impl<'a> Known<'a> {
    /// What is known of a summary of these runs.
    pub(crate) fn of(log: &'a Log, spans: &[Span]) -> Self {
        let first_request = || {
            let message = log.get(log.goal_message()?)?;
            message.words().filter_map(sentences::wanted).last()
        };
        let goal = log.fact(FactKind::Goal, "").map(facts::one_line);
        Self {
            goal: goal.or_else(first_request),
            stack: log.fact(FactKind::Stack, ""),
            environment: log.fact(FactKind::Environment, ""),
            range: range(log, spans),
        }
    }

    #[cfg(test)]
    pub(super) fn of_numbers(from: u32, to: u32) -> Self {
        let range = [Moment::Number(from), Moment::Number(to)];
        Self { goal: None, stack: None, environment: None, range }
    }

    /// Where it begins and where it ends, in words.
    pub(super) fn range(&self, language: Language) -> [String; 2] {
        self.range.map(|moment| match moment {
            Moment::Time(time) => time.to_string(),
            Moment::Number(number) => format!("{} {number}", language.words().message),
        })
    }
}

/// From when to when: by time where messages have one, else by number.
fn range(log: &Log, spans: &[Span]) -> [Moment; 2] {
    let messages = || spans.iter().flat_map(|span| &log.messages()[span.range()]);
    let mut times = messages().filter_map(|message| message.time());
    if let Some(first) = times.next() {
        return [Moment::Time(first), Moment::Time(times.next_back().unwrap_or(first))];
    }
    let first = spans.first().map_or(0, |span| span.start.0 + 1);
    [Moment::Number(first), Moment::Number(spans.last().map_or(0, |span| span.end.0))]
}
