//! Sums over all sessions: by day, project, agent, model and session; what filled them; what was compacted.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::ToSpan;

use super::bill::{Bill, Prices};
use super::conversation::{Conversation, LargeResult, Part, Repeated};
use super::days::{Calendar, Period};
use super::files::SessionFile;

/// What is let in.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub times: Times,
    /// A part of the folder's path.
    pub project: Option<String>,
    /// A part of the agent's name.
    pub agent: Option<String>,
}

/// Calls from then on, and calls before then, in seconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    pub since: Option<i64>,
    pub until: Option<i64>,
}

impl Times {
    pub fn has(&self, at: i64) -> bool {
        self.since.is_none_or(|since| at >= since) && self.until.is_none_or(|until| at < until)
    }
}

impl Filter {
    /// Takes out what is not let in.
    pub fn apply(&self, files: &mut Vec<SessionFile>) {
        let has = |text: &str, part: &Option<String>| {
            part.as_ref().is_none_or(|part| text.to_lowercase().contains(&part.to_lowercase()))
        };
        files.retain(|file| has(&file.scanned.agent, &self.agent));
        let is_timed = self.times != Times::default();
        for file in files.iter_mut() {
            file.scanned.conversations.retain(|conversation| has(&conversation.project, &self.project));
            for conversation in file.scanned.conversations.iter_mut().filter(|_| is_timed) {
                conversation.keep_calls(|call| self.times.has(call.at));
                conversation.compactions.retain(|compaction| self.times.has(compaction.at));
                conversation.largest.retain(|large| self.times.has(large.at));
                conversation.unbilled = 0;
            }
            file.scanned.conversations.retain(|conversation| !(is_timed && conversation.calls.is_empty()));
        }
        files.retain(|file| !file.scanned.conversations.is_empty());
    }
}

/// A row of the longest table: calls of one day, agent, project and model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowKey {
    pub day: String,
    pub agent: String,
    pub project: String,
    pub model: String,
}

/// A session, its side chains in it.
#[derive(Debug, Clone, Default)]
pub struct Session {
    pub agent: String,
    pub session: String,
    pub project: String,
    /// Seconds since 1970 of the first call and the last.
    pub begins: i64,
    pub ends: i64,
    pub models: BTreeSet<String>,
    pub bill: Bill,
    /// The largest prompt.
    pub peak: u64,
    pub compactions: u64,
}

/// What compactions cost.
#[derive(Debug, Clone, Copy, Default)]
pub struct Compactions {
    pub count: u64,
    /// Begun by the agent itself, as far as files say so.
    pub automatic: u64,
    pub sessions: u64,
    /// Tokens of prompts before and after, of those where both are known.
    pub known: u64,
    pub before: u64,
    pub after: u64,
    /// Dollars × 10¹² of the calls that wrote summaries, as estimated: files do not record them.
    pub summaries_pico: u128,
    /// Dollars × 10¹² of what was billed as new in the next prompt.
    pub rewritten: u64,
    pub rewritten_pico: u128,
    /// Tokens of results that came again behind them.
    pub read_again: u64,
}

/// A large result or a repetition, and where it was.
#[derive(Debug, Clone)]
pub struct Placed<T> {
    pub what: T,
    pub project: String,
    pub session: String,
}

/// All sums.
#[derive(Default)]
pub struct Totals {
    pub bill: Bill,
    pub rows: BTreeMap<RowKey, Bill>,
    pub sessions: Vec<Session>,
    pub filled: Vec<(Part, u64)>,
    pub largest: Vec<Placed<LargeResult>>,
    pub repeated: Vec<Placed<Repeated>>,
    /// Tokens of all that came again, and of what came again unchanged.
    pub repeated_tokens: u64,
    pub compactions: Compactions,
    /// Answers without usage.
    pub unbilled: u64,
    /// Models without a price, and their calls.
    pub unpriced: BTreeMap<String, u64>,
    pub side_chains: u64,
}

/// How many of the largest are shown.
const LARGEST: usize = 10;

/// The day of calls whose time nobody knows.
pub const NO_DAY: &str = "unknown";

impl Totals {
    pub fn of(files: &[SessionFile], calendar: &Calendar, prices: &mut Prices) -> Self {
        let mut totals = Self::default();
        let mut sessions: BTreeMap<(String, String), Session> = BTreeMap::new();
        let mut filled: HashMap<Part, u64> = HashMap::new();
        for file in files {
            for conversation in &file.scanned.conversations {
                let agent = &file.scanned.agent;
                let session = sessions.entry((agent.clone(), conversation.session.clone())).or_default();
                totals.add_calls(agent, conversation, session, calendar, prices);
                totals.add_compactions(conversation, prices);
                for (part, tokens) in &conversation.filled {
                    *filled.entry(part.clone()).or_default() += tokens;
                }
                totals.unbilled += conversation.unbilled;
                totals.side_chains += u64::from(conversation.side);
                let placed = |what| Placed {
                    what,
                    project: conversation.project.clone(),
                    session: conversation.session.clone(),
                };
                totals.repeated_tokens +=
                    conversation.repeated.iter().map(|repeated| repeated.tokens).sum::<u64>();
                totals.largest.extend(conversation.largest.iter().cloned().map(placed));
                let placed = |what| Placed {
                    what,
                    project: conversation.project.clone(),
                    session: conversation.session.clone(),
                };
                totals.repeated.extend(conversation.repeated.iter().cloned().map(placed));
            }
        }
        totals.sessions = sessions.into_values().collect();
        totals.sessions.sort_by(|a, b| {
            b.bill
                .pico
                .cmp(&a.bill.pico)
                .then(b.bill.tokens().cmp(&a.bill.tokens()))
                .then_with(|| a.session.cmp(&b.session))
        });
        totals
            .largest
            .sort_by(|a, b| b.what.tokens.cmp(&a.what.tokens).then_with(|| a.what.what.cmp(&b.what.what)));
        totals.largest.truncate(LARGEST);
        totals
            .repeated
            .sort_by(|a, b| b.what.tokens.cmp(&a.what.tokens).then_with(|| a.what.what.cmp(&b.what.what)));
        totals.repeated.truncate(LARGEST);
        totals.filled = filled.into_iter().filter(|(_, tokens)| *tokens > 0).collect();
        totals.filled.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        totals
    }

