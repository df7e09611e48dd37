//! Recorded sessions through the engine: what Longhaul would have sent for the same calls, and how much of what they
//! needed was still there. The recorded agent's own context is measured beside it.

use std::path::Path;
use std::sync::Arc;

use longhaul::{Message, Role, Tokens, Usage};
use longhaul_wire::agents::KEPT_MESSAGES;
use serde::{Deserialize, Serialize};

use super::bill::Prices;
use super::comparison::Settings;
use super::conversation::{Call, Conversation};
use super::totals::Times;
use crate::lab::needs::{Found, Holdings, Needs, Piece, text_of};
use crate::lab::opencode_store;
use crate::lab::pieces::PieceCache;
use crate::lab::recorded::{MeterKind, RecordedSession};

/// A session that was replayed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    /// Calls by model: as recorded, and as Longhaul would have sent them. A call here is a sum of calls.
    pub recorded: Vec<(String, Call)>,
    pub sent: Vec<(String, Call)>,
    pub calls: u64,
    /// Calls that no view fitted for.
    pub errors: u64,
    /// Edits that were made.
    pub edits: u64,
    /// What the calls needed and found, in the recorded context and in ours.
    pub recorded_found: Found,
    pub found: Found,
}

impl Replayed {
    pub fn add(&mut self, other: &Self) {
        other.recorded.iter().for_each(|(model, call)| add(&mut self.recorded, model, call));
        other.sent.iter().for_each(|(model, call)| add(&mut self.sent, model, call));
        self.calls += other.calls;
        self.errors += other.errors;
        self.edits += other.edits;
        self.recorded_found.add(other.recorded_found);
        self.found.add(other.found);
    }

    /// Dollars × 10¹²: as recorded, and as sent by Longhaul.
    pub fn pico(&self, prices: &mut Prices) -> [u128; 2] {
        [&self.recorded, &self.sent]
            .map(|calls| calls.iter().map(|(model, call)| prices.bill(call, model).pico).sum())
    }

    /// Prompt tokens: as recorded, and as sent by Longhaul.
    pub fn prompts(&self) -> [u64; 2] {
        [&self.recorded, &self.sent].map(|calls| calls.iter().map(|(_, call)| call.prompt()).sum())
    }
}

fn add(to: &mut Vec<(String, Call)>, model: &str, call: &Call) {
    let at = to.iter().position(|(known, _)| known == model).unwrap_or_else(|| {
        to.push((model.to_owned(), Call::default()));
        to.len() - 1
    });
    let sum = &mut to[at].1;
    sum.input += call.input;
    sum.read += call.read;
    sum.write += call.write;
    sum.write_1h += call.write_1h;
    sum.output += call.output;
}

/// The window that a session is replayed in: what was asked for, else 200,000 tokens. If the session went beyond, the one
/// that its compactions show, or the model's own.
pub fn window(asked: Option<u64>, conversation: &Conversation) -> Tokens {
    const USUAL: u64 = 200_000;
    let peak = conversation.calls.iter().map(|call| call.prompt() + call.output).max().unwrap_or_default();
    let model = conversation.models.first().map(String::as_str).unwrap_or_default();
    let own = longhaul::Models::builtin().find(model).window.0;
    let found = match () {
        () if peak <= USUAL => own.min(USUAL),
        // Agents compact when about nine tenths are full.
        () if !conversation.compactions.is_empty() => (peak / 9 * 10).min(own.max(peak)),
        () => own.max(peak),
    };
    Tokens(asked.unwrap_or(found))
}

/// Which conversation is replayed.
pub struct Recording<'a> {
    pub path: &'a Path,
    /// Its number in the file.
    pub number: usize,
    /// The name of its session, where the file is a store.
    pub session: Option<&'a str>,
}

/// Replays a conversation. `None` if it cannot be read, or has no call with usage.
pub fn replay(
    recording: &Recording<'_>,
    settings: Settings<'_>,
    window: Tokens,
    lifetime: Option<u64>,
) -> Option<Replayed> {
    let reader = opencode_store::open_any(recording.path, recording.session).ok()?;
    let mut replay = Replay::new(settings, window, lifetime);
    // Of a store the session is the only one that is read.
    let number = if recording.session.is_some() { 0 } else { recording.number };
    for (_, message) in reader.flatten().filter(|(conversation, _)| *conversation == number) {
        replay.message(message);
    }
    (replay.out.calls > 0).then_some(replay.out)
}

struct Replay {
    session: RecordedSession,
    lifetime: Option<u64>,
    times: Times,
    edits_seen: u32,
    needs: Needs,
    pieces: PieceCache,
    ours: Holdings,
    /// The context of the recorded agent: the log since its last compaction, and its summary.
    theirs: Holdings,
    context: Vec<Arc<Piece>>,
    /// The recorded prompt of the call before, unless the agent compacted since.
    recorded_before: Option<u64>,
    /// Our prompt of the call before.
    sent_before: u64,
    out: Replayed,
}

