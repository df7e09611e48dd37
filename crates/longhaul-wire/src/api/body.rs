//! The body that a request was read from, to the byte, and which of its bytes are which message. A
//! body is read with the help of the one before it, or of none: what both have in common is not read
//! again.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use longhaul::{Frame, Message};

use super::identity::Identity;
use super::marks::{ClientMark, MarkPlace};
use super::object::Fields;
use super::settings::{self, Before, FrameText};
use super::{Api, RequestError};
use crate::fields::{FieldError, excerpt};
use crate::scan::{Scanner, Value};

/// A body that was read.
#[derive(Debug)]
pub(super) struct Body {
    pub api: Api,
    pub text: String,
    /// Where its list stands, if it has one.
    list: Option<List>,
    pub frame: Arc<Frame>,
    frame_text: FrameText,
    /// The messages as they were read.
    pub messages: Vec<Arc<Message>>,
    groups: Vec<Group>,
    pub marks: Vec<ClientMark>,
    identities: OnceLock<Vec<Identity>>,
}

/// Where a list stands in a body.
#[derive(Debug, Clone, Copy)]
struct List {
    start: usize,
    end: usize,
    /// It is a text, not a list.
    is_bare: bool,
}

/// A part of the list that can stand alone.
#[derive(Debug, Clone, Copy)]
struct Group {
    start: u32,
    end: u32,
    /// Its first message.
    message: u32,
    /// Its first element.
    element: u32,
}

/// A part of the body that stands alone.
pub(super) struct Part {
    /// Which one it is.
    pub number: usize,
    /// How many messages it is.
    pub messages: usize,
    pub start: usize,
    pub end: usize,
}

/// The part of a list that the body before has too.
#[derive(Default)]
struct Known {
    groups: Vec<Group>,
    messages: usize,
    elements: usize,
}

impl Body {
    /// Reads a body. What `last` has too is taken from there.
    pub fn read(api: Api, text: String, last: Option<&Body>) -> Result<Self, RequestError> {
        let last = last.filter(|last| last.api == api);
        if let Some(last) = last
            && let Some(body) = Self::read_longer(&text, last)?
        {
            return Ok(Self { text, ..body });
        }
        let body = Self::read_whole(api, &text, last)?;
        Ok(Self { text, ..body })
    }

    /// Reads a body in which nothing but the list is another one. `None` if it is not such a body.
    fn read_longer(text: &str, last: &Body) -> Result<Option<Self>, RequestError> {
        let Some(list) = last.list.filter(|list| !list.is_bare) else { return Ok(None) };
        let (head, tail) = (&last.text[..list.start], &last.text[list.end..]);
        if text.len() < head.len() + tail.len() || !text.starts_with(head) || !text.ends_with(tail) {
            return Ok(None);
        }
        let mut scanner = Scanner::new(text, list.start)?;
        // What is wrong with it is said when it is read whole.
        let Ok((list, known, notes)) = scan_list(&mut scanner, text, Some(last)) else { return Ok(None) };
        if list.end != text.len() - tail.len() {
            return Ok(None);
        }
        let elements: Vec<Value<'_>> = notes.iter().map(|note| scanner.tape.value(text, *note)).collect();
        let frame_text = last.frame_text.moved(last.list.map_or(0, |list| list.end), list.end);
        let frame_marks = last.marks.iter().filter(|mark| !mark.place.is_block()).cloned().collect();
        let body = Self::new(last.api, list, last.frame.clone(), frame_text, frame_marks);
        Ok(Some(body.with_list(known, &elements, Some(last))?))
    }

    fn read_whole(api: Api, text: &str, last: Option<&Body>) -> Result<Self, RequestError> {
        let format = api.format();
        let said = |error: FieldError| FieldError(format!("the request {}", error.0));
        let begin = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let mut scanner = Scanner::new(text, begin)?;
        if scanner.peek().is_some_and(|byte| byte != b'{') {
            return Err(
                FieldError(format!("the request is not an object: {}", excerpt(&text[begin..]))).into()
            );
        }
        scanner.expect(b'{').map_err(said)?;
        let (mut fields, mut list) = (Vec::new(), None);
        if !scanner.take(b'}') {
            loop {
                let key = scanner.key().map_err(said)?;
                if scanner.tape.value(text, key).is_text(format.list()) {
                    list = Some(scan_list(&mut scanner, text, last).map_err(said)?);
                } else {
                    fields.push((key, scanner.value().map_err(said)?));
                }
                if !scanner.take(b',') {
                    scanner.expect(b'}').map_err(said)?;
                    break;
                }
            }
        }
        scanner.end().map_err(said)?;
        let named = fields.into_iter().map(|(key, value)| {
            let key = scanner.tape.value(text, key).text().unwrap_or_default();
            (key, scanner.tape.value(text, value))
        });
        let fields = Fields::from_list(named.collect::<Vec<(Cow<'_, str>, Value<'_>)>>());
        let before = last.map(|last| Before {
            body: &last.text,
            text: last.frame_text,
            frame: &last.frame,
            marks: &last.marks,
        });
        let read = settings::read_frame(format, fields, before);
        let frame = match last {
            Some(last) if *last.frame == read.frame => last.frame.clone(),
            _ => Arc::new(read.frame),
        };
        let Some((list, known, notes)) = list else {
            // What is asked may be kept by the provider.
            if format.may_lack_list() && frame.model.is_some() {
                let none = List { start: 0, end: 0, is_bare: false };
                let body = Self::new(api, none, frame, read.text, read.marks);
                return Ok(Self { list: None, ..body });
            }
            return Err(FieldError(format!("the request has no `{}`", format.list())).into());
        };
        let elements: Vec<Value<'_>> = notes.iter().map(|note| scanner.tape.value(text, *note)).collect();
        if list.is_bare && !(format.may_lack_list() && elements.iter().all(Value::is_string)) {
            let found = excerpt(&text[list.start..list.end]);
            return Err(FieldError(format!("`{}` is not a list: {found}", format.list())).into());
        }
        Ok(Self::new(api, list, frame, read.text, read.marks).with_list(known, &elements, last)?)
    }

