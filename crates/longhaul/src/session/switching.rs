//! Another model goes on: reasoning that only one provider's models can read is left out for the others, and
//! comes back with them. Between models of one provider nothing is left out.

use std::sync::Arc;

use super::Session;
use super::journal::{Entry, Seals};
use crate::conversation::log::Position;
use crate::conversation::message::Block;
use crate::edits::archive::Original;
use crate::edits::edit::{EditId, EditKind, Why};
use crate::size::models::Model;

impl Session {
    /// Goes on with another model: everything is counted as it counts, and the next `prepare`
    /// compacts if its window is smaller. A window that the host has set holds for every model, and
    /// the frame, which names the model to the provider, is the host's to change. Reasoning that only another model can read is left out,
    /// and comes back with its model; unless the client behind the host sees to that itself.
    pub fn switch(&mut self, model: Model, seals: Seals) {
        self.record(Entry::Switched { model: Arc::new(model), seals });
        self.mind_seals();
        self.look();
    }

    /// Leaves out sealed reasoning of other models, and brings that of this one back.
    pub(super) fn mind_seals(&mut self) {
        if self.state.authors.is_one() {
            return;
        }
        let dropped = self.ledger().edits().filter(|(edit, active)| *active && edit.why == Why::Switched);
        let back: Vec<EditId> = dropped
            .filter(|(edit, _)| match edit.kind {
                EditKind::DropThinking { at } => !self.state.authors.is_foreign(at),
                _ => false,
            })
            .map(|(edit, _)| edit.id)
            .collect();
        for edit in back {
            self.record(Entry::Undo { edit, held: false });
        }
        if self.state.authors.seals == Seals::Client {
            return;
        }
        let sealed = |block: &Block| matches!(block, Block::Thinking(t) if t.seal.is_sealed());
        let written = &self.log().messages()[..self.state.authors.own_from().index()];
        let foreign = written.iter().enumerate().filter(|(_, message)| message.blocks().iter().any(sealed));
        let foreign = foreign.map(|(at, message)| (Position(at as u32), message.clone()));
        let foreign = foreign.filter(|(at, _)| self.state.authors.is_foreign(*at));
        let foreign: Vec<_> = foreign.filter(|(at, _)| !self.ledger().dropped_thinking(*at)).collect();
        for (at, message) in foreign {
            // Refused where a fold has taken it.
            _ = self.edit_inside(
                EditKind::DropThinking { at },
                Original::Thinking(message),
                "model-switch",
                Why::Switched,
            );
        }
    }
}
