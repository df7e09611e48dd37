//! pi: a line per message, results and usage in it; a session that branched from another repeats its lines with
//! their times.

use super::super::conversation::{Call, Conversation, Part};
use super::super::node::Node;
use super::super::recorder::{Recorder, key_of, size};
use super::{Scan, seconds};

pub fn fits(line: &Node<'_>) -> bool {
    line.get("type").text() == "session" && !line.get("cwd").is_nothing()
}

pub fn new(name: &str) -> Box<dyn Scan> {
    Box::new(Pi { recorder: Recorder::new(name) })
}

struct Pi {
    recorder: Recorder,
}

impl Scan for Pi {
    fn line(&mut self, line: &Node<'_>) {
        match line.get("type").text() {
            "session" => {
                let about = self.recorder.about();
                line.get("cwd").text().clone_into(&mut about.project);
                if !line.get("id").text().is_empty() {
                    line.get("id").text().clone_into(&mut about.session);
                }
            }
            "compaction" => {
                let before = line.get("tokensBefore").number();
                self.recorder.compact(seconds(line.get("timestamp")), None, before);
                self.recorder.summary(size(line.get("summary")));
            }
            "branch_summary" => self.recorder.add(Part::Summaries, size(line.get("summary"))),
            "custom_message" => self.recorder.add(Part::Host, size(line.get("content"))),
            "message" => self.message(line),
            _ => {}
        }
    }

    fn finish(self: Box<Self>) -> Vec<Conversation> {
        if self.recorder.is_empty() { Vec::new() } else { vec![self.recorder.finish()] }
    }
}

impl Pi {
    fn message(&mut self, line: &Node<'_>) {
        let (message, at) = (line.get("message"), seconds(line.get("timestamp")));
        let content = message.get("content");
        match message.get("role").text() {
            "assistant" => {
                let (usage, model) = (message.get("usage"), message.get("model").text());
                let mut call = Call {
                    at,
                    input: usage.get("input").number(),
                    read: usage.get("cacheRead").number(),
                    write: usage.get("cacheWrite").number(),
                    output: usage.get("output").number(),
                    said_micros: (usage.at(&["cost", "total"]).fraction() * 1e6).round() as u64,
                    ..Call::default()
                };
                call.write_1h = usage.at(&["cttl", "ephemeral1h"]).number().min(call.write);
                call.key = key_of(line.get("timestamp").text(), model, &call);
                self.recorder.bill(call, model);
                for block in content.list() {
                    match block.get("type").text() {
                        "thinking" => self.recorder.add(Part::Thinking, size(block.get("thinking"))),
                        "toolCall" => {
                            let (id, name) = (block.get("id").text(), block.get("name").text());
                            self.recorder.call_tool(id, name, block.get("arguments"));
                        }
                        _ => self.recorder.add(Part::Words, size(block)),
                    }
                }
            }
            "toolResult" => {
                let (id, name) = (message.get("toolCallId").text(), message.get("toolName").text());
                self.recorder.result(id, Some(name), content, at);
            }
            "bashExecution" => {
                let bytes = size(message.get("command")) + size(message.get("output"));
                self.recorder.add(Part::Host, bytes);
            }
            "custom" => self.recorder.add(Part::Host, size(content)),
            _ => self.recorder.add(Part::Person, size(content)),
        }
    }
}
