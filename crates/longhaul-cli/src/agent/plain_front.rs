//! An agent at work, as lines on stderr: for `run`, where nobody is asked.

use std::future::Future;
use std::pin::Pin;

use longhaul_agent::{Answer, Consent, Envelope, Event, Front};
use serde_json::Value;

use crate::agent::consent_text::{nobody_said, refused};
use crate::agent::outlet::Outlet;
use crate::agent::spent::Spent;
use crate::agent::thinking::{Thinking, Thought};
use crate::terminal::{BAD, FAINT, STRONG, one_line, short};

/// Columns of a line.
const WIDE: usize = 100;

/// Lines on stderr.
pub struct PlainFront {
    err: Outlet,
    spent: Spent,
    thought: Thought,
}

impl PlainFront {
    pub fn new(err: Outlet, spent: Spent, thinking: Thinking) -> Self {
        Self { err, spent, thought: Thought::new(thinking) }
    }

    /// The thought has ended.
    fn end_thought(&mut self) {
        let lines = self.thought.finish(WIDE);
        self.think(lines);
    }

    fn line(&self, text: std::fmt::Arguments<'_>) {
        self.err.line(text.to_string());
    }

    fn think(&self, lines: Vec<String>) {
        lines.iter().for_each(|text| self.line(format_args!("{FAINT}{text}{FAINT:#}")));
    }

    /// What was billed, in one line.
    pub fn summary(&self) -> String {
        let Spent { calls, input, cache_read, cache_write, output, .. } = self.spent;
        let share =
            self.spent.share_read().map(|share| format!(" ({:.0} %)", share * 100.0)).unwrap_or_default();
        let dollars = self.spent.told(4).map(|told| format!(", {told}")).unwrap_or_default();
        let calls = if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") };
        format!(
            "longhaul: {calls}; billed {} read from cache{share}, {} new, {} out{dollars}",
            short(cache_read),
            short(input + cache_write),
            short(output)
        )
    }
}

impl Front for PlainFront {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Thinking(text) => {
                let lines = self.thought.push(text, WIDE);
                self.think(lines);
            }
            Event::Text(_) | Event::Void => self.end_thought(),
            Event::Replied { usage } => {
                self.end_thought();
                self.spent.add(usage);
            }
            Event::SummaryBilled(paid) => self.spent.add_summary(&paid),
            Event::Called { tool, arguments, .. } => {
                self.line(format_args!("{STRONG}{tool}{STRONG:#} {}", one_line(&subject(arguments), WIDE)));
            }
            Event::Answered { envelope, .. } => {
                let style = if envelope.is_error() { BAD } else { FAINT };
                self.line(format_args!("  {style}{}{style:#}", one_line(&outcome(envelope), WIDE)));
            }
            Event::Compacted(told) => self.line(format_args!(
                "{FAINT}compacted: {} → {} tokens by {} ({}){FAINT:#}",
                short(told.before.0),
                short(told.after.0),
                told.strategies.join(", "),
                told.why
            )),
            Event::Summarising => self.line(format_args!("{FAINT}a summary is written …{FAINT:#}")),
            Event::Notice(text) => self.line(format_args!("{FAINT}{}{FAINT:#}", one_line(text, 2 * WIDE))),
            _ => {}
        }
    }

    fn ask<'a>(&'a mut self, consent: &'a Consent) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        refused(consent).iter().for_each(|text| self.line(format_args!("{text}")));
        Box::pin(async { Answer::No(Some(nobody_said(consent))) })
    }
}

/// What a call is about: the first of its arguments that says it.
pub fn subject(arguments: &Value) -> String {
    let names = ["command", "pattern", "path", "file_path", "handle", "text", "prompt"];
    let named = names.iter().find_map(|name| arguments.get(name)?.as_str());
    if let Some(named) = named {
        return named.to_owned();
    }
    match arguments.get("todos").and_then(Value::as_array) {
        Some(todos) => format!("{} tasks", todos.len()),
        None if arguments.as_object().is_some_and(serde_json::Map::is_empty) => String::new(),
        None => arguments.to_string(),
    }
}

/// What came of a call, in a sentence.
pub fn outcome(envelope: &Envelope) -> String {
    match &envelope.error {
        Some(error) => error.message.clone(),
        None => envelope.text.clone(),
    }
}
