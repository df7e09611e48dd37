//! Codex: a line per item of the Responses API, and reports of tokens. A report that does not change the sum of the
//! session is one more showing of the one before. A fork begins with a copy of its parent's reports: a
//! call is named by all sums up to it, in the family of its fork.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::super::conversation::{Call, Conversation, Part};
use super::super::node::Node;
use super::super::recorder::{Recorder, size};
use super::{Scan, seconds};

pub fn fits(line: &Node<'_>) -> bool {
    let known = ["session_meta", "response_item", "event_msg", "turn_context", "compacted"];
    !line.get("payload").is_nothing() && known.contains(&line.get("type").text())
}

pub fn new(name: &str) -> Box<dyn Scan> {
    Box::new(Codex {
        name: name.to_owned(),
        recorder: Recorder::new(""),
        model: String::new(),
        chain: DefaultHasher::new(),
        sum: [0; 3],
        answered: false,
    })
}

struct Codex {
    name: String,
    recorder: Recorder,
    model: String,
    /// All sums so far.
    chain: DefaultHasher,
    /// Input, cached input and output of the session so far.
    sum: [u64; 3],
    /// True if outputs came since the model was asked.
    answered: bool,
}

impl Scan for Codex {
    fn line(&mut self, line: &Node<'_>) {
        let (payload, at) = (line.get("payload"), seconds(line.get("timestamp")));
        match line.get("type").text() {
            "session_meta" => self.about(payload),
            "turn_context" if !payload.get("model").text().is_empty() => {
                payload.get("model").text().clone_into(&mut self.model);
            }
            "compacted" => {
                self.recorder.compact(at, None, 0);
                let message = payload.get("message");
                let summary =
                    if message.text().is_empty() { payload.get("replacement_history") } else { message };
                self.recorder.summary(size(summary));
            }
            "event_msg" if payload.get("type").text() == "token_count" => {
                self.tokens(payload.get("info"), at)
            }
            "response_item" => self.item(payload, at),
            _ => {}
        }
    }

    fn finish(self: Box<Self>) -> Vec<Conversation> {
        if self.recorder.is_empty() {
            return Vec::new();
        }
        // The last answer came, and no report of its tokens behind it.
        let unbilled = u64::from(self.recorder.is_asked());
        let mut done = self.recorder.finish();
        done.unbilled += unbilled;
        if done.session.is_empty() {
            done.session = self.name;
        }
        vec![done]
    }
}

impl Codex {
    /// The first such line is of the session itself; a fork copies that of its parent behind it.
    fn about(&mut self, payload: &Node<'_>) {
        let about = self.recorder.about();
        let id = payload.get("id").text();
        if !about.session.is_empty() {
            if about.session != id && about.forked_from.is_none() && !id.is_empty() {
                about.forked_from = Some(id.to_owned());
            }
            return;
        }
        id.clone_into(&mut about.session);
        payload.get("cwd").text().clone_into(&mut about.project);
        let parents = ["forked_from_id", "parent_thread_id"].map(|name| payload.get(name).text());
        about.forked_from = parents.into_iter().find(|id| !id.is_empty()).map(str::to_owned);
        about.side = payload.get("thread_source").text() == "subagent";
        let system = [payload.at(&["base_instructions", "text"]), payload.get("instructions")];
        let bytes = system.into_iter().map(size).max().unwrap_or_default();
        self.recorder.add(Part::System, bytes);
    }

    fn tokens(&mut self, info: &Node<'_>, at: i64) {
        let (sum, last) = (info.get("total_token_usage"), info.get("last_token_usage"));
        if sum.is_nothing() && last.is_nothing() {
            return;
        }
        let read = |usage: &Node<'_>| {
            ["input_tokens", "cached_input_tokens", "output_tokens"].map(|name| usage.get(name).number())
        };
        let (sum, last) = (if sum.is_nothing() { None } else { Some(read(sum)) }, read(last));
        let before = self.sum;
        self.sum = sum.unwrap_or(before);
        if sum == Some(before) {
            return;
        }
        // Some versions report the sum alone.
        let grown = sum.map(|sum| [0, 1, 2].map(|n| sum[n].saturating_sub(before[n]))).unwrap_or_default();
        let [input, cached, output] = if last == [0; 3] { grown } else { last };
        let cached = cached.min(input);
        (sum, last).hash(&mut self.chain);
        let call = Call {
            at,
            input: input - cached,
            read: cached,
            output,
            key: self.chain.finish(),
            ..Call::default()
        };
        self.recorder.bill(call, &self.model);
        self.answered = false;
    }

    fn item(&mut self, item: &Node<'_>, at: i64) {
        let kind = item.get("type").text();
        if kind.ends_with("_output") {
            let output = item.get("output");
            let output = if output.is_nothing() { item.get("tools") } else { output };
            let content = output.get("content");
            let content = if content.is_nothing() { output } else { content };
            self.recorder.result(item.get("call_id").text(), None, content, at);
            self.answered = true;
            return;
        }
        if kind == "message" && item.get("role").text() != "assistant" {
            for block in item.get("content").list() {
                let text = block.get("text").text().trim_start();
                let part = match item.get("role").text() {
                    "user" if text.starts_with('<') || text.starts_with("# AGENTS.md") => Part::Host,
                    "user" => Part::Person,
                    _ => Part::System,
                };
                self.recorder.add(part, size(block));
            }
            self.answered = true;
            return;
        }
        // The model's own items: the first of them says that it was asked.
        if self.answered || !self.recorder.is_asked() {
            self.recorder.ask();
            self.answered = false;
        }
        let name = match item.get("name").text() {
            "" => kind.trim_end_matches("_call"),
            name => name,
        };
        match kind {
            "message" => self.recorder.add(Part::Words, size(item.get("content"))),
            "reasoning" => self.recorder.add(Part::Thinking, size(item.get("summary"))),
            "function_call" | "tool_search_call" => {
                self.recorder.call_tool(item.get("call_id").text(), name, item.get("arguments"));
            }
            "custom_tool_call" => {
                self.recorder.call_tool(item.get("call_id").text(), name, item.get("input"))
            }
            "local_shell_call" => {
                self.recorder.call_tool(item.get("call_id").text(), "local_shell", item.get("action"));
            }
            _ => self.recorder.add(Part::Words, size(item)),
        }
    }
}
