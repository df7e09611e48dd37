//! Bound thinking: which prefix produced the signed thinking of each answer, and which of it no longer follows that
//! prefix. What does not is left out of every later request, or the provider refuses them all.

use std::collections::{HashMap, HashSet, VecDeque};

use super::Session;
use super::journal::{Entry, RecallBy, Signed, Ticket};
use super::state::State;
use crate::conversation::canonical::{self, Canonical};
use crate::conversation::frame::Tool;
use crate::conversation::log::{Log, Position, Span};
use crate::conversation::message::{Block, Message, Role, Seal, Thinking};
use crate::edits::archive::{Handle, Original};
use crate::edits::edit::{EditId, EditKind, Why};
use crate::edits::ledger::Ledger;
use crate::edits::unbound::{self, Excerpt, LostThinking, Runs, Unbound};
use crate::size::tokens::Tokens;
use crate::view::prefix::{Chain, Prefix};
use crate::view::{Source, View};

/// So many requests may wait for their answers.
const WAITING: usize = 64;

/// What produced the signed thinking of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A request of ours.
    Request(Prefix),
    /// The client's own messages, after this frame.
    Client(Canonical),
}

/// Signed thinking and its prefixes, as the journal says.
#[derive(Debug, Clone, Default)]
pub(super) struct Binding {
    /// Messages that came with signed thinking, in order, and what produced it.
    origins: Vec<(Position, Origin)>,
    /// Of them, those whose thinking may still be shown.
    signed: Vec<Position>,
    /// Requests whose answers may still come, newest last.
    waiting: VecDeque<(Ticket, Prefix)>,
    /// What the host reported of answers whose messages have not come yet, by seal.
    answered: HashMap<Handle, Prefix>,
    /// The host reports answers: one that was not reported was not given to a request of ours.
    host_reports: bool,
    /// The prefix that was sent last, and how many messages there were then.
    last: Option<(Prefix, Position)>,
    /// How many messages there were when a request was sent last.
    sent_end: Position,
    /// The prefixes of the view, as it was checked last.
    view: Chain,
    /// The prefixes of the messages as they came.
    came: Chain,
    /// The newest frame, by its version.
    frame: Option<(usize, Canonical)>,
    /// The tool that the host adds to those of its client, and the newest frame without it.
    added_tool: Option<Box<str>>,
    client_frame: Option<(usize, Canonical)>,
    /// The frame that the view was checked with.
    checked: Option<Canonical>,
    /// What the provider has refused.
    refused: Runs,
    /// Of messages as they came, after a frame: how many of the first with signed thinking follow what produced it, and
    /// whether the next one does not.
    outside: Option<(Canonical, usize, bool)>,
}

impl Binding {
    /// `log` is the log before the entry.
    pub(super) fn apply(&mut self, entry: &Entry, log: &Log) {
        match entry {
            Entry::Message(message) => self.came(message, log),
            Entry::Sent(sent) => {
                (self.last, self.sent_end) = (sent.prefix.map(|prefix| (prefix, log.end())), log.end());
                let waits = sent.prefix.map(|prefix| (sent.ticket, prefix));
                self.waiting.extend(waits);
                if self.waiting.len() > WAITING {
                    self.waiting.pop_front();
                }
            }
            Entry::ReadsSignatures => self.host_reports = true,
            Entry::RecallBy(by) => {
                self.added_tool = match by {
                    RecallBy::Tool(name) => Some(name.clone()),
                    _ => None,
                }
            }
            Entry::Signed(signed) => self.expect(signed),
            Entry::Forked { signed, .. } => signed.iter().for_each(|signed| self.expect(signed)),
            Entry::Unbound(unbound) => {
                self.signed.retain(|at| !unbound.span.contains(*at));
                if unbound.refused {
                    self.refused.add(unbound.span);
                    self.outside = None;
                }
            }
            // What was sent is of the other model.
            Entry::Switched { .. } => {
                (self.last, self.view, self.checked) = (None, Chain::default(), None);
            }
            _ => {}
        }
    }

