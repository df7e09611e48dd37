//! Reading back: what edits took out, lines of the whole log, and whether all rules hold.

use super::Session;
use super::journal::RecallBy;
use super::state::State;
use crate::conversation::log::Position;
use crate::conversation::message::Block;
use crate::edits::archive::{RecallError, RecallPart, recall, regex_of};
use crate::edits::guard::{Audit, Audited, Rule, Violation};

/// A line of the log that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The message.
    pub at: Position,
    /// The number of the line among the texts of the message, from 1.
    pub number: usize,
    /// The line.
    pub line: Box<str>,
}

impl Session {
    /// Reads back what an edit took out. Where the session does not have it, its store is asked.
    pub fn recall(&self, handle: &str, part: &RecallPart) -> Result<String, RecallError> {
        recall(&self.state.originals.of(self.log(), self.store.as_deref()), handle, part)
    }

    /// How the model gets back what was taken out.
    pub fn recall_by(&self) -> &RecallBy {
        &self.state.recall_by
    }

    /// Lines of the whole log that a regular expression fits, the newest `most` of them, in order.
    /// Nothing that was taken out is hidden from it.
    pub fn search(&self, pattern: &str, most: usize) -> Result<Vec<Found>, RecallError> {
        let regex = regex_of(pattern)?;
        let mut found = Vec::new();
        for (at, message) in self.log().messages().iter().enumerate().rev() {
            let at = Position(at as u32);
            let texts = message.blocks().iter().enumerate();
            let texts =
                texts.map(|(number, block)| self.ledger().answer(at, number).unwrap_or(text_of(block)));
            let lines = texts.flat_map(str::lines).enumerate();
            let mut hits: Vec<_> = lines.filter(|(_, line)| regex.is_match(line)).collect();
            hits.reverse();
            let hits = hits.into_iter().take(most - found.len());
            found.extend(hits.map(|(number, line)| Found { at, number: number + 1, line: line.into() }));
            if found.len() == most {
                break;
            }
        }
        found.reverse();
        Ok(found)
    }

    /// Bytes that the session takes in memory beside its messages and its frame, about: texts of edits, and what it
    /// knows of the names that were said. For a host that keeps many sessions in bounds.
    pub fn bytes_beside_messages(&self) -> usize {
        let texts = self.ledger().edits().filter_map(|(edit, _)| edit.kind.text());
        texts.map(|text| text.len()).sum::<usize>() + self.uses.bytes()
    }

    /// All rules that do not hold. Behind a `prepare`, for what is sent; else for what would be shown
    /// now, whose size no `prepare` has looked at yet.
    pub fn audit(&self) -> Vec<Violation> {
        self.audit_again(&mut Audited::default())
    }

    /// The same for who audits view after view: edits that were right are not looked at again.
    pub fn audit_again(&self, audited: &mut Audited) -> Vec<Violation> {
        if self.prepared {
            return self.audit_view(audited);
        }
        let mut now = self.clone();
        now.look();
        let mut found = now.audit_view(audited);
        // The next request sees to these.
        found.retain(|violation| !matches!(violation.rule, Rule::UnderLimit | Rule::BoundThinking));
        found
    }

    pub(super) fn audit_view(&self, audited: &mut Audited) -> Vec<Violation> {
        let State { log, ledger, sizes, view, originals, binding, limits, .. } = &self.state;
        let audit = Audit {
            log,
            ledger,
            meter: &sizes.meter,
            sizes: sizes.all(),
            view,
            items: self.keep.items(),
            budget: &self.budget(),
            archive: &originals.of(log, self.store.as_deref()),
            stale: if limits.model.binds { binding.stale_in(view, log) } else { None },
        };
        audit.run(audited)
    }
}

/// What a search looks at.
fn text_of(block: &Block) -> &str {
    match block {
        Block::Text(b) => &b.text,
        Block::Thinking(b) => &b.text,
        Block::ToolCall(b) => b.arguments.as_str(),
        Block::ToolResult(b) => &b.text,
        Block::Image(_) | Block::Opaque(_) => "",
    }
}
