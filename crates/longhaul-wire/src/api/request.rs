//! A request: what a client asked, or what is to be asked. Read from a body, it is written into that
//! body again: what nobody touched is a slice of it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use longhaul::{End, Frame, Json, Message, Outgoing, Tool};

use super::body::{Body, Part, Read};
use super::format::Unit;
use super::held::Held;
use super::identity::Identity;
use super::marks::{self, ClientMark, MOST, Mark, MarkPlace};
use super::relay::{LastRead, Units};
use super::settings::{self, BETAS};
use super::{Api, LeftOut, RequestError, is_own};
use crate::transcript;

/// A request: a frame and messages.
///
/// ```
/// use longhaul_wire::api::{Api, Request};
/// let body = r#"{"model": "m", "messages": [{"role": "user", "content": "hi"}], "seed": 7}"#;
/// let request = Request::decode(Api::Chat, body).unwrap();
/// assert_eq!(request.encode(Api::Chat).body, body);
///
/// let sent = request.encode(Api::Anthropic);
/// assert_eq!(sent.left_out, ["the setting `seed`"]);
/// ```
#[derive(Debug, Clone)]
pub struct Request {
    frame: Arc<Frame>,
    messages: Vec<Arc<Message>>,
    /// The body that it was read from, as long as the frame is the one in it.
    body: Option<Arc<Body>>,
    /// Marks that the client has set.
    client_marks: Vec<ClientMark>,
    /// Where the prompt cache should remember prefixes, beside what the client has marked.
    ends: Vec<End>,
    /// A tool that stands in the frame, and that is to be written behind the tools of the body.
    offered: Option<Json>,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// The JSON of the body.
    pub body: BodyText,
    /// What the API has no place for, in words.
    pub left_out: Vec<String>,
}

/// The text of a body: the client's own, not copied, if nothing is to be changed.
#[derive(Clone)]
pub struct BodyText(Text);

#[derive(Clone)]
enum Text {
    Client(Arc<Body>),
    Written(String),
}

impl BodyText {
    /// Whether it is the body that the client sent.
    pub fn is_clients(&self) -> bool {
        matches!(self.0, Text::Client(_))
    }
}

impl Deref for BodyText {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            Text::Client(body) => &body.text,
            Text::Written(text) => text,
        }
    }
}

impl AsRef<[u8]> for BodyText {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl From<BodyText> for String {
    fn from(body: BodyText) -> Self {
        match body.0 {
            Text::Client(body) => body.text.to_string(),
            Text::Written(text) => text,
        }
    }
}

impl From<&BodyText> for String {
    fn from(body: &BodyText) -> Self {
        (**body).to_owned()
    }
}

impl PartialEq for BodyText {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for BodyText {}

impl<T: AsRef<str> + ?Sized> PartialEq<T> for BodyText {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl fmt::Display for BodyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for BodyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl Request {
    /// A request to be written from its parts.
    pub fn new(frame: Frame, messages: Vec<Arc<Message>>) -> Self {
        let (client_marks, ends) = (Vec::new(), Vec::new());
        Self { frame: Arc::new(frame), messages, body: None, client_marks, ends, offered: None }
    }

    pub(super) fn read(body: Arc<Body>) -> Self {
        let (frame, messages) = (body.read.frame.clone(), body.read.messages.clone());
        let client_marks = body.read.marks.clone();
        Self { frame, messages, body: Some(body), client_marks, ends: Vec::new(), offered: None }
    }

    /// What was read from its body.
    pub(super) fn read_before(&self) -> Option<Arc<Read>> {
        self.body.as_ref().map(|body| body.read.clone())
    }

    /// What was read from its body, to read the next request of the conversation with.
    pub fn last_read(&self) -> Option<LastRead> {
        self.read_before().map(LastRead)
    }

