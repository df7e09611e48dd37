//! A session, call by call: one pass over its journal that notes what each request was, which goes on where it was
//! when the journal has grown.

use std::sync::Arc;

use longhaul::edits::EditPrice;
use longhaul::session::journal::SentRequest;
use longhaul::size::Price;
use longhaul::{
    Archive, Cursor, Edit, EditId, Entry, Known, Position, Profile, Role, Session, Snapshot, Ticket, Time,
    Tokens, Why,
};
use longhaul_store::{Meta, SessionId, Store, Stored};

use crate::category::{Counted, Filling};
use crate::cost::Bill;
use crate::error::Refused;

/// A session and what its calls were.
pub(crate) struct History {
    pub(crate) id: SessionId,
    /// As it stands at the end of its journal.
    pub(crate) session: Session,
    pub(crate) trace: Trace,
}

/// What was noted of the journal so far.
#[derive(Default)]
pub(crate) struct Trace {
    pub(crate) filling: Filling,
    pub(crate) calls: Vec<CallRow>,
    pub(crate) edits: Vec<EditLife>,
    pub(crate) compactions: Vec<CompactionRow>,
    /// What summaries by a model cost, in dollars.
    pub(crate) summaries_usd: f64,
    /// Edits since the last call that a compaction made.
    new_edits: Vec<Arc<Edit>>,
    /// Edits since the last call, those of messages that came included.
    edits_before: usize,
    /// The size before the compaction that is on its way.
    before: Option<Tokens>,
    /// Calls before this one have their answers.
    answered: usize,
}

/// A request that was sent.
pub(crate) struct CallRow {
    ticket: Ticket,
    /// The place behind it in the journal.
    pub(crate) end: Cursor,
    pub(crate) at: Option<Time>,
    /// Messages before it.
    pub(crate) upto: u32,
    pub(crate) view: u64,
    pub(crate) full: u64,
    pub(crate) window: u64,
    pub(crate) counted: Counted,
    pub(crate) bill: Bill,
    /// What sending the whole log would have been billed.
    pub(crate) full_bill: Bill,
    /// The provider said what it billed.
    pub(crate) billed: bool,
    pub(crate) price: Option<Price>,
    /// Edits that were made for it, and for the messages before it.
    pub(crate) edits: usize,
    pub(crate) broke: bool,
    pub(crate) why: Option<Why>,
}

impl CallRow {
    /// In dollars, if the model has prices.
    pub(crate) fn usd(&self) -> Option<f64> {
        self.price.map(|price| self.bill.usd(&price))
    }

    pub(crate) fn full_usd(&self) -> Option<f64> {
        self.price.map(|price| self.full_bill.usd(&price))
    }
}

/// An edit, and when it held.
pub(crate) struct EditLife {
    pub(crate) edit: Arc<Edit>,
    /// The first call that shows it; the next one, if none was sent since.
    pub(crate) call: usize,
    /// From which calls on it was taken back or made again.
    pub(crate) turns: Vec<Turn>,
}

/// An edit was taken back, or made again.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    /// From this call on.
    pub(crate) call: usize,
    pub(crate) active: bool,
    /// A person did it.
    pub(crate) held: bool,
}

impl EditLife {
    /// Whether it held at a call.
    pub(crate) fn is_active_at(&self, call: usize) -> bool {
        call >= self.call && self.turns.iter().rfind(|turn| turn.call <= call).is_none_or(|turn| turn.active)
    }

    /// Whether it holds now.
    pub(crate) fn is_active(&self) -> bool {
        self.turns.last().is_none_or(|turn| turn.active)
    }

    /// Whether a person took it back, and only the hard limit may make such an edit again.
    pub(crate) fn is_held(&self) -> bool {
        self.turns.last().is_some_and(|turn| !turn.active && turn.held)
    }
}

/// Edits that were made at once, before a call.
pub(crate) struct CompactionRow {
    pub(crate) call: usize,
    pub(crate) edits: Vec<EditId>,
    pub(crate) why: Why,
    pub(crate) before: u64,
    pub(crate) after: u64,
    pub(crate) price: EditPrice,
    /// How many edits there are of each kind.
    pub(crate) kinds: Vec<(&'static str, usize)>,
}

impl History {
    /// Of a stored session.
    pub(crate) fn open(
        store: &Arc<dyn Store>,
        id: SessionId,
        profile: Profile,
    ) -> Result<(Self, Meta), Refused> {
        let Stored { meta, entries, sizes, .. } = store.load(id)?;
        if meta.without_content {
            return Err(longhaul_store::StoreError::NoContent(id).into());
        }
        Ok((Self::of(id, entries, sizes, Some(store.archive(id)?), profile)?, meta))
    }

    /// Of a journal.
    pub(crate) fn of(
        id: SessionId,
        entries: Vec<Entry>,
        sizes: Vec<Snapshot>,
        store: Option<Arc<dyn Archive>>,
        profile: Profile,
    ) -> Result<Self, Refused> {
        let known = Known { sizes, store };
        let mut trace = Trace::default();
        let session = Session::retrace(profile, entries, known, |session, entry| trace.see(session, entry))?;
        trace.settle(&session);
        Ok(Self { id, session, trace })
    }

    /// Takes in what was written since.
    pub(crate) fn follow(&mut self, store: &Arc<dyn Store>) -> Result<(), Refused> {
        let new = store.since(self.id, self.session.cursor())?;
        if new.is_empty() {
            return Ok(());
        }
        let trace = &mut self.trace;
        self.session.retrace_on(new, |session, entry| trace.see(session, entry))?;
        trace.settle(&self.session);
        Ok(())
    }

