//! The journal: everything that ever happened to a session, in order and append-only. All state
//! of a session is a fold of it: saving appends what is new, loading replays it, a fork replays a
//! prefix. Entries are written with serde; their form has a version, and a journal of an older
//! version gives the same bytes for ever.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::conversation::fact::Fact;
use crate::conversation::frame::Frame;
use crate::conversation::log::Position;
use crate::conversation::message::{Message, Time};
use crate::edits::archive::Handle;
use crate::edits::edit::{Edit, EditId, EditText, Why};
use crate::edits::unbound::Unbound;
use crate::edits::voice::Voice;
use crate::policy::task::Task;
use crate::size::calibration::Calibration;
use crate::size::meter::Measure;
use crate::size::models::Model;
use crate::size::tokens::Tokens;
use crate::size::usage::{Billed, Charged};
use crate::summary::SummaryPaid;
use crate::summary::job::Question;
use crate::view::keep::Kept;
use crate::view::prefix::Prefix;

use super::LoadError;

/// The version of the form that entries are written in. With a new kind of entry it goes up, for
/// journals that begin then; an engine that meets a kind it does not know names the entry.
pub const VERSION: u32 = 6;

/// Something that happened to a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Entry {
    /// The session began. The first entry of every journal.
    Began {
        /// The version of the form that the entries behind this one are written in.
        version: u32,
        /// The model that is talked to.
        model: Arc<Model>,
    },
    /// Another way to count than the model's own.
    Counted(Counting),
    /// What the request itself allows.
    Limited(Allowed),
    /// A message came.
    Message(Arc<Message>),
    /// The host said something beside the messages.
    Fact(Arc<Fact>),
    /// The prompt that the frame makes changed: model, system prompt, tools, or a setting that is part
    /// of it.
    Frame(Arc<Frame>),
    /// The prompt is the same, and its requests ask for another longest answer; `None` if they name none.
    MaxOutput(Option<Tokens>),
    /// An edit was made.
    Edit(Arc<Edit>),
    /// An edit was taken back.
    Undo {
        /// Which.
        edit: EditId,
        /// A person undid it: only the hard limit may make such an edit again.
        held: bool,
    },
    /// An edit was made again.
    Redo {
        /// Which.
        edit: EditId,
    },
    /// What the profile tells the model was put before the history, or taken away.
    NoteShown {
        /// Its text; `None` if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<Arc<str>>,
        /// In whose place it stands.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        voice: Option<Voice>,
    },
    /// Rules were put before the history, in the place of those that stood there.
    RulesShown {
        /// Their text; empty if none is in force any longer.
        text: Arc<str>,
        /// In whose place they stand.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        voice: Option<Voice>,
    },
    /// A note of the host was put behind the newest message, where it stays.
    HostNote {
        /// What is sent.
        text: Arc<str>,
        /// The items of the keep set that it states.
        kept: Vec<Kept>,
        /// In whose place it stands.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        voice: Option<Voice>,
    },
    /// The provider refused texts of ours in another voice: all of them, those that stand too, have this one from here on.
    Voiced(Voice),
    /// Signed thinking no longer follows the prefix that produced it.
    Unbound(Arc<Unbound>),
    /// A request was sent.
    Sent(SentRequest),
    /// The host reads what answers it is given are signed with, and reports each: an answer that was not reported was
    /// given to another request than ours.
    ReadsSignatures,
    /// The provider signed thinking in its answer to a request, as the host has read it.
    Signed(Signed),
    /// Calls that waited for results got placeholders, for good: the hard limit left no room for what
    /// stands behind them.
    StepClosed,
    /// The same request was sent again.
    SentAgain {
        /// Which.
        ticket: Ticket,
        /// When.
        time: Time,
    },
    /// The provider reported the size of a prompt.
    Usage {
        /// The request it reported on.
        ticket: Ticket,
        /// What it said.
        prompt: Tokens,
        /// What it billed for it. A journal of an older engine does not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        charged: Option<Charged>,
    },
    /// The meter was taught from outside: the prompt grew by so much when this was added.
    Taught {
        /// What was added.
        added: Measure,
        /// By how much the prompt grew.
        growth: i64,
    },
    /// What the provider's cache returned for another request that extended the one before, of a recording.
    CacheTaught {
        /// What it should have returned.
        expected: Tokens,
        /// What it returned.
        returned: Tokens,
        /// The time between both requests, in seconds.
        pause_s: Option<u64>,
    },
    /// The provider refused a request as too long.
    Refused {
        /// Which; none if it was not prepared here.
        ticket: Option<Ticket>,
        /// What the request counted here.
        size: Tokens,
        /// The window that the provider named.
        window: Option<Tokens>,
        /// What the request allowed its answer, where the provider counted it with the prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Tokens>,
    },
    /// A person was told that the window leaves little room for the next steps: once is enough.
    CrampedReported,
    /// The provider counts the answer that a request allows with its prompt, as another conversation has shown.
    AnswerCounts {
        /// The window in which it wants both.
        window: Tokens,
    },
    /// A person or the model asked for a compaction.
    Asked {
        /// What it is to be about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        focus: Option<Box<str>>,
        /// The model asked, by its mark.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_model: bool,
    },
    /// A compaction began.
    CompactionBegan(Compaction),
    /// A compaction ended.
    CompactionEnded {
        /// The size of the view then.
        after: Tokens,
        /// The trigger, if the breaker counts this compaction.
        trigger: Option<Tokens>,
    },
    /// A summary was asked for.
    JobOpened(Arc<Question>),
    /// A provider billed a call for the summary that was asked for.
    SummaryPaid {
        /// The job.
        job: u64,
        /// What was billed.
        paid: SummaryPaid,
    },
    /// A summary came, or will not come.
    JobEnded {
        /// Which.
        job: u64,
        /// How.
        how: JobEnd,
    },
    /// Another model goes on.
    Switched {
        /// The model.
        model: Arc<Model>,
        /// Who sees to it that no model is sent reasoning that only another can read.
        seals: Seals,
    },
    /// The host says what kind of work this is.
    Task(Task),
    /// How the model gets back what was taken out.
    RecallBy(RecallBy),
    /// Nobody is there to answer, or somebody is again.
    Unattended(bool),
    /// The session went its own way from here: what stands before is shared with another.
    Forked {
        /// How many messages both share.
        end: Position,
        /// Answers that the other one has since, and that may come here too.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        signed: Vec<Signed>,
    },
}