    /// The request that a session sends. Anthropic's cache is told where prefixes end by up to four
    /// marks; the others find out by themselves.
    ///
    /// ```
    /// use longhaul::{Frame, Message, Models, Profile, Session};
    /// use longhaul_wire::api::{Api, Request};
    /// let mut session = Session::new(Profile::longhaul(), Models::builtin().find("claude-opus-4-5").clone());
    /// let system = vec![longhaul::Block::text("Be brief.")];
    /// session.set_frame(Frame { model: Some("claude-opus-4-5".into()), system, ..Frame::default() });
    /// session.push(Message::user("Hello."));
    /// session.prepare(None)?;
    /// let body = Request::of(&session.outgoing()).encode(Api::Anthropic).body;
    /// assert_eq!(body.matches("cache_control").count(), 2);   // behind the system prompt, and the last
    /// # Ok::<(), longhaul::PrepareError>(())
    /// ```
    pub fn of(outgoing: &Outgoing<'_>) -> Self {
        let mut frame = outgoing.frame.cloned().unwrap_or_default();
        if let Some(most) = outgoing.shorter_answer {
            frame.shorten_answer(most);
        }
        Self::new(frame, Vec::new()).sending(outgoing)
    }

    /// This request with what a session sends in the place of its conversation. The body around it
    /// stays what it was. A session that sends what the client sent changes nothing: the body is the
    /// client's own, with its marks.
    pub fn sending(self, outgoing: &Outgoing<'_>) -> Self {
        self.sending_messages(outgoing.messages().cloned().collect(), outgoing.ends.clone())
    }

    /// The same with messages and ends that were taken from a session before.
    pub fn sending_messages(self, messages: Vec<Arc<Message>>, ends: Vec<End>) -> Self {
        let is_clients = self.body.as_ref().is_some_and(|body| same(&messages, &body.read.messages));
        Self { messages, ends: if is_clients { Vec::new() } else { ends }, ..self }
    }

    /// Reads a body. A [`Relay`](super::Relay) reads one that is much like the one before it without
    /// reading all of it again.
    pub fn decode(api: Api, body: impl Into<String>) -> Result<Self, RequestError> {
        Ok(Self::read(Arc::new(Body::read(api, body.into().into(), None)?)))
    }

    /// With the value of the header `anthropic-beta`.
    pub fn with_betas(mut self, header: &str) -> Self {
        Arc::make_mut(&mut self.frame).settings.set(BETAS, Json::string(header));
        self
    }

    /// With one tool more, behind those of the client: all other bytes of its body stay as they are. A request that
    /// was read without tools gets none.
    ///
    /// ```
    /// use longhaul::Json;
    /// use longhaul_wire::api::{Api, Request};
    /// let body = r#"{"tools": [{"name": "Read", "input_schema": {}} ], "messages": []}"#;
    /// let tool = Api::Anthropic.tool("recall", "Gives back.", &Json::empty_object());
    /// let request = Request::decode(Api::Anthropic, body).unwrap().offering(tool);
    /// assert_eq!(
    ///     request.encode(Api::Anthropic).body,
    ///     r#"{"tools": [{"name": "Read", "input_schema": {}},{"name":"recall","description":"Gives back.","input_schema":{}} ], "messages": []}"#
    /// );
    /// ```
    pub fn offering(mut self, tool: Tool) -> Self {
        if self.body.as_ref().is_some_and(|body| body.read.tools_end.is_some()) {
            self.offered = Some(tool.definition.clone());
            Arc::make_mut(&mut self.frame).tools.push(tool);
        }
        self
    }

    /// Whether there is one tool more than those of the client.
    pub fn is_offering(&self) -> bool {
        self.offered.is_some()
    }

    /// The value of the header `anthropic-beta`, to be sent with the body.
    pub fn betas(&self) -> Option<String> {
        serde_json::from_str(self.frame.settings.get(BETAS)?.as_str()).ok()
    }

    /// With other messages. The body around them stays what it was.
    pub fn with_messages(self, messages: Vec<Arc<Message>>) -> Self {
        Self { messages, ends: Vec::new(), ..self }
    }

    /// With one message more behind the others. What the prompt cache remembers stays the same.
    pub fn followed_by(mut self, message: Message) -> Self {
        self.messages.push(Arc::new(message));
        self
    }

    /// With these ends, at which the prompt cache should remember the request.
    pub fn with_ends(self, ends: Vec<End>) -> Self {
        Self { ends, ..self }
    }

