//! The text that a message was read from, kept beside its blocks and not twice.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::conversation::message::Block;

/// The text a message was read from, to be written out again as long as nobody touched it.
/// Long strings that the blocks hold anyway are cut out and put back when it is written, so
/// that a conversation is not in memory twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredRaw")]
pub struct Raw {
    format: Cow<'static, str>,
    skeleton: Box<str>,
    holes: Box<[Hole]>,
}

/// A raw text as a store gives it back: its holes are checked before anybody writes from it.
#[derive(Deserialize)]
struct StoredRaw {
    format: Box<str>,
    skeleton: Box<str>,
    holes: Box<[Hole]>,
}

impl TryFrom<StoredRaw> for Raw {
    type Error = &'static str;

    fn try_from(stored: StoredRaw) -> Result<Self, Self::Error> {
        let StoredRaw { format, skeleton, holes } = stored;
        let in_order = holes.windows(2).all(|pair| pair[0].at <= pair[1].at);
        let inside = |hole: &Hole| skeleton.is_char_boundary(hole.at as usize);
        if !in_order || !holes.iter().all(inside) {
            return Err("a raw text whose holes are not inside it");
        }
        Ok(Self { format: Cow::Owned(format.into()), skeleton, holes })
    }
}

/// Where a part of a block was cut out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Hole {
    /// Position in the skeleton.
    at: u32,
    block: u32,
    part: BlockPart,
}

/// A part of a text that a block holds too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawPart {
    /// Where it begins in the text, in bytes.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// The number of the block.
    pub block: usize,
    /// What of the block it is.
    pub part: BlockPart,
}

/// A part of a block that can be written again from the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockPart {
    /// Its text, as a JSON string.
    Text,
    /// The arguments of a call, as they are.
    Arguments,
    /// The arguments of a call, as a JSON string that holds them.
    ArgumentsText,
}

impl Raw {
    /// Shorter parts stay where they are: a hole has its price too.
    const SHORTEST: usize = 64;

    /// The text of a message in `format`. `parts` are slices of that text, in their order,
    /// each with the number of the block it was read into; one that could not be written
    /// again to the byte stays in the text.
    pub fn new(
        format: &'static str,
        text: &str,
        parts: &[(&str, usize, BlockPart)],
        blocks: &[Block],
    ) -> Self {
        let mut known = Vec::with_capacity(parts.len());
        for (part, block, kind) in parts {
            // A slice of `text`: its place is where it points to.
            let start = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
            let end = start.saturating_add(part.len());
            let again = || blocks.get(*block).and_then(|block| kind.of(block));
            if part.len() >= Self::SHORTEST && again().as_deref() == Some(part) {
                known.push(RawPart { start, end, block: *block, part: *kind });
            }
        }
        Self::without(format, text, &known)
    }

    /// The text of a message in `format` whose `parts`, in their order, are exactly what their blocks
    /// would be written as: the reader has seen to that.
    pub fn without(format: &'static str, text: &str, parts: &[RawPart]) -> Self {
        let (mut skeleton, mut holes, mut from) = (String::new(), Vec::new(), 0);
        for part in parts {
            let fits = part.start >= from && part.end <= text.len();
            let (Ok(block), true) = (u32::try_from(part.block), fits) else { continue };
            if part.end - part.start < Self::SHORTEST {
                continue;
            }
            let before = text.get(from..part.start).unwrap_or_default();
            if let Ok(at) = u32::try_from(skeleton.len() + before.len()) {
                skeleton.push_str(before);
                holes.push(Hole { at, block, part: part.part });
                from = part.end;
            }
        }
        skeleton.push_str(text.get(from..).unwrap_or_default());
        Self { format: Cow::Borrowed(format), skeleton: skeleton.into(), holes: holes.into() }
    }

    /// The format that the text is in.
    pub(crate) fn format(&self) -> &str {
        &self.format
    }

    /// The text again.
    pub(crate) fn text(&self, blocks: &[Block]) -> Cow<'_, str> {
        if self.holes.is_empty() {
            return Cow::Borrowed(&self.skeleton);
        }
        let (mut text, mut from) = (String::with_capacity(self.skeleton.len() * 2), 0);
        for hole in &self.holes {
            let at = hole.at as usize;
            text.push_str(&self.skeleton[from..at]);
            text.extend(blocks.get(hole.block as usize).and_then(|block| hole.part.of(block)));
            from = at;
        }
        text.push_str(&self.skeleton[from..]);
        Cow::Owned(text)
    }
}

impl BlockPart {
    fn of(self, block: &Block) -> Option<Cow<'_, str>> {
        let text = match (self, block) {
            (Self::Arguments, Block::ToolCall(call)) => return Some(Cow::Borrowed(call.arguments.as_str())),
            (Self::ArgumentsText, Block::ToolCall(call)) => call.arguments.as_str(),
            (Self::Text, Block::Text(b)) => &*b.text,
            (Self::Text, Block::Thinking(b)) => &*b.text,
            (Self::Text, Block::ToolResult(b)) => &*b.text,
            _ => return None,
        };
        serde_json::to_string(text).ok().map(Cow::Owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_block_holds_is_not_held_twice() {
        let long = "a \"quoted\" line\n".repeat(20);
        let blocks = vec![Block::text(long.as_str()), Block::text("short")];
        // The first as we would write it, the second too short, a third in another form.
        let json = serde_json::to_string(&long).unwrap();
        let odd = json.replace('a', "\\u0061");
        let line = format!("[{json}, \"short\", {odd}]");
        let third = line.len() - 1 - odd.len();
        let parts = [
            (&line[1..1 + json.len()], 0, BlockPart::Text),
            (&line[json.len() + 3..json.len() + 10], 1, BlockPart::Text),
            (&line[third..third + odd.len()], 0, BlockPart::Text),
        ];
        let raw = Raw::new("f", &line, &parts, &blocks);
        assert_eq!(raw.holes.len(), 1);
        assert_eq!(raw.text(&blocks), line);
        assert_eq!(raw.skeleton.len(), line.len() - json.len());
    }
}
