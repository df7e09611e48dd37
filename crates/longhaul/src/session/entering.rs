//! Messages on their way in: what follows from a message before it is ever sent. A result that is too
//! large or noisy enters shorter, and marks in a text ask for a pin or a compaction.

use std::sync::Arc;

use super::Session;
use super::journal::Entry;
use crate::conversation::log::Position;
use crate::conversation::message::{Block, Message, Role, ToolCall, ToolResult};
use crate::conversation::observed::looks_observed;
use crate::digest::{self, Most, Outputs};
use crate::edits::archive::Original;
use crate::edits::edit::{EditKind, Why};
use crate::text::names::names;
use crate::view::keep;

impl Session {
    /// Appends a message and counts it, once. A result that is too large enters cut.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) -> Position {
        let message = message.into();
        let at = self.log().end();
        self.record(Entry::Message(message));
        self.entered(at);
        // Each message takes its own time: the request behind a long step is not the one that waits for all of it.
        self.uses.follow(&self.state.log, &self.profile.aliases);
        at
    }

    /// Decides what follows from a message that has just come.
    pub(super) fn entered(&mut self, at: Position) {
        if let Some(message) = self.log().get(at).cloned() {
            self.look_for_marks(at, &message);
        }
        self.pin_task(at);
        self.enter_results(at);
    }

    /// Decides how the results of a message enter. What was decided is not decided again.
    pub(super) fn enter_results(&mut self, at: Position) {
        let Some(message) = self.log().get(at).cloned() else { return };
        for (block, content) in message.blocks().iter().enumerate() {
            if let Block::ToolResult(result) = content
                && self.ledger().shown(at, block).is_none()
            {
                self.enter(at, &message, block, result);
            }
        }
    }

    /// Decided once, before it was ever sent: such an edit breaks no prefix.
    pub(super) fn enter(&mut self, at: Position, message: &Arc<Message>, block: usize, result: &ToolResult) {
        let cut = self.profile.cut;
        if result.text.len() <= cut.bytes.min(cut.characters).min(cut.lines) && !self.profile.entry_digests {
            return;
        }
        let call = self.log().call_of(at, result);
        // A program reads it: half of it would be data that is wrong.
        if call.is_some_and(ToolCall::is_made_by_program) {
            return;
        }
        let original = Original::Block(message.clone(), block);
        let handle = || original.handle();
        let text = if self.profile.entry_digests {
            let outputs = Outputs::of(call, &result.text, result.content.as_deref(), &self.profile.aliases);
            let most = Most { any: cut.bytes, output: self.profile.long_output() };
            let known = |text| names(text).filter(|name| self.uses.is_of_model(name)).collect();
            outputs.digest(&result.text, |text, tool, subject| {
                digest::entry(text, tool, subject, most, known, handle)
            })
        } else {
            None
        };
        let name = call.map_or("tool", |call| &call.name);
        let text = match text {
            Some(text) => Some(cut.apply(&text, name, handle).unwrap_or(text)),
            None => cut.apply(&result.text, name, handle),
        };
        if let Some(text) = text {
            let kind = EditKind::Digest { at, block, text: text.into() };
            // Refused only where a tool of the provider must stay as it is.
            _ = self.edit_inside(kind, original, "entry", Why::Entry);
        }
    }

    /// Pins the first request as a whole, where nobody is there to answer and the profile heeds pins.
    pub(super) fn pin_task(&mut self, at: Position) {
        let is_task = self.log().goal_message() == Some(at);
        if is_task && self.state.unattended && self.profile.pin_mark {
            let task = self.log().get(at).map(|message| keep::words_of(message));
            task.into_iter().for_each(|task| self.pin(keep::pin_name(at), task));
        }
    }

    /// What a message itself asks for: text to be pinned, a compaction.
    pub(super) fn look_for_marks(&mut self, at: Position, message: &Message) {
        match message.role() {
            Role::User => {
                // In doubt nothing is pinned: a pin is for good.
                if self.profile.pin_mark && !looks_observed(self.log(), at) {
                    self.look_for_pins(at, message);
                }
                if self.profile.triggers.summary_mark && message.words().any(asks_for_summary) {
                    self.compact_now();
                }
            }
            Role::Assistant => {
                let Some(mark) = &self.profile.triggers.mark else { return };
                if message.texts().flat_map(str::lines).any(|line| line.trim() == &**mark) {
                    self.record(Entry::Asked { focus: None, by_model: true });
                }
            }
            _ => {}
        }
    }

    /// Pins what follows `<Pin>` in a person's words.
    fn look_for_pins(&mut self, at: Position, message: &Message) {
        let pinned: Vec<String> = message
            .words()
            .filter_map(|text| text.split_once("<Pin>"))
            .map(|(_, text)| text.replace("</Pin>", "").trim().to_owned())
            .filter(|text| !text.is_empty())
            .collect();
        if !pinned.is_empty() {
            self.pin(keep::pin_name(at), pinned.join("\n"));
        }
    }
}

/// True if a person's words have `<Summary>` outside of code: in code it is somebody's element.
fn asks_for_summary(words: &str) -> bool {
    let mut in_block = false;
    words.lines().any(|line| {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            in_block = !in_block;
        }
        // Every second piece between back quotes is code.
        !in_block && line.split('`').step_by(2).any(|piece| piece.contains("<Summary>"))
    })
}
