//! How a message was shown, and until when: whole, shortened, inside a summary, or not at all. And search in the log
//! of one session, which says the same of each message that it finds.

use longhaul::{Block, EditKind, Position, Source};
use regex::{Regex, RegexBuilder};
use serde::Serialize;

use crate::api::time;
use crate::category::tool_of;
use crate::error::Refused;
use crate::history::{EditLife, History};
use crate::session::EditRow;
use crate::text::{self, BlockRow, WHOLE};

/// A search gives so many messages at most.
const MOST_FOUND: usize = 200;

/// A message, and how it was shown.
#[derive(Debug, Serialize)]
pub struct MessageAnswer {
    /// Its number.
    pub at: u32,
    /// Who speaks.
    pub role: &'static str,
    /// Its blocks, with their texts.
    pub blocks: Vec<BlockRow>,
    /// What it says.
    pub text: String,
    /// The length of its text, as a browser counts.
    pub chars: usize,
    /// The text is longer than what is sent here.
    pub cut: bool,
    /// Its size.
    pub tokens: u64,
    /// When it was written, if the client said so.
    pub time: Option<String>,
    /// The calls in which it stands, in their order.
    pub shown: Vec<Shown>,
}

impl MessageAnswer {
    /// With so many bytes of text at most, and as many in the blocks.
    fn cut_to(mut self, most: usize) -> Self {
        let mut left = most;
        for text in self.blocks.iter_mut().filter_map(|block| block.text.as_mut()) {
            text.truncate(text.floor_char_boundary(left));
            left -= text.len();
        }
        self.cut = self.text.len() > most;
        self.text.truncate(self.text.floor_char_boundary(most));
        self
    }
}

/// From which call to which a message was shown how. The number behind the last call is that of the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// The first call.
    pub from_call: usize,
    /// The last call; null if it is still shown so.
    pub to_call: Option<usize>,
    /// How.
    #[serde(rename = "as")]
    pub how: How,
    /// The edit that stands in its place, or shortens it.
    pub edit: Option<u32>,
}

/// How a message is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// As it came.
    Whole,
    /// A part of it is shorter, or gone.
    Digest,
    /// A summary stands for it and others.
    Summary,
    /// A mark says that it was left out.
    Hidden,
}

/// Messages in which a text was found.
#[derive(Debug, Serialize)]
pub struct FindAnswer {
    /// In the order of the log.
    pub messages: Vec<FoundMessage>,
    /// In how many messages it is; the list may hold fewer.
    pub total: usize,
}

/// A message in which a text was found.
#[derive(Debug, Serialize)]
pub struct FoundMessage {
    /// Its number.
    pub at: u32,
    /// Who speaks.
    pub role: &'static str,
    /// Some text around the first place.
    pub snippet: String,
    /// Where it is in the snippet, in UTF-16 units.
    pub found: Vec<(usize, usize)>,
    /// The first call behind it; null if none was sent.
    pub first_call: Option<usize>,
    /// The last call that had it whole; null if none had.
    pub last_whole_call: Option<usize>,
    /// The first call since which it is not whole; null if it is.
    pub gone_at_call: Option<usize>,
    /// The first call since which neither it nor what stands in its place says the words; null if they are said.
    pub words_gone_at_call: Option<usize>,
    /// How it is shown now.
    #[serde(rename = "as")]
    pub how: How,
    /// The edit that stands in its place now.
    pub edit: Option<EditRow>,
}

/// A message as it was shown in a run of calls.
struct Stretch<'a> {
    from: usize,
    how: How,
    /// The edit that shows.
    edit: Option<&'a EditLife>,
    /// Edits inside the message that hold, oldest first.
    inside: Vec<&'a EditLife>,
}

