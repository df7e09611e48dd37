//! One call: the request as it was sent, part by part, what is new in it, what is gone from it, and the answer.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use longhaul::{Cursor, EditId, Frame, Json, Message, Part, Position, Role, Session, Source, Tool};
use longhaul_store::Meta;
use longhaul_wire::api::{Api, Request};
use serde::Serialize;

use crate::api::time;
use crate::category::{Category, scaled, tool_of};
use crate::cost::Bill;
use crate::error::Refused;
use crate::history::{CallRow, History};
use crate::parts::{self, PartRow, runs};
use crate::text::{self, BlockRow, HEAD, WHOLE};

/// So many parts of a request before are told of that are gone.
const REMOVED: usize = 500;
/// So many messages that a part stands for are sent with it.
const ORIGINALS: usize = 500;

/// A request as it was sent.
#[derive(Debug, Serialize)]
pub struct CallAnswer {
    /// The session.
    pub session: String,
    /// Its title.
    pub title: String,
    /// The API that the session came over, if that is known.
    pub api: Option<&'static str>,
    /// Its number.
    pub call: usize,
    /// How many calls the session has.
    pub calls: usize,
    /// When.
    pub at: Option<String>,
    /// Messages of the log before it.
    pub upto: u32,
    /// Tokens that were sent.
    pub view: u64,
    /// Tokens of the whole log.
    pub full: u64,
    /// Tokens that fit.
    pub window: u64,
    /// What it was billed.
    #[serde(flatten)]
    pub bill: Bill,
    /// In dollars.
    pub usd: Option<f64>,
    /// Whether the provider said so; else it is expected.
    pub billed: bool,
    /// It did not extend the request before.
    pub broke: bool,
    /// Why something was compacted before it.
    pub why: Option<&'static str>,
    /// What stands before the messages.
    pub frame: FrameView,
    /// The messages that were sent, the tail last.
    pub parts: Vec<PartView>,
    /// What the whole log has and the request has not.
    pub gone: Vec<Gone>,
    /// Against the call before.
    pub since: Since,
    /// What the model answered.
    pub answer: Option<Answered>,
}

/// System prompt and tools.
#[derive(Debug, Serialize)]
pub struct FrameView {
    /// Their size.
    pub tokens: u64,
    /// The provider had them in its cache.
    pub warm: bool,
    /// Another frame than that of the call before.
    pub new: bool,
    /// The model, as the provider knows it.
    pub model: Option<String>,
    /// The system prompt.
    pub system: String,
    /// The tools on offer.
    pub tools: Vec<ToolRow>,
}

/// A tool on offer.
#[derive(Debug, Serialize)]
pub struct ToolRow {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its definition, as the provider is told it.
    pub schema: Json,
}

/// A part of a request.
#[derive(Debug, Serialize)]
pub struct PartView {
    /// Its number.
    pub k: usize,
    /// Where it comes from, and what made it what it is.
    #[serde(flatten)]
    pub row: PartRow,
    /// What most of it is.
    pub category: &'static str,
    /// The tool that is called, or whose result it is.
    pub tool: Option<String>,
    /// It was not in the call before.
    pub new: bool,
    /// The beginning of its text.
    pub head: String,
    /// The length of its text, as a browser counts.
    pub chars: usize,
    /// Its blocks.
    pub blocks: Vec<BlockRow>,
}

/// Something that the whole log has and the request has not.
#[derive(Debug, Serialize)]
pub struct Gone {
    /// The edit that took it.
    pub edit: u32,
    /// What the edit does, in words.
    pub kind: &'static str,
    /// From which messages: first, and one past the last.
    pub messages: Vec<(u32, u32)>,
    /// How much.
    pub tokens: u64,
}

/// What differs from the call before.
#[derive(Debug, Default, Serialize)]
pub struct Since {
    /// Parts that are new.
    pub added: Vec<usize>,
    /// Parts that are gone.
    pub removed: Vec<Removed>,
    /// Parts that stand where another text of the same messages stood.
    pub changed: Vec<usize>,
}

/// A part of the call before that is gone.
#[derive(Debug, Serialize)]
pub struct Removed {
    /// The messages that it was, or stood for.
    pub messages: Vec<(u32, u32)>,
    /// The beginning of its text.
    pub was: String,
    /// Its size.
    pub tokens: u64,
}

/// The answer to a call.
#[derive(Debug, Serialize)]
pub struct Answered {
    /// The messages of the log.
    pub messages: Vec<u32>,
    /// The beginning of their text.
    pub text: String,
    /// The length of their text, as a browser counts.
    pub chars: usize,
    /// Their blocks.
    pub blocks: Vec<BlockRow>,
}

