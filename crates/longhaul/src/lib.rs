//! Longhaul keeps an LLM agent's conversation inside its context window.
//!
//! This crate is the engine: **sans-I/O** (no files, no network, no clock, no randomness),
//! so that an agent, a gateway, a test or a binding can drive the same state machine.
//!
//! The conversation is a [`Log`] of [`Message`]s, append-only. The [`Meter`] counts each
//! message once; the [`Budget`] says how much of the window may be used; the [`View`] is
//! what the model is sent.
//!
//! ```
//! use longhaul::{Block, Budget, Json, Message, Meter, Models, Role, Session, Usage};
//!
//! let model = Models::builtin().find("claude-sonnet-4-5");
//! let budget = Budget::new(model.window, model.max_output);
//! let mut session = Session::new(Meter::for_model(model), budget);
//!
//! session.push(Message::user("What does main.rs print?"));
//! let view = session.prepare()?;                       // send view.parts() to the model
//! session.observe(&Usage { input: 2_048, ..Usage::default() });   // what it reported
//!
//! let path = Json::new(r#"{"path":"main.rs"}"#).unwrap();
//! session.push(Message::new(Role::Assistant, vec![Block::call("c1", "Read", path)]));
//! session.push(Message::result("c1", "fn main() { println!(\"hi\") }"));
//! assert_eq!(session.prepare()?.parts().len(), 3);
//! assert!(session.size().tokens > 2_048.into());
//! # Ok::<(), longhaul::PrepareError>(())
//! ```
//!
//! | look for | in |
//! |---|---|
//! | roles, blocks, what came in | `message`, `json`, `bond`, `frame`, `fact` |
//! | order, steps, turns, broken input | `log`, `step`, `repair` |
//! | sizes | `tokens`, `tokenizer`, `image`, `meter`, `calibration`, `usage` |
//! | limits, models, prices | `budget`, `models`, `models.toml` |
//! | what is sent | `view`, `session`, `cache` |

#![forbid(unsafe_code)]

mod bond;
mod budget;
mod cache;
mod calibration;
mod fact;
mod frame;
mod image;
mod json;
mod log;
mod message;
mod meter;
mod models;
mod repair;
mod session;
mod step;
mod tokenizer;
mod tokens;
mod usage;
mod view;

pub use bond::{Bond, BondKind, bonds};
pub use budget::{Budget, Shares};
pub use cache::{PromptCache, Sent};
pub use calibration::Calibration;
pub use fact::{Fact, FactKind, Note, Noted};
pub use frame::{Frame, Tool};
pub use image::{ImageRule, size_of as image_size};
pub use json::{Extra, Json};
pub use log::{At, Log, Span};
pub use message::{
    Block, BlockPart, Image, Message, Opaque, Raw, Role, Seal, Text, Thinking, Time, ToolCall, ToolResult,
};
pub use meter::{Measure, Meter};
pub use models::{CacheKind, CacheRule, Model, Models, ModelsError, Price};
pub use repair::{NoteReason, PLACEHOLDER, Repair, Shown};
pub use session::{PrepareError, Session};
pub use step::{Turn, Unit, UnitKind};
pub use tokenizer::{TextCount, Vocabulary};
pub use tokens::{Count, CountKind, Tokens};
pub use usage::{Billed, Usage};
pub use view::{Fixed, Part, View};
