//! A message as its edits inside show it: digests, arguments, answers of the host, thinking that is gone.

use std::sync::Arc;

use crate::conversation::log::Position;
use crate::conversation::message::{Block, Message, ToolCall, ToolResult};
use crate::edits::edit::{EditKind, EditText};
use crate::edits::ledger::Ledger;
use crate::edits::unbound;

/// The blocks of a message with its active edits; `None` if there is none.
pub(super) fn edited(ledger: &Ledger, at: Position, message: &Message) -> Option<Vec<Option<Block>>> {
    let edits: Vec<&EditKind> =
        ledger.inside(at).iter().filter_map(|id| Some(&ledger.get(*id)?.kind)).collect();
    let is_unbound = ledger.is_unbound(at) && unbound::signed(message).next().is_some();
    if edits.is_empty() && !is_unbound {
        return None;
    }
    // What the host answered is no error, whatever the client said.
    let answered = |number: usize| {
        edits.iter().any(|edit| matches!(edit, EditKind::Answer { block, .. } if *block == number))
    };
    let no_thinking = edits.iter().any(|edit| matches!(edit, EditKind::DropThinking { .. }));
    let blocks = message.blocks().iter().enumerate().map(|(number, block)| {
        match block {
            Block::Thinking(_) if no_thinking => return None,
            Block::Thinking(thinking) if is_unbound && unbound::is_signed(&thinking.seal) => {
                return ledger.excerpt(at, number).map(|text| Block::text(text.clone()));
            }
            _ => {}
        }
        // Of several edits of a block the newest shows.
        let newest = edits.iter().rev().find_map(|edit| match (edit, block) {
            (EditKind::Digest { block: b, text, .. } | EditKind::Answer { block: b, text, .. }, _)
                if *b == number =>
            {
                with_text(block, text, answered(number))
            }
            (EditKind::DigestArgs { block: b, arguments, .. }, Block::ToolCall(call)) if *b == number => {
                let (id, name, extra) = (call.id.clone(), call.name.clone(), call.extra.clone());
                Some(Block::ToolCall(ToolCall {
                    id,
                    name,
                    arguments: arguments.clone(),
                    server: call.server,
                    extra,
                }))
            }
            // Of another block, or of no block at all: a new kind of edit must say here what it shows.
            (
                EditKind::Digest { .. }
                | EditKind::Answer { .. }
                | EditKind::DigestArgs { .. }
                | EditKind::DropThinking { .. }
                | EditKind::Fold { .. }
                | EditKind::Hide { .. },
                _,
            ) => None,
        });
        Some(newest.unwrap_or_else(|| block.clone()))
    });
    Some(blocks.collect())
}

/// The block with another text; `None` if it has none.
fn with_text(block: &Block, text: &EditText, answered: bool) -> Option<Block> {
    match block {
        Block::Text(b) => Some(Block::Text(b.shortened(text.shared()))),
        Block::ToolResult(b) => Some(Block::ToolResult(ToolResult {
            id: b.id.clone(),
            name: b.name.clone(),
            text: text.shared(),
            content: pictures(b, text.shared()),
            is_error: b.is_error && !answered,
            extra: b.extra.clone(),
        })),
        _ => None,
    }
}

/// The content of a result whose text became shorter: what is no text stays.
fn pictures(result: &ToolResult, text: Arc<str>) -> Option<Box<[Block]>> {
    let others = result.content.as_deref()?.iter().filter(|block| !matches!(block, Block::Text(_)));
    let mut content = vec![Block::text(text)];
    content.extend(others.cloned());
    (content.len() > 1).then(|| content.into())
}
