//! Where the server is. What is shown of a URL has no password and no options in it.

use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::error::StoreError;

/// How a URL begins that names a server.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// How long it may take to reach the server, if the URL does not say.
const CONNECTING: Duration = Duration::from_secs(10);

/// A connection over which nothing came for so long is asked whether it is still there.
const IDLE: Duration = Duration::from_secs(30);

/// The server, the database, and who asks.
pub(super) struct Address {
    config: Config,
    shown: String,
}

impl Address {
    pub(super) fn of(url: &str) -> Result<Self, StoreError> {
        // Certificates are always checked, so these two are the same.
        let url = url.replace("sslmode=verify-full", "sslmode=require");
        let url = url.replace("sslmode=verify-ca", "sslmode=require");
        // What is wrong with the URL is not said: it might be a part of the password.
        let mut config = Config::from_str(&url).map_err(|_| StoreError::BadUrl {
            place: "postgres://…".to_owned(),
            problem: "its URL cannot be read; it must look like postgres://user:password@host:5432/database"
                .to_owned(),
        })?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECTING);
        }
        if config.get_application_name().is_none() {
            config.application_name("longhaul");
        }
        config.keepalives_idle(config.get_keepalives_idle().min(IDLE));
        let shown = shown(&config);
        Ok(Self { config, shown })
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// The URL without what is secret in it.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// Whether the connection may be encrypted. One over a socket in the file system never is.
    pub(super) fn may_use_tls(&self) -> bool {
        let over_network = |host: &Host| matches!(host, Host::Tcp(_));
        let network =
            self.config.get_hosts().iter().any(over_network) || !self.config.get_hostaddrs().is_empty();
        network && self.config.get_ssl_mode() != SslMode::Disable
    }
}

/// Whether a place is the URL of a server.
pub(crate) fn is_server(place: &str) -> bool {
    SCHEMES.iter().any(|scheme| place.starts_with(scheme))
}

fn shown(config: &Config) -> String {
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    let named = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) if name.contains(':') => format!("[{name}]"),
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string().replace('/', "%2F"),
    });
    let mut hosts: Vec<String> = named.collect();
    if hosts.is_empty() {
        hosts.extend(config.get_hostaddrs().iter().map(ToString::to_string));
    }
    let ports = config.get_ports();
    let port_of = |at: usize| ports.get(at).or(ports.last()).copied().unwrap_or(5432);
    let hosts: Vec<String> =
        hosts.iter().enumerate().map(|(at, host)| format!("{host}:{}", port_of(at))).collect();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{user}{}/{database}", hosts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_a_url_has_no_secret_in_it() {
        for (url, expected) in [
            (
                "postgres://ann:s3cret@db.example:6000/work?sslmode=verify-full",
                "postgres://ann@db.example:6000/work",
            ),
            ("postgresql://ann@localhost/work?password=s3cret", "postgres://ann@localhost:5432/work"),
            ("postgres://ann:s3cret@%2Frun%2Fpg/work", "postgres://ann@%2Frun%2Fpg:5432/work"),
            ("postgres://ann:s3cret@one,two:7/work", "postgres://ann@one:5432,two:7/work"),
        ] {
            assert_eq!(Address::of(url).unwrap().shown(), expected);
        }
        for url in
            ["postgres://ann:s3cret@host:port/", "postgres://ann:s3c%ret@host/x", "postgres://u@h/d?s3cret=1"]
        {
            let says = Address::of(url).map_or_else(|error| error.to_string(), |address| address.shown);
            assert!(!says.contains("s3c"), "{url}: {says}");
        }
        assert!(is_server("postgres://h/d") && is_server("postgresql://h/d") && !is_server("postgres.db"));
    }
}
