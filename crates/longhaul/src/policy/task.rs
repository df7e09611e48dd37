//! Kinds of work (seed 004): what the host says, else what the tool calls show. The kind decides
//! which strategies are tried first.

use serde::{Deserialize, Serialize};

use crate::conversation::log::Log;
use crate::conversation::script::made_by;
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

/// What a log shows of the kind of work, counted once for each message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Work {
    /// Calls of each kind.
    code: usize,
    analysis: usize,
    other: usize,
    /// Characters of each input.
    inputs: Vec<usize>,
    /// Messages before this one are counted.
    seen: usize,
}

impl Work {
    /// Counts what is new in the log.
    pub(crate) fn follow(&mut self, log: &Log, aliases: &Aliases) {
        for message in &log.messages()[self.seen..] {
            self.inputs.extend(message.words().map(|words| words.chars().count()));
            for call in message.calls() {
                for made in made_by(call).calls() {
                    match aliases.kind_of(made) {
                        ToolKind::Edit | ToolKind::Write | ToolKind::Bash => self.code += 1,
                        ToolKind::Read | ToolKind::Grep | ToolKind::Glob | ToolKind::Ls => self.analysis += 1,
                        ToolKind::Todo | ToolKind::Recall | ToolKind::Other => self.other += 1,
                    }
                }
            }
        }
        self.seen = log.messages().len();
    }

    /// The kind of work that this shows.
    pub(crate) fn task(&self) -> Task {
        let calls = self.code + self.analysis + self.other;
        if calls == 0 {
            let is_short = twice_median(self.inputs.clone()).is_some_and(|twice| twice < 2 * SHORT_INPUT);
            return if is_short { Task::Conversation } else { Task::Unknown };
        }
        let share = |count: usize| count * 100 / calls;
        match (share(self.code), share(self.analysis)) {
            (code, _) if code >= WINS => Task::Code,
            (_, analysis) if analysis >= WINS => Task::Analysis,
            (code, analysis) if code >= BOTH && analysis >= BOTH => Task::Mixed,
            _ => Task::Unknown,
        }
    }
}

impl Task {
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

/// Two times the median, which may lie between two numbers.
fn twice_median(mut numbers: Vec<usize>) -> Option<usize> {
    numbers.sort_unstable();
    let last = numbers.len().checked_sub(1)?;
    Some(numbers[last / 2] + numbers[last.div_ceil(2)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::json::Json;
    use crate::conversation::message::{Block, Message, Role};

    fn log_of(calls: &[(&str, usize)], inputs: &[usize]) -> Log {
        let mut log = Log::new();
        for length in inputs {
            log.push(Message::user("x".repeat(*length)));
            log.push(Message::assistant("Yes."));
        }
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
        log
    }

    fn task_of(log: &Log) -> Task {
        let mut work = Work::default();
        work.follow(log, &Aliases::default());
        work.task()
    }

    fn by_calls(calls: &[(&str, usize)]) -> Task {
        task_of(&log_of(calls, &[1]))
    }

    fn by_inputs(inputs: &[usize]) -> Task {
        task_of(&log_of(&[], inputs))
    }

    #[test]
    fn a_log_that_grows_is_counted_once() {
        let whole = log_of(&[("Edit", 7), ("Read", 9)], &[10, 300]);
        let (mut log, mut work) = (Log::new(), Work::default());
        for message in whole.messages() {
            log.push(Message::clone(message));
            work.follow(&log, &Aliases::default());
            assert_eq!(work.task(), task_of(&log));
        }
        assert_eq!((work.code, work.analysis, work.inputs.len()), (7, 9, 2));
    }

    // covers: P-TYPE
    #[test]
    fn the_kind_shows_in_the_calls() {
        for (calls, task) in [
            // One kind with 60 % wins.
            (vec![("Edit", 60), ("WebFetch", 40)], Task::Code),
            (vec![("Edit", 59), ("WebFetch", 41)], Task::Unknown),
            (vec![("Read", 60), ("WebFetch", 40)], Task::Analysis),
            (vec![("Read", 59), ("WebFetch", 41)], Task::Unknown),
            (vec![("Edit", 60), ("Read", 40)], Task::Code),
            (vec![("Edit", 40), ("Read", 60)], Task::Analysis),
            // Two with 25 % are both.
            (vec![("Edit", 50), ("Read", 50)], Task::Mixed),
            (vec![("Edit", 25), ("Read", 25), ("WebFetch", 50)], Task::Mixed),
            (vec![("Edit", 24), ("Read", 26), ("WebFetch", 50)], Task::Unknown),
            (vec![("Edit", 26), ("Read", 24), ("WebFetch", 50)], Task::Unknown),
            (vec![("WebFetch", 9), ("Read", 1)], Task::Unknown),
            // Each kind of tool.
            (vec![("Write", 1), ("Bash", 1), ("Edit", 1)], Task::Code),
            (vec![("Grep", 1), ("Glob", 1), ("LS", 1), ("Read", 1)], Task::Analysis),
            (vec![("read_code", 2), ("execute_script", 2)], Task::Mixed),
            // Names are whole: there is no `rg` in this one.
            (vec![("show_arguments", 9)], Task::Unknown),
            (vec![("editor_theme", 9)], Task::Unknown),
        ] {
            assert_eq!(by_calls(&calls), task, "{calls:?}");
        }
    }

    // covers: P-TYPE
    #[test]
    fn without_calls_the_median_of_the_inputs_tells() {
        for (inputs, task) in [
            (vec![199], Task::Conversation),
            (vec![200], Task::Unknown),
            // The median, not the mean.
            (vec![10, 10, 5_000], Task::Conversation),
            (vec![10, 200, 5_000], Task::Unknown),
            (vec![100, 298], Task::Conversation),
            (vec![100, 300], Task::Unknown),
            (vec![1, 100, 298, 9_000], Task::Conversation),
            (vec![], Task::Unknown),
        ] {
            assert_eq!(by_inputs(&inputs), task, "{inputs:?}");
        }
        // One call, and it is no conversation.
        assert_eq!(by_calls(&[("WebFetch", 1)]), Task::Unknown);
    }

    // covers: P-ADAPT
    #[test]
    fn the_order_hangs_on_the_kind() {
        let names = |task: Task| task.order().map(|strategy| strategy.name);
        assert_eq!(names(Task::Code), ["sliding-window", "key-events", "increments"]);
        for task in [Task::Analysis, Task::Conversation, Task::Unknown] {
            assert_eq!(names(task), ["sliding-window", "importance", "increments"], "{task:?}");
        }
        assert_eq!(names(Task::Mixed), ["sliding-window", "increments", "importance"]);
    }
}
