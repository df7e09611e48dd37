//! An agent at work, as JSON lines on stdout: one object an event, for scripts. The schema is in docs/agent.md; `v` is
//! its version, and changes when a field changes its meaning or goes.

use std::future::Future;
use std::pin::Pin;

use longhaul::Usage;
use longhaul_agent::{Answer, Consent, Ended, Event, Front};
use serde_json::{Value, json};

use crate::agent::consent_text::{nobody, nobody_said};
use crate::agent::outlet::Outlet;
use crate::agent::spent::{Before, Spent};
use crate::terminal;

/// The version of the schema.
const VERSION: u32 = 1;

/// JSON lines on stdout.
pub struct JsonFront {
    out: Outlet,
    spent: Spent,
    text: String,
    thought: String,
}

impl JsonFront {
    /// Says which session it is.
    pub fn begin(out: Outlet, spent: Spent, session: &str, model: &str, window: u64) -> Self {
        let mut front = Self { out, spent, text: String::new(), thought: String::new() };
        front.say("session", json!({ "session": session, "model": model, "window": window }));
        front
    }

    /// Says how it ended.
    pub fn end(&mut self, ended: &Result<Ended, String>) {
        let Spent { calls, input, cache_read, cache_write, output, .. } = self.spent;
        let (how, answer) = match ended {
            Ok(Ended::Answered(answer)) => ("answered", json!({ "answer": answer })),
            Ok(Ended::Interrupted) => ("interrupted", json!({})),
            Ok(Ended::StepLimit(steps)) => ("step_limit", json!({ "steps": steps })),
            Err(error) => ("failed", json!({ "error": error })),
        };
        let mut fields = json!({
            "how": how,
            "calls": calls,
            "input": input,
            "cache_read": cache_read,
            "cache_write": cache_write,
            "output": output,
            "usd": self.spent.dollars(),
            "usd_before": match self.spent.before() {
                Before::Nothing => Some(0.0),
                Before::Dollars(sum) => Some(sum),
                Before::Unknown => None,
            },
        });
        extend(&mut fields, answer);
        self.say("end", fields);
    }

    /// Prints an object. A reader that has gone is not told anything more.
    fn say(&mut self, event: &str, fields: Value) {
        let mut object = json!({ "v": VERSION, "event": event });
        extend(&mut object, fields);
        if let Ok(line) = terminal::json(&object) {
            self.out.line(line);
        }
    }

    /// Says what was thought and said in a reply that is whole.
    fn flush_text(&mut self) {
        if !self.thought.is_empty() {
            let text = std::mem::take(&mut self.thought);
            self.say("thinking", json!({ "text": text }));
        }
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.say("text", json!({ "text": text }));
        }
    }
}

fn extend(object: &mut Value, fields: Value) {
    if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
        object.extend(fields);
    }
}

impl Front for JsonFront {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) => self.text.push_str(text),
            Event::Thinking(text) => self.thought.push_str(text),
            Event::Void => {
                self.text.clear();
                self.thought.clear();
            }
            Event::Replied { usage } => {
                self.spent.add(usage);
                self.flush_text();
                let billed = |usage: &Usage| {
                    json!({
                        "input": usage.input,
                        "cache_read": usage.cache_read,
                        "cache_write": usage.cache_write,
                        "output": usage.output,
                    })
                };
                self.say("usage", json!({ "usage": usage.map(billed) }));
            }
            Event::SummaryBilled(paid) => {
                self.spent.add_summary(&paid);
                let fields = json!({
                    "calls": paid.calls,
                    "cache_read": paid.prompt.read.0,
                    "input": paid.prompt.written.0,
                    "output": paid.output.0,
                });
                self.say("summary", fields);
            }
            Event::Called { id, tool, arguments } => {
                self.say("call", json!({ "id": id, "tool": tool, "arguments": arguments }));
            }
            Event::Answered { id, tool, envelope } => {
                self.say("result", json!({ "id": id, "tool": tool, "result": envelope.to_json() }));
            }
            Event::Summarising => self.say("summarising", json!({})),
            Event::Compacted(told) => self.say(
                "compaction",
                json!({
                    "edits": told.edits,
                    "before": told.before.0,
                    "after": told.after.0,
                    "strategies": told.strategies,
                    "why": told.why,
                }),
            ),
            Event::Sending { prompt, limit, whole } => {
                self.say("request", json!({ "prompt": prompt.0, "limit": limit.0, "whole": whole.0 }));
            }
            Event::Notice(text) => self.say("notice", json!({ "text": text })),
            _ => {}
        }
    }

    fn ask<'a>(&'a mut self, consent: &'a Consent) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        let says = nobody(consent);
        self.say("denied", json!({ "tool": consent.tool, "says": says, "consent": consent.to_json() }));
        Box::pin(async { Answer::No(Some(nobody_said(consent))) })
    }
}
