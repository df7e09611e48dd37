//! The body that a request was read from, to the byte, and which of its bytes are which message. A
//! body is read with the help of the one before it, or of none: what both have in common is not read
//! again.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use longhaul::text::fingerprint;
use longhaul::{Frame, Message};

use super::identity::Identity;
use super::marks::{ClientMark, MarkPlace};
use super::object::Fields;
use super::settings::{self, Before, FrameText};
use super::shared_text::SharedText;
use super::tools_end::ToolsEnd;
use super::{Api, RequestError};
use crate::fields::{FieldError, excerpt};
use crate::scan::{Scanner, Value};

/// A body that was read.
#[derive(Debug)]
pub(super) struct Body {
    pub text: SharedText,
    /// Where its list stands, if it has one.
    list: Option<List>,
    pub read: Arc<Read>,
}

/// Where a list stands in a body.
#[derive(Debug, Clone)]
struct List {
    place: Range<usize>,
    /// It is a text, not a list.
    is_bare: bool,
}

/// What was read from a body, and by what its text is known again. The text is not kept: a live
/// conversation would be in memory once more.
#[derive(Debug)]
pub(super) struct Read {
    pub api: Api,
    pub frame: Arc<Frame>,
    frame_text: FrameText,
    /// Where the tools end, if there are any.
    pub tools_end: Option<ToolsEnd>,
    /// The messages as they were read.
    pub messages: Vec<Arc<Message>>,
    pub marks: Vec<ClientMark>,
    groups: Vec<Group>,
    identities: OnceLock<Vec<Identity>>,
    around: Option<Around>,
    /// Fingerprints of the list, each of a block of its text.
    blocks: Vec<u128>,
}

/// The text before and behind a list.
#[derive(Debug, Clone, Copy)]
struct Around {
    head: Print,
    tail: Print,
}

/// By what a text is known again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Print {
    pub length: usize,
    fingerprint: u128,
}

impl Print {
    pub fn of(text: &str) -> Self {
        Self { length: text.len(), fingerprint: fingerprint(text.as_bytes()) }
    }

    /// Whether it is of this text.
    pub fn is_of(&self, text: &str) -> bool {
        self.length == text.len() && *self == Self::of(text)
    }
}

/// Bytes of a list that have a fingerprint. What a fuzzer makes up is short.
const BLOCK: usize = if cfg!(fuzzing) { 64 } else { 4_096 };

/// A part of the list that can stand alone. Places are counted from the start of the list.
#[derive(Debug, Clone, Copy)]
struct Group {
    start: u32,
    end: u32,
    /// Its first message.
    message: u32,
    /// Its first element.
    element: u32,
}

/// A part of a body that stands alone.
pub(super) struct Part {
    /// Which one it is.
    pub number: usize,
    /// How many messages it is.
    pub messages: usize,
    pub place: Range<usize>,
}

/// The part of a list that the body before has too.
#[derive(Default)]
struct Known {
    groups: usize,
    messages: usize,
    elements: usize,
    /// Blocks of the text that are the same.
    blocks: usize,
}

/// A list that was gone over.
struct Scanned {
    list: List,
    known: Known,
    /// Notes of the elements behind what is known.
    notes: Vec<usize>,
}

impl Body {
    /// Reads a body. What `last` has too is taken from there.
    pub fn read(api: Api, text: SharedText, last: Option<&Read>) -> Result<Self, RequestError> {
        let last = last.filter(|last| last.api == api);
        let longer = match last {
            Some(last) => Self::read_longer(&text, last)?,
            None => None,
        };
        let (list, read) = match longer {
            Some(read) => read,
            None => Self::read_whole(api, &text, last)?,
        };
        Ok(Self { text, list, read: Arc::new(read) })
    }

    /// Reads a body in which nothing but the list is another one. `None` if it is not such a body.
    fn read_longer(text: &str, last: &Read) -> Result<Option<(Option<List>, Read)>, RequestError> {
        let Some(Around { head, tail }) = last.around else { return Ok(None) };
        let tail_start = text.len().checked_sub(tail.length).filter(|start| *start >= head.length);
        let around = || Some((text.get(..head.length)?, text.get(tail_start?..)?));
        if !around().is_some_and(|(before, behind)| head.is_of(before) && tail.is_of(behind)) {
            return Ok(None);
        }
        let mut scanner = Scanner::new(text, head.length)?;
        // What is wrong with it is said when it is read whole.
        let Ok(scanned) = scan_list(&mut scanner, text, Some(last)) else { return Ok(None) };
        if Some(scanned.list.place.end) != tail_start || scanned.list.is_bare {
            return Ok(None);
        }
        let marks = last.marks.iter().filter(|mark| !mark.place.is_block()).cloned().collect();
        let read = Read::new(last.api, last.frame.clone(), last.frame_text, marks);
        let elements: Vec<Value<'_>> =
            scanned.notes.iter().map(|note| scanner.tape.value(text, *note)).collect();
        let read = read.with_list(text, &scanned, &elements, Some(last))?;
        let read = Read { around: last.around, tools_end: last.tools_end, ..read };
        Ok(Some((Some(scanned.list), read)))
    }

