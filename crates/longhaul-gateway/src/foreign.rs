//! Requests that are not for the providers that the gateway was told of: paths of other APIs, keys of other providers, and
//! paths that leave the provider's address. They are refused with what to do, so that no key goes where it does not belong.
//! A server on this machine or in a private network gets any path and any key, and so does a provider that `/to/N/…` names.

use std::net::IpAddr;

use http::header::{AUTHORIZATION, HeaderMap};
use http::request::Parts;
use http::{Response, StatusCode};
use reqwest::Url;

use crate::answer::ClientBody;
use crate::exchange::Shared;
use crate::route::{Route, Side};
use crate::upstream::Other;
use crate::words;

/// Whose server an upstream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// It is on this machine or in a private network.
    Private,
    Anthropic,
    OpenAi,
    /// What ChatGPT's logins are for.
    ChatGpt,
    OpenRouter,
    Google,
    Azure,
    Amazon,
    /// Nothing is known of it.
    Unknown,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy)]
enum Foreign {
    /// The path may lead out of the provider's address.
    Escape,
    /// The path is one of another API.
    Path(&'static ForeignPath),
    /// The key is one of another provider.
    Key(&'static ForeignKey),
}

/// Paths of an API that is not spoken here.
#[derive(Debug)]
struct ForeignPath {
    /// Whose they are.
    whose: &'static str,
    fits: fn(&[&str]) -> bool,
    /// Who may get them all the same.
    owners: &'static [Owner],
    advice: &'static str,
}

/// A kind of key.
#[derive(Debug)]
struct ForeignKey {
    /// What it is.
    what: &'static str,
    fits: fn(&Keys<'_>) -> bool,
    /// Who may get it.
    owners: &'static [Owner],
    advice: &'static str,
}

const PATHS: [ForeignPath; 5] = [
    ForeignPath {
        whose: "Google's API (Gemini, Vertex)",
        fits: is_google,
        owners: &[Owner::Google],
        advice: "Longhaul speaks the APIs of Anthropic and OpenAI, so leave GOOGLE_GEMINI_BASE_URL and \
                 GOOGLE_VERTEX_BASE_URL unset",
    },
    ForeignPath {
        whose: "Amazon Bedrock",
        fits: |segments| matches!(segments, ["model", _, ..]),
        owners: &[Owner::Amazon],
        advice: "its requests are signed for Amazon's address, so leave ANTHROPIC_BEDROCK_BASE_URL unset",
    },
    ForeignPath {
        whose: "Azure OpenAI",
        fits: |segments| matches!(segments, ["openai", _, ..]),
        owners: &[Owner::Azure],
        advice: "start the gateway with --openai https://RESOURCE.openai.azure.com/openai/v1 and give the agent the \
                 gateway's address with /v1",
    },
    ForeignPath {
        whose: "Claude in a cloud",
        fits: |segments| matches!(segments, ["anthropic", _, ..]),
        owners: &[Owner::Azure, Owner::Amazon],
        advice: "start the gateway with --anthropic and the cloud's address up to /anthropic, and give the agent the \
                 gateway's address alone",
    },
    ForeignPath {
        whose: "OpenRouter",
        fits: |segments| matches!(segments, ["api", "v1", ..]),
        owners: &[Owner::OpenRouter],
        advice: "start the gateway with --openai https://openrouter.ai/api/v1 and give the agent the gateway's address \
                 with /v1",
    },
];

const KEYS: [ForeignKey; 7] = [
    ForeignKey {
        what: "a login of ChatGPT",
        fits: |keys| keys.headers.contains_key("chatgpt-account-id"),
        owners: &[Owner::ChatGpt],
        advice: "start the gateway with --openai https://chatgpt.com/backend-api/codex, or give the agent a key of OpenAI's \
                 API",
    },
    ForeignKey {
        what: "a key of Google",
        fits: |keys| keys.headers.contains_key("x-goog-api-key"),
        owners: &[Owner::Google],
        advice: "take it out of the agent's settings, or start the gateway with \
                 --openai https://generativelanguage.googleapis.com/v1beta/openai",
    },
    ForeignKey {
        what: "a key of Azure",
        fits: |keys| keys.has_one_of_azure(),
        // Others than Azure have keys in this header too.
        owners: &[Owner::Azure, Owner::Unknown],
        advice: "start the gateway with --openai https://RESOURCE.openai.azure.com/openai/v1",
    },
    ForeignKey {
        what: "a signature of AWS",
        fits: |keys| keys.authorization.starts_with("AWS4-HMAC-SHA256"),
        owners: &[Owner::Amazon],
        advice: "it is made for Amazon's address, so leave ANTHROPIC_BEDROCK_BASE_URL unset",
    },
    ForeignKey {
        what: "a key of OpenRouter",
        fits: |keys| keys.any(|key| key.starts_with("sk-or-")),
        owners: &[Owner::OpenRouter],
        advice: "start the gateway with --openai https://openrouter.ai/api/v1, or with --anthropic https://openrouter.ai/api",
    },
    ForeignKey {
        what: "a key of Anthropic",
        fits: |keys| keys.any(|key| key.starts_with("sk-ant-")),
        owners: &[Owner::Anthropic, Owner::Amazon, Owner::Unknown],
        advice: "give the agent a key of that provider, or start the gateway with the address that the key is for",
    },
    ForeignKey {
        what: "a key of OpenAI",
        fits: |keys| {
            let is_of_others = |key: &str| ["sk-ant-", "sk-or-"].iter().any(|begin| key.starts_with(begin));
            keys.any(|key| key.starts_with("sk-") && !is_of_others(key))
        },
        owners: &[
            Owner::OpenAi,
            Owner::ChatGpt,
            Owner::OpenRouter,
            Owner::Google,
            Owner::Azure,
            Owner::Amazon,
            Owner::Unknown,
        ],
        advice: "give the agent a key of that provider, or start the gateway with the address that the key is for",
    },
];

/// Where the keys of a request stand.
struct Keys<'a> {
    headers: &'a HeaderMap,
    authorization: &'a str,
}

impl<'a> Keys<'a> {
    fn of(headers: &'a HeaderMap) -> Self {
        let authorization = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        Self { headers, authorization: authorization.unwrap_or_default().trim() }
    }

    /// True if one of the keys is like this.
    fn any(&self, is: impl Fn(&str) -> bool) -> bool {
        let values = |name: &str| self.headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        // Behind the scheme, if one is named.
        let bearers = values("authorization").filter_map(|value| value.split_whitespace().next_back());
        bearers.chain(values("x-api-key").map(str::trim)).any(|key| !key.is_empty() && is(key))
    }

    /// Some clients send the same key in the header of Azure too, or an empty one.
    fn has_one_of_azure(&self) -> bool {
        let values = self.headers.get_all("api-key").iter().map(|value| value.to_str().unwrap_or("?").trim());
        let mut others = values.filter(|key| !key.is_empty() && !self.any(|known| known == *key));
        others.next().is_some()
    }
}

impl Owner {
    pub(crate) fn of(url: &Url) -> Self {
        let host = url.host_str().unwrap_or_default();
        if let Ok(ip) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
            return if is_private(ip.to_canonical()) { Self::Private } else { Self::Unknown };
        }
        let name = host.trim_end_matches('.').to_ascii_lowercase();
        let is_of =
            |zone: &str| name.strip_suffix(zone).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        let is_any = |zones: &[&str]| zones.iter().any(|zone| is_of(zone));
        let names_openrouter = name.split('.').chain(url.path().split('/')).any(|part| part == "openrouter");
        if !name.contains('.') || is_any(&["localhost", "local", "internal", "lan", "home.arpa", "test"]) {
            Self::Private
        } else if is_any(&["anthropic.com"]) {
            Self::Anthropic
        } else if is_any(&["chatgpt.com"]) {
            Self::ChatGpt
        } else if is_any(&["azure.com", "azure.us", "azure.cn", "azure-api.net"]) {
            Self::Azure
        } else if is_any(&["openai.com"]) {
            Self::OpenAi
        } else if names_openrouter {
            Self::OpenRouter
        } else if is_any(&["googleapis.com"]) {
            Self::Google
        } else if is_any(&["amazonaws.com", "amazonaws.com.cn", "api.aws"]) {
            Self::Amazon
        } else {
            Self::Unknown
        }
    }
}

fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            // 100.64.0.0/10 is what private networks over the internet use.
            let is_shared = ip.octets()[0] == 100 && ip.octets()[1] & 0xc0 == 64;
            ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified() || is_shared
        }
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}

