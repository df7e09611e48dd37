//! opencode: messages with their parts, as `opencode export` writes a session, and as its store has them in two tables
//! (a host reads those, and gives them to an [`Assembler`]). A part is a text, reasoning, a call with its result, or the begin and
//! end of a step; a message of older versions holds several steps.

use longhaul::{Block, Message, Role, Seal, Time, Usage};
use serde_json::Value;

use super::Numbered;
use super::build::{call, compaction_beside, image, number, result, said, text, thinking, timed};

pub(super) fn fits(first: &Value) -> bool {
    let messages = first.get("messages").and_then(Value::as_array);
    let is_row = |message: &Value| message.get("info").is_some() && message.get("parts").is_some();
    first.get("info").is_some_and(Value::is_object) && messages.is_some_and(|rows| rows.iter().all(is_row))
}

pub(super) fn read(session: &Value) -> Vec<Numbered> {
    let rows = session.get("messages").and_then(Value::as_array).into_iter().flatten();
    let mut assembler = Assembler::default();
    let messages = rows.flat_map(|row| {
        let parts = row.get("parts").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let info = row.get("info").unwrap_or(&Value::Null);
        assembler.message(text(info, "id"), info, parts)
    });
    messages.map(|message| (0, message)).collect()
}

/// Puts the messages of a session together.
#[derive(Debug, Default)]
pub struct Assembler {
    /// The messages of opencode so far, and how many each of them became.
    seen: Vec<(Box<str>, usize)>,
    /// What is kept beside the next summary begins with this message of opencode.
    kept_from: Option<Box<str>>,
}

impl Assembler {
    /// The messages that one of opencode's stands for: its id, what `info` says of it, and its parts in their order.
    pub fn message(&mut self, id: &str, info: &Value, parts: &[Value]) -> Vec<Message> {
        let at = time(info.get("time"), "created");
        if let Some(part) = of_kind(parts, "compaction").next() {
            self.kept_from = Some(text(part, "tail_start_id").into());
        }
        let is_summary = info.get("summary") == Some(&Value::Bool(true));
        let messages = match text(info, "role") {
            "assistant" if is_summary => {
                let summary: Vec<&str> = of_kind(parts, "text").map(|part| text(part, "text")).collect();
                let kept = self.kept();
                if summary.is_empty() { Vec::new() } else { compaction_beside(kept, &summary.join("\n"), at) }
            }
            "assistant" => answers(info, parts, at),
            "user" => questions(parts, at),
            _ => Vec::new(),
        };
        self.seen.push((id.into(), if is_summary { 0 } else { messages.len() }));
        messages
    }

    /// How many messages stay beside the summary.
    fn kept(&mut self) -> usize {
        let first = self.kept_from.take().filter(|first| !first.is_empty());
        let at = first.and_then(|first| self.seen.iter().rposition(|(id, _)| *id == first));
        at.map_or(0, |at| self.seen[at..].iter().map(|(_, messages)| messages).sum())
    }
}

/// What a person said, and what opencode put in beside it.
fn questions(parts: &[Value], at: Option<Time>) -> Vec<Message> {
    let blocks = |of_host: bool| -> Vec<Block> {
        let parts = parts.iter().filter(|part| is_set(part, "synthetic") == of_host);
        parts.filter(|part| !is_set(part, "ignored")).filter_map(block_of_user).collect()
    };
    let host = Message::new(Role::User, blocks(true)).with_attachment();
    let messages = [said(blocks(false)), host].into_iter();
    messages.filter(|message| !message.blocks().is_empty()).map(|message| timed(message, at)).collect()
}

/// Files of text stand beside their part as a text that opencode put in.
fn block_of_user(part: &Value) -> Option<Block> {
    match text(part, "type") {
        "text" => Some(text(part, "text")).filter(|text| !text.is_empty()).map(Block::text),
        "file" => text(part, "mime").starts_with("image/").then(|| image(part)),
        _ => None,
    }
}

