//! History in chunks; each but the last becomes a summary of its own, once (seed 004).

use super::{Context, FoldPlan, Proposal, Strategy, joined};
use crate::conversation::log::Span;

/// Chunks become summaries.
pub static INCREMENTS: Strategy = Strategy {
    name: "increments",
    says: "history in chunks; all but the last become a summary each",
    propose: |context: &Context<'_>| {
        let size = context.profile.constants.incremental_summary_chunk_size.max(1);
        let visible = context.visible();
        if context.messages(&visible) <= 2 * size && !context.goes_on {
            return Vec::new();
        }
        let mut chunks: Vec<Vec<Span>> = vec![Vec::new()];
        let mut messages = 0;
        // What was summarised once is not summarised again.
        for item in visible.iter().filter(|item| item.kind.is_some()) {
            if messages >= size {
                chunks.push(Vec::new());
                messages = 0;
            }
            messages += item.messages();
            if let Some(chunk) = chunks.last_mut().filter(|_| !context.stays(item)) {
                chunk.extend(&item.spans);
            }
        }
        chunks.pop();
        let whole = chunks.into_iter().filter(|chunk| chunk.len() > 1);
        whole.map(|chunk| Proposal::Fold(FoldPlan::of(context, joined(chunk)))).collect()
    },
    extracts: true,
    ..Strategy::PLAIN
};
