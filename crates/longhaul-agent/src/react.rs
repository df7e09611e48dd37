//! Tool calls as text, for models that know no others (ReAct): the model writes `Thought: …` and
//! `Action: Tool[{json}]`, is shown `[tool] {json}`, and ends with `Action: Finish[…]`. Around a model that only speaks
//! text, [`React`] is one that calls tools: the conversation itself has calls and results as always.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use longhaul::{Block, Extra, Frame, Json, Message, Role};
use longhaul_model::{Asked, Delta, Model, Reply, Watch};
use longhaul_wire::api::Request;
use serde_json::{Map, Value};

/// How the form is explained to the model.
const TEMPLATE: &str = include_str!("../templates/react.md");
const FINISH: &str = "Finish";

/// A model that calls tools by writing so.
pub struct React {
    inner: Arc<dyn Model>,
    steps: AtomicU64,
}

impl React {
    /// Around a model that speaks text.
    pub fn new(inner: Arc<dyn Model>) -> Self {
        Self { inner, steps: AtomicU64::new(0) }
    }
}

impl Model for React {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn ask<'a>(&'a self, request: Request, watch: &'a mut Watch<'_>) -> Asked<'a> {
        Box::pin(async move {
            let known = request
                .messages()
                .iter()
                .flat_map(|message| message.calls())
                .filter_map(|call| step_of(&call.id));
            let newest = known.max().unwrap_or_default();
            let step = self.steps.fetch_max(newest, Ordering::Relaxed).max(newest) + 1;
            let mut quiet = |delta: Delta<'_>| {
                // What the model writes is read when it is whole.
                if matches!(delta, Delta::Void | Delta::Again { .. }) {
                    watch(delta);
                }
            };
            let reply = self.inner.ask(as_text(&request), &mut quiet).await?;
            self.steps.fetch_max(step, Ordering::Relaxed);
            let said: String = reply.messages.iter().flat_map(|message| message.texts()).collect();
            let read = read(&said);
            if let Some(thought) = &read.thought {
                watch(Delta::Thinking(thought));
            }
            let message = match read.action {
                Action::Finish(answer) => {
                    watch(Delta::Text(&answer));
                    Message::assistant(answer)
                }
                Action::Call { tool, arguments } => {
                    watch(Delta::Call(&tool));
                    let call = Block::call(id(step, &said), tool, arguments);
                    let thought = read.thought.filter(|thought| !thought.is_empty()).map(Block::text);
                    Message::new(Role::Assistant, thought.into_iter().chain([call]).collect())
                }
            };
            Ok(Reply { messages: vec![Arc::new(message)], ..reply })
        })
    }
}

/// The name of a call: its step, and what was written, so that no two have the same.
fn id(step: u64, said: &str) -> String {
    format!("step-{step}-{}", &blake3::hash(said.as_bytes()).to_hex()[..8])
}

fn step_of(id: &str) -> Option<u64> {
    id.strip_prefix("step-")?.split('-').next()?.parse().ok()
}

/// A request without tools: they are explained in the system prompt, and calls and results are text. Each message
/// becomes the same text every time, so that the provider's cache still knows it.
fn as_text(request: &Request) -> Request {
    let frame = request.frame();
    let mut system = frame.system.clone();
    if !frame.tools.is_empty() {
        let tools: Vec<&str> = frame.tools.iter().map(|tool| tool.definition.as_str()).collect();
        system.push(Block::text(TEMPLATE.replace("{tools}", &tools.join("\n"))));
    }
    let mut settings = Extra::NONE;
    let others = frame.settings.iter().filter(|(name, _)| *name != "tool_choice");
    others.for_each(|(name, value)| settings.push(name, value.clone()));
    let frame = Frame { system, tools: Vec::new(), settings, model: frame.model.clone() };
    let messages = request.messages().iter().map(message_as_text).map(Arc::new).collect();
    Request::new(frame, messages)
}

fn message_as_text(message: &Arc<Message>) -> Message {
    let is_plain =
        |block: &Block| !matches!(block, Block::ToolCall(_) | Block::ToolResult(_) | Block::Thinking(_));
    if message.role() != Role::Assistant && message.blocks().iter().all(is_plain) {
        return (**message).clone();
    }
    let texts: Vec<String> =
        message.blocks().iter().filter_map(|block| block_as_text(message.role(), block)).collect();
    let role = if message.role() == Role::Tool { Role::User } else { message.role() };
    let text = texts.join("\n");
    let text = match (role, message.calls().next()) {
        (Role::Assistant, None) => format!("Action: {FINISH}[{text}]"),
        _ => text,
    };
    Message::new(role, vec![Block::text(text)])
}

fn block_as_text(role: Role, block: &Block) -> Option<String> {
    match block {
        Block::Text(text) if role == Role::Assistant => Some(format!("Thought: {}", text.text)),
        Block::Text(text) => Some(text.text.to_string()),
        Block::ToolCall(call) => Some(format!("Action: {}[{}]", call.name, call.arguments.as_str())),
        Block::ToolResult(result) => Some(format!("[tool] {}", observation(result))),
        Block::Image(_) => Some("(a picture)".to_owned()),
        Block::Thinking(_) | Block::Opaque(_) => None,
    }
}

/// What a tool said, with its name and the step that it belongs to.
fn observation(result: &longhaul::ToolResult) -> Value {
    let mut fields = Map::new();
    if let Some(name) = &result.name {
        fields.insert("tool_name".to_owned(), Value::from(&**name));
    }
    if let Some(step) = step_of(&result.id) {
        fields.insert("step".to_owned(), step.into());
    }
    match serde_json::from_str::<Map<String, Value>>(&result.text) {
        Ok(envelope) => fields.extend(envelope),
        Err(_) => _ = fields.insert("text".to_owned(), Value::from(&*result.text)),
    }
    Value::Object(fields)
}

