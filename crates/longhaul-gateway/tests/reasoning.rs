//! Encrypted reasoning of OpenAI that the provider cannot read any longer: by status or inside a stream, the client does not
//! hear of it.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{End, LONG, ask, settings, url};
use longhaul::Tokens;
use longhaul_fake::{Answer, AtEnd, Fake, Settings as Script, Trouble, Twin};
use longhaul_gateway::{Gateway, start};
use longhaul_wire::api::Api;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A model that thinks before each of its calls.
fn script() -> Script {
    let think = |n: usize| {
        let answer = Answer::new().thinking(&format!("Step {n}: which file?"));
        answer.call("Read", json!({ "path": format!("src/file_{n}.rs") }))
    };
    Script::new().answers((0..80).map(think)).at_end(AtEnd::Error).twin(Twin::OPENAI_NOW)
}

/// A client that sends back all that came, as Codex does.
struct Client {
    fake: Fake,
    folder: TempDir,
    gateway: Gateway,
    window: u64,
    stream: bool,
    items: Vec<Value>,
}

async fn gateway(fake: &Fake, folder: &TempDir, window: u64) -> Gateway {
    let mut settings = settings(fake);
    settings.desk.store = folder.path().join("sessions.db").display().to_string();
    settings.desk.window = Some(Tokens(window));
    start(settings).await.unwrap()
}

impl Client {
    async fn start(script: Script, window: u64, stream: bool) -> Self {
        let (fake, folder) = (script.start().await, tempfile::tempdir().unwrap());
        let gateway = gateway(&fake, &folder, window).await;
        let items = vec![json!({ "type": "message", "role": "user", "content": "Mend the parser, please." })];
        Self { fake, folder, gateway, window, stream, items }
    }

    async fn restart(self) -> Self {
        self.gateway.stop().await;
        let gateway = gateway(&self.fake, &self.folder, self.window).await;
        Self { gateway, ..self }
    }

    async fn step(&mut self) {
        let tool = json!({ "type": "function", "name": "Read", "parameters": { "type": "object" } });
        let body = json!({
            "model": "gpt-5.5", "instructions": "Be brief.", "store": false, "stream": self.stream,
            "include": ["reasoning.encrypted_content"], "tools": [tool], "input": self.items,
        });
        let seen = ask(&url(&self.gateway), Api::Responses, &body, LONG).await;
        assert_eq!((seen.status, seen.end), (200, End::Clean), "{}", seen.text());
        let text = seen.text();
        let output: Vec<Value> = match self.stream {
            false => serde_json::from_str::<Value>(&text).unwrap()["output"].as_array().unwrap().clone(),
            true => {
                let events = text.lines().filter_map(|line| line.strip_prefix("data: "));
                let events = events.map(|data| serde_json::from_str::<Value>(data).unwrap());
                events
                    .filter(|event| event["type"] == "response.output_item.done")
                    .map(|event| event["item"].clone())
                    .collect()
            }
        };
        let call =
            output.iter().find(|item| item["type"] == "function_call").unwrap_or_else(|| panic!("{text}"));
        let id = call["call_id"].clone();
        self.items.extend(output);
        let line = format!("line {} of {id}\n", self.items.len());
        self.items.push(json!({ "type": "function_call_output", "call_id": id, "output": line.repeat(40) }));
    }

    /// How many items of reasoning stood in each request.
    fn reasoning_sent(&self) -> Vec<usize> {
        let count = |body: &Value| {
            body["input"].as_array().unwrap().iter().filter(|item| item["type"] == "reasoning").count()
        };
        self.fake.log().iter().map(|call| count(&call.body)).collect()
    }
}

#[tokio::test]
async fn reasoning_that_cannot_be_decrypted_is_left_out_and_the_request_sent_once_more() {
    for (stream, is_inside) in [(false, false), (true, false), (true, true)] {
        for window in [60_000, 9_000] {
            let script = || if is_inside { script().refusals_in_stream() } else { script() };
            let mut client = Client::start(script(), window, stream).await;
            for _ in 0..5 {
                client.step().await;
            }
            assert_eq!(client.fake.violations(), [""; 0]);
            // The provider has other keys now.
            client.fake.restart(script()).await;
            client.step().await;
            assert_eq!(client.reasoning_sent(), [5, 0], "{stream} {is_inside}");
            assert_eq!(client.gateway.figures().resent["thinking"], 1);
            // Every later request agrees, also after a restart.
            client.step().await;
            client = client.restart().await;
            client.step().await;
            assert_eq!(client.reasoning_sent(), [5, 0, 1, 2]);
            for _ in 0..30 {
                client.step().await;
            }
            assert_eq!(client.fake.violations().len(), 1);
        }
    }
}

/// The provider may refuse it for no reason that anybody knows, and then knows all items all the same.
#[tokio::test]
async fn items_whose_reasoning_is_left_out_are_taken_without_it() {
    let error = json!({
        "code": "invalid_encrypted_content", "type": "invalid_request_error",
        "message": "The encrypted content for item rs_1 could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
    });
    let by_status =
        Trouble::Response { status: 400, headers: Vec::new(), body: json!({ "error": error }).to_string() };
    let in_stream = {
        let created = json!({ "type": "response.created", "response": { "id": "resp_1", "status": "in_progress", "output": [] } });
        let failed = json!({ "type": "response.failed", "response": { "id": "resp_1", "status": "failed", "output": [], "error": error } });
        let body =
            format!("event: response.created\ndata: {created}\n\nevent: response.failed\ndata: {failed}\n\n");
        let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
        Trouble::Response { status: 200, headers, body }
    };
    for (stream, trouble) in [(false, by_status.clone()), (true, by_status.clone()), (true, in_stream)] {
        let mut client = Client::start(script().trouble(5..=5, trouble), 60_000, stream).await;
        for _ in 0..8 {
            client.step().await;
        }
        assert_eq!(client.reasoning_sent(), [0, 1, 2, 3, 4, 0, 1, 2, 3]);
        assert_eq!(client.fake.violations(), [""; 0]);
    }
}