    fn read_whole(api: Api, text: &str, last: Option<&Read>) -> Result<(Option<List>, Read), RequestError> {
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
                if scanner.tape.value(text, key).is_text(format.row().list) {
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
        let list_start = list.as_ref().map(|scanned| scanned.list.place.start);
        let tools_end = fields.peek("tools").and_then(|tools| ToolsEnd::of(tools, list_start, text.len()));
        let before =
            last.map(|last| Before { text: last.frame_text, frame: &last.frame, marks: &last.marks });
        let read = settings::read_frame(format, fields, before);
        let frame = match last {
            Some(last) if *last.frame == read.frame => last.frame.clone(),
            _ => Arc::new(read.frame),
        };
        let is_named = frame.model.is_some();
        let read = Read { tools_end, ..Read::new(api, frame, read.text, read.marks) };
        let Some(scanned) = list else {
            // What is asked may be kept by the provider.
            if format.row().may_lack_list && is_named {
                return Ok((None, read));
            }
            return Err(FieldError(format!("the request has no `{}`", format.row().list)).into());
        };
        let elements: Vec<Value<'_>> =
            scanned.notes.iter().map(|note| scanner.tape.value(text, *note)).collect();
        let place = scanned.list.place.clone();
        if scanned.list.is_bare && !(format.row().may_lack_list && elements.iter().all(Value::is_string)) {
            let found = excerpt(&text[place]);
            return Err(FieldError(format!("`{}` is not a list: {found}", format.row().list)).into());
        }
        let around = Around { head: Print::of(&text[..place.start]), tail: Print::of(&text[place.end..]) };
        let read = read.with_list(text, &scanned, &elements, last)?;
        Ok((Some(scanned.list), Read { around: Some(around), ..read }))
    }

    /// Whether it has no list at all.
    pub fn lacks_list(&self) -> bool {
        self.list.is_none()
    }

    /// Where a group stands.
    fn place(&self, group: &Group) -> Range<usize> {
        let start = self.list.as_ref().map_or(0, |list| list.place.start);
        start + group.start as usize..start + group.end as usize
    }

    /// What stands before the list's first element and behind its last one. A bare text gets the
    /// brackets of a list.
    pub fn around(&self) -> (Cow<'_, str>, Cow<'_, str>) {
        let Some(list) = &self.list else { return (Cow::Borrowed(&self.text), Cow::Borrowed("")) };
        let (start, end) = (list.place.start, list.place.end);
        if list.is_bare {
            let (before, behind) = (&self.text[..start], &self.text[end..]);
            return (Cow::Owned(format!("{before}[")), Cow::Owned(format!("]{behind}")));
        }
        let inside = match &self.read.groups[..] {
            [] => end - 1..end - 1,
            [first, .., last] => self.place(first).start..self.place(last).end,
            [only] => self.place(only),
        };
        (Cow::Borrowed(&self.text[..inside.start]), Cow::Borrowed(&self.text[inside.end..]))
    }

    /// What stands between two elements as a rule.
    pub fn gap(&self) -> &str {
        if self.read.groups.len() > 1 { self.gap_before(1) } else { "," }
    }

    /// What stands between a part that stands alone and the one before it.
    pub fn gap_before(&self, number: usize) -> &str {
        match number.checked_sub(1).and_then(|before| self.read.groups.get(before..=number)) {
            Some([before, group]) => &self.text[self.place(before).end..self.place(group).start],
            _ => ",",
        }
    }

    /// The part of the body that is these messages, as many as can stand alone; the first of them is
    /// number `at` here.
    pub fn part(&self, messages: &[Arc<Message>], at: usize) -> Option<Part> {
        if self.list.as_ref().is_none_or(|list| list.is_bare) {
            return None;
        }
        let (groups, known) = (&self.read.groups, &self.read.messages);
        let number = groups.binary_search_by_key(&at, |group| group.message as usize).ok()?;
        let end = groups.get(number + 1).map_or(known.len(), |next| next.message as usize);
        let same = |(one, other): (&Arc<Message>, &Arc<Message>)| Arc::ptr_eq(one, other);
        let all = messages.len() >= end - at && messages.iter().zip(&known[at..end]).all(same);
        all.then(|| Part { number, messages: end - at, place: self.place(&groups[number]) })
    }
}

impl Read {
    fn new(api: Api, frame: Arc<Frame>, frame_text: FrameText, marks: Vec<ClientMark>) -> Self {
        Self {
            api,
            frame,
            frame_text,
            tools_end: None,
            messages: Vec::new(),
            marks,
            groups: Vec::new(),
            identities: OnceLock::new(),
            around: None,
            blocks: Vec::new(),
        }
    }

    /// Messages of which no body is known.
    pub fn of(api: Api, messages: Vec<Arc<Message>>) -> Self {
        let nothing = Self::new(api, Arc::default(), FrameText::default(), Vec::new());
        Self { messages, ..nothing }
    }

