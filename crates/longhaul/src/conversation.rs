//! The conversation as it came: messages and their blocks, what belongs together, what the host
//! knows beside them, and the log that holds all of it in order. Nothing here is ever edited.

pub(crate) mod bond;
pub(crate) mod canonical;
pub(crate) mod edition;
pub(crate) mod fact;
pub(crate) mod frame;
pub(crate) mod json;
pub(crate) mod log;
pub(crate) mod mention;
pub(crate) mod message;
pub(crate) mod observed;
pub(crate) mod raw;
pub(crate) mod repair;
pub(crate) mod script;
pub(crate) mod step;

pub use bond::{Bond, BondKind, bonds};
pub use fact::{Fact, FactKind, Note, Noted};
pub use frame::{Frame, MAX_OUTPUT, Tool, setting_without_secrets, without_secrets};
pub use json::{Extra, Json};
pub use log::{Log, Position, Span};
pub use mention::with_mentions;
pub use message::{
    API_FIELD, Block, Image, Message, Opaque, RecordedCompaction, Role, Seal, Text, Thinking, Time, ToolCall,
    ToolResult, Words,
};
pub use raw::{BlockPart, Raw, RawPart};
pub use repair::{NoteReason, PLACEHOLDER, Repair, Shown};
pub use script::{Made, made_by};
pub use step::{Turn, Unit, UnitKind};