/// A part whole, and what it stands for.
#[derive(Debug, Serialize)]
pub struct PartAnswer {
    /// Its number.
    pub k: usize,
    /// Its text.
    pub text: String,
    /// The length of its text, as a browser counts.
    pub chars: usize,
    /// The text is longer than what is sent here.
    pub cut: bool,
    /// Its blocks, with their texts.
    pub blocks: Vec<BlockRow>,
    /// What it stands for; null if nothing was done to it.
    pub original: Option<PartOriginal>,
    /// By which its originals are recalled.
    pub recall: Vec<String>,
}

/// What a part stands for.
#[derive(Debug, Serialize)]
pub struct PartOriginal {
    /// The messages as they came.
    pub messages: Vec<OriginalMessage>,
    /// How many there are; the list may hold fewer.
    pub count: usize,
    /// Their size.
    pub tokens: u64,
    /// Some text, or some message, is left out.
    pub cut: bool,
}

/// A message as it came.
#[derive(Debug, Serialize)]
pub struct OriginalMessage {
    /// Its number.
    pub at: u32,
    /// Who speaks.
    pub role: &'static str,
    /// What it says.
    pub text: String,
}

/// A call, with the session as it was when it and the one before were sent.
pub(crate) struct Sent<'a> {
    history: &'a History,
    number: usize,
    row: &'a CallRow,
    then: Session,
    before: Option<Session>,
    /// So many bytes of text go with the blocks of each part.
    texts: Option<usize>,
}

impl<'a> Sent<'a> {
    pub(crate) fn of(history: &'a History, number: usize) -> Result<Self, Refused> {
        let row = history.call(number)?;
        let before = match number.checked_sub(2) {
            Some(at) => Some(history.session.as_of(history.trace.calls[at].end)?),
            None => None,
        };
        let then = match &before {
            // What was shown before is not made anew.
            Some(before) => {
                let (mut then, from) = (before.clone(), before.cursor());
                let new = history.session.since(from).take(row.end.0 - from.0).cloned();
                then.retrace_on(new, |_, _| {})?;
                then
            }
            None => history.session.as_of(row.end)?,
        };
        Ok(Self { history, number, row, then, before, texts: None })
    }

    /// All calls, in their order, with the texts of their blocks. Each goes on from the one before.
    pub(crate) fn all(history: &'a History) -> impl Iterator<Item = Result<Self, Refused>> {
        let mut before: Option<Session> = None;
        (1..).zip(&history.trace.calls).map(move |(number, row)| {
            let mut then = match &before {
                Some(before) => before.clone(),
                None => history.session.as_of(Cursor(1))?,
            };
            let from = then.cursor();
            then.retrace_on(history.session.since(from).take(row.end.0 - from.0).cloned(), |_, _| {})?;
            let before = before.replace(then.clone());
            Ok(Self { history, number, row, then, before, texts: Some(usize::MAX) })
        })
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.then.view().parts().iter().chain(self.then.view().tail())
    }

    /// A part by its number.
    fn part(&self, k: usize) -> Result<&Part, Refused> {
        let count = self.parts().count();
        let none = || Refused::NotFound(format!("call {} has {count} parts, counted from 0", self.number));
        self.parts().nth(k).ok_or_else(none)
    }

    /// All of it.
    pub(crate) fn answer(&self, meta: &Meta) -> CallAnswer {
        let weights: Vec<i64> = std::iter::once(self.then.view().fixed().measure.counted)
            .chain(self.parts().map(|part| part.measure.counted))
            .collect();
        let tokens = scaled(&weights, self.row.view);
        let (since, new) = self.since();
        // The engine knows what could be read from the cache; whether the provider did is known from its bill.
        let was_read = !self.row.billed || self.row.bill.read > 0;
        let parts =
            parts::rows(&self.then).zip(&tokens[1..]).enumerate().map(|(k, ((part, mut row), tokens))| {
                let saved = row.tokens_before.saturating_sub(row.tokens);
                (row.tokens_before, row.tokens) = (tokens.saturating_add(saved), *tokens);
                row.warm &= was_read;
                for edit in &mut row.edits {
                    edit.active_now = Some(self.history.session.ledger().is_active(EditId(edit.id)));
                }
                self.view_of(k, part, row, new.contains(&k))
            });
        CallAnswer {
            session: meta.id.to_string(),
            title: meta.title.clone(),
            api: self.api(),
            call: self.number,
            calls: self.history.trace.calls.len(),
            at: self.row.at.and_then(time),
            upto: self.row.upto,
            view: self.row.view,
            full: self.row.full,
            window: self.row.window,
            bill: self.row.bill,
            usd: self.row.usd(),
            billed: self.row.billed,
            broke: self.row.broke,
            why: self.row.why.map(|why| why.name()),
            frame: self.frame(tokens[0], was_read),
            parts: parts.collect(),
            gone: self.gone(),
            since,
            answer: self.answered(),
        }
    }

