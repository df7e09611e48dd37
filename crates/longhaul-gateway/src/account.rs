//! What conversations cost, and what they would have cost without Longhaul at the same prices: the client sends everything
//! until its window is nearly full, and then has a model summarise it. Both are a fold of a session's journal, so that
//! nothing is kept of a conversation but a few figures.
//!
//! The estimate goes by what is known of each call: how much larger the whole conversation is than what was sent (in our
//! count, applied to the size that the provider reported), how much of a repeated prefix the provider's cache returned, and
//! the same answer. Where nothing was ever left out, both sums are the same to the token.

use std::collections::VecDeque;
use std::ops::AddAssign;

use longhaul::session::journal::{Cursor, Entry, SentRequest, Ticket};
use longhaul::size::{CacheKind, Charged, Model, Price, Tally};
use longhaul::{EditKind, Session, Tokens, Usage, Why};
use longhaul_lab::OwnCompaction;

/// Tokens, and their price.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// The tokens.
    pub tokens: Tally,
    /// Dollars × 10¹², for tokens whose price is known.
    pub pico: u128,
}

impl Spent {
    fn of(tokens: Tally, price: Option<Price>) -> Self {
        Self { tokens, pico: price.map_or(0, |price| price.cost(&tokens).sum()) }
    }

    /// In dollars.
    pub fn dollars(&self) -> f64 {
        self.pico as f64 / 1e12
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.tokens += other.tokens;
        self.pico += other.pico;
    }
}

/// What calls cost, and what they would have cost otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Costs {
    /// Calls that a provider billed. Those for summaries are none.
    pub calls: u64,
    /// Calls, with those for summaries, whose model has no price in our table.
    pub unpriced: u64,
    /// As the provider billed it.
    pub billed: Spent,
    /// The estimate: without Longhaul; with Longhaul, where it only observes.
    pub otherwise: Spent,
    /// Calls before which the conversation was made shorter.
    pub folds: u64,
    /// Results of our own tool in a request, filled in.
    pub filled: u64,
}

impl AddAssign for Costs {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.unpriced += other.unpriced;
        self.billed += other.billed;
        self.otherwise += other.otherwise;
        self.folds += other.folds;
        self.filled += other.filled;
    }
}

impl Costs {
    /// One of the sums in dollars, as headers and log lines have it, if some of it has a price.
    pub(crate) fn told(&self, spent: Spent) -> Option<String> {
        (self.billed.pico > 0).then(|| format!("{:.4}", spent.dollars()))
    }

    /// Of a call that Longhaul left as it was.
    pub(crate) fn of_untouched(tokens: Tally, price: Option<Price>) -> Self {
        let spent = Spent::of(tokens, price);
        let unpriced = u64::from(price.is_none());
        Self { calls: 1, unpriced, billed: spent, otherwise: spent, ..Self::default() }
    }
}

/// Calls are billed in the order in which they were sent, but for a few that ran at once.
const AT_ONCE: usize = 8;

/// The account of one conversation: what its journal says up to a place.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    /// Up to here the journal was read.
    seen: Cursor,
    price: Option<Price>,
    /// The prices of the model that writes summaries, if it is another one.
    of_summaries: Option<Price>,
    cache: CacheKind,
    /// The window that the client would go by.
    window: Tokens,
    /// What happened since the last request.
    since: Since,
    sent: VecDeque<Sent>,
    /// As the client alone would have sent it; or, where Longhaul only observes, as it would have been sent with us.
    other: Other,
    /// What the provider billed for what the client sent, where Longhaul only observes: it stands in no journal.
    observed: Option<Spent>,
    /// Costs of calls that were read from the journal and are not settled yet.
    new: Costs,
    /// All that was settled, and what came before.
    pub(crate) total: Costs,
}

/// What happened to a conversation since its last request.
#[derive(Debug, Clone, Copy, Default)]
struct Since {
    folded: bool,
    /// Something of ours changed what was sent before.
    is_ours: bool,
    /// The client has another system prompt, other tools or another model.
    is_frame: bool,
}

