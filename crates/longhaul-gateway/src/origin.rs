//! Web pages of other sites: a browser sends their requests with `Origin` or `Sec-Fetch-Site`, and all are refused but those
//! of origins that the settings list. Pages of listed origins are told so (CORS), and read the answers.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderName, HeaderValue, ORIGIN, VARY,
};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming as ClientRequestBody;
use longhaul_inspector::access::is_from_another_page;

use crate::answer::ClientBody;
use crate::exchange::{self, Shared};
use crate::words;

/// What a page of another site is told.
pub(crate) const REFUSED: &str = "longhaul: no web page of another site may use this gateway; to allow one, list its origin \
                                  in the setting `gateway.origins` or by `--origin`";

/// Where a web page comes from: scheme, host and port, as browsers send it in `Origin`. Apps have schemes of their own.
///
/// ```
/// use longhaul_gateway::Origin;
/// let origin: Origin = "https://Chat.example.com/".parse()?;
/// assert_eq!(origin.to_string(), "https://chat.example.com");
/// assert!("null".parse::<Origin>().is_err() && "https://example.com/chat".parse::<Origin>().is_err());
/// # Ok::<(), longhaul_gateway::NoOrigin>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(Box<str>);

/// A text that is not an origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not an origin: write scheme, host and port alone, like https://chat.example.com or http://localhost:3000"
)]
pub struct NoOrigin(String);

impl FromStr for Origin {
    type Err = NoOrigin;

    fn from_str(text: &str) -> Result<Self, NoOrigin> {
        let origin = text.trim().trim_end_matches('/').to_ascii_lowercase();
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':' | '[' | ']');
        let parts = origin.split_once("://");
        // Pages without an origin of their own (`null`) are of any site.
        let is_origin = parts.is_some_and(|(scheme, host)| {
            scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(is_scheme)
                && !host.is_empty()
                && host.chars().all(is_host)
        });
        if is_origin { Ok(Self(origin.into())) } else { Err(NoOrigin(text.to_owned())) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Origins whose pages may use the APIs.
#[derive(Debug)]
pub(crate) struct Origins(Vec<Origin>);

impl Origins {
    pub(crate) fn new(listed: &[Origin]) -> Self {
        Self(listed.to_vec())
    }

    /// True if a browser sends the request for a page of another site that is not listed.
    pub(crate) fn refuse(&self, headers: &HeaderMap) -> bool {
        is_from_another_page(headers) && self.listed(headers).is_none()
    }

    /// The origin of the request, if it is listed.
    fn listed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let mut given = headers.get_all(ORIGIN).iter();
        let (origin, None) = (given.next()?, given.next()) else { return None };
        let text = origin.to_str().ok()?;
        self.0.iter().any(|listed| listed.0.eq_ignore_ascii_case(text)).then(|| origin.clone())
    }
}

/// Answers a request. To a page of a listed origin the browser is told that the page may read the answer.
pub(crate) async fn serve(shared: Arc<Shared>, request: Request<ClientRequestBody>) -> Response<ClientBody> {
    let Some(origin) = shared.origins.listed(request.headers()) else {
        return exchange::serve(shared, request).await;
    };
    let mut response = match preflight(&request) {
        Some(response) => response,
        None => exchange::serve(shared, request).await,
    };
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
    headers.append(VARY, HeaderValue::from_static("origin"));
    response
}

/// The answer to a browser that asks, before it sends a request, whether it may. It comes without a token and without keys.
fn preflight<B>(request: &Request<B>) -> Option<Response<ClientBody>> {
    const PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");
    const ALLOW_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");
    let asked = request.headers();
    let method = asked.get(ACCESS_CONTROL_REQUEST_METHOD).filter(|_| request.method() == Method::OPTIONS)?;
    let mut response = words::text(StatusCode::NO_CONTENT, "text/plain", String::new());
    let headers = response.headers_mut();
    headers.clear();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, method.clone());
    if let Some(names) = asked.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    if asked.contains_key(PRIVATE_NETWORK) {
        headers.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
    }
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    headers.insert(
        VARY,
        HeaderValue::from_static("access-control-request-method, access-control-request-headers"),
    );
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        for (text, origin) in [
            ("https://chat.example.com", "https://chat.example.com"),
            (" HTTP://LocalHost:3000/ ", "http://localhost:3000"),
            ("app://obsidian.md", "app://obsidian.md"),
            ("http://[::1]:80", "http://[::1]:80"),
        ] {
            assert_eq!(text.parse::<Origin>().unwrap().to_string(), origin);
        }
        for text in [
            "",
            "*",
            "null",
            "localhost:3000",
            "https://",
            "https://*.example.com",
            "http://a/b",
            "://a",
            "http://a b",
        ] {
            assert!(text.parse::<Origin>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_listed_origins_are_let_in() {
        let origins = Origins::new(&["http://localhost:3000".parse().unwrap()]);
        let refuses = |rows: &[(&'static str, &'static str)]| {
            let mut headers: HeaderMap = [("host", "localhost:1")]
                .iter()
                .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
                .collect();
            for (name, value) in rows {
                headers.append(*name, HeaderValue::from_static(value));
            }
            origins.refuse(&headers)
        };
        assert!(!refuses(&[]) && !refuses(&[("origin", "http://localhost:1")]));
        assert!(!refuses(&[("origin", "http://localhost:3000"), ("sec-fetch-site", "same-site")]));
        assert!(refuses(&[("origin", "http://localhost:3001")]) && refuses(&[("origin", "null")]));
        // Without an origin nobody knows which page it is.
        assert!(refuses(&[("sec-fetch-site", "same-site")]));
        assert!(refuses(&[("origin", "http://localhost:3000"), ("origin", "http://evil.example")]));
    }
}
