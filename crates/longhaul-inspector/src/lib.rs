//! The inspector: what the model really saw, call by call, and why; and a page that shows it and lets a person steer.
//!
//! Everything is derived from journals in a [`Store`](longhaul_store::Store). An [`Inspector`] answers requests, as
//! [`api`] says; the gateway serves it under `/inspect/`, and `longhaul inspect` at an address of its own
//! ([`Server`]).
//!
//! | look for | in |
//! |---|---|
//! | what can be asked, and the answers | [`api`] |
//! | which address asks for what | `route` |
//! | who may ask: host, origin, token, forgery | [`access`] |
//! | a session, call by call: sizes, shares, costs, edits | `history`, `category`, `cost` |
//! | one call: its parts, what is new, what is gone, the answer | `call`, [`parts`] |
//! | how a message was shown, and until when; search in one log | `shown` |
//! | pins, goal, undo, redo, compaction: preview and deed | [`steering`] |
//! | the same log under other settings | `what_if` |
//! | news for pages that are open | [`events`] |
//! | a session as static pages, without keys | [`export`], `bundle`, `redact` |
//! | the files of the page | `assets` |
//! | answers over HTTP, and a server of its own | `serve` |

#![forbid(unsafe_code)]

pub mod access;
pub mod api;
mod assets;
mod bundle;
mod call;
pub mod category;
mod cost;
mod error;
pub mod events;
pub mod export;
mod history;
mod inspector;
pub mod parts;
mod redact;
mod route;
mod serve;
mod session;
mod sessions;
mod shown;
pub mod steering;
mod text;
mod what_if;

pub use error::Refused;
pub use inspector::{Act, Guest, Host, Inspector, Settings};
pub use serve::{Body, Server, serve};
pub use text::{grouped, lines, lost_thinking};
