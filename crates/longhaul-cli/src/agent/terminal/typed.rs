//! The line that is being typed, as far as it is: a line that was begun before a question is no answer to it.

use std::sync::{Arc, Mutex, PoisonError};

/// What stands behind the prompt at this moment.
#[derive(Clone, Default)]
pub struct Typed(Arc<Mutex<String>>);

impl Typed {
    /// The line is this now.
    pub fn set(&self, line: &str) {
        line.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The line as it is.
    pub fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
