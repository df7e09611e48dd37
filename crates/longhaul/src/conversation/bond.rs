//! Bonds: blocks that live or die together. A call and its results are bonded across the
//! messages of a step (see `log`); this is the list of bonds inside one message.

use std::collections::HashSet;

use crate::conversation::message::{Block, Message, Seal};

/// Why blocks of one message belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BondKind {
    /// A run of thinking and the message it opens: while the turn runs they go together;
    /// once it has ended the thinking may go as a whole.
    Thinking,
    /// An encrypted reasoning item and the item after it.
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
        let encrypted = matches!(block, Block::Thinking(t) if matches!(t.seal, Seal::Encrypted(_)));
        if encrypted && at + 1 < blocks.len() {
            found.push(Bond { kind: BondKind::Reasoning, blocks: vec![at, at + 1] });
        }
    }
    found.extend(server_tools(blocks));
    found.sort_by_key(|bond| bond.blocks[0]);
    found
}

/// Citations name results by their number in the request, so text that cites is bonded to
/// every server-side tool before it in the message.
fn server_tools(blocks: &[Block]) -> Option<Bond> {
    let (mut bonded, mut calls) = (Vec::new(), HashSet::new());
    for (at, block) in blocks.iter().enumerate() {
        let belongs = match block {
            Block::ToolCall(call) if call.server => {
                calls.insert(&*call.id);
                true
            }
            Block::ToolResult(result) => calls.contains(&*result.id),
            Block::Text(text) => !bonded.is_empty() && text.extra.is_set("citations"),
            _ => false,
        };
        if belongs {
            bonded.push(at);
        }
    }
    (!bonded.is_empty()).then_some(Bond { kind: BondKind::ServerTool, blocks: bonded })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::json::{Extra, Json};
    use crate::conversation::message::{Role, Text, Thinking, ToolCall, Words};

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
