//! What a conversation is made of: [`Message`]s of [`Block`]s, as every provider's format
//! can be read into and written from. Says nothing about order, pairs or size: see
//! `log` (steps and turns), `bond` (what belongs together) and `meter` (tokens).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::conversation::json::{Extra, Json};
use crate::conversation::raw::Raw;
use crate::edits::voice::Voice;
use crate::size::usage::Usage;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions of the host; developer messages too.
    System,
    /// The person, or text the host puts in the person's place.
    User,
    /// The model.
    Assistant,
    /// Results of tool calls.
    Tool,
    /// A summary that stands for older messages.
    Summary,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 5] = [Self::System, Self::User, Self::Assistant, Self::Tool, Self::Summary];

    /// The name used in transcripts.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Summary => "summary",
        }
    }

    /// The role of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// Plain text.
    Text(Text),
    /// The model's reasoning.
    Thinking(Thinking),
    /// The model asks for a tool.
    ToolCall(ToolCall),
    /// What the tool said.
    ToolResult(ToolResult),
    /// A picture.
    Image(Image),
    /// Anything else, kept as it came.
    Opaque(Opaque),
}

impl Block {
    /// A text block.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(Text { text: text.into(), words: Words::All, extra: Extra::NONE })
    }

    /// Thinking without a signature.
    pub fn thinking(text: impl Into<Box<str>>) -> Self {
        Self::Thinking(Thinking { text: text.into(), seal: Seal::Open, extra: Extra::NONE })
    }

    /// A tool call that the host runs.
    pub fn call(id: impl Into<Box<str>>, name: impl Into<Box<str>>, arguments: Json) -> Self {
        Self::ToolCall(ToolCall {
            id: id.into(),
            name: name.into(),
            arguments,
            server: false,
            extra: Extra::NONE,
        })
    }

    /// A tool result of text alone.
    pub fn result(id: impl Into<Box<str>>, text: impl Into<Arc<str>>) -> Self {
        Self::ToolResult(ToolResult {
            id: id.into(),
            name: None,
            text: text.into(),
            content: None,
            is_error: false,
            extra: Extra::NONE,
        })
    }

    /// The block's unknown fields.
    pub fn extra(&self) -> &Extra {
        match self {
            Self::Text(b) => &b.extra,
            Self::Thinking(b) => &b.extra,
            Self::ToolCall(b) => &b.extra,
            Self::ToolResult(b) => &b.extra,
            Self::Image(b) => &b.extra,
            Self::Opaque(b) => &b.extra,
        }
    }

    /// Bytes of text that this block holds, pictures and sealed reasoning included.
    pub fn bytes(&self) -> usize {
        self.extra().bytes()
            + match self {
                Self::Text(b) => b.text.len(),
                Self::Thinking(b) => b.text.len() + b.seal.data().map_or(0, str::len),
                Self::ToolCall(b) => b.id.len() + b.name.len() + b.arguments.as_str().len(),
                Self::ToolResult(b) => {
                    let content = b.content.as_deref().unwrap_or_default();
                    b.id.len() + b.text.len() + content.iter().map(Block::bytes).sum::<usize>()
                }
                Self::Image(b) => b.source.as_str().len(),
                Self::Opaque(b) => b.value.as_str().len(),
            }
    }
}

/// Plain text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// The text.
    pub text: Arc<str>,
    /// Which part of it is the person's own, where it stands in the person's place.
    #[serde(default, skip_serializing_if = "Words::is_all")]
    pub words: Words,
    /// Unknown fields (citations, cache marks, …).
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// Which part of a text in the person's place is the person's own. The rest is the host's:
/// reminders, rules, the output of commands.
///
/// ```
/// use longhaul::conversation::{Text, Words};
/// use longhaul::Extra;
/// let text = "<system-reminder>Be brief.</system-reminder>\nWhy is it red?";
/// let words = Words::Part { start: 45, end: text.len() as u32 };
/// let text = Text { text: text.into(), words, extra: Extra::NONE };
/// assert_eq!(text.words(), "Why is it red?");
/// assert_eq!(text.of_host(), ["<system-reminder>Be brief.</system-reminder>\n", ""]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Words {
    /// All of it.
    #[default]
    All,
    /// Nothing.
    None,
    /// This run of bytes. One that is not inside the text, or cuts a character, is nothing.
    Part {
        /// The first byte.
        start: u32,
        /// Behind the last byte.
        end: u32,
    },
}

