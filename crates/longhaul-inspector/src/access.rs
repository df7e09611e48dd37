//! Who may ask: a request names this machine as its host, so that no page in a browser gets in by a name of its own
//! (DNS rebinding); no web page but our own sends it; it has the token, if there is one; and a change carries what only
//! our page knows (forgery).

use std::net::IpAddr;
use std::sync::Arc;

use http::header::{COOKIE, HOST, HeaderMap, HeaderValue, ORIGIN};
use http::request::Parts;

use crate::error::Refused;

/// The header that a change carries.
pub const CSRF: &str = "x-longhaul-inspect";
/// How the name of the cookie begins that stands for the token. The port follows: browsers send the cookies of all ports
/// of a host.
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
    pub fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let own = cookie_name(headers);
        !self.asks() || pairs.any(|(name, value)| name == own && is_same(value, &self.cookie))
    }

    /// The cookie for the sender of a request with the token.
    pub(crate) fn cookie(&self, headers: &HeaderMap) -> String {
        let name = cookie_name(headers);
        format!("{name}={}; Path=/inspect; HttpOnly; SameSite=Strict", self.cookie)
    }

    /// Lets a change through that comes from the page itself.
    pub(crate) fn change(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let given = headers.get(CSRF).and_then(|value| value.to_str().ok()).unwrap_or_default();
        match is_same(given, &self.csrf) {
            true => Ok(()),
            false => Err(Refused::Forbidden(
                "the header x-longhaul-inspect is missing or wrong: it is what api/me says (load the page again)",
            )),
        }
    }
}

/// The name of the cookie at the address that a request is sent to.
fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let port = host.and_then(|host| host.rsplit_once(':')).map(|(_, port)| port);
    match port.filter(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())) {
        Some(port) => format!("{NAME}-{port}"),
        None => NAME.to_owned(),
    }
}

/// True if a browser sends the request for a web page of another origin than the one that the request is sent to: by
/// `Origin`, and where a browser leaves that out (images, scripts, links), by `Sec-Fetch-Site`.
pub fn is_from_another_page(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let is_ours = |origin: &HeaderValue| {
        let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        origin
            .filter(|(scheme, _)| matches!(*scheme, "http" | "https"))
            .zip(host)
            .is_some_and(|((_, origin), host)| origin.eq_ignore_ascii_case(host))
    };
    let is_here = |site: &HeaderValue| matches!(site.as_bytes(), b"same-origin" | b"none");
    !headers.get_all(ORIGIN).iter().all(is_ours) || !headers.get_all("sec-fetch-site").iter().all(is_here)
}

/// True if a person opens a link in a tab: what the tab then shows cannot be read by the page that had the link.
fn opens_in_a_tab(headers: &HeaderMap) -> bool {
    let is =
        |name, value: &[u8]| headers.get(name).is_some_and(|given: &HeaderValue| given.as_bytes() == value);
    !headers.contains_key(ORIGIN) && is("sec-fetch-mode", b"navigate") && is("sec-fetch-dest", b"document")
}

/// Lets a request through that no other web page sends. A link from elsewhere may open the page, whose files say nothing.
pub(crate) fn not_from_another_page(headers: &HeaderMap, is_of_page: bool) -> Result<(), Refused> {
    if is_from_another_page(headers) && !(is_of_page && opens_in_a_tab(headers)) {
        return Err(Refused::Forbidden("no web page of another site may use the inspector"));
    }
    Ok(())
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
        assert!(with(&[]));
        assert!(access.change(&headers(&[("host", "localhost:1")])).is_err());
        assert!(access.change(&headers(&[("host", "localhost:1"), (CSRF, "guess")])).is_err());
    }

    #[test]
    fn other_web_pages_are_known_by_their_origin_or_site() {
        let page = |more: &[(&'static str, &str)]| {
            let mut all = vec![("host", "localhost:1")];
            all.extend_from_slice(more);
            headers(&all)
        };
        let own: [&[_]; 4] = [
            &[],
            &[("origin", "http://localhost:1"), ("sec-fetch-site", "same-origin")],
            &[("sec-fetch-site", "same-origin")],
            &[("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate")],
        ];
        for own in own {
            assert!(!is_from_another_page(&page(own)), "{own:?}");
        }
        for origin in [
            "http://evil.example",
            "http://localhost:2",
            "http://localhost",
            "http://localhost:1.evil.example",
            "app://localhost:1",
            "null",
            "",
        ] {
            assert!(is_from_another_page(&page(&[("origin", origin)])), "{origin}");
        }
        for site in ["cross-site", "same-site", "", "what comes later"] {
            assert!(is_from_another_page(&page(&[("sec-fetch-site", site)])), "{site}");
        }
        // One that says two things is believed the worse.
        assert!(is_from_another_page(&page(&[("origin", "http://localhost:1"), ("origin", "null")])));
        assert!(is_from_another_page(&page(&[
            ("origin", "http://localhost:1"),
            ("sec-fetch-site", "cross-site")
        ])));
        // Without a host nothing is ours.
        assert!(is_from_another_page(&headers(&[("origin", "http://localhost:1")])));
    }

    #[test]
    fn a_link_from_elsewhere_opens_the_page_in_a_tab_and_nothing_else() {
        let link = |dest, more: &[(&'static str, &str)]| {
            let mut all = vec![("host", "localhost:1"), ("sec-fetch-site", "cross-site")];
            all.extend([("sec-fetch-mode", "navigate"), ("sec-fetch-dest", dest)]);
            all.extend_from_slice(more);
            headers(&all)
        };
        assert!(not_from_another_page(&link("document", &[]), true).is_ok());
        assert!(not_from_another_page(&link("document", &[]), false).is_err());
        assert!(not_from_another_page(&link("iframe", &[]), true).is_err());
        assert!(not_from_another_page(&link("document", &[("origin", "null")]), true).is_err());
        let image = headers(&[("host", "localhost:1"), ("sec-fetch-site", "cross-site")]);
        assert!(not_from_another_page(&image, true).is_err());
    }

    #[test]
    fn a_cookie_stands_for_the_token() {
        let open = Access::open().unwrap();
        assert!(open.has_cookie(&HeaderMap::new()));
        let access = Access::with_token(|text| text == "T0ken").unwrap();
        assert!(access.is_token("T0ken") && !access.is_token("") && !open.is_token(""));
        assert!(!access.has_cookie(&HeaderMap::new()));
        let cookie = access.cookie(&headers(&[("host", "localhost:81")]));
        let pair = format!("a=b; {}", cookie.split(';').next().unwrap());
        let has = |host: &str, pair: &str| access.has_cookie(&headers(&[("host", host), ("cookie", pair)]));
        assert!(has("localhost:81", &pair) && has("127.0.0.1:81", &pair));
        assert!(!has("localhost:81", "longhaul-inspect-81=x"));
        // Another inspector of this machine, at another port, has a cookie of its own.
        assert!(!has("localhost:82", &pair) && !has("localhost", &pair));
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
