//! How large each message is: counted once for each way to count, and kept. Owns the meter and
//! what usage has taught it, model by model.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::journal::{Counting, Entry};
use crate::conversation::message::Message;
use crate::size::calibration::Calibration;
use crate::size::meter::{CountingWay, Measure, Meter};
use crate::size::models::Model;

/// Sizes of messages that need not be counted again when a session is loaded. May be thrown away.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    way: CountingWay,
    sizes: Arc<Vec<Measure>>,
}

/// The meter, and what each message of the log counts.
#[derive(Debug, Clone)]
pub(super) struct Sizes {
    pub(super) meter: Meter,
    sizes: Vec<Measure>,
    /// Sizes by other ways to count, as far as they were counted.
    others: HashMap<CountingWay, Vec<Measure>>,
    /// What models were found to count like, that are not the current one.
    learnt: HashMap<Box<str>, Calibration>,
    model: Box<str>,
    /// Sizes of messages that are still to come, from a snapshot.
    known: Vec<Snapshot>,
    total: Measure,
}

impl Sizes {
    pub(super) fn new(model: &Model, known: Vec<Snapshot>) -> Self {
        Self {
            meter: Meter::for_model(model),
            sizes: Vec::new(),
            others: HashMap::new(),
            learnt: HashMap::new(),
            model: model.name.clone(),
            known,
            total: Measure::default(),
        }
    }

    /// `messages` are those of the log before the entry.
    pub(super) fn apply(&mut self, entry: &Entry, model: &Model, messages: &[Arc<Message>]) {
        match entry {
            Entry::Message(message) => self.push(message),
            Entry::Counted(counting) => {
                let meter = match counting {
                    Counting::Neutral => Meter::neutral(),
                    Counting::Model(calibration) => Meter::calibrated(model, calibration.clone()),
                };
                self.count_with(meter, messages);
            }
            Entry::Switched { model, .. } => {
                let left = std::mem::replace(&mut self.model, model.name.clone());
                if let Some(calibration) = self.meter.calibration() {
                    self.learnt.insert(left, calibration.clone());
                }
                let meter = match self.learnt.remove(&model.name) {
                    Some(calibration) => Meter::calibrated(model, calibration),
                    None => Meter::for_model(model),
                };
                self.count_with(meter, messages);
            }
            Entry::Taught { added, growth } => self.meter.teach(*added, *growth),
            _ => {}
        }
    }

    fn push(&mut self, message: &Message) {
        let (way, at) = (self.meter.way(), self.sizes.len());
        let known = self.known.iter().filter(|known| known.way == way).find_map(|known| known.sizes.get(at));
        let size = known.copied().unwrap_or_else(|| self.meter.message(message));
        self.sizes.push(size);
        self.total += size;
    }

    /// Goes on with another meter. What it counted before is not counted again.
    fn count_with(&mut self, meter: Meter, messages: &[Arc<Message>]) {
        let same = self.meter.way() == meter.way();
        let before = std::mem::replace(&mut self.meter, meter);
        if same {
            return;
        }
        self.others.insert(before.way(), std::mem::take(&mut self.sizes));
        let counted = self.others.remove(&self.meter.way()).unwrap_or_default();
        self.total = Measure::default();
        for (at, message) in messages.iter().enumerate() {
            match counted.get(at) {
                Some(size) => {
                    self.sizes.push(*size);
                    self.total += *size;
                }
                None => self.push(message),
            }
        }
    }

    /// Another prompt stands before the messages: what was reported is of the other one.
    pub(super) fn forget_base(&mut self) {
        self.meter.forget_base();
    }

    /// What comes from now on was not there when the snapshots were taken.
    pub(super) fn forget_known(&mut self) {
        self.known.clear();
    }

    /// What each message of the log counts.
    pub(super) fn all(&self) -> &[Measure] {
        &self.sizes
    }

    /// All messages together.
    pub(super) fn total(&self) -> Measure {
        self.total
    }

    pub(super) fn snapshots(&self) -> Vec<Snapshot> {
        let here = (self.meter.way(), &self.sizes);
        let all = self.others.iter().map(|(way, sizes)| (*way, sizes)).chain([here]);
        all.map(|(way, sizes)| Snapshot { way, sizes: Arc::new(sizes.clone()) }).collect()
    }
}