    fn new(api: Api, list: List, frame: Arc<Frame>, frame_text: FrameText, marks: Vec<ClientMark>) -> Self {
        Self {
            api,
            text: String::new(),
            list: Some(list),
            frame,
            frame_text,
            messages: Vec::new(),
            groups: Vec::new(),
            marks,
            identities: OnceLock::new(),
        }
    }

    /// With what is known of the list, and with what is read of the elements behind it.
    fn with_list(
        mut self,
        known: Known,
        elements: &[Value<'_>],
        last: Option<&Body>,
    ) -> Result<Self, FieldError> {
        let format = self.api.format();
        if let Some(last) = last {
            self.messages.extend_from_slice(&last.messages[..known.messages]);
            let is_known = |mark: &&ClientMark| matches!(mark.place, MarkPlace::Block { message, .. } if message < known.messages);
            self.marks.extend(last.marks.iter().filter(is_known).cloned());
        }
        self.groups = known.groups;
        let (mut done, numbered) = (0, known.elements);
        while done < elements.len() {
            let group = format.read(&elements[done..]).map_err(|(number, error)| {
                let number = numbered + done + number + 1;
                FieldError(format!("{} {number}: {}", format.element(), error.0))
            })?;
            let count = group.elements.max(1);
            let last = &elements[(done + count).min(elements.len()) - 1];
            let first = self.messages.len();
            self.groups.push(Group {
                start: elements[done].start() as u32,
                end: last.end() as u32,
                message: first as u32,
                element: (numbered + done) as u32,
            });
            self.marks.extend(group.marks.into_iter().map(|mark| mark.behind(first)));
            self.messages.extend(group.messages.into_iter().map(Arc::new));
            done += count;
        }
        if let Some(last) = last {
            self.share(last, known.messages);
        }
        Ok(self)
    }

    /// Messages that the body before has too, in another place or written in another way, are the
    /// same: who knows them there knows them here. The first `known` are.
    fn share(&mut self, last: &Body, known: usize) {
        let before = last.identities();
        let mut identities = before[..known].to_vec();
        let mut places: Option<HashMap<Identity, usize>> = None;
        for (at, message) in self.messages.iter_mut().enumerate().skip(known) {
            let identity = Identity::of(message);
            identities.push(identity);
            let same_place = (before.get(at) == Some(&identity)).then_some(at);
            let found = same_place.or_else(|| {
                if known == before.len() {
                    return None;
                }
                // Of several that are alike the first one is taken.
                let places = places.get_or_insert_with(|| {
                    before
                        .iter()
                        .enumerate()
                        .skip(known)
                        .rev()
                        .map(|(at, identity)| (*identity, at))
                        .collect()
                });
                places.get(&identity).copied()
            });
            if let Some(found) = found {
                *message = last.messages[found].clone();
            }
        }
        self.identities = OnceLock::from(identities);
    }

    /// Which messages these are.
    pub fn identities(&self) -> &[Identity] {
        self.identities.get_or_init(|| self.messages.iter().map(|message| Identity::of(message)).collect())
    }

    /// The same messages, as somebody else has them, who knows the first of them.
    pub fn with_known(mut self, known: &[Arc<Message>]) -> Self {
        let identities = self.identities().to_vec();
        for (at, message) in known.iter().enumerate().take(identities.len()) {
            if Identity::of(message) == identities[at] {
                self.messages[at] = message.clone();
            }
        }
        self
    }

    /// Whether it has no list at all.
    pub fn lacks_list(&self) -> bool {
        self.list.is_none()
    }

    /// What stands before the list's first element and behind its last one. A bare text gets the
    /// brackets of a list.
    pub fn around(&self) -> (Cow<'_, str>, Cow<'_, str>) {
        let Some(list) = self.list else { return (Cow::Borrowed(&self.text), Cow::Borrowed("")) };
        let (before, behind) = (&self.text[..list.start], &self.text[list.end..]);
        if list.is_bare {
            return (Cow::Owned(format!("{before}[")), Cow::Owned(format!("]{behind}")));
        }
        match (self.groups.first(), self.groups.last()) {
            (Some(first), Some(last)) => (
                Cow::Borrowed(&self.text[..first.start as usize]),
                Cow::Borrowed(&self.text[last.end as usize..]),
            ),
            _ => (Cow::Borrowed(&self.text[..list.end - 1]), Cow::Borrowed(&self.text[list.end - 1..])),
        }
    }

    /// What stands between two elements as a rule.
    pub fn gap(&self) -> &str {
        if self.groups.len() > 1 { self.gap_before(1) } else { "," }
    }

    /// What stands between a part that stands alone and the one before it.
    pub fn gap_before(&self, number: usize) -> &str {
        match number.checked_sub(1).and_then(|before| self.groups.get(before..=number)) {
            Some([before, group]) => &self.text[before.end as usize..group.start as usize],
            _ => ",",
        }
    }

    /// The part of the body that is these messages, as many as can stand alone; the first of them is
    /// number `at` here.
    pub fn part(&self, messages: &[Arc<Message>], at: usize) -> Option<Part> {
        if self.list.is_some_and(|list| list.is_bare) {
            return None;
        }
        let number = self.groups.binary_search_by_key(&at, |group| group.message as usize).ok()?;
        let group = self.groups[number];
        let end = self.groups.get(number + 1).map_or(self.messages.len(), |next| next.message as usize);
        let same = |(one, other): (&Arc<Message>, &Arc<Message>)| Arc::ptr_eq(one, other);
        let all = messages.len() >= end - at && messages.iter().zip(&self.messages[at..end]).all(same);
        all.then_some(Part {
            number,
            messages: end - at,
            start: group.start as usize,
            end: group.end as usize,
        })
    }
}

/// Goes over a list, or over whatever stands in its place. Elements that the body before has too are
/// jumped over; the notes of the others are given.
fn scan_list(
    scanner: &mut Scanner<'_>,
    text: &str,
    last: Option<&Body>,
) -> Result<(List, Known, Vec<usize>), FieldError> {
    let is_list = scanner.peek() == Some(b'[');
    let start = scanner.at();
    if !is_list {
        let note = scanner.value()?;
        return Ok((List { start, end: scanner.at(), is_bare: true }, Known::default(), vec![note]));
    }
    let known = last.map(|last| last.known(&text[start..], start)).unwrap_or_default();
    let mut notes = Vec::new();
    let mut first = match known.groups.last() {
        Some(group) => {
            scanner.go_to(group.end as usize);
            false
        }
        None => {
            scanner.go_to(start + 1);
            true
        }
    };
    loop {
        if scanner.take(b']') {
            return Ok((List { start, end: scanner.at(), is_bare: false }, known, notes));
        }
        if !first {
            scanner.expect(b',')?;
        }
        first = false;
        notes.push(scanner.value()?);
    }
}

impl Body {
    /// What a list that begins with `text` has in common with the one here, moved to `start`.
    fn known(&self, text: &str, start: usize) -> Known {
        let Some(list) = self.list.filter(|list| !list.is_bare) else { return Known::default() };
        let common = common_start(text.as_bytes(), &self.text.as_bytes()[list.start..list.end]);
        // One more byte shows that an element ends where it ended.
        let ended = |group: &Group| group.end as usize - list.start < common;
        let mut count = self.groups.partition_point(ended);
        let messages =
            |count: usize| self.groups.get(count).map_or(self.messages.len(), |next| next.message as usize);
        let may_grow = |message: &Arc<Message>| self.api.format().may_grow(message);
        if count > 0 && self.messages[..messages(count)].last().is_some_and(may_grow) {
            count -= 1;
        }
        let moved = |at: u32| (at as usize - list.start + start) as u32;
        let groups = self.groups[..count].iter();
        let groups = groups.map(|group| Group { start: moved(group.start), end: moved(group.end), ..*group });
        let elements = self.groups.get(count).map_or(self.elements(), |next| next.element as usize);
        Known { groups: groups.collect(), messages: messages(count), elements }
    }

    /// How many elements the list has, as far as it matters: it numbers those behind them.
    fn elements(&self) -> usize {
        // The last group of an API in which groups have several elements is never kept.
        self.groups.last().map_or(0, |last| last.element as usize + 1)
    }
}

/// How many bytes two texts have in common at their start.
fn common_start(one: &[u8], other: &[u8]) -> usize {
    const STEP: usize = 4_096;
    let most = one.len().min(other.len());
    let mut at = 0;
    while at + STEP <= most && one[at..at + STEP] == other[at..at + STEP] {
        at += STEP;
    }
    at + one[at..most].iter().zip(&other[at..most]).take_while(|(one, other)| one == other).count()
}

impl MarkPlace {
    fn is_block(&self) -> bool {
        matches!(self, Self::Block { .. })
    }
}

impl ClientMark {
    /// The same behind so many more messages.
    fn behind(self, count: usize) -> Self {
        let place = match self.place {
            MarkPlace::Block { message, block } => MarkPlace::Block { message: message + count, block },
            other => other,
        };
        Self { place, ..self }
    }
}
