//! What the log says of each name and each file: how often and when it was mentioned, and by whom. Counted
//! once for each message, over the whole log: what was folded long ago still counts.

use std::collections::HashMap;
use std::hash::BuildHasher;

use crate::conversation::log::{Log, Position};
use crate::conversation::message::{Block, Message, Role};
use crate::conversation::script::made_by;
use crate::digest::{Aliases, HUGE, ToolKind};
use crate::text::hash::Quick;
use crate::text::names::{names, names_in_json};

/// What the log says of names and files, up to a message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Uses {
    /// By the hash of the name.
    names: HashMap<u64, NameUse, Quick>,
    /// By the hash of the path.
    files: HashMap<u64, FileUse, Quick>,
    /// Where answers of the model stand: a step begins with each.
    answers: Vec<u32>,
    /// Messages before this one are counted.
    seen: u32,
}

fn hash(name: &str) -> u64 {
    Quick::default().hash_one(name)
}

/// What the log says of a name.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NameUse {
    /// The message that mentions it last, and its step.
    pub(super) last_at: u32,
    pub(crate) last_step: u32,
    /// Messages in which the model used it in a call.
    pub(crate) calls: u16,
    /// Messages with results that mention it.
    pub(crate) results: u16,
    /// Messages that mention it.
    pub(crate) messages: u16,
    /// The model wrote it outside of calls.
    pub(crate) written: bool,
    /// What was counted of its last message.
    pub(super) counted: u8,
}

impl NameUse {
    /// True if no message behind this one mentions it.
    pub(crate) fn is_last_in(&self, at: Position) -> bool {
        self.last_at <= at.0
    }
}

/// What the log says of a file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FileUse {
    /// The step that read or changed it last.
    pub(crate) last_step: u32,
    /// The step that changed it last; 0 if none did.
    pub(crate) changed: u32,
}

/// Where a name stands in a message.
#[derive(Clone, Copy)]
enum Place {
    Call = 1,
    Result = 2,
    Own = 4,
    Elsewhere = 8,
}

impl Uses {
    /// Counts what is new in the log.
    pub(crate) fn follow(&mut self, log: &Log, aliases: &Aliases) {
        let first = self.seen as usize;
        for (at, message) in log.messages().iter().enumerate().skip(first) {
            self.count(at as u32, message, aliases);
        }
        self.seen = log.end().0;
    }

    fn count(&mut self, at: u32, message: &Message, aliases: &Aliases) {
        let own = message.role() == Role::Assistant;
        if own {
            self.answers.push(at);
        }
        for block in message.blocks() {
            match block {
                Block::Text(text) if own => self.mention(at, &text.text, Place::Own),
                Block::Text(text) => self.mention(at, &text.text, Place::Elsewhere),
                Block::Thinking(thinking) => self.mention(at, &thinking.text, Place::Own),
                Block::ToolResult(result) => self.mention(at, &result.text, Place::Result),
                Block::ToolCall(call) => {
                    for name in names_in_json(call.arguments.as_str()) {
                        self.mention_name(at, name, Place::Call);
                    }
                    let made = made_by(call);
                    if !made.is_script() {
                        let kind = aliases.kind_of(call);
                        if matches!(kind, ToolKind::Read | ToolKind::Edit | ToolKind::Write) {
                            self.touch(&kind.subject(&call.arguments), kind);
                        }
                        continue;
                    }
                    for call in made.calls() {
                        // Escapes of the script hide where a name begins.
                        for name in names_in_json(call.arguments.as_str()) {
                            self.mention_name(at, name, Place::Call);
                        }
                        let kind = aliases.kind_of(call);
                        kind.files(&call.arguments).iter().for_each(|path| self.touch(path, kind));
                    }
                }
                Block::Image(_) | Block::Opaque(_) => {}
            }
        }
    }

    /// This step reads or changes a file.
    fn touch(&mut self, path: &str, kind: ToolKind) {
        let step = self.answers.len() as u32;
        let file = self.files.entry(hash(path)).or_default();
        file.last_step = step;
        if kind != ToolKind::Read {
            file.changed = step;
        }
    }

    fn mention(&mut self, at: u32, text: &str, place: Place) {
        // Of a giant the start is looked at: the rest is under its handle.
        let text = &text[..text.floor_char_boundary(HUGE)];
        names(text).for_each(|name| self.mention_name(at, name, place));
    }

    fn mention_name(&mut self, at: u32, name: &str, place: Place) {
        let step = self.answers.len() as u32;
        let known = self.names.entry(hash(name)).or_default();
        if known.messages == 0 || known.last_at != at {
            (known.last_at, known.last_step, known.counted) = (at, step, 0);
            known.messages = known.messages.saturating_add(1);
        }
        if known.counted & place as u8 != 0 {
            return;
        }
        known.counted |= place as u8;
        match place {
            Place::Call => known.calls = known.calls.saturating_add(1),
            Place::Result => known.results = known.results.saturating_add(1),
            Place::Own => known.written = true,
            Place::Elsewhere => {}
        }
    }

    /// What is known of a name.
    pub(crate) fn name(&self, name: &str) -> NameUse {
        self.names.get(&hash(name)).copied().unwrap_or_default()
    }

    /// True if the model wrote it, in its words or its calls.
    pub(crate) fn is_of_model(&self, name: &str) -> bool {
        let known = self.name(name);
        known.written || known.calls > 0
    }

    /// What is known of a file; `None` if no call read or changed it.
    pub(crate) fn file(&self, path: &str) -> Option<FileUse> {
        self.files.get(&hash(path)).copied()
    }

    /// Bytes that the tables take in memory.
    pub(crate) fn bytes(&self) -> usize {
        // A map has a byte of its own for each place, taken or not.
        let names = self.names.capacity() * (size_of::<(u64, NameUse)>() + 1);
        let files = self.files.capacity() * (size_of::<(u64, FileUse)>() + 1);
        names + files + self.answers.capacity() * size_of::<u32>()
    }

    /// The step that is running.
    pub(crate) fn step(&self) -> u32 {
        self.answers.len() as u32
    }

    /// The step of a message.
    pub(crate) fn step_of(&self, at: Position) -> u32 {
        self.answers.partition_point(|answer| *answer <= at.0) as u32
    }
}
