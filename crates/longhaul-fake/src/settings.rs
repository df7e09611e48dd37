//! What the fake shall do.

use std::ops::{Bound, RangeBounds};
use std::time::Duration;

use serde_json::Value;

use crate::script::{Answer, AtEnd};
use crate::server::Fake;
use crate::trouble::Trouble;
use crate::twin::Twin;

/// The numbers of calls from the one to the other.
type Calls = (Bound<usize>, Bound<usize>);

/// Words that refuse the body of a request, if it is refused.
pub(crate) type Refuses = fn(&Value) -> Option<&'static str>;

/// What the fake shall do.
#[derive(Debug, Clone)]
pub struct Settings {
    pub(crate) answers: Vec<Answer>,
    pub(crate) at_end: AtEnd,
    pub(crate) troubles: Vec<(Calls, Trouble)>,
    pub(crate) twin: Twin,
    pub(crate) key: Option<String>,
    pub(crate) window: Option<u64>,
    pub(crate) overflow_by_status: bool,
    pub(crate) refusals_in_stream: bool,
    pub(crate) refuses: Option<Refuses>,
    /// So many characters of an answer come in one event.
    pub(crate) piece: usize,
    pub(crate) pause: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            answers: Vec::new(),
            at_end: AtEnd::default(),
            troubles: Vec::new(),
            twin: Twin::of_environment(),
            key: None,
            window: None,
            overflow_by_status: false,
            refusals_in_stream: false,
            refuses: None,
            piece: 8,
            pause: Duration::ZERO,
        }
    }
}

impl Settings {
    /// An empty script, no trouble, no key, no window.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an answer to the script.
    pub fn answer(mut self, answer: impl Into<Answer>) -> Self {
        self.answers.push(answer.into());
        self
    }

    /// Adds answers to the script.
    pub fn answers<A: Into<Answer>>(mut self, answers: impl IntoIterator<Item = A>) -> Self {
        self.answers.extend(answers.into_iter().map(Into::into));
        self
    }

    /// Sets what is answered behind the script.
    pub fn at_end(self, at_end: AtEnd) -> Self {
        Self { at_end, ..self }
    }

    /// Adds trouble at the calls of these numbers, which begin at 1. The first trouble that is set for a
    /// call counts. Only requests for an answer are calls.
    pub fn trouble(mut self, calls: impl RangeBounds<usize>, trouble: Trouble) -> Self {
        self.troubles.push(((calls.start_bound().cloned(), calls.end_bound().cloned()), trouble));
        self
    }

    /// Sets the provider that the fake imitates; [`Twin::of_environment`] if nothing is set.
    pub fn twin(self, twin: Twin) -> Self {
        Self { twin, ..self }
    }

    /// Sets the only key that is taken. Another one gets status 401, and is quoted in the words of that.
    pub fn key(self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self }
    }

    /// Sets the window: a prompt of more tokens is refused. Some twins count the requested answer too.
    pub fn window(self, tokens: u64) -> Self {
        Self { window: Some(tokens), ..self }
    }

    /// Makes OpenAI Responses say by status 400 that a streamed request is too long, as some servers do.
    pub fn overflow_by_status(self) -> Self {
        Self { overflow_by_status: true, ..self }
    }

    /// Makes OpenAI Responses tell a streamed request inside its stream what it refuses, as some servers do.
    pub fn refusals_in_stream(self) -> Self {
        Self { refusals_in_stream: true, ..self }
    }

    /// Sets what else the provider refuses with status 400: requests for whose body this gives words.
    pub fn refuses(self, refuses: fn(&Value) -> Option<&'static str>) -> Self {
        Self { refuses: Some(refuses), ..self }
    }

    /// Sets how many characters of an answer come in one event; 8 if nothing is set.
    pub fn piece(self, characters: usize) -> Self {
        Self { piece: characters.max(1), ..self }
    }

    /// Sets a pause before each event of every answer.
    pub fn pause(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// Starts the fake on a free loopback port.
    pub async fn start(self) -> Fake {
        Fake::start(self).await
    }

    /// The trouble at the call of this number.
    pub(crate) fn trouble_at(&self, call: usize) -> Option<&Trouble> {
        self.troubles.iter().find(|(calls, _)| calls.contains(&call)).map(|(_, trouble)| trouble)
    }
}
