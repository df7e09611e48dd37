//! Bonds: blocks that live or die together. A call and its results are bonded across the
//! messages of a step (see `log`); this is the list of bonds inside one message.

use std::collections::HashSet;

use serde_json::Value;

use crate::conversation::message::{Block, Message, Opaque, Seal, Thinking, ToolResult};

/// Why blocks of one message belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BondKind {
    /// A run of thinking and the message it opens: while the turn runs they go together;
    /// once it has ended the thinking may go as a whole.
    Thinking,
    /// A reasoning item that is encrypted, or stored with the provider under its id, and the item after it.
    Reasoning,
    /// A tool that the provider ran itself: the call, its result, and text that cites it.
    ServerTool,
}

/// Blocks of one message that live or die together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bond {
    /// Why.
    pub kind: BondKind,
    /// Positions of the blocks in the message, ascending.
    pub blocks: Vec<usize>,
}

/// The bonds inside `message`, in the order of their first block.
///
/// ```
/// use longhaul::{Block, Message, Role};
/// use longhaul::conversation::{BondKind, bonds};
/// let message = Message::new(Role::Assistant, vec![
///     Block::thinking("first"), Block::thinking("second"), Block::text("answer"),
/// ]);
/// let found = bonds(&message);
/// assert_eq!((found[0].kind, found[0].blocks.as_slice()), (BondKind::Thinking, &[0, 1][..]));
/// ```
pub fn bonds(message: &Message) -> Vec<Bond> {
    bonds_with(message, |_| false)
}

/// The same where some blocks are results of calls that the provider ran in an earlier message.
pub(crate) fn bonds_with(message: &Message, answers_earlier: impl Fn(usize) -> bool) -> Vec<Bond> {
    let blocks = message.blocks();
    let mut found = Vec::new();
    let mut at = 0;
    while at < blocks.len() {
        let run = blocks[at..].iter().take_while(|b| matches!(b, Block::Thinking(_))).count();
        if run > 0 {
            found.push(Bond { kind: BondKind::Thinking, blocks: (at..at + run).collect() });
        }
        at += run.max(1);
    }
    for (at, block) in blocks.iter().enumerate() {
        if matches!(block, Block::Thinking(t) if is_item(t)) && at + 1 < blocks.len() {
            found.push(Bond { kind: BondKind::Reasoning, blocks: vec![at, at + 1] });
        }
    }
    found.extend(server_tools(blocks, answers_earlier));
    found.sort_by_key(|bond| bond.blocks[0]);
    found
}

/// Reasoning that is an item of its own, which the item after it refers to: encrypted, or with the
/// provider under its id.
fn is_item(thinking: &Thinking) -> bool {
    match &thinking.seal {
        Seal::Encrypted(_) => true,
        Seal::Redacted(None) => thinking.extra.is_set("id"),
        Seal::Open | Seal::Signed(_) | Seal::Redacted(Some(_)) => false,
    }
}

/// Citations name results by their number in the request, so text that cites is bonded to
/// every server-side tool before it in the message.
fn server_tools(blocks: &[Block], answers_earlier: impl Fn(usize) -> bool) -> Option<Bond> {
    let (mut bonded, mut calls) = (Vec::new(), HashSet::new());
    for (at, block) in blocks.iter().enumerate() {
        let belongs = match block {
            Block::ToolCall(call) if call.server => {
                calls.insert(&*call.id);
                true
            }
            Block::ToolResult(result) => calls.contains(&*result.id) || answers_earlier(at),
            Block::Text(text) => !bonded.is_empty() && text.extra.is_set("citations"),
            _ => false,
        };
        if belongs {
            bonded.push(at);
        }
    }
    (!bonded.is_empty()).then_some(Bond { kind: BondKind::ServerTool, blocks: bonded })
}

/// True for a result that loads a tool: the model has the tool as long as the result is in view.
pub(crate) fn loads_tool(result: &ToolResult) -> bool {
    let content = result.content.as_deref().unwrap_or_default();
    content.iter().any(|block| matches!(block, Block::Opaque(block) if !tools_referred(block).is_empty()))
}