    /// With another frame. The body is then written from it.
    pub fn with_frame(self, frame: Frame) -> Self {
        let body = self.body.filter(|_| *self.frame == frame);
        Self { frame: Arc::new(frame), body, ..self }
    }

    /// The messages as a transcript holds them: the first one carries the frame.
    pub fn into_transcript(self) -> Vec<Message> {
        let frame = settings::frame_json(&self.frame);
        // The body has the same messages: it goes first.
        let Self { messages, body, .. } = self;
        drop(body);
        let mut messages: Vec<Message> = messages.into_iter().map(Arc::unwrap_or_clone).collect();
        if let (Some(first), Ok(frame)) = (messages.first_mut(), Json::new(frame)) {
            *first = transcript::with_frame(first.clone(), &frame);
        }
        messages
    }

    /// What the request leans on that is with its provider. Where one of these
    /// [passes on](Held::passes_on), it is not for us to shorten the request.
    ///
    /// ```
    /// use longhaul_wire::api::{Api, Held, Request};
    /// let body = r#"{"model": "m", "previous_response_id": "resp_1", "input": "Go on."}"#;
    /// assert_eq!(Request::decode(Api::Responses, body).unwrap().held(), [Held::PreviousResponse]);
    /// ```
    pub fn held(&self) -> Vec<Held> {
        Held::of(&self.frame, self.messages.iter().map(|message| &**message))
    }

    /// True if the request begins a thread: the next ones would have new messages alone.
    pub fn begins_thread(&self) -> bool {
        let thread = self.frame.settings.get("thread").map(|thread| thread.value());
        thread.is_some_and(|thread| thread.get("type").is_some_and(|kind| kind == "create"))
    }

    /// True if a part of the conversation is with the provider and not in the request: then it
    /// is not for us to shorten it, and it is passed on as it came.
    pub fn is_stateful(&self) -> bool {
        self.is_stateful_behind(0)
    }

    /// The same for a request of whose first messages it is known that nothing is with the provider.
    pub fn is_stateful_behind(&self, first: usize) -> bool {
        let messages = self.messages.iter().skip(first).map(|message| &**message);
        Held::of(&self.frame, messages).into_iter().any(Held::passes_on)
    }

    /// True for a request that was read from a body.
    pub(super) fn is_read(&self) -> bool {
        self.body.is_some()
    }

    /// The API that the frame was written for: that of the messages.
    pub(super) fn source(&self) -> Option<Api> {
        let known = self.body.as_ref().map(|body| body.read.api);
        known.or_else(|| Api::ALL.into_iter().find(|api| self.messages.iter().any(|m| is_own(m, *api))))
    }

    /// Model, system prompt, tools and settings.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// The conversation.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Which messages the client sent.
    pub fn identities(&self) -> Cow<'_, [Identity]> {
        match &self.body {
            Some(body) => Cow::Borrowed(body.read.identities()),
            None => self.messages.iter().map(|message| Identity::of(message)).collect(),
        }
    }

    /// The marks of the prompt cache that the client has set.
    pub fn marks(&self) -> &[ClientMark] {
        &self.client_marks
    }

    /// The body that it was read from, byte for byte.
    pub fn body(&self) -> Option<&str> {
        self.body.as_ref().map(|body| &*body.text)
    }

    /// Writes the body for an API.
    pub fn encode(&self, api: Api) -> Encoded {
        self.encode_with(api, &mut Units::default())
    }

    /// The same, with units that were written before.
    pub(super) fn encode_with(&self, api: Api, units: &mut Units) -> Encoded {
        let mut left_out = LeftOut::default();
        let body = match &self.body {
            Some(body) if body.read.api == api && (self.messages.is_empty() || !body.lacks_list()) => {
                let is_same = self.ends.is_empty() && same(&self.messages, &body.read.messages);
                match (self.offered.as_ref().zip(body.read.tools_end), is_same) {
                    (None, true) => Text::Client(body.clone()),
                    (None, false) => Text::Written(self.write_into(body, units, &mut left_out)),
                    (Some((tool, end)), true) => Text::Written(end.with(&body.text, tool.as_str())),
                    (Some((tool, end)), false) => {
                        let text = self.write_into(body, units, &mut left_out);
                        Text::Written(end.with(&text, tool.as_str()))
                    }
                }
            }
            _ => Text::Written(settings::write_body(self, api, &mut left_out)),
        };
        Encoded { body: BodyText(body), left_out: left_out.0 }
    }

