//! Signed thinking that no longer follows the prefix that produced it. A model that binds thinking refuses such a
//! block, so it is gone for good: an undo does not bring it back.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::conversation::log::{Position, Span};
use crate::conversation::message::{Block, Message, Seal, Thinking};
use crate::edits::archive::Handle;
use crate::edits::edit::EditId;
use crate::size::tokens::Tokens;

/// A run of the log whose signed thinking is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unbound {
    /// Where the thinking stood.
    pub span: Span,
    /// The edit that changed what stands before it, if it was one: otherwise the host or the client did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<EditId>,
    /// Tokens of the thinking that was shown.
    pub tokens: Tokens,
    /// The messages whose thinking was shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LostThinking>,
    /// The provider has refused it: forks that share these messages leave it out too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
}

/// The thinking that a message has lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostThinking {
    /// The message.
    pub at: Position,
    /// The handle of all its thinking.
    pub original: Handle,
    /// What stays of it, as text of the assistant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excerpts: Vec<Excerpt>,
}

/// The beginning of a text that was thought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excerpt {
    /// Which block of the message.
    pub block: usize,
    /// What is shown in its place.
    pub text: Arc<str>,
}

impl Unbound {
    /// The same without a word of what was thought.
    pub(crate) fn without_content(&self) -> Self {
        let lost = self.lost.iter().map(|lost| LostThinking { excerpts: Vec::new(), ..lost.clone() });
        Self { lost: lost.collect(), ..self.clone() }
    }
}

/// The thinking of a message that is bound to its prefix, with the number of each block.
pub(crate) fn signed(message: &Message) -> impl Iterator<Item = (usize, &Thinking)> {
    message.blocks().iter().enumerate().filter_map(|(block, content)| match content {
        Block::Thinking(thinking) if is_signed(&thinking.seal) => Some((block, thinking)),
        _ => None,
    })
}

/// True for what Anthropic signs. Encrypted reasoning of OpenAI is bound to nothing.
pub(crate) fn is_signed(seal: &Seal) -> bool {
    matches!(seal, Seal::Signed(_) | Seal::Redacted(Some(_)))
}

/// Runs of the log, in order and apart from each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Runs(Vec<Span>);

impl Runs {
    pub(crate) fn add(&mut self, span: Span) {
        let first = self.0.partition_point(|known| known.end < span.start);
        let end = self.0.partition_point(|known| known.start <= span.end);
        let touched = &self.0[first..end];
        let start = touched.first().map_or(span.start, |known| known.start.min(span.start));
        let last = touched.last().map_or(span.end, |known| known.end.max(span.end));
        self.0.splice(first..end, [Span { start, end: last }]);
    }

    pub(crate) fn contains(&self, at: Position) -> bool {
        let next = self.0.partition_point(|known| known.end <= at);
        self.0.get(next).is_some_and(|known| known.start <= at)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_merged() {
        let mut runs = Runs::default();
        for (start, end) in [(4, 6), (10, 12), (0, 1), (6, 10), (20, 30), (25, 26)] {
            runs.add(Span::new(start, end));
        }
        assert_eq!(runs.0, [Span::new(0, 1), Span::new(4, 12), Span::new(20, 30)]);
        let inside: Vec<u32> = (0..32).filter(|at| runs.contains(Position(*at))).collect();
        let expected: Vec<u32> = [0].into_iter().chain(4..12).chain(20..30).collect();
        assert_eq!(inside, expected);
    }
}
