//! Which address asks for what. A question is read here, whole, before anything is looked at.

use http::Method;
use longhaul::RecallPart;
use longhaul_store::{Filter, SessionId};
use longhaul_wire::api::Api;

use crate::error::Refused;
use crate::text::lines;

/// The longest query that is read.
const MOST_OF_A_QUERY: usize = 4_096;

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Question {
    /// The page; with the token of who opens it.
    Page {
        token: Option<String>,
    },
    /// A file of the page.
    File(String),
    Me,
    Sessions {
        filter: Filter,
        limit: Option<usize>,
    },
    Search {
        query: String,
        limit: usize,
    },
    Session {
        id: SessionId,
        from: usize,
    },
    Call {
        id: SessionId,
        call: usize,
    },
    Part {
        id: SessionId,
        call: usize,
        k: usize,
    },
    Raw {
        id: SessionId,
        call: usize,
        api: Option<Api>,
        download: bool,
    },
    Message {
        id: SessionId,
        at: u32,
    },
    Figures {
        id: SessionId,
    },
    Find {
        id: SessionId,
        query: String,
    },
    Recall {
        id: SessionId,
        handle: String,
        part: RecallPart,
    },
    Preview {
        id: SessionId,
    },
    Act {
        id: SessionId,
    },
    WhatIf {
        id: SessionId,
        profile: Option<String>,
        window: Option<u64>,
    },
    Events {
        only: Option<SessionId>,
    },
}

impl Question {
    /// `path` is what stands behind `/inspect/`.
    pub(crate) fn of(method: &Method, path: &str, query: Option<&str>) -> Result<Self, Refused> {
        let query = Query::of(query.unwrap_or_default())?;
        let parts: Vec<&str> = path.split('/').collect();
        let question = match parts.as_slice() {
            [""] | ["index.html"] => Self::Page { token: query.get("token").map(str::to_owned) },
            ["page", name @ ..] => Self::File(name.join("/")),
            ["api", rest @ ..] => Self::of_api(rest, &query)?,
            _ => return Err(nothing(path)),
        };
        let wanted = if question.changes() { "POST" } else { "GET" };
        let is_right = match question.changes() {
            true => *method == Method::POST,
            false => matches!(*method, Method::GET | Method::HEAD),
        };
        if is_right { Ok(question) } else { Err(Refused::Method(format!("/inspect/{path}"), wanted)) }
    }

    fn of_api(parts: &[&str], query: &Query) -> Result<Self, Refused> {
        Ok(match parts {
            ["me"] => Self::Me,
            ["sessions"] => Self::Sessions {
                filter: Filter {
                    agent: query.own("agent"),
                    project: query.own("project"),
                    ..Filter::default()
                },
                limit: query.number("limit")?,
            },
            ["search"] => {
                Self::Search { query: query.needed("q")?, limit: query.number("limit")?.unwrap_or(30) }
            }
            ["session", id] => {
                Self::Session { id: session(id)?, from: query.number("from")?.unwrap_or(1).max(1) }
            }
            ["session", id, "call", call] => Self::Call { id: session(id)?, call: number("a call", call)? },
            ["session", id, "call", call, "part", k] => {
                Self::Part { id: session(id)?, call: number("a call", call)?, k: number("a part", k)? }
            }
            ["session", id, "call", call, "raw"] => Self::Raw {
                id: session(id)?,
                call: number("a call", call)?,
                api: query.get("api").map(api).transpose()?,
                download: query.get("download").is_some(),
            },
            ["session", id, "message", at] => {
                // A number of 32 bits was read.
                Self::Message {
                    id: session(id)?,
                    at: u32::try_from(number("a message", at)?).unwrap_or(u32::MAX),
                }
            }
            ["session", id, "figures"] => Self::Figures { id: session(id)? },
            ["session", id, "find"] => Self::Find { id: session(id)?, query: query.needed("q")? },
            ["session", id, "recall", handle] => {
                let part = match (query.own("lines"), query.own("grep")) {
                    (None, None) => RecallPart::Whole,
                    (Some(range), None) => {
                        let (first, last) = lines(&range).map_err(Refused::Bad)?;
                        RecallPart::Lines(first, last)
                    }
                    (None, Some(pattern)) => RecallPart::Pattern(pattern),
                    (Some(_), Some(_)) => {
                        return Err(Refused::Bad("give `lines` or `grep`, not both".to_owned()));
                    }
                };
                let handle =
                    decoded(handle).ok_or_else(|| Refused::Bad("a handle is hexadecimal".to_owned()))?;
                Self::Recall { id: session(id)?, handle, part }
            }
            ["session", id, "preview"] => Self::Preview { id: session(id)? },
            ["session", id, "act"] => Self::Act { id: session(id)? },
            ["session", id, "whatif"] => Self::WhatIf {
                id: session(id)?,
                profile: query.own("profile"),
                window: query.number("window")?.map(window).transpose()?,
            },
            ["events"] => Self::Events { only: query.own("session").map(|id| session(&id)).transpose()? },
            _ => return Err(nothing(&format!("api/{}", parts.join("/")))),
        })
    }

    /// Whether it changes something, or says what a change would do: both come with a body, from the page itself.
    pub(crate) fn changes(&self) -> bool {
        matches!(self, Self::Preview { .. } | Self::Act { .. })
    }

    /// Whether somebody may ask who has no token: what everybody can read in the source of this program.
    pub(crate) fn is_of_page(&self) -> bool {
        matches!(self, Self::Page { .. } | Self::File(_))
    }
}

