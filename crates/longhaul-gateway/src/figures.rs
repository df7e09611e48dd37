//! What the gateway counts, for whoever runs it: as values, and as Prometheus takes them.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longhaul::Usage;
use longhaul::session::Cramped;
use longhaul_store::SessionId;

use crate::account::Costs;
use crate::books::{Bookings, Books};
use crate::desk::{How, Reason, Rung};
use crate::engine::Brief;
use crate::transformations::Transformation;

/// What was counted since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// Requests, by what was spoken (the name of an API, `count`, `websocket`, `other`) and the status of the
    /// answer.
    pub requests: BTreeMap<(&'static str, u16), u64>,
    /// Requests to models that were passed on as they came, by [`Reason::name`].
    pub passed_on: BTreeMap<&'static str, u64>,
    /// Requests for which there was no decision because something of ours failed, by what was sent
    /// ([`Rung::name`](crate::Rung::name)).
    pub fell_back: BTreeMap<&'static str, u64>,
    /// Requests that were refused because they are not for the provider that they would go to: `path` (it may lead out of
    /// the provider's address), `foreign-path` or `foreign-key`.
    pub refused: BTreeMap<&'static str, u64>,
    /// Calls of known conversations that were answered with status 200.
    pub calls: u64,
    /// Requests that were sent again because the provider refused something in them: `too-long`, `thinking` (sent again
    /// without it) or `usage-option` (sent again without asking for usage).
    pub resent: BTreeMap<&'static str, u64>,
    /// Tokens that providers billed: neither read from nor written to a cache.
    pub input: u64,
    /// Tokens that models wrote.
    pub output: u64,
    /// Tokens that were read from a cache.
    pub cache_read: u64,
    /// Tokens that were written to a cache.
    pub cache_write: u64,
    /// Tokens that were not sent: whole conversations less what was sent of them, in our count.
    pub saved: u64,
    /// Calls that do not go on from what was sent before in their conversation, by [`Break::name`](crate::Break::name).
    pub breaks: BTreeMap<&'static str, u64>,
    /// Calls that go on with a conversation, and of which the provider read nothing from its cache.
    pub uncached: u64,
    /// How little room a conversation has for its next steps, where the first one noticed it.
    pub cramped: Option<Cramped>,
    /// Blocks of thinking that providers have reported in `input_transformations`, each once, by type and reason: dropped,
    /// or kept although something before them changed.
    pub transformations: BTreeMap<(&'static str, &'static str), u64>,
    /// The newest conversation whose thinking would be refused if its client went on without Longhaul.
    pub tied: Option<SessionId>,
    /// Streams that ended before their end.
    pub cut: u64,
    /// Sessions that were not to be kept any longer, and were deleted.
    pub pruned: u64,
    /// Bytes that they took.
    pub pruned_bytes: u64,
    /// Time of our own from the whole request to the provider, by what was spoken.
    pub own_time: BTreeMap<&'static str, Times>,
    /// What all of that cost, and what it would have cost otherwise.
    pub bookings: Bookings,
}

/// How long something took, many times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// How often it took no longer than the bound of the same place in [`Times::BOUNDS`], and longer than
    /// the one before.
    pub counts: [u64; Self::BOUNDS.len()],
    /// How often in all.
    pub count: u64,
    /// How long in all, in microseconds.
    pub micros: u64,
}

impl Times {
    /// In microseconds.
    pub const BOUNDS: [u64; 14] = [
        100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
        2_500_000,
    ];

    fn add(&mut self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        if let Some(place) = Self::BOUNDS.iter().position(|bound| micros <= *bound) {
            self.counts[place] += 1;
        }
        self.count += 1;
        self.micros = self.micros.saturating_add(micros);
    }
}

impl Figures {
    /// Tokens of all prompts, as billed.
    pub fn prompt(&self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }

