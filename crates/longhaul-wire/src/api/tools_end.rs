//! Where the tools of a body end: one more tool is written there, and every other byte stays as it is.

use crate::scan::Value;

/// The place behind the last tool of a body. It is counted from the side of the conversation on which the tools
/// stand: the place is the same however long the conversation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolsEnd {
    /// So many bytes behind the start of the body.
    BehindStart(usize),
    /// So many bytes before the end of the body.
    BeforeEnd(usize),
}

impl ToolsEnd {
    /// Where these tools end in a body of so many bytes, whose conversation begins at `list`. `None` if they are no
    /// list, or an empty one: who has no tools runs none.
    pub fn of(tools: Value<'_>, list: Option<usize>, body: usize) -> Option<Self> {
        let end = tools.elements().last().filter(|_| tools.is_array())?.end();
        let is_before = list.is_none_or(|list| end <= list);
        Some(if is_before { Self::BehindStart(end) } else { Self::BeforeEnd(body.checked_sub(end)?) })
    }

    /// A body with one tool more.
    pub fn with(self, body: &str, tool: &str) -> String {
        let place = match self {
            Self::BehindStart(bytes) => bytes,
            Self::BeforeEnd(bytes) => body.len().saturating_sub(bytes),
        };
        match body.split_at_checked(place) {
            Some((before, behind)) => [before, ",", tool, behind].concat(),
            // The tools stand around every conversation of this body: there is always such a place.
            None => body.to_owned(),
        }
    }
}
