//! Tools that work on the conversation itself: the task list, memories, and what was left out of it.

use longhaul::{RecallPart, Session};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::envelope::{Code, Envelope, ToolError};
use crate::tool::{Definition, read_arguments};

/// A tool of the conversation.
pub(crate) struct SessionTool {
    name: &'static str,
    description: &'static str,
    schema: fn() -> Value,
    run: fn(&mut Session, Value) -> Result<Envelope, ToolError>,
}

/// All of them.
pub(crate) const SESSION_TOOLS: [SessionTool; 3] = [
    SessionTool {
        name: "TodoWrite",
        description: "Writes the task list of the session, all of it each time. Use it for work of several steps: \
            one task in progress at a time, tasks marked done at once.",
        schema: todo_schema,
        run: write_todos,
    },
    SessionTool {
        name: "Remember",
        description: "Keeps a short text for the rest of the session, whatever is taken out of the conversation: a \
            decision, a preference of the user, a fact that was hard to find. The same `name` replaces it.",
        schema: remember_schema,
        run: remember,
    },
    SessionTool {
        name: RECALL,
        description: "Gives back what was left out of this conversation, word for word: marks such as \
            ⟦… recall 64d58613deff⟧ name a handle. Without a handle, `pattern` searches the whole session.",
        schema: recall_schema,
        run: recall,
    },
];

/// The tool that gives back what was left out.
pub(crate) const RECALL: &str = "Recall";

/// Bytes that are given back at once.
const PAGE: usize = 60_000;
/// Matches of a search.
const MATCHES: usize = 50;
/// Tasks of a list, and characters of one.
const TODOS: (usize, usize) = (100, 500);
/// Characters of a memory.
const MEMORY: usize = 4_000;

impl SessionTool {
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        SESSION_TOOLS.iter().find(|tool| tool.name.eq_ignore_ascii_case(name))
    }

    pub(crate) fn definition(&self) -> Definition {
        Definition {
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            schema: (self.schema)(),
        }
    }

    pub(crate) fn run(&self, session: &mut Session, arguments: Value) -> Envelope {
        let asked = arguments.clone();
        let mut envelope = Envelope::from((self.run)(session, arguments));
        envelope.context.insert("params_input".to_owned(), asked);
        envelope
    }
}

#[derive(Deserialize)]
struct Todos {
    todos: Vec<Todo>,
}

#[derive(Deserialize)]
struct Todo {
    #[serde(alias = "task", alias = "description")]
    content: String,
    #[serde(default)]
    status: TodoStatus,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "snake_case")]
enum TodoStatus {
    #[default]
    Pending,
    InProgress,
    #[serde(alias = "done")]
    Completed,
    Cancelled,
}

impl TodoStatus {
    fn mark(self) -> &'static str {
        match self {
            Self::Pending => "[ ]",
            Self::InProgress => "[>]",
            Self::Completed => "[x]",
            Self::Cancelled => "[-]",
        }
    }
}

fn todo_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "todos": { "type": "array", "items": {
            "type": "object",
            "properties": {
                "content": { "type": "string" },
                "status": { "type": "string", "enum": ["pending", "in_progress", "completed", "cancelled"] },
            },
            "required": ["content", "status"],
        } } },
        "required": ["todos"],
    })
}

fn write_todos(session: &mut Session, arguments: Value) -> Result<Envelope, ToolError> {
    let Todos { todos } = read_arguments("TodoWrite", arguments)?;
    let (most, longest) = TODOS;
    if todos.len() > most || todos.iter().any(|todo| todo.content.chars().count() > longest) {
        let message = format!("a list has at most {most} tasks of {longest} characters each");
        return Err(ToolError::new(Code::TooLarge, message));
    }
    let line = |todo: &Todo| format!("{} {}", todo.status.mark(), todo.content.replace(['\n', '\r'], " "));
    let recap = todos.iter().map(line).collect::<Vec<_>>().join("\n");
    session.set_todos((!todos.is_empty()).then_some(recap.as_str()));
    let done = todos.iter().filter(|todo| todo.status == TodoStatus::Completed).count();
    let text = format!("{} tasks, {done} done", todos.len());
    Ok(Envelope::success(text).with("recap", recap).with("total", todos.len()))
}