    /// As Prometheus takes them.
    pub fn prometheus(&self) -> String {
        let mut page = Page::default();
        page.begin("requests_total", "counter", "Requests by API and status of the answer.");
        for ((api, status), count) in &self.requests {
            page.line("requests_total", &format!("api=\"{api}\",status=\"{status}\""), count);
        }
        page.begin("passed_on_total", "counter", "Requests to models that were passed on as they came.");
        for (reason, count) in &self.passed_on {
            page.line("passed_on_total", &format!("reason=\"{reason}\""), count);
        }
        page.begin("fell_back_total", "counter", "Requests without a decision, by what was sent.");
        for (rung, count) in &self.fell_back {
            page.line("fell_back_total", &format!("sent=\"{rung}\""), count);
        }
        page.begin("refused_total", "counter", "Requests that are not for the providers of this gateway.");
        for (reason, count) in &self.refused {
            page.line("refused_total", &format!("reason=\"{reason}\""), count);
        }
        page.begin("breaks_total", "counter", "Calls that do not go on from what was sent before.");
        for (reason, count) in &self.breaks {
            page.line("breaks_total", &format!("reason=\"{reason}\""), count);
        }
        page.begin("resent_total", "counter", "Requests that were sent again because something was refused.");
        for (reason, count) in &self.resent {
            page.line("resent_total", &format!("reason=\"{reason}\""), count);
        }
        page.begin(
            "input_transformations_total",
            "counter",
            "Blocks of thinking that providers dropped, or kept although something before them changed.",
        );
        for ((kind, reason), count) in &self.transformations {
            let labels = format!("type=\"{kind}\",reason=\"{reason}\"");
            page.line("input_transformations_total", &labels, count);
        }
        page.begin("tokens_total", "counter", "Tokens as billed by providers.");
        for (kind, count) in [
            ("input", self.input),
            ("output", self.output),
            ("read", self.cache_read),
            ("written", self.cache_write),
        ] {
            page.line("tokens_total", &format!("kind=\"{kind}\""), &count);
        }
        for (name, help, count) in [
            ("calls_total", "Calls of known conversations that were answered.", self.calls),
            ("tokens_saved_total", "Tokens of conversations that were not sent.", self.saved),
            (
                "uncached_total",
                "Calls of going conversations that read nothing from the cache.",
                self.uncached,
            ),
            ("cut_total", "Streams that ended before their end.", self.cut),
            ("pruned_sessions_total", "Sessions that were deleted by retention.", self.pruned),
            ("pruned_bytes_total", "Bytes that they took.", self.pruned_bytes),
        ] {
            page.begin(name, "counter", help);
            page.line(name, "", &count);
        }
        self.money(&mut page);
        page.begin("own_seconds", "histogram", "Time of our own from the whole request to the provider.");
        for (api, times) in &self.own_time {
            let mut sum = 0;
            for (bound, count) in Times::BOUNDS.iter().zip(times.counts) {
                sum += count;
                let labels = format!("api=\"{api}\",le=\"{}\"", seconds(*bound));
                page.line("own_seconds_bucket", &labels, &sum);
            }
            page.line("own_seconds_bucket", &format!("api=\"{api}\",le=\"+Inf\""), &times.count);
            page.line("own_seconds_sum", &format!("api=\"{api}\""), &seconds(times.micros));
            page.line("own_seconds_count", &format!("api=\"{api}\""), &times.count);
        }
        page.0
    }
}

impl Figures {
    /// What was billed and what it would have cost, by API and model.
    fn money(&self, page: &mut Page) {
        type Value = fn(&Costs) -> String;
        let observed = self.bookings.observed;
        let other = match observed.calls {
            0 => ("without_dollars_total", "Dollars that it would have cost without Longhaul, estimated."),
            _ => ("with_dollars_total", "Dollars that it would have cost with Longhaul, estimated."),
        };
        let billed = "Dollars as billed by providers, at list prices.";
        let unpriced = "Billed calls that are in no dollars: the model has no price.";
        let rows: [(&str, &str, Value); 5] = [
            ("billed_dollars_total", billed, |costs| dollars(costs.billed.pico)),
            (other.0, other.1, |costs| dollars(costs.otherwise.pico)),
            ("billed_calls_total", "Calls that providers have billed.", |costs| costs.calls.to_string()),
            ("unpriced_calls_total", unpriced, |costs| costs.unpriced.to_string()),
            ("folds_total", "Calls before which a conversation was made shorter.", |costs| {
                costs.folds.to_string()
            }),
        ];
        for (name, help, value) in rows {
            page.begin(name, "counter", help);
            for ((api, model), costs) in &self.bookings.costs {
                page.line(name, &format!("api=\"{api}\",model=\"{model}\""), &value(costs));
            }
        }
        page.begin("recalls_total", "counter", "Times that a model got back what was left out.");
        page.line("recalls_total", "", &self.bookings.all_recalls());
        for (name, help, count) in [
            ("observed_calls_total", "Calls that were decided, and sent as they came.", observed.calls),
            (
                "observed_asked_again_total",
                "Calls of tools for what Longhaul would have left out.",
                observed.asked_again,
            ),
            ("observed_tied_total", "Answers whose thinking would be tied to Longhaul.", observed.tied),
            ("observed_violations_total", "Rules of the guard that a view broke.", observed.violations),
        ] {
            if observed.calls > 0 {
                page.begin(name, "counter", help);
                page.line(name, "", &count);
            }
        }
    }
}

