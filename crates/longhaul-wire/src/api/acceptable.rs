//! A recorded conversation as an API accepts it. Recordings hold what no API takes back: answers that were cut off inside
//! their thinking, texts and lists with nothing in them, and tools with names of their own. Requests of clients are never
//! changed like this.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use longhaul::{Block, Extra, Frame, Json, Message, Role, Tool};
use serde_json::Value;

use super::{Api, Request};

/// Characters that a tool's name may have. All three APIs refuse longer names, and other characters than ASCII letters,
/// digits, `_` and `-`.
const LONGEST: usize = 64;

/// Anthropic's API wants to know how long an answer may be.
const MAX_TOKENS: u64 = 8_192;

impl Request {
    /// The request that an API accepts for a recorded conversation, and what had to be changed, in words. Tools keep their
    /// names if they are legal; others always get the same new name.
    ///
    /// ```
    /// use longhaul::{Block, Extra, Frame, Json, Message, Role};
    /// use longhaul_wire::api::{Api, Request};
    /// let call = Block::call("c1", "files/read", Json::new("{}").unwrap());
    /// let messages = vec![
    ///     Message::user("Look.").into(),
    ///     Message::new(Role::Assistant, vec![call]).into(),
    ///     Message::result("c1", "fn main() {}").into(),
    ///     Message::new(Role::Assistant, vec![Block::thinking("So")]).into(),
    /// ];
    /// let (request, changed) = Request::acceptable(Api::Anthropic, Frame::default(), messages);
    /// assert_eq!(request.messages().len(), 3);
    /// assert!(request.messages()[1].calls().next().unwrap().name.starts_with("files_read_"));
    /// assert_eq!(changed.len(), 2);
    /// ```
    pub fn acceptable(api: Api, mut frame: Frame, messages: Vec<Arc<Message>>) -> (Self, Vec<String>) {
        let mut changed = Vec::new();
        let mut messages = without_open_thinking(without_empty_texts(messages), &mut changed);
        let names = new_names(&frame, &messages);
        for (old, new) in &names {
            changed.push(format!("the tool {old:?} is called {new}"));
        }
        if !names.is_empty() {
            rename(&mut frame, &names);
            messages = messages.into_iter().map(|message| renamed(message, &names)).collect();
        }
        let empty = empty_lists(&frame);
        if !empty.is_empty() {
            let mut settings = Extra::default();
            let left = frame.settings.iter().filter(|(name, _)| !empty.iter().any(|empty| empty == name));
            left.for_each(|(name, value)| settings.push(name, value.clone()));
            frame.settings = settings;
            changed.extend(empty.iter().map(|name| format!("the setting `{name}` has nothing in it")));
        }
        if api == Api::Anthropic && frame.max_output().is_none() {
            frame.settings.set("max_tokens", Json::from(&Value::from(MAX_TOKENS)));
        }
        (Self::new(frame, messages), changed)
    }
}

/// The messages without texts that have no words, and without messages that have nothing else.
fn without_empty_texts(messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    let is_empty = |block: &Block| matches!(block, Block::Text(text) if text.text.trim().is_empty());
    let cleaned = messages.into_iter().filter_map(|message| {
        if message.blocks().is_empty() {
            return None;
        }
        if !message.blocks().iter().any(is_empty) {
            return Some(message);
        }
        let blocks: Vec<Block> = message.blocks().iter().filter(|block| !is_empty(block)).cloned().collect();
        (!blocks.is_empty()).then(|| Arc::new(Arc::unwrap_or_clone(message).with_blocks(blocks)))
    });
    cleaned.collect()
}

/// The messages without thinking that nothing follows: answers that were cut off.
fn without_open_thinking(messages: Vec<Arc<Message>>, changed: &mut Vec<String>) -> Vec<Arc<Message>> {
    let mut kept: Vec<Arc<Message>> = Vec::with_capacity(messages.len());
    // From the end: consecutive messages of the assistant are one for an API.
    for (number, message) in messages.into_iter().enumerate().rev() {
        let is_followed = kept.last().is_some_and(|next| next.role() == Role::Assistant);
        let is_thinking = |block: &Block| matches!(block, Block::Thinking(_));
        let said = message.blocks().iter().rposition(|block| !is_thinking(block)).map_or(0, |last| last + 1);
        if message.role() != Role::Assistant || is_followed || said == message.blocks().len() {
            kept.push(message);
            continue;
        }
        changed.push(format!("thinking at the end of message {}", number + 1));
        if said > 0 {
            let blocks = message.blocks()[..said].to_vec();
            kept.push(Arc::new(Arc::unwrap_or_clone(message).with_blocks(blocks)));
        }
    }
    kept.reverse();
    kept
}

