//! A client that reads one file after the other, over each API.

#![allow(dead_code)]

use longhaul_fake::Twin;
use longhaul_wire::api::Api;
use serde_json::{Value, json};

pub const APIS: [Api; 3] = [Api::Anthropic, Api::Chat, Api::Responses];

/// The tool result of a step.
pub fn result(n: usize) -> String {
    (0..30).map(|line| format!("fn helper_{n}_{line}(value: u32) -> u32 {{ value + {line} }}\n")).collect()
}

/// What an agent has said and heard after so many steps, as its API writes it.
pub fn conversation(api: Api, steps: usize) -> Vec<Value> {
    let mut all = vec![json!({"role": "user", "content": "Read all files: which one defines `main`?"})];
    for n in 0..steps {
        let (id, arguments) = (format!("call_{n}"), json!({ "path": format!("src/file_{n}.rs") }));
        let (said, text) = (format!("I read file {n}."), arguments.to_string());
        match api {
            Api::Anthropic => {
                let call = json!({"type": "tool_use", "id": id, "name": "Read", "input": arguments});
                let result = json!({"type": "tool_result", "tool_use_id": id, "content": result(n)});
                all.push(json!({"role": "assistant", "content": [{"type": "text", "text": said}, call]}));
                all.push(json!({"role": "user", "content": [result]}));
            }
            Api::Chat => {
                let call =
                    json!({"id": id, "type": "function", "function": {"name": "Read", "arguments": text}});
                all.push(json!({"role": "assistant", "content": said, "tool_calls": [call]}));
                all.push(json!({"role": "tool", "tool_call_id": id, "content": result(n)}));
            }
            Api::Responses => {
                let words = json!([{"type": "output_text", "text": said}]);
                all.push(json!({"type": "message", "role": "assistant", "content": words}));
                all.push(json!({"type": "function_call", "call_id": id, "name": "Read", "arguments": text}));
                all.push(json!({"type": "function_call_output", "call_id": id, "output": result(n)}));
            }
        }
    }
    all
}

/// The body of a request with these messages.
pub fn body_of(api: Api, model: &str, messages: &[Value], tools: bool) -> Value {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let tools = |definition: Value| if tools { json!([definition]) } else { json!([]) };
    match api {
        Api::Anthropic => {
            let tools = tools(json!({"name": "Read", "input_schema": schema}));
            json!({"model": model, "max_tokens": 1_000, "system": "You read files.", "stream": true,
                "tools": tools, "messages": messages})
        }
        Api::Chat => {
            let tools =
                tools(json!({"type": "function", "function": {"name": "Read", "parameters": schema}}));
            json!({"model": model, "stream": true, "tools": tools, "messages": messages})
        }
        Api::Responses => {
            let tools = tools(json!({"type": "function", "name": "Read", "parameters": schema}));
            json!({"model": model, "instructions": "You read files.", "store": false, "tools": tools,
                "input": messages})
        }
    }
}

/// A model of the provider that the tests run against.
pub fn model(api: Api) -> &'static str {
    match (api, Twin::of_environment().name) {
        (Api::Anthropic, _) => "claude-sonnet-4-5",
        (Api::Chat, "vllm_qwen") => "qwen3-coder",
        (Api::Chat, "gemma") => "gemma-3-27b-it",
        (Api::Chat | Api::Responses, _) => "gpt-4o",
    }
}
