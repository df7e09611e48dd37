//! Who may come in, and whose request it is. A request must name this machine as its host, so that no page in
//! a browser gets in by a name of its own (DNS rebinding), and must carry the token if there is one: in the
//! header `x-longhaul-token`, in the place of a provider's key, or in the path, as `/t/TOKEN/v1/…`, for
//! clients that can be told nothing but a base URL. The token goes no further. Behind it a path may say which of
//! the further providers is meant, as `/to/0/v1/…`.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::header::{AUTHORIZATION, HeaderMap, HeaderName};
use http::request::Parts;
use http::uri::{PathAndQuery, Uri};
use longhaul_inspector::access::names_this_machine;

use crate::settings::Token;
use crate::upstream::Other;

const TOKEN: HeaderName = HeaderName::from_static("x-longhaul-token");
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The request is for a name that is not this machine's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WrongHost;

#[derive(Debug)]
pub(crate) struct Door {
    /// The address, if only this machine can reach it.
    loopback: Option<IpAddr>,
    token: Option<(Token, Arc<str>)>,
    everybody: Arc<str>,
}

/// Who came in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Guest {
    pub(crate) tenant: Arc<str>,
    /// A token was asked for and given, or nobody asks for one.
    pub(crate) has_token: bool,
}

impl Door {
    /// Where Longhaul only observes, everybody is another tenant: what it would have sent is gone on with by no request that
    /// is really changed.
    pub(crate) fn new(listen: SocketAddr, token: Option<&Token>, observes: bool) -> Self {
        let ip = listen.ip();
        let tenant = |tenant: Arc<str>| if observes { format!("observed:{tenant}").into() } else { tenant };
        Self {
            loopback: ip.is_loopback().then_some(ip),
            token: token.map(|token| (token.clone(), tenant(token.tenant()))),
            everybody: tenant("".into()),
        }
    }

    /// Takes the token out of a request and says whose it is.
    pub(crate) fn enter(&self, parts: &mut Parts) -> Result<Guest, WrongHost> {
        if let Some(ip) = self.loopback
            && !names_this_machine(parts, ip)
        {
            return Err(WrongHost);
        }
        let in_path = take_from_path(&mut parts.uri, "/t/");
        if let Some(number) = take_from_path(&mut parts.uri, "/to/") {
            // What is no number is no provider.
            parts.extensions.insert(Other(number.parse().unwrap_or(usize::MAX)));
        }
        let in_header = parts.headers.remove(TOKEN);
        let Some((token, tenant)) = &self.token else {
            return Ok(Guest { tenant: self.everybody.clone(), has_token: true });
        };
        let in_header = in_header.as_ref().and_then(|value| value.to_str().ok()).map(str::trim);
        let mut has_token = in_path.is_some_and(|text| token.is(&text));
        has_token |= in_header.is_some_and(|text| token.is(text));
        has_token |= take_key(&mut parts.headers, token);
        Ok(Guest { tenant: tenant.clone(), has_token })
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
fn take_key(headers: &mut HeaderMap, token: &Token) -> bool {
    let given = |headers: &HeaderMap, name: &HeaderName| {
        let value = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().trim();
        let bearer = value.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("bearer "));
        if bearer { value[7..].trim().to_owned() } else { value.to_owned() }
    };
    let mut found = false;
    for name in [AUTHORIZATION, API_KEY] {
        if token.is(&given(headers, &name)) {
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
        Door::new("127.0.0.1:80".parse().unwrap(), token.map(Token::new).as_ref(), false)
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
            ("/t/T0ken/v1/messages?a=b", ("accept", "x")),
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
        let door = Door::new("127.0.0.1:80".parse().unwrap(), Some(&token), false);
        let enter = |uri: &str| door.enter(&mut parts(uri, &[("host", "localhost")])).unwrap();
        assert_eq!(enter("/t/T0ken/v1/messages"), Guest { tenant: "".into(), has_token: true });
        assert!(!enter("/v1/messages").has_token);
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
