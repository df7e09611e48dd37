//! The view of a session as pieces, which needs are looked for in.

use std::collections::HashMap;
use std::sync::Arc;

use longhaul::view::View;
use longhaul::{EditId, Message, Part, Position, Session};

use crate::needs::{Needs, Piece, text_of};

/// Pieces of the messages of a view, each made once.
#[derive(Default)]
pub struct PieceCache(HashMap<usize, (Arc<Message>, Arc<Piece>)>);

/// A view as pieces.
pub struct ViewPieces {
    /// Its stable and growing part.
    pub parts: Vec<Arc<Piece>>,
    /// What stands behind them for this call only.
    pub tail: Vec<Arc<Piece>>,
}

impl PieceCache {
    /// The pieces of a view.
    pub fn of_view(&mut self, view: &View, needs: &mut Needs) -> ViewPieces {
        let parts = view.parts().iter().map(|part| self.piece(part, needs)).collect();
        let tail = view.tail().map(|part| self.piece(part, needs)).into_iter().collect();
        ViewPieces { parts, tail }
    }

    /// The piece of a part. The message is kept, so that its address stays its own.
    fn piece(&mut self, part: &Part, needs: &mut Needs) -> Arc<Piece> {
        let known = self.0.entry(Arc::as_ptr(&part.message) as usize);
        known.or_insert_with(|| (part.message.clone(), needs.piece(&text_of(&part.message)))).1.clone()
    }
}

/// True if a message of the log is under a handle in the view.
pub fn is_recallable(session: &Session, at: u32) -> bool {
    let (at, ledger) = (Position(at), session.ledger());
    let has_handle = |id: &EditId| ledger.get(*id).is_some_and(|edit| !edit.originals.is_empty());
    ledger.covering(at).is_some_and(|(_, id)| has_handle(&id)) || ledger.inside(at).iter().any(has_handle)
}
