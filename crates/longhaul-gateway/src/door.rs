//! Who may come in, and whose request it is. A request must name this machine as its host, so that no page in
//! a browser gets in by a name of its own (DNS rebinding), and must carry the token if there is one: in the
//! header `x-longhaul-token`, in the place of a provider's key, or in the path, as `/t/TOKEN/v1/…`, for
//! clients that can be told nothing but a base URL. The token goes no further. Behind it a path may say which of
//! the further providers is meant, as `/to/0/v1/…`. Settings may let requests to the APIs in without the token.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::header::{AUTHORIZATION, HeaderMap, HeaderName};
use http::request::Parts;
use http::uri::{PathAndQuery, Uri};
use longhaul_inspector::access::names_this_machine;

use crate::route::Route;
use crate::settings::{Open, Token};
use crate::upstream::Other;

const TOKEN: HeaderName = HeaderName::from_static("x-longhaul-token");
/// Where clients put a provider's key.
const KEYS: [HeaderName; 4] = [
    AUTHORIZATION,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-goog-api-key"),
];

/// The request is for a name that is not this machine's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WrongHost;

#[derive(Debug)]
pub(crate) struct Door {
    /// The address, if only this machine can reach it.
    loopback: Option<IpAddr>,
    token: Option<Token>,
    open: Open,
    /// Whose requests all are that come in.
    tenant: Arc<str>,
}

/// Who came in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Guest {
    pub(crate) tenant: Arc<str>,
    /// It came with the token, or there is none and everything is open.
    pub(crate) has_token: bool,
}

impl Door {
    /// Where Longhaul only observes, everybody is another tenant: what it would have sent is gone on with by no request that
    /// is really changed.
    pub(crate) fn new(listen: SocketAddr, token: Option<Token>, open: Open, observes: bool) -> Self {
        let ip = listen.ip();
        let tenant = token.as_ref().map_or_else(|| "".into(), Token::tenant);
        let tenant = if observes { format!("observed:{tenant}").into() } else { tenant };
        Self { loopback: ip.is_loopback().then_some(ip), token, open, tenant }
    }

    /// Takes the token out of a request and says whose it is.
    pub(crate) fn enter(&self, parts: &mut Parts) -> Result<Guest, WrongHost> {
        if let Some(ip) = self.loopback
            && !names_this_machine(parts, ip)
        {
            return Err(WrongHost);
        }
        let is_token = |text: &str| self.token.as_ref().is_some_and(|token| token.is(text));
        let mut has_token = self.token.is_none() && self.open == Open::Everything;
        // A base URL may have it twice. Whoever gives more of them tries them, and has each looked at for nothing.
        for _ in 0..2 {
            let Some(text) = take_from_path(&mut parts.uri, "/t/") else { break };
            has_token |= is_token(&text);
        }
        if let Some(number) = take_from_path(&mut parts.uri, "/to/") {
            // What is no number is no provider.
            parts.extensions.insert(Other(number.parse().unwrap_or(usize::MAX)));
        }
        let in_header = parts.headers.remove(TOKEN);
        has_token |=
            in_header.as_ref().and_then(|value| value.to_str().ok()).map(str::trim).is_some_and(is_token);
        has_token |= take_key(&mut parts.headers, is_token);
        Ok(Guest { tenant: self.tenant.clone(), has_token })
    }

    /// Whether a request may have what it asks for. Everybody may ask whether we are alive.
    pub(crate) fn lets(&self, guest: &Guest, route: Route) -> bool {
        let is_of_an_api = match route {
            Route::Model(_) | Route::Count | Route::WebSocket | Route::Other(_) | Route::Metrics => true,
            Route::Tools | Route::Inspect => false,
            Route::Health | Route::Ready => return true,
        };
        guest.has_token || is_of_an_api && self.open == Open::Apis
    }
}