    /// The body with these messages in the place of those that it had.
    fn write_into(&self, body: &Body, units: &mut Units, left_out: &mut LeftOut) -> String {
        let format = body.read.api.format();
        let (before, behind) = body.around();
        let stems = self.stems(body);
        let (kept, ours) = self.chosen(body, &stems);
        let mut out = Writer::new(body, before.len() + behind.len());
        out.text.push_str(&before);
        // What the client began in its own way is not made better.
        let odd_start = body.read.messages.first().is_some_and(|first| format.opening(first).is_some());
        let mut at = 0;
        while at < self.messages.len() {
            let is_joined = format.joined(&self.messages[at..]) > 1;
            let stem = stems[at].filter(|_| !is_joined);
            let part = stem.and_then(|stem| body.part(&self.messages[at..], stem.message));
            let (together, ends, written);
            let text = match &part {
                Some(part) => {
                    together = part.messages;
                    ends = Cow::Owned(ends_of(&self.messages[at..at + together]));
                    &body.text[part.place.clone()]
                }
                None => {
                    together = format.together(&self.messages[at..]);
                    written = units.get(body.read.api, &self.messages, at, together, left_out);
                    ends = Cow::Borrowed(&written.ends[..]);
                    &written.json
                }
            };
            let mut text = Cow::Borrowed(text);
            for mark in ours.iter().filter_map(|mark| mark.within(at, together)) {
                let end = ends.get(mark.0).copied().unwrap_or_default();
                text = marks::set(&text, end, mark.1).map_or(text, Cow::Owned);
            }
            // Marks of the client stand in its own text already.
            let first = kept.partition_point(|mark| mark.at < at);
            let here = kept[first..].iter().take_while(|mark| part.is_none() && mark.at < at + together);
            for mark in here {
                let before = (mark.at - at).checked_sub(1).and_then(|before| ends.get(before)).copied();
                let end = before.unwrap_or_default() + mark.block + 1;
                text = marks::set(&text, end, mark.json).map_or(text, Cow::Owned);
            }
            if out.is_empty && !odd_start && !text.is_empty() {
                format.opening(&self.messages[at]).into_iter().for_each(|opening| out.push(None, &opening));
            }
            match text {
                Cow::Borrowed(text) => out.push(part.as_ref(), text),
                Cow::Owned(text) => out.push_changed(part.as_ref(), &text),
            }
            at += together;
        }
        units.forget_unused();
        out.end(&behind)
    }

    /// Which message of the body each message is, or stems from.
    fn stems(&self, body: &Body) -> Vec<Option<Stem>> {
        let mut places: Option<HashMap<*const Message, usize>> = None;
        let mut next = 0;
        let stem = |message: &Arc<Message>| {
            let is_here =
                |at: usize| body.read.messages.get(at).is_some_and(|other| Arc::ptr_eq(message, other));
            let place = [next, next + 1].into_iter().find(|at| is_here(*at)).or_else(|| {
                let all = || {
                    body.read.messages.iter().enumerate().rev().map(|(at, other)| (Arc::as_ptr(other), at))
                };
                places.get_or_insert_with(|| all().collect()).get(&Arc::as_ptr(message)).copied()
            });
            // Edited, if it stands where a message of its role stood.
            let was_here =
                || body.read.messages.get(next).filter(|other| other.role() == message.role()).map(|_| next);
            let stem = match place {
                Some(message) => Some(Stem { message, is_same: true }),
                None => was_here().map(|message| Stem { message, is_same: false }),
            };
            next = stem.map_or(next, |stem| stem.message + 1);
            stem
        };
        self.messages.iter().map(stem).collect()
    }