    fn expect(&mut self, signed: &Signed) {
        self.answered.extend(signed.seals.iter().map(|seal| (*seal, signed.prefix)));
    }

    fn came(&mut self, message: &Message, log: &Log) {
        if message.role() != Role::Assistant {
            return;
        }
        let seals: Vec<Handle> =
            unbound::signed(message).filter_map(|(_, thinking)| seal_of(thinking)).collect();
        if seals.is_empty() {
            return;
        }
        let at = log.end();
        let reported = seals.iter().filter_map(|seal| self.answered.remove(seal)).last();
        // An answer may come as several messages.
        let is_answer = |end: Position| {
            let between = log.messages().get(end.index()..).unwrap_or_default();
            between.iter().all(|message| message.role() == Role::Assistant)
        };
        let last = self.last.filter(|(_, end)| !self.host_reports && is_answer(*end));
        let origin = match reported.or(last.map(|(prefix, _)| prefix)) {
            Some(prefix) => Origin::Request(prefix),
            None => Origin::Client(self.client_frame(log)),
        };
        self.origins.push((at, origin));
        self.signed.push(at);
    }

    /// A request is sent: this is what the next one is compared with.
    pub(super) fn sent(&mut self, view: &View) {
        self.view.follow(view);
    }

    /// The first message whose signed thinking may still be shown.
    pub(super) fn first_signed(&self) -> Option<Position> {
        self.signed.first().copied()
    }

    /// Some message with signed thinking may still be shown.
    pub(super) fn has_signed(&self) -> bool {
        !self.signed.is_empty()
    }

    /// The prefix of a request whose answer may still come.
    pub(super) fn prefix_of(&self, ticket: Ticket) -> Option<Prefix> {
        self.waiting.iter().rev().find(|(waiting, _)| *waiting == ticket).map(|(_, prefix)| *prefix)
    }

    /// Names the whole view.
    pub(super) fn prefix(&mut self, view: &View, log: &Log) -> Prefix {
        let frame = self.frame(log);
        self.view.follow(view);
        let parts = self.view.end();
        match view.tail() {
            Some(tail) => Prefix::of(&frame, &canonical::both(&parts, &canonical::message(&tail.message))),
            None => Prefix::of(&frame, &parts),
        }
    }

    fn frame(&mut self, log: &Log) -> Canonical {
        let version = log.frame_version();
        match self.frame {
            Some((known, frame)) if known == version => frame,
            _ => {
                let frame = log.frame().map(canonical::frame).unwrap_or_default();
                self.frame = Some((version, frame));
                frame
            }
        }
    }

    /// What the client sends before its messages: a host that reports answers may have added a tool to that.
    fn client_frame(&mut self, log: &Log) -> Canonical {
        let added = self.added_tool.as_deref().filter(|_| self.host_reports);
        let is_added = |tool: &Tool| Some(&*tool.name) == added;
        let Some(frame) = log.frame().filter(|frame| frame.tools.iter().any(is_added)) else {
            return self.frame(log);
        };
        let version = log.frame_version();
        match self.client_frame {
            Some((known, frame)) if known == version => frame,
            _ => {
                let mut own = frame.clone();
                own.tools.retain(|tool| !is_added(tool));
                let own = canonical::frame(&own);
                self.client_frame = Some((version, own));
                own
            }
        }
    }