/// A request that was sent.
#[derive(Debug, Clone, Copy)]
struct Sent {
    ticket: Ticket,
    /// Its size and that of the whole conversation, in our count.
    view: Tokens,
    whole: Tokens,
    /// Tokens that it has in common with the request before.
    common: Tokens,
    prefix: Prefix,
    is_cold: bool,
    is_billed: bool,
}

/// How a request follows the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prefix {
    Extended,
    /// We changed what stands before.
    ChangedByUs,
    /// The client did, and would have without us.
    ChangedByClient,
}

/// The conversation as it was not sent.
#[derive(Debug, Clone, Copy)]
struct Other {
    by: By,
    before: Option<Before>,
    /// The share of a repeated prefix that the provider's cache returns.
    returned: f64,
}

/// Who would have sent it so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// The client, without us.
    Client,
    /// We, if we did not only observe.
    Longhaul,
}

/// The call before, in tokens.
#[derive(Debug, Clone, Copy)]
struct Before {
    /// As the provider reported what was sent.
    prompt: u64,
    /// As it was not sent.
    other: u64,
    /// The view and the whole conversation, in our count.
    view: u64,
    whole: u64,
}

impl Account {
    /// Of a conversation as its journal has it. Summaries are priced by this list, or as the conversation's own model is.
    pub(crate) fn of(session: &Session, of_summaries: Option<Price>) -> Self {
        let mut account = Self {
            seen: Cursor(0),
            price: None,
            of_summaries,
            cache: CacheKind::None,
            window: Tokens::ZERO,
            since: Since::default(),
            sent: VecDeque::new(),
            other: Other { by: By::Client, before: None, returned: 1.0 },
            observed: None,
            new: Costs::default(),
            total: Costs::default(),
        };
        account.settle(session);
        account
    }

    /// The same for a fork: what stands before it was billed to the conversation that it leaves.
    pub(crate) fn of_fork(session: &Session, of_summaries: Option<Price>) -> Self {
        // Its edits are those of the other one, which has counted them.
        Self { total: Costs::default(), since: Since::default(), ..Self::of(session, of_summaries) }
    }

    /// The same where Longhaul only observes: the journal has what would have been sent, and what that would have been
    /// billed.
    pub(crate) fn observing(self) -> Self {
        let Costs { billed, otherwise, .. } = self.total;
        let total = Costs { billed: otherwise, otherwise: billed, ..self.total };
        let other = Other { by: By::Longhaul, before: None, returned: self.other.returned };
        Self { other, observed: Some(Spent::default()), total, ..self }
    }

    /// What calls have cost since this was asked last.
    pub(crate) fn settle(&mut self, session: &Session) -> Costs {
        self.follow(session);
        let mut new = std::mem::take(&mut self.new);
        if let Some(observed) = &mut self.observed {
            (new.billed, new.otherwise) = (std::mem::take(observed), new.billed);
        }
        self.total += new;
        new
    }

    /// What the provider would have billed for a view, given what it billed for the client's own request.
    pub(crate) fn as_if_sent(&mut self, session: &Session, ticket: Ticket, usage: &Usage) -> Usage {
        self.follow(session);
        let tokens = Tally::from(usage);
        *self.observed.get_or_insert_default() += Spent::of(tokens, self.price);
        let client = self.client(session);
        let Some(sent) = self.sent.iter().find(|sent| sent.ticket == ticket) else { return usage.clone() };
        let (_, Tally { input, read, written, written_1h, output }) = self.other.call(sent, &tokens, client);
        let mut usage =
            Usage { input, output, cache_read: read, cache_write: written, extra: usage.extra.clone() };
        usage.set_written_for_an_hour(written_1h);
        usage
    }

    /// Reads what is new in the journal.
    fn follow(&mut self, session: &Session) {
        let client = self.client(session);
        for entry in session.since(self.seen) {
            self.read(entry, client.before_messages);
        }
        self.seen = session.cursor();
    }

    fn client(&self, session: &Session) -> Client {
        let before_messages = session.meter().tokens(session.view().fixed().measure).tokens.0;
        Client { window: self.window, cache: self.cache, before_messages }
    }

