//! A name for one agent among several at a gateway, so that its calls of our tools find its own conversations. It stands
//! before the path of model requests and of `/mcp`, as `/s/SCOPE/v1/…` (after the token and the number of a provider),
//! or in the header `x-longhaul-scope`. It lets nobody in, and goes to no provider.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;

use crate::door::take_from_path;

const SCOPE: HeaderName = HeaderName::from_static("x-longhaul-scope");

/// The scope of a request. Only its hash is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope(blake3::Hash);

impl Scope {
    /// The scope that the headers of a request name.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        headers.get(SCOPE).map(|scope| Self(blake3::hash(scope.as_bytes())))
    }
}

/// Takes the scope out of the path of a request. From there on it is in its header.
pub(crate) fn take(parts: &mut Parts) {
    let scope = take_from_path(&mut parts.uri, "/s/").and_then(|scope| HeaderValue::from_str(&scope).ok());
    if let Some(scope) = scope {
        parts.headers.insert(SCOPE, scope);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_stands_in_the_path_or_in_a_header() {
        let scope = |path: &str, header: Option<&str>| {
            let request = http::Request::builder().uri(path);
            let request = header.into_iter().fold(request, |request, scope| request.header(SCOPE, scope));
            let mut parts = request.body(()).unwrap().into_parts().0;
            take(&mut parts);
            (parts.uri.to_string(), Scope::of(&parts.headers))
        };
        let one = scope("/s/one/v1/messages?beta=true", None);
        assert_eq!(one.0, "/v1/messages?beta=true");
        assert!(one.1.is_some() && one.1 == scope("/mcp", Some("one")).1);
        assert_eq!(scope("/s/one/mcp", Some("other")), ("/mcp".to_owned(), one.1));
        assert_ne!(scope("/s/two/mcp", None).1, one.1);
        assert_eq!(scope("/v1/s/one", None), ("/v1/s/one".to_owned(), None));
    }
}
