//! Headers on their way to a provider and back: all of them, but for those that belong to one connection and
//! those that are ours.

use std::fmt::Write;

use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, COOKIE, HOST, HeaderMap,
    HeaderName, HeaderValue,
};

use crate::desk::Reason;
use crate::engine::Brief;

/// Headers of one connection. The server has answered `expect` already.
const HOP: [&str; 7] =
    ["connection", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];

/// How the body that is sent on is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// As the client wrote it.
    Own,
    /// Plain, whatever the client's was.
    Plain,
}

/// What goes to a provider. The client sets the length anew.
pub(crate) fn onward(headers: &HeaderMap, body: Body) -> HeaderMap {
    let mut sent = kept(headers);
    sent.remove(HOST);
    sent.remove(CONTENT_LENGTH);
    if body == Body::Plain {
        sent.remove(CONTENT_ENCODING);
    }
    let ours: Vec<HeaderName> = sent.keys().filter(|name| is_ours(name)).cloned().collect();
    ours.into_iter().for_each(|name| _ = sent.remove(name));
    sent
}

/// The provider shall not compress its answer: we read what it costs.
pub(crate) fn ask_for_plain(headers: &mut HeaderMap) {
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

/// What goes back to the client.
pub(crate) fn back(headers: &HeaderMap) -> HeaderMap {
    kept(headers)
}

/// What the desk sees: no keys.
pub(crate) fn without_keys(headers: &HeaderMap) -> HeaderMap {
    let mut seen = headers.clone();
    for name in [AUTHORIZATION, COOKIE] {
        seen.remove(name);
    }
    for name in ["x-api-key", "api-key", "x-goog-api-key", "proxy-authorization"] {
        seen.remove(name);
    }
    seen
}

/// What a request says of the account that pays for it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) enum Account<'a> {
    /// The key of an organization.
    Key(&'a [u8]),
    /// Somebody who is signed in, or a signature of the request: the token is another one every hour or so, of the same
    /// account.
    Token,
}

/// The account of a request, as far as its keys tell.
pub(crate) fn account(headers: &HeaderMap) -> Option<Account<'_>> {
    let value = |name: &str| headers.get(name).map(HeaderValue::as_bytes);
    if let Some(key) = value("x-api-key").or_else(|| value("api-key")) {
        return Some(Account::Key(key));
    }
    let bearer = value(AUTHORIZATION.as_str())?;
    let key = bearer.strip_prefix(b"Bearer ").filter(|key| key.starts_with(b"sk-"));
    let key = key.filter(|key| !key.starts_with(SIGNED_IN.as_bytes()));
    Some(key.map_or(Account::Token, Account::Key))
}

/// Anthropic's tokens of people who are signed in begin so.
const SIGNED_IN: &str = "sk-ant-oat";

/// True if a request comes with the login of a subscription (Claude, ChatGPT) in the place of a key: a token of OAuth, or a
/// signed one (JWT). Nobody is billed for it by the token.
pub(crate) fn is_subscription(headers: &HeaderMap) -> bool {
    let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let token = bearer.strip_prefix("Bearer ").unwrap_or_default();
    let is_signed = token.starts_with("eyJ") && token.split('.').count() == 3;
    headers.contains_key("chatgpt-account-id") || token.starts_with(SIGNED_IN) || is_signed
}

/// Says what was sent.
pub(crate) fn say_sent(headers: &mut HeaderMap, sent: &Brief) {
    let Brief { session, how, view, full, edits, shorter_answer, fallen, costs, is_observed, .. } = sent;
    say(headers, "x-longhaul-session", &session.to_string());
    let mut says = how.name().to_owned();
    // Writing into a text does not fail.
    _ = write!(says, "; view={}; full={}; edits={edits}", view.0, full.0);
    if let Some(most) = shorter_answer {
        _ = write!(says, "; max_tokens={}", most.0);
    }
    if let Some((rung, why)) = fallen {
        _ = write!(says, "; sent={}; why={why}", rung.name());
    }
    // The bill of this call comes after its header.
    if let Some((billed, without)) = costs.told(costs.billed).zip(costs.told(costs.otherwise)) {
        let other = if *is_observed { "with" } else { "without" };
        _ = write!(says, "; billed={billed}; {other}={without}");
    }
    if *is_observed {
        says += "; observed";
    }
    say(headers, "x-longhaul", &says);
}

/// Says why a request was passed on.
pub(crate) fn say_passed_on(headers: &mut HeaderMap, reason: Reason) {
    say(headers, "x-longhaul", &format!("passed-on; why={reason}"));
}

