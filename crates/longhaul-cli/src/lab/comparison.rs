//! Policies and profiles over one conversation, call by call, with one measure for all.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use longhaul::{Message, Meter, Models, Profile, Role, Time, Tokens};

use crate::lab::losing::Losing;
use crate::lab::needs::{Change, Found, Holdings, Needs, text_of};
use crate::lab::pieces::PieceCache;
use crate::lab::policies::{POLICIES, Policy, PolicyRun, Recording};
use crate::lab::prices::{PriceRule, Prices};
use crate::lab::recorded::{MeterKind, RecordedSession};
use crate::lab::summariser::{Spent, Summaries};
use crate::lab::thinking::Thinking;

/// What a policy did over some sessions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    pub calls: u64,
    pub errors: u64,
    pub cost: f64,
    /// The same where the cache forgets: calls after a pause are cold.
    pub real_cost: f64,
    pub sent: f64,
    pub peak: f64,
    pub breaks: u64,
    pub violations: u64,
    pub found: Found,
    /// What became of thinking. Reference policies are not asked.
    pub thinking: Thinking,
    pub micros: u64,
    /// What summaries by a model cost: a part of the cost.
    pub summaries: Spent,
    /// What sending the whole log would have cost and been, at the same calls.
    pub full_cost: f64,
    pub full_real_cost: f64,
    pub full_sent: f64,
    /// Files that had been changed, summed over the calls, and how many of them were named.
    pub changed: u64,
    pub named: u64,
    pub losing: Losing,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.errors += other.errors;
        self.cost += other.cost;
        self.real_cost += other.real_cost;
        self.sent += other.sent;
        self.peak = self.peak.max(other.peak);
        self.breaks += other.breaks;
        self.violations += other.violations;
        self.found.add(other.found);
        self.thinking.add(other.thinking);
        self.micros += other.micros;
        self.summaries.add(other.summaries);
        self.full_cost += other.full_cost;
        self.full_real_cost += other.full_real_cost;
        self.full_sent += other.full_sent;
        self.changed += other.changed;
        self.named += other.named;
        self.losing.add(other.losing);
    }
}

/// Tallies by policy, in the order of the table.
#[derive(Default)]
pub struct Tallies(pub Vec<(String, Tally)>);

impl Tallies {
    /// Adds those of another conversation, which are of the same policies.
    pub fn add(&mut self, other: &Self) {
        if self.0.is_empty() {
            self.0 = other.0.iter().map(|(name, _)| (name.clone(), Tally::default())).collect();
        }
        self.0.iter_mut().zip(&other.0).for_each(|((_, sum), (_, tally))| sum.add(tally));
    }
}

/// What conversations are taken through, and how they are measured.
pub struct Comparison {
    /// The profiles that stand beside all reference policies.
    pub profiles: Vec<Profile>,
    pub window: u64,
    pub meter: MeterKind,
    pub summaries: Summaries,
    /// The model that answers, if one was named.
    pub model: Option<String>,
    pub prices: PriceRule,
    /// Models bind thinking to what stands before it.
    pub bound: bool,
}

impl Comparison {
    /// What tokens cost. Recorded models are not followed here: every call is one of the model that was named.
    pub fn factors(&self) -> Prices {
        self.prices.factors(None)
    }

    /// All policies and profiles over one conversation.
    pub fn over(&self, messages: Vec<Arc<Message>>) -> Tallies {
        let log = messages.iter().filter(|message| !message.is_recorded_compaction()).cloned().collect();
        let (kept, whole): (Vec<_>, Vec<_>) = POLICIES.iter().partition(|policy| policy.recorded);
        let mut tallies = self.lockstep(log, &whole, &self.profiles);
        let recorded = self.lockstep(messages, &kept, &[]);
        let place = POLICIES.iter().position(|policy| policy.recorded).unwrap_or_default();
        tallies.splice(place..place, recorded);
        for (_, tally) in &mut tallies {
            tally.losing = Losing::of(tally.cost, tally.full_cost);
        }
        Tallies(tallies)
    }

    fn lockstep(
        &self,
        messages: Vec<Arc<Message>>,
        policies: &[&Policy],
        profiles: &[Profile],
    ) -> Vec<(String, Tally)> {
        let mut needs = Needs::new(match self.meter {
            MeterKind::Neutral => |text| text.len() as f64 / 4.0 + 4.0,
            MeterKind::Model => model_size,
        });
        let texts: Vec<String> = messages.iter().map(|message| text_of(message)).collect();
        let pieces = texts.iter().map(|text| needs.piece(text)).collect();
        let recording = Recording { messages, texts, pieces };
        let prices = self.factors();
        let mut contenders: Vec<Contender<'_>> = Vec::new();
        contenders.extend(policies.iter().map(|policy| {
            Contender::new(
                policy.name,
                ContenderPolicy::Reference(Box::new(PolicyRun::new(
                    **policy,
                    self.window,
                    prices,
                    &recording,
                ))),
            )
        }));
        contenders.extend(profiles.iter().map(|profile| {
            // What has no ladder is shown without a limit, as policies are that have none.
            let window = if profile.ladder.is_empty() { 1 << 40 } else { self.window };
            let model = self.model.as_deref().unwrap_or_default();
            let session = RecordedSession::new(profile.clone(), model, Tokens(window), self.meter);
            let session = session.with_prices(self.prices).with_bound_thinking(self.bound);
            let session = session.with_summaries(self.summaries.clone());
            let policy =
                ContenderPolicy::Profile { session: Box::new(session), pieces: PieceCache::default() };
            Contender::new(&profile.name, policy)
        }));
        let mut whole = WholeLog::default();
        for (upto, message) in recording.messages.iter().enumerate() {
            if message.role() == Role::Assistant {
                let whole = whole.call(&recording, upto, prices);
                for contender in &mut contenders {
                    contender.call(upto, message, whole, prices, &mut needs);
                }
            }
            needs.push(message, &recording.texts[upto]);
            for contender in &mut contenders {
                if let ContenderPolicy::Profile { session, .. } = &mut contender.policy {
                    session.push(message.clone());
                }
            }
        }
        contenders.into_iter().map(|contender| (contender.name, contender.tally)).collect()
    }
}

