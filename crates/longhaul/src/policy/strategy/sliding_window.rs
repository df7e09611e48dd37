//! The newest messages stay, everything older becomes a summary (seed 004).

use super::{Context, FoldPlan, Proposal, Strategy, joined};
use crate::conversation::log::Span;

/// All but the newest messages become a summary.
pub static SLIDING_WINDOW: Strategy = Strategy {
    name: "sliding-window",
    says: "the newest messages stay, back to the start of their step; what is older becomes a summary",
    propose: |context: &Context<'_>| {
        let size = context.profile.constants.sliding_window_size;
        let visible = context.visible();
        if context.messages(&visible) <= 2 * size {
            return Vec::new();
        }
        let kept = context.newest_messages(&visible, size);
        let old = visible[..visible.len() - kept].iter().filter(|item| !context.stays(item));
        let new = old.clone().filter(|item| item.kind.is_some()).count();
        let spans: Vec<Span> = old.flat_map(|item| item.spans.iter().copied()).collect();
        // One summary alone, or a single unit, is not worth another.
        if new < 2 { Vec::new() } else { vec![Proposal::Fold(FoldPlan::of(context, joined(spans)))] }
    },
    ..Strategy::PLAIN
};
