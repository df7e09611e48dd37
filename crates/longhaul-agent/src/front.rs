//! Who watches an agent and answers its questions: a terminal, a script, a test.

use std::future::Future;
use std::pin::Pin;

use crate::consent::{Answer, Consent};
use crate::event::Event;

/// Who watches an agent and answers its questions.
pub trait Front: Send {
    /// Something happened.
    fn event(&mut self, event: Event<'_>);

    /// May this call run?
    fn ask<'a>(&'a mut self, consent: &'a Consent) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;
}
