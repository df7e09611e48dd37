//! Tools of other programs, over the Model Context Protocol: servers that are started and spoken to by their input and
//! output, or that are reached by HTTP. Each of their tools is one of the agent's, named `mcp__SERVER__TOOL`.

mod http;
mod message;
mod settings;
mod stdio;
mod tool;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

pub use settings::{BadServers, McpServers, ServerSettings};

use crate::tool::Tool;
use http::HttpServer;
use message::McpError;
use stdio::StdioServer;
use tool::McpTool;

/// The version of the protocol that we speak.
const VERSION: &str = "2025-06-18";
/// A server that has not said what it can by then is not waited for.
const START: Duration = Duration::from_secs(20);
/// Tools of one server.
const MOST_TOOLS: usize = 200;
/// Pages of a list of tools.
const MOST_PAGES: usize = 50;

/// A server that is connected.
enum Server {
    Stdio(StdioServer),
    Http(HttpServer),
}

impl Server {
    async fn ask(&self, method: &str, params: Value) -> Result<Value, McpError> {
        match self {
            Self::Stdio(server) => server.ask(method, params).await,
            Self::Http(server) => server.ask(method, params).await,
        }
    }

    async fn tell(&self, method: &str, params: Value) -> Result<(), McpError> {
        match self {
            Self::Stdio(server) => server.tell(method, params).await,
            Self::Http(server) => server.tell(method, params).await,
        }
    }
}

/// The tools of a server, or why there are none.
pub struct ConnectedServer {
    /// Its name.
    pub name: String,
    /// Its tools.
    pub tools: Result<Vec<Box<dyn Tool>>, String>,
}

/// Connects to all servers at once. One that does not answer is said, and hinders nobody.
pub async fn connect(servers: &McpServers, root: &Path) -> Vec<ConnectedServer> {
    let mut connecting = tokio::task::JoinSet::new();
    for (at, (name, settings)) in servers.iter().enumerate() {
        let (name, settings, root) = (name.to_owned(), settings.clone(), root.to_owned());
        connecting.spawn(async move {
            let tools = match timeout(START, tools_of(&name, &settings, &root)).await {
                Ok(tools) => tools.map_err(|error| error.to_string()),
                Err(_) => Err(format!("it did not answer within {} seconds", START.as_secs())),
            };
            (at, ConnectedServer { name, tools })
        });
    }
    let mut connected = Vec::new();
    while let Some(joined) = connecting.join_next().await {
        connected.extend(joined.ok());
    }
    // The order of tools is a part of the prompt.
    connected.sort_by_key(|(at, _)| *at);
    connected.into_iter().map(|(_, server)| server).collect()
}

async fn tools_of(
    name: &str,
    settings: &ServerSettings,
    root: &Path,
) -> Result<Vec<Box<dyn Tool>>, McpError> {
    let server = match settings {
        ServerSettings::Command { command, args, env } => {
            Server::Stdio(StdioServer::start(command, args, env, root)?)
        }
        ServerSettings::Url { url, headers } => Server::Http(HttpServer::new(url, headers)?),
    };
    let client = json!({ "name": "longhaul", "version": env!("CARGO_PKG_VERSION") });
    let params = json!({ "protocolVersion": VERSION, "capabilities": {}, "clientInfo": client });
    server.ask("initialize", params).await?;
    server.tell("notifications/initialized", json!({})).await?;
    let server = Arc::new(server);
    let mut tools: Vec<Box<dyn Tool>> = Vec::new();
    let mut cursor: Option<Value> = None;
    for _ in 0..MOST_PAGES {
        let params = cursor.take().map_or(json!({}), |cursor| json!({ "cursor": cursor }));
        let page = server.ask("tools/list", params).await?;
        for definition in page["tools"].as_array().into_iter().flatten() {
            if let Some(tool) = McpTool::of(name, definition, &server).filter(|_| tools.len() < MOST_TOOLS) {
                tools.push(Box::new(tool));
            }
        }
        match page.get("nextCursor").filter(|next| next.is_string()) {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
    }
    Ok(tools)
}
