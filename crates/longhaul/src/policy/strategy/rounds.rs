//! Rounds (seed 003): a round is a turn. All but the newest finished ones become a summary, which is
//! appended to the ones before; when summaries have grown too large, code merges them. Where the rounds
//! that are kept are over the trigger by themselves, the oldest of them are archived too, and then steps
//! of the running round.

use super::{Context, FoldPlan, Proposal, Strategy, Visible, joined};
use crate::conversation::log::{Log, Position, Span};
use crate::conversation::step::UnitKind;
use crate::edits::edit::{EditKind, Placement};
use crate::size::tokens::Tokens;
use crate::view::Source;

/// All but the newest finished rounds become a summary.
pub static ARCHIVE_ROUNDS: Strategy = Strategy {
    name: "archive-rounds",
    says: "all but the newest finished rounds become a summary, appended to the ones before",
    propose: |context| archive(context, &context.visible(), kept_rounds(context)),
    ..Strategy::PLAIN
};

/// Summaries that have grown too large are merged.
pub static MERGE_SUMMARIES: Strategy = Strategy {
    name: "merge-summaries",
    says: "summaries that have grown too large are merged by code",
    propose: |context| {
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
            .filter(|item| matches!(item.source, Source::Edit(id) if is_summary(id)) && !context.stays(item))
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

/// Where the kept rounds are over the trigger: the oldest of them become a summary, each as a whole.
pub static ARCHIVE_KEPT: Strategy = Strategy {
    name: "archive-kept",
    says: "when the kept rounds are over the trigger, the oldest of them become a summary, each as a whole",
    propose: |context| {
        if !context.is_over_trigger() {
            return Vec::new();
        }
        let visible = context.visible();
        let freed = |end: &Position| {
            let gone: Tokens = archivable(context, &visible, *end).map(|item| item.tokens).sum();
            gone - context.longest_summary(gone)
        };
        let kept = kept_rounds(context);
        let rounds = older_turns(context.log).filter(|round| round.start >= kept);
        let ends: Vec<Position> = rounds.map(|round| round.end).collect();
        let enough = ends.iter().find(|end| freed(end) >= context.excess);
        let end = enough.or(ends.last()).copied().unwrap_or_default();
        archive(context, &visible, end)
    },
    ..Strategy::PLAIN
};

/// Where the running round is over the trigger: its oldest finished steps become a summary.
pub static FOLD_RUNNING: Strategy = Strategy {
    name: "fold-running",
    says: "when the running round is over the trigger, its oldest finished steps become a summary",
    propose: |context| {
        let Some(running) = context.log.running_turn().filter(|_| context.is_over_trigger()) else {
            return Vec::new();
        };
        let is_step = |item: &&Visible| {
            item.kind == Some(UnitKind::Step)
                && item.spans.iter().all(|span| span.start >= running.start)
                && !context.stays(item)
        };
        let visible = context.visible();
        // What a summary of it takes is not gone.
        let wanted = context.excess + context.excess.scaled(250_000);
        let (mut gone, mut spans): (Tokens, Vec<Span>) = Default::default();
        for item in visible.iter().filter(is_step) {
            if gone > wanted {
                break;
            }
            gone += item.tokens;
            spans.extend(&item.spans);
        }
        if spans.len() < 2 { Vec::new() } else { vec![Proposal::Fold(FoldPlan::of(context, joined(spans)))] }
    },
    extracts: true,
    ..Strategy::PLAIN
};

/// Where the finished rounds begin that keep every message.
fn kept_rounds(context: &Context<'_>) -> Position {
    let turns = context.log.turns();
    let finished = turns.len() - usize::from(context.log.running_turn().is_some());
    let kept = finished.saturating_sub(context.profile.constants.min_retain_rounds);
    turns.get(kept).map_or(context.log.end(), |turn| turn.start)
}

/// All turns but the newest, oldest first.
fn older_turns(log: &Log) -> impl Iterator<Item = Span> {
    let older = log.turns().len().saturating_sub(1);
    (0..older).filter_map(|turn| log.turn_span(turn))
}

/// A summary of all rounds before this.
fn archive(context: &Context<'_>, visible: &[Visible], end: Position) -> Vec<Proposal> {
    let old = || archivable(context, visible, end);
    let spans = old().flat_map(|item| item.spans.iter().copied()).collect();
    // A single message is not worth a summary.
    if old().count() < 2 { Vec::new() } else { vec![Proposal::Fold(FoldPlan::of(context, joined(spans)))] }
}

/// What a summary of all rounds before `end` takes: messages, and what stands for steps of these rounds
/// that were folded while they ran. Earlier summaries are not compressed again.
fn archivable<'a>(
    context: &Context<'_>,
    visible: &'a [Visible],
    end: Position,
) -> impl Iterator<Item = &'a Visible> {
    visible.iter().filter(move |item| {
        let is_of_round = match item.kind {
            Some(kind) => kind != UnitKind::Summary,
            None => is_inside_a_round(context.log, item),
        };
        is_of_round && !context.stays(item) && item.spans.iter().all(|span| span.end <= end)
    })
}

/// True for runs that are all in one round and leave its first message alone: steps of it that became a
/// hand-off while it ran, or were hidden.
fn is_inside_a_round(log: &Log, item: &Visible) -> bool {
    let Some(first) = item.spans.first() else { return false };
    let turn = log.turns().partition_point(|turn| turn.start < first.start);
    let round = turn.checked_sub(1).and_then(|turn| log.turn_span(turn));
    round.is_some_and(|round| item.spans.iter().all(|span| round.start < span.start && span.end <= round.end))
}
