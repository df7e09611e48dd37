//! What runs of the log hold when a fold or a hide takes them: messages that no edit has taken
//! yet, and the edits that took the others, in the order of the log.

use std::sync::Arc;

use super::value::Earlier;
use super::{Asked, Material};
use crate::conversation::json::Extra;
use crate::conversation::log::{Log, Position, Span};
use crate::conversation::message::{Block, Message, Role, ToolResult};
use crate::edits::archive::{Handle, Original};
use crate::edits::edit::{Edit, EditId, EditKind, Why};
use crate::edits::ledger::{Ledger, Stretch};

/// What runs hold, in the order of the log.
#[derive(Debug, Default)]
pub(crate) struct Covered {
    all: Vec<Held>,
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
    /// Between two runs stands something that is not covered.
    Gap,
    /// What the person asked before messages that begin in the middle of a turn.
    Asked(Asked),
}

impl Covered {
    /// What these runs hold, by the edits that are in the ledger now.
    pub(crate) fn of(log: &Log, ledger: &Ledger, spans: &[Span]) -> Self {
        let (mut all, mut told): (Vec<Held>, Vec<Span>) = (Vec::new(), Vec::new());
        for (number, span) in spans.iter().enumerate() {
            if number > 0 {
                all.push(Held::Gap);
            }
            for stretch in ledger.stretches(*span) {
                match stretch {
                    Stretch::Edit(id) => all.extend(ledger.get(id).cloned().map(Held::Edit)),
                    Stretch::Messages(span) => {
                        // What it answers was asked before it: outside, or in what an edit has taken.
                        let asked = log.request_before(span.start);
                        let asked = asked.filter(|at| !told.iter().any(|told| told.contains(*at)));
                        all.extend(asked.map(|at| {
                            let stands = !spans.iter().any(|span| span.contains(at));
                            Held::Asked(Asked { at, message: log.messages()[at.index()].clone(), stands })
                        }));
                        told.push(span);
                        all.push(Held::Answers(ledger.answers_in(span).collect()));
                        let messages = log.messages()[span.range()].iter().cloned();
                        let messages = messages.zip((span.start.0..).map(Position));
                        all.extend(messages.map(|(message, at)| match log.is_moved(at) {
                            true => Held::Moved(message),
                            false => Held::Message(at, message),
                        }));
                    }
                }
            }
        }
        Self { all }
    }

    fn edits(&self) -> impl Iterator<Item = &Arc<Edit>> {
        self.all.iter().filter_map(|held| match held {
            Held::Edit(edit) => Some(edit),
            Held::Message(..) | Held::Moved(_) | Held::Answers(_) | Held::Asked(_) | Held::Gap => None,
        })
    }

    /// Messages that no edit has taken yet, for a summariser. What a system message sets for its turn is
    /// none of the conversation.
    pub(crate) fn messages(&self) -> Vec<Arc<Message>> {
        let messages = self.all.iter().filter_map(|held| match held {
            Held::Message(_, message) => {
                Some(message.clone()).filter(|message| message.role() != Role::System)
            }
            Held::Moved(_) | Held::Edit(_) | Held::Answers(_) | Held::Asked(_) | Held::Gap => None,
        });
        messages.collect()
    }

    /// How many messages of the log it is, those inside earlier edits included.
    pub(crate) fn count(&self) -> usize {
        let count = |held: &Held| match held {
            Held::Message(..) | Held::Moved(_) => 1,
            Held::Edit(edit) => edit.kind.spans().iter().map(|span| span.len()).sum(),
            Held::Answers(_) | Held::Asked(_) | Held::Gap => 0,
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
            Held::Message(..) | Held::Moved(_) | Held::Asked(_) | Held::Gap => &[],
        });
        let before = before.copied().collect();
        let messages = self.all.iter().filter_map(|held| match held {
            Held::Message(_, message) | Held::Moved(message) => Some(message.clone()),
            Held::Edit(_) | Held::Answers(_) | Held::Asked(_) | Held::Gap => None,
        });
        Original::Run(before, messages.collect())
    }

    /// What a summary of it is made of: messages as they entered, whatever later edits show of
    /// them.
    pub(crate) fn material(&self, ledger: &Ledger) -> Vec<Material> {
        let material = self.all.iter().filter_map(|held| match held {
            Held::Message(at, message) => Some(Material::Message(*at, entered(ledger, *at, message))),
            Held::Gap => Some(Material::Gap),
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
                is_error: result.is_error,
                extra: Extra::NONE,
            }),
            _ => block.clone(),
        }
    });
    Arc::new(message.clone_with(message.role(), blocks.collect()))
}
