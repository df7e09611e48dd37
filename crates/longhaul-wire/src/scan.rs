//! JSON, found and not copied: one pass over a text notes where each value begins and ends, and
//! [`Value`] walks these notes. Takes what a JSON parser takes, and also strings with half a
//! surrogate pair, which no Rust string can hold: they are read with U+FFFD in its place.

use std::borrow::Cow;

use longhaul::Json;

use crate::fields::FieldError;

/// Values nested deeper are refused: nobody writes them, and what walks values is recursive.
const DEEPEST: usize = 256;

/// Where a value stands, and how many notes it takes.
#[derive(Debug, Clone, Copy)]
struct Node {
    start: u32,
    end: u32,
    /// The note behind this value and all inside it.
    next: u32,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Object,
    Array,
    /// A string without a backslash.
    Plain,
    /// A string with at least one.
    Escaped,
    /// A number, a truth value or null.
    Bare,
}

/// The notes of one pass over a text.
#[derive(Debug, Default)]
pub(crate) struct Tape(Vec<Node>);

impl Tape {
    /// The value of a note.
    pub(crate) fn value<'a>(&'a self, text: &'a str, note: usize) -> Value<'a> {
        Value { text, tape: &self.0, at: note }
    }
}

/// A pass over a text, from the place where it stands.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    pub(crate) tape: Tape,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str, at: usize) -> Result<Self, FieldError> {
        if text.len() > u32::MAX as usize {
            return Err(FieldError("it has more than 4 GiB".to_owned()));
        }
        Ok(Self { text, at, tape: Tape::default() })
    }

    /// Where the next byte is read.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Goes on elsewhere.
    pub(crate) fn go_to(&mut self, at: usize) {
        self.at = at;
    }

    /// The byte behind white space, which stays to be read.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    /// Takes this byte, behind white space.
    pub(crate) fn expect(&mut self, byte: u8) -> Result<(), FieldError> {
        if self.peek() != Some(byte) {
            return Err(self.wrong(&format!("expected `{}`", byte as char)));
        }
        self.at += 1;
        Ok(())
    }

    /// Takes this byte if it is the next one behind white space.
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Nothing but white space may follow.
    pub(crate) fn end(&mut self) -> Result<(), FieldError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.wrong("something follows the value")),
        }
    }

    /// What is wrong here. Columns count from 1, in bytes.
    fn wrong(&self, what: &str) -> FieldError {
        if self.at >= self.text.len() {
            return FieldError("is not valid JSON: it ends too early".to_owned());
        }
        FieldError(format!("is not valid JSON: {what} at byte {}", self.at + 1))
    }

    /// The next value; gives its note.
    pub(crate) fn value(&mut self) -> Result<usize, FieldError> {
        let first = self.tape.0.len();
        // Containers that are open, by their notes.
        let mut open: Vec<usize> = Vec::new();
        loop {
            // A value begins here.
            match self.peek() {
                Some(b'"') => {
                    self.string()?;
                }
                Some(byte @ (b'{' | b'[')) => {
                    if open.len() == DEEPEST {
                        return Err(FieldError(format!("is nested deeper than {DEEPEST} levels")));
                    }
                    let kind = if byte == b'{' { Kind::Object } else { Kind::Array };
                    open.push(self.tape.0.len());
                    self.note(self.at, self.at, kind);
                    self.at += 1;
                    let closing = if kind == Kind::Object { b'}' } else { b']' };
                    if !self.take(closing) {
                        if kind == Kind::Object {
                            self.key()?;
                        }
                        continue;
                    }
                    self.close(&mut open);
                }
                Some(_) => self.bare()?,
                None => return Err(self.wrong("a value is missing")),
            }
            // A value ended here.
            loop {
                let Some(&container) = open.last() else { return Ok(first) };
                let is_object = self.tape.0[container].kind == Kind::Object;
                if self.take(b',') {
                    if is_object {
                        self.key()?;
                    }
                    break;
                }
                self.expect(if is_object { b'}' } else { b']' })?;
                self.close(&mut open);
            }
        }
    }

    /// The key of a field and the colon behind it; gives the key's note.
    pub(crate) fn key(&mut self) -> Result<usize, FieldError> {
        let note = self.tape.0.len();
        if self.peek() != Some(b'"') {
            return Err(self.wrong("expected the name of a field"));
        }
        self.string()?;
        self.expect(b':')?;
        Ok(note)
    }

    fn note(&mut self, start: usize, end: usize, kind: Kind) {
        // The text is shorter than 4 GiB, and has no more values than bytes.
        let next = self.tape.0.len() as u32 + 1;
        self.tape.0.push(Node { start: start as u32, end: end as u32, next, kind });
    }

    fn close(&mut self, open: &mut Vec<usize>) {
        let next = self.tape.0.len() as u32;
        if let Some(node) = open.pop().and_then(|note| self.tape.0.get_mut(note)) {
            node.end = self.at as u32;
            node.next = next;
        }
    }

    fn string(&mut self) -> Result<(), FieldError> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut kind = Kind::Plain;
        self.at += 1;
        loop {
            self.at = special(bytes, self.at);
            match bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    self.note(start, self.at, kind);
                    return Ok(());
                }
                Some(b'\\') => {
                    kind = Kind::Escaped;
                    self.at += 2;
                    match bytes.get(self.at - 1) {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {}
                        Some(b'u') if hex(bytes, self.at).is_some() => self.at += 4,
                        _ => {
                            self.at -= 2;
                            return Err(self.wrong("an escape that is none"));
                        }
                    }
                }
                Some(_) => return Err(self.wrong("a control character in a string")),
                None => return Err(self.wrong("")),
            }
        }
    }

    fn bare(&mut self) -> Result<(), FieldError> {
        let start = self.at;
        let rest = &self.text.as_bytes()[start..];
        let literal = ["true", "false", "null"].iter().find(|word| rest.starts_with(word.as_bytes()));
        let length = literal.map(|word| word.len()).or_else(|| number(rest));
        let Some(length) = length else { return Err(self.wrong("expected a value")) };
        self.at += length;
        self.note(start, self.at, Kind::Bare);
        Ok(())
    }
}

