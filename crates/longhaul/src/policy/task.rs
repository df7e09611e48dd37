//! Kinds of work (seed 004): what the host says, else what the tool calls show. The kind decides
//! which strategies are tried first.

use serde::{Deserialize, Serialize};

use crate::conversation::log::Log;
use crate::digest::{Aliases, ToolKind};
use crate::policy::strategy::{self, Strategy};

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Files are changed and commands run.
    Code,
    /// Files are read and searched.
    Analysis,
    /// Short questions and answers, no tools.
    Conversation,
    /// Code and analysis.
    Mixed,
    /// It does not show.
    Unknown,
}

/// A kind with this share of the calls is the kind of the work, in percent.
const WINS: usize = 60;
/// Two kinds with this share are both.
const BOTH: usize = 25;
/// A conversation's inputs are shorter, in characters.
const SHORT_INPUT: usize = 200;

impl Task {
    /// The kind of work that a log shows.
    pub(crate) fn of(log: &Log, aliases: &Aliases) -> Self {
        let (mut code, mut analysis, mut other) = (0, 0, 0);
        let mut inputs = Vec::new();
        for message in log.messages() {
            inputs.extend(message.words().map(|words| words.chars().count()));
            for call in message.calls() {
                match aliases.kind_of(call) {
                    ToolKind::Edit | ToolKind::Write | ToolKind::Bash => code += 1,
                    ToolKind::Read | ToolKind::Grep | ToolKind::Glob | ToolKind::Ls => analysis += 1,
                    ToolKind::Todo | ToolKind::Recall | ToolKind::Other => other += 1,
                }
            }
        }
        let calls = code + analysis + other;
        if calls == 0 {
            inputs.sort_unstable();
            let median = inputs.get(inputs.len() / 2);
            return if median.is_some_and(|median| *median < SHORT_INPUT) {
                Self::Conversation
            } else {
                Self::Unknown
            };
        }
        let share = |count: usize| count * 100 / calls;
        match (share(code), share(analysis)) {
            (code, _) if code >= WINS => Self::Code,
            (_, analysis) if analysis >= WINS => Self::Analysis,
            (code, analysis) if code >= BOTH && analysis >= BOTH => Self::Mixed,
            _ => Self::Unknown,
        }
    }

    /// What is tried first.
    pub(crate) fn order(self) -> [&'static Strategy; 3] {
        use strategy::{IMPORTANCE, INCREMENTS, KEY_EVENTS, SLIDING_WINDOW};
        match self {
            Self::Code => [&SLIDING_WINDOW, &KEY_EVENTS, &INCREMENTS],
            Self::Analysis | Self::Conversation | Self::Unknown => {
                [&SLIDING_WINDOW, &IMPORTANCE, &INCREMENTS]
            }
            Self::Mixed => [&SLIDING_WINDOW, &INCREMENTS, &IMPORTANCE],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::json::Json;
    use crate::conversation::message::{Block, Message, Role};

    fn task(calls: &[(&str, usize)], input: &str) -> Task {
        let mut log = Log::new();
        log.push(Message::user(input));
        for (name, count) in calls {
            for n in 0..*count {
                let id = format!("{name}{n}");
                log.push(Message::new(
                    Role::Assistant,
                    vec![Block::call(id.as_str(), *name, Json::empty_object())],
                ));
                log.push(Message::result(id.as_str(), "ok"));
            }
        }
        Task::of(&log, &Aliases::default())
    }

    // covers: P-TYPE
    #[test]
    fn the_kind_shows_in_the_calls() {
        assert_eq!(task(&[("Edit", 6), ("Read", 4)], "x"), Task::Code);
        assert_eq!(task(&[("Edit", 4), ("Read", 6)], "x"), Task::Analysis);
        assert_eq!(task(&[("Edit", 5), ("Read", 5)], "x"), Task::Mixed);
        assert_eq!(task(&[("WebFetch", 9), ("Read", 1)], "x"), Task::Unknown);
        assert_eq!(task(&[], "Why?"), Task::Conversation);
        assert_eq!(task(&[], &"long ".repeat(100)), Task::Unknown);
        // `rg` is no part of this name.
        assert_eq!(task(&[("show_arguments", 9)], "x"), Task::Unknown);
    }

    // covers: P-ADAPT
    #[test]
    fn the_order_hangs_on_the_kind() {
        let names = |task: Task| task.order().map(|strategy| strategy.name);
        assert_eq!(names(Task::Code), ["sliding-window", "key-events", "increments"]);
        assert_eq!(names(Task::Conversation), ["sliding-window", "importance", "increments"]);
        assert_eq!(names(Task::Mixed), ["sliding-window", "increments", "importance"]);
    }
}
