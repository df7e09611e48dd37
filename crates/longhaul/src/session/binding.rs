//! Bound thinking: which prefix produced the signed thinking of each answer, and which of it no longer follows that
//! prefix. What does not is left out of every later request, or the provider refuses them all.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::Session;
use super::journal::{Entry, RecallBy, Signed, Ticket};
use super::state::State;
use crate::conversation::canonical::Head;
use crate::conversation::frame::{Frame, Tool};
use crate::conversation::log::{Log, Position, Span};
use crate::conversation::message::{Block, Message, Role, Seal, Thinking};
use crate::edits::archive::{Handle, Original};
use crate::edits::edit::{EditId, EditKind, Why};
use crate::edits::ledger::Ledger;
use crate::edits::unbound::{self, Excerpt, LostThinking, Runs, Unbound};
use crate::size::tokens::Tokens;
use crate::view::prefix::{Bound, Chain, Prefix};
use crate::view::{Part, Source, View};

/// So many requests may wait for their answers.
const WAITING: usize = 64;

/// What produced the signed thinking of a message.
#[derive(Debug, Clone)]
struct Origin {
    at: Position,
    producer: Producer,
    /// The signature before its own, in what produced it: a provider wants the same one there, or none at all.
    after: Option<Handle>,
    /// Its own signatures follow each other as they were made.
    is_run: bool,
    /// The last of them.
    seal: Handle,
}

/// What stood before thinking when it was signed.
#[derive(Debug, Clone)]
enum Producer {
    /// A request of ours.
    Request(Prefix),
    /// The client's own messages, after this head.
    Client(Arc<Head>),
}

/// Signed thinking and its prefixes, as the journal says.
#[derive(Debug, Clone, Default)]
pub(super) struct Binding {
    /// Messages that came with signed thinking, in order, and what produced it.
    origins: Vec<Origin>,
    /// Of them, those whose thinking may still be shown.
    signed: Vec<Position>,
    /// Requests whose answers may still come, newest last.
    waiting: VecDeque<(Ticket, Bound)>,
    /// What the host reported of answers whose messages have not come yet, by seal.
    answered: HashMap<Handle, Bound>,
    /// The host reports answers: one that was not reported was not given to a request of ours.
    host_reports: bool,
    /// What the answer to the newest request is bound to, and how many messages there were then.
    last: Option<(Bound, Position)>,
    /// How many messages there were when a request was sent last.
    sent_end: Position,
    /// The prefixes of the view, as it was checked last.
    view: Chain,
    /// The prefixes of the messages as they came.
    came: Chain,
    /// System prompt and tools of the newest frame, by its place in the log.
    head: Option<(Option<usize>, Arc<Head>)>,
    /// The tool that the host adds to those of its client, and the newest head without it.
    added_tool: Option<Box<str>>,
    client_head: Option<(Option<usize>, Arc<Head>)>,
    /// The head that the view was checked with.
    checked: Option<Arc<Head>>,
    /// What the provider has refused.
    refused: Runs,
    /// Of messages as they came, after a head: how many of the first with signed thinking follow what produced it, and
    /// whether the next one does not.
    outside: Option<(Arc<Head>, usize, bool)>,
}