/// The length of the number that a text begins with.
fn number(bytes: &[u8]) -> Option<usize> {
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    let whole = digits(at);
    if whole == 0 || whole > 1 && bytes[at] == b'0' {
        return None;
    }
    at += whole;
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return None;
        }
        at += 1 + fraction;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = bytes.get(at + 1 + sign..).map_or(0, |_| digits(at + 1 + sign));
        if exponent == 0 {
            return None;
        }
        at += 1 + sign + exponent;
    }
    Some(at)
}

/// The first quote, backslash or control character from `at` on; else the end.
fn special(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    // The high bit of each byte that is zero. Bytes behind the first such byte may be wrong.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let found = zeros(word ^ (ONES * u64::from(b'"')))
            | zeros(word ^ (ONES * u64::from(b'\\')))
            | (word.wrapping_sub(ONES * 0x20) & !word & HIGHS);
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)) {
        at += 1;
    }
    at
}

/// The number that four hexadecimal digits give.
fn hex(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 4)?;
    digits.iter().try_fold(0, |sum, digit| Some(sum * 16 + (*digit as char).to_digit(16)?))
}

/// A value in a text that was scanned.
#[derive(Clone, Copy)]
pub(crate) struct Value<'a> {
    text: &'a str,
    tape: &'a [Node],
    at: usize,
}

impl<'a> Value<'a> {
    fn node(&self) -> Node {
        self.tape[self.at]
    }

