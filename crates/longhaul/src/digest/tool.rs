//! Tools by what they do, whatever an agent calls them.

use serde_json::Value;

use crate::conversation::json::Json;
use crate::conversation::message::ToolCall;

/// What a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToolKind {
    /// Lists a folder.
    Ls,
    /// Finds files by name.
    Glob,
    /// Finds lines.
    Grep,
    /// Reads a file.
    Read,
    /// Changes a file.
    Edit,
    /// Writes a file.
    Write,
    /// Runs a command.
    Bash,
    /// Keeps a list of tasks.
    Todo,
    /// Reads back what an edit took out.
    Recall,
    /// Anything else.
    Other,
}

/// Names of tools, in lower case: Claude Code, Codex, pi, opencode, Gemini CLI, mini-swe-agent,
/// SWE-agent, OpenHands, aider.
const ALIASES: [(ToolKind, &[&str]); 9] = [
    (ToolKind::Ls, &["ls", "list", "list_dir", "list_directory", "list_files", "tree"]),
    (ToolKind::Glob, &["glob", "find", "find_file", "find_files", "file_search", "glob_search"]),
    (
        ToolKind::Grep,
        &[
            "grep",
            "grep_files",
            "search",
            "search_dir",
            "search_file",
            "search_file_content",
            "search_files",
            "codebase_search",
            "grep_search",
            "ripgrep",
            "rg",
        ],
    ),
    (
        ToolKind::Read,
        &[
            "read",
            "read_file",
            "read_many_files",
            "notebookread",
            "view",
            "view_file",
            "open",
            "goto",
            "scroll_up",
            "scroll_down",
            "cat",
            "open_file",
        ],
    ),
    (
        ToolKind::Edit,
        &[
            "edit",
            "multiedit",
            "notebookedit",
            "apply_patch",
            "patch",
            "replace",
            "edit_file",
            "str_replace",
            "search_replace",
            "insert",
            "multi_edit",
            "undo_edit",
        ],
    ),
    (ToolKind::Write, &["write", "write_file", "create", "create_file", "write_to_file", "save_file"]),
    (
        ToolKind::Bash,
        &[
            "bash",
            "bashoutput",
            "shell",
            "shell_command",
            "exec_command",
            "local_shell",
            "exec",
            "execute_bash",
            "run",
            "run_shell_command",
            "run_command",
            "run_terminal_cmd",
            "terminal",
            "container.exec",
            "unified_exec",
            "write_stdin",
            "run_ipython",
            "execute_ipython_cell",
            "execute_command",
            "command",
            "shell_call",
        ],
    ),
    (
        ToolKind::Todo,
        &[
            "todowrite",
            "todoread",
            "update_plan",
            "write_todos",
            "task_tracker",
            "todo",
            "todo_write",
            "todo_read",
        ],
    ),
    (ToolKind::Recall, &["recall", "longhaul_recall"]),
];

/// Names of tools beside the built-in ones, as a host or a user gives them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aliases {
    names: Vec<(Box<str>, ToolKind)>,
}

impl Aliases {
    /// This name means a tool of this kind.
    pub fn add(&mut self, name: &str, kind: ToolKind) {
        self.names.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.names.push((name.into(), kind));
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, ToolKind)> {
        self.names.iter().map(|(name, kind)| (&**name, *kind))
    }

    /// The kind of the tool that is called.
    pub fn kind_of(&self, call: &ToolCall) -> ToolKind {
        let known = self.names.iter().find(|(name, _)| name.eq_ignore_ascii_case(&call.name));
        known.map_or_else(|| ToolKind::of(&call.name, &call.arguments), |(_, kind)| *kind)
    }
}

impl ToolKind {
    /// All kinds, by the names that a user gives them.
    pub const NAMES: [(&str, Self); 10] = [
        ("ls", Self::Ls),
        ("glob", Self::Glob),
        ("grep", Self::Grep),
        ("read", Self::Read),
        ("edit", Self::Edit),
        ("write", Self::Write),
        ("bash", Self::Bash),
        ("todo", Self::Todo),
        ("recall", Self::Recall),
        ("other", Self::Other),
    ];

