//! Talking to models. [`Model`] is somebody who answers: a [`Provider`] over HTTP, a [`Scripted`] one for
//! tests, a [`Human`] who types. [`write_summary`] has one answer the jobs of the engine.
//!
//! What reads replies knows no network, so that a gateway can use it too: it hands in the bytes that come
//! back, and gets a reply or what went wrong.
//!
//! - [`EventStream`] makes events of bytes;
//! - [`ReplyReader`] makes a [`Reply`] of a stream, piece by piece, for each API of `longhaul-wire`;
//!   [`Reply::read`] reads a reply that came whole;
//! - [`Fault`] says what went wrong as what a caller can do about it, and knows how providers say that a
//!   request is too long.

mod event_stream;
mod fault;
mod human;
mod key;
mod model;
mod provider;
mod reply;
mod scripted;
mod summary;
mod summary_writer;

/// Runs the example of the page on models.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/models.md")]
struct Page;

pub use event_stream::{Event, EventStream, StreamError};
pub use fault::{Fault, refuses_thinking};
pub use human::Human;
pub use key::Key;
pub use model::{Asked, Model, Watch};
pub use provider::{Patience, Provider, Retry, causes};
pub use reply::{Delta, Progress, Reply, ReplyReader, Stop};
pub use scripted::Scripted;
pub use summary::{Ask, Summarised, write_summary};
pub use summary_writer::SummaryWriter;