impl History {
    /// What holds of a message at a call.
    fn stretch(&self, at: u32, call: usize) -> Stretch<'_> {
        let touching = |life: &&EditLife| life.is_active_at(call) && reach(life, at).is_some();
        let active: Vec<&EditLife> = self.trace.edits.iter().filter(touching).collect();
        let outermost = active.iter().filter(|life| life.edit.kind.replaces_runs()).max_by_key(|life| {
            // Runs are nested: the widest shows, and of two that are the same the one that reaches further.
            let all: usize = life.edit.kind.spans().iter().map(|span| span.len()).sum();
            (reach(life, at), all, life.edit.id)
        });
        let inside: Vec<&EditLife> =
            active.iter().filter(|life| !life.edit.kind.replaces_runs()).copied().collect();
        let (how, edit) = match (outermost, inside.last()) {
            (Some(life), _) if matches!(life.edit.kind, EditKind::Hide { .. }) => (How::Hidden, Some(*life)),
            (Some(life), _) => (How::Summary, Some(*life)),
            (None, Some(life)) => (How::Digest, Some(*life)),
            (None, None) => (How::Whole, None),
        };
        Stretch { from: call, how, edit, inside }
    }

    /// How a message was shown, from the first call behind it to the next request.
    fn stretches(&self, at: u32) -> Vec<Stretch<'_>> {
        let next = self.trace.calls.len() + 1;
        let first = self.call_behind(at).unwrap_or(next);
        let touching = self.trace.edits.iter().filter(|life| reach(life, at).is_some());
        let mut calls: Vec<usize> = touching
            .flat_map(|life| std::iter::once(life.call).chain(life.turns.iter().map(|turn| turn.call)))
            .map(|call| call.max(first))
            .chain([first])
            .collect();
        calls.sort_unstable();
        calls.dedup();
        let mut stretches: Vec<Stretch<'_>> = Vec::new();
        for stretch in calls.into_iter().map(|call| self.stretch(at, call)) {
            let id = |stretch: &Stretch<'_>| (stretch.how, stretch.edit.map(|life| life.edit.id));
            if stretches.last().is_none_or(|last| id(last) != id(&stretch)) {
                stretches.push(stretch);
            }
        }
        stretches
    }

    pub(crate) fn message(&self, at: u32) -> Result<MessageAnswer, Refused> {
        let count = self.session.log().end().0;
        let none =
            || Refused::NotFound(format!("there is no message {at}: the log has {count}, counted from 0"));
        self.message_row(Position(at)).map(|row| row.cut_to(WHOLE)).ok_or_else(none)
    }

    /// A message with all its texts.
    pub(crate) fn message_row(&self, at: Position) -> Option<MessageAnswer> {
        let session = &self.session;
        let message = session.log().get(at)?;
        let size = session.sizes().get(at.index()).copied().unwrap_or_default();
        let text = text::of_message(message).into_owned();
        let tool =
            |result: &longhaul::ToolResult| tool_of(session, Source::Message(at), result).map(str::to_owned);
        let blocks = message.blocks().iter().map(|block| BlockRow::of(block, tool, Some(usize::MAX)));
        let stretches = self.stretches(at.0);
        let ends = stretches.iter().skip(1).map(|next| Some(next.from - 1)).chain([None]);
        let shown = stretches.iter().zip(ends).map(|(stretch, to_call)| Shown {
            from_call: stretch.from,
            to_call,
            how: stretch.how,
            edit: stretch.edit.map(|life| life.edit.id.0),
        });
        Some(MessageAnswer {
            at: at.0,
            role: message.role().name(),
            blocks: blocks.collect(),
            chars: text::chars(&text),
            text,
            cut: false,
            tokens: session.meter().tokens(size).tokens.0,
            time: message.time().and_then(time),
            shown: shown.collect(),
        })
    }

    pub(crate) fn find(&self, query: &str) -> Result<FindAnswer, Refused> {
        let wanted = RegexBuilder::new(&regex::escape(query)).case_insensitive(true).build();
        let wanted = wanted.map_err(|_| Refused::Bad("the text to look for is too long".to_owned()))?;
        let (mut messages, mut total) = (Vec::new(), 0);
        for (at, message) in self.session.log().messages().iter().enumerate() {
            let Some((snippet, found)) = text::snippet(&text::of_message(message), &wanted) else { continue };
            total += 1;
            if messages.len() < MOST_FOUND {
                messages.push(self.found(at as u32, snippet, found, &wanted));
            }
        }
        Ok(FindAnswer { messages, total })
    }

    fn found(&self, at: u32, snippet: String, found: Vec<(usize, usize)>, wanted: &Regex) -> FoundMessage {
        let stretches = self.stretches(at);
        let last = self.trace.calls.len();
        let whole = stretches.iter().rposition(|stretch| stretch.how == How::Whole);
        let behind = |at: usize| stretches.get(at + 1).map(|next| next.from);
        let gone = match whole {
            Some(at) => behind(at),
            None => stretches.first().map(|first| first.from),
        };
        // In a request that is not sent yet nobody has seen it.
        let sent = stretches.iter().rposition(|stretch| stretch.how == How::Whole && stretch.from <= last);
        let last_whole = sent.map(|at| behind(at).map_or(last, |next| last.min(next - 1)));
        let says = stretches.iter().rposition(|stretch| self.says(at, stretch, wanted));
        let words_gone = match says {
            Some(at) => behind(at),
            None => stretches.first().map(|first| first.from),
        };
        let now = stretches.last();
        FoundMessage {
            at,
            role: self.session.log().get(Position(at)).map_or("", |message| message.role().name()),
            snippet,
            found,
            first_call: self.call_behind(at),
            last_whole_call: last_whole,
            gone_at_call: gone,
            words_gone_at_call: words_gone,
            how: now.map_or(How::Whole, |stretch| stretch.how),
            edit: now.and_then(|stretch| stretch.edit).map(EditRow::of),
        }
    }

    /// Whether what stood for a message said what is looked for.
    fn says(&self, at: u32, stretch: &Stretch<'_>, wanted: &Regex) -> bool {
        let Some(message) = self.session.log().get(Position(at)) else { return false };
        let kind = stretch.edit.map(|life| &life.edit.kind);
        if let Some(text) = kind.filter(|kind| kind.replaces_runs()).and_then(|kind| kind.text()) {
            return wanted.is_match(text);
        }
        message.blocks().iter().enumerate().any(|(number, block)| {
            let shown = stretch.inside.iter().rev().find_map(|life| match &life.edit.kind {
                EditKind::Digest { block, text, .. } | EditKind::Answer { block, text, .. }
                    if *block == number =>
                {
                    Some(&**text)
                }
                EditKind::DigestArgs { block, arguments, .. } if *block == number => Some(arguments.as_str()),
                EditKind::DropThinking { .. } if matches!(block, Block::Thinking(_)) => Some(""),
                _ => None,
            });
            wanted.is_match(shown.unwrap_or(&text::of_block(block)))
        })
    }
}

/// How many messages the run of an edit has that holds this one, if any does.
fn reach(life: &EditLife, at: u32) -> Option<usize> {
    let spans = life.edit.kind.spans();
    spans.iter().find(|span| span.contains(Position(at))).map(|span| span.len())
}
