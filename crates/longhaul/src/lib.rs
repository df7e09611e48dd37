//! Longhaul keeps an LLM agent's conversation inside its context window.
//!
//! This crate is the engine: **sans-I/O** (no files, no network, no clock, no randomness),
//! so that an agent, a gateway, a test or a binding can drive the same state machine.
//!
//! The conversation is a [`Log`] of [`Message`]s, append-only. Each compression is an
//! [`Edit`] in a [`Ledger`] over that log. What the model is sent is a [`View`]: a function of
//! both alone. So every compression can be explained, priced, undone and redone, and nothing
//! is destroyed.
//!
//! ```
//! use longhaul::{Block, Json, Message, Models, Prepared, Profile, Role, Session, Usage};
//!
//! let model = Models::builtin().find("claude-sonnet-4-5").clone();
//! let mut session = Session::new(Profile::longhaul(), model);
//!
//! session.push(Message::user("What does main.rs print?"));
//! if let Prepared::Ready(view) = session.prepare(None)? {
//!     // Send view.parts() to the model, then view.tail().
//!     assert_eq!(view.parts().len(), 1);
//! }
//! session.observe(&Usage { input: 2_048, ..Usage::default() });   // what it reported
//!
//! let path = Json::new(r#"{"path":"main.rs"}"#).unwrap();
//! session.push(Message::new(Role::Assistant, vec![Block::call("c1", "Read", path)]));
//! session.push(Message::result("c1", "fn main() { println!(\"hi\") }"));
//! session.prepare(None)?;
//! assert!(session.size().tokens > 2_048.into());
//! # Ok::<(), longhaul::PrepareError>(())
//! ```
//!
//! | look for | in |
//! |---|---|
//! | roles, blocks, what came in | `message`, `json`, `bond`, `frame`, `fact` |
//! | order, steps, turns, broken input | `log`, `step`, `repair` |
//! | sizes | `tokens`, `tokenizer`, `image`, `meter`, `calibration`, `usage` |
//! | limits, models, prices | `budget`, `models`, `models.toml`, `cache` |
//! | compressions, undo, what was taken out | `edit`, `ledger`, `archive` |
//! | what is sent, and what must hold for it | `view`, `keep`, `mention`, `guard` |
//! | how to compact | `profile`, `task`, `strategy`, `digest`, `summary`, `breaker`, `job` |
//! | the state machine around it all | `session` |

#![forbid(unsafe_code)]

mod archive;
mod bits;
mod bond;
mod breaker;
mod budget;
mod cache;
mod calibration;
mod digest;
mod edit;
mod fact;
mod frame;
mod guard;
mod hash;
mod image;
mod job;
mod json;
mod keep;
mod ledger;
mod log;
mod mention;
mod message;
mod meter;
mod models;
mod names;
mod profile;
mod repair;
mod session;
mod step;
mod strategy;
mod summary;
mod task;
mod tokenizer;
mod tokens;
mod usage;
mod view;

pub use archive::{
    Archive, BadHandle, Handle, MemoryArchive, Original, Part as RecallPart, RecallError, recall,
};
pub use bond::{Bond, BondKind, bonds};
pub use breaker::Tripped;
pub use budget::{Budget, Shares};
pub use cache::{PromptCache, Sent, pays_back};
pub use calibration::Calibration;
pub use digest::{
    Aliases, Cut, Ends, ToolKind, arguments as digest_arguments, head_and_tail, of_call as digest_of,
    of_call_by_tool as digest_by_tool, result as digest_result,
};
pub use edit::{Edit, EditId, EditKind, EditPrice, Limit, Placement, Why};
pub use fact::{Fact, FactKind, Note, Noted};
pub use frame::{Frame, Tool};
pub use guard::{Audited, Refusal, Rule, Violation};
pub use image::{ImageRule, size_of as image_size};
pub use job::{Job, Outcome, Resolved};
pub use json::{Extra, Json};
pub use keep::{KeepItem, KeepKey, Kept, RULE_FILES, is_rule_file};
pub use ledger::{Event, Ledger, LedgerError};
pub use log::{At, Log, Span};
pub use mention::with_mentions;
pub use message::{
    Block, BlockPart, Image, Message, Opaque, Raw, Role, Seal, Text, Thinking, Time, ToolCall, ToolResult,
};
pub use meter::{Measure, Meter};
pub use models::{CacheKind, CacheRule, Model, Models, ModelsError, Price};
pub use profile::{Constants, OnFailure, Profile, Summariser, Templates, Triggers};
pub use repair::{NoteReason, PLACEHOLDER, Repair, Shown};
pub use session::{LoadError, PrepareError, Prepared, Saved, Session, State, TooLarge};
pub use step::{Turn, Unit, UnitKind};
pub use strategy::{STRATEGIES, Strategy};
pub use summary::{Language, TEMPLATES, Template};
pub use task::Task;
pub use tokenizer::{TextCount, Vocabulary};
pub use tokens::{Count, CountKind, Tokens};
pub use usage::{Billed, Usage};
pub use view::{Fixed, Part, Source, View};