impl Entry {
    /// The entry without the text of its edit, and that text under its handle: for a store that keeps
    /// texts once, and gives them back by [`Archive::get`](crate::edits::Archive::get) when they are
    /// shown. `None` for an entry without a text of more than 256 bytes.
    pub fn apart(&self) -> Option<(Self, Handle, Arc<str>)> {
        /// A handle has its price too.
        const LONG: usize = 256;
        let Self::Edit(edit) = self else { return None };
        let Some(EditText::Here(text)) = edit.kind.text().filter(|text| text.len() > LONG) else {
            return None;
        };
        let (handle, mut edit) = (Handle::of(text), (**edit).clone());
        *edit.kind.text_mut()? = EditText::Apart { apart: handle };
        Some((Self::Edit(Arc::new(edit)), handle, text.clone()))
    }
}

impl Entry {
    /// What is left of the entry where nothing that anybody said may be kept: what happened, where, why, and what
    /// it counted and cost. No session can be loaded from such entries.
    ///
    /// ```
    /// use longhaul::{Entry, Message};
    /// let entry = Entry::Message(Message::user("a secret").into()).without_content();
    /// assert_eq!(serde_json::to_string(&entry).unwrap(), r#"{"message":{"role":"user","blocks":[]}}"#);
    /// ```
    pub fn without_content(&self) -> Self {
        match self {
            Self::Message(message) => Self::Message(Arc::new(Message::new(message.role(), Vec::new()))),
            Self::Fact(fact) => {
                let text = fact.text.as_ref().map(|_| "".into());
                Self::Fact(Arc::new(Fact { kind: fact.kind, key: "".into(), text }))
            }
            Self::Frame(frame) => {
                Self::Frame(Arc::new(Frame { model: frame.model.clone(), ..Frame::default() }))
            }
            Self::Edit(edit) => {
                let mut edit = (**edit).clone();
                edit.kind = edit.kind.without_content();
                Self::Edit(Arc::new(edit))
            }
            Self::NoteShown { text, voice } => {
                Self::NoteShown { text: text.as_ref().map(|_| "".into()), voice: *voice }
            }
            Self::RulesShown { voice, .. } => Self::RulesShown { text: "".into(), voice: *voice },
            Self::Asked { by_model, .. } => Self::Asked { focus: None, by_model: *by_model },
            Self::JobOpened(question) => {
                Self::JobOpened(Arc::new(Question { focus: None, problem: None, ..(**question).clone() }))
            }
            Self::RecallBy(_) => Self::RecallBy(RecallBy::Unsaid),
            Self::HostNote { voice, .. } => {
                Self::HostNote { text: "".into(), kept: Vec::new(), voice: *voice }
            }
            Self::Unbound(unbound) => Self::Unbound(Arc::new(unbound.without_content())),
            // A new kind of entry is looked at here before it is kept.
            Self::Began { .. }
            | Self::Counted(_)
            | Self::Limited(_)
            | Self::MaxOutput(_)
            | Self::Undo { .. }
            | Self::Redo { .. }
            | Self::Voiced(_)
            | Self::Sent(_)
            | Self::ReadsSignatures
            | Self::Signed(_)
            | Self::StepClosed
            | Self::SentAgain { .. }
            | Self::Usage { .. }
            | Self::Taught { .. }
            | Self::CacheTaught { .. }
            | Self::Refused { .. }
            | Self::AnswerCounts { .. }
            | Self::CrampedReported
            | Self::CompactionBegan(_)
            | Self::CompactionEnded { .. }
            | Self::SummaryPaid { .. }
            | Self::JobEnded { .. }
            | Self::Switched { .. }
            | Self::Task(_)
            | Self::Unattended(_)
            | Self::Forked { .. } => self.clone(),
        }
    }
}

