//! Requests in the shape of those of real agents: their structure, headers, limits, sizes and cache marks, as seen in
//! November 2026. All words are our own.

use longhaul_gateway::Recall;
use longhaul_wire::api::Api;
use serde_json::{Value, json};

/// An agent that reads one file a call.
pub struct Agent {
    pub name: &'static str,
    pub api: Api,
    /// Tokens, as `--window` takes them.
    pub window: u64,
    /// Files that it reads. Each takes a call, and the answer takes one more.
    pub files: usize,
    /// How `longhaul wrap` lets it recall.
    pub recall: Recall,
    pub headers: &'static [(&'static str, &'static str)],
    /// The request that it sends after so many files.
    pub request: fn(usize) -> Value,
}

impl Agent {
    /// The limit for an answer that its requests name.
    pub fn max_tokens(&self) -> Option<u64> {
        let request = (self.request)(0);
        ["max_tokens", "max_completion_tokens", "max_output_tokens"]
            .iter()
            .find_map(|name| request[*name].as_u64())
    }
}

pub const AGENTS: [Agent; 7] = [
    Agent {
        name: "Claude Code 2.1.327",
        api: Api::Anthropic,
        window: 60_000,
        files: 30,
        recall: Recall::Mcp,
        headers: &CLAUDE_HEADERS,
        request: claude,
    },
    Agent {
        name: "Claude Code 2.1.327",
        api: Api::Anthropic,
        window: 120_000,
        files: 60,
        recall: Recall::Mcp,
        headers: &CLAUDE_HEADERS,
        request: claude,
    },
    Agent {
        name: "Codex 0.169.0",
        api: Api::Responses,
        window: 40_000,
        files: 30,
        recall: Recall::Fill,
        headers: &[("originator", "codex_exec"), ("session-id", "01a1f088-a263-7ec1-8836-a133c87113e6")],
        request: codex,
    },
    Agent {
        name: "pi 0.87.1",
        api: Api::Chat,
        window: 25_000,
        files: 30,
        recall: Recall::Fill,
        headers: &[],
        request: pi,
    },
    Agent {
        name: "opencode 1.18.33",
        api: Api::Chat,
        window: 32_000,
        files: 30,
        recall: Recall::Mcp,
        headers: &[("x-session-id", "ses_e0f76b8acffeh3e2HChYo2FUkB")],
        request: opencode,
    },
    Agent {
        name: "qwen-code 0.24.4",
        api: Api::Chat,
        window: 42_000,
        files: 30,
        recall: Recall::Mcp,
        headers: &[],
        request: qwen,
    },
    Agent {
        name: "mini-swe-agent 2.4.6",
        api: Api::Chat,
        window: 25_000,
        files: 30,
        recall: Recall::Mcp,
        headers: &[],
        request: mini,
    },
];

const CLAUDE_HEADERS: [(&str, &str); 4] = [
    ("anthropic-version", "2023-06-01"),
    (
        "anthropic-beta",
        "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,\
         per-turn-control-2026-07-01,mid-conversation-tool-changes-2026-07-01,thinking-token-count-2026-05-13,\
         advanced-tool-use-2025-11-20,effort-2025-11-24",
    ),
    ("user-agent", "claude-cli/2.1.327 (external, sdk-cli)"),
    ("x-claude-code-session-id", "ff7a512a-605f-440a-9311-23e2fd234124"),
];

const TASK: &str =
    "Read every file in src, one after the other, and say which of them loses the last row of a CSV file.";

