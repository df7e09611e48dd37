//! The view of a session as pieces, which needs are looked for in.

use std::collections::HashMap;
use std::sync::Arc;

use longhaul::view::View;
use longhaul::{EditId, Message, Part, Position, Session};

use crate::needs::{Needs, Piece, text_of};

/// Pieces of the messages of a view, each made once.
#[derive(Default)]
pub struct PieceCache {
    pieces: HashMap<usize, (Arc<Message>, Arc<Piece>)>,
    /// The messages of the view that was looked at last.
    last: Vec<Arc<Message>>,
}

/// A view as pieces, as far as it is another one than the view before.
pub struct ViewPieces {
    /// So many of its first parts are the same as in the view before.
    pub kept: usize,
    /// The rest of its stable and growing part.
    pub parts: Vec<Arc<Piece>>,
    /// What stands behind them for this call only.
    pub tail: Vec<Arc<Piece>>,
}

impl PieceCache {
    /// The pieces of a view that is not the same as in the view before.
    pub fn of_view(&mut self, view: &View, needs: &mut Needs) -> ViewPieces {
        let same =
            view.parts().iter().zip(&self.last).take_while(|(now, last)| Arc::ptr_eq(&now.message, last));
        let kept = same.count();
        let new = &view.parts()[kept..];
        self.last.truncate(kept);
        self.last.extend(new.iter().map(|part| part.message.clone()));
        let parts = new.iter().map(|part| self.piece(part, needs)).collect();
        let tail = view.tail().map(|part| self.piece(part, needs)).into_iter().collect();
        ViewPieces { kept, parts, tail }
    }

    /// The piece of a part. The message is kept, so that its address stays its own.
    fn piece(&mut self, part: &Part, needs: &mut Needs) -> Arc<Piece> {
        let known = self.pieces.entry(Arc::as_ptr(&part.message) as usize);
        known.or_insert_with(|| (part.message.clone(), needs.piece(&text_of(&part.message)))).1.clone()
    }
}

/// True if a message of the log is under a handle in the view.
pub fn is_recallable(session: &Session, at: u32) -> bool {
    let (at, ledger) = (Position(at), session.ledger());
    let has_handle = |id: &EditId| ledger.get(*id).is_some_and(|edit| !edit.originals.is_empty());
    ledger.covering(at).is_some_and(|(_, id)| has_handle(&id)) || ledger.inside(at).iter().any(has_handle)
}
