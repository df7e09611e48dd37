//! When and how to compact: profiles, the strategies on their ladders, kinds of work, and the
//! breaker that stops what does not help.

pub(crate) mod account;
pub(crate) mod breaker;
pub(crate) mod dial;
pub(crate) mod profile;
pub(crate) mod strategy;
pub(crate) mod task;
pub(crate) mod trigger;

pub use breaker::Tripped;
pub use dial::{Dial, DialError};
pub use profile::{Constants, OnFailure, Profile, Summariser, Templates, Triggers};
pub use strategy::{STRATEGIES, Strategy};
pub use task::Task;
pub use trigger::{TRIGGERS, Trigger};
