//! The store as the desk uses it. While it does not work, calls fail immediately with the error that it had, so that no
//! request waits for it. One call at a time is let through to see whether it works again: as a rule one of the desk's own,
//! about once a second. The log reports what failed once for each cause and minute, and once that the store works again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use longhaul::session::journal::{Cursor, Entry};
use longhaul::size::Calibration;
use longhaul::{Archive, Snapshot};
use longhaul_store::{
    About, Alike, Filter, Hit, Holders, Meta, Pruned, Retention, SessionId, Store, StoreError, Stored,
    UpstreamLimit, UpstreamRefusal,
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
    known: Mutex<Known>,
}

/// Calls that fail together. A file that another process has locked can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
}

#[derive(Debug, Default)]
struct Known {
    reads: Option<Outage>,
    writes: Option<Outage>,
    /// What was reported within the last minute, and when.
    reported: Vec<(String, Instant)>,
    /// The end of an outage is to be reported.
    is_reported: bool,
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
        Self { store, known: Mutex::default() }
    }

    /// Why the store does not work, as far as it is known.
    pub(super) fn outage(&self) -> Option<StoreError> {
        let known = self.lock();
        known.writes.iter().chain(&known.reads).find_map(|outage| outage.error.outage())
    }

    /// An error if the store does not work, or does not answer.
    pub(super) fn ready(&self) -> Result<(), StoreError> {
        match self.outage() {
            Some(error) => Err(error),
            None => self.list(&Filter::default(), 1).map(drop),
        }
    }

    /// Sees whether a store that did not work does so again. No request is let through to wait for it meanwhile; where none
    /// would wait, the next call is.
    pub(super) fn retry(&self) {
        if self.lock().begins_trial(Kind::Read, is_waited_for)
            && self.tried(Kind::Read, || self.store.list(&Filter::default(), 1)).is_err()
        {
            return;
        }
        if self.lock().begins_trial(Kind::Write, is_waited_for) {
            self.try_to_write();
        }
        if let Some(outage) = &mut self.lock().writes
            && !is_waited_for(&outage.error)
        {
            outage.until = Instant::now();
        }
    }

    /// The same where nothing waits to be written.
    pub(super) fn probe(&self) {
        if self.lock().begins_trial(Kind::Write, |error| !is_waited_for(error)) {
            self.try_to_write();
        }
    }

    /// Nobody has this session: a store that says so has begun to write.
    fn try_to_write(&self) {
        _ = self.tried(Kind::Write, || self.store.keep_prefixes(SessionId::fresh(), 0, &[]));
    }

    fn read<T>(&self, call: impl FnOnce(&dyn Store) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.through(Kind::Read, call)
    }

    fn write<T>(&self, call: impl FnOnce(&dyn Store) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.through(Kind::Write, call)
    }

    /// Makes a call, unless it is known to fail.
    fn through<T>(
        &self,
        kind: Kind,
        call: impl FnOnce(&dyn Store) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Some(error) = self.lock().closed(kind) {
            return Err(error);
        }
        self.tried(kind, || call(&*self.store))
    }

    fn tried<T>(&self, kind: Kind, call: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let done = call();
        match done.as_ref().err().and_then(StoreError::outage) {
            Some(error) => self.lock().failed(kind, error),
            None => self.lock().works(kind),
        }
        done
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn of(&mut self, kind: Kind) -> &mut Option<Outage> {
        match kind {
            Kind::Read => &mut self.reads,
            Kind::Write => &mut self.writes,
        }
    }

    /// The error that a call would have. A call that tries the store again has none.
    fn closed(&mut self, kind: Kind) -> Option<StoreError> {
        let outage = self.of(kind).as_ref()?;
        let error = outage.error.outage();
        if outage.until > Instant::now() {
            return error;
        }
        self.try_alone(kind);
        None
    }

    /// A call tries the store again, whatever the time, if the outage is such a one and no other call tries it.
    fn begins_trial(&mut self, kind: Kind, is_such: impl Fn(&StoreError) -> bool) -> bool {
        let outage = self.of(kind).as_ref();
        let is_tried = |outage: &Outage| outage.until > Instant::now() + PAUSE;
        let begins = outage.is_some_and(|outage| is_such(&outage.error) && !is_tried(outage));
        if begins {
            self.try_alone(kind);
        }
        begins
    }

    /// Other calls fail while one tries the store again.
    fn try_alone(&mut self, kind: Kind) {
        let until = Instant::now() + TRIAL;
        let is_gone = self.of(kind).as_ref().is_some_and(|outage| is_gone(&outage.error));
        for outage in [&mut self.reads, &mut self.writes].into_iter().flatten() {
            if is_gone && self::is_gone(&outage.error) {
                outage.until = until;
            }
        }
        if let Some(outage) = self.of(kind) {
            outage.until = until;
        }
    }

    fn failed(&mut self, kind: Kind, error: StoreError) {
        let problem = error.to_string();
        self.reported.retain(|(_, when)| when.elapsed() < REPORTED);
        if self.reported.iter().all(|(before, _)| *before != problem) {
            tracing::warn!(problem, "the store does not work: conversations go on in memory until it does");
            self.reported.push((problem, Instant::now()));
            self.is_reported = true;
        }
        let until = Instant::now() + PAUSE;
        if is_gone(&error) {
            self.reads = error.outage().map(|error| Outage { error, until });
            self.writes = Some(Outage { error, until });
        } else {
            // A damaged page concerns whoever asks for it; others may be read.
            let is_local = matches!(error, StoreError::Damaged { .. });
            *self.of(kind) = (!is_local).then_some(Outage { error, until });
        }
    }

    fn works(&mut self, kind: Kind) {
        if self.of(kind).take().is_none() {
            return;
        }
        // What answers one kind of call may well answer the other one too.
        for outage in [&mut self.reads, &mut self.writes].into_iter().flatten() {
            if is_gone(&outage.error) {
                outage.until = Instant::now();
            }
        }
        if self.reads.is_none() && self.writes.is_none() && std::mem::take(&mut self.is_reported) {
            tracing::info!("the store works again");
        }
    }
}