impl Text {
    /// The person's own words.
    pub fn words(&self) -> &str {
        match self.words {
            Words::All => &self.text,
            Words::None => "",
            Words::Part { start, end } => self.text.get(start as usize..end as usize).unwrap_or_default(),
        }
    }

    /// What the host wrote before the person's words, and behind them. Both together are all of
    /// the text if there are no words.
    pub fn of_host(&self) -> [&str; 2] {
        match self.words {
            Words::All => ["", ""],
            Words::Part { start, end } if !self.words().is_empty() => {
                [&self.text[..start as usize], &self.text[end as usize..]]
            }
            Words::None | Words::Part { .. } => [&self.text, ""],
        }
    }

    /// The block with a shorter text. Words that do not stand in it whole are nobody's there:
    /// what the host wrote never becomes the person's.
    pub(crate) fn shortened(&self, text: Arc<str>) -> Self {
        let words = match self.words {
            Words::Part { .. } => match text.find(self.words()) {
                Some(start) => Words::part(start, start + self.words().len()),
                None => Words::None,
            },
            words => words,
        };
        Self { text, words, extra: self.extra.clone() }
    }
}

impl Words {
    /// This run of bytes. A text of more than 4 GiB is nobody's word.
    pub fn part(start: usize, end: usize) -> Self {
        match (u32::try_from(start), u32::try_from(end)) {
            (Ok(start), Ok(end)) if start < end => Self::Part { start, end },
            _ => Self::None,
        }
    }

    fn is_all(&self) -> bool {
        *self == Self::All
    }
}

/// The model's reasoning, with the seal its provider put on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thinking {
    /// The readable part; empty when the provider hides it.
    pub text: Box<str>,
    /// What makes it valid when it is sent back.
    pub seal: Seal,
    /// Unknown fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// What a provider put on reasoning so that it takes it back. Sealed reasoning is never
/// altered: whole, or gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seal {
    /// None: plain text.
    Open,
    /// Signed text (Anthropic `thinking`).
    Signed(Box<str>),
    /// Hidden, with the provider's data if it was recorded (Anthropic `redacted_thinking`).
    Redacted(Option<Box<str>>),
    /// Encrypted (OpenAI Responses `reasoning`); bound to the item that follows it.
    Encrypted(Box<str>),
}

impl Seal {
    /// The provider's data.
    pub fn data(&self) -> Option<&str> {
        match self {
            Self::Open => None,
            Self::Signed(data) | Self::Encrypted(data) => Some(data),
            Self::Redacted(data) => data.as_deref(),
        }
    }

    /// True unless this is plain text.
    pub fn is_sealed(&self) -> bool {
        !matches!(self, Self::Open)
    }
}

/// The model asks for a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Names the call; its result repeats it.
    pub id: Box<str>,
    /// The tool.
    pub name: Box<str>,
    /// A JSON object as the model wrote it; any other JSON if the model wrote that.
    pub arguments: Json,
    /// The provider runs this tool itself: the host owes no result.
    #[serde(default, skip_serializing_if = "is_false")]
    pub server: bool,
    /// Unknown fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// What a tool said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call this answers.
    pub id: Box<str>,
    /// The tool's name, where the format has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Box<str>>,
    /// All of its text.
    pub text: Arc<str>,
    /// Its blocks, when there is more than text (pictures, documents).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Box<[Block]>>,
    /// The tool failed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_error: bool,
    /// Unknown fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Where it is or what it is (data, URL, file id), as the format wrote it.
    pub source: Json,
    /// Width and height in pixels, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<(u32, u32)>,
    /// Unknown fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// A block of a kind that nobody here knows, kept as it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opaque {
    /// The block.
    pub value: Json,
    /// Unknown fields beside it.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// A moment, in microseconds since 1970 UTC. The engine has no clock: it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub i64);

