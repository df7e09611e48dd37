//! The fake as a client sees it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod client;

use std::time::Duration;

use client::{APIS, ask, exchange, path, says, send};
use longhaul_fake::{Answer, Api, AtEnd, Close, Counts, Outcome, RetryAfter, Settings, Trouble};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn everything() -> Answer {
    Answer::new().thinking("Hm, which one?").text("I will look, 读.").call("Read", json!({"path": "a.rs"}))
}

#[tokio::test]
async fn an_answer_comes_whole() {
    let fake = Settings::new().answers([everything(), everything(), everything()]).start().await;
    let chat = ask(&fake, Api::Chat, says(Api::Chat, "Hi", false)).await.json();
    let message = &chat["choices"][0]["message"];
    assert_eq!(message["reasoning_content"], "Hm, which one?");
    assert_eq!(message["content"], "I will look, 读.");
    assert_eq!(
        message["tool_calls"][0]["function"],
        json!({"name":"Read","arguments":"{\"path\":\"a.rs\"}"})
    );
    assert_eq!(chat["choices"][0]["finish_reason"], "tool_calls");

    let responses = ask(&fake, Api::Responses, says(Api::Responses, "Hi", false)).await.json();
    let output = &responses["output"];
    assert_eq!(output[0]["summary"][0]["text"], "Hm, which one?");
    assert_eq!(output[0].get("encrypted_content"), None);
    assert_eq!(output[1]["content"][0]["text"], "I will look, 读.");
    assert_eq!(output[2]["arguments"], "{\"path\":\"a.rs\"}");
    assert_eq!(responses["status"], "completed");

    let messages = ask(&fake, Api::Messages, says(Api::Messages, "Hi", false)).await.json();
    let content = &messages["content"];
    assert_eq!(content[0]["thinking"], "Hm, which one?");
    assert!(!content[0]["signature"].as_str().unwrap().is_empty());
    assert_eq!(content[1], json!({"type":"text","text":"I will look, 读."}));
    assert_eq!(content[2]["input"], json!({"path":"a.rs"}));
    assert_eq!(messages["stop_reason"], "tool_use");
}

#[tokio::test]
async fn an_answer_comes_as_the_events_that_providers_send() {
    let fake = Settings::new().answers([everything(), everything(), everything()]).start().await;
    let responses = ask(&fake, Api::Responses, says(Api::Responses, "Hi", true)).await;
    let kinds = [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ];
    assert_eq!(responses.kinds(), kinds.map(|kind| format!("response.{kind}")));
    assert!(responses.whole && responses.text().starts_with("event: response.created\ndata: {"));

    let messages = ask(&fake, Api::Messages, says(Api::Messages, "Hi", true)).await;
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let kinds =
        [["message_start", "ping"].as_slice(), &block, &block, &block, &["message_delta", "message_stop"]];
    assert_eq!(messages.kinds(), kinds.concat());
    let deltas = messages.events();
    let signed = deltas.iter().filter(|event| event["delta"]["type"] == "signature_delta").count();
    assert_eq!(signed, 1);

    let chat = ask(&fake, Api::Chat, says(Api::Chat, "Hi", true)).await.events();
    assert_eq!(chat.last().unwrap(), "[DONE]");
    let text: String =
        chat.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, "I will look, 读.");
}

#[tokio::test]
async fn usage_and_encrypted_reasoning_come_only_when_asked_for() {
    let fake = Settings::new().at_end(AtEnd::Line("Yes.".to_owned())).start().await;
    let mut body = says(Api::Chat, "Hi", true);
    let plain = ask(&fake, Api::Chat, body.clone()).await.events();
    assert!(plain.iter().all(|chunk| chunk.get("usage").is_none()));
    body["stream_options"] = json!({ "include_usage": true });
    let asked = ask(&fake, Api::Chat, body).await.events();
    assert_eq!(asked[0]["usage"], Value::Null);
    let last = &asked[asked.len() - 2];
    assert_eq!((&last["choices"], &last["usage"]["completion_tokens"]), (&json!([]), &json!(1)));

    let fake = Settings::new().answer(everything()).start().await;
    let mut body = says(Api::Responses, "Hi", false);
    body["include"] = json!(["reasoning.encrypted_content"]);
    let response = ask(&fake, Api::Responses, body).await.json();
    assert!(response["output"][0]["encrypted_content"].is_string());
}

