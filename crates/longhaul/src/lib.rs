//! Longhaul keeps an LLM agent's conversation inside its context window.
//!
//! This crate is the engine: **sans-I/O** (no files, no network, no clock, no randomness),
//! so that an agent, a gateway, a test or a binding can drive the same state machine.
//!
//! Everything that happens to a session is an entry of its [`journal`](session::journal). The
//! conversation is a [`Log`] of [`Message`]s; each compression is an [`Edit`] in a [`Ledger`] over
//! that log; both are folds of the journal. What the model is sent is a [`View`](view::View): a
//! function of both alone. So every compression can be explained, priced, undone and redone, and
//! nothing is destroyed.
//!
//! ```
//! use longhaul::{Block, Json, Message, Models, Prepared, Profile, Role, Session, Usage};
//!
//! let model = Models::builtin().find("claude-sonnet-4-5").clone();
//! let mut session = Session::new(Profile::longhaul(), model);
//!
//! session.push(Message::user("What does main.rs print?"));
//! if let Prepared::Send(ticket) = session.prepare(None)? {
//!     // Send session.outgoing() to the model; then say what it reported.
//!     assert_eq!(session.outgoing().messages().count(), 1);
//!     session.observe(ticket, &Usage { input: 2_048, ..Usage::default() });
//! }
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
//! | messages, blocks, order, steps, turns, broken input, facts, frames | [`conversation`] |
//! | tokens, counting, models, prices, limits | [`size`] |
//! | compressions, undo, what must hold, what was taken out | [`edits`] |
//! | what is sent, what must be kept, the prompt cache | [`view`] |
//! | the short form of a result | [`digest`] |
//! | the short form of a run of messages, and who writes it | [`summary`] |
//! | when and how to compact | [`policy`] |
//! | the state machine around it all | [`session`] |

#![forbid(unsafe_code)]

pub mod conversation;
pub mod digest;
pub mod edits;
pub mod policy;
pub mod session;
pub mod size;
pub mod summary;
pub mod text;
pub mod view;

pub use conversation::{
    Block, Extra, Frame, Json, Log, Message, Position, Role, Seal, Span, Time, Tool, ToolCall, ToolResult,
};
pub use edits::{
    Archive, Edit, EditId, EditKind, Handle, Ledger, LedgerError, RecallError, RecallPart, Refusal,
    Violation, Voice, Why,
};
pub use policy::{Dial, Profile, Strategy, Summariser, Task};
pub use session::journal::{Cursor, Entry, RecallBy, Seals, Ticket};
pub use session::{
    Found, Known, LoadError, Notice, Overflow, PrepareError, Prepared, Session, Snapshot, TooLarge,
};
pub use size::{Budget, Count, Meter, Model, Models, Tokens, Usage, Vocabulary};
pub use summary::{Job, Outcome, Resolved};
pub use view::{End, Outgoing, Part, Source};
