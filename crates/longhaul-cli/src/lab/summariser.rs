//! Who writes the summaries of recorded sessions: the built-in extractor, or a model that the settings name.
//! The jobs of the engine are answered here, one after the other, and what the answers cost is counted.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use clap::ValueEnum;
use longhaul::size::Billed;
use longhaul::{Frame, Job, Outcome, Profile, Summariser, Tokens};
use longhaul_config::Config;
use longhaul_model::{Ask, Asked, Model, Provider, Reply, Retry, Summarised, Watch, write_summary};
use longhaul_wire::api::Request;
use tokio::runtime::{Builder, Runtime};

use crate::error::Failure;
use crate::lab::prices::{OUTPUT, Prices};
use crate::terminal;
use crate::writing_model::WritingModel;

/// Who writes summaries.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SummariserKind {
    /// Built in: no model, no network
    Extractor,
    /// The model that the settings `summariser.…` name
    Model,
}

/// Who writes the summaries of recorded sessions.
#[derive(Clone)]
pub enum Summaries {
    /// The profile's own extractor: no job is ever opened.
    Extractor,
    Model(Arc<SummaryModel>),
}

impl Summaries {
    /// Those of this kind, by the settings.
    pub fn of(kind: SummariserKind, config: &Config) -> Result<Self, Failure> {
        Ok(match kind {
            SummariserKind::Extractor => Self::Extractor,
            SummariserKind::Model => Self::Model(Arc::new(SummaryModel::new(config)?)),
        })
    }

    /// The profile, with its summaries written so, whatever it says itself.
    pub fn for_profile(&self, profile: Profile) -> Profile {
        let summariser = match self {
            Self::Extractor => Summariser::Extractor,
            Self::Model(_) => Summariser::Host,
        };
        Profile { summariser, ..profile }
    }

    /// The name of the model, for people.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Extractor => None,
            Self::Model(model) => Some(model.frame.model.as_deref().unwrap_or("a model")),
        }
    }
}

/// What summaries cost, in tokens as the provider counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Requests that were sent, those that failed included.
    pub calls: u64,
    /// All tokens of the prompts.
    pub input: u64,
    /// Those of them that the provider had in its cache.
    cached: u64,
    pub output: u64,
    /// Summaries that did not come, or were of no use: the profile went on without.
    pub failed: u64,
}

impl Spent {
    pub fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.input = self.input.saturating_add(other.input);
        self.cached = self.cached.saturating_add(other.cached);
        self.output = self.output.saturating_add(other.output);
        self.failed += other.failed;
    }

    /// What was spent since.
    pub fn since(self, before: Self) -> Self {
        Self {
            calls: self.calls - before.calls,
            input: self.input - before.input,
            cached: self.cached - before.cached,
            output: self.output - before.output,
            failed: self.failed - before.failed,
        }
    }

    /// The price in thousandths of a token: prompts at these prices, what is written at 5.
    pub fn cost_milli(self, prices: Prices) -> u64 {
        let (read, written) = (Tokens(self.cached), Tokens(self.input.saturating_sub(self.cached)));
        let output = self.output.saturating_mul(1_000 * OUTPUT);
        prices.cost_milli(Billed { read, written }).saturating_add(output)
    }

    /// The price in tokens.
    pub fn cost(self, prices: Prices) -> u64 {
        self.cost_milli(prices).div_ceil(1_000)
    }
}

/// A model that writes summaries.
pub struct SummaryModel {
    runtime: Runtime,
    provider: Provider,
    frame: Frame,
    window: Tokens,
    /// Whether somebody was told what goes wrong.
    said: AtomicBool,
}

/// A request is sent so often at most. A recorded session can go on without its summary.
const ATTEMPTS: u32 = 3;

impl SummaryModel {
    fn new(config: &Config) -> Result<Self, Failure> {
        let WritingModel { provider, frame, window } = WritingModel::of(config, "--summariser model")?;
        Ok(Self {
            runtime: Builder::new_multi_thread().worker_threads(1).enable_all().build()?,
            provider: provider.with_retry(Retry { attempts: ATTEMPTS, ..Retry::default() }),
            frame,
            window,
            said: AtomicBool::new(false),
        })
    }

    /// Has a summary written, and waits for it.
    pub fn answer(&self, job: &Job, spent: &mut Spent) -> Summarised {
        let counted = Counted { model: &self.provider, spent: Mutex::default() };
        let ask = Ask::Fresh { window: self.window, frame: self.frame.clone() };
        let summarised = self.runtime.block_on(write_summary(job, &counted, ask));
        spent.add(counted.spent.into_inner().unwrap_or_else(PoisonError::into_inner));
        match &summarised.outcome {
            Outcome::Failed(problem) => self.say_once(problem),
            Outcome::TimedOut => self.say_once(&format!("it took longer than {} seconds", job.timeout)),
            Outcome::Summary(_) | Outcome::Parts(_) => {}
        }
        summarised
    }

    /// The first thing that goes wrong is said: the others mostly are the same.
    fn say_once(&self, problem: &str) {
        if !self.said.swap(true, Ordering::Relaxed) {
            terminal::clear_progress();
            let problem = terminal::one_line(problem, 300);
            _ = writeln!(io::stderr(), "summaries: {problem}; the profile goes on without (said once)");
        }
    }
}

/// A model whose calls are counted.
struct Counted<'a> {
    model: &'a dyn Model,
    spent: Mutex<Spent>,
}

impl Counted<'_> {
    fn count(&self, spent: Spent) {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner).add(spent);
    }
}

impl Model for Counted<'_> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn ask<'a>(&'a self, request: Request, watch: &'a mut Watch<'_>) -> Asked<'a> {
        let prompt: usize = request.messages().iter().map(|message| message.bytes()).sum();
        self.count(Spent { calls: 1, ..Spent::default() });
        Box::pin(async move {
            let reply = self.model.ask(request, watch).await?;
            self.count(used(&reply, prompt));
            Ok(reply)
        })
    }
}

/// What a reply cost: as the provider says; where it does not, four bytes are a token.
fn used(reply: &Reply, prompt: usize) -> Spent {
    match &reply.usage {
        Some(usage) => Spent {
            input: usage.prompt().0,
            cached: usage.cache_read,
            output: usage.output,
            ..Spent::default()
        },
        None => {
            let tokens = |bytes: usize| bytes.div_ceil(4) as u64;
            let said = reply.messages.iter().map(|message| message.bytes()).sum();
            Spent { input: tokens(prompt), output: tokens(said), ..Spent::default() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_priced_by_what_the_cache_had() {
        let spent = Spent { calls: 2, input: 1_000, cached: 400, output: 100, failed: 0 };
        assert_eq!(spent.cost(Prices::default()), 750 + 40 + 500);
        assert_eq!(spent.cost("0.05,1".parse().unwrap()), 600 + 20 + 500);
        let mut sum = spent;
        sum.add(spent);
        assert_eq!(sum.since(spent), spent);
    }
}
