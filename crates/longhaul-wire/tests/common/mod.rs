//! What tests of requests have in common.

use longhaul_wire::api::Api;
use serde_json::{Value, json};

/// One element of a list, in the way that an API writes it.
pub fn element(api: Api, kind: u8, n: usize, text: &str) -> Value {
    let id = format!("call_{n}");
    let path = json!({"path": text, "n": n});
    match (api, kind % 6) {
        (Api::Anthropic, 0) => json!({"role": "user", "content": text}),
        (Api::Anthropic, 1) => json!({"role": "user", "content": [{"type": "text", "text": text}]}),
        (Api::Anthropic, 2) => {
            json!({"role": "assistant", "content": [{"type": "thinking", "thinking": text, "signature": "s"}, {"type": "tool_use", "id": id, "name": "Read", "input": path}]})
        }
        (Api::Anthropic, 3) => {
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]})
        }
        (Api::Anthropic, 4) => {
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": text}]}, {"type": "text", "text": "and this"}]})
        }
        (Api::Anthropic, _) => json!({"role": "system", "content": [], "output_config": {"n": n}}),
        (Api::Chat, 0 | 1) => json!({"role": "user", "content": text}),
        (Api::Chat, 2) => {
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": {"name": "Read", "arguments": path.to_string()}}]})
        }
        (Api::Chat, 3) => json!({"role": "tool", "tool_call_id": id, "content": text}),
        (Api::Chat, 4) => {
            json!({"role": "tool", "content": [{"type": "text", "text": text}], "tool_call_id": id})
        }
        (Api::Chat, _) => json!({"role": "developer", "content": text}),
        (Api::Responses, 0) => {
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
        }
        (Api::Responses, 1) => {
            json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": text})
        }
        (Api::Responses, 2) => {
            json!({"type": "function_call", "call_id": id, "name": "Read", "arguments": path.to_string()})
        }
        (Api::Responses, 3) => json!({"type": "function_call_output", "call_id": id, "output": text}),
        (Api::Responses, 4) => {
            json!({"type": "function_call_output", "call_id": id, "output": [{"type": "input_text", "text": text}]})
        }
        (Api::Responses, _) => {
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
        }
    }
}
