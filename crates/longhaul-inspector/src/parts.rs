//! The parts of a view, as scripts and people see them: where each comes from, which edit made it what it is, and
//! why.

use longhaul::edits::LostWith;
use longhaul::{Edit, Part, Session, Source, Tokens};
use serde::Serialize;

/// A part of a view.
#[derive(Debug, Clone, Serialize)]
pub struct PartRow {
    /// `note`, `rules`, `message`, `edit`, `host_note` or `tail`.
    pub source: &'static str,
    /// The messages of the log that it is, or stands for: first, and one past the last.
    pub messages: Vec<(u32, u32)>,
    /// Who speaks.
    pub role: &'static str,
    /// Its size.
    pub tokens: u64,
    /// Tokens of what it stands for, as it was shown before.
    pub tokens_before: u64,
    /// True if the provider had it in its cache.
    pub warm: bool,
    /// What made it what it is.
    pub edits: Vec<PartEdit>,
}

/// An edit that made a part what it is.
#[derive(Debug, Clone, Serialize)]
pub struct PartEdit {
    /// Its number.
    pub id: u32,
    /// What it does, in words.
    pub kind: &'static str,
    /// Which strategy proposed it.
    pub strategy: String,
    /// Why it was made, in words.
    pub why: &'static str,
    /// Tokens of what it replaces.
    pub before: u64,
    /// Tokens of what it shows.
    pub after: u64,
    /// Tokens that were billed again for it, once.
    pub rewrites: u64,
    /// Tokens that each later request is smaller by.
    pub saves: u64,
    /// Steps whose thinking went with it, where the model binds thinking to what stands before it.
    #[serde(skip_serializing_if = "is_zero")]
    pub thinking_steps: u64,
    /// The tokens of that thinking.
    #[serde(skip_serializing_if = "is_zero")]
    pub thinking_tokens: u64,
    /// By which its originals are recalled.
    pub handles: Vec<String>,
    /// Whether it holds now, where a request of before is looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_now: Option<bool>,
}

pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl PartEdit {
    /// Of an edit.
    pub fn of(edit: &Edit) -> Self {
        Self {
            id: edit.id.0,
            kind: edit.kind.name(),
            strategy: edit.strategy.to_string(),
            why: edit.why.name(),
            before: edit.before.0,
            after: edit.after.0,
            rewrites: edit.price.rewrites.0,
            saves: edit.price.saves.0,
            thinking_steps: edit.price.thinking.messages.into(),
            thinking_tokens: edit.price.thinking.tokens.0,
            handles: edit.originals.iter().map(|handle| handle.short()).collect(),
            active_now: None,
        }
    }

    /// Thinking that went with it.
    pub fn thinking(&self) -> LostWith {
        let messages = u32::try_from(self.thinking_steps).unwrap_or(u32::MAX);
        LostWith { messages, tokens: Tokens(self.thinking_tokens) }
    }
}

/// System prompt and tools.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct FrameRow {
    /// Their size.
    pub tokens: u64,
    /// True if the provider had them in its cache.
    pub warm: bool,
}

/// The parts of the newest view, the tail last, each with its row.
pub fn rows(session: &Session) -> impl Iterator<Item = (&Part, PartRow)> {
    let billed = session.sent().map(|sent| sent.billed).unwrap_or_default();
    let mut upto = session.view().fixed().measure;
    session.view().parts().iter().chain(session.view().tail()).map(move |part| {
        let size = session.meter().tokens(part.measure).tokens.0;
        upto += part.measure;
        // One token of rounding is no change.
        let is_warm = session.meter().tokens(upto).tokens.0 <= billed.read.0 + 1;
        (part, row(session, part, size, part.source != Source::Tail && is_warm))
    })
}

/// System prompt and tools, which stand before the parts.
pub fn frame(session: &Session) -> FrameRow {
    let warm = session.sent().is_some_and(|sent| sent.billed.read.0 > 0);
    FrameRow { tokens: session.meter().tokens(session.view().fixed().measure).tokens.0, warm }
}

fn row(session: &Session, part: &Part, tokens: u64, warm: bool) -> PartRow {
    let get = |id| session.ledger().get(id);
    let (source, messages, edits) = match part.source {
        Source::Note => ("note", vec![], vec![]),
        Source::Rules => ("rules", vec![], vec![]),
        Source::HostNote(_) => ("host_note", vec![], vec![]),
        Source::Tail => ("tail", vec![], vec![]),
        Source::Message(at) => {
            let edits = session.ledger().inside(at).iter().filter_map(|id| get(*id));
            ("message", vec![(at.0, at.0 + 1)], edits.map(|edit| PartEdit::of(edit)).collect())
        }
        Source::Edit(id) => {
            let edit = get(id);
            (
                "edit",
                edit.map(|edit| runs(edit)).unwrap_or_default(),
                edit.map(|edit| PartEdit::of(edit)).into_iter().collect(),
            )
        }
    };
    let saved = edits.iter().map(|edit: &PartEdit| edit.before.saturating_sub(edit.after));
    let saved = saved.fold(0, u64::saturating_add);
    PartRow {
        source,
        messages,
        role: part.message.role().name(),
        tokens,
        tokens_before: tokens.saturating_add(saved),
        warm,
        edits,
    }
}

/// The messages that an edit covers: first, and one past the last.
pub(crate) fn runs(edit: &Edit) -> Vec<(u32, u32)> {
    edit.kind.spans().iter().map(|span| (span.start.0, span.end.0)).collect()
}