/// The entries of a journal that was written line by line, or why it cannot be read.
///
/// ```
/// use longhaul::session::journal::read;
/// assert_eq!(read(["{}"]).unwrap_err().to_string(), "the journal does not begin with its first entry");
/// ```
pub fn read<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<Vec<Entry>, LoadError> {
    #[derive(Deserialize)]
    struct First {
        began: Version,
    }
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let mut entries = Vec::new();
    for (at, line) in lines.into_iter().enumerate() {
        // A later version may have kinds of entries that nobody here knows: that is said first.
        let first = if at == 0 { serde_json::from_str::<First>(line).ok() } else { None };
        match (at, first) {
            (0, None) => return Err(LoadError::NoBeginning),
            (0, Some(first)) if first.began.version > VERSION => {
                return Err(LoadError::Version(first.began.version));
            }
            _ => {}
        }
        let entry = serde_json::from_str(line);
        entries.push(entry.map_err(|error| LoadError::Line { at, problem: error.to_string() })?);
    }
    Ok(entries)
}

/// The number of a request, from 1. The same request sent again keeps it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ticket(pub u64);

/// A request that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentRequest {
    /// Names it.
    pub ticket: Ticket,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// Its size as it was counted.
    pub size: Measure,
    /// Its size in tokens, as far as was known then.
    pub prompt: Tokens,
    /// What was in common with the request before, and what was not.
    pub billed: Billed,
    /// It did not extend the request before.
    pub broke: bool,
    /// The provider had forgotten the request before by then.
    pub cold: bool,
    /// Calls waited for results: they got placeholders, which stay.
    pub closed: bool,
    /// Its prompt was past the warning of the budget.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub large: bool,
    /// Tokens of it that a fold would have taken.
    #[serde(default, skip_serializing_if = "is_none")]
    pub excess: Tokens,
    /// What the whole conversation would have been; none in journals that do not say.
    #[serde(default, skip_serializing_if = "is_none")]
    pub whole: Tokens,
    /// Names system prompt, tools and messages, where thinking is signed: a model may bind it to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Prefix>,
    /// The handle of the last signature in it, if thinking is signed and some is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Handle>,
}

fn is_none(tokens: &Tokens) -> bool {
    *tokens == Tokens::ZERO
}

/// How a session counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counting {
    /// Bytes, the same for every model.
    Neutral,
    /// As the model counts, from what was learnt of it before.
    Model(Calibration),
}

/// Thinking that a provider has signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    /// The prefix of the request that it answers.
    pub prefix: Prefix,
    /// The handle of the last signature in that request, if it had any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Handle>,
    /// The handle of each signature.
    pub seals: Vec<Handle>,
}

/// What a request allows; what is not said is the model's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Allowed {
    /// All that fits: prompt and answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Tokens>,
    /// The longest answer that the request asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output: Option<Tokens>,
    /// How long the provider is asked to remember a prefix, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_lifetime_s: Option<u64>,
}

/// A compaction on its way: it may wait for summaries, and goes on where it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compaction {
    /// Why it was begun.
    pub why: Why,
    /// What it works to.
    pub target: Tokens,
    /// The size before.
    pub before: Tokens,
    /// A full summary is due, and nothing else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
    /// The figures behind [`Why::PaysBack`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pays_back: Option<PaysBack>,
}