    /// The first message of the view whose signed thinking does not follow the prefix that produced it.
    fn first_stale(&mut self, view: &View, log: &Log) -> Option<Position> {
        let (parts, frame) = (view.parts(), self.frame(log));
        let same = self.view.follow(view);
        let first = if self.checked == Some(frame) { same } else { 0 };
        self.checked = Some(frame);
        if self.signed.is_empty() {
            return None;
        }
        let at = |part: usize| match parts[part].source {
            Source::Message(at) => Some(at),
            _ => None,
        };
        for part in first..parts.len() {
            let Some(here) = at(part) else { continue };
            let is_shown = unbound::signed(&parts[part].message).next().is_some();
            let Some(origin) = self.origin_of(here).filter(|_| is_shown) else { continue };
            if let Origin::Client(_) = origin {
                self.came.extend_from(usize::MAX, log.messages().iter());
            }
            // Messages of the model that follow each other are one answer, or a long one that went on when it was sent
            // back.
            let is_answer = |part: usize| parts[part].message.role() == Role::Assistant;
            let begins = (0..part).rev().take_while(|part| is_answer(*part) && at(*part).is_some()).last();
            let follows = |begins: usize| match origin {
                Origin::Request(prefix) => Prefix::of(&frame, &self.view.before(begins)) == prefix,
                Origin::Client(produced) => {
                    let stands = Prefix::of(&frame, &self.view.before(begins));
                    stands == Prefix::of(&produced, &self.came.before(at(begins).map_or(0, Position::index)))
                }
            };
            if !follows(part) && !begins.is_some_and(follows) {
                return Some(here);
            }
        }
        None
    }

    /// How many of the first messages with signed thinking follow what produced it where all messages stand as they came,
    /// and were not refused; `None` if all are so, and the answer that is awaited too.
    fn kept_outside(&mut self, log: &Log) -> Option<usize> {
        let frame = self.client_frame(log);
        let (mut right, is_stale) = match self.outside {
            Some((known, right, is_stale)) if known == frame => (right, is_stale),
            _ => (0, false),
        };
        if !is_stale {
            self.came.extend_from(usize::MAX, log.messages().iter());
            while let Some((at, origin)) = self.origins.get(right) {
                let stands = |begins: usize| Prefix::of(&frame, &self.came.before(begins));
                let is_right = match origin {
                    Origin::Request(prefix) => {
                        stands(at.index()) == *prefix || stands(answer_begins(log, *at)) == *prefix
                    }
                    Origin::Client(produced) => *produced == frame,
                };
                if !is_right || self.refused.contains(*at) {
                    break;
                }
                right += 1;
            }
        }
        let is_stale = right < self.origins.len();
        self.outside = Some((frame, right, is_stale));
        if is_stale {
            return Some(right);
        }
        // The answer to the newest request may come next.
        let (sent, _) = self.last.filter(|(_, end)| *end == log.end())?;
        self.came.extend_from(usize::MAX, log.messages().iter());
        (Prefix::of(&frame, &self.came.before(log.messages().len())) != sent).then_some(right)
    }

    /// The same for any view, from scratch.
    pub(super) fn stale_in(&self, view: &View, log: &Log) -> Option<Position> {
        let (view_of, came) = (Chain::default(), Chain::default());
        Self { view: view_of, came, checked: None, ..self.clone() }.first_stale(view, log)
    }

    fn origin_of(&self, at: Position) -> Option<Origin> {
        let known = self.origins.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        Some(self.origins[known].1)
    }

    /// What produced the thinking of messages from a place of the log on.
    fn produced_from(&self, from: Position, log: &Log) -> Vec<(Position, Prefix)> {
        let first = self.origins.partition_point(|(at, _)| *at < from);
        let mut came = Chain::default();
        let prefix = |(at, origin): &(Position, Origin)| match origin {
            Origin::Request(prefix) => (*at, *prefix),
            Origin::Client(frame) => {
                came.extend_from(usize::MAX, log.messages().iter());
                (*at, Prefix::of(frame, &came.before(answer_begins(log, *at))))
            }
        };
        self.origins[first..].iter().map(prefix).collect()
    }
}

/// The first message of an answer that came as several.
fn answer_begins(log: &Log, at: Position) -> usize {
    let is_answer = |at: &usize| log.messages()[*at].role() == Role::Assistant;
    (0..at.index()).rev().take_while(is_answer).last().unwrap_or(at.index())
}

/// The handle of a signature.
fn seal_of(thinking: &Thinking) -> Option<Handle> {
    thinking.seal.data().map(Handle::of)
}

