//! What `prepare` answers.

use super::journal::Ticket;
use crate::conversation::log::Position;
use crate::size::tokens::Tokens;
use crate::summary::job::Job;

/// What `prepare` answers.
#[derive(Debug, Clone)]
pub enum Prepared {
    /// Send what [`outgoing`](crate::Session::outgoing) gives. A job may be open beside it:
    /// [`job`](crate::Session::job).
    Send(Ticket),
    /// Have this summary written first, [`resolve`](crate::Session::resolve) it and prepare again.
    Summarise(Job),
}

/// What does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TooLarge {
    /// System prompt, tools and system messages alone.
    System,
    /// A message that cannot be cut further.
    Message(Position),
    /// All that must stay, together.
    Together,
}

/// Why there is nothing to send.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    /// What must stay is over the hard limit.
    #[error("{} {tokens} tokens, over the limit of {hard} (window {window})", what.says())]
    TooLarge {
        /// What.
        what: TooLarge,
        /// Its size.
        tokens: Tokens,
        /// The hard limit.
        hard: Tokens,
        /// The window that gives it.
        window: Tokens,
    },
}

impl TooLarge {
    fn says(self) -> String {
        match self {
            Self::System => "system prompt and tools alone have".to_owned(),
            Self::Message(at) => {
                format!("message {} cannot be cut further; with what must stay the request has", at.0)
            }
            Self::Together => "what must stay has".to_owned(),
        }
    }
}
