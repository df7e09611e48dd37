//! What becomes of the thinking in a recorded session: how much of it each request still carries, and what took the rest.

use std::sync::Arc;

use longhaul::{Block, Message, Position, Seal, Session};

/// Blocks of thinking, counted at each call: all that recorded answers have before it, and what the request has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Thinking {
    /// All of them.
    blocks: u64,
    /// In the request.
    kept: u64,
    /// Gone because something other than an edit changed what stands before them.
    others: u64,
}

impl Thinking {
    /// In the view of a session that has so many blocks in its log.
    pub fn of(session: &Session, blocks: u64) -> Self {
        let kept = session.view().parts().iter().map(|part| self::blocks(&part.message)).sum();
        let others = session.ledger().unbound().filter(|unbound| unbound.because.is_none());
        let lost = others.flat_map(|unbound| &unbound.lost).filter_map(|lost| session.log().get(lost.at));
        Self { blocks, kept, others: lost.map(|message| self::blocks(message)).sum() }
    }

    /// Adds those of another call.
    pub fn add(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.kept += other.kept;
        self.others += other.others;
    }

    /// The share that requests had.
    pub fn kept(self) -> Option<f64> {
        self.share(self.kept)
    }

    /// The share that edits took: what they replaced, and what stood after it where the model binds thinking.
    pub fn lost_folds(self) -> Option<f64> {
        self.share(self.blocks.saturating_sub(self.kept + self.others))
    }

    /// The share that went because the client changed what stands before it.
    pub fn lost_others(self) -> Option<f64> {
        self.share(self.others)
    }

    fn share(self, part: u64) -> Option<f64> {
        (self.blocks > 0).then(|| part as f64 / self.blocks as f64)
    }
}

/// How many blocks of thinking a message has. Encrypted reasoning is none: it is bound to nothing.
pub fn blocks(message: &Message) -> u64 {
    let is_thinking = |block: &&Block| match block {
        Block::Thinking(thinking) => !matches!(thinking.seal, Seal::Encrypted(_) | Seal::Redacted(None)),
        _ => false,
    };
    message.blocks().iter().filter(is_thinking).count() as u64
}

/// The message with a signature on all its thinking: no meter counts signatures, so its size is the same.
pub fn sign(message: Arc<Message>, at: Position) -> Arc<Message> {
    let is_open = |block: &Block| matches!(block, Block::Thinking(thinking) if thinking.seal == Seal::Open);
    if !message.blocks().iter().any(is_open) {
        return message;
    }
    let mut blocks = message.blocks().to_vec();
    for (number, block) in blocks.iter_mut().enumerate() {
        if let Block::Thinking(thinking) = block
            && thinking.seal == Seal::Open
        {
            thinking.seal = Seal::Signed(format!("{}.{number}", at.0).into());
        }
    }
    Arc::new(Message::clone(&message).with_blocks(blocks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul::Role;

    #[test]
    fn all_thinking_is_signed_once() {
        let message = Message::new(Role::Assistant, vec![Block::thinking("Hm."), Block::text("Done.")]);
        let signed = sign(Arc::new(message), Position(7));
        assert!(matches!(&signed.blocks()[0], Block::Thinking(t) if t.seal.data() == Some("7.0")));
        assert!(Arc::ptr_eq(&sign(signed.clone(), Position(8)), &signed));
        assert_eq!(blocks(&signed), 1);
    }

    #[test]
    fn shares_add_up() {
        let mut sum = Thinking { blocks: 4, kept: 1, others: 1 };
        assert_eq!((sum.kept(), sum.lost_folds(), sum.lost_others()), (Some(0.25), Some(0.5), Some(0.25)));
        sum.add(Thinking { blocks: 4, kept: 4, others: 0 });
        assert_eq!(sum.kept(), Some(0.625));
        assert_eq!(Thinking::default().kept(), None);
    }
}
