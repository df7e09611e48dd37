//! The providers: where they are, and the client that asks them.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http::request::Parts;
use http::{HeaderMap, Uri};
use longhaul_model::causes;
use reqwest::redirect::Policy;
use reqwest::{Body, Client, ClientBuilder, Url};

use crate::foreign::Owner;
use crate::route::Side;
use crate::settings::shown;

/// The providers.
#[derive(Debug)]
pub(crate) struct Upstream {
    client: Client,
    anthropic: Base,
    openai: Base,
    others: Vec<Base>,
}

/// A request that goes to one of the further providers, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Other(pub(crate) usize);

/// Why there is no provider.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoUpstream {
    #[error("the base URL {0} {1}")]
    Base(String, &'static str),
    #[error("no client for HTTP: {0}")]
    Client(String),
}

impl Upstream {
    pub(crate) fn new(first: [&str; 2], others: &[String], connect: Duration) -> Result<Self, NoUpstream> {
        // The one provider of cryptography in this program. Whoever was first has set it.
        _ = rustls::crypto::ring::default_provider().install_default();
        let client =
            client(connect).build().map_err(|error| NoUpstream::Client(causes(&error.without_url())))?;
        let [anthropic, openai] = first;
        Ok(Self {
            client,
            anthropic: Base::of(Side::Anthropic, anthropic)?,
            openai: Base::of(Side::OpenAi, openai)?,
            others: others.iter().map(|base| Base::exact(base)).collect::<Result<_, _>>()?,
        })
    }

    /// The address of the provider that a request is for, without credentials. Empty if there is none.
    pub(crate) fn shown(&self, side: Side, parts: &Parts) -> Arc<str> {
        self.base(side, parts).map_or_else(|| "".into(), |base| base.shown.clone())
    }

    /// Whose server a request goes to, if there is one.
    pub(crate) fn owner(&self, side: Side, parts: &Parts) -> Option<Owner> {
        self.base(side, parts).map(|base| base.owner)
    }

    fn base(&self, side: Side, parts: &Parts) -> Option<&Base> {
        match (parts.extensions.get::<Other>(), side) {
            (Some(Other(number)), _) => self.others.get(*number),
            (None, Side::Anthropic) => Some(&self.anthropic),
            (None, Side::OpenAi) => Some(&self.openai),
        }
    }

    /// Sends a request, and waits for the head of the answer. If the connection ends before any of it, a body that is in
    /// memory is sent once more. What is said of an error has no address and no
    /// key.
    pub(crate) async fn send(
        &self,
        side: Side,
        parts: &Parts,
        headers: HeaderMap,
        body: Body,
    ) -> Result<http::Response<Body>, String> {
        let base = self.base(side, parts).ok_or("there is no provider of this number")?;
        let address = base.address(&parts.uri).ok_or("the path cannot be passed on")?;
        let request = self.client.request(parts.method.clone(), address).headers(headers).body(body);
        // A body that is not in memory cannot be sent again.
        let (again, begun) = (request.try_clone(), Instant::now());
        let may_be_kept = base.has_answered.load(Ordering::Relaxed);
        let is_stale = |error: &reqwest::Error| may_be_kept && is_cut_off(error) && begun.elapsed() <= SOON;
        let sent = match (request.send().await, again) {
            (Err(error), Some(again)) if is_stale(&error) => again.send().await,
            (sent, _) => sent,
        };
        base.has_answered.fetch_or(sent.is_ok(), Ordering::Relaxed);
        sent.map(Into::into).map_err(|error| causes(&error.without_url()))
    }
}

/// A connection that had ended is noticed by then. One that ends later may have worked on the request, which has its
/// price.
const SOON: Duration = Duration::from_secs(5);

/// True if the connection ended before a byte of the answer came: a provider closes connections that were idle, and the
/// request may have come just then.
fn is_cut_off(error: &reqwest::Error) -> bool {
    if error.is_connect() || error.is_timeout() {
        return false;
    }
    let mut causes = std::iter::successors(Some(error as &dyn Error), |error| (*error).source());
    causes.any(|cause| {
        let hyper = cause.downcast_ref::<hyper::Error>();
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        hyper.is_some_and(|error| error.is_incomplete_message() || error.is_canceled())
            || matches!(
                io,
                Some(ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe)
            )
    })
}

/// Bytes go through as they are, to the address that was given and to no other.
fn client(connect: Duration) -> ClientBuilder {
    Client::builder().redirect(Policy::none()).connect_timeout(connect).tcp_nodelay(true).no_gzip()
}

/// Where a provider is: what stands before a path.
struct Base {
    url: String,
    /// The same without credentials.
    shown: Arc<str>,
    owner: Owner,
    /// What the path of every address begins with.
    path: Box<str>,
    /// The version is in the base, and goes out of the path.
    has_version: bool,
    /// An answer came from there: a connection may be kept for the next request.
    has_answered: AtomicBool,
}

