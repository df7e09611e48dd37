//! Who may ask: a request names this machine as its host, so that no page in a browser gets in by a name of its own
//! (DNS rebinding); it has the token, if there is one; and what changes something comes from the page itself
//! (forgery).

use std::net::IpAddr;
use std::sync::Arc;

use http::header::{COOKIE, HOST, HeaderMap, ORIGIN};
use http::request::Parts;

use crate::error::Refused;

/// The header that a change carries.
pub const CSRF: &str = "x-longhaul-inspect";
/// The cookie of who has shown the token.
const NAME: &str = "longhaul-inspect";

/// Whether a text is the token.
type IsToken = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// What a request must show.
#[derive(Clone)]
pub struct Access {
    token: Option<IsToken>,
    /// What the cookie holds: another text in each process.
    cookie: Arc<str>,
    csrf: Arc<str>,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").field("token", &self.token.is_some()).finish_non_exhaustive()
    }
}

impl Access {
    /// Everybody who reaches it may look. An error if the system has no random numbers.
    pub fn open() -> Result<Self, getrandom::Error> {
        Ok(Self { token: None, cookie: random()?.into(), csrf: random()?.into() })
    }

    /// Only who knows the token.
    pub fn with_token(
        is_token: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Result<Self, getrandom::Error> {
        Ok(Self { token: Some(Arc::new(is_token)), ..Self::open()? })
    }

    /// The text that changes must carry.
    pub(crate) fn csrf(&self) -> &str {
        &self.csrf
    }

    /// True if a token is asked for.
    pub(crate) fn asks(&self) -> bool {
        self.token.is_some()
    }

    /// True if this is the token.
    pub(crate) fn is_token(&self, text: &str) -> bool {
        self.token.as_ref().is_some_and(|is_token| is_token(text))
    }

    /// True if the cookie of the request is ours, or nobody asks for a token.
    pub(crate) fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        !self.asks() || pairs.any(|(name, value)| name == NAME && is_same(value, &self.cookie))
    }

    /// The cookie for who has shown the token.
    pub(crate) fn cookie(&self) -> String {
        format!("{NAME}={}; Path=/inspect; HttpOnly; SameSite=Strict", self.cookie)
    }

    /// Lets a change through that comes from the page itself.
    pub(crate) fn change(&self, headers: &HeaderMap) -> Result<(), Refused> {
        if !is_of_same_origin(headers) {
            return Err(Refused::Forbidden("no page of another site changes anything here"));
        }
        let given = headers.get(CSRF).and_then(|value| value.to_str().ok()).unwrap_or_default();
        match is_same(given, &self.csrf) {
            true => Ok(()),
            false => Err(Refused::Forbidden(
                "the header x-longhaul-inspect is missing or wrong: it is what api/me says (load the page again)",
            )),
        }
    }
}

/// Lets a question through that no page of another site asks.
pub(crate) fn question(headers: &HeaderMap) -> Result<(), Refused> {
    let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    match site {
        Some("cross-site" | "same-site") => {
            Err(Refused::Forbidden("no page of another site asks anything here"))
        }
        _ => Ok(()),
    }
}

/// True unless a browser sends the request for a page of another origin: what the page was loaded from is what the
/// request is sent to.
fn is_of_same_origin(headers: &HeaderMap) -> bool {
    if question(headers).is_err() {
        return false;
    }
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, host)| host);
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    origin.zip(host).is_some_and(|(origin, host)| origin.eq_ignore_ascii_case(host))
}

/// True if the request is for a name that only this machine has.
pub fn names_this_machine(parts: &Parts, ip: IpAddr) -> bool {
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    let mut named = parts.headers.get_all(HOST).iter().map(|host| host.to_str().unwrap_or("?"));
    let hosts: Vec<&str> = authority.into_iter().chain(named.by_ref()).collect();
    !hosts.is_empty() && hosts.iter().all(|host| is_this_machine(host, ip))
}

fn is_this_machine(host: &str, ip: IpAddr) -> bool {
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let name = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, "")) => name,
            Some((name, port)) if port.strip_prefix(':').is_some_and(is_port) => name,
            _ => return false,
        },
        None => match host.split_once(':') {
            Some((name, port)) if is_port(port) => name,
            Some(_) => return false,
            None => host,
        },
    };
    match name.parse::<IpAddr>() {
        Ok(named) => named == ip || named.to_string() == "127.0.0.1" || named.to_string() == "::1",
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    }
}

/// Whether two texts are the same. The time that it takes says nothing about them.
fn is_same(one: &str, other: &str) -> bool {
    blake3::hash(one.as_bytes()) == blake3::hash(other.as_bytes())
}

/// A text that nobody can guess.
fn random() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(rows: &[(&'static str, &str)]) -> HeaderMap {
        rows.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn changes_come_from_the_page_itself() {
        let access = Access::open().unwrap();
        let csrf = access.csrf().to_owned();
        let with = |more: &[(&'static str, &str)]| {
            let mut all = vec![("host", "localhost:1"), (CSRF, csrf.as_str())];
            all.extend_from_slice(more);
            access.change(&headers(&all)).is_ok()
        };
        assert!(with(&[]) && with(&[("origin", "http://localhost:1"), ("sec-fetch-site", "same-origin")]));
        for origin in ["http://evil.example", "http://localhost:2", "null", "http://localhost"] {
            assert!(!with(&[("origin", origin)]), "{origin}");
        }
        assert!(!with(&[("sec-fetch-site", "cross-site")]));
        assert!(access.change(&headers(&[("host", "localhost:1")])).is_err());
        assert!(access.change(&headers(&[("host", "localhost:1"), (CSRF, "guess")])).is_err());
    }

    #[test]
    fn a_cookie_stands_for_the_token() {
        let open = Access::open().unwrap();
        assert!(open.has_cookie(&HeaderMap::new()));
        let access = Access::with_token(|text| text == "T0ken").unwrap();
        assert!(access.is_token("T0ken") && !access.is_token("") && !open.is_token(""));
        assert!(!access.has_cookie(&HeaderMap::new()));
        let cookie = access.cookie();
        let pair = cookie.split(';').next().unwrap();
        assert!(access.has_cookie(&headers(&[("cookie", &format!("a=b; {pair}"))])));
        assert!(!access.has_cookie(&headers(&[("cookie", "longhaul-inspect=x")])));
        assert!(!cookie.contains("T0ken") && cookie.ends_with("HttpOnly; SameSite=Strict"));
    }

    #[test]
    fn only_names_of_this_machine_are_hosts() {
        let enters = |host: &str| {
            let request = http::Request::builder().uri("/").header("host", host).body(()).unwrap();
            names_this_machine(&request.into_parts().0, "127.0.0.1".parse().unwrap())
        };
        for host in ["localhost", "LOCALHOST:1", "127.0.0.1:8080", "[::1]", "[::1]:80"] {
            assert!(enters(host), "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example", "127.0.0.1.evil:80", "[::1", "", "a:b", "10.0.0.1"]
        {
            assert!(!enters(host), "{host}");
        }
    }
}
