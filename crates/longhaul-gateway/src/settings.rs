//! What a gateway is told when it starts.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;

use crate::desk::DeskSettings;
use crate::hold::Patience;
use crate::origin::Origin;

/// What a gateway is told when it starts.
#[derive(Clone)]
pub struct Settings {
    /// Where clients connect. An address that others can reach needs a token.
    pub listen: SocketAddr,
    /// The base URL of Anthropic Messages, as Anthropic's SDKs take it: `https://api.anthropic.com`.
    pub anthropic: String,
    /// The base URL of OpenAI Chat and Responses, as OpenAI's SDKs take it: `https://api.openai.com/v1`.
    pub openai: String,
    /// Base URLs of further providers, of whichever API: what a client asks for under `/to/0/…` goes to the first of
    /// them.
    pub others: Vec<String>,
    /// What a client must know.
    pub token: Option<Token>,
    /// What is answered without it. Anything but [`Open::Nothing`] is for loopback alone.
    pub open: Open,
    /// Web pages and apps, by their origins, that may use the APIs. All others are refused, with or without a token.
    pub origins: Vec<Origin>,
    /// How conversations are kept small, and where.
    pub desk: DeskSettings,
    /// How much, how many, how long.
    pub limits: Limits,
}

impl Settings {
    /// The names of settings that cannot change while a gateway runs, and that are others in `new`.
    pub(crate) fn fixed_that_differ(&self, new: &Self) -> Vec<&'static str> {
        let rows = [
            ("listen", self.listen != new.listen),
            ("anthropic", self.anthropic != new.anthropic),
            ("openai", self.openai != new.openai),
            ("token", self.token != new.token || self.open != new.open),
            ("origins", self.origins != new.origins),
            ("store", self.desk.store != new.desk.store),
            ("observe", self.desk.observe != new.desk.observe),
            ("no_content", self.desk.without_content != new.desk.without_content),
            ("connections", self.limits.connections != new.limits.connections),
            ("threads", self.limits.threads != new.limits.threads),
            ("connect", self.limits.connect != new.limits.connect),
        ];
        rows.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
    }
}

impl fmt::Debug for Settings {
    /// Base URLs may hold a password, and the store's name may too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("listen", &self.listen)
            .field("anthropic", &shown(&self.anthropic))
            .field("openai", &shown(&self.openai))
            .field("others", &self.others.iter().map(|base| shown(base)).collect::<Vec<_>>())
            .field("token", &self.token)
            .field("open", &self.open)
            .field("origins", &self.origins)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// What a gateway answers without its token, besides `/healthz` and `/readyz`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Open {
    /// Nothing.
    #[default]
    Nothing,
    /// The APIs of providers, and counters. Pages and tools show and change what was said before: they need the token, and
    /// where there is none they are closed.
    Apis,
    /// Everything, unless there is a token: every program of the machine may read and change stored conversations.
    Everything,
}

/// A base URL without what may be secret in it. It may be that of another gateway, with its token.
pub(crate) fn shown(base: &str) -> String {
    match Url::parse(base) {
        Ok(url) => {
            let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
            let path = match url.path().strip_prefix("/t/") {
                Some(rest) => format!("/t/[token]{}", rest.find('/').map_or("", |end| &rest[end..])),
                None => url.path().to_owned(),
            };
            format!("{}://{}{port}{path}", url.scheme(), url.host_str().unwrap_or_default())
        }
        Err(_) => "[no URL]".to_owned(),
    }
}

/// What a client must know to be let in. Only its hash is kept.
///
/// ```
/// use longhaul_gateway::Token;
/// let token = Token::new("a-long-random-text");
/// assert_eq!(format!("{token:?}"), "[token]");
/// assert!(token.is("a-long-random-text") && !token.is("another"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    hash: blake3::Hash,
    tenant: Arc<str>,
}

impl Token {
    /// This text. Those who have it share conversations with nobody else.
    pub fn new(text: &str) -> Self {
        let hash = blake3::hash(text.trim().as_bytes());
        Self { hash, tenant: hash.to_hex().as_str()[..16].into() }
    }

    /// This text, for a gateway of one user: it keeps others out, and conversations are those of a gateway without a
    /// token.
    pub fn of_one_user(text: &str) -> Self {
        Self { tenant: "".into(), ..Self::new(text) }
    }

    /// Whether it is this text. The time that it takes says nothing about the token.
    pub fn is(&self, text: &str) -> bool {
        self.hash == blake3::hash(text.as_bytes())
    }

    /// The name of those who have this token.
    pub(crate) fn tenant(&self) -> Arc<str> {
        self.tenant.clone()
    }

    /// A token that everybody knows.
    pub(crate) fn is_empty(&self) -> bool {
        self.is("")
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[token]")
    }
}

/// How much, how many, how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections of clients at once. As many more wait until one ends. Connections of which no request was let in yet do
    /// not count: there are at most 256 of them.
    pub connections: usize,
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// How long a client may take for a request's head, and be silent between two requests.
    pub head_wait: Duration,
    /// How long a connection may last of which no request was let in. One that is in the middle of a request gets as much
    /// again.
    pub newcomer_wait: Duration,
    /// Bytes of a request's body that are kept. A longer body is passed on as it comes.
    pub body_bytes: usize,
    /// Bytes of all bodies that are kept at once. A request that does not fit waits.
    pub bodies_bytes: usize,
    /// How long it waits. Then it is passed on as it comes.
    pub room_wait: Duration,
    /// How long a client may be silent inside a body.
    pub body_wait: Duration,
    /// How long a decision may take. Then the client's own bytes go out.
    pub decide: Duration,
    /// Threads that decide. Each of them takes some megabytes.
    pub threads: usize,
    /// Bytes of an answer that are held until it is known whether the request was too long.
    pub held_bytes: usize,
    /// How long they are held.
    pub hold: Duration,
    /// How long a connection to a provider may take.
    pub connect: Duration,
    /// How long answers may go on when the gateway stops.
    pub stop: Duration,
}

impl Limits {
    /// How much of an answer is held, and how long.
    pub(crate) fn patience(&self) -> Patience {
        Patience { bytes: self.held_bytes, time: self.hold }
    }
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connections: 1_024,
            head_bytes: 256 << 10,
            head_wait: seconds(30),
            newcomer_wait: seconds(5),
            body_bytes: 64 << 20,
            bodies_bytes: 512 << 20,
            room_wait: seconds(5),
            body_wait: seconds(60),
            decide: seconds(2),
            // One that hangs must not stop the others.
            threads: std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2)),
            held_bytes: 64 << 10,
            hold: seconds(10),
            connect: seconds(15),
            stop: seconds(30),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(shown("https://me:secret@h:9/v1?key=secret"), "https://h:9/v1");
        assert_eq!(shown("secret"), "[no URL]");
        // Agents may be sent through one gateway to another.
        assert_eq!(shown("http://127.0.0.1:8484/t/secret/v1"), "http://127.0.0.1:8484/t/[token]/v1");
        assert_eq!(shown("http://127.0.0.1:8484/t/secret"), "http://127.0.0.1:8484/t/[token]");
    }
}
