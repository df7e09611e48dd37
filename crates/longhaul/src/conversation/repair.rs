//! Repair: how broken input is shown so that a provider takes it. The log keeps what came;
//! what is shown differs only where it must, and always in the same way, so that a repair
//! once sent stays as it was sent.

use std::sync::Arc;

use crate::conversation::json::Extra;
use crate::conversation::log::Position;
use crate::conversation::message::{Block, Message, Role, ToolResult};
use crate::conversation::step::{Outline, Unit};

/// Stands for a result that never came. These bytes are in prompts that providers have
/// cached: changing them breaks every such cache.
pub const PLACEHOLDER: &str = "[No result was recorded for this call.]";

/// One thing to mend in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// A block without content is left out.
    Empty {
        /// Which.
        block: usize,
    },
    /// There is no block at all: the message is left out.
    NoContent,
    /// An id that was used before is replaced, in the call and in its result.
    Rename {
        /// Which block.
        block: usize,
        /// The id it is shown with.
        id: Box<str>,
    },
    /// A result that answers no open call is shown as a note.
    AsNote {
        /// Which block.
        block: usize,
        /// Why.
        reason: NoteReason,
    },
    /// A call in a message that no model wrote is shown as text.
    StrayCall {
        /// Which block.
        block: usize,
    },
    /// A tool message without results is shown as the host's words.
    AsUser,
}

/// Why a result is shown as a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteReason {
    /// Its call was answered by a placeholder before it came.
    Late,
    /// Its call had a result already.
    Doubled,
    /// Nobody made its call.
    Unknown,
}

/// A call without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) id: Box<str>,
    pub(crate) name: Box<str>,
}

/// A message as the model may be shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// As it came.
    AsIs(Position),
    /// Mended, edited, made to fill a gap, or a later edition of it. Names the message it stems from.
    Made(Position, Arc<Message>),
}

impl Shown {
    /// The message that it is, or stems from.
    pub fn at(&self) -> Position {
        match self {
            Self::AsIs(at) | Self::Made(at, _) => *at,
        }
    }
}

impl Outline {
    /// True if the unit is shown exactly as it came.
    pub(crate) fn is_whole(&self, unit: &Unit) -> bool {
        let ats = || unit.span.range().map(|at| Position(at as u32));
        self.missing(unit).is_empty() && ats().all(|at| self.repairs(at).is_empty())
    }

    /// The messages of a unit as the model may be shown them: in a step, results come right
    /// after their calls, then what arrived between, in its order.
    pub(crate) fn show(&self, messages: &[Arc<Message>], unit: &Unit, edited: &Edited<'_>) -> Vec<Shown> {
        let mut shown = Vec::with_capacity(unit.span.len());
        let mut after = Vec::new();
        for index in unit.span.range() {
            let (at, message) = (Position(index as u32), &messages[index]);
            let repairs = self.repairs(at);
            let edited = edited(at, message);
            if repairs.is_empty() && edited.is_none() {
                let first = at == unit.span.start || message.results().next().is_some();
                if first { &mut shown } else { &mut after }.push(Shown::AsIs(at));
                continue;
            }
            let blocks = edited.unwrap_or_else(|| message.blocks().iter().cloned().map(Some).collect());
            let notes = notes(message, &blocks, repairs);
            let mended = mended(message, blocks, repairs);
            let answers = mended.as_ref().is_some_and(|m| m.results().next().is_some());
            let main = if at == unit.span.start || answers { &mut shown } else { &mut after };
            main.extend(mended.map(|m| Shown::Made(at, Arc::new(m))));
            after.extend(notes.map(|m| Shown::Made(at, Arc::new(m))));
        }
        let placeholders = self.missing(unit).into_iter().map(placeholder);
        shown.extend(placeholders.map(|m| Shown::Made(unit.span.start, Arc::new(m))));
        shown.extend(after);
        shown
    }
}

/// The blocks of a message that an edit changed, each in its place; `None` for one that is
/// gone. `None` for a message that no edit touched.
pub(crate) type Edited<'a> = dyn Fn(Position, &Message) -> Option<Vec<Option<Block>>> + 'a;

/// The message without what is empty or a note; `None` if nothing is left.
fn mended(message: &Message, mut blocks: Vec<Option<Block>>, repairs: &[Repair]) -> Option<Message> {
    let mut role = message.role();
    for repair in repairs {
        match repair {
            Repair::Empty { block } | Repair::AsNote { block, .. } => blocks[*block] = None,
            Repair::Rename { block, id } => match &mut blocks[*block] {
                Some(Block::ToolCall(call)) => call.id = id.clone(),
                Some(Block::ToolResult(result)) => result.id = id.clone(),
                _ => {}
            },
            Repair::StrayCall { block } => {
                if let Some(Block::ToolCall(call)) = &blocks[*block] {
                    let text =
                        format!("[Call of {} that no model made]\n{}", call.name, call.arguments.as_str());
                    blocks[*block] = Some(Block::text(text));
                }
            }
            Repair::NoContent => {}
            Repair::AsUser => role = Role::User,
        }
    }
    let blocks: Vec<Block> = blocks.into_iter().flatten().collect();
    let has_results = blocks.iter().any(|block| matches!(block, Block::ToolResult(_)));
    if role == Role::Tool && !has_results {
        role = Role::User;
    }
    (!blocks.is_empty()).then(|| message.clone_with(role, blocks))
}

/// The results that are shown as notes, in one message.
fn notes(message: &Message, shown: &[Option<Block>], repairs: &[Repair]) -> Option<Message> {
    let mut blocks = Vec::new();
    for repair in repairs {
        let Repair::AsNote { block, reason } = repair else { continue };
        let Some(Some(Block::ToolResult(result))) = shown.get(*block) else { continue };
        blocks.push(Block::text(note(result, *reason)));
        let content = result.content.as_deref().unwrap_or_default();
        blocks.extend(content.iter().filter_map(|inner| match inner {
            Block::Text(_) | Block::Thinking(_) => None,
            Block::Image(_) | Block::Opaque(_) => Some(inner.clone()),
            // Inside a result they bind nobody; outside they would ask for their other half.
            Block::ToolResult(result) => Some(Block::text(result.text.clone())),
            Block::ToolCall(call) => {
                Some(Block::text(format!("[{} {}]", call.name, call.arguments.as_str())))
            }
        }));
    }
    if blocks.is_empty() {
        return None;
    }
    // The answer's usage and fields are not the note's; only its time is.
    let note = Message::new(Role::User, blocks);
    Some(match message.time() {
        Some(time) => note.with_time(time),
        None => note,
    })
}

fn note(result: &ToolResult, reason: NoteReason) -> String {
    let tool = result.name.as_deref().filter(|name| !name.is_empty()).unwrap_or("a tool");
    let why = match reason {
        NoteReason::Late => "arrived late",
        NoteReason::Doubled => "arrived a second time",
        NoteReason::Unknown => "answers no known call",
    };
    format!("[Result of {tool}, call {}, {why}]\n{}", result.id, result.text)
}

fn placeholder(missing: &Missing) -> Message {
    let result = ToolResult {
        id: missing.id.clone(),
        name: Some(missing.name.clone()),
        text: PLACEHOLDER.into(),
        content: None,
        is_error: true,
        extra: Extra::NONE,
    };
    Message::new(Role::Tool, vec![Block::ToolResult(result)])
}