impl fmt::Display for Time {
    /// To the minute, in UTC: `2026-03-02 10:00`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minutes = self.0.div_euclid(60_000_000);
        let (days, minute) = (minutes.div_euclid(1_440), minutes.rem_euclid(1_440));
        // Days since 1 March of year 0, in eras of 400 years.
        let days = days + 719_468;
        let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = year + era * 400 + i64::from(month <= 2);
        write!(f, "{year:04}-{month:02}-{day:02} {:02}:{:02}", minute / 60, minute % 60)
    }
}

/// Serde leaves out what is false.
fn is_false(value: &bool) -> bool {
    !value
}

/// One message. Immutable once made: each `with_…` call gives a changed message that has
/// forgotten its raw text, so what is written from raw is what came in.
///
/// ```
/// use longhaul::{Block, Json, Message, Role};
/// let ask = Message::new(Role::Assistant, vec![
///     Block::text("I look at the file first."),
///     Block::call("c1", "Read", Json::new(r#"{"path":"src/lib.rs"}"#).unwrap()),
/// ]);
/// assert_eq!(ask.calls().next().unwrap().name.as_ref(), "Read");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    role: Role,
    #[serde(default, skip_serializing_if = "is_false")]
    attachment: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    compaction: Option<RecordedCompaction>,
    blocks: Box<[Block]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Box<Usage>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time: Option<Time>,
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    extra: Extra,
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    wire_fields: Extra,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw: Option<Box<Raw>>,
    #[serde(skip)]
    pub(crate) voice: Option<Voice>,
}

/// The wire field in which a decoder names the API that it read a message from.
pub const API_FIELD: &str = "api";

/// What a line of a recorded agent's own compaction is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Eq, Hash)]
#[serde(rename_all = "snake_case")]
pub enum RecordedCompaction {
    /// The mark where it compacted.
    Boundary,
    /// The summary that it went on with.
    Summary,
}

impl Message {
    /// A message of these blocks.
    pub fn new(role: Role, blocks: Vec<Block>) -> Self {
        Self {
            role,
            attachment: false,
            compaction: None,
            blocks: blocks.into(),
            usage: None,
            model: None,
            time: None,
            extra: Extra::NONE,
            wire_fields: Extra::NONE,
            raw: None,
            voice: None,
        }
    }

    /// A user message of one text.
    pub fn user(text: impl Into<Arc<str>>) -> Self {
        Self::new(Role::User, vec![Block::text(text)])
    }

    /// A system message of one text.
    pub fn system(text: impl Into<Arc<str>>) -> Self {
        Self::new(Role::System, vec![Block::text(text)])
    }

    /// An assistant message of one text.
    pub fn assistant(text: impl Into<Arc<str>>) -> Self {
        Self::new(Role::Assistant, vec![Block::text(text)])
    }

    /// A tool message with one result of text.
    pub fn result(id: impl Into<Box<str>>, text: impl Into<Arc<str>>) -> Self {
        Self::new(Role::Tool, vec![Block::result(id, text)])
    }

    /// A message like this one, but for its role and blocks. Copies no text of this one.
    pub(crate) fn clone_with(&self, role: Role, blocks: Vec<Block>) -> Self {
        Self {
            role,
            attachment: self.attachment,
            compaction: self.compaction,
            blocks: blocks.into(),
            usage: self.usage.clone(),
            model: self.model.clone(),
            time: self.time,
            extra: self.extra.clone(),
            wire_fields: self.wire_fields.clone(),
            raw: None,
            voice: self.voice,
        }
    }

