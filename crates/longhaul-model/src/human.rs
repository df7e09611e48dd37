//! A model that is a person, or a script on the other end of a pipe: what is asked is printed, what is
//! typed is the reply.

use std::sync::Arc;

use longhaul::{Block, Json, Message, Role};
use longhaul_wire::api::Request;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;

use crate::fault::Fault;
use crate::model::{Asked, Model, Watch};
use crate::scripted::reply_of;

/// What is printed before a reply is typed.
const HELP: &str =
    "(Answer; a line `call NAME {JSON}` calls a tool; a line with a dot alone ends the answer.)";

/// A model that types its replies.
pub struct Human {
    ends: Mutex<Ends>,
}

struct Ends {
    input: Box<dyn AsyncBufRead + Send + Unpin>,
    output: Box<dyn AsyncWrite + Send + Unpin>,
    /// Messages that were printed before.
    shown: Vec<Arc<Message>>,
    calls: usize,
}

impl Human {
    /// Somebody at the terminal.
    pub fn at_terminal() -> Self {
        Self::new(tokio::io::BufReader::new(tokio::io::stdin()), tokio::io::stdout())
    }

    /// Somebody at the other end of these.
    pub fn new(
        input: impl AsyncBufRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        let ends = Ends { input: Box::new(input), output: Box::new(output), shown: Vec::new(), calls: 0 };
        Self { ends: Mutex::new(ends) }
    }
}

impl Model for Human {
    fn name(&self) -> &str {
        "human"
    }

    fn ask<'a>(&'a self, request: Request, watch: &'a mut Watch<'_>) -> Asked<'a> {
        Box::pin(async move {
            let mut ends = self.ends.lock().await;
            let message = ends.answer(&request).await?;
            Ok(reply_of(message, &request, watch))
        })
    }
}

impl Ends {
    async fn answer(&mut self, request: &Request) -> Result<Message, Fault> {
        self.show(request.messages()).await?;
        let (mut text, mut blocks) = (String::new(), Vec::new());
        loop {
            let mut line = String::new();
            let read = self.input.read_line(&mut line).await.map_err(lost)?;
            let line = line.trim_end_matches(['\n', '\r']);
            match line.strip_prefix("call ") {
                _ if read == 0 && text.is_empty() && blocks.is_empty() => {
                    return Err(Fault::Unreachable("nobody types a reply any more".to_owned()));
                }
                _ if read == 0 || line == "." => break,
                Some(call) => match self.call(call) {
                    Some(call) => blocks.push(call),
                    None => {
                        self.print("(That is no call: `call NAME {JSON}`, the JSON an object.)\n").await?
                    }
                },
                None => {
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
        if !text.trim().is_empty() {
            blocks.insert(0, Block::text(text.trim_end()));
        }
        if blocks.is_empty() { Err(Fault::Empty) } else { Ok(Message::new(Role::Assistant, blocks)) }
    }

    /// `NAME {JSON}`, or the name alone.
    fn call(&mut self, text: &str) -> Option<Block> {
        let (name, arguments) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), "{}"));
        let arguments = Json::new(arguments.trim()).ok().filter(Json::is_object)?;
        self.calls += 1;
        let id = format!("typed_{}", self.calls);
        (!name.is_empty()).then(|| Block::call(id, name, arguments))
    }

    /// Prints what is new since the last time: all messages from the first one that is another.
    async fn show(&mut self, messages: &[Arc<Message>]) -> Result<(), Fault> {
        let first = self.shown.iter().zip(messages).take_while(|(shown, message)| shown == message).count();
        for message in &messages[first..] {
            let mut text = format!("[{}]\n", message.role().name());
            for block in message.blocks() {
                match block {
                    Block::Text(block) => text += &block.text,
                    Block::ToolResult(result) => text += &result.text,
                    Block::ToolCall(call) => {
                        text += &format!("call {} {}", call.name, call.arguments.as_str())
                    }
                    Block::Thinking(_) | Block::Image(_) | Block::Opaque(_) => continue,
                }
                text.push('\n');
            }
            self.print(&text).await?;
        }
        self.shown = messages.to_vec();
        self.print(HELP).await?;
        self.print("\n").await
    }

    async fn print(&mut self, text: &str) -> Result<(), Fault> {
        self.output.write_all(text.as_bytes()).await.map_err(lost)?;
        self.output.flush().await.map_err(lost)
    }
}

fn lost(error: std::io::Error) -> Fault {
    Fault::Unreachable(error.to_string())
}
