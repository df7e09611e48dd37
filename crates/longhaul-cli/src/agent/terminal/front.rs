//! An agent at work, as a person sees it in a terminal.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;

use longhaul_agent::{Compaction, Envelope, Event, Front, Permission, Question};

use super::diff;
use super::markdown::Markdown;
use super::prompt::{Means, Prompt};
use super::question::{self, Asked};
use super::screen::Screen;
use super::typed::Typed;
use crate::agent::plain_front::{nobody, outcome, subject};
use crate::agent::spent::Spent;
use crate::agent::thinking::{Thinking, Thought};
use crate::terminal::{BAD, FAINT, GOOD, STRONG, cut, one_line, short, width};

/// Lines on a screen.
pub struct TerminalFront {
    pub screen: Screen,
    pub spent: Spent,
    pub asked: Asked,
    pub prompt: Prompt,
    pub typed: Typed,
    /// Whether anybody can be asked.
    pub attended: bool,
    pub thought: Thought,
    answer: Markdown,
    has_text: bool,
    /// What calls are about, by their ids.
    calls: HashMap<String, String>,
    /// The call whose line was printed last.
    newest: Option<String>,
}

impl TerminalFront {
    pub fn new(screen: Screen, spent: Spent, attended: bool) -> Self {
        Self {
            screen,
            spent,
            asked: Asked::default(),
            prompt: Prompt::default(),
            typed: Typed::default(),
            attended,
            thought: Thought::new(Thinking::None),
            answer: Markdown::default(),
            has_text: false,
            calls: HashMap::new(),
            newest: None,
        }
    }

    /// Prints what is left of an answer: a turn has ended, however it did.
    pub fn end_answer(&mut self) {
        self.end_thought();
        let rest = self.answer.finish(width());
        self.screen.lines(rest);
        self.has_text = false;
    }

    fn end_thought(&mut self) {
        let rest = self.thought.finish(width());
        rest.iter().for_each(|line| self.screen.faint(line));
    }

    fn called(&mut self, id: &str, tool: &str, about: String) {
        let tool = one_line(tool, 40);
        let room = width().saturating_sub(tool.chars().count() + 3).max(10);
        let line = format!("{GOOD}●{GOOD:#} {STRONG}{tool}{STRONG:#} {}", one_line(&about, room));
        self.screen.line(line.trim_end());
        self.calls.insert(id.to_owned(), format!("{tool} {about}").trim_end().to_owned());
        self.newest = Some(id.to_owned());
    }

    fn answered(&mut self, id: &str, envelope: &Envelope) {
        let about = self.calls.remove(id).unwrap_or_default();
        // Results of calls that ran together say whose they are.
        let whose = match self.newest.as_deref() == Some(id) && self.calls.is_empty() {
            true => String::new(),
            false => format!("{}: ", one_line(&about, 40)),
        };
        let style = if envelope.is_error() { BAD } else { FAINT };
        let text = one_line(&format!("{whose}{}", outcome(envelope)), width().saturating_sub(4));
        self.screen.line(format_args!("  {style}└ {text}{style:#}"));
        let said = |name: &str| envelope.data.get(name).and_then(serde_json::Value::as_str);
        if let Some(diff) = said("diff") {
            self.screen.lines(diff::lines(diff, width()));
        }
        // The task list, as it is now.
        let tasks =
            said("recap").unwrap_or_default().lines().map(|task| format!("    {}", cut(task, width() - 4)));
        self.screen.lines(tasks);
    }
}

/// A compaction in one line: what went, by what, and why.
fn compacted(told: &Compaction) -> String {
    let edits = if told.edits == 1 { "1 edit".to_owned() } else { format!("{} edits", told.edits) };
    format!(
        "compacted: {} → {} tokens, {} saved; {edits} by {}, {}",
        short(told.before.0),
        short(told.after.0),
        short(told.before.0.saturating_sub(told.after.0)),
        told.strategies.join(", "),
        told.why
    )
}

impl Front for TerminalFront {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Thinking(text) => {
                self.thought.push(text, width()).iter().for_each(|line| self.screen.faint(line));
            }
            Event::Text(text) => {
                self.end_thought();
                self.has_text = true;
                let lines = self.answer.push(text, width());
                self.screen.lines(lines);
            }
            Event::Void if self.has_text => {
                self.end_answer();
                self.screen.faint("the answer broke off: it is asked for again");
            }
            Event::Void => self.end_thought(),
            Event::Replied { usage } => {
                self.spent.add(usage);
                self.end_answer();
            }
            Event::SummaryBilled(paid) => self.spent.add_summary(&paid),
            Event::Called { id, tool, arguments } => self.called(id, tool, subject(arguments)),
            Event::Answered { id, envelope, .. } => self.answered(id, envelope),
            Event::Compacted(told) => {
                let text = one_line(&compacted(&told), 2 * width());
                self.screen.line(format_args!("{GOOD}{text}{GOOD:#}"));
            }
            Event::Summarising => self.screen.faint("a summary is written …"),
            Event::Notice(text) => self.screen.faint(one_line(text, 3 * width())),
            _ => {}
        }
    }

    fn ask<'a>(
        &'a mut self,
        question: Question<'a>,
    ) -> Pin<Box<dyn Future<Output = Permission> + Send + 'a>> {
        if !self.attended {
            self.screen.bad(format_args!("  not allowed: {}", one_line(&nobody(&question), width())));
            let says = "nobody is there to be asked; work without it, or say what is needed";
            return Box::pin(async { Permission::No(Some(says.to_owned())) });
        }
        // Before the question is seen: what is typed from here on may answer it.
        let (answer, has_rule) = (self.asked.wait(self.typed.text()), question.rule.is_some());
        self.prompt.set(Means::Answers);
        self.screen.lines(diff::of_arguments(question.arguments, width()));
        self.screen.line(question::text(&question, width()));
        let prompt = self.prompt.clone();
        Box::pin(async move {
            let line = answer.await.unwrap_or_default();
            prompt.set(Means::Waits);
            question::meaning(&line, has_rule)
        })
    }
}

#[cfg(test)]
mod tests {
    use longhaul::Tokens;

    use super::*;

    #[test]
    fn a_compaction_is_one_line() {
        let told = Compaction {
            edits: 3,
            before: Tokens(12_000),
            after: Tokens(1_000),
            strategies: vec!["digest".to_owned()],
            why: "cold".to_owned(),
        };
        assert_eq!(compacted(&told), "compacted: 12.0k → 1.00k tokens, 11.0k saved; 3 edits by digest, cold");
    }
}
