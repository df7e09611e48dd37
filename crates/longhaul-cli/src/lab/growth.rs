//! How well the meter foresees growth, where a recorded session says how large its prompts were.

use std::collections::VecDeque;

use longhaul::size::Measure;
use longhaul::{Meter, Tokens};

use crate::lab::recorded::RecordedSession;

/// Compares what the meter foresees with what the provider reported, over ten calls.
#[derive(Debug, Default)]
pub struct Growth {
    seen: VecDeque<Seen>,
}

#[derive(Debug)]
struct Seen {
    measure: Measure,
    prompt: Tokens,
    meter: Meter,
}

impl Growth {
    const CALLS: usize = 10;
    /// A prompt that hardly grew says nothing about a ratio.
    const SMALLEST: u64 = 500;

    /// The recorded agent compacted: what came before says nothing about what comes.
    pub fn compacted(&mut self) {
        self.seen.clear();
    }

    /// A call of the session as it stands was reported with this prompt. Teaches the meter, and
    /// gives the error of what it foresaw ten calls ago: (foreseen − reported) / reported.
    pub fn call(&mut self, recorded: &mut RecordedSession, prompt: Tokens) -> Option<f64> {
        let measure = recorded.session().full();
        // No prompt is empty: nothing was reported.
        if prompt == Tokens::ZERO {
            return None;
        }
        if let Some(last) = self.seen.back() {
            recorded.teach(measure - last.measure, prompt.change_since(last.prompt));
        }
        let meter = recorded.session().meter().clone();
        self.seen.push_back(Seen { measure, prompt, meter });
        if self.seen.len() <= Self::CALLS {
            return None;
        }
        let then = self.seen.pop_front()?;
        let grown = prompt.0.checked_sub(then.prompt.0).filter(|grown| *grown > Self::SMALLEST)?;
        let foreseen = then.meter.tokens(measure - then.measure).tokens;
        Some((foreseen.0 as f64 - grown as f64) / grown as f64)
    }
}