fn say(headers: &mut HeaderMap, name: &'static str, says: &str) {
    if let Ok(says) = HeaderValue::from_str(says) {
        headers.insert(HeaderName::from_static(name), says);
    }
}

fn is_ours(name: &HeaderName) -> bool {
    name.as_str().starts_with("x-longhaul")
}

fn kept(headers: &HeaderMap) -> HeaderMap {
    let named: Vec<&str> =
        headers.get_all(CONNECTION).iter().filter_map(|names| names.to_str().ok()).collect();
    let named: Vec<&str> = named.iter().flat_map(|names| names.split(',')).map(str::trim).collect();
    let is_hop = |name: &str| {
        HOP.contains(&name)
            || name.starts_with("proxy-")
            || named.iter().any(|other| other.eq_ignore_ascii_case(name))
    };
    let kept = headers.iter().filter(|(name, _)| !is_hop(name.as_str()));
    let mut copy = HeaderMap::with_capacity(headers.len());
    kept.for_each(|(name, value)| _ = copy.append(name.clone(), value.clone()));
    copy
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(headers: &[(&'static str, &'static str)]) -> HeaderMap {
        headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn headers_of_the_connection_and_ours_stay_here() {
        let came = map(&[
            ("host", "localhost"),
            ("connection", "close, X-Hop"),
            ("x-hop", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("expect", "100-continue"),
            ("transfer-encoding", "chunked"),
            ("proxy-authorization", "secret"),
            ("content-length", "7"),
            ("content-encoding", "gzip"),
            ("x-longhaul", "off"),
            ("x-longhaul-token", "T"),
            ("authorization", "Bearer k"),
            ("anthropic-beta", "a"),
        ]);
        let kept =
            map(&[("content-encoding", "gzip"), ("authorization", "Bearer k"), ("anthropic-beta", "a")]);
        assert_eq!(onward(&came, Body::Own), kept);
        assert!(!onward(&came, Body::Plain).contains_key("content-encoding"));
        assert_eq!(back(&map(&[("content-length", "7"), ("upgrade", "x")])), map(&[("content-length", "7")]));
        assert!(!without_keys(&came).contains_key("authorization"));
    }

    #[test]
    fn a_token_that_was_refreshed_is_of_the_same_account() {
        let of = |name: &'static str, value: &'static str| map(&[(name, value)]);
        let tokens = [
            of("authorization", "Bearer sk-ant-oat01-one"),
            of("authorization", "Bearer sk-ant-oat01-two"),
            of("authorization", "Bearer eyJhbGciOi.one"),
            of("authorization", "Bearer ya29.two"),
            of("authorization", "AWS4-HMAC-SHA256 Credential=a, Signature=1"),
        ];
        assert!(tokens.iter().all(|headers| account(headers) == Some(Account::Token)));
        let keys = [
            of("x-api-key", "sk-ant-api03-one"),
            of("x-api-key", "sk-ant-api03-two"),
            of("authorization", "Bearer sk-ant-api03-three"),
            of("api-key", "0123"),
        ];
        let accounts: Vec<_> = keys.iter().chain(&tokens[..1]).map(account).collect();
        let is_alone = |at: usize| accounts.iter().filter(|other| **other == accounts[at]).count() == 1;
        assert!((0..accounts.len()).all(is_alone), "{accounts:?}");
        assert_eq!(account(&map(&[])), None);
        // The same key in another header.
        assert_eq!(account(&of("authorization", "Bearer sk-a")), account(&of("x-api-key", "sk-a")));
    }

    #[test]
    fn a_subscription_is_known_by_its_token() {
        for (name, value, is) in [
            ("authorization", "Bearer sk-ant-oat01-one", true),
            ("authorization", "Bearer eyJhbGciOi.eyJzdWI.c2ln", true),
            ("chatgpt-account-id", "one", true),
            ("authorization", "Bearer sk-ant-api03-one", false),
            ("authorization", "Bearer sk-proj-one", false),
            ("authorization", "Bearer gsk_one", false),
            ("authorization", "AWS4-HMAC-SHA256 Credential=a, Signature=1", false),
            ("x-api-key", "sk-ant-api03-one", false),
        ] {
            assert_eq!(is_subscription(&map(&[(name, value)])), is, "{value}");
        }
    }

    #[test]
    fn values_of_one_name_stay_many() {
        let mut came = HeaderMap::new();
        came.append("set-cookie", HeaderValue::from_static("a"));
        came.append("set-cookie", HeaderValue::from_static("b"));
        assert_eq!(back(&came).get_all("set-cookie").iter().count(), 2);
    }
}