/// New names for the tools whose names are not legal.
fn new_names(frame: &Frame, messages: &[Arc<Message>]) -> BTreeMap<String, String> {
    let called = messages.iter().flat_map(|message| message.calls()).map(|call| &*call.name);
    let answered =
        messages.iter().flat_map(|message| message.results()).filter_map(|result| result.name.as_deref());
    // The provider's own tools have a type and no name.
    let offered = frame.tools.iter().map(|tool| &*tool.name).filter(|name| !name.is_empty());
    let all: BTreeSet<&str> = called.chain(answered).chain(offered).collect();
    let (legal, others): (BTreeSet<&str>, BTreeSet<&str>) = all.into_iter().partition(|name| is_legal(name));
    let mut taken: BTreeSet<String> = legal.into_iter().map(str::to_owned).collect();
    let mut names = BTreeMap::new();
    for name in others {
        // A name that somebody else has already takes more of the hash.
        let candidates = [10, 20, 30, 40].map(|digits| legal_name(name, digits));
        let new = candidates.iter().find(|new| !taken.contains(*new)).unwrap_or(&candidates[3]).clone();
        taken.insert(new.clone());
        names.insert(name.to_owned(), new);
    }
    names
}

fn is_legal(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(legal)
}

/// What a legal name can show of a name, and so many digits of its hash: two names never look the same.
fn legal_name(name: &str, digits: usize) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let start: String = name.chars().map(legal).take(LONGEST - 1 - digits).collect();
    let hash = blake3::hash(name.as_bytes()).to_hex();
    format!("{start}_{}", &hash[..digits])
}

fn rename(frame: &mut Frame, names: &BTreeMap<String, String>) {
    for Tool { name, definition } in &mut frame.tools {
        if let Some(new) = names.get(&**name) {
            *name = new.as_str().into();
            *definition = with_new_names(definition, names);
        }
    }
    if let Some(choice) = frame.settings.get("tool_choice").cloned() {
        frame.settings.set("tool_choice", with_new_names(&choice, names));
    }
}

/// A definition or a choice of tools, with new names where tools are named.
fn with_new_names(json: &Json, names: &BTreeMap<String, String>) -> Json {
    let mut value = json.value();
    let change = |place: Option<&mut Value>| {
        if let Some(Value::String(name)) = place
            && let Some(new) = names.get(name.as_str())
        {
            *name = new.clone();
        }
    };
    change(value.get_mut("name"));
    for kind in ["function", "custom"] {
        change(value.get_mut(kind).and_then(|inner| inner.get_mut("name")));
    }
    Json::from(&value)
}

fn renamed(message: Arc<Message>, names: &BTreeMap<String, String>) -> Arc<Message> {
    let is_other = |name: &str| names.contains_key(name);
    let has_others = message.calls().any(|call| is_other(&call.name))
        || message.results().any(|result| result.name.as_deref().is_some_and(is_other));
    if !has_others {
        return message;
    }
    let mut blocks = message.blocks().to_vec();
    for block in &mut blocks {
        match block {
            Block::ToolCall(call) => {
                if let Some(new) = names.get(&*call.name) {
                    call.name = new.as_str().into();
                }
            }
            Block::ToolResult(result) => {
                if let Some(new) = result.name.as_deref().and_then(|name| names.get(name)) {
                    result.name = Some(new.as_str().into());
                }
            }
            _ => {}
        }
    }
    Arc::new(Arc::unwrap_or_clone(message).with_blocks(blocks))
}