    /// With what is known of the list, and with what is read of the elements behind it.
    fn with_list(
        mut self,
        text: &str,
        scanned: &Scanned,
        elements: &[Value<'_>],
        last: Option<&Self>,
    ) -> Result<Self, FieldError> {
        let Scanned { list, known, .. } = scanned;
        let format = self.api.format();
        if let Some(last) = last {
            self.groups.extend_from_slice(&last.groups[..known.groups]);
            self.messages.extend_from_slice(&last.messages[..known.messages]);
            self.blocks.extend_from_slice(&last.blocks[..known.blocks]);
            let is_known = |mark: &&ClientMark| matches!(mark.place, MarkPlace::Block { message, .. } if message < known.messages);
            self.marks.extend(last.marks.iter().filter(is_known).cloned());
        }
        let mut done = 0;
        while done < elements.len() {
            let group = format.read(&elements[done..]).map_err(|(number, error)| {
                let number = known.elements + done + number + 1;
                FieldError(format!("{} {number}: {}", format.row().element, error.0))
            })?;
            let count = group.elements.clamp(1, elements.len() - done);
            let first = self.messages.len();
            self.groups.push(Group {
                start: (elements[done].start() - list.place.start) as u32,
                end: (elements[done + count - 1].end() - list.place.start) as u32,
                message: first as u32,
                element: (known.elements + done) as u32,
            });
            self.marks.extend(group.marks.into_iter().map(|mark| mark.behind(first)));
            self.messages.extend(group.messages.into_iter().map(Arc::new));
            done += count;
        }
        let blocks = text.as_bytes()[list.place.clone()].chunks_exact(BLOCK).skip(known.blocks);
        self.blocks.extend(blocks.map(fingerprint));
        if let Some(last) = last {
            self.share(last, known.messages);
        }
        Ok(self)
    }

    /// Messages that the body before has too, in another place or written in another way, are the
    /// same: who knows them there knows them here. The first `known` are.
    fn share(&mut self, last: &Self, known: usize) {
        let before = last.identities();
        let new = self.messages[known..].iter().map(|message| Identity::of(message));
        let identities: Vec<Identity> = before[..known].iter().copied().chain(new).collect();
        let is_same = |at: usize| before.get(at).is_some_and(|before| identities.get(at) == Some(before));
        // Those that stood in another place. Of several that are alike each is taken once, in their order.
        let mut moved: HashMap<Identity, Vec<usize>> = HashMap::new();
        for at in (known..before.len()).rev().filter(|at| !is_same(*at)) {
            moved.entry(before[at]).or_default().push(at);
        }
        for (at, message) in self.messages.iter_mut().enumerate().skip(known) {
            let found = match is_same(at) {
                true => Some(at),
                false => moved.get_mut(&identities[at]).and_then(Vec::pop),
            };
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

    /// What a list that begins with `text` has in common with the one here.
    fn known(&self, text: &str) -> Known {
        let blocks = text.as_bytes().chunks_exact(BLOCK).zip(&self.blocks);
        let blocks = blocks.take_while(|(block, known)| fingerprint(block) == **known).count();
        // One more byte shows that an element ends where it ended.
        let ended = |group: &Group| (group.end as usize) < blocks * BLOCK;
        let mut groups = self.groups.partition_point(ended);
        let messages = |count: usize| match self.groups.get(count) {
            Some(next) => next.message as usize,
            None if count == 0 => 0,
            None => self.messages.len(),
        };
        let may_grow = |message: &Arc<Message>| self.api.format().may_grow(message);
        if groups > 0 && self.messages[..messages(groups)].last().is_some_and(may_grow) {
            groups -= 1;
        }
        // A group that is followed by none is of one element, or may grow.
        let all = || self.groups.last().map_or(0, |last| last.element as usize + 1);
        let elements = self.groups.get(groups).map_or_else(all, |next| next.element as usize);
        Known { groups, messages: messages(groups), elements, blocks }
    }

    /// Where a group ends, from the start of the list.
    fn end_of(&self, groups: usize) -> Option<usize> {
        groups.checked_sub(1).and_then(|last| self.groups.get(last)).map(|group| group.end as usize)
    }
}

/// Goes over a list, or over whatever stands in its place. Elements that the body before has too are
/// jumped over.
fn scan_list(scanner: &mut Scanner<'_>, text: &str, last: Option<&Read>) -> Result<Scanned, FieldError> {
    let is_list = scanner.peek() == Some(b'[');
    let start = scanner.at();
    if !is_list {
        let notes = vec![scanner.value()?];
        let list = List { place: start..scanner.at(), is_bare: true };
        return Ok(Scanned { list, known: Known::default(), notes });
    }
    let known = last.map(|last| last.known(&text[start..])).unwrap_or_default();
    let end = last.and_then(|last| last.end_of(known.groups));
    scanner.go_to(start + end.unwrap_or(1));
    let (mut notes, mut is_first) = (Vec::new(), end.is_none());
    loop {
        if scanner.take(b']') {
            return Ok(Scanned { list: List { place: start..scanner.at(), is_bare: false }, known, notes });
        }
        if !is_first {
            scanner.expect(b',')?;
        }
        is_first = false;
        notes.push(scanner.value()?);
    }
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