    /// With other blocks.
    pub fn with_blocks(self, blocks: Vec<Block>) -> Self {
        Self { blocks: blocks.into(), raw: None, ..self }
    }

    /// With another role.
    pub fn with_role(self, role: Role) -> Self {
        Self { role, raw: None, ..self }
    }

    /// With what the provider billed for the call that gave this message.
    pub fn with_usage(self, usage: Usage) -> Self {
        Self { usage: Some(Box::new(usage)), raw: None, ..self }
    }

    /// With what the provider billed for it, beside what it came as: for a reply of an API, whose own form says
    /// nothing of it.
    pub fn with_bill(self, usage: Usage) -> Self {
        Self { usage: Some(Box::new(usage)), ..self }
    }

    /// With the model that wrote it.
    pub fn with_model(self, model: impl Into<Box<str>>) -> Self {
        Self { model: Some(model.into()), raw: None, ..self }
    }

    /// With the moment it was written.
    pub fn with_time(self, time: Time) -> Self {
        Self { time: Some(time), raw: None, ..self }
    }

    /// With unknown fields.
    pub fn with_extra(self, extra: Extra) -> Self {
        Self { extra, raw: None, ..self }
    }

    /// As text that the host put in the person's place. Said by hosts and by readers of
    /// recorded sessions; no field of a client's message says it.
    pub fn with_attachment(self) -> Self {
        Self { attachment: true, raw: None, ..self }
    }

    /// As a line of a recorded agent's own compaction. For readers of recorded sessions.
    pub fn with_recorded_compaction(self, compaction: RecordedCompaction) -> Self {
        Self { compaction: Some(compaction), raw: None, ..self }
    }

    /// With what the reader of a format keeps for its writer (the API it came from, the `extra`
    /// of a transcript line). No API is sent it. For decoders.
    pub fn with_wire_fields(self, wire_fields: Extra) -> Self {
        Self { wire_fields, raw: None, ..self }
    }

    /// With the text it was read from. For decoders, as the last step.
    pub fn with_raw(self, raw: Raw) -> Self {
        Self { raw: Some(Box::new(raw)), ..self }
    }

    /// Without the text it was read from.
    pub fn without_raw(self) -> Self {
        Self { raw: None, ..self }
    }

    /// Who speaks.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Its parts.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// What the provider billed for the call that gave this message.
    pub fn usage(&self) -> Option<&Usage> {
        self.usage.as_deref()
    }

    /// The model that wrote it.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// When it was written.
    pub fn time(&self) -> Option<Time> {
        self.time
    }

    /// Fields nobody here knows.
    pub fn extra(&self) -> &Extra {
        &self.extra
    }

    /// What the reader of its format keeps for the writer.
    pub fn wire_fields(&self) -> &Extra {
        &self.wire_fields
    }

    /// True if it was read from a request of an API: a client wrote it so.
    pub fn is_from_api(&self) -> bool {
        self.wire_fields.is_set(API_FIELD)
    }

    /// True for a system message of an API without content: its fields set something for the turn.
    pub fn is_turn_control(&self) -> bool {
        self.role == Role::System && self.blocks.is_empty() && self.is_from_api()
    }

