//! Whether a host can be reached, and by which way: addresses, proxies, and what a gateway says of itself.

use std::env;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// So long a host may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// A variable of the environment, if it has a value.
pub fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// A host and a port. What else stands in a URL may be secret, and is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    pub host: String,
    pub port: u16,
    is_https: bool,
}

impl Peer {
    /// Of `http://…` or `https://…`, or of a host and a port alone.
    pub fn of(address: &str) -> Option<Self> {
        let address = address.trim();
        let (is_https, rest) = match address.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some(_) => return None,
            None => (false, address),
        };
        let authority = rest.split(['/', '?', '#']).next()?;
        let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => authority.find(':').map_or((authority, ""), |at| authority.split_at(at)),
        };
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().ok()?,
            None if port.is_empty() => {
                if is_https {
                    443
                } else {
                    80
                }
            }
            None => return None,
        };
        let is_host = !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c.is_control());
        is_host.then(|| Self { host: host.to_owned(), port, is_https })
    }

    pub fn is_loopback(&self) -> bool {
        let ip = self.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        ip || self.host.eq_ignore_ascii_case("localhost")
    }

    /// The same place, whichever of its names is written.
    pub fn is_same(&self, other: &Self) -> bool {
        let host = self.host.eq_ignore_ascii_case(&other.host) || self.is_loopback() && other.is_loopback();
        host && self.port == other.port
    }

    /// The variable of the proxy that programs ask for this host, and where the proxy is.
    pub fn proxy(&self) -> Option<(&'static str, Option<Self>)> {
        let names: &[&'static str] = match self.is_https {
            true => &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"],
            false => &["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"],
        };
        let (name, value) = names.iter().find_map(|name| Some((*name, variable(name)?)))?;
        let excepted =
            ["no_proxy", "NO_PROXY"].into_iter().filter_map(variable).any(|list| self.is_in(&list));
        (!excepted).then(|| (name, Self::of(&value)))
    }

    /// True if a list of `NO_PROXY` has this host.
    fn is_in(&self, list: &str) -> bool {
        let host = self.host.to_ascii_lowercase();
        list.split(',').map(|entry| entry.trim().to_ascii_lowercase()).any(|entry| {
            let entry = entry.strip_prefix('.').unwrap_or(&entry);
            entry == "*" || host == entry || host.strip_suffix(entry).is_some_and(|rest| rest.ends_with('.'))
        })
    }

    /// Connects, and says nothing.
    pub async fn connects(&self) -> Result<(), String> {
        self.connected().await.map(drop)
    }

    async fn connected(&self) -> Result<TcpStream, String> {
        match timeout(PATIENCE, TcpStream::connect((self.host.as_str(), self.port))).await {
            Ok(connected) => connected.map_err(|error| error.to_string()),
            Err(_) => Err("it does not answer in two seconds".to_owned()),
        }
    }

    /// Status and text of a short page.
    pub async fn page(&self, path: &str) -> Result<(u16, String), String> {
        /// More than a gateway says of itself.
        const MOST: u64 = 4_096;
        let mut stream = self.connected().await?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: {self}\r\nconnection: close\r\n\r\n");
        let mut page = Vec::new();
        let asked = async {
            stream.write_all(request.as_bytes()).await?;
            (&mut stream).take(MOST).read_to_end(&mut page).await
        };
        let late = "it does not answer in two seconds".to_owned();
        timeout(PATIENCE, asked).await.map_err(|_| late)?.map_err(|error| error.to_string())?;
        let page = String::from_utf8_lossy(&page);
        let status = page.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let (_, text) = page.split_once("\r\n\r\n").unwrap_or_default();
        status.map(|status| (status, text.trim().to_owned())).ok_or_else(|| "it speaks no HTTP".to_owned())
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_address_host_and_port_are_kept_and_no_secret() {
        for (address, peer) in [
            ("https://api.anthropic.com", "api.anthropic.com:443"),
            ("http://me:secret@h:9/t/secret/v1?key=secret", "h:9"),
            ("HTTP://[::1]:8484/v1", "[::1]:8484"),
            ("127.0.0.1:8484", "127.0.0.1:8484"),
            ("localhost", "localhost:80"),
        ] {
            assert_eq!(Peer::of(address).unwrap().to_string(), peer);
        }
        for address in ["", "ftp://h", "http://", "h:port", "[::1", "[::1]8", "a b", "h:99999"] {
            assert_eq!(Peer::of(address), None, "{address}");
        }
    }

    #[test]
    fn names_of_one_place_are_the_same() {
        let peer = |address| Peer::of(address).unwrap();
        assert!(peer("http://localhost:1/v1").is_same(&peer("127.0.0.1:1")));
        assert!(!peer("localhost:1").is_same(&peer("localhost:2")));
        assert!(!peer("10.0.0.1:1").is_same(&peer("127.0.0.1:1")));
    }

    #[test]
    fn a_list_of_hosts_without_a_proxy() {
        let peer = Peer::of("api.example.com:1").unwrap();
        for list in ["*", "example.com", ".example.com", "a, API.example.com"] {
            assert!(peer.is_in(list), "{list}");
        }
        for list in ["", "ample.com", "api.example.org", "x.api.example.com"] {
            assert!(!peer.is_in(list), "{list}");
        }
    }
}