    /// The client's marks that still have their block, and ours beside them.
    fn chosen<'a>(&'a self, body: &Body, stems: &[Option<Stem>]) -> (Vec<Kept<'a>>, Vec<Mark>) {
        // The message itself, the first of several, before one that stems from it.
        let mut places: HashMap<usize, (bool, usize)> = HashMap::new();
        for (at, stem) in stems.iter().enumerate() {
            let Some(Stem { message, is_same }) = *stem else { continue };
            let place = places.entry(message).or_insert((is_same, at));
            if is_same && !place.0 {
                *place = (is_same, at);
            }
        }
        let at_of = |message: usize| places.get(&message).map(|(_, at)| *at);
        let kept = self.client_marks.iter().filter_map(|mark| match mark.place {
            MarkPlace::Block { message, block } => {
                let at = at_of(message)?;
                let blocks = body.read.messages.get(message)?.blocks().len();
                let is_end = block + 1 >= blocks;
                Some(Kept { at, block, is_end, hour: mark.hour, json: &mark.json })
            }
            _ => None,
        });
        let mut kept: Vec<Kept<'_>> = kept.collect();
        kept.sort_by_key(|mark| mark.at);
        if !body.read.api.format().row().wants_marks {
            return (kept, Vec::new());
        }
        let around = self.client_marks.iter().filter(|mark| !matches!(mark.place, MarkPlace::Block { .. }));
        let around: Vec<bool> = around.map(|mark| mark.hour).collect();
        let is_new = |end: &End| match end {
            // What the client wrote around its conversation stays as it is.
            End::Frame => false,
            End::After(parts) => !kept.iter().any(|mark| mark.is_end && mark.at + 1 == *parts),
        };
        let ends = self.ends.iter().copied().filter(|end| is_new(end) && self.has(*end));
        let ends = worthy(ends.collect(), MOST.saturating_sub(around.len() + kept.len()));
        // A mark for an hour must not stand behind one for less.
        let all_hours = kept.iter().all(|mark| mark.hour) && around.iter().all(|hour| *hour);
        let any = !(kept.is_empty() && around.is_empty());
        let last_hour = kept.iter().filter(|mark| mark.hour).map(|mark| mark.at).max();
        let hour = |end: &End| match end {
            End::Frame => false,
            // One in the same message stands before ours.
            End::After(parts) => any && all_hours || last_hour.is_some_and(|last| last >= *parts),
        };
        let ours = ends.into_iter().map(|end| Mark { end, hour: hour(&end) }).collect();
        (kept, ours)
    }

    /// The marks of a request that has no body of its own.
    pub(super) fn marks_alone(&self, api: Api) -> Vec<Mark> {
        if !api.format().row().wants_marks {
            return Vec::new();
        }
        let around = self.client_marks.iter().filter(|mark| self.client_mark(api, mark.place).is_some());
        let around: Vec<&ClientMark> = around.collect();
        let in_system = around.iter().any(|mark| matches!(mark.place, MarkPlace::System(_)));
        let is_new = |end: &End| !(in_system && *end == End::Frame);
        let ends = self.ends.iter().copied().filter(|end| is_new(end) && self.has(*end));
        let hour = !around.is_empty() && around.iter().all(|mark| mark.hour);
        let ends = worthy(ends.collect(), MOST.saturating_sub(around.len()));
        ends.into_iter().map(|end| Mark { end, hour }).collect()
    }

    /// What the client has set as a mark on its frame, for the API that it was written for.
    pub(super) fn client_mark(&self, api: Api, place: MarkPlace) -> Option<&str> {
        let is_here = |mark: &&ClientMark| mark.place == place && !matches!(place, MarkPlace::Block { .. });
        let mark = self.client_marks.iter().find(is_here).filter(|_| self.source() == Some(api))?;
        Some(&mark.json)
    }

    /// Whether there is a message before this end.
    fn has(&self, end: End) -> bool {
        match end {
            End::Frame => true,
            End::After(parts) => (1..=self.messages.len()).contains(&parts),
        }
    }

