//! A fake provider of models, for tests: in process, on a loopback port, with every byte under control.
//!
//! [`Settings`] say what it answers and what goes wrong at which call. [`Settings::start`] starts it, and
//! [`Fake`] is the handle: the base URL, the log of requests, the number of open connections. The fake
//! stops when the handle is dropped.
//!
//! On one port it speaks OpenAI Chat (`/v1/chat/completions`), OpenAI Responses (`/v1/responses`) and
//! Anthropic Messages (`/v1/messages`), whole and streamed, and also `/v1/messages/count_tokens` and
//! `/v1/models`. It refuses what a provider refuses, in the provider's words, and counts tokens (four bytes
//! are one token) and what a prompt cache would have read.
//!
//! Providers differ in what they refuse. A [`Twin`] is the row of such rules for one of them, and
//! [`Settings::twin`] makes the fake behave like it. Where a test names none, it is the one that the environment variable
//! `LONGHAUL_TWIN` names, or else [`Twin::PLAIN`].
//!
//! ```
//! use longhaul_fake::{Answer, Settings, Trouble};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let fake = Settings::new()
//!     .answer("Hello.")
//!     .answer(Answer::new().thinking("Which file?").call("Read", serde_json::json!({"path": "a.rs"})))
//!     .trouble(1..=1, Trouble::Status(503))
//!     .start()
//!     .await;
//!
//! // A client is pointed at fake.base_url(). This one is made by hand.
//! let body = r#"{"model": "m", "messages": [{"role": "user", "content": "Hi"}]}"#;
//! let request = format!("POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len());
//! for said in ["HTTP/1.1 503", "Hello.", "Which file?"] {
//!     let mut connection = tokio::net::TcpStream::connect(fake.address()).await?;
//!     connection.write_all(request.as_bytes()).await?;
//!     let mut response = String::new();
//!     connection.read_to_string(&mut response).await?;
//!     assert!(response.contains(said), "{response}");
//! }
//!
//! assert_eq!(fake.log().len(), 3);
//! assert_eq!(fake.log()[0].body["messages"][0]["content"], "Hi");
//! assert_eq!(fake.violations(), [] as [&str; 0]);
//! fake.until_idle().await;
//! # Ok(())
//! # }
//! ```

//!
//! A twin that binds thinking, as newer Claude models do, notices every change of the history before it:
//!
//! ```
//! # use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! use std::time::Duration;
//! use longhaul_fake::{Answer, Settings, StaleCounts, Twin};
//! use serde_json::{Value, json};
//!
//! # async fn post(fake: &longhaul_fake::Fake, body: &Value) -> std::io::Result<(bool, Value)> {
//! #     let body = body.to_string();
//! #     let request = format!("POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len());
//! #     let mut connection = tokio::net::TcpStream::connect(fake.address()).await?;
//! #     connection.write_all(request.as_bytes()).await?;
//! #     let mut response = String::new();
//! #     connection.read_to_string(&mut response).await?;
//! #     let body = response.split_once("\r\n\r\n").map_or("", |(_, body)| body);
//! #     Ok((response.starts_with("HTTP/1.1 200"), serde_json::from_str(body)?))
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let answer = Answer::new().thinking("Which file?").text("This one.");
//! let fake = Settings::new().twin(Twin::ANTHROPIC_NOW).answer(answer).start().await;
//!
//! let mut messages = vec![json!({"role": "user", "content": "Look."})];
//! let (answered, answer) = post(&fake, &json!({"max_tokens": 9, "messages": messages})).await?;
//! assert!(answered);
//!
//! messages.push(json!({"role": "assistant", "content": answer["content"]}));
//! messages.push(json!({"role": "user", "content": "Go on."}));
//! messages[0]["content"] = json!("Look again.");
//! let (answered, refusal) = post(&fake, &json!({"max_tokens": 9, "messages": messages})).await?;
//! let words = refusal["error"]["message"].as_str().unwrap_or_default();
//! assert!(!answered && words.contains("bound to a different conversation"), "{words}");
//! assert_eq!(fake.stale_thinking(), StaleCounts { refused: 1, ..StaleCounts::default() });
//! assert_eq!((fake.log()[1].stale[0].message, fake.log()[1].stale[0].block), (1, 0));
//!
//! // The prompt cache forgets by a clock that only the test advances.
//! fake.advance(Duration::from_secs(301));
//! # Ok(())
//! # }
//! ```

mod api;
mod binding;
mod cache;
mod canonical;
mod delivery;
mod http;
mod items;
mod log;
mod script;
mod seal;
mod server;
mod settings;
mod trouble;
mod twin;
mod window;

pub use api::Api;
pub use log::{Call, Outcome, Ruling, StaleBlock, StaleCounts};
pub use script::{Answer, AtEnd, Counts};
pub use server::Fake;
pub use settings::Settings;
pub use trouble::{Close, RetryAfter, Trouble};
pub use twin::{
    Binding, BindingControls, CacheRules, EncryptedReasoning, ItemPairs, LookBack, SystemMessages, Threads,
    TopLevelMark, Turns, Twin, WindowRule,
};