/// True if no call gets an answer, of whichever kind it is.
fn is_gone(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable { .. } | StoreError::Denied { .. })
}

/// True if a call takes long to have such an error.
fn is_waited_for(error: &StoreError) -> bool {
    is_gone(error) || matches!(error, StoreError::Busy { .. })
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

    fn holders(&self, tenant: &str, handle: &str) -> Result<Option<Holders>, StoreError> {
        self.read(|store| store.holders(tenant, handle))
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

    fn keep_refusal(&self, refusal: &UpstreamRefusal) -> Result<(), StoreError> {
        self.write(|store| store.keep_refusal(refusal))
    }

    fn refusals(&self) -> Result<Vec<UpstreamRefusal>, StoreError> {
        self.read(|store| store.refusals())
    }

    fn look(&self) -> Result<(), StoreError> {
        // It says nothing of other calls if it succeeds.
        self.store.look().inspect_err(|error| {
            if let Some(error) = error.outage() {
                self.lock().failed(Kind::Write, error);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn known(kind: Kind, error: StoreError) -> Known {
        let mut known = Known::default();
        known.failed(kind, error);
        known
    }

    fn unavailable() -> StoreError {
        StoreError::Unavailable { place: "s".into(), problem: "gone".into() }
    }

    /// Whether calls fail without being made: those that read, and those that write.
    fn fail(known: &mut Known) -> (bool, bool) {
        (known.closed(Kind::Read).is_some(), known.closed(Kind::Write).is_some())
    }

    #[test]
    fn calls_fail_that_would_fail_alike() {
        let place = || "s".to_owned();
        let cases = [
            (StoreError::Busy { place: place() }, (false, true)),
            (StoreError::Full { place: place() }, (false, true)),
            (StoreError::ReadOnly { place: place(), problem: place() }, (false, true)),
            (unavailable(), (true, true)),
            (StoreError::Denied { place: place(), problem: place() }, (true, true)),
            (StoreError::Damaged { place: place(), problem: place() }, (false, false)),
        ];
        for (error, expected) in cases {
            let says = error.to_string();
            let mut known = known(Kind::Write, error);
            assert_eq!(fail(&mut known), expected, "{says}");
            known.works(Kind::Read);
            known.works(Kind::Write);
            assert_eq!(fail(&mut known), (false, false), "{says}");
        }
    }

    #[test]
    fn one_call_tries_the_store_again() {
        let mut known = known(Kind::Read, unavailable());
        assert!(!known.begins_trial(Kind::Read, |error| !is_gone(error)));
        assert!(known.begins_trial(Kind::Read, is_gone));
        // Nobody else does, and others fail meanwhile.
        assert!(!known.begins_trial(Kind::Read, is_gone) && !known.begins_trial(Kind::Write, is_gone));
        assert_eq!(fail(&mut known), (true, true));
        known.failed(Kind::Read, unavailable());
        assert_eq!(fail(&mut known), (true, true));
        assert!(known.begins_trial(Kind::Read, is_gone));
        // It answers: the next call that writes sees whether that works too.
        known.works(Kind::Read);
        assert_eq!(fail(&mut known), (false, false));
        assert_eq!(fail(&mut known), (false, true));
        known.works(Kind::Write);
        assert_eq!(fail(&mut known), (false, false));
    }
}