    fn read(&mut self, entry: &Entry, before_messages: u64) {
        match entry {
            Entry::Began { model, .. } => self.goes_on_with(model),
            Entry::Switched { model, .. } => {
                self.goes_on_with(model);
                self.since.is_frame = true;
            }
            Entry::Limited(allowed) => {
                // A client that asks for a window of a million has it. A smaller one is a setting of ours.
                self.window = self.window.max(allowed.window.unwrap_or_default());
            }
            Entry::Refused { window: Some(window), .. } => self.window = self.window.min(*window),
            Entry::AnswerCounts { window } => self.window = self.window.min(*window),
            Entry::Frame(_) => self.since.is_frame = true,
            Entry::Edit(edit) => match (&edit.kind, edit.why) {
                (EditKind::Answer { .. }, _) => self.new.filled += 1,
                (_, Why::Entry) => {}
                _ => (self.since.folded, self.since.is_ours) = (true, true),
            },
            Entry::Undo { .. }
            | Entry::Redo { .. }
            | Entry::NoteShown { .. }
            | Entry::RulesShown { .. }
            | Entry::HostNote { .. }
            | Entry::Unbound(_) => self.since.is_ours = true,
            Entry::Sent(sent) => self.sent(sent),
            Entry::Usage { ticket, prompt, charged: Some(charged) } => {
                if let Some(at) = self.sent.iter().position(|sent| sent.ticket == *ticket) {
                    self.billed(at, *prompt, charged, before_messages);
                }
            }
            Entry::SummaryPaid { paid, .. } => {
                let tokens = Tally {
                    input: paid.prompt.written.0,
                    read: paid.prompt.read.0,
                    output: paid.output.0,
                    ..Tally::default()
                };
                let price = self.of_summaries.or(self.price);
                self.new.unpriced += u64::from(price.is_none());
                self.new.billed += Spent::of(tokens, price);
            }
            _ => {}
        }
    }

    fn goes_on_with(&mut self, model: &Model) {
        (self.price, self.cache, self.window) = (model.price, model.cache.kind, model.window);
    }

    fn sent(&mut self, sent: &SentRequest) {
        let Since { folded, is_ours, is_frame } = std::mem::take(&mut self.since);
        self.new.folds += u64::from(folded);
        let prefix = match sent.broke {
            false => Prefix::Extended,
            true if is_ours && !is_frame => Prefix::ChangedByUs,
            true => Prefix::ChangedByClient,
        };
        self.sent.truncate(AT_ONCE - 1);
        let view = sent.billed.read + sent.billed.written;
        self.sent.push_front(Sent {
            ticket: sent.ticket,
            view,
            // An older journal does not say.
            whole: if sent.whole == Tokens::ZERO { view } else { sent.whole },
            common: sent.billed.read,
            prefix,
            is_cold: sent.cold,
            is_billed: false,
        });
    }

    /// The provider billed a request.
    fn billed(&mut self, at: usize, prompt: Tokens, charged: &Charged, before_messages: u64) {
        let sent = self.sent[at];
        let (read, written) = (charged.read.0.min(prompt.0), charged.written.0);
        let tokens = Tally {
            input: prompt.0.saturating_sub(read.saturating_add(written)),
            read,
            written,
            written_1h: charged.written_1h.0,
            output: charged.output.0,
        };
        self.new.calls += 1;
        self.new.unpriced += u64::from(self.price.is_none());
        self.new.billed += Spent::of(tokens, self.price);
        // The same request again reads as much as it did.
        let prefix = if sent.is_billed { Prefix::ChangedByClient } else { sent.prefix };
        self.sent[at].is_billed = true;
        if self.observed.is_none() {
            let client = Client { window: self.window, cache: self.cache, before_messages };
            let (compaction, call) = self.other.call(&Sent { prefix, ..sent }, &tokens, client);
            for tokens in compaction.into_iter().chain([call]) {
                self.new.otherwise += Spent::of(tokens, self.price);
            }
        }
    }
}

/// What the client alone would go by.
#[derive(Clone, Copy)]
struct Client {
    window: Tokens,
    cache: CacheKind,
    /// Tokens of system prompt and tools.
    before_messages: u64,
}

