//! Which sessions are taken through Longhaul, and what came of it in all.

use std::path::PathBuf;

use longhaul::Profile;

use super::bill::Prices;
use super::cache::Cache;
use super::conversation::Conversation;
use super::files::{Progress, SessionFile, on_all_cores};
use super::recorder::key;
use super::replayed::{self, Recording, Replayed};
use super::totals::Times;
use crate::commands::report::Sessions;
use crate::lab::prices::PriceRule;
use crate::terminal;

/// What came of taking sessions through Longhaul.
pub struct Comparison {
    pub replayed: Replayed,
    /// How many sessions, of how many that could be.
    pub sessions: u64,
    pub of: u64,
    /// Sessions that have no price beside others that have one: they are left out.
    pub unpriced: u64,
    /// The share of the bill that they are.
    pub share: f64,
    pub losing: Losing,
}

/// Sessions that would have cost more with Longhaul.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losing {
    pub sessions: u64,
    /// Dollars × 10¹² that they would have cost more, together.
    pub pico: u128,
}

impl Losing {
    fn add(&mut self, replayed: &Replayed, prices: &mut Prices) {
        let [recorded, ours] = replayed.pico(prices);
        self.sessions += u64::from(ours > recorded);
        self.pico += ours.saturating_sub(recorded);
    }
}

/// What has fewer calls has nothing to compact.
const LEAST_CALLS: usize = 5;

/// Bytes of sessions that are done in seconds, and of a single one of them.
const AUTO_BYTES: u64 = 80 << 20;
const AUTO_FILE: u64 = 16 << 20;

/// What sessions are replayed with.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    pub profile: &'a Profile,
    /// The window, if somebody asked for one.
    pub window: Option<u64>,
    /// Calls of these times are counted; what came before them is only taken in.
    pub times: Times,
    /// The prices of the bill, which Longhaul decides by.
    pub prices: PriceRule,
}

/// Takes sessions through Longhaul. `None` if none can be.
pub fn replay(
    files: &[SessionFile],
    settings: Settings<'_>,
    asked: Sessions,
    cache: &mut Cache,
    prices: &mut Prices,
) -> Option<Comparison> {
    let mut candidates: Vec<Candidate<'_>> =
        files.iter().flat_map(|file| Candidate::of_file(file, prices)).collect();
    // Where dollars are known, sessions without them say nothing of the cost.
    let all = candidates.len();
    if candidates.iter().any(|candidate| candidate.pico > 0) {
        candidates.retain(|candidate| candidate.pico > 0);
    }
    let unpriced = (all - candidates.len()) as u64;
    // In no order that has to do with cost: the dearest sessions would flatter the comparison.
    candidates.sort_by_cached_key(Candidate::key);
    let of = candidates.len() as u64;
    let all: u128 = candidates.iter().map(|candidate| candidate.pico).sum();
    let chosen = choose(candidates, asked);
    let work: Vec<Work<'_>> = chosen.iter().map(|candidate| Work::new(candidate, settings)).collect();
    let new: Vec<&Work<'_>> =
        work.iter().filter(|work| cache.replayed(work.path(), &work.settings).is_none()).collect();
    let progress = Progress::new("replaying", new.iter().map(|work| work.session.bytes()).sum());
    let results = on_all_cores(&new, |work| {
        let result = replayed::replay(&work.session.recording(), settings, work.window, work.lifetime);
        progress.add(work.session.bytes());
        result
    });
    terminal::clear_progress();
    let fresh: Vec<(PathBuf, String, Option<Replayed>)> = new
        .iter()
        .zip(results)
        .map(|(work, result)| (work.path().clone(), work.settings.clone(), result))
        .collect();
    for (path, settings, result) in fresh {
        cache.put_replayed(&path, &settings, result);
    }
    let (mut sum, mut losing) = (Replayed::default(), Losing::default());
    let (mut sessions, mut covered) = (0, 0);
    for work in &work {
        if let Some(Some(replayed)) = cache.replayed(work.path(), &work.settings) {
            sum.add(replayed);
            losing.add(replayed, prices);
            sessions += 1;
            covered += work.session.pico;
        }
    }
    let share = if all == 0 { 0.0 } else { covered as f64 / all as f64 };
    (sessions > 0).then_some(Comparison { replayed: sum, sessions, of, unpriced, share, losing })
}