    fn view_of(&self, k: usize, part: &Part, row: PartRow, new: bool) -> PartView {
        let (head, chars) = text::head_of(&part.message, HEAD);
        let blocks = self.blocks(part, self.texts);
        let category = Category::of_part(part);
        let tool = blocks.iter().find_map(|block| block.name.clone());
        PartView { k, row, category: category.name(), tool, new, head, chars, blocks }
    }

    fn blocks(&self, part: &Part, most: Option<usize>) -> Vec<BlockRow> {
        let mut left = most;
        let row = |block| {
            let tool = |result: &_| tool_of(&self.then, part.source, result).map(str::to_owned);
            let row = BlockRow::of(block, tool, left);
            left = left.map(|left| left.saturating_sub(row.text.as_ref().map_or(0, String::len)));
            row
        };
        part.message.blocks().iter().map(row).collect()
    }

    fn frame(&self, tokens: u64, was_read: bool) -> FrameView {
        let none = Frame::default();
        let frame = self.then.log().frame().unwrap_or(&none);
        let system: Vec<_> = frame.system.iter().map(text::of_block).collect();
        let version = |session: &Session| session.log().frame_version();
        FrameView {
            tokens,
            warm: was_read && parts::frame(&self.then).warm,
            new: self.before.as_ref().is_none_or(|before| version(before) != version(&self.then)),
            model: frame.model.as_deref().map(str::to_owned),
            system: text::cut(system.join("\n").into(), WHOLE).0,
            tools: frame.tools.iter().map(ToolRow::of).collect(),
        }
    }

    /// What differs from the call before, and which parts are not in it.
    fn since(&self) -> (Since, HashSet<usize>) {
        let Some(before) = &self.before else {
            let all = 0..self.parts().count();
            return (Since { added: all.clone().collect(), ..Since::default() }, all.collect());
        };
        let old: Vec<&Part> = before.view().parts().iter().chain(before.view().tail()).collect();
        let mut here: HashMap<Key, Vec<&Arc<Message>>> = HashMap::new();
        for part in &old {
            here.entry(Key::of(part.source)).or_default().push(&part.message);
        }
        let (mut since, mut new, mut still) = (Since::default(), HashSet::new(), HashSet::new());
        for (k, part) in self.parts().enumerate() {
            let key = Key::of(part.source);
            let is_same = |was: &&Arc<Message>| Arc::ptr_eq(was, &part.message) || **was == part.message;
            match here.get(&key) {
                Some(was) if was.iter().any(is_same) => _ = still.insert(key),
                Some(_) => {
                    since.changed.push(k);
                    new.insert(k);
                    still.insert(key);
                }
                None => {
                    since.added.push(k);
                    new.insert(k);
                }
            }
        }
        let gone = old.iter().filter(|part| !still.contains(&Key::of(part.source)));
        let gone = gone.map(|part| Removed {
            messages: match part.source {
                Source::Message(at) => vec![(at.0, at.0 + 1)],
                Source::Edit(id) => before.ledger().get(id).map(|edit| runs(edit)).unwrap_or_default(),
                Source::Note | Source::Rules | Source::HostNote(_) | Source::Tail => Vec::new(),
            },
            was: text::head_of(&part.message, 200).0,
            tokens: before.meter().tokens(part.measure).tokens.0,
        });
        since.removed = gone.take(REMOVED).collect();
        (since, new)
    }

    /// What edits took out: the outermost runs, and what was shortened beside them.
    fn gone(&self) -> Vec<Gone> {
        let ledger = self.then.ledger();
        let shows = |id: EditId, start: Position| match ledger.covering(start) {
            Some((_, outer)) => outer == id,
            None => true,
        };
        let edits = ledger.edits().filter(|(_, active)| *active).map(|(edit, _)| edit);
        let shown =
            edits.filter(|edit| edit.kind.spans().first().is_some_and(|span| shows(edit.id, span.start)));
        let gone = shown.map(|edit| Gone {
            edit: edit.id.0,
            kind: edit.kind.name(),
            messages: runs(edit),
            tokens: edit.before.0.saturating_sub(edit.after.0),
        });
        gone.filter(|gone| gone.tokens > 0).collect()
    }

    /// The messages that the model wrote behind this call and before the next.
    fn answered(&self) -> Option<Answered> {
        let log = self.history.session.log();
        let next = self.history.trace.calls.get(self.number).map_or(log.end().0, |row| row.upto);
        let of_model =
            |at: &u32| log.get(Position(*at)).is_some_and(|message| message.role() == Role::Assistant);
        let messages: Vec<u32> = (self.row.upto..next).filter(of_model).collect();
        let said: Vec<&Arc<Message>> = messages.iter().filter_map(|at| log.get(Position(*at))).collect();
        let texts: Vec<_> = said.iter().map(|message| text::of_message(message)).collect();
        let whole = texts.join("\n");
        let blocks = said.iter().flat_map(|message| message.blocks());
        (!messages.is_empty()).then(|| Answered {
            chars: text::chars(&whole),
            text: text::cut(whole.into(), WHOLE).0,
            blocks: blocks.map(|block| BlockRow::of(block, |_| None, None)).collect(),
            messages,
        })
    }