/// The names of the tools that a block loads.
pub(crate) fn tools_referred(block: &Opaque) -> Vec<Box<str>> {
    const TOOL_REFERENCE: &str = "tool_reference";
    fn collect(value: &Value, names: &mut Vec<Box<str>>) {
        match value {
            Value::Object(fields) => {
                if fields.get("type").is_some_and(|kind| kind == TOOL_REFERENCE) {
                    let name = fields.get("tool_name").and_then(Value::as_str);
                    names.push(name.unwrap_or_default().into());
                }
                fields.values().for_each(|value| collect(value, names));
            }
            Value::Array(values) => values.iter().for_each(|value| collect(value, names)),
            _ => {}
        }
    }
    let mut names = Vec::new();
    if block.value.as_str().contains(TOOL_REFERENCE) {
        collect(&block.value.value(), &mut names);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::json::{Extra, Json};
    use crate::conversation::message::{Role, Text, ToolCall, Words};

    fn kinds(blocks: Vec<Block>) -> Vec<(BondKind, Vec<usize>)> {
        bonds(&Message::new(Role::Assistant, blocks)).into_iter().map(|b| (b.kind, b.blocks)).collect()
    }

    #[test]
    fn encrypted_reasoning_holds_the_item_after_it() {
        let reasoning = Block::Thinking(Thinking {
            text: "".into(),
            seal: Seal::Encrypted("gAAA".into()),
            extra: Extra::NONE,
        });
        let call = Block::call("c1", "exec", Json::empty_object());
        assert_eq!(
            kinds(vec![Block::text("a"), reasoning, call]),
            [(BondKind::Thinking, vec![1]), (BondKind::Reasoning, vec![1, 2])]
        );
    }

    #[test]
    fn stored_reasoning_holds_the_item_after_it() {
        let mut extra = Extra::NONE;
        extra.set("id", Json::string("rs_1"));
        let stored = |extra| Block::Thinking(Thinking { text: "".into(), seal: Seal::Redacted(None), extra });
        let call = Block::call("c1", "exec", Json::empty_object());
        assert_eq!(
            kinds(vec![stored(extra), call.clone()]),
            [(BondKind::Thinking, vec![0]), (BondKind::Reasoning, vec![0, 1])]
        );
        assert_eq!(kinds(vec![stored(Extra::NONE), call]), [(BondKind::Thinking, vec![0])]);
    }

    #[test]
    fn a_result_loads_a_tool_wherever_the_reference_stands() {
        let result = |json: &str| {
            let value = Json::new(json).unwrap();
            let Block::ToolResult(result) = Block::result("a", "") else { panic!() };
            let content = Some(vec![Block::Opaque(Opaque { value, extra: Extra::NONE })].into());
            ToolResult { content, ..result }
        };
        assert!(loads_tool(&result(r#"{"type":"tool_reference","tool_name":"WebFetch"}"#)));
        assert!(loads_tool(&result(
            r#"{"type":"found","tool_references":[{"type":"tool_reference","tool_name":"a"}]}"#
        )));
        assert!(!loads_tool(&result(r#"{"type":"document","title":"tool_reference"}"#)));
    }

    #[test]
    fn a_server_tool_holds_its_result_and_the_text_that_cites_it() {
        let call = Block::ToolCall(ToolCall {
            id: "s1".into(),
            name: "web_search".into(),
            arguments: Json::empty_object(),
            server: true,
            extra: Extra::NONE,
        });
        let mut extra = Extra::NONE;
        extra.set("citations", Json::new("[1]").unwrap());
        let cites = Block::Text(Text { text: "as found".into(), words: Words::All, extra });
        let blocks =
            vec![call, Block::result("s1", "hits"), Block::text("plain"), cites, Block::result("x", "")];
        assert_eq!(kinds(blocks), [(BondKind::ServerTool, vec![0, 1, 3])]);
    }
}
