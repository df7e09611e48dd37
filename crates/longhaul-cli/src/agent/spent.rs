//! What an agent has spent so far, as the provider billed it.

use longhaul::size::Price;
use longhaul::{Model, Usage};

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
}

impl Spent {
    /// Nothing yet, for a model of these prices.
    pub fn on(model: &Model) -> Self {
        Self { dollars: model.price.map(|_| 0.0), price: model.price, ..Self::default() }
    }

    /// Another model goes on, at its own prices.
    pub fn switch(&mut self, model: &Model) {
        self.price = model.price;
        if self.calls == 0 {
            *self = Self::on(model);
        }
    }

    /// One more call.
    pub fn add(&mut self, usage: Option<&Usage>) {
        self.calls += 1;
        let Some(usage) = usage else { return };
        self.input += usage.input;
        self.cache_read += usage.cache_read;
        self.cache_write += usage.cache_write;
        self.output += usage.output;
        self.dollars = self.dollars.zip(self.price).map(|(sum, price)| {
            let parts = [
                (usage.input, price.input),
                (usage.cache_read, price.cache_read),
                (usage.cache_write, price.cache_write),
                (usage.output, price.output),
            ];
            // A price is in millionths of a dollar for a million tokens.
            sum + parts.iter().map(|(tokens, price)| *tokens as f64 * *price as f64).sum::<f64>() / 1e12
        });
    }

    /// In dollars, if the prices are known.
    pub fn dollars(&self) -> Option<f64> {
        self.dollars
    }

    /// The share of the prompts that was read from the provider's cache.
    pub fn share_read(&self) -> Option<f64> {
        let prompts = self.input + self.cache_read + self.cache_write;
        (prompts > 0).then(|| self.cache_read as f64 / prompts as f64)
    }
}

#[cfg(test)]
mod tests {
    use longhaul::Models;

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
}
