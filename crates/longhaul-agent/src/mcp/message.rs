//! Messages of JSON-RPC: questions, answers, and what is wrong with them.

use serde_json::{Value, json};

/// Why a server gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum McpError {
    /// It could not be started or reached, or is gone.
    #[error("{0}")]
    Gone(String),
    /// It says that something is wrong.
    #[error("the server says: {0}")]
    Refused(String),
    /// It says what nobody understands.
    #[error("the server does not speak the protocol: {0}")]
    Garbled(String),
    /// It did not answer in time.
    #[error("the server did not answer in time")]
    Slow,
}

/// A question.
pub(super) fn question(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Something that wants no answer.
pub(super) fn notice(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// What we say to a question of the server: it is told that we are there, and that we can do nothing for it.
pub(super) fn reply_to(message: &Value) -> Option<Value> {
    let (id, method) = (message.get("id")?, message.get("method")?.as_str()?);
    Some(match method {
        "ping" => json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
        _ => json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "not offered" } }),
    })
}

/// The answer in a message, if it is one, and the number of its question.
pub(super) fn answer(mut message: Value) -> Option<(u64, Result<Value, McpError>)> {
    if message.get("method").is_some() {
        return None;
    }
    let id = message.get("id")?.as_u64()?;
    if let Some(error) = message.get("error") {
        let says = error["message"].as_str().map_or_else(|| error.to_string(), str::to_owned);
        let says: String = says.chars().take(2_000).collect();
        return Some((id, Err(McpError::Refused(says))));
    }
    Some((id, Ok(message["result"].take())))
}