/// Why a fold was expected to pay back, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaysBack {
    /// What the fold would have taken out of each request since the last fold, added up: read for nothing.
    pub carried: Tokens,
    /// What the fold takes out of this request and each behind it, as expected.
    pub takes: Tokens,
    /// What the provider bills again because of it, as expected.
    pub rewrites: Tokens,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobEnd {
    /// The summary was taken.
    Folded,
    /// The answer was no use: it is asked for again.
    Again,
    /// The extractor wrote the summary instead.
    Extracted,
    /// What it was for was cut without a summary.
    Cut,
    /// There is no summary, and the history is kept.
    Kept,
    /// There is no summary, and the next strategy is tried.
    Skipped,
    /// The question no longer stood.
    Dropped,
    /// The summary was written and the guard refused the fold.
    Refused,
}

/// Who sees to it that no model is sent reasoning that only another model can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seals {
    /// The engine: sealed reasoning of other models is left out, and comes back with its model.
    #[default]
    Engine,
    /// The client behind the host: the engine leaves them alone.
    Client,
}

/// How the model gets back what was taken out: what stands behind `recall HANDLE` in summaries.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecallBy {
    /// Nothing is said: a tool's description, or the system prompt, says it.
    #[default]
    Unsaid,
    /// By the tool of this name.
    Tool(Box<str>),
    /// By this command in a shell, in front of the handle.
    Command(Box<str>),
}

impl RecallBy {
    /// What a mark says of a handle.
    pub(crate) fn says(&self, handle: &str) -> String {
        match self {
            Self::Unsaid => format!("recall {handle}"),
            Self::Tool(tool) => format!("recall {handle} with the tool {tool}"),
            Self::Command(command) => format!("recall {handle} by running `{command} {handle}`"),
        }
    }
}

/// A place in a journal: the number of entries before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(pub usize);

/// All entries of a session. A clone shares them: nothing that was written is copied.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    /// Entries in full chunks, which never change again.
    chunks: Vec<Arc<[Entry]>>,
    /// The newest entries: fewer than a chunk.
    newest: Vec<Entry>,
    /// Where each message of the log stands among the entries.
    messages: Vec<u32>,
}

/// Entries of a chunk.
const CHUNK: usize = 256;

impl Journal {
    /// How many entries there are.
    pub fn end(&self) -> Cursor {
        Cursor(self.chunks.len() * CHUNK + self.newest.len())
    }

    /// The entry at a place.
    pub fn get(&self, at: Cursor) -> Option<&Entry> {
        match self.chunks.get(at.0 / CHUNK) {
            Some(chunk) => chunk.get(at.0 % CHUNK),
            None => self.newest.get(at.0 - self.chunks.len() * CHUNK),
        }
    }

    /// The entries from a place on.
    pub fn since(&self, cursor: Cursor) -> impl Iterator<Item = &Entry> + Clone {
        let whole = (cursor.0 / CHUNK).min(self.chunks.len());
        let skip = cursor.0.saturating_sub(whole * CHUNK);
        let chunks = self.chunks[whole..].iter().flat_map(|chunk| chunk.iter());
        chunks.chain(&self.newest).skip(skip)
    }

    /// The place before a message of the log came; the end, if it has not come.
    pub fn before(&self, message: Position) -> Cursor {
        self.messages.get(message.index()).map_or(self.end(), |at| Cursor(*at as usize))
    }

    pub(super) fn append(&mut self, entry: Entry) {
        if let Entry::Message(_) = entry {
            // A journal of 2³² entries does not fit into memory.
            self.messages.push(u32::try_from(self.end().0).unwrap_or(u32::MAX));
        }
        self.newest.push(entry);
        if self.newest.len() == CHUNK {
            self.chunks.push(std::mem::take(&mut self.newest).into());
        }
    }

    /// The journal of the entries before a place. Full chunks are shared.
    pub(super) fn prefix(&self, end: Cursor) -> Self {
        let whole = (end.0 / CHUNK).min(self.chunks.len());
        let messages = self.messages.partition_point(|at| (*at as usize) < end.0);
        let mut prefix = Self {
            chunks: self.chunks[..whole].to_vec(),
            newest: Vec::new(),
            messages: self.messages[..messages].to_vec(),
        };
        prefix.newest.extend(self.since(Cursor(whole * CHUNK)).take(end.0 - whole * CHUNK).cloned());
        prefix
    }
}