    fn add_calls(
        &mut self,
        agent: &str,
        conversation: &Conversation,
        session: &mut Session,
        calendar: &Calendar,
        prices: &mut Prices,
    ) {
        agent.clone_into(&mut session.agent);
        session.session.clone_from(&conversation.session);
        if session.project.is_empty() || !conversation.side {
            session.project.clone_from(&conversation.project);
        }
        session.compactions += conversation.compactions.len() as u64;
        for call in &conversation.calls {
            let model = conversation.models.get(call.model as usize).map(String::as_str).unwrap_or_default();
            let bill = prices.bill(call, model);
            let day = calendar.day(call.at).map_or(NO_DAY.to_owned(), |day| Period::Day.name(day));
            let row = RowKey {
                day,
                agent: agent.to_owned(),
                project: conversation.project.clone(),
                model: model.to_owned(),
            };
            self.rows.entry(row).or_default().add(&bill);
            self.bill.add(&bill);
            if bill.unpriced > 0 {
                *self.unpriced.entry(model.to_owned()).or_default() += 1;
            }
            session.bill.add(&bill);
            session.peak = session.peak.max(call.prompt());
            if call.at > 0 {
                session.begins = if session.begins == 0 { call.at } else { session.begins.min(call.at) };
                session.ends = session.ends.max(call.at);
            }
            session.models.insert(model.to_owned());
        }
    }

    fn add_compactions(&mut self, conversation: &Conversation, prices: &mut Prices) {
        let sums = &mut self.compactions;
        sums.sessions += u64::from(!conversation.compactions.is_empty());
        for compaction in &conversation.compactions {
            sums.count += 1;
            sums.automatic += u64::from(compaction.automatic == Some(true));
            sums.read_again += compaction.read_again;
            if compaction.before > 0 && compaction.after > 0 {
                sums.known += 1;
                sums.before += compaction.before;
                sums.after += compaction.after;
            }
            sums.rewritten += compaction.rewritten;
            let model =
                conversation.models.get(compaction.model as usize).map(String::as_str).unwrap_or_default();
            if let Some(price) = prices.of(model) {
                let times = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
                sums.summaries_pico +=
                    times(compaction.before, price.cache_read) + times(compaction.summary, price.output);
                sums.rewritten_pico += times(compaction.rewritten, price.cache_write);
            }
        }
    }

    /// The bill by something of each row, the dearest first.
    pub fn by(&self, name: impl Fn(&RowKey) -> String) -> Vec<(String, Bill)> {
        let mut sums: BTreeMap<String, Bill> = BTreeMap::new();
        for (key, bill) in &self.rows {
            sums.entry(name(key)).or_default().add(bill);
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by(|a, b| {
            b.1.pico.cmp(&a.1.pico).then(b.1.tokens().cmp(&a.1.tokens())).then_with(|| a.0.cmp(&b.0))
        });
        sums
    }

    /// The bill by days, weeks or months, in their order.
    pub fn by_period(&self, period: Period) -> Vec<(String, Bill)> {
        let name = |key: &RowKey| key.day.parse().map_or_else(|_| key.day.clone(), |day| period.name(day));
        let mut sums = self.by(name);
        sums.sort_by(|a, b| a.0.cmp(&b.0));
        sums
    }

    /// The same with the periods between the first and the last in which nothing was billed.
    pub fn by_period_whole(&self, period: Period) -> Vec<(String, Bill)> {
        let days = self.rows.keys().filter_map(|key| key.day.parse::<jiff::civil::Date>().ok());
        let (first, last) = days.fold((None, None), |(first, last), day| {
            (first.map_or(Some(day), |first: jiff::civil::Date| Some(first.min(day))), last.max(Some(day)))
        });
        let (Some(first), Some(last)) = (first, last) else { return Vec::new() };
        let mut sums: BTreeMap<String, Bill> = BTreeMap::new();
        // A time that is off by centuries is no reason to draw them.
        const MOST_DAYS: usize = 3_660;
        for day in first.series(1.day()).take_while(|day| *day <= last).take(MOST_DAYS) {
            sums.entry(period.name(day)).or_default();
        }
        sums.extend(self.by_period(period).into_iter().filter(|(name, _)| name != NO_DAY));
        sums.into_iter().collect()
    }
}