/// Settings that are a list with nothing in it.
fn empty_lists(frame: &Frame) -> Vec<String> {
    let is_empty = |value: &Json| value.value().as_array().is_some_and(Vec::is_empty);
    frame.settings.iter().filter(|(_, value)| is_empty(value)).map(|(name, _)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(name: &str) -> Arc<Message> {
        let call = Block::call("c", name, Json::new("{}").unwrap());
        Arc::new(Message::new(Role::Assistant, vec![call]))
    }

    fn names(all: &[&str]) -> Vec<String> {
        let messages: Vec<_> = all.iter().map(|name| calls(name)).collect();
        let (request, _) = Request::acceptable(Api::Chat, Frame::default(), messages);
        request
            .messages()
            .iter()
            .flat_map(|message| message.calls())
            .map(|call| call.name.to_string())
            .collect()
    }

    #[test]
    fn names_are_legal_stable_and_of_one_tool_each() {
        let long = "x".repeat(65);
        let longer = "x".repeat(66);
        let all = ["Read", "a.b", "a/b", "a b", "ü", "", &long, &longer, "mcp__a-b_1"];
        let new = names(&all);
        assert_eq!((new[0].as_str(), new[8].as_str()), ("Read", "mcp__a-b_1"));
        assert!(new.iter().all(|name| is_legal(name)), "{new:?}");
        assert_eq!(new.iter().collect::<BTreeSet<_>>().len(), all.len(), "{new:?}");
        // The same wherever a tool is called, beside whichever others.
        for (name, new) in all.iter().zip(&new) {
            assert_eq!(names(&[name]), std::slice::from_ref(new));
        }
        // Another tool has the new name already.
        let taken = legal_name("a.b", 10);
        let both = names(&["a.b", &taken]);
        assert_eq!(both[1], taken);
        assert!(both[0] != taken && is_legal(&both[0]));
    }

    #[test]
    fn definitions_and_choices_name_the_same_tool_as_calls() {
        for definition in [
            r#"{"name":"a.b","input_schema":{"type":"object","properties":{"name":{"const":"a.b"}}}}"#,
            r#"{"type":"function","function":{"name":"a.b","parameters":{"type":"object"}}}"#,
        ] {
            let tool = Tool { name: "a.b".into(), definition: Json::new(definition).unwrap() };
            let mut frame = Frame { tools: vec![tool], ..Frame::default() };
            frame.settings.set("tool_choice", Json::new(r#"{"type":"tool","name":"a.b"}"#).unwrap());
            let (request, _) = Request::acceptable(Api::Anthropic, frame, vec![calls("a.b")]);
            let new = legal_name("a.b", 10);
            let frame = request.frame();
            assert_eq!(*frame.tools[0].name, *new);
            assert_eq!(frame.tools[0].definition.as_str(), definition.replacen("a.b", &new, 1));
            assert!(frame.settings.get("tool_choice").unwrap().as_str().contains(&new));
        }
    }

    #[test]
    fn nothing_is_empty_and_nothing_ends_in_thinking() {
        let assistant = |blocks| Arc::new(Message::new(Role::Assistant, blocks));
        let messages = vec![
            Arc::new(Message::user("Go.")),
            assistant(vec![Block::thinking("hm"), Block::text("Yes."), Block::thinking("so")]),
            Arc::new(Message::user("")),
            Arc::new(Message::user("On.")),
            assistant(vec![Block::thinking("kept"), Block::text(" \n")]),
            assistant(vec![Block::text("Done.")]),
            Arc::new(Message::user("More.")),
            assistant(vec![Block::text("Well.")]),
            assistant(vec![Block::thinking("cut off")]),
        ];
        let mut frame = Frame::default();
        frame.settings.set("stop", Json::new("[]").unwrap());
        let (request, changed) = Request::acceptable(Api::Chat, frame, messages);
        let left: Vec<Vec<bool>> = request
            .messages()
            .iter()
            .map(|message| message.blocks().iter().map(|block| matches!(block, Block::Thinking(_))).collect())
            .collect();
        let expected: [&[bool]; 7] =
            [&[false], &[true, false], &[false], &[true], &[false], &[false], &[false]];
        assert_eq!(left, expected);
        assert_eq!(changed.len(), 3, "{changed:?}");
        assert!(request.frame().settings.get("stop").is_none());
    }
}
