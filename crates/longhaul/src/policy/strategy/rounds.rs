//! Rounds (seed 003): a round is a turn. All but the newest finished ones become a summary, which is
//! appended to the ones before; when summaries have grown too large, code merges them. Where the rounds
//! that are kept are over the trigger by themselves, the oldest of them are archived too, and then steps
//! of the running round.

use super::{Context, FoldPlan, Proposal, Strategy, Visible, joined};
use crate::conversation::log::{Log, Position, Span};
use crate::conversation::step::UnitKind;
use crate::edits::edit::{EditKind, Placement};
use crate::size::tokens::Tokens;
use crate::summary::Earlier;
use crate::view::Source;

/// All but the newest finished rounds become a summary.
pub static ARCHIVE_ROUNDS: Strategy = Strategy {
    name: "archive-rounds",
    says: "all but the newest finished rounds become a summary, appended to the ones before",
    propose: |context| archive(context, &context.visible(), kept_rounds(context)),
    ..Strategy::PLAIN
};

/// Summaries that have grown too large are merged: those of finished rounds, and apart from them those of
/// steps of the running one.
pub static MERGE_SUMMARIES: Strategy = Strategy {
    name: "merge-summaries",
    says: "summaries that have grown too large are merged by code",
    propose: |context| {
        let constants = &context.profile.constants;
        let share = |percent: u8| context.budget.shared.percent(percent);
        let visible = context.visible();
        let summaries: Vec<&Visible> =
            visible.iter().filter(|item| is_summary(context, item) && !context.stays(item)).collect();
        let all = said_by(context, &summaries);
        if all <= share(constants.merge_above) {
            return Vec::new();
        }
        let running = context.log.running_turn().map_or(context.log.end(), |turn| turn.start);
        let is_finished = |item: &&Visible| item.spans.iter().all(|span| span.end <= running);
        let (finished, running): (Vec<&Visible>, Vec<&Visible>) =
            summaries.into_iter().partition(is_finished);
        let merged = |of: Vec<&Visible>| {
            // Both together have the room.
            let limit = Tokens(share(constants.merge_to).0 * said_by(context, &of).0 / all.0);
            let spans = joined(of.iter().flat_map(|item| item.spans.iter().copied()).collect());
            Proposal::Fold(FoldPlan { limit: Some(limit), by_code: true, ..FoldPlan::of(context, spans) })
        };
        [finished, running].into_iter().filter(|of| !of.is_empty()).map(merged).collect()
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
        if spans.is_empty() { Vec::new() } else { vec![Proposal::Fold(FoldPlan::of(context, joined(spans)))] }
    },
    extracts: true,
    ..Strategy::PLAIN
};

/// True for a summary that stands in its place in the history.
fn is_summary(context: &Context<'_>, item: &Visible) -> bool {
    let Source::Edit(id) = item.source else { return false };
    let kind = context.ledger.get(id).map(|edit| &edit.kind);
    matches!(kind, Some(EditKind::Fold { placement: Placement::InPlace, .. }))
}

/// What summaries say, without what they restate: a long goal is no reason to merge them again.
fn said_by(context: &Context<'_>, summaries: &[&Visible]) -> Tokens {
    let said = |item: &&Visible| {
        let edit = item.source.edit().and_then(|id| context.ledger.get(id));
        match edit.map(|edit| &edit.kind) {
            Some(EditKind::Fold { text, kept, summary, .. }) if !kept.is_empty() => {
                context.text_tokens(Earlier::of_fold(text, summary.as_ref(), true).text())
            }
            _ => item.tokens,
        }
    };
    summaries.iter().map(said).sum()
}

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
