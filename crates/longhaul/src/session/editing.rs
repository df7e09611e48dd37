//! Edits on their way into the journal: checked, and priced.

use std::sync::Arc;

use super::Session;
use super::journal::Entry;
use crate::conversation::log::Position;
use crate::conversation::message::{Block, Message, Role};
use crate::edits::archive::{Handle, Original};
use crate::edits::edit::{Edit, EditId, EditKind, EditPrice, EditText, LostWith, Why};
use crate::edits::guard::{Check, Refusal};
use crate::edits::voice::Voice;
use crate::size::tokens::Tokens;
use crate::summary::SummaryBill;
use crate::view::{Part, Source};

/// An edit that the guard has let through.
struct Checked {
    kind: EditKind,
    /// In whose place its text stands, if it is one that replaces whole units.
    voice: Option<Voice>,
    /// What its summary cost, if a model wrote it.
    summary: Option<SummaryBill>,
    before: Tokens,
    after: Tokens,
    original: Handle,
    depends: Vec<EditId>,
}

/// Runs that are to become a text.
pub(super) struct Replacement {
    pub(super) kind: EditKind,
    pub(super) voice: Voice,
    /// Tokens of what is replaced, as it is shown.
    pub(super) before: Tokens,
    pub(super) original: Handle,
    /// Edits that it goes with.
    pub(super) depends: Vec<EditId>,
    /// What its summary cost, if a model wrote it.
    pub(super) summary: Option<SummaryBill>,
}

impl Session {
    /// Makes an edit of whole units, if the guard lets it through.
    pub(super) fn replace_runs(
        &mut self,
        replacement: Replacement,
        strategy: &str,
        why: Why,
    ) -> Result<EditId, Refusal> {
        let Replacement { kind, voice, before, original, depends, summary } = replacement;
        let voice = Some(voice);
        let text = kind.text().map(EditText::shared).unwrap_or_default();
        let message = Arc::new(Message::voiced(Role::Summary, text, voice));
        let measure = self.meter().message(&message);
        let after = self.tokens(measure);
        self.check(why).edit(&kind, before, after)?;
        let id = self.make(Checked { kind, voice, summary, before, after, original, depends }, strategy, why);
        self.state.view.is_made(id, Part { source: Source::Edit(id), message, measure });
        Ok(id)
    }

    pub(super) fn check(&self, why: Why) -> Check<'_> {
        let first_bound = self.model().binds.then(|| self.state.binding.first_signed()).flatten();
        Check { log: self.log(), ledger: self.ledger(), why, first_bound }
    }

    fn make(&mut self, allowed: Checked, strategy: &str, why: Why) -> EditId {
        let Checked { kind, voice, summary, before, after, original, depends } = allowed;
        let id = self.ledger().next_id();
        let first = kind.spans().first().map_or(Position(0), |span| span.start);
        let cache = &self.state.requests.cache;
        // A cold cache has nothing to bill again, nor one behind another frame.
        let cold = why == Why::Cold || cache.is_behind_another_frame(self.log().frame_version());
        let warm = if cold { Tokens::ZERO } else { cache.warm_after(first, self.meter()) };
        let saves = before - after;
        let is_fold = matches!(kind, EditKind::Fold { .. });
        let calls = if is_fold { self.state.requests.calls_expected() } else { 0 };
        let inside = |at: Position| kind.spans().iter().any(|span| span.contains(at));
        let thinking = self.bound_after(first).into_iter().filter(|(at, _)| !inside(*at));
        let thinking = thinking.fold(LostWith::default(), |lost, (_, tokens)| lost.and(tokens));
        let price = EditPrice { rewrites: warm - saves - thinking.tokens, saves, calls, thinking, summary };
        let originals = vec![original];
        let strategy = strategy.into();
        let edit = Edit { id, kind, voice, strategy, why, before, after, price, originals, depends };
        self.record(Entry::Edit(Arc::new(edit)));
        self.unbind_after(id);
        id
    }

    /// Makes an edit inside a message, if the guard lets it through.
    pub(super) fn edit_inside(
        &mut self,
        kind: EditKind,
        original: Original,
        strategy: &str,
        why: Why,
    ) -> Result<EditId, Refusal> {
        let (before, after) = self.change(&kind);
        self.check(why).edit(&kind, before, after)?;
        let original = original.handle();
        let depends = Vec::new();
        let checked = Checked { kind, voice: None, summary: None, before, after, original, depends };
        Ok(self.make(checked, strategy, why))
    }

    /// What an edit inside a message replaces, as it is shown now, and by what.
    fn change(&self, kind: &EditKind) -> (Tokens, Tokens) {
        let text = |text: &str| self.tokens(self.meter().text(text));
        let block =
            |at: Position, block: usize| self.log().get(at).and_then(|message| message.blocks().get(block));
        // As an edit shows it, or as it came. Pictures beside a text stay.
        let before = |at: Position, number: usize| match (self.ledger().shown(at, number), block(at, number))
        {
            (Some(shown), _) => text(shown),
            // Counted when it came, if it came alone.
            (None, Some(Block::ToolResult(result)))
                if result.content.is_none() && self.log().get(at).is_some_and(|m| m.blocks().len() == 1) =>
            {
                self.tokens(self.meter().only_block(self.sizes()[at.index()]))
            }
            (None, Some(Block::ToolResult(result))) => text(&result.text),
            (None, Some(block)) => self.tokens(self.meter().block(block)),
            (None, None) => Tokens::ZERO,
        };
        match kind {
            EditKind::Digest { at, block, text: new } | EditKind::Answer { at, block, text: new } => {
                (before(*at, *block), text(new))
            }
            EditKind::DigestArgs { at, block, arguments } => (before(*at, *block), text(arguments.as_str())),
            EditKind::DropThinking { at } => {
                let Some(message) = self.log().get(*at).filter(|_| !self.ledger().dropped_thinking(*at))
                else {
                    return (Tokens::ZERO, Tokens::ZERO);
                };
                let thinking = message.blocks().iter().filter(|block| matches!(block, Block::Thinking(_)));
                // Sealed reasoning may hold no text here; what is gone is something all the same.
                (
                    self.tokens(thinking.map(|block| self.meter().block(block)).sum()).max(Tokens(1)),
                    Tokens::ZERO,
                )
            }
            EditKind::Fold { .. } | EditKind::Hide { .. } => (Tokens::ZERO, Tokens::ZERO),
        }
    }
}

#[cfg(test)]
impl Session {
    /// What the guard says to an edit.
    pub(crate) fn check_edit(
        &self,
        kind: &EditKind,
        why: Why,
        before: Tokens,
        after: Tokens,
    ) -> Result<(), Refusal> {
        self.check(why).edit(kind, before, after)
    }

    /// Makes an edit, past the guard.
    pub(crate) fn force(&mut self, edit: Edit) {
        self.record(Entry::Edit(Arc::new(edit)));
        self.follow();
    }
}