/// What a model wrote, taken apart.
#[derive(Debug, PartialEq)]
struct Written {
    thought: Option<String>,
    action: Action,
}

#[derive(Debug, PartialEq)]
enum Action {
    Call { tool: String, arguments: Json },
    Finish(String),
}

/// Reads a reply. The first action counts: what a model writes behind it is a result that it made up. A reply without
/// an action is an answer. Arguments that are no JSON are given on as text, and the tool says what is wrong.
fn read(said: &str) -> Written {
    let no_action = || Written { thought: None, action: Action::Finish(said.trim().to_owned()) };
    let mut at = 0;
    let found = said.split_inclusive('\n').find_map(|line| {
        let start = at;
        at += line.len();
        let rest = line.trim_start().strip_prefix("Action:")?;
        Some((start, start + (line.len() - rest.len())))
    });
    let Some((before, behind)) = found else { return no_action() };
    let thought = said[..before].trim().trim_start_matches("Thought:").trim();
    let thought = (!thought.is_empty()).then(|| thought.to_owned());
    let rest = said[behind..].trim_start();
    let name_end = rest.find(|c: char| !(c.is_alphanumeric() || "_-.".contains(c))).unwrap_or(rest.len());
    let (tool, rest) = rest.split_at(name_end);
    if tool.is_empty() {
        return no_action();
    }
    let inside = rest.trim_start().strip_prefix('[').unwrap_or_default();
    if tool.eq_ignore_ascii_case(FINISH) {
        let answer = inside.trim_end().strip_suffix(']').unwrap_or(inside).trim().to_owned();
        return Written { thought, action: Action::Finish(answer) };
    }
    // The object ends where JSON ends, whatever brackets stand in it.
    let mut values = serde_json::Deserializer::from_str(inside).into_iter::<Value>();
    let arguments = match values.next() {
        Some(Ok(value)) => {
            Json::new(inside[..values.byte_offset()].trim()).unwrap_or_else(|_| Json::from(&value))
        }
        _ if inside.trim().is_empty() || inside.trim_start().starts_with(']') => Json::empty_object(),
        _ => Json::string(inside.trim_end().strip_suffix(']').unwrap_or(inside)),
    };
    Written { thought, action: Action::Call { tool: tool.to_owned(), arguments } }
}

#[cfg(test)]
mod tests {
    use longhaul_model::Scripted;

    use super::*;

    fn call(tool: &str, json: &str) -> Action {
        Action::Call { tool: tool.to_owned(), arguments: Json::new(json).unwrap() }
    }

    // covers: A-TEXT
    #[test]
    fn actions_are_read_from_text() {
        for (said, thought, action) in [
            (
                "Thought: Look.\nAction: Read[{\"path\": \"a[0].rs\"}]",
                Some("Look."),
                call("Read", "{\"path\": \"a[0].rs\"}"),
            ),
            ("Action: LS[]", None, call("LS", "{}")),
            ("Action: LS", None, call("LS", "{}")),
            (
                "Thought: a\nb\n  Action: Bash [ {\"command\":\"x\"} ]\n[tool] {made up}\nAction: Finish[no]",
                Some("a\nb"),
                call("Bash", "{\"command\":\"x\"}"),
            ),
            (
                "Thought: Done.\nAction: Finish[It is [really] done.]",
                Some("Done."),
                Action::Finish("It is [really] done.".into()),
            ),
            ("Just an answer.", None, Action::Finish("Just an answer.".into())),
            ("Action: Read[{\"path\": ]", None, call("Read", "\"{\\\"path\\\": \"")),
        ] {
            assert_eq!(read(said), Written { thought: thought.map(str::to_owned), action }, "{said}");
        }
    }

    // covers: A-TEXT
    #[tokio::test]
    async fn a_conversation_is_written_as_text_and_an_action_becomes_a_call() {
        let inner = Arc::new(Scripted::new([Ok(Message::assistant("Thought: Next.\nAction: LS[{}]"))]));
        let model = React::new(inner);
        let mut frame = Frame::default();
        frame.tools.push(longhaul::Tool::from_definition(Json::new(r#"{"name":"LS"}"#).unwrap()));
        let called = Message::new(
            Role::Assistant,
            vec![
                Block::text("Look."),
                Block::call("step-4-aaaaaaaa", "Read", Json::new(r#"{"path":"a"}"#).unwrap()),
            ],
        );
        let Block::ToolResult(mut result) =
            Block::result("step-4-aaaaaaaa", r#"{"status":"success","data":{}}"#)
        else {
            panic!()
        };
        result.name = Some("Read".into());
        let answered = Message::new(Role::Tool, vec![Block::ToolResult(result)]);
        let messages = [Message::user("Go."), called, answered].map(Arc::new).to_vec();
        let request = Request::new(frame, messages);
        let text = as_text(&request);
        assert!(text.frame().tools.is_empty());
        let said: Vec<&str> = text.messages().iter().flat_map(|message| message.texts()).collect();
        assert_eq!(said[1], "Thought: Look.\nAction: Read[{\"path\":\"a\"}]");
        assert_eq!(said[2], r#"[tool] {"tool_name":"Read","step":4,"status":"success","data":{}}"#);
        assert_eq!(text.messages()[2].role(), Role::User);
        let reply = model.ask(request, &mut |_| {}).await.unwrap();
        let call = reply.messages[0].calls().next().unwrap();
        assert_eq!((&*call.name, step_of(&call.id)), ("LS", Some(5)));
        assert_eq!(reply.messages[0].texts().next(), Some("Next."));
    }
}