    /// The text it was read from, if that was `format`.
    pub fn raw(&self, format: &str) -> Option<Cow<'_, str>> {
        self.raw.as_ref().filter(|raw| raw.format() == format).map(|raw| raw.text(&self.blocks))
    }

    /// The format of the text it was read from, if nobody has touched it.
    pub fn raw_format(&self) -> Option<&str> {
        self.raw.as_deref().map(Raw::format)
    }

    /// The texts of its text blocks, whoever wrote them.
    ///
    /// ```
    /// use longhaul::{Block, Message, Role};
    /// let message = Message::new(Role::User, vec![Block::text("a"), Block::result("c", "x"), Block::text("b")]);
    /// assert!(message.texts().eq(["a", "b"]));
    /// ```
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(&*text.text),
            _ => None,
        })
    }

    /// What a person says in it, text by text: nothing blank, nothing that a host or a model
    /// wrote.
    ///
    /// ```
    /// use longhaul::conversation::{Text, Words};
    /// use longhaul::{Block, Extra, Message, Role};
    /// let loaded = Text { text: "Tool loaded.".into(), words: Words::None, extra: Extra::NONE };
    /// let message = Message::new(Role::User, vec![Block::Text(loaded), Block::text("Go on.")]);
    /// assert!(message.words().eq(["Go on."]));
    /// assert_eq!(message.with_attachment().words().next(), None);
    /// ```
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let of_person = self.role == Role::User && !self.attachment;
        let texts = self.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.words()),
            _ => None,
        });
        texts.filter(move |words| of_person && !words.trim_start().is_empty())
    }

    /// Its tool calls.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.blocks.iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Its tool results.
    pub fn results(&self) -> impl Iterator<Item = &ToolResult> {
        self.blocks.iter().filter_map(|block| match block {
            Block::ToolResult(result) => Some(result),
            _ => None,
        })
    }

    /// All of it is the host's, in the person's place (reminders, attached files). It does not
    /// begin a turn.
    pub fn is_attachment(&self) -> bool {
        self.attachment
    }

    /// What it is of a recorded agent's own compaction, if it belongs to one.
    pub fn recorded_compaction(&self) -> Option<RecordedCompaction> {
        self.compaction
    }

    /// A line of a recorded agent's own compaction, which a replay leaves out.
    pub fn is_recorded_compaction(&self) -> bool {
        self.compaction.is_some()
    }

    /// Bytes of its text, without the raw form.
    pub fn bytes(&self) -> usize {
        let blocks = self.blocks.iter().map(Block::bytes).sum::<usize>();
        self.extra.bytes() + self.wire_fields.bytes() + blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_message_forgets_its_raw_text() {
        let raw = Raw::new("longhaul", "{}", &[], &[]);
        let message = Message::user("hi").with_raw(raw);
        assert_eq!(message.raw("longhaul").as_deref(), Some("{}"));
        assert_eq!(message.raw("anthropic"), None);
        assert_eq!(message.with_model("m").raw("longhaul"), None);
    }

    #[test]
    fn a_part_that_is_not_in_the_text_is_nobodys() {
        let text = |words| Text { text: "aé b".into(), words, extra: Extra::NONE };
        for (start, end, said) in
            [(0, 3, "aé"), (4, 5, "b"), (0, 2, ""), (3, 9, ""), (4, 3, ""), (0, u32::MAX, "")]
        {
            let text = text(Words::Part { start, end });
            assert_eq!(text.words(), said);
            let [before, behind] = text.of_host();
            assert_eq!(before.len() + said.len() + behind.len(), text.text.len());
        }
        // Words that were cut are nobody's; those that stand are found again.
        let text = text(Words::Part { start: 4, end: 5 });
        assert_eq!(text.shortened("… b".into()).words(), "b");
        assert_eq!(text.shortened("aé …".into()).words(), "");
    }

    #[test]
    fn a_text_of_an_older_journal_is_the_persons() {
        let old: Text = serde_json::from_str(r#"{"text":"hi"}"#).unwrap();
        assert_eq!(old.words(), "hi");
        assert_eq!(serde_json::to_string(&old).unwrap(), r#"{"text":"hi"}"#);
        let part = Text { words: Words::part(0, 1), ..old };
        let json = serde_json::to_string(&part).unwrap();
        assert_eq!(json, r#"{"text":"hi","words":{"part":{"start":0,"end":1}}}"#);
        assert_eq!(serde_json::from_str::<Text>(&json).unwrap(), part);
    }

    #[test]
    fn blocks_stay_small() {
        // A session of 100,000 messages is mostly blocks: a careless field shows here.
        assert!(size_of::<Block>() <= 96, "{}", size_of::<Block>());
        assert!(size_of::<Message>() <= 112, "{}", size_of::<Message>());
    }
}
