//! What a replay adds up: sizes, costs, times, needs, and errors of the meter.

use std::collections::BTreeSet;

use longhaul::Tokens;
use longhaul::size::Billed;
use longhaul::view::Sent;

use crate::lab::losing::Losing;
use crate::lab::needs::Found;
use crate::lab::prices::Prices;
use crate::lab::summariser::Spent;
use crate::lab::thinking::Thinking;

/// The figures of one or more transcripts.
#[derive(Debug, Default)]
pub struct Figures {
    pub calls: u64,
    pub errors: u64,
    pub tokens_full: u64,
    pub tokens_sent: u64,
    pub peak_full: Tokens,
    pub peak_sent: Tokens,
    cost_full_milli: u64,
    cost_sent_milli: u64,
    pub breaks: u64,
    pub edits: u64,
    pub violations: u64,
    pub summaries: Spent,
    pub found: Found,
    pub thinking: Thinking,
    prepare_us: Vec<u64>,
    growth_errors: Vec<f64>,
    summary_cost_milli: u64,
    /// What calls were billed at.
    prices: BTreeSet<Prices>,
}

impl Figures {
    /// What tokens cost, if all calls were billed at the same prices.
    pub fn prices(&self) -> Option<Prices> {
        self.prices.first().copied().filter(|_| self.prices.len() == 1)
    }

    /// A call was made, or could not be made (`sent` is `None`).
    pub fn add_call(&mut self, full: Tokens, full_before: Tokens, sent: Option<Sent>, prices: Prices) {
        self.calls += 1;
        self.prices.insert(prices);
        self.tokens_full = self.tokens_full.saturating_add(full.0);
        self.peak_full = self.peak_full.max(full);
        let billed = Billed { read: full_before, written: full - full_before };
        self.cost_full_milli = self.cost_full_milli.saturating_add(prices.cost_milli(billed));
        match sent {
            Some(sent) => {
                let tokens = sent.billed.read + sent.billed.written;
                self.tokens_sent = self.tokens_sent.saturating_add(tokens.0);
                self.peak_sent = self.peak_sent.max(tokens);
                self.cost_sent_milli = self.cost_sent_milli.saturating_add(prices.cost_milli(sent.billed));
                self.breaks += u64::from(sent.broke);
            }
            None => self.errors += 1,
        }
    }

    /// Preparing the view of the call took so many microseconds.
    pub fn add_time(&mut self, prepare_us: u64) {
        self.prepare_us.push(prepare_us);
    }

    /// Summaries were written for the call. They are part of what was paid.
    pub fn add_summaries(&mut self, spent: Spent, prices: Prices) {
        self.summaries.add(spent);
        let cost = spent.cost_milli(prices);
        self.summary_cost_milli = self.summary_cost_milli.saturating_add(cost);
        self.cost_sent_milli = self.cost_sent_milli.saturating_add(cost);
    }

    /// Edits were made for the call.
    pub fn add_edits(&mut self, edits: u64) {
        self.edits += edits;
    }

    /// The view of the call broke rules.
    pub fn add_violations(&mut self, violations: u64) {
        self.violations += violations;
    }

    /// What the call needed and found in its view.
    pub fn add_found(&mut self, found: Found) {
        self.found.add(found);
    }

    /// The meter foresaw a growth that differs from the reported one by this share.
    pub fn add_growth_error(&mut self, error: f64) {
        self.growth_errors.push(error);
    }

    /// Adds the figures of another transcript.
    pub fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.errors += other.errors;
        self.tokens_full = self.tokens_full.saturating_add(other.tokens_full);
        self.tokens_sent = self.tokens_sent.saturating_add(other.tokens_sent);
        self.peak_full = self.peak_full.max(other.peak_full);
        self.peak_sent = self.peak_sent.max(other.peak_sent);
        self.cost_full_milli = self.cost_full_milli.saturating_add(other.cost_full_milli);
        self.cost_sent_milli = self.cost_sent_milli.saturating_add(other.cost_sent_milli);
        self.breaks += other.breaks;
        self.edits += other.edits;
        self.violations += other.violations;
        self.summaries.add(other.summaries);
        self.found.add(other.found);
        self.thinking.add(other.thinking);
        self.prepare_us.extend(other.prepare_us);
        self.growth_errors.extend(other.growth_errors);
        self.summary_cost_milli = self.summary_cost_milli.saturating_add(other.summary_cost_milli);
        self.prices.extend(other.prices);
    }

    /// Cost of sending the whole log at each call, in tokens × price factor.
    pub fn cost_full(&self) -> u64 {
        self.cost_full_milli.div_ceil(1000)
    }

    /// Cost of what was sent, and of the summaries.
    pub fn cost_sent(&self) -> u64 {
        self.cost_sent_milli.div_ceil(1000)
    }

    /// Cost of the summaries: a part of the cost of what was sent.
    pub fn summary_cost(&self) -> u64 {
        self.summary_cost_milli.div_ceil(1000)
    }

    /// What one session cost more than sending everything.
    pub fn losing(&self) -> Losing {
        Losing::of(self.cost_sent_milli as f64, self.cost_full_milli as f64)
    }

    /// A quantile of the time that preparing a view took, in microseconds.
    pub fn prepare_us(&self, percent: usize) -> Option<u64> {
        quantile(&self.prepare_us, percent, |a, b| a.cmp(b))
    }

    /// A quantile of the growth error, signs left out.
    pub fn growth_error(&self, percent: usize) -> Option<f64> {
        let sizes: Vec<f64> = self.growth_errors.iter().map(|error| error.abs()).collect();
        quantile(&sizes, percent, f64::total_cmp)
    }

    /// In how many windows the estimate was too low, of how many.
    pub fn growth_too_low(&self) -> (usize, usize) {
        (self.growth_errors.iter().filter(|error| **error < 0.0).count(), self.growth_errors.len())
    }
}

fn quantile<T: Copy>(
    values: &[T],
    percent: usize,
    order: impl Fn(&T, &T) -> std::cmp::Ordering,
) -> Option<T> {
    let mut sorted = values.to_vec();
    sorted.sort_by(order);
    let at = (sorted.len() * percent / 100).min(sorted.len().checked_sub(1)?);
    sorted.get(at).copied()
}
