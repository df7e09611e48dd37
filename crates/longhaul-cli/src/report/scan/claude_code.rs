//! Claude Code: a line per content block, each with the usage of its answer so far. An answer is named by the ids of
//! message and request; a session that was resumed or forked may repeat both. Side chains are conversations of
//! their own, in the file or in one beside it.

use std::collections::HashMap;

use super::super::conversation::{Call, Conversation, Part};
use super::super::node::Node;
use super::super::recorder::{Recorder, key, size};
use super::{Scan, seconds};

pub fn fits(line: &Node<'_>) -> bool {
    let named = !line.get("sessionId").text().is_empty() && line.get("payload").is_nothing();
    let is_summary = line.get("type").text() == "summary" && !line.get("leafUuid").is_nothing();
    let is_snapshot = line.get("type").text() == "file-history-snapshot";
    !line.get("type").text().is_empty() && (named || is_summary || is_snapshot)
}

pub fn new(name: &str) -> Box<dyn Scan> {
    Box::new(ClaudeCode { name: name.to_owned(), main: Recorder::new(""), ..ClaudeCode::default() })
}

#[derive(Default)]
struct ClaudeCode {
    name: String,
    main: Recorder,
    sides: Vec<Recorder>,
    /// Side chains by the agent's id, or by a line of theirs.
    chains: HashMap<String, usize>,
}

impl Scan for ClaudeCode {
    fn line(&mut self, line: &Node<'_>) {
        let session = line.get("sessionId").text();
        match line.get("type").text() {
            "assistant" => {
                let recorder = self.recorder(line, session);
                bill(recorder, line, session);
                answer(recorder, line.at(&["message", "content"]));
            }
            "user" => user(self.recorder(line, session), line),
            "attachment" => attachment(self.recorder(line, session), line.get("attachment")),
            "system" if line.get("subtype").text() == "compact_boundary" => {
                let about = line.get("compactMetadata");
                let automatic = match about.get("trigger").text() {
                    "" => None,
                    trigger => Some(trigger == "auto"),
                };
                let before = about.get("preTokens").number();
                self.recorder(line, session).compact(seconds(line.get("timestamp")), automatic, before);
            }
            // What a sub-agent was billed, as it reports its progress.
            "progress" => {
                let report = line.at(&["data", "message"]);
                if report.get("type").text() == "assistant" {
                    let chain = self.side(line.at(&["data", "agentId"]).text(), session);
                    place(&mut self.sides[chain], line, session);
                    bill(&mut self.sides[chain], report, session);
                }
            }
            _ => {}
        }
    }

    fn finish(self: Box<Self>) -> Vec<Conversation> {
        let name = self.name;
        let all = std::iter::once(self.main).chain(self.sides).filter(|recorder| !recorder.is_empty());
        let named = all.map(|recorder| {
            let mut done = recorder.finish();
            if done.session.is_empty() {
                done.session.clone_from(&name);
            }
            done
        });
        named.collect()
    }
}

impl ClaudeCode {
    /// The conversation of a line.
    fn recorder(&mut self, line: &Node<'_>, session: &str) -> &mut Recorder {
        let recorder = if line.get("isSidechain").is_true() {
            let (agent, parent) = (line.get("agentId").text(), line.get("parentUuid").text());
            let known = self.chains.get(agent).or_else(|| self.chains.get(parent)).copied();
            let at = known.unwrap_or_else(|| self.side(agent, session));
            for id in [agent, line.get("uuid").text()] {
                if !id.is_empty() {
                    self.chains.insert(id.to_owned(), at);
                }
            }
            &mut self.sides[at]
        } else {
            &mut self.main
        };
        place(recorder, line, session);
        recorder
    }

    /// The side chain of an agent, which is new if nobody has seen it.
    fn side(&mut self, agent: &str, session: &str) -> usize {
        if let Some(at) = self.chains.get(agent).filter(|_| !agent.is_empty()) {
            return *at;
        }
        let mut recorder = Recorder::new(session);
        recorder.about().side = true;
        self.sides.push(recorder);
        let at = self.sides.len() - 1;
        if !agent.is_empty() {
            self.chains.insert(agent.to_owned(), at);
        }
        at
    }
}

