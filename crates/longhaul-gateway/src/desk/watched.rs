//! The store as the desk uses it. While it does not work, calls fail immediately with the error that it had, so that no
//! request waits for it. One call at a time is let through to see whether it works again: as a rule one of the desk's own,
//! about once a second. The log reports what failed once for each cause and minute, and once that the store works again.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use longhaul::session::journal::{Cursor, Entry};
use longhaul::size::Calibration;
use longhaul::{Archive, Snapshot};
use longhaul_store::{
    About, Alike, Filter, Hit, Meta, Pruned, Retention, SessionId, Store, StoreError, Stored, UpstreamLimit,
};

/// So long nothing is tried after an error, unless the desk asks for it.
const PAUSE: Duration = Duration::from_millis(2_500);

/// A call that tries the store again is over after this time, or nobody knows what became of it.
const TRIAL: Duration = Duration::from_secs(10);

/// The same error is reported again after this time.
const REPORTED: Duration = Duration::from_secs(60);

/// A store that is known to work, or not to.
#[derive(Debug)]
pub(super) struct Watched {
    store: Arc<dyn Store>,
    /// A file that another process has locked can be read.
    reads: Circuit,
    writes: Circuit,
}

/// Calls that fail together.
#[derive(Debug, Default)]
struct Circuit(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    outage: Option<Outage>,
    /// What was reported last, and when.
    reported: Option<(String, Instant)>,
}

/// The store does not work.
#[derive(Debug)]
struct Outage {
    error: StoreError,
    /// The next call is let through then.
    until: Instant,
}

impl Watched {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, reads: Circuit::default(), writes: Circuit::default() }
    }

    /// Why the store does not work, as far as it is known.
    pub(super) fn outage(&self) -> Option<StoreError> {
        self.writes.outage().or_else(|| self.reads.outage())
    }

    /// An error if the store does not work, or does not answer.
    pub(super) fn ready(&self) -> Result<(), StoreError> {
        match self.outage() {
            Some(error) => Err(error),
            None => self.list(&Filter::default(), 1).map(drop),
        }
    }

    /// The next calls are let through.
    pub(super) fn retry_now(&self) {
        self.writes.retry_now();
        self.reads.retry_now();
    }

    /// Sees whether a store that did not work does so again, where nothing waits to be stored.
    pub(super) fn probe(&self) {
        if self.reads.outage().is_some() {
            _ = self.list(&Filter::default(), 1);
        }
        if self.writes.outage().is_some() {
            // Nobody has this session: a store that says so has begun to write.
            _ = self.keep_prefixes(SessionId::fresh(), 0, &[]);
        }
    }

    fn read<T>(&self, call: impl FnOnce(&dyn Store) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.reads.through(|| call(&*self.store))
    }

    fn write<T>(&self, call: impl FnOnce(&dyn Store) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.writes.through(|| call(&*self.store))
    }
}

impl Circuit {
    /// Makes a call, unless it is known to fail.
    fn through<T>(&self, call: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        if let Some(error) = self.closed() {
            return Err(error);
        }
        let done = call();
        match done.as_ref().err().and_then(StoreError::outage) {
            Some(error) => self.failed(error),
            None => self.works(),
        }
        done
    }

    /// The error that a call would have.
    fn closed(&self) -> Option<StoreError> {
        let mut known = self.lock();
        let outage = known.outage.as_mut()?;
        if outage.until <= Instant::now() {
            // This call tries it. Others that come while it does so fail.
            outage.until = Instant::now() + TRIAL;
            return None;
        }
        outage.error.outage()
    }

    fn failed(&self, error: StoreError) {
        let mut known = self.lock();
        let problem = error.to_string();
        let is_known = known
            .reported
            .as_ref()
            .is_some_and(|(before, when)| *before == problem && when.elapsed() < REPORTED);
        if !is_known {
            tracing::warn!(problem, "the store does not work: conversations go on in memory until it does");
            known.reported = Some((problem, Instant::now()));
        }
        // A damaged page concerns whoever asks for it; others may be read.
        let is_local = matches!(error, StoreError::Damaged { .. });
        known.outage = (!is_local).then(|| Outage { error, until: Instant::now() + PAUSE });
    }

