//! What a replay adds up: sizes, costs, times, and how well the meter foresaw growth.

use std::collections::VecDeque;

use longhaul::{Billed, Measure, Meter, Sent, Tokens};
use serde::Serialize;

use crate::needs::Found;

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
    found: Found,
    prepare_us: Vec<u64>,
    growth_errors: Vec<f64>,
}

impl Figures {
    /// A call was made, or could not be made (`sent` is `None`).
    pub fn add_call(&mut self, full: Tokens, full_before: Tokens, sent: Option<Sent>, prepare_us: u64) {
        self.calls += 1;
        self.tokens_full = self.tokens_full.saturating_add(full.0);
        self.peak_full = self.peak_full.max(full);
        let billed = Billed { read: full_before, written: full - full_before };
        self.cost_full_milli = self.cost_full_milli.saturating_add(billed.cost_milli());
        self.prepare_us.push(prepare_us);
        match sent {
            Some(sent) => {
                let tokens = sent.billed.read + sent.billed.written;
                self.tokens_sent = self.tokens_sent.saturating_add(tokens.0);
                self.peak_sent = self.peak_sent.max(tokens);
                self.cost_sent_milli = self.cost_sent_milli.saturating_add(sent.billed.cost_milli());
                self.breaks += u64::from(sent.broke);
            }
            None => self.errors += 1,
        }
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
        self.found.add(other.found);
        self.prepare_us.extend(other.prepare_us);
        self.growth_errors.extend(other.growth_errors);
    }

    /// Cost of sending the whole log at each call, in tokens × price factor.
    pub fn cost_full(&self) -> u64 {
        self.cost_full_milli.div_ceil(1000)
    }

    /// Cost of what was sent.
    pub fn cost_sent(&self) -> u64 {
        self.cost_sent_milli.div_ceil(1000)
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

/// Compares what the meter foresees with what the provider reported, over ten calls.
#[derive(Debug, Default)]
pub struct Growth {
    seen: VecDeque<Seen>,
}

#[derive(Debug)]
struct Seen {
    measure: Measure,
    prompt: Tokens,
    meter: Meter,
}

impl Growth {
    const CALLS: usize = 10;
    /// A prompt that hardly grew says nothing about a ratio.
    const SMALLEST: u64 = 500;

    /// The recorded agent compacted: what came before says nothing about what comes.
    pub fn compacted(&mut self) {
        self.seen.clear();
    }

    /// A call with this log before it was reported with this prompt. Teaches the meter, and
    /// gives the error of what it foresaw ten calls ago: (foreseen − reported) / reported.
    pub fn call(&mut self, measure: Measure, prompt: Tokens, meter: &mut Meter) -> Option<f64> {
        // No prompt is empty: nothing was reported.
        if prompt == Tokens::ZERO {
            return None;
        }
        if let Some(last) = self.seen.back() {
            meter.teach(measure - last.measure, prompt.change_since(last.prompt));
        }
        self.seen.push_back(Seen { measure, prompt, meter: meter.clone() });
        if self.seen.len() <= Self::CALLS {
            return None;
        }
        let then = self.seen.pop_front()?;
        let grown = prompt.0.checked_sub(then.prompt.0).filter(|grown| *grown > Self::SMALLEST)?;
        let foreseen = then.meter.tokens(measure - then.measure).tokens;
        Some((foreseen.0 as f64 - grown as f64) / grown as f64)
    }
}

/// The JSON line of a transcript. Shares of nothing are null.
#[derive(Serialize)]
pub struct Line<'a> {
    transcript: &'a str,
    profile: &'a str,
    window: u64,
    calls: u64,
    errors: u64,
    tokens_full: u64,
    tokens_sent: u64,
    peak_full: u64,
    peak_sent: u64,
    cost_full: u64,
    cost_sent: u64,
    prefix_breaks: u64,
    edits: u64,
    retention: Option<f64>,
    in_line: Option<f64>,
    near: Option<f64>,
    reachable: Option<f64>,
    prepare_us_p50: Option<u64>,
    prepare_us_p99: Option<u64>,
    growth_error_p50: Option<f64>,
    growth_error_p90: Option<f64>,
    violations: u64,
}

impl<'a> Line<'a> {
    pub fn new(transcript: &'a str, profile: &'a str, window: Tokens, figures: &Figures) -> Self {
        Self {
            transcript,
            profile,
            window: window.0,
            calls: figures.calls,
            errors: figures.errors,
            tokens_full: figures.tokens_full,
            tokens_sent: figures.tokens_sent,
            peak_full: figures.peak_full.0,
            peak_sent: figures.peak_sent.0,
            cost_full: figures.cost_full(),
            cost_sent: figures.cost_sent(),
            prefix_breaks: figures.breaks,
            edits: figures.edits,
            retention: figures.found.retention(),
            in_line: figures.found.in_line(),
            near: figures.found.near(),
            reachable: figures.found.reachable(),
            prepare_us_p50: figures.prepare_us(50),
            prepare_us_p99: figures.prepare_us(99),
            growth_error_p50: figures.growth_error(50),
            growth_error_p90: figures.growth_error(90),
            violations: figures.violations,
        }
    }
}
