//! An agent at work, as a person sees it in a terminal.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;

use longhaul_agent::{Answer, Compaction, Consent, Envelope, Event, Front, Keep};

use super::diff;
use super::markdown::Markdown;
use super::prompt::Prompt;
use super::question::{Paged, WaitingQuestion};
use super::screen::Screen;
use super::typed::Typed;
use crate::agent::consent_text::{nobody_said, refused};
use crate::agent::kept_rules::KeptRules;
use crate::agent::plain_front::{outcome, subject};
use crate::agent::spent::Spent;
use crate::agent::thinking::{Thinking, Thought};
use crate::terminal::{BAD, FAINT, GOOD, STRONG, cut, height, one_line, short, width};

/// Lines on a screen.
pub struct TerminalFront {
    pub screen: Screen,
    pub spent: Spent,
    pub asked: WaitingQuestion,
    /// Where rules are kept that the person agrees to for good.
    pub kept: KeptRules,
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
            asked: WaitingQuestion::default(),
            kept: KeptRules::default(),
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

    fn ask<'a>(&'a mut self, consent: &'a Consent) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        if !self.attended {
            self.screen.lines(refused(consent));
            return Box::pin(async { Answer::No(Some(nobody_said(consent))) });
        }
        let question = Paged::new(consent, width(), height());
        Box::pin(async move {
            let answer = question.ask(&self.asked, &self.typed, &self.prompt, &self.screen).await;
            if let (Answer::Always(Keep::Project), Some(rule)) = (&answer, &consent.rule) {
                match self.kept.keep(rule) {
                    Ok(file) => self.screen.faint(format_args!("{} has the rule now", file.display())),
                    Err(error) => {
                        self.screen.bad(format_args!("the rule holds for this session only: {error}"))
                    }
                }
            }
            answer
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