fn nothing(path: &str) -> Refused {
    let path: String = path.chars().take(200).filter(|c| !c.is_control()).collect();
    Refused::NotFound(format!("there is nothing at /inspect/{path}"))
}

fn session(id: &str) -> Result<SessionId, Refused> {
    id.parse().map_err(|_| Refused::Bad("the name of a session is a UUID, whole".to_owned()))
}

fn number(what: &str, text: &str) -> Result<usize, Refused> {
    let number = text.parse::<u32>().ok().and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| Refused::Bad(format!("{what} is named by a number")))
}

/// Tokens of a window.
fn window(tokens: usize) -> Result<u64, Refused> {
    let tokens = u64::try_from(tokens).unwrap_or(u64::MAX);
    let bad = || Refused::Bad("a window has from 1,000 to 100,000,000 tokens".to_owned());
    (1_000..=100_000_000).contains(&tokens).then_some(tokens).ok_or_else(bad)
}

fn api(name: &str) -> Result<Api, Refused> {
    let names = Api::ALL.map(Api::name).join(", ");
    Api::from_name(name).ok_or_else(|| Refused::Bad(format!("`api` is one of {names}")))
}

/// The fields of a query.
struct Query(Vec<(String, String)>);

impl Query {
    fn of(query: &str) -> Result<Self, Refused> {
        if query.len() > MOST_OF_A_QUERY {
            return Err(Refused::Bad(format!("the query is longer than {MOST_OF_A_QUERY} bytes")));
        }
        let fields = query.split('&').filter(|field| !field.is_empty()).map(|field| {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            Some((decoded(name)?, decoded(value)?))
        });
        let bad = || Refused::Bad("the query is not percent-encoded UTF-8".to_owned());
        fields.collect::<Option<_>>().map(Self).ok_or_else(bad)
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// A value that says something.
    fn own(&self, name: &str) -> Option<String> {
        self.get(name).filter(|value| !value.is_empty()).map(str::to_owned)
    }

    fn needed(&self, name: &str) -> Result<String, Refused> {
        self.own(name).ok_or_else(|| Refused::Bad(format!("the query has no `{name}`")))
    }

    fn number(&self, name: &str) -> Result<Option<usize>, Refused> {
        self.own(name).map(|value| number(&format!("`{name}`"), &value)).transpose()
    }
}

/// A part of a query as it was before it was encoded.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        bytes.push(match first {
            b'+' => b' ',
            b'%' => {
                let digits = std::str::from_utf8(behind.get(..2)?).ok()?;
                rest = &behind[2..];
                u8::from_str_radix(digits, 16).ok()?
            }
            byte => *byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0190163d-8694-739b-aea5-966c26f8ad91";

    fn get(path: &str, query: Option<&str>) -> Result<Question, Refused> {
        Question::of(&Method::GET, path, query)
    }

    #[test]
    fn questions_are_read_whole() {
        let id: SessionId = ID.parse().unwrap();
        assert_eq!(get("", Some("token=a%20b")), Ok(Question::Page { token: Some("a b".to_owned()) }));
        assert_eq!(get("page/vendor/a.js", None), Ok(Question::File("vendor/a.js".to_owned())));
        assert_eq!(get(&format!("api/session/{ID}/call/3"), None), Ok(Question::Call { id, call: 3 }));
        let raw = Question::Raw { id, call: 3, api: Some(Api::Anthropic), download: true };
        assert_eq!(get(&format!("api/session/{ID}/call/3/raw"), Some("api=anthropic&download")), Ok(raw));
        let filter = Filter { agent: Some("é".to_owned()), ..Filter::default() };
        let sessions = Question::Sessions { filter, limit: Some(7) };
        assert_eq!(get("api/sessions", Some("agent=%C3%A9&project=&limit=7")), Ok(sessions));
    }

    #[test]
    fn what_is_no_question_is_said() {
        for (path, query) in [
            ("api/session/x/call/1", None),
            ("api/session/0190163d/call/1", None),
            ("api/sessions", Some("limit=-1")),
            ("api/sessions", Some("limit=99999999999999999999")),
            ("api/search", None),
            ("api/search", Some("q=%ff")),
            ("api/search", Some("q=%f")),
            ("api/events", Some("session=1")),
        ] {
            assert!(matches!(get(path, query), Err(Refused::Bad(_))), "{path} {query:?}");
        }
        let long = format!("q={}", "a".repeat(MOST_OF_A_QUERY));
        assert!(matches!(get("api/search", Some(&long)), Err(Refused::Bad(_))));
        let path = format!("api/session/{ID}/call/1/raw");
        assert!(matches!(get(&path, Some("api=cobol")), Err(Refused::Bad(_))));
        for (path, query) in [
            ("message/x", None),
            ("message/4294967296", None),
            ("find", None),
            ("recall/abc", Some("lines=0-2")),
            ("recall/abc", Some("lines=1&grep=a")),
            ("whatif", Some("window=10")),
        ] {
            let path = format!("api/session/{ID}/{path}");
            assert!(matches!(get(&path, query), Err(Refused::Bad(_))), "{path}");
        }
        assert!(matches!(get(&format!("api/session/{ID}/act"), None), Err(Refused::Method(_, "POST"))));
        assert!(matches!(get("api/nothing", None), Err(Refused::NotFound(_))));
        assert!(matches!(get("other", None), Err(Refused::NotFound(_))));
        assert!(matches!(Question::of(&Method::POST, "api/me", None), Err(Refused::Method(..))));
        assert!(matches!(Question::of(&Method::DELETE, "", None), Err(Refused::Method(..))));
    }
}
