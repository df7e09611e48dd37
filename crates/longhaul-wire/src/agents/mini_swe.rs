//! mini-swe-agent: one JSON object. The model writes its command in a code block; the next
//! user message is what it printed.

use longhaul::{Block, Message, Role, Usage};
use serde_json::{Value, json};

use super::Numbered;
use super::build::{call, content, number, opaque, result, said, text};

pub(super) fn fits(first: &Value) -> bool {
    first.get("messages").is_some_and(Value::is_array)
        && (text(first, "trajectory_format").starts_with("mini-swe-agent") || first.get("info").is_some())
}

pub(super) fn read(file: &Value) -> Vec<Numbered> {
    let messages = file.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let model = file.pointer("/info/config/model/model_name").and_then(Value::as_str).unwrap_or_default();
    let mut open: Option<String> = None;
    let mut calls = 0;
    let mut out = Vec::new();
    for message in messages {
        let blocks = content(message.get("content"), block);
        out.push(match text(message, "role") {
            "system" => Message::new(Role::System, blocks),
            "assistant" => {
                let said: String = blocks
                    .iter()
                    .filter_map(|b| if let Block::Text(t) = b { Some(&*t.text) } else { None })
                    .collect();
                let mut blocks = blocks;
                if let Some(command) = command(&said) {
                    calls += 1;
                    let id = format!("call_{calls:04}");
                    blocks.push(call(&id, "bash", &json!({ "command": command })));
                    open = Some(id);
                }
                let mut answer = Message::new(Role::Assistant, blocks);
                if let Some(usage) = message.pointer("/extra/response/usage") {
                    let cached = usage
                        .pointer("/prompt_tokens_details/cached_tokens")
                        .and_then(Value::as_u64)
                        .unwrap_or_default();
                    answer = answer.with_usage(Usage {
                        input: number(usage, "prompt_tokens").saturating_sub(cached),
                        output: number(usage, "completion_tokens"),
                        cache_read: cached,
                        ..Usage::default()
                    });
                }
                if model.is_empty() { answer } else { answer.with_model(model) }
            }
            _ => match open.take() {
                Some(id) => result(&id, Some("bash"), blocks, false),
                None => said(blocks),
            },
        });
    }
    out.into_iter().map(|message| (0, message)).collect()
}

/// The command: the first fenced block of a shell, else the first of all.
fn command(text: &str) -> Option<&str> {
    let shell = fenced(text).find(|(language, _)| {
        ["bash", "sh", "shell", "mswea_bash_command"].contains(&language.to_ascii_lowercase().as_str())
    });
    shell.or_else(|| fenced(text).next()).map(|(_, body)| body)
}

/// Fenced blocks, each with the word behind its fence.
fn fenced(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (language, body) = rest[rest.find("```")? + 3..].split_once('\n')?;
        let end = body.find("\n```").or_else(|| body.find("```"))?;
        let behind = body[end..].find("```").map_or(body.len(), |fence| end + fence + 3);
        rest = &body[behind..];
        Some((language.trim(), body[..end].trim()))
    })
}

fn block(value: &Value) -> Block {
    match text(value, "type") {
        "text" => Block::text(text(value, "text")),
        _ => opaque(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_that_of_the_shell() {
        let said = "Like so:\n```python\ndef f(): pass\n```\nI run it.\n```bash\npython f.py\n```\n";
        assert_eq!(command(said), Some("python f.py"));
        assert_eq!(command("```\nls -la\n```"), Some("ls -la"));
        assert_eq!(command("```python\nprint()\n```"), Some("print()"));
        assert_eq!(command("```mswea_bash_command\nls\n```"), Some("ls"));
        assert_eq!(command("no block"), None);
        assert_eq!(command("```bash\ncut off"), None);
    }
}
