//! Replies of the three APIs, streamed and whole: the same message, usage and end, wherever the network
//! cuts; and what goes wrong.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use longhaul::{Block, Frame, Json, Message, Seal, Tokens, Usage};
use longhaul_model::{Delta, Fault, Reply, ReplyReader, Stop};
use longhaul_wire::api::{Api, Request};
use serde_json::{Value, json};

const APIS: [Api; 3] = [Api::Anthropic, Api::Chat, Api::Responses];

/// A stream of these events, as the API names them.
fn stream(api: Api, events: &[Value]) -> String {
    let mut text = String::new();
    for event in events {
        if api != Api::Chat {
            text += &format!("event: {}\n", event["type"].as_str().unwrap());
        }
        text += &format!("data: {event}\n\n");
    }
    if api == Api::Chat {
        text += "data: [DONE]\n\n";
    }
    text
}

/// Thinking, words and a call, as a stream.
fn events(api: Api) -> Vec<Value> {
    match api {
        Api::Anthropic => vec![
            json!({"type":"message_start","message":{"usage":{"input_tokens":3,"cache_read_input_tokens":900,"cache_creation_input_tokens":90,"output_tokens":1}}}),
            json!({"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}),
            json!({"type":"ping"}),
            json!({"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm, "}}),
            json!({"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"读."}}),
            json!({"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}),
            json!({"type":"content_block_stop","index":0}),
            json!({"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}),
            json!({"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I will "}}),
            json!({"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"look."}}),
            json!({"type":"content_block_stop","index":1}),
            json!({"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}}),
            json!({"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}),
            json!({"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"path\":"}}),
            json!({"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"a.rs\"}"}}),
            json!({"type":"content_block_stop","index":2}),
            json!({"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":42}}),
            json!({"type":"message_stop"}),
        ],
        Api::Chat => vec![
            json!({"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}),
            json!({"choices":[{"index":0,"delta":{"reasoning_content":"Hm, "}}]}),
            json!({"choices":[{"index":0,"delta":{"reasoning_content":"读."}}]}),
            json!({"choices":[{"index":0,"delta":{"content":"I will "}}]}),
            json!({"choices":[{"index":0,"delta":{"content":"look."}}]}),
            json!({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"Read","arguments":""}}]}}]}),
            json!({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]}}]}),
            json!({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"a.rs\"}"}}]}}]}),
            json!({"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}),
            json!({"choices":[],"usage":{"prompt_tokens":993,"completion_tokens":42,"prompt_tokens_details":{"cached_tokens":900}}}),
        ],
        Api::Responses => {
            let items = output();
            let usage =
                json!({"input_tokens":993,"output_tokens":42,"input_tokens_details":{"cached_tokens":900}});
            vec![
                json!({"type":"response.created","response":{"id":"r","status":"in_progress","output":[]}}),
                json!({"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}),
                json!({"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"Hm, "}),
                json!({"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"读."}),
                json!({"type":"response.output_item.done","output_index":0,"item":items[0]}),
                json!({"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"msg_1","role":"assistant","content":[]}}),
                json!({"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"I will "}),
                json!({"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"look."}),
                json!({"type":"response.output_item.done","output_index":1,"item":items[1]}),
                json!({"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"Read","arguments":""}}),
                json!({"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"path\":"}),
                json!({"type":"response.function_call_arguments.delta","output_index":2,"delta":"\"a.rs\"}"}),
                json!({"type":"response.output_item.done","output_index":2,"item":items[2]}),
                json!({"type":"response.completed","response":{"status":"completed","output":[],"usage":usage}}),
            ]
        }
    }
}

fn output() -> Value {
    json!([
        {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm, 读."}],"encrypted_content":"c2ln"},
        {"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"I will look.","annotations":[]}]},
        {"type":"function_call","id":"fc_1","call_id":"call_1","name":"Read","arguments":"{\"path\":\"a.rs\"}","status":"completed"},
    ])
}

/// The same reply, whole.
fn whole(api: Api) -> Value {
    match api {
        Api::Anthropic => json!({
            "type":"message","role":"assistant","stop_reason":"tool_use",
            "content":[
                {"type":"thinking","thinking":"Hm, 读.","signature":"c2ln"},
                {"type":"text","text":"I will look."},
                {"type":"tool_use","id":"toolu_1","name":"Read","input":{"path":"a.rs"}},
            ],
            "usage":{"input_tokens":3,"cache_read_input_tokens":900,"cache_creation_input_tokens":90,"output_tokens":42},
        }),
        Api::Chat => json!({
            "choices":[{"index":0,"finish_reason":"tool_calls","message":{
                "role":"assistant","content":"I will look.","reasoning_content":"Hm, 读.",
                "tool_calls":[{"id":"call_1","type":"function","function":{"name":"Read","arguments":"{\"path\":\"a.rs\"}"}}],
            }}],
            "usage":{"prompt_tokens":993,"completion_tokens":42,"prompt_tokens_details":{"cached_tokens":900}},
        }),
        Api::Responses => json!({
            "status":"completed","output":output(),
            "usage":{"input_tokens":993,"output_tokens":42,"input_tokens_details":{"cached_tokens":900}},
        }),
    }
}

/// Reads bytes in pieces of this size; gives the reply and what somebody who watches saw.
fn read(api: Api, bytes: &[u8], size: usize) -> (Result<Reply, Fault>, String) {
    let (mut reader, mut seen) = (ReplyReader::new(api), String::new());
    for piece in bytes.chunks(size) {
        let pushed = reader.push(piece, &mut |delta| match delta {
            Delta::Text(text) => seen += text,
            Delta::Thinking(text) => seen += &format!("({text})"),
            Delta::Call(name) => seen += &format!(" {name}:"),
            Delta::Arguments(json) => seen += json,
            Delta::Void => seen.clear(),
            Delta::Again { .. } => {}
        });
        if let Err(fault) = pushed {
            return (Err(fault), seen);
        }
    }
    (reader.end(), seen)
}

fn text_of(messages: &[std::sync::Arc<Message>]) -> String {
    messages.iter().flat_map(|message| message.texts()).collect()
}

#[test]
fn a_stream_is_the_reply_that_comes_whole_wherever_it_is_cut() {
    for api in APIS {
        let bytes = stream(api, &events(api));
        let expected = Reply::read(api, &whole(api).to_string()).unwrap();
        for size in [1, 2, 3, 7, 64, 1 << 20] {
            let (reply, seen) = read(api, bytes.as_bytes(), size);
            let reply = reply.unwrap();
            assert_eq!(seen, "(Hm, )(读.)I will look. Read:{\"path\":\"a.rs\"}", "{api:?} {size}");
            assert_eq!(reply, expected, "{api:?} {size}");
        }
        let reply = expected;
        assert_eq!(text_of(&reply.messages), "I will look.");
        let calls: Vec<_> = reply.messages.iter().flat_map(|message| message.calls()).collect();
        assert_eq!((&*calls[0].name, calls[0].arguments.as_str()), ("Read", r#"{"path":"a.rs"}"#));
        assert_eq!(calls.len(), 1);
        assert_eq!(reply.stop, Stop::Ended);
        let usage = reply.usage.unwrap();
        assert_eq!((usage.prompt(), usage.output, usage.cache_read), (Tokens(993), 42, 900), "{api:?}");
    }
}

#[test]
fn reasoning_is_sent_back_as_it_came() {
    for api in APIS {
        let reply = read(api, stream(api, &events(api)).as_bytes(), 50).0.unwrap();
        let sealed = reply.messages.iter().flat_map(|message| message.blocks()).any(
            |block| matches!(block, Block::Thinking(thinking) if thinking.seal != Seal::Open || api == Api::Chat),
        );
        assert!(sealed, "{api:?} {reply:?}");
        let frame = Frame::from_json(&Json::new(r#"{"model":"m"}"#).unwrap()).unwrap();
        let body = Request::new(frame, reply.messages).encode(api).body.to_string();
        let mark = if api == Api::Chat { r#""reasoning_content":"Hm, 读.""# } else { "c2ln" };
        assert!(body.contains(mark), "{api:?} {body}");
    }
}

#[test]
fn a_stream_without_its_closing_event_was_cut_off() {
    for api in APIS {
        let mut short = events(api);
        short.pop();
        if api == Api::Chat {
            // Usage may come behind the end, or never.
            let without_usage = stream(api, &short);
            let (reply, _) = read(api, without_usage.as_bytes(), 20);
            assert_eq!(reply.unwrap().usage, None);
            short.pop();
        }
        let (reply, _) = read(api, stream(api, &short).as_bytes(), 20);
        assert_eq!(reply, Err(Fault::Cut), "{api:?}");
        let (reply, _) = read(api, b"", 20);
        assert_eq!(reply, Err(Fault::Cut), "{api:?}");
    }
}

#[test]
fn usage_is_known_before_the_end() {
    let mut reader = ReplyReader::new(Api::Anthropic);
    let first = stream(Api::Anthropic, &events(Api::Anthropic)[..1]);
    let progress = reader.push(first.as_bytes(), &mut |_| {}).unwrap();
    assert_eq!((progress.events, progress.closed), (1, false));
    let usage = Usage { input: 3, output: 1, cache_read: 900, cache_write: 90, ..Usage::default() };
    assert_eq!(reader.usage(), Some(usage));
}

#[test]
fn an_error_inside_a_stream_is_a_fault() {
    let overloaded = json!({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}});
    let failed = json!({"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}});
    let chat = json!({"error":{"message":"The server is overloaded.","type":"server_error"}});
    for (api, error) in [(Api::Anthropic, overloaded), (Api::Responses, failed), (Api::Chat, chat)] {
        let mut all = events(api);
        all.truncate(3);
        all.push(error);
        let fault = read(api, stream(api, &all).as_bytes(), 9).0.unwrap_err();
        match api {
            Api::Responses => assert!(matches!(fault, Fault::TooLong { .. }), "{fault:?}"),
            _ => assert!(
                fault.passes() && fault.to_string().to_lowercase().contains("overloaded"),
                "{fault:?}"
            ),
        }
    }
}

#[test]
fn what_is_no_reply_is_said_and_never_a_panic() {
    for api in APIS {
        for body in ["", "null", "[]", "{}", "<html>", "42", r#"{"content":5,"choices":7,"output":{}}"#] {
            assert!(Reply::read(api, body).is_err(), "{api:?} {body}");
            let fault = read(api, format!("data: {body}\n\n").as_bytes(), 5).0.unwrap_err();
            assert!(matches!(fault, Fault::Unreadable(_) | Fault::Cut), "{api:?} {body} {fault:?}");
        }
        let error = json!({"error":{"message":"no","type":"server_error"}}).to_string();
        assert!(matches!(Reply::read(api, &error), Err(Fault::Failed { .. })));
    }
}

#[test]
fn an_empty_reply_is_a_fault_unless_it_says_why() {
    let anthropic = |stop: &str| {
        json!({"content":[],"stop_reason":stop,"usage":{"input_tokens":1,"output_tokens":0}}).to_string()
    };
    assert_eq!(Reply::read(Api::Anthropic, &anthropic("end_turn")), Err(Fault::Empty));
    assert_eq!(Reply::read(Api::Anthropic, &anthropic("refusal")).unwrap().stop, Stop::Refused);
    assert_eq!(Reply::read(Api::Anthropic, &anthropic("max_tokens")).unwrap().stop, Stop::Length);
    let chat = json!({"choices":[{"message":{"role":"assistant","content":""},"finish_reason":"stop"}]});
    assert_eq!(Reply::read(Api::Chat, &chat.to_string()), Err(Fault::Empty));
    let responses =
        json!({"output":[],"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}});
    assert_eq!(Reply::read(Api::Responses, &responses.to_string()).unwrap().stop, Stop::Length);
}

#[test]
fn arguments_that_are_cut_short_are_kept_as_they_came() {
    for api in APIS {
        let mut all = events(api);
        for event in &mut all {
            let text = event.to_string().replace(r#"\"a.rs\"}"#, r#"\"a.r"#);
            *event = serde_json::from_str(&text).unwrap();
        }
        let reply = read(api, stream(api, &all).as_bytes(), 11).0.unwrap();
        let calls: Vec<_> = reply.messages.iter().flat_map(|message| message.calls()).collect();
        assert!(calls[0].arguments.as_str().contains("a.r"), "{api:?} {:?}", calls[0]);
    }
}

#[test]
fn servers_that_number_calls_in_their_own_way() {
    // Whole calls without an index; all under index 0; several at once.
    let call = |index: Option<usize>, id: &str, name: &str| {
        let mut call = json!({"id":id,"type":"function","function":{"name":name,"arguments":"{}"}});
        if let Some(index) = index {
            call["index"] = index.into();
        }
        json!({"choices":[{"index":0,"delta":{"tool_calls":[call]}}]})
    };
    for indices in [[None, None], [Some(0), Some(0)], [Some(0), Some(1)]] {
        let mut all = vec![call(indices[0], "a", "Read"), call(indices[1], "b", "Grep")];
        all.push(json!({"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}));
        let reply = read(Api::Chat, stream(Api::Chat, &all).as_bytes(), 100).0.unwrap();
        let calls: Vec<(String, String)> =
            reply.messages[0].calls().map(|call| (call.id.to_string(), call.name.to_string())).collect();
        let expected = [("a".to_owned(), "Read".to_owned()), ("b".to_owned(), "Grep".to_owned())];
        assert_eq!(calls, expected, "{indices:?}");
    }
    // A call without an id gets one: a result must name it.
    let all = vec![call(Some(0), "", "Read"), json!({"choices":[{"delta":{},"finish_reason":"stop"}]})];
    let reply = read(Api::Chat, stream(Api::Chat, &all).as_bytes(), 100).0.unwrap();
    assert_eq!(&*reply.messages[0].calls().next().unwrap().id, "call_0");
}