/// Paths of Gemini and Vertex: `/v1beta/…`, `/v1/projects/P/locations/…`, `…:generateContent`.
fn is_google(segments: &[&str]) -> bool {
    const ACTIONS: [&str; 9] = [
        "generateContent",
        "streamGenerateContent",
        "countTokens",
        "embedContent",
        "batchEmbedContents",
        "batchGenerateContent",
        "predict",
        "rawPredict",
        "streamRawPredict",
    ];
    let begins =
        |segment: &&str| ["v1beta", "v1alpha", "v1internal"].iter().any(|name| segment.starts_with(name));
    let action = segments.last().and_then(|last| last.rsplit_once(':')).map(|(_, action)| action);
    segments.first().is_some_and(begins)
        || matches!(segments, ["upload", version, ..] if begins(version))
        || matches!(segments, [_, "projects", _, "locations", ..] | ["projects", _, "locations", ..])
        || action.is_some_and(|action| ACTIONS.contains(&action))
}

/// True if a path may lead to another place than the one behind the provider's address.
fn escapes(path: &str) -> bool {
    let plain = path.replace("%2e", ".").replace("%2E", ".");
    let plain = plain.replace("%2f", "/").replace("%2F", "/").replace("%5c", "\\").replace("%5C", "\\");
    path.contains("//") || plain.contains('\\') || plain.split('/').any(|part| matches!(part, "." | ".."))
}

