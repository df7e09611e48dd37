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

mod api;
mod cache;
mod delivery;
mod http;
mod log;
mod script;
mod server;
mod settings;
mod trouble;

pub use api::Api;
pub use log::{Call, Outcome};
pub use script::{Answer, AtEnd, Counts};
pub use server::Fake;
pub use settings::Settings;
pub use trouble::{Close, RetryAfter, Trouble};