    /// The call of a number, from 1.
    pub(crate) fn call(&self, number: usize) -> Result<&CallRow, Refused> {
        let row = number.checked_sub(1).and_then(|at| self.trace.calls.get(at));
        row.ok_or_else(|| {
            let count = self.trace.calls.len();
            Refused::NotFound(format!("there is no call {number}: the session has {count}, counted from 1"))
        })
    }

    /// The first call that was sent behind a message; none if no call was.
    pub(crate) fn call_behind(&self, message: u32) -> Option<usize> {
        let at = self.trace.calls.partition_point(|row| row.upto <= message);
        (at < self.trace.calls.len()).then_some(at + 1)
    }
}

impl Trace {
    fn see(&mut self, session: &Session, entry: &Entry) {
        let next = self.calls.len() + 1;
        match entry {
            Entry::Sent(sent) => self.sent(session, sent),
            Entry::Usage { ticket, prompt, charged } => {
                let Some(row) = self.calls.iter_mut().rev().take(64).find(|row| row.ticket == *ticket) else {
                    return;
                };
                // What is left out is known by our own counting.
                row.full = row.full.saturating_add(prompt.0).saturating_sub(row.view).max(prompt.0);
                row.view = prompt.0;
                if let Some(charged) = charged {
                    (row.bill, row.billed) = (Bill::charged(*prompt, *charged), true);
                    row.full_bill.output = row.bill.output;
                }
            }
            Entry::Edit(edit) => {
                self.edits_before += 1;
                if edit.why != Why::Entry {
                    self.new_edits.push(edit.clone());
                }
                self.edits.push(EditLife { edit: edit.clone(), call: next, turns: Vec::new() });
            }
            Entry::Undo { edit, held } => self.turn(*edit, Turn { call: next, active: false, held: *held }),
            Entry::Redo { edit } => self.turn(*edit, Turn { call: next, active: true, held: false }),
            Entry::CompactionBegan(compaction) => {
                self.before.get_or_insert(compaction.before);
            }
            Entry::SummaryPaid { paid, .. } => {
                let Some(price) = session.model().price else { return };
                let prompt = paid.prompt.read + paid.prompt.written;
                let mut bill = Bill::of_prompt(prompt, paid.prompt.read, session.model());
                bill.output = paid.output.0;
                self.summaries_usd += bill.usd(&price);
            }
            _ => {}
        }
    }

    fn turn(&mut self, edit: EditId, turn: Turn) {
        if let Some(life) = self.edits.get_mut(edit.0 as usize) {
            life.turns.push(turn);
        }
    }

    fn sent(&mut self, session: &Session, sent: &SentRequest) {
        let counted = self.filling.follow(session, session.view().unchanged());
        let full = session.meter().estimate(session.full()).tokens.max(sent.prompt);
        let before = if sent.cold { 0 } else { self.calls.last().map_or(0, |row| row.full) };
        let compaction = self.compaction(sent.prompt.0);
        self.calls.push(CallRow {
            ticket: sent.ticket,
            end: Cursor(session.cursor().0 + 1),
            at: sent.time,
            upto: session.log().end().0,
            view: sent.prompt.0,
            full: full.0,
            window: session.budget().window.0,
            counted,
            bill: Bill::expected(sent, session.model()),
            full_bill: Bill::of_prompt(full, full.min(Tokens(before)), session.model()),
            billed: false,
            price: session.model().price,
            edits: std::mem::take(&mut self.edits_before),
            broke: sent.broke,
            why: compaction.as_ref().map(|compaction| compaction.why),
        });
        self.compactions.extend(compaction);
    }

    /// The edits since the last call, as one compaction.
    fn compaction(&mut self, after: u64) -> Option<CompactionRow> {
        let (edits, before) = (std::mem::take(&mut self.new_edits), self.before.take());
        // Of several reasons the weightiest is told: what a limit forced, then what was asked for.
        let weight = |why: Why| match why {
            Why::Forced(_) => 0,
            Why::Asked => 1,
            Why::PaysBack => 2,
            Why::Cold => 3,
            Why::Switched | Why::Refused => 4,
            Why::Rule => 5,
            Why::Host => 6,
            Why::Entry => 7,
        };
        let why = edits.iter().map(|edit| edit.why).min_by_key(|why| weight(*why))?;
        let price = EditPrice::of_batch(edits.iter().map(|edit| &**edit));
        let mut kinds: Vec<(&'static str, usize)> = Vec::new();
        for edit in &edits {
            let name = edit.kind.name();
            match kinds.iter_mut().find(|(kind, _)| *kind == name) {
                Some((_, count)) => *count += 1,
                None => kinds.push((name, 1)),
            }
        }
        Some(CompactionRow {
            call: self.calls.len() + 1,
            edits: edits.iter().map(|edit| edit.id).collect(),
            why,
            before: before.map_or(after.saturating_add(price.saves.0), |before| before.0.max(after)),
            after,
            price,
            kinds,
        })
    }

    /// Where nobody said what an answer counted, it is what its message counts.
    fn settle(&mut self, session: &Session) {
        let log = session.log();
        while let Some(row) = self.calls.get_mut(self.answered) {
            let answer = Position(row.upto);
            let Some(message) = log.get(answer) else { return };
            if message.role() == Role::Assistant && !row.billed {
                let counted = session.sizes().get(answer.index()).copied().unwrap_or_default();
                let counted = session.meter().tokens(counted).tokens.0;
                row.bill.output = message.usage().map_or(counted, |usage| usage.output);
                row.full_bill.output = row.bill.output;
            }
            self.answered += 1;
        }
    }
}
