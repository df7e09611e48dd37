//! What runs of the log hold when a fold or a hide takes them: messages that no edit has taken
//! yet, and the edits that took the others, in the order of the log.

use std::collections::HashSet;
use std::sync::Arc;

use super::value::Earlier;
use super::{Asked, Material};
use crate::conversation::json::Extra;
use crate::conversation::log::{Log, Position, Span};
use crate::conversation::message::{Block, Message, Role, ToolResult};
use crate::conversation::observed::observations;
use crate::edits::archive::{Handle, Original};
use crate::edits::edit::{Edit, EditId, EditKind, Why};
use crate::edits::ledger::{Ledger, Stretch};

/// What runs hold, in the order of the log.
#[derive(Debug, Default)]
pub(crate) struct Covered {
    all: Vec<Held>,
    /// Messages in the user's place that tools wrote.
    observed: HashSet<Position>,
}

#[derive(Debug)]
enum Held {
    Message(Position, Arc<Message>),
    /// A message that stands at the head of the view: nobody need be told of it.
    Moved(Arc<Message>),
    /// A fold or a hide, where its first run begins.
    Edit(Arc<Edit>),
    /// The texts by which the host answered in the messages that follow.
    Answers(Vec<Handle>),
    /// What a person asked in a message that follows, or before messages that hold its answer.
    Asked(Asked),
}

impl Covered {
    /// What these runs hold, by the edits that are in the ledger now.
    pub(crate) fn of(log: &Log, ledger: &Ledger, spans: &[Span]) -> Self {
        let observed = observations(log);
        let is_observed = |at: &Position| observed.contains(at);
        let mut all: Vec<Held> = Vec::new();
        for stretch in spans.iter().flat_map(|span| ledger.stretches(*span)) {
            let span = match stretch {
                Stretch::Edit(id) => {
                    all.extend(ledger.get(id).cloned().map(Held::Edit));
                    continue;
                }
                Stretch::Messages(span) => span,
            };
            // Inside an earlier edit, which knew no answer.
            let asked = log.answered_in(span).filter(|asked| spans.iter().any(|span| span.contains(*asked)));
            let asked = asked.filter(|asked| !is_observed(asked));
            all.extend(asked.map(|asked| Held::Asked(Asked::of(log, asked))));
            all.push(Held::Answers(ledger.answers_in(span).collect()));
            for at in span.range().map(|at| Position(at as u32)) {
                let message = log.messages()[at.index()].clone();
                if log.is_moved(at) {
                    all.push(Held::Moved(message));
                    continue;
                }
                if message.words().next().is_some() && !is_observed(&at) {
                    all.push(Held::Asked(Asked::of(log, at)));
                }
                all.push(Held::Message(at, message));
            }
        }
        Self { all, observed }
    }

    /// A message as the host's, if a tool wrote it in the user's place.
    fn by_who_wrote_it(&self, at: Position, message: Arc<Message>) -> Arc<Message> {
        match self.observed.contains(&at) {
            true => Arc::new((*message).clone().with_attachment()),
            false => message,
        }
    }

    fn edits(&self) -> impl Iterator<Item = &Arc<Edit>> {
        self.all.iter().filter_map(|held| match held {
            Held::Edit(edit) => Some(edit),
            Held::Message(..) | Held::Moved(_) | Held::Answers(_) | Held::Asked(_) => None,
        })
    }

    /// Messages that no edit has taken yet, for a summariser. What a system message sets for its turn is
    /// none of the conversation.
    pub(crate) fn messages(&self) -> Vec<Arc<Message>> {
        let messages = self.all.iter().filter_map(|held| match held {
            Held::Message(at, message) => Some(self.by_who_wrote_it(*at, message.clone()))
                .filter(|message| message.role() != Role::System),
            Held::Moved(_) | Held::Edit(_) | Held::Answers(_) | Held::Asked(_) => None,
        });
        messages.collect()
    }

    /// Where messages stand that no edit has taken yet.
    pub(crate) fn positions(&self) -> impl Iterator<Item = Position> {
        self.all.iter().filter_map(|held| match held {
            Held::Message(at, _) => Some(*at),
            Held::Moved(_) | Held::Edit(_) | Held::Answers(_) | Held::Asked(_) => None,
        })
    }

