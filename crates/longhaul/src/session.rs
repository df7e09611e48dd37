//! A session: one conversation on its way through its window. The log, the size of each
//! message, and the view that the next request is made of. Sans-I/O: time and text come in,
//! views go out.

use std::sync::Arc;

use crate::budget::Budget;
use crate::log::{At, Log};
use crate::message::Message;
use crate::meter::{Measure, Meter};
use crate::tokens::{Count, Tokens};
use crate::usage::Usage;
use crate::view::{Fixed, View};

/// One conversation.
///
/// ```
/// use longhaul::{Budget, Message, Meter, Session, Tokens};
/// let mut session = Session::new(Meter::neutral(), Budget::new(Tokens(8_000), Tokens(1_000)));
/// session.push(Message::user("Why does the build fail?"));
/// let view = session.prepare()?;
/// assert_eq!(view.parts().len(), 1);
/// # Ok::<(), longhaul::PrepareError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Session {
    log: Log,
    meter: Meter,
    budget: Budget,
    sizes: Vec<Measure>,
    total: Measure,
    notes_seen: usize,
    view: View,
}

/// Why there is no view to send.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    /// The view is over the hard limit.
    #[error("the request has {tokens} tokens, {} more than the limit of {hard} (window {window})", tokens.0 - hard.0)]
    TooLarge {
        /// Its size.
        tokens: Tokens,
        /// The hard limit.
        hard: Tokens,
        /// The window that gives it.
        window: Tokens,
    },
}

impl Session {
    /// An empty session.
    pub fn new(meter: Meter, budget: Budget) -> Self {
        Self {
            log: Log::new(),
            meter,
            budget,
            sizes: Vec::new(),
            total: Measure::default(),
            notes_seen: 0,
            view: View::default(),
        }
    }

    /// Appends a message and counts it, once.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) -> At {
        let message = message.into();
        let size = self.meter.message(&message);
        self.sizes.push(size);
        self.total += size;
        self.log.push(message)
    }

    /// Goes on with another model: everything is counted anew.
    pub fn switch(&mut self, meter: Meter, budget: Budget) {
        self.meter = meter;
        self.budget = budget;
        self.sizes = self.log.messages().iter().map(|message| self.meter.message(message)).collect();
        self.total = self.sizes.iter().copied().sum();
        self.notes_seen = 0;
        self.view = View::default();
    }

    /// The view for the next request, or why there can be none.
    pub fn prepare(&mut self) -> Result<&View, PrepareError> {
        self.follow_frame();
        self.view.follow(&self.log, &self.meter, &self.sizes);
        let (tokens, hard, window) = (self.size().tokens, self.budget.hard, self.budget.window);
        if tokens > hard {
            return Err(PrepareError::TooLarge { tokens, hard, window });
        }
        Ok(&self.view)
    }

    fn follow_frame(&mut self) {
        if self.notes_seen == self.log.notes().len() {
            return;
        }
        self.notes_seen = self.log.notes().len();
        let fixed = Fixed {
            version: self.log.frame_version(),
            measure: self.log.frame().map(|frame| self.meter.frame(frame)).unwrap_or_default(),
        };
        if fixed != self.view.fixed() {
            self.view.set_fixed(fixed);
            self.meter.forget_base();
        }
    }

    /// Takes in what the provider reported for the view of the last `prepare`.
    pub fn observe(&mut self, usage: &Usage) {
        self.meter.observe(self.view.measure(), usage.prompt());
    }

    /// The size of the next request as far as it is prepared: view, system prompt and tools.
    pub fn size(&self) -> Count {
        self.meter.estimate(self.view.measure())
    }

    /// The size of the whole log as it came, with system prompt and tools: what a request
    /// would be if nothing were ever taken out.
    pub fn full(&self) -> Measure {
        self.view.fixed().measure + self.total
    }

    /// The view of the last `prepare`, whether or not it fits.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The size of each message of the log.
    pub fn sizes(&self) -> &[Measure] {
        &self.sizes
    }

    /// The meter.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The meter, to be taught.
    pub fn meter_mut(&mut self) -> &mut Meter {
        &mut self.meter
    }

    /// The limits.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }
}