/// Dollars of the unit that sums are in, without a rounding error.
fn dollars(pico: u128) -> String {
    const DOLLAR: u128 = 1_000_000_000_000;
    let text = format!("{}.{:012}", pico / DOLLAR, pico % DOLLAR);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Microseconds in seconds, without a rounding error.
fn seconds(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[derive(Default)]
struct Page(String);

impl Page {
    // Writing into a text does not fail.
    fn begin(&mut self, name: &str, kind: &str, help: &str) {
        _ = write!(self.0, "# HELP longhaul_{name} {help}\n# TYPE longhaul_{name} {kind}\n");
    }

    fn line(&mut self, name: &str, labels: &str, value: &dyn std::fmt::Display) {
        _ = match labels {
            "" => writeln!(self.0, "longhaul_{name} {value}"),
            labels => writeln!(self.0, "longhaul_{name}{{{labels}}} {value}"),
        };
    }
}

/// Where the gateway counts.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    figures: Mutex<Figures>,
    /// The transformations that were counted.
    transformed: Mutex<HashSet<Transformation>>,
    pub(crate) books: Arc<Books>,
}

impl Counters {
    /// With the books that the desk writes in.
    pub(crate) fn new(books: Arc<Books>) -> Self {
        Self { books, ..Self::default() }
    }

    pub(crate) fn figures(&self) -> Figures {
        Figures { bookings: self.books.bookings(), ..self.lock().clone() }
    }

    pub(crate) fn request(&self, api: &'static str, status: u16) {
        *self.lock().requests.entry((api, status)).or_default() += 1;
    }

    pub(crate) fn passed_on(&self, reason: Reason) {
        *self.lock().passed_on.entry(reason.name()).or_default() += 1;
    }

    pub(crate) fn fell_back(&self, rung: Rung) {
        *self.lock().fell_back.entry(rung.name()).or_default() += 1;
    }

    pub(crate) fn refused(&self, reason: &'static str) {
        *self.lock().refused.entry(reason).or_default() += 1;
    }

    pub(crate) fn own_time(&self, api: &'static str, time: Duration) {
        self.lock().own_time.entry(api).or_default().add(time);
    }

    /// A request is sent again, for this reason.
    pub(crate) fn resent(&self, reason: &'static str) {
        *self.lock().resent.entry(reason).or_default() += 1;
    }

    pub(crate) fn pruned(&self, sessions: usize, bytes: u64) {
        let mut figures = self.lock();
        figures.pruned += sessions as u64;
        figures.pruned_bytes += bytes;
    }

    pub(crate) fn cut(&self) {
        self.lock().cut += 1;
    }

    /// What a provider billed.
    pub(crate) fn billed(&self, usage: &Usage) {
        let mut figures = self.lock();
        figures.input += usage.input;
        figures.output += usage.output;
        figures.cache_read += usage.cache_read;
        figures.cache_write += usage.cache_write;
    }

    /// A call was answered.
    pub(crate) fn call(&self, sent: &Brief, usage: Option<&Usage>) {
        let mut figures = self.lock();
        figures.calls += 1;
        // Of what is only observed, nothing is left out.
        figures.saved += if sent.is_observed { 0 } else { sent.full.0.saturating_sub(sent.view.0) };
        let goes_on = matches!(sent.how, How::Extends | How::Retry);
        figures.uncached += u64::from(goes_on && usage.is_some_and(|usage| usage.cache_read == 0));
        figures.cramped = figures.cramped.or(sent.cramped);
        figures.tied = if sent.is_tied { Some(sent.session) } else { figures.tied };
        if let Some(broke) = sent.broke {
            *figures.breaks.entry(broke.name()).or_default() += 1;
        }
    }

    /// A provider has reported what it did with thinking. It reports the same in every later request of the conversation:
    /// only what is new counts. Gives that.
    pub(crate) fn transformed(&self, reported: Vec<Transformation>) -> Vec<Transformation> {
        /// So many are known at once.
        const MOST: usize = 100_000;
        let mut known = self.transformed.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        let new: Vec<Transformation> = reported.into_iter().filter(|one| known.insert(*one)).collect();
        let mut figures = self.lock();
        for Transformation { kind, reason, .. } in &new {
            *figures.transformations.entry((kind, reason)).or_default() += 1;
        }
        new
    }

    fn lock(&self) -> MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_one_that_prometheus_reads() {
        let counters = Counters::default();
        counters.request("chat", 200);
        counters.request("chat", 200);
        counters.passed_on(Reason::Side);
        counters.fell_back(Rung::LastView);
        counters.resent("too-long");
        counters.billed(&Usage { input: 3, output: 2, cache_read: 9, ..Usage::default() });
        counters.own_time("chat", Duration::from_micros(300));
        counters.own_time("chat", Duration::from_secs(9));
        let page = counters.figures().prometheus();
        for line in [
            "longhaul_requests_total{api=\"chat\",status=\"200\"} 2",
            "longhaul_passed_on_total{reason=\"side\"} 1",
            "longhaul_fell_back_total{sent=\"last-view\"} 1",
            "longhaul_resent_total{reason=\"too-long\"} 1",
            "longhaul_tokens_total{kind=\"read\"} 9",
            "longhaul_tokens_saved_total 0",
            "longhaul_own_seconds_bucket{api=\"chat\",le=\"0.00025\"} 0",
            "longhaul_own_seconds_bucket{api=\"chat\",le=\"0.0005\"} 1",
            "longhaul_own_seconds_bucket{api=\"chat\",le=\"2.5\"} 1",
            "longhaul_own_seconds_bucket{api=\"chat\",le=\"+Inf\"} 2",
            "longhaul_own_seconds_sum{api=\"chat\"} 9.0003",
            "longhaul_own_seconds_count{api=\"chat\"} 2",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
        }
    }
}
