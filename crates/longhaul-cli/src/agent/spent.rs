//! What an agent has spent so far, as the provider billed it.

use longhaul::size::{Price, Tally};
use longhaul::summary::SummaryPaid;
use longhaul::{Entry, Model, Role, Session, Usage};

/// Sums of what was billed.
#[derive(Debug, Clone, Default)]
pub struct Spent {
    pub calls: u64,
    pub input: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub output: u64,
    /// In dollars; `None` once something was billed at prices that nobody knows.
    dollars: Option<f64>,
    price: Option<Price>,
    before: Before,
}

/// What a session had cost when this run went on with it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Before {
    /// Nothing: it is new.
    #[default]
    Nothing,
    /// So many dollars, without sub-agents, whose sessions are their own.
    Dollars(f64),
    /// Nobody wrote it down, or a price is not known.
    Unknown,
}

impl Spent {
    /// Nothing yet, for a model of these prices.
    pub fn on(model: &Model) -> Self {
        Self { dollars: model.price.map(|_| 0.0), price: model.price, ..Self::default() }
    }

    /// Nothing yet in this run, for a session that goes on.
    pub fn going_on(session: &Session) -> Self {
        Self { before: before(session), ..Self::on(session.model()) }
    }

    /// Another model goes on, at its own prices.
    pub fn switch(&mut self, model: &Model) {
        self.price = model.price;
        if self.calls == 0 {
            *self = Self { before: self.before, ..Self::on(model) };
        }
    }

    /// Calls for a summary. What was written to a cache is not told apart from what was not cached.
    pub fn add_summary(&mut self, paid: &SummaryPaid) {
        let calls = self.calls + paid.calls;
        self.add(Some(&usage_of(paid)));
        self.calls = calls;
    }

    /// One more call.
    pub fn add(&mut self, usage: Option<&Usage>) {
        self.calls += 1;
        let Some(usage) = usage else { return };
        self.input += usage.input;
        self.cache_read += usage.cache_read;
        self.cache_write += usage.cache_write;
        self.output += usage.output;
        self.dollars =
            self.dollars.zip(self.price).map(|(sum, price)| sum + price.cost(&Tally::from(usage)).dollars());
    }

    /// In dollars, if the prices are known.
    pub fn dollars(&self) -> Option<f64> {
        self.dollars
    }

    /// What the session had cost before this run.
    pub fn before(&self) -> Before {
        self.before
    }

    /// In dollars with so many digits behind the point, as a person sees it, if the prices are known.
    pub fn told(&self, digits: usize) -> Option<String> {
        let sum = self.dollars?;
        Some(match self.before {
            Before::Nothing => format!("${sum:.digits$}"),
            Before::Dollars(before) => format!("${sum:.digits$} + ${before:.digits$} before"),
            Before::Unknown => format!("${sum:.digits$} this run"),
        })
    }

    /// The share of the prompts that was read from the provider's cache.
    pub fn share_read(&self) -> Option<f64> {
        let prompts = self.input + self.cache_read + self.cache_write;
        (prompts > 0).then(|| self.cache_read as f64 / prompts as f64)
    }
}

/// What a session has cost so far, as its journal has it.
fn before(session: &Session) -> Before {
    let (mut spent, mut is_known) = (Spent::default(), true);
    // A reply may be several messages, the newest of which has its bill.
    let mut unpaid = false;
    for entry in session.journal().since(longhaul::Cursor::default()) {
        if unpaid && !matches!(entry, Entry::Message(message) if message.role() == Role::Assistant) {
            (is_known, unpaid) = (false, false);
        }
        match entry {
            Entry::Began { model, .. } => spent = Spent::on(model),
            Entry::Switched { model, .. } => spent.switch(model),
            Entry::SummaryPaid { paid, .. } => spent.add_summary(paid),
            Entry::Message(message) if message.role() == Role::Assistant => match message.usage() {
                Some(usage) => {
                    spent.add(Some(usage));
                    unpaid = false;
                }
                None => unpaid = true,
            },
            _ => {}
        }
    }
    match (spent.calls, spent.dollars) {
        (0, _) if is_known && !unpaid => Before::Nothing,
        (_, Some(sum)) if is_known && !unpaid => Before::Dollars(sum),
        _ => Before::Unknown,
    }
}

fn usage_of(paid: &SummaryPaid) -> Usage {
    Usage {
        input: paid.prompt.written.0,
        cache_read: paid.prompt.read.0,
        output: paid.output.0,
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use longhaul::{Message, Models, Profile};

    use super::*;

    #[test]
    fn what_was_billed_is_summed_in_dollars() {
        let mut spent = Spent::on(Models::builtin().find("gpt-4o"));
        let usage = Usage { input: 1_000_000, cache_read: 1_000_000, output: 100_000, ..Usage::default() };
        spent.add(Some(&usage));
        spent.add(None);
        // 2.50 + 1.25 + 1.00
        assert_eq!((spent.calls, spent.dollars().map(|sum| (sum * 100.0).round())), (2, Some(475.0)));
        assert_eq!(spent.share_read(), Some(0.5));
        assert_eq!(Spent::default().dollars(), None);
    }

    #[test]
    fn a_session_that_goes_on_knows_what_it_has_cost() {
        let model = Models::builtin().find("gpt-4o").clone();
        let mut session = Session::new(Profile::longhaul(), model.clone());
        assert_eq!(Spent::going_on(&session).before(), Before::Nothing);
        let usage = Usage { input: 1_000_000, ..Usage::default() };
        session.push(Message::user("One?"));
        session.push(Message::assistant("One."));
        // A reply of two messages has one bill.
        session.push(Message::assistant("Two.").with_bill(usage.clone()));
        session.push(Message::user("Two?"));
        let mut spent = Spent::going_on(&session);
        assert_eq!(
            (spent.before(), spent.told(2).as_deref()),
            (Before::Dollars(2.5), Some("$0.00 + $2.50 before"))
        );
        spent.add_summary(&SummaryPaid::of(&usage));
        assert_eq!((spent.calls, spent.told(2).as_deref()), (1, Some("$2.50 + $2.50 before")));
        // One bill that is not there makes the sum a guess, which is not told.
        session.push(Message::assistant("Nobody paid."));
        assert_eq!(Spent::going_on(&session).told(2).as_deref(), Some("$0.00 this run"));
        assert_eq!(Spent::on(&model).told(2).as_deref(), Some("$0.00"));
    }
}