impl Binding {
    /// `log` is the log before the entry.
    pub(super) fn apply(&mut self, entry: &Entry, log: &Log) {
        match entry {
            Entry::Message(message) => self.came(message, log),
            Entry::Sent(sent) => {
                let bound = sent.prefix.map(|prefix| Bound { prefix, after: sent.after });
                (self.last, self.sent_end) = (bound.map(|bound| (bound, log.end())), log.end());
                self.waiting.extend(bound.map(|bound| (sent.ticket, bound)));
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
        let before = std::iter::once(signed.after).chain(signed.seals.iter().copied().map(Some));
        let bound = before.map(|after| Bound { prefix: signed.prefix, after });
        self.answered.extend(signed.seals.iter().copied().zip(bound));
    }

    fn came(&mut self, message: &Message, log: &Log) {
        if message.role() != Role::Assistant {
            return;
        }
        let seals: Vec<Handle> =
            unbound::signed(message).filter_map(|(_, thinking)| seal_of(thinking)).collect();
        let Some(seal) = seals.last().copied() else { return };
        let at = log.end();
        let reported: Vec<Option<Bound>> = seals.iter().map(|seal| self.answered.remove(seal)).collect();
        let follow =
            |(seal, next): (&Handle, &Option<Bound>)| next.is_none_or(|next| next.after == Some(*seal));
        let is_run = seals.iter().zip(&reported[1..]).all(follow);
        let (producer, after) = match reported.into_iter().flatten().next().or(self.answer_to_last(log)) {
            Some(Bound { prefix, after }) => (Producer::Request(prefix), after),
            None => {
                let before = self.signed.last().and_then(|at| self.origin_of(*at));
                let after = before.map(|before| before.seal);
                (Producer::Client(self.client_head(log)), after)
            }
        };
        self.origins.push(Origin { at, producer, after, is_run, seal });
        self.signed.push(at);
    }

    /// What the newest message is bound to if it answers the request that was sent last, as it does where the host reports
    /// no answers.
    fn answer_to_last(&self, log: &Log) -> Option<Bound> {
        // An answer may come as several messages.
        let begins = answer_begins(log, log.end());
        let (last, _) = self.last.filter(|(_, end)| !self.host_reports && end.index() >= begins)?;
        let is_of_answer = |earlier: &&Origin| {
            earlier.at.index() >= begins
                && matches!(earlier.producer, Producer::Request(prefix) if prefix == last.prefix)
        };
        let earlier = self.origins.last().filter(is_of_answer).map(|earlier| earlier.seal);
        Some(Bound { after: earlier.or(last.after), ..last })
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

    /// What the answer to a request is bound to, if it may still come.
    fn bound_of(&self, ticket: Ticket) -> Option<Bound> {
        self.waiting.iter().rev().find(|(waiting, _)| *waiting == ticket).map(|(_, bound)| *bound)
    }

    /// What an answer to the view is bound to.
    pub(super) fn bound(&mut self, view: &View, log: &Log) -> Bound {
        let head = self.head(log);
        self.view.follow(view);
        let prefix = match view.tail() {
            Some(tail) => self.view.prefix_with(&head, &tail.message),
            None => self.view.prefix(&head, self.view.len()),
        };
        Bound { prefix, after: self.last_seal(view.parts()) }
    }

    /// The last signature in parts of a view.
    fn last_seal(&self, parts: &[Part]) -> Option<Handle> {
        let first = self.signed.first()?;
        let messages = parts.iter().rev().filter_map(|part| match part.source {
            Source::Message(at) => Some((at, part)),
            _ => None,
        });
        let signed = messages
            .take_while(|(at, _)| at >= first)
            .filter(|(_, part)| unbound::signed(&part.message).next().is_some());
        signed.filter_map(|(at, _)| self.origin_of(at)).next().map(|origin| origin.seal)
    }

    fn head(&mut self, log: &Log) -> Arc<Head> {
        let place = log.frame_place();
        match &self.head {
            Some((known, head)) if *known == place => head.clone(),
            _ => {
                let head = Arc::new(log.frame().map(Head::of).unwrap_or_default());
                self.head = Some((place, head.clone()));
                head
            }
        }
    }

    /// What the client sends before its messages: a host that reports answers may have added a tool to that.
    fn client_head(&mut self, log: &Log) -> Arc<Head> {
        let added = self.added_tool.as_deref().filter(|_| self.host_reports);
        let is_added = |tool: &Tool| Some(&*tool.name) == added;
        let Some(frame) = log.frame().filter(|frame| frame.tools.iter().any(is_added)) else {
            return self.head(log);
        };
        let place = log.frame_place();
        match &self.client_head {
            Some((known, head)) if *known == place => head.clone(),
            _ => {
                let tools = frame.tools.iter().filter(|tool| !is_added(tool)).cloned().collect();
                let head = Arc::new(Head::of(&Frame { tools, ..frame.clone() }));
                self.client_head = Some((place, head.clone()));
                head
            }
        }
    }

    /// The first message of the view whose signed thinking does not follow the prefix that produced it, or not the thinking
    /// that stood before it then.
    fn first_stale(&mut self, view: &View, log: &Log) -> Option<Position> {
        let (parts, head) = (view.parts(), self.head(log));
        let same = self.view.follow(view);
        let first = if self.checked.as_ref() == Some(&head) { same } else { 0 };
        self.checked = Some(head.clone());
        if self.signed.is_empty() {
            return None;
        }
        let at = |part: usize| match parts[part].source {
            Source::Message(at) => Some(at),
            _ => None,
        };
        // The last signature before the part, once there is one to compare.
        let mut before: Option<Option<Handle>> = None;
        for part in first..parts.len() {
            let Some(here) = at(part) else { continue };
            let is_shown = unbound::signed(&parts[part].message).next().is_some();
            let Some(origin) = self.origin_of(here).filter(|_| is_shown).cloned() else { continue };
            if let Producer::Client(_) = origin.producer {
                self.came.extend_from(usize::MAX, log.messages().iter());
            }
            // Messages of the model that follow each other are one answer, or a long one that went on when it was sent
            // back.
            let is_answer = |part: usize| parts[part].message.role() == Role::Assistant;
            let begins = (0..part).rev().take_while(|part| is_answer(*part) && at(*part).is_some()).last();
            let follows = |begins: usize| match &origin.producer {
                Producer::Request(prefix) => self.view.prefix(&head, begins) == *prefix,
                Producer::Client(produced) => {
                    let came = at(begins).map_or(0, Position::index);
                    self.view.prefix(&head, begins) == self.came.prefix(produced, came)
                }
            };
            let before = before.get_or_insert_with(|| self.last_seal(&parts[..part]));
            let is_next = origin.is_run && (before.is_none() || *before == origin.after);
            if !is_next || !follows(part) && !begins.is_some_and(follows) {
                return Some(here);
            }
            *before = Some(origin.seal);
        }
        None
    }

    /// If the client sends all messages as they came: the number of messages with signed thinking, from the first on,
    /// whose thinking follows the prefix that produced it and was not refused. `None` if that holds for all of them and
    /// for the answer that is awaited.
    fn kept_outside(&mut self, log: &Log) -> Option<usize> {
        let head = self.client_head(log);
        let (mut right, is_stale) = match &self.outside {
            Some((known, right, is_stale)) if *known == head => (*right, *is_stale),
            _ => (0, false),
        };
        if !is_stale {
            self.came.extend_from(usize::MAX, log.messages().iter());
            while let Some(origin) = self.origins.get(right) {
                let at = origin.at;
                let stands = |begins: usize| self.came.prefix(&head, begins);
                let is_right = match &origin.producer {
                    Producer::Request(prefix) => {
                        let is_next = origin.is_run && self.is_right_behind(right, origin.after);
                        is_next
                            && (stands(at.index()) == *prefix || stands(answer_begins(log, at)) == *prefix)
                    }
                    Producer::Client(produced) => {
                        let begins = answer_begins(log, at);
                        stands(begins) == self.came.prefix(produced, begins)
                    }
                };
                if !is_right || self.refused.contains(at) {
                    break;
                }
                right += 1;
            }
        }
        let is_stale = right < self.origins.len();
        self.outside = Some((head.clone(), right, is_stale));
        if is_stale {
            return Some(right);
        }
        // The answer to the newest request may come next.
        let (sent, _) = self.last.filter(|(_, end)| *end == log.end())?;
        self.came.extend_from(usize::MAX, log.messages().iter());
        let is_next = self.is_right_behind(right, sent.after);
        (!is_next || self.came.prefix(&head, log.messages().len()) != sent.prefix).then_some(right)
    }

    /// Whether thinking that was produced right behind `after` stands there where all messages stand as they came, as the
    /// one of this number: what was left out of the request stands there again.
    fn is_right_behind(&self, number: usize, after: Option<Handle>) -> bool {
        let before = number.checked_sub(1).and_then(|before| self.origins.get(before));
        before.is_none_or(|before| after == Some(before.seal))
    }

    /// The same for any view, from scratch.
    pub(super) fn stale_in(&self, view: &View, log: &Log) -> Option<Position> {
        let (view_of, came) = (Chain::default(), Chain::default());
        Self { view: view_of, came, checked: None, ..self.clone() }.first_stale(view, log)
    }

    fn origin_of(&self, at: Position) -> Option<&Origin> {
        let known = self.origins.binary_search_by_key(&at, |origin| origin.at).ok()?;
        self.origins.get(known)
    }

    /// What thinking of messages from a place of the log on is bound to.
    fn produced_from(&self, from: Position, log: &Log) -> Vec<(Position, Bound)> {
        let first = self.origins.partition_point(|origin| origin.at < from);
        let mut came = Chain::default();
        let bound = |origin: &Origin| {
            let prefix = match &origin.producer {
                Producer::Request(prefix) => *prefix,
                Producer::Client(head) => {
                    came.extend_from(usize::MAX, log.messages().iter());
                    came.prefix(head, answer_begins(log, origin.at))
                }
            };
            (origin.at, Bound { prefix, after: origin.after })
        };
        self.origins[first..].iter().map(bound).collect()
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
        if let Some(bound) = self.state.binding.bound_of(ticket).filter(|_| !seals.is_empty()) {
            self.record(Entry::Signed(Signed { prefix: bound.prefix, after: bound.after, seals }));
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
        let Binding { origins, answered, .. } = &self.state.binding;
        // What is known is looked at in full only where something is.
        let is_known = origins.iter().any(|origin| seals.contains(&origin.seal))
            || answered.keys().any(|seal| seals.contains(seal));
        if !is_known {
            return Vec::new();
        }
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
        binding.origins.get(kept).map(|origin| origin.at)
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
        let signed = produced.into_iter().filter_map(|(at, Bound { prefix, after })| {
            let thinking = unbound::signed(self.log().get(at)?);
            let seals = thinking.filter_map(|(_, thinking)| seal_of(thinking)).collect();
            Some(Signed { prefix, after, seals })
        });
        // The newest answer may have been reported, and come with another message before it.
        let mut awaited: Vec<(Handle, Bound)> =
            self.state.binding.answered.iter().map(|(seal, bound)| (*seal, *bound)).collect();
        awaited.sort_unstable_by_key(|(seal, _)| *seal);
        let awaited = awaited.into_iter().map(|(seal, Bound { prefix, after })| Signed {
            prefix,
            after,
            seals: vec![seal],
        });
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
            origins.last().filter(|last| last.at >= *first && matches!(last.producer, Producer::Client(_)));
        let Some((first, last)) = of_client.map(|last| (*first, last.at)) else { return };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::json::{Extra, Json};
    use crate::edits::edit::{Edit, EditPrice};
    use crate::edits::guard::{Audited, Rule};
    use crate::policy::profile::Profile;
    use crate::session::Prepared;
    use crate::size::models::Models;

    /// covers: DESIGN rule 12.
    #[test]
    fn an_audit_finds_a_gap_in_the_thinking_and_the_next_request_has_none() {
        let mut session =
            Session::new(Profile::longhaul(), Models::builtin().find("claude-opus-5-5").clone());
        let prepare = |session: &mut Session| assert!(matches!(session.prepare(None), Ok(Prepared::Send(_))));
        let shown = |session: &Session| {
            let parts = session.view().parts().iter();
            parts.filter(|part| unbound::signed(&part.message).next().is_some()).count()
        };
        session.push(Message::user("Mend the parser."));
        for n in 0..4 {
            prepare(&mut session);
            let seal = Seal::Signed(format!("s{n}").into());
            let thinking = Block::Thinking(Thinking { text: "Hm.".into(), seal, extra: Extra::NONE });
            let call = Block::call(format!("c{n}"), "Read", Json::empty_object());
            session.push(Message::new(Role::Assistant, vec![thinking, call]));
            session.push(Message::result(format!("c{n}"), "text"));
        }
        prepare(&mut session);
        assert_eq!((session.audit(), shown(&session)), (vec![], 4));
        let (id, why, kind) =
            (session.ledger().next_id(), Why::Refused, EditKind::DropThinking { at: Position(3) });
        session.force(Edit {
            id,
            kind,
            strategy: "test".into(),
            why,
            before: Tokens(5),
            after: Tokens(0),
            price: EditPrice::default(),
            originals: vec![],
            depends: vec![],
            voice: None,
        });
        let found = session.audit_view(&mut Audited::default());
        let found: Vec<_> = found.iter().filter(|found| found.rule == Rule::BoundThinking).collect();
        assert_eq!((found.len(), shown(&session)), (1, 3));
        assert!(found[0].what.starts_with("thinking of message 5 does not follow"), "{}", found[0].what);
        // What came after the gap goes, and no more.
        prepare(&mut session);
        assert_eq!((session.audit(), shown(&session)), (vec![], 1));
        assert!(!session.ledger().is_unbound(Position(1)));
    }
}
