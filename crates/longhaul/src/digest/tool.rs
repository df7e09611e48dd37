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
/// SWE-agent, OpenHands, aider, Jarvis.
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
            "ask_codebase",
            "find_symbol",
            "find_caller",
            "lsp_find_references",
            "lsp_find_symbols",
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
            "read_code",
            "read_symbols",
            "lsp_find_definition",
            "lsp_get_document_symbols",
            "lsp_get_diagnostics",
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
            "edit_file_by_line",
            "edit_file_free",
            "edit_file_normal",
            "edit_file_structed",
            "file_search_replace",
        ],
    ),
    (
        ToolKind::Write,
        &["write", "write_file", "create", "create_file", "write_to_file", "save_file", "rewrite_file"],
    ),
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
            "execute_script",
            "execute_shell",
            "execute_shell_script",
            "execute_python_script",
            "virtual_tty",
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
            "task_list_manager",
            "task_list",
        ],
    ),
    (ToolKind::Recall, &["recall", "longhaul_recall", "retrieve_memory"]),
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
        if name == "file_operation" {
            return match arguments.value().get("operation").and_then(Value::as_str) {
                Some("write") => Self::Write,
                _ => Self::Read,
            };
        }
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

    /// The files that a call reads or changes: those that it lists, the one that it is about, or those that a
    /// patch among its arguments names.
    pub fn files(self, arguments: &Json) -> Vec<String> {
        let value = arguments.value();
        match self {
            Self::Read | Self::Edit | Self::Write => {
                let listed = files_in(&value);
                if listed.len() > 1 {
                    return listed;
                }
                let subject = self.subject(arguments);
                let subject = subject.trim();
                if subject.is_empty() { patched(&value) } else { vec![subject.to_owned()] }
            }
            // A patch may be given to a shell.
            Self::Bash => patched(&serde_json::json!({ "patch": self.subject(arguments) })),
            _ => Vec::new(),
        }
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
            Self::Bash => &["command", "cmd", "code", "script", "script_content", "keys", "input"],
            Self::Grep | Self::Glob => &["pattern", "query", "regex", "search_term", "path"],
            _ => &["file_path", "path", "absolute_path", "filePath", "target_file", "filename", "paths"],
        };
        names.iter().find_map(|name| text(value.get(name)?)).unwrap_or_else(|| files_in(&value).join(" "))
    }
}

/// Files that a patch names.
fn patched(arguments: &Value) -> Vec<String> {
    const SIGNS: [&str; 5] =
        ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ", "+++ b/"];
    let texts =
        ["input", "patch", "diff"].iter().filter_map(|name| arguments.get(name).and_then(Value::as_str));
    let named =
        |line: &str| SIGNS.iter().find_map(|sign| line.strip_prefix(sign)).map(|path| path.trim().to_owned());
    // A script may compute a path that nobody knows.
    texts.flat_map(|text| text.lines().filter_map(named)).filter(|path| !path.contains("${")).collect()
}

fn files_in(arguments: &Value) -> Vec<String> {
    let files = arguments.get("files").and_then(Value::as_array);
    let path = |file: &Value| {
        ["path", "file_path"].iter().find_map(|name| file.get(name)?.as_str()).map(str::to_owned)
    };
    files.into_iter().flatten().filter_map(path).collect()
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
            ("read_code", ToolKind::Read),
            ("read_webpage", ToolKind::Other),
            ("lsp_get_document_symbols", ToolKind::Read),
            ("ask_codebase", ToolKind::Grep),
            ("edit_file", ToolKind::Edit),
            ("rewrite_file", ToolKind::Write),
            ("execute_script", ToolKind::Bash),
            ("virtual_tty", ToolKind::Bash),
            ("task_list_manager", ToolKind::Todo),
            ("retrieve_memory", ToolKind::Recall),
            ("save_memory", ToolKind::Other),
            ("clear_memory", ToolKind::Other),
            ("search_web", ToolKind::Other),
            ("sub_agent", ToolKind::Other),
            ("sub_code_agent", ToolKind::Other),
            ("arguments", ToolKind::Other),
            ("WebFetch", ToolKind::Other),
        ] {
            assert_eq!(kind(name, "{}"), want, "{name}");
        }
        assert_eq!(kind("str_replace_editor", r#"{"command":"view"}"#), ToolKind::Read);
        assert_eq!(kind("str_replace_editor", r#"{"command":"str_replace"}"#), ToolKind::Edit);
        assert_eq!(kind("file_operation", r#"{"operation":"read"}"#), ToolKind::Read);
        assert_eq!(kind("file_operation", r#"{"operation":"write"}"#), ToolKind::Write);
    }

    #[test]
    fn what_a_call_is_about() {
        let subject = |kind: ToolKind, json: &str| kind.subject(&Json::new(json).unwrap());
        assert_eq!(subject(ToolKind::Bash, r#"{"command":["bash","-lc","cargo test"]}"#), "cargo test");
        assert_eq!(subject(ToolKind::Bash, r#"{"cmd":"ls"}"#), "ls");
        assert_eq!(subject(ToolKind::Read, r#"{"file_path":"a.rs"}"#), "a.rs");
        assert_eq!(subject(ToolKind::Grep, r#"{"pattern":"x","path":"src"}"#), "x");
        assert_eq!(subject(ToolKind::Read, "[]"), "");
        let files = r#"{"files":[{"path":"a.rs","start_line":1},{"file_path":"b.rs"}]}"#;
        assert_eq!(subject(ToolKind::Read, files), "a.rs b.rs");
        assert_eq!(
            subject(ToolKind::Bash, r#"{"interpreter":"bash","script_content":"cargo test"}"#),
            "cargo test"
        );
    }
}