impl Other {
    /// What would have been billed for a call: for the client's own compaction before it, if one was due, and for the call.
    fn call(&mut self, sent: &Sent, billed: &Tally, client: Client) -> (Option<Tally>, Tally) {
        let prompt = billed.prompt();
        let mut other = self.grown(sent, prompt).max(client.before_messages.min(prompt));
        let share_of = |common: u64| (billed.read as f64 / common.max(1) as f64).min(1.0);
        // The request that was sent extends the one before it.
        let extends = match self.by {
            By::Client => sent.prefix == Prefix::Extended,
            By::Longhaul => sent.prefix != Prefix::ChangedByClient,
        };
        let returned = match self.before {
            Some(before) if extends => share_of(before.prompt.min(prompt)),
            _ if sent.is_cold => share_of(sent.common.0),
            _ => self.returned,
        };
        if extends && !sent.is_cold && self.before.is_some() {
            self.returned = returned;
        }
        let own = OwnCompaction::USUAL;
        let mut compaction = None;
        let read = if self.by == By::Client && own.is_due(other as f64, client.window.0 as f64) {
            // The request for a summary finds the conversation in the cache.
            compaction = Some(Tally { read: other, output: OwnCompaction::SUMMARY, ..Tally::default() });
            other = own.left_of(other, client.before_messages);
            returned * client.before_messages as f64
        } else {
            match (self.before, sent.prefix, self.by) {
                (Some(before), Prefix::Extended, _) => {
                    let more = before.other.min(other) as f64 - before.prompt.min(prompt) as f64;
                    billed.read as f64 + returned * more
                }
                (Some(before), Prefix::ChangedByUs, By::Client) => returned * before.other.min(other) as f64,
                (Some(_), Prefix::ChangedByUs, By::Longhaul) => returned * sent.common.0 as f64,
                // What we left out stands near the start: where the provider has more than that of it, it would have that
                // too.
                (_, Prefix::ChangedByClient, _) if sent.common.0 > client.before_messages => {
                    billed.read as f64 + share_of(sent.common.0) * (other as f64 - prompt as f64)
                }
                (_, Prefix::ChangedByClient, _) => billed.read as f64,
                // A fork, or a conversation that was resumed: the provider has it behind what we left out.
                (None, ..) if billed.read > client.before_messages => {
                    billed.read as f64 + other as f64 - prompt as f64
                }
                // What was read before this account began is known by its share alone.
                (None, ..) => scaled(billed.read, other, prompt) as f64,
            }
        };
        self.before = Some(Before { prompt, other, view: sent.view.0, whole: sent.whole.0 });
        let read = (read.max(0.0).round() as u64).min(other);
        let rest = other - read;
        let new = billed.input.saturating_add(billed.written);
        let written = match (new, client.cache) {
            (0, CacheKind::Marked) => rest,
            _ => scaled(rest, billed.written, new).min(rest),
        };
        let written_1h = scaled(written, billed.written_1h, billed.written).min(written);
        (compaction, Tally { input: rest - written, read, written, written_1h, output: billed.output })
    }
}

impl Other {
    /// The size of a request, grown from the one before it: by as much as the provider reported, or by our count where one of
    /// the two sides changed what it had sent before.
    fn grown(&self, sent: &Sent, prompt: u64) -> u64 {
        let (view, whole) = (sent.view.0, sent.whole.0);
        let Some(before) = self.before else {
            let (other, was_sent) = if self.by == By::Client { (whole, view) } else { (view, whole) };
            return (prompt + other).saturating_sub(was_sent);
        };
        if view == whole && before.other == before.prompt {
            // Nothing was ever left out.
            return prompt;
        }
        // The client has dropped old messages, or made results shorter: we go on sending them.
        let has_shrunk = whole.saturating_mul(10) < before.whole.saturating_mul(9);
        match (sent.prefix, self.by) {
            (Prefix::Extended, _) if !has_shrunk => (before.other + prompt).saturating_sub(before.prompt),
            (_, By::Client) => (before.other + whole).saturating_sub(before.whole),
            (_, By::Longhaul) => (before.other + view).saturating_sub(before.view),
        }
    }
}

/// `number` × `by` / `of`, rounded; 0 if there is nothing to divide by.
fn scaled(number: u64, by: u64, of: u64) -> u64 {
    let (number, by, of) = (u128::from(number), u128::from(by), u128::from(of));
    let scaled = (number * by + of / 2).checked_div(of).unwrap_or_default();
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
