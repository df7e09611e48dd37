//! Streams of OpenAI Chat say what they cost only if they are asked to. Where the client does not ask, we do,
//! and keep the event back that it did not ask for.

use std::ops::Range;

use bytes::Bytes;
use longhaul::Extra;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};
use serde_json::value::RawValue;

/// Whether usage is to be asked for, and where the option goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    /// Nothing is streamed, or the client asks itself.
    Needless,
    /// The client says nothing of such options: they go behind all that it says.
    AtEnd,
    /// The body must be read to know it.
    Unknown,
}

impl Asking {
    /// By the settings of a request that was read.
    pub(crate) fn of(settings: &Extra) -> Self {
        match settings.get("stream_options") {
            _ if settings.get("stream").is_none_or(|stream| stream.as_str() != "true") => Self::Needless,
            None => Self::AtEnd,
            Some(options) if options.value()["include_usage"] == true => Self::Needless,
            Some(_) => Self::Unknown,
        }
    }

    /// The body with the option, written into its text; `None` if there is nothing to ask for.
    pub(crate) fn within(self, body: &[u8]) -> Option<Bytes> {
        match self {
            Self::Needless => None,
            Self::AtEnd => at_end(body),
            Self::Unknown => asking(body),
        }
    }
}

/// An object with the option behind its last field.
fn at_end(body: &[u8]) -> Option<Bytes> {
    let end = body.trim_ascii_end().strip_suffix(b"}")?.len();
    Some(replaced(body, end..end, r#","stream_options":{"include_usage":true}"#))
}

/// The body with the option, written into the client's text; `None` if there is nothing to ask for: nothing
/// is streamed, the client asks itself, or the body is none.
fn asking(body: &[u8]) -> Option<Bytes> {
    #[derive(Deserialize)]
    struct Top<'a> {
        #[serde(default)]
        stream: Option<bool>,
        #[serde(borrow, default, deserialize_with = "present")]
        stream_options: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Options<'a> {
        #[serde(borrow, default, deserialize_with = "present")]
        include_usage: Option<&'a RawValue>,
    }
    let text = std::str::from_utf8(body).ok().filter(|text| is_object(text))?;
    let top: Top<'_> = serde_json::from_str(text).ok()?;
    if top.stream != Some(true) {
        return None;
    }
    let Some(options) = top.stream_options else { return at_end(body) };
    let at = place(text, options.get());
    if options.get() == "null" {
        return Some(replaced(body, at, r#"{"include_usage":true}"#));
    }
    if !is_object(options.get()) {
        return None;
    }
    match serde_json::from_str::<Options<'_>>(options.get()).ok()?.include_usage {
        Some(set) if set.get() == "true" => None,
        Some(set) => Some(replaced(body, place(text, set.get()), "true")),
        None => {
            let open = at.start + 1;
            let is_empty = options.get()[1..].trim_start().starts_with('}');
            let comma = if is_empty { "" } else { "," };
            Some(replaced(body, open..open, &format!("\"include_usage\":true{comma}")))
        }
    }
}

/// True for an object: serde would take the fields from a list too.
fn is_object(json: &str) -> bool {
    json.trim_start().starts_with('{')
}

/// A field that is there, also if it is `null`.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Where a part of a text stands in it.
pub(crate) fn place(text: &str, part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    start..start + part.len()
}

pub(crate) fn replaced(body: &[u8], at: Range<usize>, by: &str) -> Bytes {
    [&body[..at.start], by.as_bytes(), &body[at.end..]].concat().into()
}

/// Keeps the event with the usage back. All others go on as soon as they are whole.
#[derive(Debug, Default)]
pub(crate) struct KeepBack {
    /// The event that is not whole yet.
    open: Vec<u8>,
    /// The line that is being read has so many bytes.
    line: usize,
    /// The last byte was a carriage return.
    after_return: bool,
    /// The event is too long to be what we look for: its bytes go on as they come.
    long: bool,
}

impl KeepBack {
    /// No event with usage is longer.
    const MOST: usize = 64 << 10;

    /// What of a piece goes on now.
    pub(crate) fn pass(&mut self, piece: &[u8]) -> Bytes {
        let mut passed = Vec::with_capacity(self.open.len() + piece.len());
        let mut from = 0;
        for (at, byte) in piece.iter().enumerate() {
            let ends_line = match byte {
                b'\n' if self.after_return => {
                    // The second half of an end of a line, which was seen already.
                    self.after_return = false;
                    continue;
                }
                b'\n' | b'\r' => true,
                _ => false,
            };
            self.after_return = *byte == b'\r';
            if !ends_line {
                self.line += 1;
                continue;
            }
            let ends_event = self.line == 0;
            self.line = 0;
            if ends_event {
                // The line feed behind a carriage return belongs to this event.
                let feed = *byte == b'\r' && piece.get(at + 1) == Some(&b'\n');
                let end = at + 1 + usize::from(feed);
                self.open.extend_from_slice(&piece[from..end]);
                from = end;
                if self.long || !is_usage(&self.open) {
                    passed.extend_from_slice(&self.open);
                }
                self.open.clear();
                self.long = false;
            }
        }
        self.open.extend_from_slice(&piece[from.min(piece.len())..]);
        if self.long || self.open.len() > Self::MOST {
            self.long = true;
            passed.append(&mut self.open);
        }
        passed.into()
    }

    /// What is left when the stream ends.
    pub(crate) fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.open).into()
    }
}