    /// A part whole, and what it stands for.
    pub(crate) fn part_answer(&self, k: usize) -> Result<PartAnswer, Refused> {
        let part = self.part(k)?;
        let whole = text::of_message(&part.message);
        let chars = text::chars(&whole);
        let (text, cut) = text::cut(whole, WHOLE);
        let edits: Vec<EditId> = match part.source {
            Source::Edit(id) => vec![id],
            Source::Message(at) => self.then.ledger().inside(at).to_vec(),
            Source::Note | Source::Rules | Source::HostNote(_) | Source::Tail => Vec::new(),
        };
        let edits: Vec<_> = edits.iter().filter_map(|id| self.then.ledger().get(*id)).collect();
        let recall = edits.iter().flat_map(|edit| &edit.originals).map(|handle| handle.short()).collect();
        let original = match edits.as_slice() {
            [] => None,
            edits => Some(self.original(edits.iter().flat_map(|edit| runs(edit)))),
        };
        Ok(PartAnswer { k, text, chars, cut, blocks: self.blocks(part, Some(WHOLE)), original, recall })
    }

    /// Messages as they came.
    fn original(&self, runs: impl Iterator<Item = (u32, u32)>) -> PartOriginal {
        let mut all: Vec<u32> = runs.flat_map(|(start, end)| start..end).collect();
        all.sort_unstable();
        all.dedup();
        let (log, sizes) = (self.then.log(), self.then.sizes());
        let size = all.iter().filter_map(|at| sizes.get(*at as usize)).copied().sum();
        let (mut left, mut cut) = (WHOLE, all.len() > ORIGINALS);
        let mut messages = Vec::new();
        for at in all.iter().take(ORIGINALS) {
            let Some(message) = log.get(Position(*at)) else { continue };
            let (text, was_cut) = text::cut(text::of_message(message), left);
            left -= text.len();
            cut |= was_cut;
            messages.push(OriginalMessage { at: *at, role: message.role().name(), text });
        }
        PartOriginal { messages, count: all.len(), tokens: self.then.meter().tokens(size).tokens.0, cut }
    }

    /// The API that the session came over: its messages say it, or the form of its tools.
    fn api(&self) -> Option<&'static str> {
        let field = longhaul::conversation::API_FIELD;
        let messages = self.then.log().messages();
        let named = messages.iter().find_map(|message| message.wire_fields().get(field));
        let named = named.and_then(|name| Api::from_name(name.as_str().trim_matches('"')));
        let tool = || {
            let definition = self.then.log().frame()?.tools.first()?.definition.value();
            let has = |field: &str| definition.get(field).is_some();
            match (has("input_schema"), has("function"), has("parameters")) {
                (true, ..) => Some(Api::Anthropic),
                (_, true, _) => Some(Api::Chat),
                (.., true) => Some(Api::Responses),
                _ => None,
            }
        };
        named.or_else(tool).map(Api::name)
    }

    /// The request as an API is told it; without one, as the one that the session came over.
    pub(crate) fn raw(&self, api: Option<Api>) -> Result<(Api, String), Refused> {
        let api = api.or_else(|| self.api().and_then(Api::from_name)).unwrap_or(Api::Anthropic);
        let body: String = Request::of(&self.then.outgoing()).encode(api).body.into();
        let pretty = serde_json::from_str::<serde_json::Value>(&body)
            .and_then(|value| serde_json::to_string_pretty(&value));
        let pretty =
            pretty.map_err(|error| Refused::Failed(format!("the request cannot be written: {error}")))?;
        Ok((api, pretty))
    }
}

impl ToolRow {
    fn of(tool: &Tool) -> Self {
        let definition = tool.definition.value();
        let about =
            ["/description", "/function/description"].iter().find_map(|path| definition.pointer(path));
        Self {
            name: tool.name.to_string(),
            description: about.and_then(|about| about.as_str()).unwrap_or_default().to_owned(),
            schema: tool.definition.clone(),
        }
    }
}

/// What a part of one request has in common with one of another: where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Note,
    Rules,
    Message(Position),
    Edit(EditId),
    HostNote(usize),
    Tail,
}

impl Key {
    fn of(source: Source) -> Self {
        match source {
            Source::Note => Self::Note,
            Source::Rules => Self::Rules,
            Source::Message(at) => Self::Message(at),
            Source::Edit(id) => Self::Edit(id),
            Source::HostNote(number) => Self::HostNote(number),
            Source::Tail => Self::Tail,
        }
    }
}
