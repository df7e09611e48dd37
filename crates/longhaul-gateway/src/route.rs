//! What a request asks for, by its method, its path and its headers.
//!
//! | request | is |
//! |---|---|
//! | `POST /v1/messages`, `/v1/responses`, `/v1/chat/completions`; the last two also without `/v1` | a request to a model |
//! | `POST /v1/messages/count_tokens` | a count |
//! | `GET /v1/responses` with `upgrade: websocket` | refused, so that the client speaks HTTP |
//! | `POST /mcp` | a call of one of our own tools |
//! | paths under `/inspect` | the inspector |
//! | `GET /healthz`, `/readyz`, `/metrics` | for whoever runs the gateway |
//! | paths under `/v1/messages`, `/v1/complete`, `/api` | passed on to Anthropic |
//! | paths under `/v1/chat`, `/v1/responses`, with or without `/v1` | passed on to OpenAI |
//! | all others, with `anthropic-version`, `anthropic-beta` or `x-api-key` | passed on to Anthropic |
//! | all others | passed on to OpenAI |
//!
//! What is passed on must be for that provider: `foreign` refuses the rest.

use http::header::{HeaderMap, UPGRADE};
use http::{Method, Uri};
use longhaul_wire::api::Api;

/// A provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Anthropic,
    OpenAi,
}

impl Side {
    pub(crate) fn of(api: Api) -> Self {
        match api {
            Api::Anthropic => Self::Anthropic,
            Api::Chat | Api::Responses => Self::OpenAi,
        }
    }
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// Whether we are alive.
    Health,
    /// Whether we can serve.
    Ready,
    /// Our counters.
    Metrics,
    /// A WebSocket, which we do not speak.
    WebSocket,
    /// Tools of ours.
    Tools,
    /// The inspector.
    Inspect,
    /// An answer of a model.
    Model(Api),
    /// The size of a conversation.
    Count,
    /// Something that only the provider knows.
    Other(Side),
}

impl Route {
    pub(crate) fn of(method: &Method, uri: &Uri, headers: &HeaderMap) -> Self {
        let path = uri.path();
        if path == "/inspect" || path.starts_with("/inspect/") {
            return Self::Inspect;
        }
        if matches!(*method, Method::GET | Method::HEAD) {
            match path {
                "/healthz" => return Self::Health,
                "/readyz" => return Self::Ready,
                "/metrics" => return Self::Metrics,
                _ => {}
            }
        }
        let short = path.strip_prefix("/v1").filter(|rest| rest.starts_with('/')).unwrap_or(path);
        let upgrades =
            headers.get(UPGRADE).is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"));
        match (short, method) {
            ("/mcp", _) if path == "/mcp" => Self::Tools,
            ("/responses", &Method::GET) if upgrades => Self::WebSocket,
            ("/chat/completions", &Method::POST) => Self::Model(Api::Chat),
            ("/responses", &Method::POST) => Self::Model(Api::Responses),
            _ if *method == Method::POST && path == "/v1/messages" => Self::Model(Api::Anthropic),
            _ if *method == Method::POST && path == "/v1/messages/count_tokens" => Self::Count,
            _ => Self::Other(side(path, short, headers)),
        }
    }

    /// Whose words we use, if we say something ourselves.
    pub(crate) fn side(self) -> Side {
        match self {
            Self::Model(api) => Side::of(api),
            Self::Count => Side::Anthropic,
            Self::Other(side) => side,
            Self::Health | Self::Ready | Self::Metrics | Self::WebSocket | Self::Tools | Self::Inspect => {
                Side::OpenAi
            }
        }
    }

    /// A word for counters and logs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Model(api) => api.name(),
            Self::Count => "count",
            Self::WebSocket => "websocket",
            Self::Tools => "tools",
            Self::Health | Self::Ready | Self::Metrics | Self::Inspect => "own",
            Self::Other(_) => "other",
        }
    }
}

fn side(path: &str, short: &str, headers: &HeaderMap) -> Side {
    let under = |path: &str, root: &str| {
        path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if ["/v1/messages", "/v1/complete", "/api"].iter().any(|root| under(path, root)) {
        return Side::Anthropic;
    }
    if ["/chat", "/responses"].iter().any(|root| under(short, root)) {
        return Side::OpenAi;
    }
    match ["anthropic-version", "anthropic-beta", "x-api-key"].iter().any(|name| headers.contains_key(*name))
    {
        true => Side::Anthropic,
        false => Side::OpenAi,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(method: Method, path: &str, headers: &[(&'static str, &'static str)]) -> Route {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        Route::of(&method, &path.parse().unwrap(), &headers.collect())
    }

    #[test]
    fn models_are_asked_by_three_paths() {
        let post = |path| route(Method::POST, path, &[]);
        assert_eq!(post("/v1/messages?beta=true"), Route::Model(Api::Anthropic));
        assert_eq!(post("/v1/responses"), Route::Model(Api::Responses));
        assert_eq!(post("/responses"), Route::Model(Api::Responses));
        assert_eq!(post("/v1/chat/completions"), Route::Model(Api::Chat));
        assert_eq!(post("/chat/completions"), Route::Model(Api::Chat));
        assert_eq!(post("/v1/messages/count_tokens"), Route::Count);
        assert_eq!(post("/messages"), Route::Other(Side::OpenAi));
    }

    #[test]
    fn everything_else_belongs_to_a_provider() {
        let get = |path, headers: &[_]| route(Method::GET, path, headers);
        assert_eq!(get("/v1/models", &[]), Route::Other(Side::OpenAi));
        assert_eq!(get("/v1/models", &[("anthropic-version", "1")]), Route::Other(Side::Anthropic));
        assert_eq!(get("/v1/models", &[("x-api-key", "k")]), Route::Other(Side::Anthropic));
        assert_eq!(route(Method::HEAD, "/api/hello", &[]), Route::Other(Side::Anthropic));
        assert_eq!(get("/v1/messages/batches", &[]), Route::Other(Side::Anthropic));
        assert_eq!(get("/v1/messagesfoo", &[]), Route::Other(Side::OpenAi));
        assert_eq!(get("/v1/responses/r1", &[("x-api-key", "k")]), Route::Other(Side::OpenAi));
        assert_eq!(get("/v1/responses", &[]), Route::Other(Side::OpenAi));
        assert_eq!(get("/v1/responses", &[("upgrade", "WebSocket")]), Route::WebSocket);
        assert_eq!(get("/healthz", &[]), Route::Health);
        assert_eq!(get("/inspect/api/me", &[("x-api-key", "k")]), Route::Inspect);
        assert_eq!(route(Method::POST, "/inspect", &[]), Route::Inspect);
        assert_eq!(get("/inspector", &[]), Route::Other(Side::OpenAi));
        assert_eq!(route(Method::POST, "/healthz", &[]), Route::Other(Side::OpenAi));
    }
}
