//! What is finished becomes a summary: whole turns first, then finished steps of the running
//! turn. A later fold stands behind the earlier ones, which stay as they are, or takes them in.

use super::{Context, FoldPlan, Link, Proposal, Strategy, Visible, joined};
use crate::conversation::log::Span;
use crate::size::tokens::Tokens;

/// Finished turns become a summary.
pub static FOLD_TURNS: Strategy = Strategy {
    name: "fold-turns",
    says: "finished turns become a summary",
    propose: |context| {
        let running = context.log.running_turn().map_or(context.log.end(), |turn| turn.start);
        fold(context, |item| item.spans.iter().all(|span| span.end <= running))
    },
    folds: true,
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
    folds: true,
    ..Strategy::PLAIN
};

/// True if a limit demands all that there is, and this unit takes a good part of the room that must become free.
fn is_in_the_way(context: &Context<'_>, unit: &Visible) -> bool {
    let room = context.budget.trigger - (context.size - context.excess);
    context.newest == Some(Tokens::ZERO) && Tokens(unit.tokens.0.saturating_mul(4)) > room
}

fn fold(context: &Context<'_>, here: impl Fn(&Visible) -> bool) -> Vec<Proposal> {
    let visible = context.visible();
    let old = visible.len() - context.recent(&visible);
    let foldable: Vec<&Visible> =
        visible[..old].iter().filter(|item| here(item) && !context.stays(item)).collect();
    // With a dial the summaries before stay as they are, unless taking them in pays.
    let chains = context.profile.dial.is_some();
    let is_fold = |item: &&Visible| item.kind.is_none();
    let last = foldable.iter().rposition(is_fold).filter(|_| chains);
    let new = &foldable[last.map_or(0, |at| at + 1)..];
    // One summary alone, or a single unit, is not worth another.
    let mut units = new.iter().filter(|item| item.kind.is_some());
    let is_worth_it = match (units.next(), units.next()) {
        (Some(unit), None) => is_in_the_way(context, unit),
        (_, second) => second.is_some(),
    };
    if !is_worth_it {
        return Vec::new();
    }
    let spans = |items: &[&Visible]| -> Vec<Span> {
        joined(items.iter().flat_map(|item| item.spans.iter().copied()).collect())
    };
    let earlier = foldable.iter().enumerate().filter(|(_, item)| chains && is_fold(item));
    let links = earlier
        .filter_map(|(at, item)| Some(Link { fold: item.source.edit()?, spans: spans(&foldable[at..]) }));
    let chain = links.collect();
    vec![Proposal::Fold(FoldPlan { chain, ..FoldPlan::of(context, spans(new)) })]
}
