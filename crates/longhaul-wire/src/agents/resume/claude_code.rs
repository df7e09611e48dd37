//! A session of Claude Code: a line per message, each naming the one before.

use std::sync::Arc;

use longhaul::{Message, Role};
use serde_json::{Value, json};

use super::{About, File, units};

/// The version whose files these are, where the conversation comes from no file of Claude Code.
const VERSION: &str = "2.1.325";

pub(super) fn write(messages: &[Arc<Message>], about: About<'_>, file: &mut File) {
    let mut parent: Option<String> = None;
    for unit in units(messages) {
        if unit.role() == Role::System {
            file.left_out.push("system messages: Claude Code has its own".to_owned());
            continue;
        }
        for mut message in unit.anthropic(file) {
            let id = file.next_id();
            let mut line = json!({
                "parentUuid": parent,
                "isSidechain": false,
                "userType": "external",
                "cwd": about.origin.folder,
                "sessionId": file.session,
                "version": about.origin.said("version").unwrap_or(VERSION),
                "gitBranch": about.origin.said("gitBranch").unwrap_or_default(),
                "type": message["role"].clone(),
                "uuid": id,
                "timestamp": unit.timestamp(),
            });
            if message["role"] == "assistant" {
                message["id"] = json!(format!("msg_{}", id.replace('-', "")));
                message["type"] = json!("message");
                message["model"] = json!(about.model);
                message["stop_reason"] = Value::Null;
                message["stop_sequence"] = Value::Null;
                message["usage"] = json!({"input_tokens": 0, "output_tokens": 0});
            } else if unit.is_of_host() {
                line["isMeta"] = json!(true);
            }
            line["message"] = message;
            file.line(&line);
            parent = Some(id);
        }
    }
}