#[tokio::test]
async fn a_script_is_given_in_order_and_ends_as_set() {
    let fake = Settings::new().answer("One.").answer(Answer::new().text("Two.").stop("length")).start().await;
    for (said, stop) in [("One.", "stop"), ("Two.", "length"), ("The script is at its end.", "stop")] {
        let choice = ask(&fake, Api::Chat, says(Api::Chat, "Hi", false)).await.json()["choices"][0].clone();
        assert_eq!((&choice["message"]["content"], &choice["finish_reason"]), (&json!(said), &json!(stop)));
    }
    let fake = Settings::new().at_end(AtEnd::Error).start().await;
    for api in APIS {
        let response = ask(&fake, api, says(api, "Hi", true)).await;
        assert_eq!((response.status, response.error()), (400, "The script is at its end.".to_owned()));
    }
    let cut = Settings::new().answer(Answer::new().text("x").stop("max_output_tokens")).start().await;
    let response = ask(&cut, Api::Responses, says(Api::Responses, "Hi", false)).await.json();
    assert_eq!(response["incomplete_details"]["reason"], "max_output_tokens");
}

#[tokio::test]
async fn what_a_provider_refuses_is_refused_and_counted() {
    let user = json!({"role":"user","content":"Hi"});
    let chat = |messages: Value| json!({ "messages": messages });
    let anthropic = |messages: Value| json!({ "max_tokens": 9, "messages": messages });
    let call = json!({"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"R","arguments":"{}"}}]});
    let used = json!({"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"R","input":{}}]});
    let result = json!({"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]});
    let marked =
        json!({"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]});
    let called = json!({"type":"function_call","call_id":"c1","name":"R","arguments":"{}"});
    let output = json!({"type":"function_call_output","call_id":"c1","output":"x"});
    let reasoning = json!({"type":"reasoning","id":"rs_1","summary":[]});
    let refused = [
        (Api::Chat, chat(json!([user, call, user])), "did not have response messages: c1"),
        (Api::Chat, chat(json!([user, call])), "did not have response messages: c1"),
        (
            Api::Chat,
            chat(json!([{"role":"tool","tool_call_id":"c1","content":"x"}])),
            "role 'tool' must be a response",
        ),
        (Api::Responses, json!({"input":[user, called]}), "No tool output found for function call c1."),
        (
            Api::Responses,
            json!({"input":[output]}),
            "No tool call found for function call output with call_id c1.",
        ),
        (
            Api::Responses,
            json!({"input":[reasoning, user]}),
            "Item 'rs_1' of type 'reasoning' was provided without",
        ),
        (
            Api::Messages,
            anthropic(json!([user, used, user])),
            "messages.1: `tool_use` ids were found without",
        ),
        (Api::Messages, anthropic(json!([user, used])), "messages.1: `tool_use` ids were found without"),
        (Api::Messages, anthropic(json!([user, result])), "messages.1.content.0: unexpected `tool_use_id`"),
        (
            Api::Messages,
            anthropic(json!([{"role":"user","content":[{"type":"text","text":""}]}])),
            "must be non-empty",
        ),
        (Api::Messages, anthropic(json!([marked, marked, marked, marked, marked])), "Found 5."),
        (Api::Messages, anthropic(json!([])), "at least one message"),
        (Api::Messages, json!({"messages":[user]}), "max_tokens: Field required"),
    ];
    let fake = Settings::new().start().await;
    for (n, (api, body, words)) in refused.iter().enumerate() {
        let response = ask(&fake, *api, body.clone()).await;
        assert_eq!(response.status, 400, "{words}");
        assert!(response.error().contains(words), "{} / {words}", response.error());
        assert_eq!(fake.violations().len(), n + 1);
    }
    let taken = [
        (Api::Chat, chat(json!([user, call, {"role":"tool","tool_call_id":"c1","content":"x"}]))),
        (Api::Responses, json!({"input":[user, reasoning, called, output]})),
        (Api::Responses, json!({"input":"Hi"})),
        (Api::Messages, anthropic(json!([user, used, result]))),
        (Api::Messages, anthropic(json!([marked, marked, marked, marked]))),
    ];
    for (api, body) in taken {
        assert_eq!(ask(&fake, api, body.clone()).await.status, 200, "{body}");
    }
    for api in APIS {
        assert_eq!(send(&fake, "POST", path(api), "", "{nonsense").await.status, 400);
    }
    assert_eq!(fake.violations().len(), refused.len() + 3);
}

#[tokio::test]
async fn a_prompt_that_does_not_fit_is_refused_in_the_words_of_the_api() {
    let fake = Settings::new().window(50).start().await;
    let long = "x".repeat(400);
    let words = |prompt: u64| {
        [
            format!(
                "maximum context length is 50 tokens. However, your messages resulted in {prompt} tokens"
            ),
            format!("configured limit of 50 tokens. Your messages resulted in {prompt} tokens"),
            format!("prompt is too long: {prompt} tokens > 50 maximum"),
        ]
    };
    for (n, api) in APIS.into_iter().enumerate() {
        assert_eq!(ask(&fake, api, says(api, "short", false)).await.status, 200);
        let response = ask(&fake, api, says(api, &long, false)).await;
        let prompt = fake.log().last().unwrap().counts.prompt;
        assert!(prompt > 100 && prompt < 130);
        assert_eq!(response.status, 400);
        assert!(response.error().contains(&words(prompt)[n]), "{}", response.error());
    }
    let streamed = ask(&fake, Api::Responses, says(Api::Responses, &long, true)).await;
    assert_eq!((streamed.status, streamed.kinds()), (200, vec!["response.failed".to_owned()]));
    assert_eq!(streamed.events()[0]["response"]["error"]["code"], "context_length_exceeded");
    let fake = Settings::new().window(50).overflow_by_status().start().await;
    assert_eq!(ask(&fake, Api::Responses, says(Api::Responses, &long, true)).await.status, 400);
    assert_eq!(fake.violations(), [] as [&str; 0]);
}

#[tokio::test]
async fn a_wrong_key_is_quoted_but_not_logged() {
    let fake = Settings::new().key("sk-right").start().await;
    for api in APIS {
        let response = ask(&fake, api, says(api, "Hi", false)).await;
        assert_eq!(response.status, 401);
        assert!(response.error().contains("sk-secret-1"));
        let body = says(api, "Hi", false).to_string();
        assert_eq!(send(&fake, "POST", path(api), "x-api-key: sk-right\r\n", &body).await.status, 200);
        assert_eq!(send(&fake, "POST", path(api), "", &body).await.status, 401);
    }
    let log = fake.log();
    assert_eq!(log[0].header("authorization"), Some("[key]"));
    assert!(!format!("{log:?}").contains("sk-secret-1") && !format!("{log:?}").contains("sk-right"));
}

#[tokio::test]
async fn the_prompt_cache_is_counted() {
    let fake = Settings::new().start().await;
    let cached = |response: Value| {
        let found =
            ["/usage/prompt_tokens_details/cached_tokens", "/usage/input_tokens_details/cached_tokens"];
        found.iter().find_map(|path| response.pointer(path)?.as_u64()).unwrap()
    };
    for api in [Api::Chat, Api::Responses] {
        let first = "a long beginning that both share ".repeat(5);
        assert_eq!(cached(ask(&fake, api, says(api, &first, false)).await.json()), 0);
        let read = cached(ask(&fake, api, says(api, &(first + "and more"), false)).await.json());
        assert!(read > 40, "{read}");
    }
    let mark = json!({"type":"ephemeral"});
    let block = |text: &str| json!({"type":"text","text":text.repeat(20)});
    let marked = |text: &str| json!({"type":"text","text":text.repeat(20),"cache_control":mark});
    let body = |blocks: Value| json!({"max_tokens":9,"messages":[{"role":"user","content":blocks}]});
    let usage = |response: Value| {
        let figure = |name: &str| response["usage"][name].as_u64().unwrap();
        (figure("input_tokens"), figure("cache_read_input_tokens"), figure("cache_creation_input_tokens"))
    };
    let (new, read, written) =
        usage(ask(&fake, Api::Messages, body(json!([marked("one "), block("two ")]))).await.json());
    assert!(new > 0 && read == 0 && written > 0);
    let (_, read, more) =
        usage(ask(&fake, Api::Messages, body(json!([block("one "), marked("two ")]))).await.json());
    assert_eq!(read, written);
    assert!(more > 0);
    let counts = Counts { prompt: 100, cached: 30, written: 20, output: 7 };
    let fake = Settings::new().answer(Answer::from("x").usage(counts)).start().await;
    assert_eq!(usage(ask(&fake, Api::Messages, says(Api::Messages, "Hi", false)).await.json()), (50, 30, 20));
}

#[tokio::test]
async fn statuses_are_said_in_the_words_of_the_api() {
    for api in APIS {
        let statuses = [401, 403, 404, 413, 418, 500, 503, 529];
        let mut settings = Settings::new().trouble(9..=9, Trouble::Limited(RetryAfter::Seconds(7)));
        for (n, status) in statuses.into_iter().enumerate() {
            settings = settings.trouble(n + 1..=n + 1, Trouble::Status(status));
        }
        let own = Trouble::Response {
            status: 307,
            headers: vec![("location".to_owned(), "/elsewhere".to_owned())],
            body: "{}".to_owned(),
        };
        let fake = settings
            .trouble(10..=10, Trouble::Limited(RetryAfter::Millis(70)))
            .trouble(11..=11, Trouble::Html)
            .trouble(12..=12, own)
            .start()
            .await;
        for status in statuses {
            let response = ask(&fake, api, says(api, "Hi", true)).await;
            assert_eq!(response.status, status);
            assert!(!response.error().is_empty());
        }
        for header in ["retry-after: 7", "retry-after-ms: 70"] {
            let response = ask(&fake, api, says(api, "Hi", true)).await;
            assert_eq!(response.status, 429);
            assert!(response.head.contains(header));
        }
        let page = ask(&fake, api, says(api, "Hi", true)).await;
        assert!(page.status == 502 && page.text().starts_with("<html>"));
        let own = ask(&fake, api, says(api, "Hi", true)).await;
        assert!(own.status == 307 && own.head.contains("location: /elsewhere"));
        // The script was not used up.
        assert_eq!(ask(&fake, api, says(api, "Hi", true)).await.status, 200);
    }
}

#[tokio::test]
async fn trouble_in_the_middle_of_an_answer() {
    let cuts = [
        Trouble::Close,
        Trouble::Cut { after: 0, close: Close::Fin },
        Trouble::Cut { after: 3, close: Close::Fin },
        Trouble::Cut { after: 99, close: Close::Fin },
        Trouble::Cut { after: 2, close: Close::Reset },
    ];
    for (api, stream) in APIS.into_iter().flat_map(|api| [(api, true), (api, false)]) {
        for cut in &cuts {
            let fake = Settings::new().answer("Said in pieces.").trouble(1..=1, cut.clone()).start().await;
            let first = ask(&fake, api, says(api, "Hi", stream)).await;
            assert!(!first.whole, "{api:?} {cut:?}");
            // A client that asks again gets what it missed.
            let again = ask(&fake, api, says(api, "Hi", false)).await;
            assert!(again.whole && again.text().contains("Said in pieces."), "{api:?} {cut:?}");
        }
    }
}

#[tokio::test]
async fn trouble_in_what_is_said() {
    for api in APIS {
        let fake = Settings::new()
            .answers([everything(), everything(), everything()])
            .trouble(1..=1, Trouble::NoClosingEvent)
            .trouble(2..=2, Trouble::ErrorEvent { after: 3 })
            .trouble(3..=3, Trouble::BrokenJson { after: 3 })
            .trouble(4..=4, Trouble::Empty)
            .trouble(5..=5, Trouble::ArgumentsCut)
            .trouble(6..=6, Trouble::CrLf)
            .trouble(7..=7, Trouble::Split(1))
            .start()
            .await;
        let stream = || ask(&fake, api, says(api, "Hi", true));
        let open = stream().await;
        assert!(open.whole);
        let ends = ["finish_reason\":\"", "message_stop", "response.completed", "[DONE]"];
        assert!(ends.iter().all(|end| !open.text().contains(end)), "{}", open.text());
        let failed = stream().await;
        let events = failed.events();
        assert_eq!(events.len(), 4);
        assert!(events[3].to_string().contains("verloaded"), "{}", events[3]);
        let broken = stream().await;
        let unreadable =
            broken.events().iter().filter(|event| event.is_string() && *event != "[DONE]").count();
        assert_eq!(unreadable, 1);
        let empty = stream().await.text();
        assert!(!empty.contains("look") && !empty.contains("Read"));
        assert!(stream().await.whole);
        let crlf = stream().await;
        assert!(crlf.text().contains(": keep-alive\r\n\r\n"));
        assert!(!crlf.text().replace("\r\n", "").contains(['\r', '\n']));
        let split = stream().await;
        assert!(split.text().contains('读'));
    }
}

#[tokio::test]
async fn a_whole_body_in_gzip_goes_to_those_who_take_it() {
    for (headers, compressed) in [("accept-encoding: gzip, br\r\n", true), ("", false)] {
        let fake = Settings::new().trouble(.., Trouble::Gzip).start().await;
        let body = says(Api::Chat, "Hi", false).to_string();
        let response = send(&fake, "POST", path(Api::Chat), headers, &body).await;
        assert_eq!(response.head.contains("content-encoding: gzip"), compressed);
        assert_eq!(response.body.starts_with(&[0x1f, 0x8b]), compressed);
    }
}

#[tokio::test]
async fn who_goes_away_is_seen() {
    let silent = [
        (Trouble::Hang, 0),
        (Trouble::HangAfter(2), 1),
        (Trouble::CommentsOnly { every: Duration::from_millis(1) }, 1),
        (Trouble::StaysOpen, 1),
        (Trouble::Slow { first: Duration::from_secs(3_600), between: Duration::ZERO }, 0),
        (Trouble::Slow { first: Duration::ZERO, between: Duration::from_secs(3_600) }, 1),
    ];
    for (trouble, bytes) in silent {
        let fake = Settings::new().trouble(.., trouble).start().await;
        let body = says(Api::Chat, "Hi", true).to_string();
        let request =
            format!("POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let mut stream = TcpStream::connect(fake.address()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        fake.until_calls(1).await;
        let mut read = vec![0; bytes];
        stream.read_exact(&mut read).await.unwrap();
        assert_eq!((fake.open_connections(), fake.log()[0].outcome), (1, Outcome::Open));
        drop(stream);
        fake.until_idle().await;
        assert_eq!((fake.open_connections(), fake.log()[0].outcome), (0, Outcome::Left));
    }
    let fake = Settings::new().start().await;
    ask(&fake, Api::Chat, says(Api::Chat, "Hi", true)).await;
    fake.until_idle().await;
    assert_eq!(fake.log()[0].outcome, Outcome::Said);
}

#[tokio::test]
async fn models_and_counts_are_no_calls() {
    let fake = Settings::new().start().await;
    let models = send(&fake, "GET", "/v1/models", "", "").await.json();
    assert_eq!((&models["object"], &models["data"][0]["id"]), (&json!("list"), &json!("fake-1")));
    let models = send(&fake, "GET", "/v1/models", "anthropic-version: 2023-06-01\r\n", "").await.json();
    assert_eq!(models["data"][0]["type"], "model");
    let body = says(Api::Messages, &"x".repeat(400), false).to_string();
    let count = send(&fake, "POST", "/v1/messages/count_tokens", "", &body).await.json();
    assert!(count["input_tokens"].as_u64().unwrap() > 100);
    assert_eq!(send(&fake, "POST", "/v1/embeddings", "", "{}").await.status, 404);
    assert_eq!(send(&fake, "GET", "/v1/messages", "", "").await.status, 404);
    assert_eq!(fake.log(), []);
}

#[tokio::test]
async fn a_request_in_chunks_is_read() {
    let fake = Settings::new().answer("Yes.").start().await;
    let body = says(Api::Chat, "Hi", false).to_string();
    let (a, b) = body.split_at(10);
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{a}\r\n{:x}\r\n{b}\r\n0\r\n\r\n",
        a.len(),
        b.len()
    );
    let response = String::from_utf8(exchange(&fake, request.as_bytes()).await).unwrap();
    assert!(response.contains("Yes."));
    assert_eq!(fake.log()[0].body, says(Api::Chat, "Hi", false));
}

#[tokio::test]
async fn it_begins_anew_on_the_same_port() {
    let fake = Settings::new().answer("One.").key("sk-right").start().await;
    assert_eq!(ask(&fake, Api::Chat, says(Api::Chat, "Hi", false)).await.status, 401);
    fake.restart(Settings::new().answer("Two.")).await;
    assert_eq!(fake.log(), []);
    assert!(ask(&fake, Api::Chat, says(Api::Chat, "Hi", false)).await.text().contains("Two."));
    assert_eq!(fake.log()[0].number, 1);
}

#[tokio::test]
async fn sealed_thinking_has_the_form_of_its_api() {
    let sealed = || Answer::new().sealed_thinking("c2VhbGVk").text("Yes.");
    let fake = Settings::new().answers((0..6).map(|_| sealed())).start().await;
    for stream in [true, false] {
        let messages = ask(&fake, Api::Messages, says(Api::Messages, "Hi", stream)).await.text();
        assert!(messages.contains(r#"{"type":"redacted_thinking","data":"c2VhbGVk"}"#), "{messages}");
        let responses = ask(&fake, Api::Responses, says(Api::Responses, "Hi", stream)).await.text();
        assert!(responses.contains(r#""summary":[],"encrypted_content":"c2VhbGVk""#), "{responses}");
        let chat = ask(&fake, Api::Chat, says(Api::Chat, "Hi", stream)).await.text();
        assert!(chat.contains("Yes.") && !chat.contains("c2VhbGVk"), "{chat}");
    }
}