    fn works(&self) {
        let mut known = self.lock();
        if known.outage.take().is_some() {
            tracing::info!("the store works again");
            known.reported = None;
        }
    }

    fn outage(&self) -> Option<StoreError> {
        self.lock().outage.as_ref().and_then(|outage| outage.error.outage())
    }

    /// A call that is let through already goes on alone.
    fn retry_now(&self) {
        if let Some(outage) = &mut self.lock().outage
            && outage.until <= Instant::now() + PAUSE
        {
            outage.until = Instant::now();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Watched {
    fn create_as(&self, id: SessionId, about: &About) -> Result<(), StoreError> {
        self.write(|store| store.create_as(id, about))
    }

    fn append(&self, id: SessionId, from: Cursor, entries: &[Entry]) -> Result<(), StoreError> {
        self.write(|store| store.append(id, from, entries))
    }

    fn load(&self, id: SessionId) -> Result<Stored, StoreError> {
        self.read(|store| store.load(id))
    }

    fn meta(&self, id: SessionId) -> Result<Meta, StoreError> {
        self.read(|store| store.meta(id))
    }

    fn since(&self, id: SessionId, from: Cursor) -> Result<Vec<Entry>, StoreError> {
        self.read(|store| store.since(id, from))
    }

    fn fork_as(&self, fork: SessionId, id: SessionId, at: Cursor) -> Result<(), StoreError> {
        self.write(|store| store.fork_as(fork, id, at))
    }

    fn list(&self, filter: &Filter, limit: usize) -> Result<Vec<Meta>, StoreError> {
        self.read(|store| store.list(filter, limit))
    }

    fn search(&self, query: &str, filter: &Filter, limit: usize) -> Result<Vec<Hit>, StoreError> {
        self.read(|store| store.search(query, filter, limit))
    }

    fn delete(&self, id: SessionId) -> Result<(), StoreError> {
        self.write(|store| store.delete(id))
    }

    fn prune(&self, retention: &Retention, most: usize) -> Result<Pruned, StoreError> {
        self.write(|store| store.prune(retention, most))
    }

    fn used(&self) -> Result<u64, StoreError> {
        self.read(|store| store.used())
    }

    fn keep_sizes(&self, id: SessionId, sizes: &[Snapshot]) -> Result<(), StoreError> {
        self.write(|store| store.keep_sizes(id, sizes))
    }

    fn keep_prefixes(&self, id: SessionId, first: usize, hashes: &[[u8; 16]]) -> Result<(), StoreError> {
        self.write(|store| store.keep_prefixes(id, first, hashes))
    }

    fn find_prefix(&self, hashes: &[[u8; 16]]) -> Result<Option<Alike>, StoreError> {
        self.read(|store| store.find_prefix(hashes))
    }

    fn keep_learnt(&self, model: &str, calibration: &Calibration) -> Result<(), StoreError> {
        self.write(|store| store.keep_learnt(model, calibration))
    }

    fn learnt(&self, model: &str) -> Result<Option<Calibration>, StoreError> {
        self.read(|store| store.learnt(model))
    }

    fn keep_limit(&self, limit: &UpstreamLimit) -> Result<(), StoreError> {
        self.write(|store| store.keep_limit(limit))
    }

    fn limits(&self) -> Result<Vec<UpstreamLimit>, StoreError> {
        self.read(|store| store.limits())
    }

    fn look(&self) -> Result<(), StoreError> {
        // It says nothing of other calls if it succeeds.
        self.store.look().inspect_err(|error| {
            if let Some(error) = error.outage() {
                self.writes.failed(error);
            }
        })
    }

    fn replaced(&self) -> u64 {
        self.store.replaced()
    }

    fn archive(&self, id: SessionId) -> Result<Arc<dyn Archive>, StoreError> {
        self.read(|store| store.archive(id))
    }
}