/// A session that can be replayed.
struct Candidate<'a> {
    file: &'a SessionFile,
    conversation: &'a Conversation,
    /// Its name, where the file is a store of many sessions.
    name: Option<&'a str>,
    /// Dollars × 10¹² that it was billed.
    pico: u128,
}

impl<'a> Candidate<'a> {
    /// The conversations of a file that are no side chains.
    fn of_file(file: &'a SessionFile, prices: &mut Prices) -> Vec<Self> {
        let is_store = file.scanned.agent == longhaul_wire::agents::OPENCODE;
        let all = file.scanned.conversations.iter().enumerate();
        // What has no number of its own is a part of the first one: a branch.
        let main = all.filter(|(at, conversation)| is_store || *at == 0 || conversation.number > 0);
        let main = main.map(|(_, conversation)| conversation);
        let main = main.filter(|conversation| conversation.calls.len() >= LEAST_CALLS && !conversation.side);
        main.map(|conversation| {
            let model =
                |at: u32| conversation.models.get(at as usize).map(String::as_str).unwrap_or_default();
            let calls = conversation.calls.iter();
            let pico = calls.map(|call| prices.bill(call, model(call.model)).pico).sum();
            Self { file, conversation, name: is_store.then_some(conversation.session.as_str()), pico }
        })
        .collect()
    }

    fn key(&self) -> u64 {
        key(&[&self.file.path.to_string_lossy(), &format!("{:?}", self.which())])
    }

    /// Its number in the file, and its name in a store.
    fn which(&self) -> (usize, Option<&'a str>) {
        (self.conversation.number.max(self.file.number), self.name)
    }

    fn recording(&self) -> Recording<'a> {
        let (number, session) = self.which();
        Recording { path: &self.file.path, number, session }
    }

    /// About how large it is.
    fn bytes(&self) -> u64 {
        let bytes = self.file.stamp.bytes;
        if self.file.scanned.conversations.len() > 1 {
            let calls = |conversation: &Conversation| conversation.calls.len() as u64;
            let all: u64 = self.file.scanned.conversations.iter().map(calls).sum();
            return bytes / all.max(1) * calls(self.conversation);
        }
        // A packed file is about six times as large as it looks.
        let packed = self.file.path.extension().is_some_and(|extension| extension == "gz");
        if packed { bytes.saturating_mul(6) } else { bytes }
    }
}

/// As many sessions as are wanted.
fn choose(candidates: Vec<Candidate<'_>>, asked: Sessions) -> Vec<Candidate<'_>> {
    match asked {
        Sessions::Most(most) => candidates.into_iter().take(most).collect(),
        Sessions::Auto => {
            let mut left = AUTO_BYTES;
            let fits = |candidate: &Candidate<'_>| {
                let bytes = candidate.bytes();
                let fits = bytes <= AUTO_FILE && bytes <= left;
                left -= if fits { bytes } else { 0 };
                fits
            };
            candidates.into_iter().filter(fits).collect()
        }
    }
}

/// A session that is to be replayed.
struct Work<'a> {
    session: &'a Candidate<'a>,
    window: longhaul::Tokens,
    lifetime: Option<u64>,
    /// Names all that the result depends on beside the file.
    settings: String,
}

impl<'a> Work<'a> {
    fn new(session: &'a Candidate<'a>, settings: Settings<'_>) -> Self {
        let Settings { profile, window, times, prices } = settings;
        let conversation = session.conversation;
        let window = replayed::window(window, conversation);
        let written: u64 = conversation.calls.iter().map(|call| call.write).sum();
        let for_an_hour: u64 = conversation.calls.iter().map(|call| call.write_1h).sum();
        let lifetime = (for_an_hour * 2 > written).then_some(3_600);
        let which = session.which();
        let settings = key(&[&format!("{profile:?} {window} {lifetime:?} {which:?} {times:?} {prices:?}")]);
        Self { session, window, lifetime, settings: format!("{settings:016x}") }
    }

    fn path(&self) -> &PathBuf {
        &self.session.file.path
    }
}
