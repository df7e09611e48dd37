//! A recorded conversation on its way through the engine. The one place that drives a
//! [`Session`]: commands say what is next and look at what came of it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use longhaul::edits::Audited;
use longhaul::size::Measure;
use longhaul::view::Sent;
use longhaul::{
    Job, Message, Meter, Model, Models, PrepareError, Prepared, Profile, Resolved, Role, Seals, Session,
    Time, Tokens, Usage,
};
use longhaul_wire::transcript;

use crate::lab::growth::Growth;
use crate::lab::pieces::is_recallable;
use crate::lab::prices::{PriceRule, Prices};
use crate::lab::summariser::{Spent, Summaries, SummaryModel};
use crate::lab::thinking::{self, Thinking};

/// A profile for recorded sessions: no model is asked, the extractor writes summaries.
pub fn without_model(profile: Profile) -> Profile {
    Summaries::Extractor.for_profile(profile)
}

/// How tokens are counted.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MeterKind {
    /// UTF-8 bytes / 4, and 4 per message: the same for every model
    Neutral,
    /// The model's tokenizer, corrected by what its usage teaches
    Model,
}

/// A session that a recorded conversation is taken through.
pub struct RecordedSession {
    session: Session,
    /// The model that answers, as the table has it.
    answering: Model,
    audited: Audited,
    clock: Clock,
    summaries: Summaries,
    /// What summaries have cost so far.
    spent: Spent,
    /// How long the last call waited for summaries.
    waited: Duration,
    overhead: Overhead,
    /// A call was made.
    has_begun: bool,
    /// How long prefixes live in the provider's cache, where that is known better than by the model.
    cache_lifetime: Option<u64>,
    /// What requests allow their answers, where that is not the model's own.
    max_output: Option<u64>,
    growth: Growth,
    /// The recorded call before, unless the agent compacted since: the cache should return its prompt.
    before: Option<RecordedCall>,
    terms: Terms,
    /// Blocks of thinking in the log.
    thinking: u64,
}

/// What holds for every model that answers.
#[derive(Clone, Copy, Default)]
struct Terms {
    /// What calls are billed at.
    prices: PriceRule,
    /// Decisions go by these factors, if they are not to go by those of the bill.
    decide_at: Option<Prices>,
    /// Models bind thinking to what stands before it, and have signed all thinking of the recording.
    bound: bool,
}

impl Terms {
    fn on(self, model: Model) -> Model {
        let model = self.prices.with_factors(self.decide_at).on(model);
        Model { binds: model.binds || self.bound, ..model }
    }
}

/// System prompt and tools that a file does not hold, as the recorded prompts show them.
#[derive(Clone, Copy, Default)]
enum Overhead {
    /// No prompt was reported yet, or the meter is the neutral one.
    #[default]
    Unknown,
    /// The next view is to be counted with it.
    Found(Tokens),
    /// Views are counted with it.
    Counted(Tokens),
}

/// A recorded call.
#[derive(Clone, Copy)]
struct RecordedCall {
    prompt: Tokens,
    time: Option<Time>,
}

/// What time it is for the session.
#[derive(Clone, Copy)]
enum Clock {
    /// That of the newest message, if any has one.
    Recorded(Option<Time>),
    /// Nobody knows.
    Stopped,
}

/// Why nothing can be sent at a call.
#[derive(Debug)]
pub enum NotSent {
    /// The profile wants a summary from a model, and there is none here.
    NeedsSummary,
    /// The engine has no view that can be sent.
    NoView(PrepareError),
}

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeedsSummary => f.write_str("a summary is needed from a model"),
            Self::NoView(error) => error.fmt(f),
        }
    }
}

impl RecordedSession {
    /// Nothing taken in yet. `model` is a name; the table of models has something for every one.
    pub fn new(profile: Profile, model: &str, window: Tokens, meter: MeterKind) -> Self {
        let answering = find_model(model);
        let session = Session::new(profile, answering.clone()).with_window(window);
        let session = match meter {
            MeterKind::Neutral => session.with_meter(Meter::neutral()),
            MeterKind::Model => session,
        };
        Self {
            session,
            answering,
            audited: Audited::default(),
            clock: Clock::Recorded(None),
            summaries: Summaries::Extractor,
            spent: Spent::default(),
            waited: Duration::ZERO,
            overhead: Overhead::Unknown,
            has_begun: false,
            cache_lifetime: None,
            max_output: None,
            growth: Growth::default(),
            before: None,
            terms: Terms::default(),
            thinking: 0,
        }
    }