/// The system prompt stands in three blocks, and the environment in a system message after the first input. That
/// message and the newest result carry the third mark.
fn claude(files: usize) -> Value {
    const TOOLS: [(&str, usize); 12] = [
        ("Agent", 5_372),
        ("Bash", 3_654),
        ("Edit", 1_006),
        ("ListAgents", 1_514),
        ("Read", 1_975),
        ("ReportFindings", 2_283),
        ("ScheduleWakeup", 5_017),
        ("Skill", 1_846),
        ("ToolSearch", 1_490),
        ("Workflow", 5_806),
        ("TaskList", 214),
        ("Write", 663),
    ];
    let mark = json!({"type": "ephemeral"});
    let environment = words("environment", 9_635);
    let environment = match files {
        0 => json!([{"type": "text", "text": environment, "cache_control": mark}]),
        _ => json!(environment),
    };
    let mut messages = vec![
        json!({"role": "user", "content": [
            {"type": "text", "text": words("reminder", 580)}, {"type": "text", "text": TASK}]}),
        json!({"role": "system", "content": environment, "output_config": {"effort": "medium"}}),
    ];
    for n in 0..files {
        let id = format!("toolu_01{n:022}");
        let input = json!({"command": command(n), "description": "Read the next file"});
        let mut result =
            json!({"tool_use_id": id, "type": "tool_result", "content": file(n), "is_error": false});
        if n + 1 == files {
            result["cache_control"] = mark.clone();
        }
        messages.push(json!({"role": "assistant", "content": [
            {"type": "text", "text": remark(n)}, {"type": "tool_use", "id": id, "name": "Bash", "input": input}]}));
        messages.push(json!({"role": "user", "content": [result]}));
    }
    let tools = tools(
        &TOOLS,
        |name, text, schema| json!({"name": name, "description": text, "input_schema": schema}),
    );
    json!({
        "model": "claude-opus-5-5",
        "messages": messages,
        "system": [
            {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.327.181; cc_entrypoint=sdk-cli;"},
            {"type": "text", "text": "You work on code with the tools that you are given.", "cache_control": mark},
            {"type": "text", "text": words("system", 5_849), "cache_control": mark},
        ],
        "tools": tools,
        "metadata": {"user_id": "{\"device_id\":\"90679b6b\",\"session_id\":\"ff7a512a-605f-440a-9311-23e2fd234124\"}"},
        "max_tokens": 128_000,
        "thinking": {"type": "adaptive", "display": "omitted"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "output_config": {"effort": "medium"},
        "stream": true,
    })
}

/// All instructions are developer messages, and no limit for an answer is named.
fn codex(files: usize) -> Value {
    const TOOLS: [(&str, usize); 9] = [
        ("exec_command", 1_635),
        ("write_stdin", 819),
        ("request_user_input", 1_425),
        ("view_image", 391),
        ("multi_agent_v1", 10_149),
        ("get_goal", 297),
        ("create_goal", 785),
        ("update_goal", 2_196),
        ("read_plan", 200),
    ];
    let message = |role: &str, id: usize, text: &str| {
        json!({"type": "message", "id": format!("msg_{id:032}"), "role": role,
            "content": [{"type": "input_text", "text": text}]})
    };
    let mut input = vec![
        message("developer", 1, &words("system", 16_979)),
        message("developer", 2, &words("skills", 2_509)),
        message("user", 3, &words("environment", 385)),
        message("user", 4, TASK),
    ];
    for n in 0..files {
        let id = format!("call_{n:024}");
        let output = format!(
            "Chunk ID: {n:06}\nWall time: 0.0000 seconds\nProcess exited with code 0\nOutput:\n{}",
            file(n)
        );
        input.push(json!({"type": "message", "status": "completed", "id": format!("msg_a{n:031}"), "role": "assistant",
            "content": [{"type": "output_text", "text": remark(n), "annotations": [], "logprobs": []}]}));
        input.push(json!({"type": "function_call", "status": "completed", "id": format!("fc_{n:032}"),
            "name": "exec_command", "arguments": json!({"cmd": command(n)}).to_string(), "call_id": id}));
        input.push(json!({"type": "function_call_output", "id": format!("fco_{n:032}"), "call_id": id,
            "output": output}));
    }
    let tools = tools(
        &TOOLS,
        |name, text, schema| json!({"type": "function", "name": name, "description": text, "strict": false, "parameters": schema}),
    );
    json!({
        "model": "gpt-5.5",
        "stream": true,
        "input": input,
        "tools": tools,
        "tool_choice": "auto",
        "parallel_tool_calls": true,
        "reasoning": {"summary": "auto"},
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "01a1f088-a263-7ec1-8836-a133c87113e6",
        "client_metadata": {"session_id": "01a1f088-a263-7ec1-8836-a133c87113e6"},
    })
}

fn pi(files: usize) -> Value {
    const TOOLS: [(&str, usize); 4] = [("read", 723), ("bash", 581), ("edit", 1_298), ("write", 470)];
    let mut messages = chat_start(2_346, json!([{"type": "text", "text": TASK}]));
    for n in 0..files {
        messages.extend(chat_step(n, "bash", file(n).into()));
    }
    json!({
        "model": "some-model",
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
        "store": false,
        "max_completion_tokens": 16_384,
        "tools": chat_tools(&TOOLS),
    })
}

fn opencode(files: usize) -> Value {
    const TOOLS: [(&str, usize); 10] = [
        ("bash", 5_355),
        ("edit", 1_994),
        ("glob", 1_138),
        ("grep", 1_212),
        ("read", 1_771),
        ("skill", 695),
        ("task", 3_897),
        ("todowrite", 2_728),
        ("webfetch", 1_328),
        ("write", 1_051),
    ];
    let mut messages = chat_start(9_563, TASK.into());
    for n in 0..files {
        messages.extend(chat_step(n, "bash", file(n).into()));
    }
    json!({
        "model": "some-model",
        "max_tokens": 32_000,
        "messages": messages,
        "tools": chat_tools(&TOOLS),
        "tool_choice": "auto",
        "stream": true,
        "stream_options": {"include_usage": true},
    })
}

/// System prompt and tools take nearly half of its window.
fn qwen(files: usize) -> Value {
    const TOOLS: [(&str, usize); 14] = [
        ("agent", 14_410),
        ("edit", 2_502),
        ("get_goal", 444),
        ("glob", 1_104),
        ("grep_search", 1_133),
        ("list_agents", 1_119),
        ("notebook_edit", 1_199),
        ("read_file", 2_773),
        ("run_shell_command", 6_184),
        ("skill", 2_275),
        ("tool_call", 640),
        ("tool_search", 1_595),
        ("update_goal", 2_017),
        ("write_file", 1_831),
    ];
    let block = |text: String| json!({"type": "text", "text": text});
    let reminders = [("skills", 6_099), ("environment", 751), ("more tools", 2_625), ("date", 227)];
    let mut first: Vec<Value> = reminders.iter().map(|(about, bytes)| block(words(about, *bytes))).collect();
    first.push(block(TASK.to_owned()));
    let mut messages = chat_start(27_045, first.into());
    for n in 0..files {
        let output = format!(
            "Command: {}\nDirectory: (root)\nOutput: {}\nError: (none)\nExit Code: 0\nSignal: 0\nProcess Group PGID: 4711",
            command(n),
            file(n)
        );
        messages.extend(chat_step(n, "run_shell_command", json!([block(output)])));
    }
    json!({
        "model": "some-model",
        "messages": messages,
        "max_tokens": 32_000,
        "stream": true,
        "stream_options": {"include_usage": true},
        "tools": chat_tools(&TOOLS),
    })
}

/// One tool, whose result is JSON, and no limit for an answer.
fn mini(files: usize) -> Value {
    let mut messages = chat_start(62, format!("{TASK}\n{}", words("rules", 2_839)).into());
    for n in 0..files {
        let result = json!({"returncode": 0, "output": file(n)});
        messages.extend(chat_step(n, "bash", format!("{result:#}").into()));
    }
    json!({"model": "some-model", "messages": messages, "tools": chat_tools(&[("bash", 245)])})
}

/// A system prompt of so many bytes, and the first input.
fn chat_start(system: usize, input: Value) -> Vec<Value> {
    vec![
        json!({"role": "system", "content": words("system", system)}),
        json!({"role": "user", "content": input}),
    ]
}

/// A call of this tool, and its result.
fn chat_step(n: usize, tool: &str, result: Value) -> [Value; 2] {
    let id = format!("call_{n:024}");
    let arguments = json!({"command": command(n), "description": "Read the next file"}).to_string();
    [
        json!({"role": "assistant", "content": remark(n), "tool_calls": [
            {"id": id, "type": "function", "function": {"name": tool, "arguments": arguments}}]}),
        json!({"role": "tool", "tool_call_id": id, "content": result}),
    ]
}

fn chat_tools(sizes: &[(&str, usize)]) -> Value {
    tools(
        sizes,
        |name, text, schema| json!({"type": "function", "function": {"name": name, "description": text, "parameters": schema}}),
    )
}

/// Tools of these names, each of so many bytes, as an API writes one.
fn tools(sizes: &[(&str, usize)], write: impl Fn(&str, &str, Value) -> Value) -> Value {
    let schema =
        json!({"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]});
    let tool = |(name, bytes): &(&str, usize)| {
        let bare = write(name, "", schema.clone()).to_string().len();
        write(name, &words(name, bytes.saturating_sub(bare)), schema.clone())
    };
    sizes.iter().map(tool).collect()
}

fn remark(n: usize) -> String {
    format!("I will read part {n:02} next.")
}

fn command(n: usize) -> String {
    format!("cat src/part_{n:02}.py")
}

/// A file of about 8,000 bytes, which is 2,000 tokens as the fake provider counts. No two have a function in common.
fn file(n: usize) -> String {
    let mut random = Random::of(&format!("file {n}"));
    let mut text = format!("\"\"\"Part {n:02} of the order service.\"\"\"\nimport csv\n");
    while text.len() < 7_800 {
        let (verb, noun, other) = (random.word(), random.word(), random.word());
        let [limit, age, total] = [(); 3].map(|()| random.below(1_000));
        text += &format!(
            "\n\ndef {verb}_{noun}_{limit}({noun}, {other}, limit={limit}):\n    \
             if {other}.age > {age} or {noun}.total < {total}:\n        \
             raise ValueError(f\"{verb}: {{{noun}.number}} cannot be used\")\n    \
             return [row for row in {noun}.rows if row.{other} != {total}]\n"
        );
    }
    text
}

/// Sentences about something, of this many bytes.
fn words(about: &str, bytes: usize) -> String {
    let mut random = Random::of(about);
    let mut text = String::with_capacity(bytes + 80);
    while text.len() < bytes {
        let (first, second, third) = (random.word(), random.word(), random.word());
        text +=
            &format!("For the {about}, {first} each {second} before its {third} is {}. ", random.below(100));
    }
    text.truncate(bytes);
    text
}

/// Numbers that are the same on every machine.
struct Random(u64);

impl Random {
    fn of(seed: &str) -> Self {
        Self(seed.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % bound
    }

    fn word(&mut self) -> &'static str {
        const WORDS: [&str; 24] = [
            "order", "item", "parcel", "invoice", "customer", "address", "voucher", "ledger", "batch",
            "stock", "label", "rate", "load", "save", "merge", "split", "count", "price", "check", "route",
            "parse", "print", "close", "ship",
        ];
        WORDS[self.below(WORDS.len())]
    }
}
