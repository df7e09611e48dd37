//! Talking to models. What is here knows no network: a host sends a body, hands in the bytes that come
//! back, and gets a reply or what went wrong.
//!
//! - [`EventStream`] makes events of bytes;
//! - [`ReplyReader`] makes a [`Reply`] of a stream, piece by piece, for each API of `longhaul-wire`;
//!   [`Reply::read`] reads a reply that came whole;
//! - [`Fault`] says what went wrong as what a caller can do about it, and knows how providers say that a
//!   request is too long.

mod event_stream;
mod fault;
mod reply;

pub use event_stream::{Event, EventStream, StreamError};
pub use fault::Fault;
pub use reply::{Delta, Progress, Reply, ReplyReader, Stop};
