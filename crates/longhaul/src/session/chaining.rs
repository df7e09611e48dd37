//! Chains of folds: a new fold stands behind the earlier ones, whose bytes the provider has in its cache, or
//! takes them in from the first on whose dead lines have cost more than writing the rest again.

use super::Session;
use super::carrying::LEFT;
use super::room::Target;
use crate::edits::edit::{EditId, EditKind, Why};
use crate::policy::dial::Dial;
use crate::policy::strategy::{FoldPlan, Link};
use crate::size::tokens::Tokens;
use crate::summary::{Choose, Earlier};

/// More folds in a row are taken in, whatever they cost.
const LONGEST: usize = 12;

/// What an earlier fold still says.
#[derive(Debug, Clone, Copy, Default)]
struct Worn {
    /// Tokens that would stay.
    live: Tokens,
    /// Tokens that would go, summed over the calls that carried them.
    carried: Tokens,
}

impl Session {
    /// The plan, with the earlier folds that it takes in.
    pub(super) fn with_links(&self, plan: FoldPlan, why: Why, target: Target) -> FoldPlan {
        if self.profile.dial.is_none() {
            return plan;
        }
        let most = self.budget().shared.percent(self.profile.summary);
        let before = self.tokens(self.shown_size(&plan.spans));
        let left = before.percent(LEFT);
        let full = self.tokens(self.state.view.folds()) + left > most;
        // What is demanded is the smallest view; and where summaries have filled their share of the window,
        // they make room for the next ones.
        let demanded = full || matches!(why, Why::Forced(_) | Why::Asked);
        let first = match demanded || why == Why::Cold || plan.chain.len() >= LONGEST {
            // In a cold moment all is billed again anyway.
            true => 0,
            false => self.first_worn(&plan.chain),
        };
        let FoldPlan { mut chain, spans, limit: planned, .. } = plan;
        let spans = if first < chain.len() { chain.swap_remove(first).spans } else { spans };
        let limit = match target.summary {
            // A fold by price may cost so much, beside the earlier folds that it takes in. Folds that are made together
            // share it by their size.
            Some(summary) if matches!(why, Why::PaysBack | Why::Cold) => {
                let share = summary.0.saturating_mul(before.0) / self.carrying().old.0.max(1);
                let all = self.tokens(self.shown_size(&spans));
                let most = if full { Tokens(most.0 / 2) } else { self.summary_room(all) };
                Some((Tokens(share) + (all - before)).min(most))
            }
            // What must be small is small, however much the bill affords.
            Some(summary) if demanded => Some(summary.min(Tokens(most.0 / 2))),
            Some(summary) => Some(summary),
            None if demanded => Some(Tokens(most.0 / 2)),
            None => planned,
        };
        FoldPlan { spans, chain: Vec::new(), limit, ..plan }
    }

    /// The first fold from which on writing again what is live costs less than what dead lines have cost; the
    /// number of folds if there is none.
    fn first_worn(&self, chain: &[Link]) -> usize {
        let (mut first, mut sum) = (chain.len(), Worn::default());
        let rates = self.state.rates();
        for (at, link) in chain.iter().enumerate().rev() {
            let worn = self.worn(link.fold);
            sum = Worn { live: sum.live + worn.live, carried: sum.carried + worn.carried };
            if Dial::merge_pays_back(sum.carried, sum.live, rates) {
                first = at;
            }
        }
        first
    }

    fn worn(&self, id: EditId) -> Worn {
        let Some(edit) = self.ledger().get(id) else { return Worn::default() };
        let EditKind::Fold { spans, kept, text, summary, .. } = &edit.kind else {
            return Worn { live: edit.after, carried: Tokens::ZERO };
        };
        let Choose::Pay(price) = self.profile.choose() else { return Worn::default() };
        let earlier = Earlier::of_fold(text, summary.as_ref(), !kept.is_empty());
        let share = earlier.dead_percent(&self.uses, price);
        let dead = edit.after.percent(share);
        let made = spans.last().map_or(0, |span| self.uses.step_of(span.end));
        let steps = self.uses.step().saturating_sub(made).saturating_sub(self.profile.keep_steps as u32);
        // Lines died one after the other.
        Worn { live: edit.after - dead, carried: Tokens(dead.0 * u64::from(steps) / 2) }
    }
}
