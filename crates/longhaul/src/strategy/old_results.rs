//! Old tool results become digests, oldest first, until enough is gone.

use super::{Context, Proposal, Strategy};
use crate::archive::{Handle, Original};
use crate::digest;
use crate::edit::EditKind;
use crate::log::At;
use crate::message::Block;
use crate::step::UnitKind;
use crate::tokens::Tokens;

/// Old tool results become digests.
pub static OLD_RESULTS: Strategy = Strategy {
    name: "old-results",
    says: "results of older steps are cut to their first and last lines",
    propose: |context| {
        let visible = context.visible();
        let old = visible.len() - context.recent(&visible);
        let steps =
            visible[..old].iter().filter(|item| item.kind == Some(UnitKind::Step) && !context.stays(item));
        digests(context, steps.flat_map(|item| item.spans.iter().flat_map(|span| span.range())))
    },
};

/// Digests of the results in these messages, until enough is gone.
pub(super) fn digests(context: &Context<'_>, ats: impl Iterator<Item = usize>) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    let mut saved = Tokens::ZERO;
    for at in ats.map(|at| At(at as u32)) {
        let Some(message) = context.message(at) else { continue };
        for (block, content) in message.blocks().iter().enumerate() {
            let Block::ToolResult(result) = content else { continue };
            let digested =
                context.ledger.inside(at).iter().filter_map(|id| context.ledger.get(*id)).any(|edit| {
                    matches!(edit.kind, EditKind::Digest { block: b, .. } if b == block)
                        && edit.strategy.as_ref() != "entry"
                });
            if digested || result.text.len() <= digest::SHORT {
                continue;
            }
            if saved >= context.excess {
                return proposals;
            }
            let original = Original::Block(message.clone(), block);
            let Some(text) =
                digest::result(&result.text, handle_of(&original, result.content.is_none(), &result.text))
            else {
                continue;
            };
            saved += context.text_tokens(&result.text) - context.text_tokens(&text);
            proposals.push(Proposal::Inside(EditKind::Digest { at, block, text: text.into() }, original));
        }
    }
    proposals
}

/// The handle of a result: of its text alone where that is all there is.
fn handle_of(original: &Original, text_only: bool, text: &str) -> Handle {
    if text_only { Handle::of(text) } else { original.handle() }
}