/// The token in `/t/TOKEN/…`, or the number in `/to/N/…`. It is taken out, also where nobody asks for one: no
/// provider shall see it.
pub(crate) fn take_from_path(uri: &mut Uri, before: &str) -> Option<String> {
    let rest = uri.path().strip_prefix(before)?;
    let (taken, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let taken = taken.to_owned();
    let path = if path.is_empty() { "/" } else { path };
    let path = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    // A part of a path that was taken is one too.
    *uri = path.parse::<PathAndQuery>().map(Uri::from).unwrap_or_default();
    Some(taken)
}

/// Takes the token out of where a provider's key stands. A provider's key stays there.
fn take_key(headers: &mut HeaderMap, is_token: impl Fn(&str) -> bool) -> bool {
    let given = |headers: &HeaderMap, name: &HeaderName| {
        let value = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().trim();
        let bearer = value.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("bearer "));
        if bearer { value[7..].trim().to_owned() } else { value.to_owned() }
    };
    let mut found = false;
    for name in KEYS {
        if is_token(&given(headers, &name)) {
            headers.remove(name);
            found = true;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(uri: &str, headers: &[(&'static str, &str)]) -> Parts {
        let request = http::Request::builder().uri(uri);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.body(()).unwrap().into_parts().0
    }

    fn door(token: Option<&str>) -> Door {
        let open = if token.is_some() { Open::Nothing } else { Open::Everything };
        Door::new("127.0.0.1:80".parse().unwrap(), token.map(Token::new), open, false)
    }

    #[test]
    fn only_names_of_this_machine_are_hosts() {
        let enters = |host| door(None).enter(&mut parts("/", &[("host", host)])).is_ok();
        for host in ["localhost", "LOCALHOST:1", "127.0.0.1:8080", "[::1]", "[::1]:80"] {
            assert!(enters(host), "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example", "127.0.0.1.evil:80", "[::1", "", "a:b", "10.0.0.1"]
        {
            assert!(!enters(host), "{host}");
        }
        assert_eq!(door(None).enter(&mut parts("/", &[])), Err(WrongHost));
        let mut absolute = parts("http://evil.example/", &[("host", "localhost")]);
        assert_eq!(door(None).enter(&mut absolute), Err(WrongHost));
    }

    #[test]
    fn the_token_is_taken_out_wherever_it_stands() {
        let host = ("host", "localhost");
        for (uri, header) in [
            ("/v1/messages?a=b", ("x-longhaul-token", "T0ken")),
            ("/v1/messages?a=b", ("authorization", "Bearer T0ken")),
            ("/v1/messages?a=b", ("x-api-key", "T0ken")),
            ("/v1/messages?a=b", ("api-key", "T0ken")),
            ("/v1/messages?a=b", ("x-goog-api-key", "T0ken")),
            ("/t/T0ken/v1/messages?a=b", ("accept", "x")),
            ("/t/T0ken/v1/messages?a=b", ("authorization", "bearer T0ken")),
            ("/t/T0ken/t/T0ken/v1/messages?a=b", ("accept", "x")),
            ("/t/old/t/T0ken/v1/messages?a=b", ("accept", "x")),
        ] {
            let mut parts = parts(uri, &[host, header]);
            let guest = door(Some("T0ken")).enter(&mut parts).unwrap();
            assert!(guest.has_token, "{header:?}");
            assert_eq!(guest.tenant.len(), 16);
            assert_eq!(parts.uri, "/v1/messages?a=b");
            assert!(!format!("{parts:?}").contains("T0ken"));
        }
        let mut parts = parts("/t/other/v1/messages", &[host, ("authorization", "Bearer sk-1")]);
        assert!(!door(Some("T0ken")).enter(&mut parts).unwrap().has_token);
        assert_eq!(parts.headers["authorization"], "Bearer sk-1");
        assert!(door(None).enter(&mut parts).unwrap().has_token);
    }

    #[test]
    fn a_token_of_one_user_keeps_others_out_and_has_the_conversations_of_everybody() {
        let token = Token::of_one_user("T0ken");
        let door = Door::new("127.0.0.1:80".parse().unwrap(), Some(token), Open::Nothing, false);
        let enter = |uri: &str| door.enter(&mut parts(uri, &[("host", "localhost")])).unwrap();
        assert_eq!(enter("/t/T0ken/v1/messages"), Guest { tenant: "".into(), has_token: true });
        assert!(!enter("/v1/messages").has_token);
    }

    #[test]
    fn without_the_token_the_apis_are_open_if_settings_say_so_and_nothing_else_is() {
        let api = longhaul_wire::api::Api::Chat;
        let side = crate::route::Side::OpenAi;
        let apis = [Route::Model(api), Route::Count, Route::WebSocket, Route::Other(side), Route::Metrics];
        let private = [Route::Tools, Route::Inspect];
        for (open, are_open) in [(Open::Nothing, false), (Open::Apis, true)] {
            for token in [None, Some(Token::of_one_user("T0ken"))] {
                let has_one = token.is_some();
                let door = Door::new("127.0.0.1:80".parse().unwrap(), token, open, false);
                let enter = |uri: &str| door.enter(&mut parts(uri, &[("host", "localhost")])).unwrap();
                let (with, without) = (enter("/t/T0ken/v1/models"), enter("/v1/models"));
                assert!(apis.iter().all(|route| door.lets(&without, *route) == are_open));
                assert!(apis.iter().all(|route| door.lets(&with, *route) == (are_open || has_one)));
                assert!(private.iter().all(|route| !door.lets(&without, *route)));
                assert!(private.iter().all(|route| door.lets(&with, *route) == has_one));
                assert!([Route::Health, Route::Ready].iter().all(|route| door.lets(&without, *route)));
                assert_eq!(without.tenant, with.tenant);
            }
        }
    }

    #[test]
    fn a_path_says_which_provider_is_meant() {
        for (uri, number, path) in [
            ("/t/T0ken/to/1/v1/messages?a=b", Some(1), "/v1/messages?a=b"),
            ("/to/0/responses", Some(0), "/responses"),
            ("/to/x/responses", Some(usize::MAX), "/responses"),
            ("/v1/to/0/x", None, "/v1/to/0/x"),
        ] {
            let mut parts = parts(uri, &[("host", "localhost")]);
            door(None).enter(&mut parts).unwrap();
            assert_eq!(
                (parts.extensions.get(), parts.uri.to_string()),
                (number.map(Other).as_ref(), path.into())
            );
        }
    }
}
