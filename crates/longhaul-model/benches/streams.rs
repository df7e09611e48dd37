//! How fast streams are read: `cargo bench -p longhaul-model`.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

use std::time::Instant;

use longhaul_model::{EventStream, ReplyReader};
use longhaul_wire::api::Api;
use serde_json::{Value, json};

/// A long answer in pieces of a few words, as providers send it.
fn stream(api: Api, pieces: usize) -> String {
    let piece = |n: usize| -> Value {
        let text = format!("piece {n} of the \"answer\"\n");
        match api {
            Api::Anthropic => {
                json!({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":text}})
            }
            Api::Chat => {
                json!({"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":text},"logprobs":null,"finish_reason":null}]})
            }
            Api::Responses => {
                json!({"type":"response.output_text.delta","sequence_number":n,"item_id":"msg_1","output_index":0,"content_index":0,"delta":text})
            }
        }
    };
    let first = match api {
        Api::Anthropic => vec![
            json!({"type":"message_start","message":{"usage":{"input_tokens":3,"output_tokens":1}}}),
            json!({"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}),
        ],
        _ => Vec::new(),
    };
    let last = match api {
        Api::Anthropic => json!({"type":"message_stop"}),
        Api::Chat => json!({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}),
        Api::Responses => {
            json!({"type":"response.completed","response":{"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"…"}]}]}})
        }
    };
    let all = first.into_iter().chain((0..pieces).map(piece)).chain([last]);
    all.map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("message")))
        .collect()
}

/// The best of some runs, in MB/s.
fn speed(bytes: &str, mut run: impl FnMut(&[u8])) -> f64 {
    let seconds = (0..7).map(|_| {
        let start = Instant::now();
        // As a network gives it.
        bytes.as_bytes().chunks(4 << 10).for_each(&mut run);
        start.elapsed().as_secs_f64()
    });
    bytes.len() as f64 / 1e6 / seconds.fold(f64::INFINITY, f64::min)
}

fn main() {
    for api in [Api::Anthropic, Api::Chat, Api::Responses] {
        let bytes = stream(api, 100_000);
        let mut events = EventStream::default();
        let alone = speed(&bytes, |piece| {
            events.push(piece);
            while events.next_event().unwrap().is_some() {}
        });
        let mut reader = ReplyReader::new(api);
        let reply = speed(&bytes, |piece| _ = reader.push(piece, &mut |_| {}).unwrap());
        println!(
            "{:10} {:5.1} MB: events {alone:6.0} MB/s, reply {reply:6.0} MB/s",
            api.name(),
            bytes.len() as f64 / 1e6
        );
    }
}
