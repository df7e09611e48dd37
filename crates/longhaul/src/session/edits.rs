//! Edits on their way into the ledger: checked, priced, and their originals in the archive.

use std::sync::Arc;

use super::Session;
use crate::conversation::log::At;
use crate::conversation::message::{Block, Message, Role};
use crate::edits::archive::{Archive, Handle, Original};
use crate::edits::edit::{Edit, EditId, EditKind, EditPrice, Why};
use crate::edits::guard::{Check, Refusal};
use crate::edits::ledger::Event;
use crate::size::tokens::Tokens;
use crate::view::{Part, Source};

impl Session {
    #[allow(clippy::too_many_arguments)]
    pub(super) fn replace_runs(
        &mut self,
        kind: EditKind,
        text: &str,
        before: Tokens,
        handle: Handle,
        original: Original,
        strategy: &str,
        why: Why,
        depends: Vec<EditId>,
    ) -> Result<EditId, Refusal> {
        let message = Arc::new(Message::new(Role::Summary, vec![Block::text(text)]));
        let measure = self.meter.message(&message);
        let after = self.tokens(measure);
        self.check(why).edit(&kind, before, after)?;
        self.archive.put(handle, original);
        let id = self.record(kind, strategy, why, before, after, vec![handle], depends);
        self.view.is_made(id, Part { source: Source::Edit(id), message, measure });
        Ok(id)
    }

    /// Where this message stood in the view that was sent last: edits since have made the view
    /// shorter before it.
    fn sent_part_of(&self, at: At) -> usize {
        let part = self.part_of(at);
        let gone = self.shown_before.saturating_sub(self.view.parts().len());
        if part < self.view.unchanged() { part } else { part + gone }
    }

    pub(super) fn check(&self, why: Why) -> Check<'_> {
        Check { log: &self.log, ledger: &self.ledger, why }
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn record(
        &mut self,
        kind: EditKind,
        strategy: &str,
        why: Why,
        before: Tokens,
        after: Tokens,
        originals: Vec<Handle>,
        depends: Vec<EditId>,
    ) -> EditId {
        let id = self.ledger.next_id();
        let first = kind.spans().first().map_or(At(0), |span| span.start);
        // A cold cache has nothing to bill again.
        let warm = if why == Why::Cold {
            Tokens::ZERO
        } else {
            self.cache.warm_after(self.sent_part_of(first), &self.meter)
        };
        let saves = before - after;
        let price = EditPrice { rewrites: warm - saves, saves };
        self.ledger.record(Event::Apply(Edit {
            id,
            kind,
            strategy: strategy.into(),
            why,
            before,
            after,
            price,
            originals,
            depends,
        }));
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
        let handle = original.handle();
        self.archive.put(handle, original);
        Ok(self.record(kind, strategy, why, before, after, vec![handle], Vec::new()))
    }

    /// What an edit inside a message replaces, as it is shown now, and by what.
    fn change(&self, kind: &EditKind) -> (Tokens, Tokens) {
        let text = |text: &str| self.tokens(self.meter.text(text));
        let block = |at: At, block: usize| self.log.get(at).and_then(|message| message.blocks().get(block));
        // As an edit shows it, or as it came. Pictures beside a text stay.
        let before = |at: At, number: usize| match (self.ledger.shown(at, number), block(at, number)) {
            (Some(shown), _) => text(shown),
            // Counted when it came, if it came alone.
            (None, Some(Block::ToolResult(result)))
                if result.content.is_none() && self.log.get(at).is_some_and(|m| m.blocks().len() == 1) =>
            {
                self.tokens(self.meter.only_block(self.sizes[at.index()]))
            }
            (None, Some(Block::ToolResult(result))) => text(&result.text),
            (None, Some(block)) => self.tokens(self.meter.block(block)),
            (None, None) => Tokens::ZERO,
        };
        match kind {
            EditKind::Digest { at, block, text: new } => (before(*at, *block), text(new)),
            EditKind::DigestArgs { at, block, arguments } => (before(*at, *block), text(arguments.as_str())),
            EditKind::DropThinking { at } => {
                let Some(message) = self.log.get(*at).filter(|_| !self.ledger.dropped_thinking(*at)) else {
                    return (Tokens::ZERO, Tokens::ZERO);
                };
                let thinking = message.blocks().iter().filter(|block| matches!(block, Block::Thinking(_)));
                // Sealed reasoning may hold no text here; what is gone is something all the same.
                (
                    self.tokens(thinking.map(|block| self.meter.block(block)).sum()).max(Tokens(1)),
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

    /// Makes an event happen, past the guard.
    pub(crate) fn force(&mut self, event: Event, handle: Handle, original: Original) {
        self.archive.put(handle, original);
        self.ledger.record(event);
        self.follow();
    }
}
