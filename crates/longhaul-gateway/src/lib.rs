//! The gateway: a proxy between any agent and its provider that keeps every conversation inside its window.
//!
//! Whatever goes wrong on our side, the client's own bytes go out, and it is said ([`Reason`]).
//!
//! | look for | in |
//! |---|---|
//! | what goes out in the place of a client's request | `desk` |

#![forbid(unsafe_code)]

pub mod desk;

pub use desk::{Call, Decision, Desk, DeskSettings, How, Incoming, Reason};