impl Base {
    /// OpenAI's SDKs have the version in the base URL, Anthropic's do not, and people write either.
    fn of(side: Side, base: &str) -> Result<Self, NoUpstream> {
        let Self { url: base, .. } = Self::exact(base)?;
        let has_path = Url::parse(&base).is_ok_and(|url| url.path().len() > 1);
        Ok(match side {
            Side::Anthropic => Self::at(base.strip_suffix("/v1").unwrap_or(&base).to_owned(), false),
            // Whoever writes a path means it.
            Side::OpenAi if has_path => Self::at(base, true),
            Side::OpenAi => Self::at(format!("{base}/v1"), true),
        })
    }

    /// A base that paths go behind as they are.
    fn exact(base: &str) -> Result<Self, NoUpstream> {
        let base = base.trim().trim_end_matches('/');
        let wrong = |why| NoUpstream::Base(shown(base), why);
        let url = Url::parse(base).map_err(|_| wrong("is none"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("begins neither with http:// nor with https://"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("has a query or a fragment"));
        }
        Ok(Self::at(base.to_owned(), false))
    }

    fn at(url: String, has_version: bool) -> Self {
        let parsed = Url::parse(&url).ok();
        Self {
            shown: shown(&url).into(),
            owner: parsed.as_ref().map_or(Owner::Unknown, Owner::of),
            path: parsed.as_ref().map_or("/", Url::path).trim_end_matches('/').into(),
            url,
            has_version,
            has_answered: AtomicBool::new(false),
        }
    }

    /// The address of what a client asks us for.
    fn address(&self, uri: &Uri) -> Option<Url> {
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let is_end = |rest: &&str| rest.is_empty() || rest.starts_with(['/', '?']);
        let path = match self.has_version {
            true => path.strip_prefix("/v1").filter(is_end).unwrap_or(path),
            false => path,
        };
        let is_path = path.is_empty() || path.starts_with(['/', '?']);
        let address = is_path.then(|| Url::parse(&format!("{}{path}", self.url)).ok()).flatten()?;
        let rest = address.path().strip_prefix(&*self.path)?;
        (rest.is_empty() || rest.starts_with('/')).then_some(address)
    }
}

impl std::fmt::Debug for Base {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(side: Side, base: &str, path: &str) -> String {
        Base::of(side, base).unwrap().address(&path.parse().unwrap()).unwrap().to_string()
    }

    #[test]
    fn paths_go_behind_the_base() {
        let anthropic = |base, path| at(Side::Anthropic, base, path);
        assert_eq!(
            anthropic("https://api.anthropic.com", "/v1/messages?beta=true"),
            "https://api.anthropic.com/v1/messages?beta=true"
        );
        assert_eq!(anthropic("http://h:1/v1/", "/v1/messages"), "http://h:1/v1/messages");
        assert_eq!(anthropic("http://h/api/anthropic", "/v1/models"), "http://h/api/anthropic/v1/models");
        let openai = |base, path| at(Side::OpenAi, base, path);
        for path in ["/v1/chat/completions", "/chat/completions"] {
            assert_eq!(
                openai("https://api.openai.com/v1", path),
                "https://api.openai.com/v1/chat/completions"
            );
            assert_eq!(openai("http://h:1", path), "http://h:1/v1/chat/completions");
            assert_eq!(openai("http://h/x/codex/", path), "http://h/x/codex/chat/completions");
        }
        assert_eq!(openai("http://h/v1", "/v1?a"), "http://h/v1?a");
        let is_refused = |path: &str| {
            Base::of(Side::OpenAi, "http://h/v1").unwrap().address(&path.parse().unwrap()).is_none()
        };
        assert!(is_refused("/v1/../x") && is_refused("/v1/%2e%2e/v12") && is_refused("/../../v1x"));
        let exact = |base, path: &str| {
            Base::exact(base).unwrap().address(&path.parse().unwrap()).unwrap().to_string()
        };
        assert_eq!(exact("http://h:1/", "/v1/chat/completions"), "http://h:1/v1/chat/completions");
        assert_eq!(exact("http://h:1", "/chat/completions"), "http://h:1/chat/completions");
        assert_eq!(exact("http://h/x", "/messages?a=b"), "http://h/x/messages?a=b");
    }

    #[test]
    fn what_is_no_base_url_is_said_without_secrets() {
        for base in ["", "localhost:8080", "ftp://me:secret@h", "http://me:secret@h/?key=secret"] {
            let error = Base::of(Side::OpenAi, base).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        let base = Base::of(Side::OpenAi, "http://me:secret@h/v1").unwrap();
        assert!(!format!("{base:?}").contains("secret"));
    }

    /// Finding 20 of the trial: without it small writes wait for an acknowledgement.
    #[test]
    fn small_writes_to_providers_do_not_wait() {
        assert!(format!("{:?}", client(Duration::from_secs(1))).contains("tcp_nodelay: true"));
    }
}