fn foreign(owner: Owner, parts: &Parts) -> Option<Foreign> {
    let path = parts.uri.path();
    if escapes(path) {
        return Some(Foreign::Escape);
    }
    if owner == Owner::Private || parts.extensions.get::<Other>().is_some() {
        return None;
    }
    let segments: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let path = PATHS.iter().find(|path| (path.fits)(&segments)).filter(|path| !path.owners.contains(&owner));
    let keys = Keys::of(&parts.headers);
    let key = KEYS.iter().find(|key| !key.owners.contains(&owner) && (key.fits)(&keys));
    path.map(Foreign::Path).or(key.map(Foreign::Key))
}

impl Foreign {
    /// A word for the counter.
    fn name(self) -> &'static str {
        match self {
            Self::Escape => "path",
            Self::Path(_) => "foreign-path",
            Self::Key(_) => "foreign-key",
        }
    }

    /// What is wrong, and what to do. `upstream` is where the request would go.
    fn sentence(self, upstream: &str) -> String {
        match self {
            Self::Escape => {
                "longhaul: the path has `//`, `.`, `..` or a backslash, and may lead out of the provider's address: give \
                 the agent the gateway's address without a slash at its end"
                    .to_owned()
            }
            Self::Path(ForeignPath { whose, advice, .. }) => {
                format!("longhaul: this is a path of {whose}, and the gateway goes on to {upstream}: {advice}")
            }
            Self::Key(ForeignKey { what, advice, .. }) => {
                format!("longhaul: this request has {what}, and the gateway goes on to {upstream}: {advice}")
            }
        }
    }
}