    /// Billed by this rule, and deciding by it. To be set before anything is taken in.
    pub fn with_prices(self, prices: PriceRule) -> Self {
        let terms = Terms { prices, ..self.terms };
        self.with_terms(terms)
    }

    /// Deciding by other factors than those of the bill, if some are given. To be set before anything is taken in.
    pub fn deciding_at(self, decide_at: Option<Prices>) -> Self {
        let terms = Terms { decide_at, ..self.terms };
        self.with_terms(terms)
    }

    /// What the call that is prepared next, or was prepared last, is billed at.
    pub fn prices(&self) -> Prices {
        self.terms.prices.factors(self.answering.price)
    }

    /// With models that bind thinking to what stands before it, whichever answers. Recordings that were published have
    /// lost their signatures, so all their thinking counts as signed. To be set before anything is taken in.
    pub fn with_bound_thinking(self, bound: bool) -> Self {
        let terms = Terms { bound, ..self.terms };
        self.with_terms(terms)
    }

    fn with_terms(mut self, terms: Terms) -> Self {
        self.terms = terms;
        let model = terms.on(self.answering.clone());
        let (profile, window) = (self.session.profile().clone(), self.session.budget().window);
        let session = Session::new(profile, model).with_window(window);
        let is_neutral = self.session.meter().calibration().is_none();
        self.session = if is_neutral { session.with_meter(Meter::neutral()) } else { session };
        self
    }

    /// With requests that allow their answers so many tokens. To be set before anything is taken in.
    pub fn with_max_output(mut self, max_output: Option<u64>) -> Self {
        self.max_output = max_output;
        self.allow_output();
        self
    }

    fn allow_output(&mut self) {
        if let Some(tokens) = self.max_output {
            self.session.set_max_output(Tokens(tokens));
        }
    }

    /// With summaries written so, where the profile asks for them.
    pub fn with_summaries(self, summaries: Summaries) -> Self {
        Self { summaries, ..self }
    }

    /// Without regard to when messages were written: no cache goes cold.
    pub fn with_stopped_clock(self) -> Self {
        Self { clock: Clock::Stopped, ..self }
    }

    /// Makes the view of the call that this answer came from. Where the model counts, the call is made to the model that
    /// gave the answer: whoever sends a request knows for whom.
    pub fn prepare_for(&mut self, answer: &Message) -> Result<(), NotSent> {
        let model = answer.model().filter(|name| !name.starts_with('<')).map(str::to_owned);
        if self.session.meter().calibration().is_some() && self.follow_model(model) {
            self.was_compacted();
        }
        self.has_begun = true;
        self.prepare()
    }

    /// Makes the view of the next call, as of the time of the newest message. A summary that was to be written
    /// beside the work is written now: it came while the call before this one was answered.
    pub fn prepare(&mut self) -> Result<(), NotSent> {
        /// No compaction asks for more summaries: an engine that does is not waited for without end.
        const MOST_SUMMARIES: usize = 64;
        let now = match self.clock {
            Clock::Recorded(newest) => newest,
            Clock::Stopped => None,
        };
        self.waited = Duration::ZERO;
        let model = match &self.summaries {
            Summaries::Extractor => None,
            Summaries::Model(model) => Some(model.clone()),
        };
        if let (Some(model), Some(job)) = (&model, self.session.job()) {
            self.answer(model, job);
        }
        for _ in 0..MOST_SUMMARIES {
            match (self.session.prepare(now), &model) {
                (Ok(Prepared::Send(_)), _) => return Ok(()),
                (Ok(Prepared::Summarise(job)), Some(model)) => self.answer(model, job),
                (Ok(Prepared::Summarise(_)), None) => return Err(NotSent::NeedsSummary),
                (Err(error), _) => return Err(NotSent::NoView(error)),
            }
        }
        Err(NotSent::NeedsSummary)
    }

    /// Has the summary of a job written, once more if the engine wants that.
    fn answer(&mut self, model: &SummaryModel, mut job: Job) {
        loop {
            let started = Instant::now();
            let summarised = model.answer(&job, &mut self.spent);
            self.waited += started.elapsed();
            match summarised.resolve(&mut self.session) {
                Resolved::Again(again, _) => job = *again,
                Resolved::Folded | Resolved::Dropped(_) => return,
                Resolved::Extracted(_) | Resolved::Cut(_) | Resolved::Kept(_) => {
                    self.spent.failed += 1;
                    return;
                }
            }
        }
    }

