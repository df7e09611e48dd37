//! The view: what the model is sent. A function of the log alone as yet (edits come with the
//! ledger): every message as it came, or mended. Grows with the log; what was shown stays.

use std::sync::Arc;

use crate::log::{At, Log};
use crate::message::Message;
use crate::meter::{Measure, Meter};
use crate::repair::Shown;

/// One message of a view.
#[derive(Debug, Clone)]
pub struct Part {
    /// The message of the log that this is, or stems from.
    pub at: At,
    /// What is sent.
    pub message: Arc<Message>,
    /// Its size.
    pub measure: Measure,
}

/// What the model is sent.
#[derive(Debug, Clone, Default)]
pub struct View {
    fixed: Fixed,
    parts: Vec<Part>,
    measure: Measure,
    settled: Settled,
    unchanged: usize,
}

/// What stands before the messages: system prompt and tools of the frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fixed {
    /// Which frame of the log it is; none is 0.
    pub version: usize,
    /// Its size.
    pub measure: Measure,
}

/// Up to here nothing that arrives can change what is shown.
#[derive(Debug, Clone, Copy, Default)]
struct Settled {
    units: usize,
    parts: usize,
    measure: Measure,
}

impl View {
    /// The messages, in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// What stands before the messages.
    pub fn fixed(&self) -> Fixed {
        self.fixed
    }

    /// Its size, with what stands before the messages.
    pub fn measure(&self) -> Measure {
        self.fixed.measure + self.measure
    }

    /// How many of the first parts are the same as in the view before the last `follow`.
    pub fn unchanged(&self) -> usize {
        self.unchanged
    }

    /// Shows what the log has beyond what was shown. Costs what is new, and the open step.
    pub(crate) fn follow(&mut self, log: &Log, meter: &Meter, sizes: &[Measure]) {
        self.unchanged = self.settled.parts;
        self.parts.truncate(self.settled.parts);
        self.measure = self.settled.measure;
        for unit in self.settled.units..log.units().len() {
            self.show(log, meter, sizes, unit);
            if unit < log.settled_units() {
                self.settled = Settled { units: unit + 1, parts: self.parts.len(), measure: self.measure };
            }
        }
    }

    pub(crate) fn set_fixed(&mut self, fixed: Fixed) {
        self.fixed = fixed;
    }

    fn show(&mut self, log: &Log, meter: &Meter, sizes: &[Measure], unit: usize) {
        for shown in log.show(&log.units()[unit..=unit]) {
            let part = match shown {
                Shown::AsIs(at) => {
                    Part { at, message: log.messages()[at.index()].clone(), measure: sizes[at.index()] }
                }
                Shown::Mended(at, message) => Part { at, measure: meter.message(&message), message },
            };
            self.measure += part.measure;
            self.parts.push(part);
        }
    }
}