/// Where the conversation is, as its first lines say.
fn place(recorder: &mut Recorder, line: &Node<'_>, session: &str) {
    let about = recorder.about();
    if about.session.is_empty() {
        session.clone_into(&mut about.session);
    }
    if about.project.is_empty() {
        line.get("cwd").text().clone_into(&mut about.project);
    }
}

fn bill(recorder: &mut Recorder, line: &Node<'_>, session: &str) {
    let message = line.get("message");
    let (usage, model) = (message.get("usage"), message.get("model").text());
    // What the agent made up itself: an error, a notice.
    if model == "<synthetic>" {
        return;
    }
    let (id, request) = (message.get("id").text(), line.get("requestId").text());
    let key = match (id, request) {
        ("", _) => key(&["line", session, line.get("uuid").text()]),
        // Without a request, gateways may give the same id twice: it names the answer within its session.
        (id, "") => key(&["session", session, id]),
        (id, request) => key(&["request", id, request]),
    };
    let call = Call {
        at: seconds(line.get("timestamp")),
        input: usage.get("input_tokens").number(),
        read: usage.get("cache_read_input_tokens").number(),
        write: usage.get("cache_creation_input_tokens").number(),
        write_1h: usage.at(&["cache_creation", "ephemeral_1h_input_tokens"]).number(),
        output: usage.get("output_tokens").number(),
        key,
        ..Call::default()
    };
    recorder.bill(Call { write_1h: call.write_1h.min(call.write), ..call }, model);
}

fn answer(recorder: &mut Recorder, content: &Node<'_>) {
    if let Node::Text(text) = content {
        recorder.add(Part::Words, text.len() as u64);
    }
    for block in content.list() {
        match block.get("type").text() {
            "thinking" => recorder.add(Part::Thinking, block.get("thinking").text().len() as u64),
            "tool_use" | "server_tool_use" => {
                recorder.call_tool(block.get("id").text(), block.get("name").text(), block.get("input"));
            }
            _ => recorder.add(Part::Words, size(block)),
        }
    }
}

fn user(recorder: &mut Recorder, line: &Node<'_>) {
    let content = line.at(&["message", "content"]);
    let at = seconds(line.get("timestamp"));
    let of_host = line.get("isMeta").is_true();
    let said = |recorder: &mut Recorder, text: &str, bytes: u64| {
        if line.get("isCompactSummary").is_true() {
            recorder.summary(bytes);
        } else if of_host || is_of_host(text) {
            recorder.add(Part::Host, bytes);
        } else {
            recorder.add(Part::Person, bytes);
        }
    };
    if let Node::Text(text) = content {
        said(recorder, text, text.len() as u64);
    }
    for block in content.list() {
        match block.get("type").text() {
            "tool_result" => recorder.result(block.get("tool_use_id").text(), None, block.get("content"), at),
            _ => said(recorder, block.get("text").text(), size(block)),
        }
    }
}

/// Text that the agent puts in the person's place.
fn is_of_host(text: &str) -> bool {
    let signs = ["<system-reminder", "<command-", "<local-command", "<task-notification", "Caveat:"];
    signs.iter().any(|sign| text.trim_start().starts_with(sign))
}

/// What an attachment says to the model.
fn attachment(recorder: &mut Recorder, attachment: &Node<'_>) {
    let prompt = attachment.get("prompt");
    if !prompt.is_nothing() {
        recorder.add(Part::Person, size(prompt));
        return;
    }
    let of = ["content", "stdout", "snippet", "addedBlocks", "addedLines", "addedNames", "blockingError"];
    let said = of.iter().map(|name| attachment.get(name)).find(|value| !value.is_nothing());
    recorder.add(Part::Host, said.map_or(0, size));
}