impl Session {
    /// The host reports the signatures of every answer by [`signed`](Self::signed), from here on. Without it an answer
    /// counts as given to the request that was sent last.
    pub fn read_signatures(&mut self) {
        if !self.state.binding.host_reports {
            self.record(Entry::ReadsSignatures);
        }
    }

    /// The provider has signed thinking in its answer to a request.
    pub fn signed<'a>(&mut self, ticket: Ticket, seals: impl IntoIterator<Item = &'a str>) {
        let seals: Vec<Handle> = seals.into_iter().map(Handle::of).collect();
        if let Some(prefix) = self.state.binding.prefix_of(ticket).filter(|_| !seals.is_empty()) {
            self.record(Entry::Signed(Signed { prefix, seals }));
        }
    }

    /// True if the host reported this signature of an answer, and no message has come with it yet.
    pub fn awaits_signed(&self, seal: &str) -> bool {
        self.state.binding.answered.contains_key(&Handle::of(seal))
    }

    /// What produced the answers with these signatures, as far as this session knows: for another session of the same
    /// client, which goes on with them.
    pub fn produced(&self, seals: &[String]) -> Vec<Signed> {
        let seals: HashSet<Handle> = seals.iter().map(|seal| Handle::of(seal)).collect();
        let mut known = self.signed_from(Position(0));
        known.retain(|signed| signed.seals.iter().any(|seal| seals.contains(seal)));
        known
    }

    /// Answers to requests of another session are about to come.
    pub fn learn_produced(&mut self, signed: Vec<Signed>) {
        signed.into_iter().for_each(|signed| self.record(Entry::Signed(signed)));
    }

    /// Leaves out all signed thinking from a message on, for good: what stands before it will change.
    pub fn unbind_from(&mut self, at: Position) {
        self.unbind(at, None);
        self.look();
    }

    /// The provider has refused thinking that it had signed or encrypted: that of this message, and of all after it, is
    /// left out for good. What was thought before it stays. Where the provider does not say which thinking it refuses,
    /// `from` is the first message.
    pub fn refused_thinking(&mut self, from: Position) {
        self.look();
        self.leave_out_refused(Span { start: from, end: self.log().end() });
        self.look();
    }

    /// Leaves out what the provider has refused in another session, as far as this one shares it: up to `end`.
    pub(super) fn inherit_refused(&mut self, other: &Ledger, end: Position) {
        // Both have what was refused before they parted.
        let later = other.unbound().skip(self.ledger().unbound().count()).filter(|unbound| unbound.refused);
        let shared = later.map(|unbound| Span { end: unbound.span.end.min(end), ..unbound.span });
        for span in shared.filter(|span| span.start < span.end) {
            self.look();
            self.leave_out_refused(span);
        }
    }

    fn leave_out_refused(&mut self, span: Span) {
        let unbound = Unbound { refused: true, ..self.unbinding(span, None) };
        self.record(Entry::Unbound(unbound.into()));
        self.drop_refused(span);
    }

    /// Drops encrypted reasoning that the provider has refused: no prefix binds it, so that an edit takes it.
    fn drop_refused(&mut self, span: Span) {
        let encrypted =
            |block: &Block| matches!(block, Block::Thinking(t) if matches!(t.seal, Seal::Encrypted(_)));
        let messages = self.log().messages().iter().enumerate().take(span.end.index());
        let encrypted = messages
            .skip(span.start.index())
            .filter(|(_, message)| message.blocks().iter().any(encrypted))
            .map(|(at, message)| (Position(at as u32), message.clone()));
        let shown: Vec<_> = encrypted.filter(|(at, _)| !self.ledger().dropped_thinking(*at)).collect();
        for (at, message) in shown {
            let kind = EditKind::DropThinking { at };
            // Nothing is there where a fold has taken it: if that is undone, `mind_refused` drops it.
            _ = self.edit_inside(kind, Original::Thinking(message), "refused", Why::Refused);
        }
    }

    /// What an undo brings back may hold reasoning that the provider has refused.
    pub(super) fn mind_refused(&mut self) {
        let refused = self.ledger().unbound().filter(|unbound| unbound.refused);
        let spans: Vec<Span> = refused.map(|unbound| unbound.span).collect();
        spans.into_iter().for_each(|span| self.drop_refused(span));
    }

    /// The first message whose signed thinking a model that binds would not accept after the messages as they came: it
    /// was produced by a view of ours, and the client goes on without us. System prompt and tools are taken to stay.
    pub fn stale_outside(&self) -> Option<Position> {
        let mut binding = self.state.binding.clone();
        let kept = binding.kept_outside(self.log())?;
        binding.origins.get(kept).map(|(at, _)| *at)
    }

    /// How many messages with signed thinking may keep it, from the first on, in a request that has all messages as they
    /// came: what was produced by a request of ours would be refused there. `None` if all may, and the answer to the newest
    /// request too.
    pub fn thinking_kept_outside(&mut self) -> Option<usize> {
        let State { binding, log, .. } = &mut self.state;
        binding.kept_outside(log)
    }

    /// The signed thinking that an edit of this message would take with it: how many messages have some, and its
    /// tokens. Nothing for a model that does not bind it.
    pub fn thinking_after(&self, at: Position) -> (usize, Tokens) {
        let shown = self.bound_after(at);
        (shown.len(), shown.iter().map(|(_, tokens)| *tokens).sum())
    }

    pub(super) fn bound_after(&self, from: Position) -> Vec<(Position, Tokens)> {
        if !self.model().binds || !self.state.binding.has_signed() {
            return Vec::new();
        }
        let parts = self.state.view.parts();
        let first = parts.partition_point(|part| part.source.start(self.ledger()) < from);
        let shown = parts[first..].iter().filter_map(|part| match part.source {
            Source::Message(at) => Some((at, part)),
            _ => None,
        });
        let tokens = |message: &Message| {
            let blocks =
                unbound::signed(message).map(|(block, _)| self.meter().block(&message.blocks()[block]));
            self.tokens(blocks.sum())
        };
        // The view may be from before what was left out last.
        let signed = shown.filter(|(at, part)| {
            !self.ledger().is_unbound(*at) && unbound::signed(&part.message).next().is_some()
        });
        signed.map(|(at, part)| (at, tokens(&part.message))).collect()
    }

    /// Leaves out signed thinking that the edit has changed the prefix of.
    pub(super) fn unbind_after(&mut self, edit: EditId) {
        let Some(edit) = self.ledger().get(edit).cloned().filter(|_| self.model().binds) else { return };
        let Some(first) = edit.kind.spans().first().copied() else { return };
        match edit.kind {
            // It comes back with its provider.
            _ if edit.why == Why::Switched => {}
            // Thinking is no part of the prefix: what stands before all other thinking may go alone.
            EditKind::DropThinking { .. } => {
                let (because, tokens, lost) = (Some(edit.id), Tokens::ZERO, Vec::new());
                self.record(Entry::Unbound(
                    Unbound { span: first, because, tokens, lost, refused: false }.into(),
                ));
            }
            _ => self.unbind(first.start, Some(edit.id)),
        }
    }

    /// What produced the answers that came from a place on: they may come to a session that goes its own way there.
    pub(super) fn signed_from(&self, from: Position) -> Vec<Signed> {
        let produced = self.state.binding.produced_from(from, self.log());
        let signed = produced.into_iter().filter_map(|(at, prefix)| {
            let thinking = unbound::signed(self.log().get(at)?);
            Some(Signed { prefix, seals: thinking.filter_map(|(_, thinking)| seal_of(thinking)).collect() })
        });
        // The newest answer may have been reported, and come with another message before it.
        let mut awaited: Vec<(Handle, Prefix)> =
            self.state.binding.answered.iter().map(|(seal, prefix)| (*seal, *prefix)).collect();
        awaited.sort_unstable_by_key(|(seal, _)| *seal);
        let awaited = awaited.into_iter().map(|(seal, prefix)| Signed { prefix, seals: vec![seal] });
        signed.chain(awaited).collect()
    }

    /// Leaves out signed thinking that no longer follows the prefix that produced it, whatever changed that.
    pub(super) fn unbind_stale(&mut self) {
        if !self.model().binds {
            return;
        }
        if self.state.binding.checked.is_none() {
            self.unbind_hidden();
        }
        self.take_back_entry_edits();
        let Self { state, .. } = self;
        if let Some(from) = state.binding.first_stale(&state.view, &state.log) {
            self.unbind(from, None);
            self.follow();
        }
    }

    /// What a model that does not bind was not shown stays out: the answers since were given without it.
    fn unbind_hidden(&mut self) {
        // That of another provider comes back with it.
        let is_hidden = |at: &Position| {
            let is_out = self.ledger().covering(*at).is_some() || self.ledger().dropped_thinking(*at);
            is_out && !self.state.authors.is_foreign(*at)
        };
        let hidden: Vec<Position> = self.state.binding.signed.iter().copied().filter(is_hidden).collect();
        for at in hidden {
            let span = Span { start: at, end: Position(at.0 + 1) };
            let (because, tokens, lost) = (None, Tokens::ZERO, Vec::new());
            self.record(Entry::Unbound(Unbound { span, because, tokens, lost, refused: false }.into()));
        }
    }

    /// What came since the last request with answers that were not given to us is not made shorter: those answers were
    /// given to what the client had sent. So it is when a conversation is joined halfway.
    fn take_back_entry_edits(&mut self) {
        let Binding { origins, sent_end: first, .. } = &self.state.binding;
        let of_client =
            origins.last().filter(|(at, origin)| at >= first && matches!(origin, Origin::Client(_)));
        let Some((first, last)) = of_client.map(|(at, _)| (*first, *at)) else { return };
        let is_between = |span: &Span| span.start >= first && span.start < last;
        let of_entry = self.ledger().edits().filter(|(edit, active)| {
            *active && edit.why == Why::Entry && edit.kind.spans().iter().all(is_between)
        });
        let early: Vec<EditId> = of_entry.map(|(edit, _)| edit.id).collect();
        if early.is_empty() {
            return;
        }
        early.into_iter().for_each(|edit| self.record(Entry::Undo { edit, held: false }));
        self.follow();
    }

    fn unbind(&mut self, from: Position, because: Option<EditId>) {
        let known = self.state.binding.signed.last().is_some_and(|at| *at >= from);
        if !known {
            return;
        }
        let unbound = self.unbinding(Span { start: from, end: self.log().end() }, because);
        self.record(Entry::Unbound(unbound.into()));
    }

    /// What leaving out the signed thinking of a run takes from the view.
    fn unbinding(&self, span: Span, because: Option<EditId>) -> Unbound {
        let spans = because.and_then(|edit| self.ledger().get(edit)).map(|edit| edit.kind.spans());
        let inside = |at: Position| spans.iter().flatten().any(|span| span.contains(at));
        let mut shown = self.bound_after(span.start);
        shown.retain(|(at, _)| span.contains(*at) && !inside(*at));
        let lost = shown.iter().filter_map(|(at, _)| {
            let message = self.log().get(*at)?;
            let original = Original::Thinking(message.clone()).handle();
            Some(LostThinking { at: *at, original, excerpts: self.excerpts_of(message) })
        });
        let lost = lost.collect();
        let tokens = shown.iter().map(|(_, tokens)| *tokens).sum();
        Unbound { span, because, tokens, lost, refused: false }
    }

    /// What stays of the thinking of a message: the beginning of each text.
    fn excerpts_of(&self, message: &Message) -> Vec<Excerpt> {
        let most = self.profile.thinking_excerpt;
        let texts = unbound::signed(message).filter_map(|(block, thinking)| {
            let text = thinking.text.trim();
            let end = text.char_indices().nth(most).map_or(text.len(), |(end, _)| end);
            let cut = if end < text.len() { "…" } else { "" };
            let text = format!("{}{cut}", text[..end].trim_end());
            (!text.is_empty() && text != cut).then(|| Excerpt { block, text: text.into() })
        });
        texts.collect()
    }
}