/// What sending the whole log costs.
#[derive(Default)]
struct WholeLog {
    seen: usize,
    tokens: f64,
    /// The time of the newest message, and of the call before.
    now: Option<Time>,
    before: Option<Time>,
}

/// Cost and size of one call that sends the whole log.
#[derive(Clone, Copy)]
struct WholeCall {
    cost: f64,
    tokens: f64,
    /// The cache had forgotten the call before.
    cold: bool,
}

/// How long a cache remembers after a call: the short lifetime of most providers.
const LIFETIME: i64 = 300 * 1_000_000;

impl WholeLog {
    /// Summaries of the recorded agent are not part of the log.
    fn call(&mut self, recording: &Recording, upto: usize, prices: Prices) -> WholeCall {
        let warm = self.tokens;
        for at in self.seen..upto {
            if !recording.messages[at].is_recorded_compaction() {
                self.tokens += recording.pieces[at].tokens;
            }
            self.now = self.now.max(recording.messages[at].time());
        }
        self.seen = upto;
        let pause = self.now.zip(self.before).map_or(0, |(now, before)| now.0.saturating_sub(before.0));
        self.before = self.now;
        let cost = prices.cost(warm, self.tokens - warm);
        WholeCall { cost, tokens: self.tokens, cold: pause > LIFETIME }
    }
}

/// The size of a text by the meter that profiles count with where no model is named: reference policies begin to
/// compact at the same sizes.
fn model_size(text: &str) -> f64 {
    static METER: OnceLock<Meter> = OnceLock::new();
    let meter = METER.get_or_init(|| Meter::for_model(Models::builtin().find("")));
    meter.tokens(meter.message(&Message::user(text))).tokens.0 as f64
}

/// A policy or a profile on its way through a conversation.
struct Contender<'a> {
    name: String,
    policy: ContenderPolicy<'a>,
    held: Holdings,
    tally: Tally,
}

enum ContenderPolicy<'a> {
    Reference(Box<PolicyRun<'a>>),
    Profile { session: Box<RecordedSession>, pieces: PieceCache },
}

impl<'a> Contender<'a> {
    fn new(name: &str, policy: ContenderPolicy<'a>) -> Self {
        Self { name: name.to_owned(), policy, held: Holdings::default(), tally: Tally::default() }
    }

    fn call(&mut self, upto: usize, answer: &Message, whole: WholeCall, prices: Prices, needs: &mut Needs) {
        let tally = &mut self.tally;
        let started = Instant::now();
        let micros = |waited| {
            let took = started.elapsed().saturating_sub(waited);
            u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
        };
        let (change, extra_cost) = match &mut self.policy {
            ContenderPolicy::Reference(run) => {
                let view = run.view(upto, needs);
                tally.micros += micros(Duration::ZERO);
                (self.held.change(view.kept, &view.parts, Vec::new()), view.extra_cost)
            }
            ContenderPolicy::Profile { session, pieces } => {
                let before = session.spent();
                let prepared = session.prepare();
                tally.micros += micros(session.waited());
                let spent = session.spent().since(before);
                tally.summaries.add(spent);
                if prepared.is_err() {
                    tally.errors += 1;
                    tally.cost += spent.cost_milli(prices) as f64 / 1_000.0;
                    return;
                }
                tally.violations += session.violations();
                tally.thinking.add(session.thinking());
                let view = pieces.of_view(session.session().view(), needs);
                (
                    self.held.change(view.kept, &view.parts, view.tail),
                    spent.cost_milli(prices) as f64 / 1_000.0,
                )
            }
        };
        let first = tally.calls == 0;
        let Change { warm, cold, broke } = change;
        tally.calls += 1;
        tally.cost += prices.cost(warm, cold) + extra_cost;
        let forgotten = |cost: f64, tokens: f64| if whole.cold { prices.cost(0.0, tokens) } else { cost };
        tally.real_cost += forgotten(prices.cost(warm, cold), warm + cold) + extra_cost;
        tally.full_real_cost += forgotten(whole.cost, whole.tokens);
        let (named, changed) = self.held.named_files(needs);
        tally.named += named;
        tally.changed += changed;
        tally.sent += warm + cold;
        tally.peak = tally.peak.max(warm + cold);
        tally.breaks += u64::from(broke && !first);
        tally.full_cost += whole.cost;
        tally.full_sent += whole.tokens;
        tally.found.add(match &self.policy {
            ContenderPolicy::Reference(_) => self.held.judge(needs, answer, |_| false),
            ContenderPolicy::Profile { session, .. } => {
                self.held.judge(needs, answer, |at| session.is_recallable(at))
            }
        });
    }
}
