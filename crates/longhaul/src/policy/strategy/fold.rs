//! What is finished becomes a summary: whole turns first, then finished steps of the running
//! turn. A later fold takes the earlier ones in, so there is one summary at each place.

use super::{Context, FoldPlan, Proposal, Strategy, Visible, joined};
use crate::conversation::log::Span;

/// Finished turns become a summary.
pub static FOLD_TURNS: Strategy = Strategy {
    name: "fold-turns",
    says: "finished turns become a summary",
    propose: |context| {
        let running = context.log.running_turn().map_or(context.log.end(), |turn| turn.start);
        fold(context, |item| item.spans.iter().all(|span| span.end <= running))
    },
    ..Strategy::PLAIN
};

/// Finished steps of the running turn become a summary.
pub static FOLD_STEPS: Strategy = Strategy {
    name: "fold-steps",
    says: "finished steps of the running turn become a summary",
    propose: |context| {
        let Some(turn) = context.log.running_turn() else { return Vec::new() };
        fold(context, |item| item.spans.iter().all(|span| span.start >= turn.start))
    },
    ..Strategy::PLAIN
};

fn fold(context: &Context<'_>, here: impl Fn(&Visible) -> bool) -> Vec<Proposal> {
    let visible = context.visible();
    let old = visible.len() - context.recent(&visible);
    let foldable = visible[..old].iter().filter(|item| here(item) && !context.stays(item));
    let spans: Vec<Span> = foldable.clone().flat_map(|item| item.spans.iter().copied()).collect();
    // One summary alone, or a single unit, is not worth another.
    if foldable.filter(|item| item.kind.is_some()).count() < 2 {
        return Vec::new();
    }
    vec![Proposal::Fold(FoldPlan::of(context, joined(spans)))]
}