impl Replay {
    fn new(settings: Settings<'_>, window: Tokens, lifetime: Option<u64>) -> Self {
        let mut session = RecordedSession::new(settings.profile.clone(), "", window, MeterKind::Model)
            .with_prices(settings.prices);
        lifetime.into_iter().for_each(|seconds| session.set_cache_lifetime(seconds));
        Self {
            session,
            lifetime,
            times: settings.times,
            edits_seen: 0,
            needs: Needs::new(|text| text.len() as f64),
            pieces: PieceCache::default(),
            ours: Holdings::default(),
            theirs: Holdings::default(),
            context: Vec::new(),
            recorded_before: None,
            sent_before: 0,
            out: Replayed::default(),
        }
    }

    fn message(&mut self, message: Message) {
        if message.is_recorded_compaction() {
            self.session.was_compacted();
            self.recorded_before = None;
            if message.recorded_compaction() == Some(longhaul::conversation::RecordedCompaction::Boundary) {
                // What the agent kept beside its summary is still there.
                let kept = message.extra().get(KEPT_MESSAGES).and_then(|kept| kept.as_str().parse().ok());
                let gone = self.context.len().saturating_sub(kept.unwrap_or(0));
                self.context.drain(..gone);
            } else {
                let piece = self.needs.piece(&text_of(&message));
                self.context.push(piece);
            }
            return;
        }
        let billed = message.usage().is_some_and(|usage| usage.prompt() > Tokens::ZERO);
        if message.role() == Role::Assistant && billed {
            self.call(&message);
        }
        let text = text_of(&message);
        self.needs.push(&message, &text);
        let piece = self.needs.piece(&text);
        self.context.push(piece);
        self.session.push(message);
    }

    /// Tokens of the view that are read from the cache, and the others. The cache is as it was recorded: of what the
    /// request before had in common with this one, the share is read that was read of the recorded one.
    fn billed(&mut self, usage: &Usage) -> (u64, u64) {
        let Some(sent) = self.session.session().sent() else { return (0, 0) };
        let overhead = self.session.overhead_tokens().0;
        let all = sent.billed.read.0 + sent.billed.written.0 + overhead;
        let recorded = usage.prompt().0;
        let read = match self.recorded_before.filter(|_| self.sent_before > 0) {
            // What others had sent before: a system prompt like this one.
            None if self.sent_before == 0 => usage.cache_read.min(overhead),
            before => {
                let common = match (sent.cold, sent.broke) {
                    (false, _) => sent.billed.read.0 + overhead,
                    (true, false) => self.sent_before.min(all),
                    (true, true) => overhead,
                };
                // Behind a compaction nobody knows; the cache is taken to be there.
                let share = before.map_or(1.0, |before| {
                    let possible = before.min(recorded).max(1);
                    (usage.cache_read as f64 / possible as f64).min(1.0)
                });
                (common as f64 * share).round() as u64
            }
        };
        self.recorded_before = Some(recorded);
        self.sent_before = all;
        (read.min(all), all - read.min(all))
    }

    /// What would be sent to get this answer, beside what was.
    fn call(&mut self, answer: &Message) {
        let Some(usage) = answer.usage() else { return };
        let model = answer.model().unwrap_or_default();
        let prepared = self.session.prepare_for(answer);
        // Those of results that came since the call before, too.
        let edits = self.session.session().ledger().next_id().0;
        let new = u64::from(edits.saturating_sub(std::mem::replace(&mut self.edits_seen, edits)));
        let counts = self.times.has(answer.time().map_or(0, |time| time.0 / 1_000_000));
        if counts {
            self.out.edits += new;
            self.out.calls += 1;
            self.out.errors += u64::from(prepared.is_err());
        }
        if prepared.is_err() {
            return;
        }
        self.session.learn(answer);
        let (read, written) = self.billed(usage);
        if !counts {
            return;
        }
        // Where nothing is written to a cache, what is new is plain input.
        let (input, write) = if usage.cache_write > 0 { (0, written) } else { (written, 0) };
        let for_an_hour =
            |write| if self.lifetime.is_some_and(|seconds| seconds >= 3_600) { write } else { 0 };
        let output = usage.output;
        let ours = Call { input, read, write, write_1h: for_an_hour(write), output, ..Call::default() };
        add(&mut self.out.sent, model, &ours);
        let theirs = Call {
            input: usage.input,
            read: usage.cache_read,
            write: usage.cache_write,
            write_1h: for_an_hour(usage.cache_write),
            output,
            ..Call::default()
        };
        add(&mut self.out.recorded, model, &theirs);
        let view = self.pieces.of_view(self.session.session().view(), &mut self.needs);
        self.ours.change(view.kept, &view.parts, view.tail);
        self.theirs.change(0, &self.context, Vec::new());
        let session = &self.session;
        self.out.found.add(self.ours.judge(&self.needs, answer, |at| session.is_recallable(at)));
        self.out.recorded_found.add(self.theirs.judge(&self.needs, answer, |_| false));
    }
}