    /// The messages behind the first few as texts that stand between commas, with these marks.
    pub(super) fn units(&self, api: Api, from: usize, marks: &[Mark], left_out: &mut LeftOut) -> Vec<String> {
        let format = api.format();
        let mut units: Vec<String> = Vec::new();
        let mut at = from;
        while at < self.messages.len() {
            let together = format.together(&self.messages[at..]);
            let Unit { mut json, ends } = format.write(&self.messages, at, together, left_out);
            for mark in marks.iter().filter_map(|mark| mark.within(at, together)) {
                let end = ends.get(mark.0).copied().unwrap_or_default();
                json = marks::set(&json, end, mark.1).unwrap_or(json);
            }
            if units.is_empty() && !json.is_empty() {
                units.extend(format.opening(&self.messages[at]));
            }
            units.extend((!json.is_empty()).then_some(json));
            at += together;
        }
        units
    }
}

/// The message of a body that a message is, or that it stems from.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stem {
    message: usize,
    is_same: bool,
}

/// A mark of the client on a message that is sent.
struct Kept<'a> {
    /// Which of the messages that are sent.
    at: usize,
    block: usize,
    /// It is the last block of its message.
    is_end: bool,
    hour: bool,
    json: &'a str,
}

impl Mark {
    /// Which message, of so many from `at` on, it stands behind, and how it is written.
    fn within(&self, at: usize, count: usize) -> Option<(usize, &'static str)> {
        match self.end {
            End::After(parts) if (at + 1..=at + count).contains(&parts) => {
                Some((parts - 1 - at, self.json()))
            }
            _ => None,
        }
    }
}

/// The ends that are worth most, at most so many. The last holds the most, and the first is there
/// after every fold; then the later ones.
fn worthy(mut ends: Vec<End>, most: usize) -> Vec<End> {
    ends.sort_unstable();
    ends.dedup();
    let mut worth: Vec<End> = ends.iter().copied().rev().collect();
    if let Some(first) = ends.first().filter(|_| ends.len() > 1) {
        worth.pop();
        worth.insert(1, *first);
    }
    worth.truncate(most);
    worth
}

/// Whether these are the same messages, not only such that say the same.
fn same(one: &[Arc<Message>], other: &[Arc<Message>]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other))
}

/// How many blocks there are up to the end of each message.
fn ends_of(messages: &[Arc<Message>]) -> Vec<usize> {
    let mut sum = 0;
    let end = |message: &Arc<Message>| {
        sum += message.blocks().len();
        sum
    };
    messages.iter().map(end).collect()
}

/// A body under construction.
struct Writer<'a> {
    body: &'a Body,
    text: String,
    /// What is copied from the client's body next.
    pending: Option<Range<usize>>,
    /// The part of the client's body that was written last.
    last: Option<usize>,
    is_empty: bool,
}

impl<'a> Writer<'a> {
    fn new(body: &'a Body, around: usize) -> Self {
        let text = String::with_capacity(around + body.text.len() / 4);
        Self { body, text, pending: None, last: None, is_empty: true }
    }

    /// Appends a part of the client's body as it is, or a text of ours.
    fn push(&mut self, part: Option<&Part>, text: &str) {
        let Some(part) = part else { return self.push_changed(None, text) };
        match &mut self.pending {
            // With what stands between the two.
            Some(pending) if self.last == part.number.checked_sub(1) && self.last.is_some() => {
                pending.end = part.place.end
            }
            _ => {
                self.flush();
                self.gap(Some(part));
                self.pending = Some(part.place.clone());
            }
        }
        self.last = Some(part.number);
    }

    /// Appends a text in the place of a part of the client's body, or one of ours.
    fn push_changed(&mut self, part: Option<&Part>, text: &str) {
        if text.is_empty() {
            return;
        }
        self.flush();
        self.gap(part);
        self.text.push_str(text);
        self.last = part.map(|part| part.number);
    }

    /// What stands between the last element and the next: in the client's body, or as a rule there.
    fn gap(&mut self, next: Option<&Part>) {
        if !self.is_empty {
            let both = self.last.zip(next).filter(|(last, next)| last + 1 == next.number);
            self.text.push_str(both.map_or(self.body.gap(), |(_, next)| self.body.gap_before(next.number)));
        }
        self.is_empty = false;
    }

    fn flush(&mut self) {
        if let Some(place) = self.pending.take() {
            self.text.push_str(&self.body.text[place]);
        }
    }

    fn end(mut self, behind: &str) -> String {
        self.flush();
        self.text.push_str(behind);
        self.text
    }
}
