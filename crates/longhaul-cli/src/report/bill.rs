//! Tokens and their price, summed.

use std::collections::HashMap;

use longhaul::Models;
use longhaul::size::{Cost, Price, Tally};

use super::conversation::Call;
use crate::lab::prices::PriceRule;

/// Sums over calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bill {
    pub calls: u64,
    pub input: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub output: u64,
    /// Dollars × 10¹²: a price per million tokens is in millionths of a dollar, so that sums are exact.
    pub pico: u128,
    /// The same for each kind of token, where the table has the price.
    pub kinds: Cost,
    /// Calls of models whose price nobody knows: no part of the dollars.
    pub unpriced: u64,
}

impl Bill {
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.input += other.input;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.output += other.output;
        self.pico += other.pico;
        self.kinds += other.kinds;
        self.unpriced += other.unpriced;
    }

    pub fn prompt(&self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }

    pub fn tokens(&self) -> u64 {
        self.prompt() + self.output
    }

    pub fn dollars(&self) -> f64 {
        dollars(self.pico)
    }
}

/// Dollars of the unit that sums are in.
pub fn dollars(pico: u128) -> f64 {
    pico as f64 / 1e12
}

/// Prices of models, each looked up once.
#[derive(Default)]
pub struct Prices {
    known: HashMap<String, Option<Price>>,
    rule: PriceRule,
}

impl Prices {
    /// What calls cost by this rule.
    pub fn by(rule: PriceRule) -> Self {
        Self { known: HashMap::new(), rule }
    }

    pub fn of(&mut self, model: &str) -> Option<Price> {
        if let Some(known) = self.known.get(model) {
            return *known;
        }
        // Some agents append the window to the name: `claude-opus-4-6[1m]`.
        let name = model.split('[').next().unwrap_or(model);
        let price = self.rule.price(Models::builtin().find(name).price);
        self.known.insert(model.to_owned(), price);
        price
    }

    /// What a call cost. What the agent wrote down itself holds where the table has no price.
    pub fn bill(&mut self, call: &Call, model: &str) -> Bill {
        let price = self.of(model);
        let kinds = price.map(|price| price.cost(&tally(call)));
        let pico = kinds.map_or(u128::from(call.said_micros) * 1_000_000, |kinds| kinds.sum());
        Bill {
            calls: 1,
            input: call.input,
            cache_read: call.read,
            cache_write: call.write,
            output: call.output,
            pico,
            kinds: kinds.unwrap_or_default(),
            unpriced: u64::from(price.is_none() && call.said_micros == 0),
        }
    }
}

fn tally(call: &Call) -> Tally {
    let Call { input, read, write, write_1h, output, .. } = *call;
    Tally { input, read, written: write, written_1h: write_1h, output }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_token_has_its_price() {
        let mut prices = Prices::default();
        let call = Call {
            input: 1_000_000,
            read: 1_000_000,
            write: 2_000_000,
            write_1h: 1_000_000,
            output: 1_000_000,
            ..Call::default()
        };
        // Opus 4.5: 5, 0.5, 6.25, 10 and 25 dollars a million.
        assert_eq!(prices.bill(&call, "claude-opus-4-5-20251101").dollars(), 46.75);
        assert_eq!(prices.bill(&call, "claude-opus-4-5[1m]").dollars(), 46.75);
        let unknown = prices.bill(&call, "nobody-knows-it");
        assert_eq!((unknown.pico, unknown.unpriced), (0, 1));
        let said = prices.bill(&Call { said_micros: 1_500_000, ..call }, "nobody-knows-it");
        assert_eq!((said.dollars(), said.unpriced), (1.5, 0));
        // At a twentieth for what the cache returns and 1.25 for what is new: 5, 0.25, 12.5 and 25.
        let mut factors = Prices::by(PriceRule::new(Some("0.05,1.25".parse().unwrap()), None));
        assert_eq!(factors.bill(&call, "claude-opus-4-5").dollars(), 42.75);
        let mut another = Prices::by(PriceRule::new(None, Some("claude-opus-4-5")));
        assert_eq!(another.bill(&call, "nobody-knows-it").dollars(), 46.75);
    }
}