    /// How many messages of the log it is, those inside earlier edits included.
    pub(crate) fn count(&self) -> usize {
        let count = |held: &Held| match held {
            Held::Message(..) | Held::Moved(_) => 1,
            Held::Edit(edit) => edit.kind.spans().iter().map(|span| span.len()).sum(),
            Held::Answers(_) | Held::Asked(_) => 0,
        };
        self.all.iter().map(count).sum()
    }

    /// The folds inside.
    pub(crate) fn folds(&self) -> Vec<EditId> {
        self.edits().filter(|edit| matches!(edit.kind, EditKind::Fold { .. })).map(|edit| edit.id).collect()
    }

    /// The texts of the summaries inside.
    pub(crate) fn earlier_text(&self) -> Option<String> {
        let mut text: Option<String> = None;
        for earlier in self.edits().filter_map(|edit| earlier(edit)) {
            text.get_or_insert_default().push_str(earlier.text());
        }
        text
    }

    /// What an edit of these runs takes out.
    pub(crate) fn original(&self) -> Original {
        let before = self.all.iter().flat_map(|held| match held {
            Held::Edit(edit) => edit.originals.as_slice(),
            Held::Answers(handles) => handles,
            Held::Message(..) | Held::Moved(_) | Held::Asked(_) => &[],
        });
        let before = before.copied().collect();
        let messages = self.all.iter().filter_map(|held| match held {
            Held::Message(_, message) | Held::Moved(message) => Some(message.clone()),
            Held::Edit(_) | Held::Answers(_) | Held::Asked(_) => None,
        });
        Original::Run(before, messages.collect())
    }

    /// What a summary of it is made of: messages as they entered, whatever later edits show of
    /// them.
    pub(crate) fn material(&self, ledger: &Ledger) -> Vec<Material> {
        let material = self.all.iter().filter_map(|held| match held {
            Held::Message(at, message) => {
                let entered = entered(ledger, *at, message);
                Some(Material::Message(*at, self.by_who_wrote_it(*at, entered)))
            }
            Held::Answers(_) | Held::Moved(_) => None,
            Held::Asked(asked) => Some(Material::Asked(asked.clone())),
            Held::Edit(edit) => earlier(edit).map(Material::Summary),
        });
        material.collect()
    }
}

/// The summary of a fold.
fn earlier(edit: &Edit) -> Option<Earlier> {
    match &edit.kind {
        EditKind::Fold { text, kept, summary, .. } => {
            Some(Earlier::of_fold(text, summary.as_ref(), !kept.is_empty()))
        }
        _ => None,
    }
}

/// A message with the digests that it entered with, and as the host answered. What nobody was ever
/// shown is not told.
fn entered(ledger: &Ledger, at: Position, message: &Arc<Message>) -> Arc<Message> {
    let on_entry = ledger.inside(at).iter().filter_map(|id| ledger.get(*id));
    let digests: Vec<(usize, &str)> = on_entry
        .filter_map(|edit| match &edit.kind {
            EditKind::Digest { block, text, .. } if edit.why == Why::Entry => Some((*block, &**text)),
            EditKind::Answer { block, text, .. } => Some((*block, &**text)),
            _ => None,
        })
        .collect();
    if digests.is_empty() {
        return message.clone();
    }
    let blocks = message.blocks().iter().enumerate().map(|(number, block)| {
        let digest = digests.iter().rev().find(|(digested, _)| *digested == number);
        match (block, digest) {
            (Block::ToolResult(result), Some((_, text))) => Block::ToolResult(ToolResult {
                id: result.id.clone(),
                name: result.name.clone(),
                text: (*text).into(),
                content: None,
                // What the host answered is no error, whatever the client said.
                is_error: result.is_error && ledger.answer(at, number).is_none(),
                extra: Extra::NONE,
            }),
            _ => block.clone(),
        }
    });
    Arc::new(message.clone_with(message.role(), blocks.collect()))
}