/// True for an event that has usage and no choice.
fn is_usage(event: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Chunk {
        choices: Vec<IgnoredAny>,
        usage: Option<IgnoredAny>,
    }
    let Ok(text) = std::str::from_utf8(event) else { return false };
    if !text.contains("\"usage\"") {
        return false;
    }
    let data: String = text.lines().filter_map(|line| line.strip_prefix("data:")).collect();
    let is_usage = |chunk: Chunk| chunk.choices.is_empty() && chunk.usage.is_some();
    is_object(&data) && serde_json::from_str::<Chunk>(&data).is_ok_and(is_usage)
}

#[cfg(test)]
mod tests {
    use longhaul_wire::api::{Api, Request};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_option_is_written_into_the_text() {
        let asked =
            |body: &str| asking(body.as_bytes()).map(|body| String::from_utf8(body.to_vec()).unwrap());
        let option = r#""stream_options":{"include_usage":true}"#;
        for (body, want) in [
            (
                r#"{ "stream" : true, "a":"\ud83d" } "#,
                format!(r#"{{ "stream" : true, "a":"\ud83d" ,{option}}} "#),
            ),
            (r#"{"stream_options":null,"stream":true}"#, format!(r#"{{{option},"stream":true}}"#)),
            (r#"{"stream_options":{},"stream":true}"#, format!(r#"{{{option},"stream":true}}"#)),
            (
                r#"{"stream_options":{"include_usage": false},"stream":true}"#,
                r#"{"stream_options":{"include_usage": true},"stream":true}"#.to_owned(),
            ),
            (
                r#"{"stream":true,"stream_options":{ "x":1}}"#,
                r#"{"stream":true,"stream_options":{"include_usage":true, "x":1}}"#.to_owned(),
            ),
        ] {
            assert_eq!(asked(body).as_deref(), Some(want.as_str()));
        }
        for body in [
            r#"{"stream":false}"#,
            "{}",
            "nonsense",
            r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
            r#"{"stream":true,"stream_options":7}"#,
            r#"{"stream":true,"stream_options":[]}"#,
            r#"{"stream":true,"stream_options":[true]}"#,
            r#"[true,{"include_usage":false}]"#,
            r#"{"messages":[{"stream":true}]}"#,
            r#"{"stream":true,"stream":true}"#,
        ] {
            assert_eq!(asked(body), None, "{body}");
        }
    }

    /// What the settings of a request say is what its body says.
    #[test]
    fn settings_tell_where_the_option_goes() {
        for options in [
            "",
            r#","stream_options":null"#,
            r#","stream_options":{}"#,
            r#","stream_options":{"include_usage":false}"#,
            r#","stream_options":{"include_usage":true}"#,
            r#","stream_options":{"x":[1]}"#,
            r#","stream_options":[true]"#,
        ] {
            for stream in ["true", "false", "null"] {
                let body = format!(r#"{{"model":"m","stream":{stream}{options},"messages":[]}} "#);
                let request = Request::decode(Api::Chat, body.as_str()).unwrap();
                let asked = Asking::of(&request.frame().settings).within(body.as_bytes());
                assert_eq!(asked, asking(body.as_bytes()), "{body}");
            }
        }
    }

    const DELTA: &str = "data: {\"choices\":[{\"delta\":{}}],\"usage\":null}\n\n";
    const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7}}\n\n";
    const DONE: &str = "data: [DONE]\n\n";

    fn passed(stream: &str, pieces: &[usize]) -> String {
        let (mut keep, mut out, mut rest) = (KeepBack::default(), Vec::new(), stream.as_bytes());
        for size in pieces.iter().cycle() {
            let (piece, more) = rest.split_at((*size).min(rest.len()));
            out.extend_from_slice(&keep.pass(piece));
            rest = more;
            if rest.is_empty() {
                break;
            }
        }
        out.extend_from_slice(&keep.rest());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn whole_events_do_not_wait() {
        let mut keep = KeepBack::default();
        assert_eq!(keep.pass(DELTA.as_bytes()), DELTA);
        assert_eq!(keep.pass(&USAGE.as_bytes()[..9]), "");
        assert_eq!(keep.pass(&USAGE.as_bytes()[9..]), "");
        assert_eq!(keep.pass(DONE.as_bytes()), DONE);
        let crlf = DELTA.replace('\n', "\r\n");
        assert_eq!(keep.pass(crlf.as_bytes()), crlf);
        assert_eq!(keep.pass(USAGE.replace('\n', "\r\n").as_bytes()), "");
        assert_eq!(keep.rest(), "");
    }

    #[test]
    fn a_long_event_goes_on_as_it_comes() {
        let mut keep = KeepBack::default();
        let line = vec![b'x'; KeepBack::MOST + 1];
        assert_eq!(keep.pass(&line).len(), line.len());
        assert_eq!(keep.pass(b"more"), "more");
        assert_eq!(keep.pass(b"\n\n"), "\n\n");
        assert_eq!(keep.pass(USAGE.as_bytes()), "");
    }

    proptest! {
        /// Where the network cuts does not matter, and only usage is kept back.
        #[test]
        fn only_usage_is_kept_back(
            events in prop::collection::vec(0usize..5, 0..12),
            end in "(\n|\r\n|\r)",
            pieces in prop::collection::vec(1usize..40, 1..9),
        ) {
            let texts = [DELTA, USAGE, DONE, ": quiet\n\n", "data: {\"usage\":{},\"choices\":[{}]}\n\n"];
            let all = |kept: &dyn Fn(usize) -> bool| -> String {
                events.iter().filter(|event| kept(**event)).map(|event| texts[*event].replace('\n', &end)).collect()
            };
            let out = passed(&all(&|_| true), &pieces);
            // Half of the end of a line may be left over.
            prop_assert_eq!(out.replace(['\r', '\n'], ""), all(&|event| event != 1).replace(['\r', '\n'], ""));
        }
    }
}
