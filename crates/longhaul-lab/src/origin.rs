//! Where a need was last seen: in the result of which kind of tool, or in what was said.

use longhaul::conversation::made_by;
use longhaul::digest::ToolKind;
use longhaul::{Role, ToolCall};

/// Where a need was last seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The result of a tool that reads a file.
    Read,
    /// The result of a tool that lists or searches.
    Search,
    /// The output of a command.
    Command,
    /// What a script printed.
    Script,
    /// The result of a tool that changes a file.
    Change,
    /// The result of any other tool, of MCP servers too.
    Other,
    /// Words, thinking and calls.
    Said,
}

impl Origin {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 7] =
        [Self::Read, Self::Search, Self::Command, Self::Script, Self::Change, Self::Other, Self::Said];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Search => "search",
            Self::Command => "command",
            Self::Script => "script",
            Self::Change => "change",
            Self::Other => "other",
            Self::Said => "said",
        }
    }

    /// Of a message by this role; `call` is the call that its result answers, if it is one and the call is known.
    pub(crate) fn of(role: Role, call: Option<Self>) -> Self {
        match role {
            Role::Tool => call.unwrap_or(Self::Other),
            _ => Self::Said,
        }
    }

    /// Of the result of a call.
    pub(crate) fn of_result(call: &ToolCall) -> Self {
        if made_by(call).is_script() {
            return Self::Script;
        }
        match ToolKind::of(&call.name, &call.arguments) {
            ToolKind::Read => Self::Read,
            ToolKind::Ls | ToolKind::Glob | ToolKind::Grep => Self::Search,
            ToolKind::Bash => Self::Command,
            ToolKind::Edit | ToolKind::Write => Self::Change,
            ToolKind::Todo | ToolKind::Recall | ToolKind::Other => Self::Other,
        }
    }
}
