//! Old tool results become digests, oldest first, until enough is gone.

use std::cell::LazyCell;

use super::{Context, Proposal, ResultText, Strategy};
use crate::conversation::log::Position;
use crate::conversation::message::{Block, ToolResult};
use crate::conversation::step::UnitKind;
use crate::digest::{self, Outputs, ToolKind};
use crate::size::tokens::Tokens;
use crate::text::names::NameSet;

/// Old tool results become digests.
pub static OLD_RESULTS: Strategy = Strategy {
    name: "old-results",
    says: "results of older steps are cut to their best lines: failures, definitions, names in use",
    propose: |context| {
        let visible = context.visible();
        let old = visible.len() - context.recent(&visible);
        let steps = visible[..old]
            .iter()
            .filter(|item| item.kind == Some(UnitKind::Step) && !context.stays_whole(item));
        digests(context, steps.flat_map(|item| item.spans.iter().flat_map(|span| span.range())))
    },
    ..Strategy::PLAIN
};

/// Digests of the results in these messages, until enough is gone.
pub(super) fn digests(context: &Context<'_>, ats: impl Iterator<Item = usize>) -> Vec<Proposal> {
    digests_and_savings(context, ats).0
}

/// The same, and about how much they save.
pub(super) fn digests_and_savings(
    context: &Context<'_>,
    ats: impl Iterator<Item = usize>,
) -> (Vec<Proposal>, Tokens) {
    let names = context.used_names();
    let mut proposals = Vec::new();
    let mut saved = Tokens::ZERO;
    for at in ats.map(|at| Position(at as u32)) {
        let Some(message) = context.message(at) else { continue };
        for (block, content) in message.blocks().iter().enumerate() {
            let Block::ToolResult(result) = content else { continue };
            if context.is_digested(at, block) {
                continue;
            }
            let said = context.result_at(at, block, result);
            if said.text.len() <= digest::SHORT {
                continue;
            }
            if saved >= context.excess {
                return (proposals, saved);
            }
            let Some(text) = by_content(context, at, result, &said, &names) else { continue };
            // It may be shown shorter already, as it entered.
            let shown = context.shown(at, block).unwrap_or(said.text).len();
            if text.len() >= shown {
                continue;
            }
            saved += context.saving(at, shown, text.len());
            proposals.extend(said.digested(at, block, text));
        }
    }
    (proposals, saved)
}

/// The best lines of a result, by what it is.
fn by_content(
    context: &Context<'_>,
    at: Position,
    result: &ToolResult,
    said: &ResultText<'_>,
    names: &NameSet<'_>,
) -> Option<String> {
    let call = context.call_of(at, result);
    let outputs = Outputs::of(call, said.text, result.content.as_deref(), &context.profile.aliases);
    let handle = LazyCell::new(|| said.handle());
    outputs.digest(said.text, |text, tool, subject| {
        // Whoever recalls a text wants all of it. In a digest it would have to be recalled once more.
        if tool == ToolKind::Recall {
            return None;
        }
        digest::by_content(text, tool, &subject(), names, *handle)
    })
}