    /// As it is written.
    pub(crate) fn raw(&self) -> &'a str {
        &self.text[self.start()..self.end()]
    }

    /// The text from here to the end of a value behind it.
    pub(crate) fn raw_to(&self, last: Value<'a>) -> &'a str {
        self.text.get(self.start()..last.end()).unwrap_or_default()
    }

    /// Where it begins in the text.
    pub(crate) fn start(&self) -> usize {
        self.node().start as usize
    }

    /// Where it ends in the text.
    pub(crate) fn end(&self) -> usize {
        self.node().end as usize
    }

    pub(crate) fn is_string(&self) -> bool {
        matches!(self.node().kind, Kind::Plain | Kind::Escaped)
    }

    pub(crate) fn is_object(&self) -> bool {
        self.node().kind == Kind::Object
    }

    pub(crate) fn is_array(&self) -> bool {
        self.node().kind == Kind::Array
    }

    /// The fields, in their order; nothing if it is no object.
    pub(crate) fn fields(self) -> impl Iterator<Item = (Value<'a>, Value<'a>)> {
        let mut inside = self.inside(Kind::Object);
        std::iter::from_fn(move || Some((inside.next()?, inside.next()?)))
    }

    /// The field of a name; of several the last.
    pub(crate) fn get(self, name: &str) -> Option<Value<'a>> {
        self.fields().filter(|(key, _)| key.is_text(name)).last().map(|(_, value)| value)
    }

    /// The elements, in their order; nothing if it is no array.
    pub(crate) fn elements(self) -> impl Iterator<Item = Value<'a>> {
        self.inside(Kind::Array)
    }

    fn inside(self, kind: Kind) -> impl Iterator<Item = Value<'a>> {
        let node = self.node();
        let end = if node.kind == kind { node.next as usize } else { self.at };
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            let value = (at < end).then_some(Value { at, ..self })?;
            at = value.node().next as usize;
            Some(value)
        })
    }

    /// Whether it is a string that says this.
    pub(crate) fn is_text(&self, text: &str) -> bool {
        match self.node().kind {
            Kind::Plain => self.inner() == text,
            Kind::Escaped => self.text().is_some_and(|own| own == text),
            _ => false,
        }
    }

    /// A string as it is written, without its quotes.
    fn inner(&self) -> &'a str {
        &self.text[self.start() + 1..self.end() - 1]
    }

    /// What a string says.
    pub(crate) fn text(&self) -> Option<Cow<'a, str>> {
        match self.node().kind {
            Kind::Plain => Some(Cow::Borrowed(self.inner())),
            Kind::Escaped => Some(Cow::Owned(unescaped(self.inner()).text)),
            _ => None,
        }
    }

    /// What a string says, and whether we would write it in the same way.
    pub(crate) fn text_and_form(&self) -> Option<(Cow<'a, str>, bool)> {
        match self.node().kind {
            Kind::Plain => Some((Cow::Borrowed(self.inner()), true)),
            Kind::Escaped => {
                let Unescaped { text, usual } = unescaped(self.inner());
                Some((Cow::Owned(text), usual))
            }
            _ => None,
        }
    }

    /// As it is written, to be kept.
    pub(crate) fn json(&self) -> Json {
        // The scanner takes only what serde's parser takes.
        Json::new(self.raw()).unwrap_or_else(|_| Json::empty_object())
    }
}

/// What a string with escapes says.
struct Unescaped {
    text: String,
    /// Every escape is the one that serde_json writes.
    usual: bool,
}