    /// The kind of a tool by its name, and by its arguments where one tool does several things.
    pub fn of(name: &str, arguments: &Json) -> Self {
        let name = name.rsplit(['.', '/']).next().unwrap_or(name).to_ascii_lowercase();
        // A tool of a server is named after it: mcp__files__read_file.
        let name = name.rsplit("__").next().unwrap_or(&name);
        if matches!(name, "str_replace_editor" | "str_replace_based_edit_tool" | "file_editor") {
            return match arguments.value().get("command").and_then(Value::as_str) {
                Some("view") => Self::Read,
                Some("create") => Self::Write,
                _ => Self::Edit,
            };
        }
        let row = ALIASES.iter().find(|(_, names)| names.contains(&name));
        row.map_or(Self::Other, |(kind, _)| *kind)
    }

    /// The command line of a call that runs one, or the path or pattern of any other.
    pub fn subject(self, arguments: &Json) -> String {
        let value = arguments.value();
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Array(words) => {
                let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                // A shell that runs a script: the script is the command.
                let script = matches!(words.as_slice(), [_, "-c" | "-lc", _, ..]);
                Some(if script { words[2].to_owned() } else { words.join(" ") })
            }
            _ => None,
        };
        let names: &[&str] = match self {
            Self::Bash => &["command", "cmd", "code", "script", "input"],
            Self::Grep | Self::Glob => &["pattern", "query", "regex", "search_term", "path"],
            _ => &["file_path", "path", "absolute_path", "filePath", "target_file", "filename", "paths"],
        };
        names.iter().find_map(|name| text(value.get(name)?)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: S-9
    #[test]
    fn tools_of_many_agents_are_of_few_kinds() {
        let kind = |name: &str, json: &str| ToolKind::of(name, &Json::new(json).unwrap());
        for (name, want) in [
            ("LS", ToolKind::Ls),
            ("list_directory", ToolKind::Ls),
            ("Glob", ToolKind::Glob),
            ("search_file_content", ToolKind::Grep),
            ("Read", ToolKind::Read),
            ("mcp__files__read_file", ToolKind::Read),
            ("apply_patch", ToolKind::Edit),
            ("write_file", ToolKind::Write),
            ("exec_command", ToolKind::Bash),
            ("run_shell_command", ToolKind::Bash),
            ("execute_bash", ToolKind::Bash),
            ("container.exec", ToolKind::Bash),
            ("update_plan", ToolKind::Todo),
            ("recall", ToolKind::Recall),
            ("longhaul_recall", ToolKind::Recall),
            ("mcp__longhaul__recall", ToolKind::Recall),
            ("arguments", ToolKind::Other),
            ("WebFetch", ToolKind::Other),
        ] {
            assert_eq!(kind(name, "{}"), want, "{name}");
        }
        assert_eq!(kind("str_replace_editor", r#"{"command":"view"}"#), ToolKind::Read);
        assert_eq!(kind("str_replace_editor", r#"{"command":"str_replace"}"#), ToolKind::Edit);
    }

    #[test]
    fn what_a_call_is_about() {
        let subject = |kind: ToolKind, json: &str| kind.subject(&Json::new(json).unwrap());
        assert_eq!(subject(ToolKind::Bash, r#"{"command":["bash","-lc","cargo test"]}"#), "cargo test");
        assert_eq!(subject(ToolKind::Bash, r#"{"cmd":"ls"}"#), "ls");
        assert_eq!(subject(ToolKind::Read, r#"{"file_path":"a.rs"}"#), "a.rs");
        assert_eq!(subject(ToolKind::Grep, r#"{"pattern":"x","path":"src"}"#), "x");
        assert_eq!(subject(ToolKind::Read, "[]"), "");
    }
}
