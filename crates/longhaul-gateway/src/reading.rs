//! Reading along while an answer goes by: what it costs, and whether it came to its end. Whatever cannot be
//! read is none of the client's business.

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{StatusCode, response};
use longhaul::Usage;
use longhaul_model::{Fault, Reply, ReplyReader};
use longhaul_wire::api::Api;

use crate::desk::{Called, CalledTool};

/// So many bytes of an answer are read. No answer of a model is longer.
const MOST: usize = 16 << 20;

/// What is read of an answer.
pub(crate) enum Reading {
    Stream {
        reader: Box<ReplyReader>,
        bytes: usize,
        /// The provider said that it failed.
        failed: bool,
        /// An event was none that we know: nothing can be said about its end.
        odd: bool,
    },
    Whole {
        api: Api,
        bytes: Vec<u8>,
    },
    /// Nothing more is read.
    Blind(Option<Usage>),
}

/// What an answer says beside its words, as far as it was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heard {
    /// What it costs.
    pub(crate) usage: Option<Usage>,
    /// The signatures of its thinking.
    pub(crate) seals: Vec<String>,
    /// The tools of ours that it calls.
    pub(crate) called: Called,
}

/// How an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Stream,
    Whole,
    /// Nothing that we can read.
    Other,
}

impl Form {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let value = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let kind = value(CONTENT_TYPE).to_ascii_lowercase();
        match value(CONTENT_ENCODING) {
            "" | "identity" if kind.starts_with("text/event-stream") => Self::Stream,
            "" | "identity" if kind.starts_with("application/json") => Self::Whole,
            _ => Self::Other,
        }
    }
}

impl Reading {
    /// Of the answer with this head.
    pub(crate) fn of(api: Api, head: &response::Parts) -> Self {
        match Form::of(&head.headers) {
            _ if head.status != StatusCode::OK => Self::Blind(None),
            Form::Stream => Self::stream(api),
            Form::Whole => Self::Whole { api, bytes: Vec::new() },
            Form::Other => Self::Blind(None),
        }
    }

    fn stream(api: Api) -> Self {
        Self::Stream { reader: Box::new(ReplyReader::new(api)), bytes: 0, failed: false, odd: false }
    }

    /// Takes in what goes by; true if nothing that follows is needed.
    pub(crate) fn push(&mut self, piece: &[u8]) -> bool {
        match self {
            Self::Stream { reader, bytes, failed, odd } => {
                *bytes += piece.len();
                if *bytes > MOST {
                    *self = Self::Blind(reader.usage());
                    return true;
                }
                let mut piece = piece;
                // An event that cannot be read is not in the way of the next.
                for _ in 0..64 {
                    match reader.push(piece, &mut |_| {}) {
                        Ok(progress) => return progress.closed,
                        Err(Fault::Unreadable(_)) => *odd = true,
                        Err(_) => *failed = true,
                    }
                    piece = &[];
                }
                false
            }
            Self::Whole { bytes, .. } => {
                bytes.extend_from_slice(piece);
                if bytes.len() > MOST {
                    *self = Self::Blind(None);
                }
                false
            }
            Self::Blind(_) => false,
        }
    }

    /// What the answer has said so far.
    pub(crate) fn heard(&self) -> Heard {
        match self {
            Self::Stream { reader, .. } => {
                Heard { usage: reader.usage(), seals: reader.seals(), called: called(&reader.calls()) }
            }
            Self::Whole { api, bytes } => {
                let reply = std::str::from_utf8(bytes).ok().and_then(|text| Reply::read(*api, text).ok());
                reply.map_or_else(Heard::default, |reply| Heard {
                    seals: reply.seals(),
                    called: called(&reply.calls()),
                    usage: reply.usage,
                })
            }
            Self::Blind(usage) => Heard { usage: usage.clone(), ..Heard::default() },
        }
    }

    /// True if a stream that ends here was cut off.
    pub(crate) fn is_cut(&self) -> bool {
        match self {
            Self::Stream { reader, failed, odd, .. } => !reader.is_finished() && !failed && !odd,
            Self::Whole { .. } | Self::Blind(_) => false,
        }
    }
}

fn called(calls: &[(String, String)]) -> Called {
    let tools = calls.iter().filter_map(|(name, arguments)| CalledTool::in_answer(name, arguments));
    Called { tools: tools.collect(), scope: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELTA: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\n";

    #[test]
    fn a_stream_without_its_end_is_cut() {
        for (stream, cut) in [
            ("", true),
            (DELTA, true),
            ("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n", false),
            ("data: [DONE]\n\n", false),
            ("data: {\"error\":{\"message\":\"overloaded\"}}\n\n", false),
            ("data: {nonsense\n\n", false),
        ] {
            let mut reading = Reading::stream(Api::Chat);
            reading.push(stream.as_bytes());
            assert_eq!(reading.is_cut(), cut, "{stream}");
        }
    }

    #[test]
    fn usage_is_read_behind_what_cannot_be_read() {
        let mut reading = Reading::stream(Api::Chat);
        reading.push(format!("{DELTA}data: {{nonsense\n\ndata: {{\n\n{USAGE}").as_bytes());
        let usage = reading.heard().usage.unwrap();
        assert_eq!((usage.input, usage.output), (7, 2));
    }

    #[test]
    fn no_more_than_the_limit_is_kept() {
        let mut reading = Reading::stream(Api::Chat);
        reading.push(USAGE.as_bytes());
        let line = format!(": {}\n", "x".repeat(1 << 20));
        (0..20).for_each(|_| _ = reading.push(line.as_bytes()));
        assert!(matches!(reading, Reading::Blind(Some(_))));
        assert!(!reading.is_cut());
        let mut reading = Reading::Whole { api: Api::Chat, bytes: Vec::new() };
        (0..20).for_each(|_| _ = reading.push(line.as_bytes()));
        assert!(matches!(reading, Reading::Blind(None)));
    }
}