impl Shared {
    /// Refuses a request that is not for the provider that it would go to.
    pub(crate) fn refuse_foreign(
        &self,
        route: Route,
        parts: &Parts,
    ) -> Result<(), Box<Response<ClientBody>>> {
        let side: Side = match route {
            Route::Model(_) | Route::Count | Route::Other(_) => route.side(),
            Route::Health
            | Route::Ready
            | Route::Metrics
            | Route::WebSocket
            | Route::Tools
            | Route::Inspect => {
                return Ok(());
            }
        };
        let Some(foreign) = self.upstream.owner(side, parts).and_then(|owner| foreign(owner, parts)) else {
            return Ok(());
        };
        self.counters.refused(foreign.name());
        let says = foreign.sentence(&self.upstream.shown(side, parts));
        Err(Box::new(words::error(side, StatusCode::BAD_REQUEST, &says)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(path: &str, headers: &[(&'static str, &str)]) -> Parts {
        let request = http::Request::builder().uri(path);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.body(()).unwrap().into_parts().0
    }

    fn owner(url: &str) -> Owner {
        Owner::of(&Url::parse(url).unwrap())
    }

    #[test]
    fn servers_are_known_by_their_addresses() {
        for (url, is) in [
            ("http://127.0.0.1:8000/v1", Owner::Private),
            ("http://[::1]:8000/v1", Owner::Private),
            ("http://[::ffff:10.0.0.1]/v1", Owner::Private),
            ("http://[fd00::1]/v1", Owner::Private),
            ("http://192.168.1.7:11434/v1", Owner::Private),
            ("http://100.100.1.1/v1", Owner::Private),
            ("http://vllm:8000/v1", Owner::Private),
            ("http://localhost:1234/v1", Owner::Private),
            ("http://host.docker.internal:11434", Owner::Private),
            ("http://8.8.8.8/v1", Owner::Unknown),
            ("https://api.anthropic.com", Owner::Anthropic),
            ("https://API.OpenAI.com./v1", Owner::OpenAi),
            ("https://eu.api.openai.com/v1", Owner::OpenAi),
            ("https://chatgpt.com/backend-api/codex", Owner::ChatGpt),
            ("https://openrouter.ai/api/v1", Owner::OpenRouter),
            ("https://gateway.ai.cloudflare.com/v1/a/g/openrouter", Owner::OpenRouter),
            ("https://generativelanguage.googleapis.com/v1beta/openai", Owner::Google),
            ("https://mine.openai.azure.com/openai/v1", Owner::Azure),
            ("https://mine.services.ai.azure.com/anthropic", Owner::Azure),
            ("https://bedrock-runtime.us-east-1.amazonaws.com/anthropic", Owner::Amazon),
            ("https://api.deepseek.com/anthropic", Owner::Unknown),
            ("https://notanthropic.com", Owner::Unknown),
            ("https://api.openai.com.evil.example/v1", Owner::Unknown),
        ] {
            assert_eq!(owner(url), is, "{url}");
        }
    }

    #[test]
    fn paths_of_other_apis_are_known() {
        let whose = |owner, path: &str| match foreign(owner, &parts(path, &[])) {
            Some(Foreign::Path(path)) => path.whose,
            None => "",
            other => panic!("{path}: {other:?}"),
        };
        for path in [
            "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
            "/v1/models/gemini-3-pro:generateContent",
            "/upload/v1beta/files",
            "/v1/projects/p/locations/l/publishers/anthropic/models/claude:streamRawPredict",
        ] {
            assert!(
                whose(Owner::OpenAi, path).starts_with("Google") && whose(Owner::Google, path).is_empty(),
                "{path}"
            );
        }
        for (path, is, owner) in [
            ("/model/anthropic.claude/invoke-with-response-stream", "Amazon Bedrock", Owner::Amazon),
            ("/model/a%3Ab/converse", "Amazon Bedrock", Owner::Amazon),
            ("/openai/deployments/gpt-4o/chat/completions?api-version=1", "Azure OpenAI", Owner::Azure),
            ("/openai/v1/responses", "Azure OpenAI", Owner::Azure),
            ("/anthropic/v1/messages", "Claude in a cloud", Owner::Azure),
            ("/api/v1/chat/completions", "OpenRouter", Owner::OpenRouter),
        ] {
            assert_eq!((whose(Owner::Anthropic, path), whose(Owner::OpenAi, path)), (is, is));
            assert_eq!((whose(owner, path), whose(Owner::Private, path)), ("", ""), "{path}");
        }
        for path in [
            "/v1/messages?beta=true",
            "/v1/chat/completions",
            "/responses",
            "/v1/models/ft:gpt-4o:org::id",
            "/v1/models/meta%2Fllama",
            "/api/hello",
            "/api/oauth/usage",
            "/v1/files/file-1/content",
            "/v1/organization/projects",
        ] {
            assert_eq!((whose(Owner::Anthropic, path), whose(Owner::OpenAi, path)), ("", ""), "{path}");
        }
    }

    #[test]
    fn keys_of_other_providers_are_known() {
        use Owner::{Amazon, Anthropic, Azure, ChatGpt, Google, OpenAi, OpenRouter, Unknown};
        const ALL: [Owner; 8] = [Anthropic, OpenAi, ChatGpt, OpenRouter, Google, Azure, Amazon, Unknown];
        for (name, value, may) in [
            ("x-goog-api-key", "AIza", &[Google][..]),
            ("api-key", "0123", &[Azure, Unknown]),
            ("authorization", "AWS4-HMAC-SHA256 Credential=a, Signature=1", &[Amazon]),
            ("authorization", "Bearer sk-or-v1-1", &[OpenRouter]),
            ("x-api-key", "sk-or-v1-1", &[OpenRouter]),
            ("chatgpt-account-id", "one", &[ChatGpt]),
            ("x-api-key", "sk-ant-api03-1", &[Anthropic, Amazon, Unknown]),
            ("authorization", "bearer sk-ant-oat01-1", &[Anthropic, Amazon, Unknown]),
            (
                "authorization",
                "Bearer sk-proj-1",
                &[OpenAi, ChatGpt, OpenRouter, Google, Azure, Amazon, Unknown],
            ),
            ("authorization", "Bearer gsk_1", &ALL),
            ("x-api-key", "", &ALL),
        ] {
            for owner in ALL {
                let is_foreign = foreign(owner, &parts("/v1/messages", &[(name, value)])).is_some();
                assert_eq!(is_foreign, !may.contains(&owner), "{value} to {owner:?}");
            }
            assert!(foreign(Owner::Private, &parts("/v1/messages", &[(name, value)])).is_none());
            let mut named = parts("/v1/messages", &[(name, value)]);
            named.extensions.insert(Other(0));
            assert!(foreign(OpenAi, &named).is_none());
        }
    }

    #[test]
    fn each_of_several_keys_is_looked_at() {
        let is_foreign = |owner, headers: &[(&'static str, &str)]| {
            foreign(owner, &parts("/v1/messages", headers)).is_some()
        };
        let both = [("x-api-key", "sk-ant-1"), ("authorization", "Bearer sk-proj-1")];
        assert!(is_foreign(Owner::Anthropic, &both) && is_foreign(Owner::OpenAi, &both));
        for scheme in ["sk-or-1", "Bearer\tsk-or-1"] {
            assert!(is_foreign(Owner::OpenAi, &[("authorization", scheme)]), "{scheme:?}");
        }
        // A client that sends its key in the header of Azure too.
        let twice = |key| [("authorization", "Bearer sk-proj-1"), ("api-key", key)];
        assert!(!is_foreign(Owner::OpenAi, &twice("sk-proj-1")) && !is_foreign(Owner::OpenAi, &twice("")));
        assert!(is_foreign(Owner::OpenAi, &twice("0123")));
    }

    #[test]
    fn paths_that_leave_the_address_are_known() {
        for path in [
            "/v1/../../x",
            "/v1/%2e%2e/x",
            "/v1/.%2E/x",
            "/v1/./x",
            "/v1/..%2f..%2fx",
            "//evil.example/",
            "/v1//x",
            "/v1/%5c..%5cx",
            "/v1/a\\b",
            "/..",
        ] {
            assert!(escapes(path), "{path}");
        }
        for path in ["/", "/v1/files/a..b", "/v1/models/meta%2Fllama", "/v1/.well-known", "/v1/x?a=../b//c"] {
            assert!(!escapes(path.split('?').next().unwrap_or_default()), "{path}");
        }
    }
}