/// The steps of an answer, each with its results.
fn answers(info: &Value, parts: &[Value], at: Option<Time>) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut step = Step::default();
    for part in parts {
        match text(part, "type") {
            "step-start" => step.finish(None, info, at, &mut messages),
            "step-finish" => step.finish(usage(part), info, at, &mut messages),
            "text" if !text(part, "text").is_empty() => step.blocks.push(Block::text(text(part, "text"))),
            "reasoning" => step.blocks.push(thinking(text(part, "text"), seal(part.get("metadata")))),
            "tool" => step.tool(part),
            _ => {}
        }
    }
    // A message without ends of steps has its own usage.
    let own = usage(info).filter(|_| of_kind(parts, "step-finish").next().is_none());
    step.finish(own, info, at, &mut messages);
    messages
}

#[derive(Default)]
struct Step {
    blocks: Vec<Block>,
    results: Vec<Message>,
}

impl Step {
    fn tool(&mut self, part: &Value) {
        let (id, name) = (text(part, "callID"), text(part, "tool"));
        let state = part.get("state").unwrap_or(&Value::Null);
        self.blocks.push(call(id, name, state.get("input").unwrap_or(&Value::Null)));
        let (said, is_error) = match text(state, "status") {
            "error" => (text(state, "error"), true),
            // Nobody waited for it.
            "pending" | "running" => return,
            _ => (text(state, "output"), false),
        };
        let pictures = state.get("attachments").and_then(Value::as_array).into_iter().flatten();
        let pictures = pictures.filter(|file| text(file, "mime").starts_with("image/")).map(image);
        let content = std::iter::once(Block::text(said)).chain(pictures).collect();
        self.results.push(timed(result(id, Some(name), content, is_error), time(state.get("time"), "end")));
    }

    /// Puts the step behind the messages, if there is one, and begins another.
    fn finish(&mut self, usage: Option<Usage>, info: &Value, at: Option<Time>, messages: &mut Vec<Message>) {
        let Self { blocks, results } = std::mem::take(self);
        if blocks.is_empty() {
            return;
        }
        let mut answer = timed(Message::new(Role::Assistant, blocks), at);
        if let Some(usage) = usage {
            answer = answer.with_usage(usage);
        }
        let model = text(info, "modelID");
        messages.push(if model.is_empty() { answer } else { answer.with_model(model) });
        messages.extend(results);
    }
}

fn of_kind<'a>(parts: &'a [Value], kind: &str) -> impl Iterator<Item = &'a Value> {
    parts.iter().filter(move |part| text(part, "type") == kind)
}

fn is_set(part: &Value, name: &str) -> bool {
    part.get(name) == Some(&Value::Bool(true))
}

/// Thousandths of seconds since 1970.
fn time(times: Option<&Value>, name: &str) -> Option<Time> {
    let millis = times?.get(name)?.as_i64()?;
    millis.checked_mul(1_000).map(Time)
}

/// What a step or a message was billed. Reasoning is counted beside the output.
fn usage(of: &Value) -> Option<Usage> {
    let tokens = of.get("tokens")?;
    let cache = tokens.get("cache").unwrap_or(&Value::Null);
    Some(Usage {
        input: number(tokens, "input"),
        output: number(tokens, "output").saturating_add(number(tokens, "reasoning")),
        cache_read: number(cache, "read"),
        cache_write: number(cache, "write"),
        ..Usage::default()
    })
}

/// What a provider sealed the reasoning with: its name stands before it.
fn seal(metadata: Option<&Value>) -> Seal {
    let providers = metadata.and_then(Value::as_object).into_iter().flat_map(|providers| providers.values());
    let found = providers.into_iter().find_map(|provider| {
        let sealed = |name: &str| Some(text(provider, name)).filter(|text| !text.is_empty());
        let signed = sealed("signature").map(|signature| Seal::Signed(signature.into()));
        let hidden = || sealed("redactedData").map(|data| Seal::Redacted(Some(data.into())));
        signed
            .or_else(hidden)
            .or_else(|| sealed("reasoningEncryptedContent").map(|data| Seal::Encrypted(data.into())))
    });
    found.unwrap_or(Seal::Open)
}