    /// What summaries have cost so far.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// How long the last call waited for summaries: no part of what preparing a view takes.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Takes in the next message.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) {
        let message = message.into();
        if let Clock::Recorded(newest) = &mut self.clock {
            *newest = (*newest).max(message.time());
        }
        let frame = transcript::frame_of(&message);
        let message =
            if self.terms.bound { thinking::sign(message, self.session.log().end()) } else { message };
        self.thinking += thinking::blocks(&message);
        self.session.push(message);
        // A line of a transcript may carry the frame of the requests to come.
        frame.into_iter().for_each(|frame| self.session.set_frame(frame));
    }

    /// A session that is sent whole: a window that nothing fills, no fold that pays, and no cache that goes
    /// cold.
    pub fn sent_whole(profile: &Profile, meter: MeterKind) -> Self {
        let whole = Profile { dial: None, ..profile.clone() };
        Self::new(whole, "", Tokens(1 << 40), meter).with_stopped_clock()
    }

    /// Takes in a log, sending a request before each answer. True if there was none.
    pub fn replay(&mut self, log: impl Iterator<Item = Message>) -> bool {
        let mut empty = true;
        for message in log {
            empty = false;
            if message.role() == Role::Assistant {
                // What cannot be sent stands in the log all the same.
                _ = self.prepare_for(&message);
                self.learn(&message);
            }
            self.push(message);
        }
        empty
    }

    /// One compaction by this profile in this window, as if a person had asked for it.
    pub fn compacted(mut self, profile: Profile, window: Tokens) -> Result<Self, NotSent> {
        self.session = self.session.with_window(window);
        self.session.set_profile(profile);
        self.session.compact_now();
        self.prepare()?;
        Ok(self)
    }

    /// The model of this name answers from now on. True if another did before.
    fn switch_to(&mut self, name: &str) -> bool {
        let answering = find_model(name);
        if answering.name == self.answering.name {
            return false;
        }
        self.answering = answering;
        let model = self.terms.on(self.answering.clone());
        if !self.has_begun {
            self.begin_with(model);
            return false;
        }
        self.session.switch(model, Seals::Engine);
        if let Some(seconds) = self.cache_lifetime {
            self.session.set_cache_lifetime(seconds);
        }
        // Another model counts anew; what stands before the log stays about as large.
        if let Overhead::Counted(tokens) = self.overhead {
            self.overhead = Overhead::Found(tokens);
        }
        true
    }

    /// No call was made yet: the session is one of this model from its start.
    fn begin_with(&mut self, model: Model) {
        let (profile, window) = (self.session.profile().clone(), self.session.budget().window);
        let mut session = Session::new(profile, model).with_window(window);
        if let Some(seconds) = self.cache_lifetime {
            session.set_cache_lifetime(seconds);
        }
        let before = std::mem::replace(&mut self.session, session);
        self.thinking = 0;
        self.allow_output();
        before.log().messages().iter().for_each(|message| self.push(message.clone()));
    }

    /// The model of the calls to come is that of the frame in force, else the one that answered last. True if
    /// it is another than before.
    fn follow_model(&mut self, answered: Option<String>) -> bool {
        let frame = self.session.log().frame().and_then(|frame| frame.model.as_deref());
        let name = frame.map(str::to_owned).or(answered);
        name.is_some_and(|name| self.switch_to(&name))
    }

    /// The call that was just prepared was answered so. What its prompt was billed teaches the meter. The first such report
    /// shows what the provider saw beyond the log; from then on each view is counted with it. Gives the error of what
    /// the meter foresaw, if there is something to compare it with.
    pub fn learn(&mut self, answer: &Message) -> Option<f64> {
        let usage = answer.usage()?;
        let prompt = usage.prompt();
        self.find_overhead(usage);
        self.learn_cache(answer, usage);
        let mut growth = std::mem::take(&mut self.growth);
        let error = growth.call(self, prompt);
        self.growth = growth;
        error
    }

    /// What the cache returned of the recorded prompt teaches what it would have returned of ours.
    fn learn_cache(&mut self, answer: &Message, usage: &Usage) {
        if self.session.meter().calibration().is_none() || usage.prompt() == Tokens::ZERO {
            return;
        }
        let call = RecordedCall { prompt: usage.prompt(), time: answer.time() };
        if let Some(before) = self.before.replace(call) {
            let pause = call.time.zip(before.time).map(|(now, before)| now.0.saturating_sub(before.0));
            let pause_s = pause.and_then(|pause| u64::try_from(pause / 1_000_000).ok());
            let expected = before.prompt.min(call.prompt);
            self.session.teach_cache(expected, Tokens(usage.cache_read), pause_s);
        }
    }

    /// The recorded agent compacted: prompts before that do not predict those after it.
    pub fn was_compacted(&mut self) {
        self.growth.compacted();
        self.before = None;
    }

    fn find_overhead(&mut self, usage: &Usage) {
        let prompt = usage.prompt();
        if self.session.meter().calibration().is_none() {
            return;
        }
        if let Overhead::Unknown = self.overhead
            && prompt > Tokens::ZERO
        {
            // More than a third of the window is no system prompt: the file begins in the middle of a session.
            let most = Tokens(self.session.budget().window.0 / 3);
            let log = self.session.meter().tokens(self.session.full()).tokens;
            self.overhead = Overhead::Found((prompt - log).min(most));
        }
        if let (Overhead::Found(tokens), Some(ticket)) = (self.overhead, self.session.last_ticket()) {
            let view = self.session.meter().tokens(self.session.view().measure()).tokens;
            // Where the view is what was sent, it was billed so.
            let billed = if view + tokens == prompt {
                usage.clone()
            } else {
                Usage { input: (view + tokens).0, output: usage.output, ..Usage::default() }
            };
            self.session.observe(ticket, &billed);
            self.overhead = Overhead::Counted(tokens);
        }
    }

    /// True if it is known what stands before the log: sizes are what a provider would count. Until then the answer of a
    /// call tells how large its request was.
    pub fn is_scaled(&self) -> bool {
        self.session.meter().calibration().is_none() || !matches!(self.overhead, Overhead::Unknown)
    }

    /// What was billed for the newest view, with what stands before the log: that is in common with the request before
    /// as soon as anything is.
    pub fn sent(&self) -> Option<Sent> {
        let mut sent = self.session.sent()?;
        let before = self.overhead_tokens();
        if sent.billed.read == Tokens::ZERO {
            sent.billed.written += before;
        } else {
            sent.billed.read += before;
        }
        Some(sent)
    }

    /// Tokens that stand before the log and are not in the file.
    pub fn overhead_tokens(&self) -> Tokens {
        match self.overhead {
            Overhead::Unknown => Tokens::ZERO,
            Overhead::Found(tokens) | Overhead::Counted(tokens) => tokens,
        }
    }

    /// What would be sent now, with what stands before the log.
    pub fn tokens(&self) -> Tokens {
        let size = self.session.size().tokens;
        match self.overhead {
            // Another model answered last: what it counts is only known when it answers again.
            Overhead::Found(before) => size + before,
            Overhead::Unknown | Overhead::Counted(_) => size,
        }
    }

    /// Prefixes live so long in the provider's cache, whichever model answers.
    pub fn set_cache_lifetime(&mut self, seconds: u64) {
        self.cache_lifetime = Some(seconds);
        self.session.set_cache_lifetime(seconds);
    }

    /// The session, to be kept.
    pub fn into_session(self) -> Session {
        self.session
    }

    /// The session, to be looked at.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Teaches the meter: the prompt grew by so much when this was added.
    pub fn teach(&mut self, added: Measure, growth: i64) {
        self.session.teach(added, growth);
    }

    /// What sending the whole log would be, with what stands before it.
    pub fn full_tokens(&self) -> Tokens {
        self.tokens_of(self.session.full())
    }

    /// What so much of the log is, with what stands before it.
    pub fn tokens_of(&self, log: Measure) -> Tokens {
        self.session.meter().tokens(log).tokens + self.overhead_tokens()
    }

    /// How many guard rules the newest view breaks.
    pub fn violations(&mut self) -> u64 {
        self.session.audit_again(&mut self.audited).len() as u64
    }

    /// What became of the thinking in the log, in the newest view.
    pub fn thinking(&self) -> Thinking {
        Thinking::of(&self.session, self.thinking)
    }

    /// True if the message is under a handle in the view.
    pub fn is_recallable(&self, at: u32) -> bool {
        is_recallable(&self.session, at)
    }
}

/// The window of a recorded session: what was asked for, else that of the model that was named, else the
/// profile's.
pub fn window_of(asked: Option<u64>, model: &str, profile: &Profile) -> Tokens {
    let model = find_model(model);
    let own = if model.is_unknown() { profile.window } else { model.window };
    asked.map_or(own, Tokens)
}

fn find_model(name: &str) -> Model {
    Models::builtin().find(name).clone()
}
