//! Places without the passwords in them: what people and logs see.

/// What stands in the place of a password.
const REDACTED: &str = "[redacted]";

/// A path or a URL as it may be shown: without the password before the host, and without one in the query.
///
/// ```
/// use longhaul_config::without_password;
/// assert_eq!(without_password("postgres://me:secret@db/x"), "postgres://me:[redacted]@db/x");
/// assert_eq!(without_password("postgres://db/x?password=secret&a=b"), "postgres://db/x?password=[redacted]&a=b");
/// assert_eq!(without_password("sessions.db"), "sessions.db");
/// ```
pub fn without_password(place: &str) -> String {
    let Some((scheme, rest)) = place.split_once("://") else { return place.to_owned() };
    let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
    // A password may hold any character that its writer did not escape, a slash or an @ too.
    let rest = match rest.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((user, _)) => format!("{user}:{REDACTED}@{host}"),
            None => format!("{user}@{host}"),
        },
        None => rest.to_owned(),
    };
    let redacted = |pair: &str| match pair.split_once('=') {
        Some((name, _)) if name.to_lowercase().contains("pass") => format!("{name}={REDACTED}"),
        _ => pair.to_owned(),
    };
    let query = query.map(|query| query.split('&').map(redacted).collect::<Vec<_>>().join("&"));
    let query = query.map_or(String::new(), |query| format!("?{query}"));
    format!("{scheme}://{rest}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_password_is_left() {
        for url in [
            "postgres://me:hunter2@db/x",
            "postgres://me:hunter2:hunter2@db",
            "postgres://me:hunter2@hunter2@db/x?sslmode=require",
            "postgres://me:a/hunter2@db/x",
            "postgresql://db/x?user=me&password=hunter2",
            "postgresql://db/x?sslpassword=hunter2",
        ] {
            let shown = without_password(url);
            assert!(!shown.contains("hunter2") && shown.contains(REDACTED), "{shown}");
        }
        for place in ["postgres://me@db:5432/x", "http://127.0.0.1:8091/v1", "a:b@c.db", ""] {
            assert_eq!(without_password(place), place);
        }
    }
}