/// `inner` was scanned: its escapes are whole.
fn unescaped(inner: &str) -> Unescaped {
    let bytes = inner.as_bytes();
    let mut text = String::with_capacity(inner.len());
    let (mut usual, mut at) = (true, 0);
    loop {
        let run = special(bytes, at);
        text.push_str(&inner[at..run]);
        let Some(escape) = bytes.get(run + 1) else { return Unescaped { text, usual } };
        at = run + 2;
        match escape {
            b'n' => text.push('\n'),
            b'"' => text.push('"'),
            b'\\' => text.push('\\'),
            b't' => text.push('\t'),
            b'r' => text.push('\r'),
            b'b' => text.push('\u{8}'),
            b'f' => text.push('\u{c}'),
            b'u' => {
                let code = hex(bytes, at).unwrap_or(0xfffd);
                // The usual way is taken for controls that have no letter, in small digits.
                usual &= code < 0x20
                    && !matches!(code, 0x8 | 0x9 | 0xa | 0xc | 0xd)
                    && !bytes[at..at + 4].iter().any(u8::is_ascii_uppercase);
                at += 4;
                let low = || hex(bytes, at + 2).filter(|_| bytes[at..].starts_with(b"\\u"));
                let pair = match (code, low()) {
                    (0xd800..0xdc00, Some(low @ 0xdc00..0xe000)) => {
                        at += 6;
                        0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)
                    }
                    _ => code,
                };
                text.push(char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            other => {
                usual = false;
                text.push(*other as char);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scanned(text: &str) -> Result<(Tape, usize), FieldError> {
        let mut scanner = Scanner::new(text, 0)?;
        let note = scanner.value()?;
        scanner.end()?;
        Ok((scanner.tape, note))
    }

    /// The value as serde has it.
    fn parsed(value: Value<'_>) -> serde_json::Value {
        if let Some(text) = value.text() {
            return text.into();
        }
        if value.is_array() {
            return value.elements().map(parsed).collect::<Vec<_>>().into();
        }
        if value.is_object() {
            let field =
                |(key, value): (Value<'_>, Value<'_>)| (key.text().unwrap().into_owned(), parsed(value));
            return serde_json::Value::Object(value.fields().map(field).collect());
        }
        serde_json::from_str(value.raw()).unwrap()
    }

    #[test]
    fn half_a_pair_is_read_and_kept() {
        let text = r#"{"a\ud83d": "x\ud83dy \ude00 \ud83d\ude00 \ud83d\u0041"}"#;
        let (tape, note) = scanned(text).unwrap();
        let (key, value) = tape.value(text, note).fields().next().unwrap();
        assert_eq!(key.text().unwrap(), "a\u{fffd}");
        assert_eq!(value.text().unwrap(), "x\u{fffd}y \u{fffd} 😀 \u{fffd}A");
        assert_eq!(value.raw(), &text[12..text.len() - 1]);
    }

    #[test]
    fn what_is_no_json_is_refused() {
        let refused = [
            "",
            "{",
            "[1,]",
            "{\"a\"}",
            "01",
            "1.",
            "-",
            "1e",
            "+1",
            "nul",
            "\"\u{1}\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "[1 2]",
            "{a:1}",
            "1 2",
            "\"a",
            "[\"a\\",
        ];
        for text in refused {
            assert!(serde_json::from_str::<&serde_json::value::RawValue>(text).is_err(), "{text}");
            assert!(scanned(text).is_err(), "{text}");
        }
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(scanned(&nested(DEEPEST)).is_ok());
        let error = scanned(&nested(DEEPEST + 1)).err().unwrap();
        assert_eq!(error.0, "is nested deeper than 256 levels");
        assert!(scanned("[1e999999, -0.0, 123456789012345678901234567890]").is_ok());
    }

    proptest! {
        #[test]
        fn values_are_those_of_serde(value in any_json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            let (tape, note) = scanned(&text).unwrap();
            prop_assert_eq!(parsed(tape.value(&text, note)), value);
            prop_assert_eq!(tape.value(&text, note).raw(), text.as_str());
        }

        /// Any bytes: taken by both or by none, but for half pairs, which serde takes only unread.
        #[test]
        fn any_text_is_taken_as_serde_takes_it(text in "[\\[\\]{}:,\"\\\\0-9eEu.+\\- truefalsn\u{1}é]{0,24}") {
            let serde = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
            prop_assert_eq!(scanned(&text).is_ok(), serde);
        }

        #[test]
        fn the_usual_form_is_the_one_that_is_written(text in "[a\"\\\\\n\t\u{8}\u{1}\u{1f}\u{7f}é😀/]{0,20}", odd in "\\\\(/|u0041|u000A|u000a|u001F|u001f|n|ud83d)?") {
            let written = serde_json::to_string(&text).unwrap();
            let (tape, note) = scanned(&written).unwrap();
            prop_assert_eq!(tape.value(&written, note).text_and_form().unwrap(), (Cow::Borrowed(text.as_str()), true));
            let written = format!("\"{text}{odd}\"");
            let Ok((tape, note)) = scanned(&written) else { return Ok(()) };
            let (said, usual) = tape.value(&written, note).text_and_form().unwrap();
            prop_assert_eq!(serde_json::to_string(&said).unwrap() == written, usual);
        }
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(serde_json::Value::from),
            any::<i64>().prop_map(serde_json::Value::from),
            "\\PC{0,12}".prop_map(serde_json::Value::from),
            "[a\"\\\\\n\u{1}]{0,40}".prop_map(serde_json::Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
                prop::collection::btree_map("\\PC{0,3}", inner, 0..4).prop_map(|map| serde_json::json!(map)),
            ]
        })
    }
}
