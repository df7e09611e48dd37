//! Rounds (seed 003): a round is a turn. All but the newest become a summary, which is appended to
//! the ones before; when summaries have grown too large, code merges them.

use super::{Context, FoldPlan, Proposal, Strategy, joined};
use crate::conversation::log::{Position, Span};
use crate::conversation::step::UnitKind;
use crate::edits::edit::{EditKind, Placement};
use crate::size::tokens::Tokens;

/// All but the newest rounds become a summary.
pub static ARCHIVE_ROUNDS: Strategy = Strategy {
    name: "archive-rounds",
    says: "all but the newest rounds become a summary, appended to the ones before",
    propose: |context: &Context<'_>| {
        let kept = kept_rounds(context);
        let visible = context.visible();
        // Earlier summaries are not compressed again.
        let old = visible.iter().filter(|item| {
            item.kind.is_some() && !context.stays(item) && item.spans.iter().all(|span| span.end <= kept)
        });
        let spans: Vec<Span> = old.clone().flat_map(|item| item.spans.iter().copied()).collect();
        // A single message is not worth a summary.
        if old.count() < 2 { Vec::new() } else { vec![Proposal::Fold(FoldPlan::of(context, joined(spans)))] }
    },
    ..Strategy::PLAIN
};

/// Summaries that have grown too large are merged.
pub static MERGE_SUMMARIES: Strategy = Strategy {
    name: "merge-summaries",
    says: "summaries that have grown too large are merged by code",
    propose: |context: &Context<'_>| {
        let share = |percent: u8| context.budget.window.percent(percent);
        let visible = context.visible();
        let is_summary = |id| {
            context
                .ledger
                .get(id)
                .is_some_and(|edit| matches!(edit.kind, EditKind::Fold { placement: Placement::InPlace, .. }))
        };
        let summaries: Vec<_> = visible
            .iter()
            .filter(|item| {
                matches!(item.source, crate::view::Source::Edit(id) if is_summary(id)) && !context.stays(item)
            })
            .collect();
        let all: Tokens = summaries.iter().map(|item| item.tokens).sum();
        if summaries.is_empty() || all <= share(context.profile.constants.merge_above) {
            return Vec::new();
        }
        let spans = summaries.iter().flat_map(|item| item.spans.iter().copied()).collect();
        let plan = FoldPlan {
            limit: Some(share(context.profile.constants.merge_to)),
            by_code: true,
            ..FoldPlan::of(context, joined(spans))
        };
        vec![Proposal::Fold(plan)]
    },
    ..Strategy::PLAIN
};

/// Where the kept rounds alone are too large: their oldest finished steps become a summary.
pub static FOLD_KEPT_ROUNDS: Strategy = Strategy {
    name: "fold-kept-rounds",
    says: "when the kept rounds alone are too large, their oldest finished steps become a summary",
    propose: |context: &Context<'_>| {
        let visible = context.visible();
        // What a summary of it takes is not gone.
        let wanted = context.excess + context.excess.scaled(250_000);
        let (mut gone, mut spans): (Tokens, Vec<Span>) = Default::default();
        for item in visible.iter().filter(|item| item.kind == Some(UnitKind::Step) && !context.stays(item)) {
            if gone > wanted {
                break;
            }
            gone += item.tokens;
            spans.extend(&item.spans);
        }
        let plan = |spans| FoldPlan {
            template: context.profile.templates.running,
            ..FoldPlan::of(context, joined(spans))
        };
        if spans.len() < 2 { Vec::new() } else { vec![Proposal::Fold(plan(spans))] }
    },
    extracts: true,
    ..Strategy::PLAIN
};

/// Where the newest rounds begin.
fn kept_rounds(context: &Context<'_>) -> Position {
    let turns = context.log.turns();
    let kept = turns.len().saturating_sub(context.profile.constants.min_retain_rounds.max(1));
    turns.get(kept).map_or(Position(0), |turn| turn.start)
}