#[derive(Deserialize)]
struct Memory {
    #[serde(default)]
    name: Option<String>,
    #[serde(alias = "content", alias = "memory")]
    text: String,
}

fn remember_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "text": { "type": "string" },
            "name": { "type": "string", "description": "A word or two; what has the same name is replaced" },
        },
        "required": ["text"],
    })
}

fn remember(session: &mut Session, arguments: Value) -> Result<Envelope, ToolError> {
    let Memory { name, text } = read_arguments("Remember", arguments)?;
    if text.trim().is_empty() || text.chars().count() > MEMORY {
        return Err(ToolError::new(Code::InvalidParam, format!("a memory has 1 to {MEMORY} characters")));
    }
    let name = name.filter(|name| !name.trim().is_empty());
    let name = name.unwrap_or_else(|| text.split_whitespace().take(6).collect::<Vec<_>>().join(" "));
    session.remember(name.as_str(), text.as_str());
    Ok(Envelope::success(format!("Remembered: {name}")).with("name", name))
}

#[derive(Deserialize)]
struct Recalled {
    #[serde(default)]
    handle: Option<String>,
    #[serde(default)]
    lines: Option<String>,
    #[serde(default)]
    pattern: Option<String>,
    /// Bytes to leave out at the start.
    #[serde(default)]
    offset: usize,
}

fn recall_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "handle": { "type": "string", "description": "What a mark names, such as 64d58613deff" },
            "lines": { "type": "string", "description": "Only these lines, such as 10-40" },
            "pattern": { "type": "string", "description": "Only lines that this regular expression fits" },
            "offset": { "type": "integer", "description": "Bytes to leave out at the start, to go on" },
        },
    })
}

fn recall(session: &mut Session, arguments: Value) -> Result<Envelope, ToolError> {
    let asked: Recalled = read_arguments(RECALL, arguments)?;
    let bad = |message: String| ToolError::new(Code::InvalidParam, message);
    let Some(handle) = asked.handle.filter(|handle| !handle.trim().is_empty()) else {
        let Some(pattern) = asked.pattern else {
            return Err(bad("a handle is wanted, or a pattern to search the session for".to_owned()));
        };
        let found = session.search(&pattern, MATCHES).map_err(|error| bad(error.to_string()))?;
        let line = |found: &longhaul::Found| format!("{}:{}: {}", found.at.0, found.number, found.line);
        let plain = found.iter().map(line).collect::<Vec<_>>().join("\n");
        let plain = if plain.is_empty() { format!("nothing fits `{pattern}`") } else { plain };
        let text = format!("{} lines fit `{pattern}`", found.len());
        return Ok(Envelope::success(text)
            .with("pattern", pattern)
            .with("content", plain.clone())
            .plain(plain));
    };
    let part = match (&asked.lines, asked.pattern) {
        (None, None) => RecallPart::Whole,
        (Some(lines), _) => {
            let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
            match (first.trim().parse(), last.trim().parse()) {
                (Ok(first), Ok(last)) => RecallPart::Lines(first, last),
                _ => return Err(bad(format!("`{lines}` are no lines: such as 10-40 is wanted"))),
            }
        }
        (None, Some(pattern)) => RecallPart::Pattern(pattern),
    };
    let text = session
        .recall(handle.trim(), &part)
        .map_err(|error| ToolError::new(Code::NotFound, error.to_string()))?;
    let start = text.floor_char_boundary(asked.offset.min(text.len()));
    let end = text.floor_char_boundary((start + PAGE).min(text.len()));
    let mut plain = text[start..end].to_owned();
    if end < text.len() {
        plain.push_str(&format!("\n… {} bytes more: offset {end} goes on", text.len() - end));
    }
    let envelope = Envelope::success(format!("{} of {} bytes", end - start, text.len()));
    Ok(envelope
        .with("handle", handle)
        .with("content", plain.clone())
        .plain(plain)
        .partial_if(end < text.len()))
}
