//! What tokens cost in the lab, as factors of an ordinary token of a prompt: policies decide by these prices and are
//! billed at them.

use std::fmt;
use std::str::FromStr;

use longhaul::size::{Billed, Price};
use longhaul::{Model, Models};

/// What a token read from the cache costs, and one that is new, in thousandths of an ordinary one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prices {
    read: u64,
    write: u64,
}

impl Default for Prices {
    fn default() -> Self {
        Self { read: 100, write: 1_250 }
    }
}

impl Prices {
    /// Those that were asked for, else those of the model of this name, else those of most providers. `None` where
    /// nobody asked: profiles decide as they do for a model without a price.
    pub fn of(asked: Option<Self>, model: Option<&str>) -> Option<Self> {
        let of_model = || Self::of_price(Models::builtin().find(model?).price?);
        asked.or_else(of_model)
    }

    fn of_price(price: Price) -> Option<Self> {
        let factor = |tokens: u64| tokens.saturating_mul(1_000).checked_div(price.input);
        Some(Self { read: factor(price.cache_read)?, write: factor(price.cache_write)? })
    }

    /// The model, at these prices. Factors say nothing of dollars: a model without a price gets one that no limit in
    /// dollars holds back.
    pub fn on(self, model: Model) -> Model {
        const HIGH: u64 = 1_000_000_000;
        const NONE: Price =
            Price { input: HIGH, cache_read: 0, cache_write: 0, cache_write_1h: None, output: HIGH * 5 };
        Model { price: Some(self.at(model.price.unwrap_or(NONE))), ..model }
    }

    /// A price list with these factors.
    pub fn at(self, price: Price) -> Price {
        let at = |factor: u64| price.input.saturating_mul(factor) / 1_000;
        Price { cache_read: at(self.read), cache_write: at(self.write), cache_write_1h: None, ..price }
    }

    /// What a token read from the cache costs, as a factor of an ordinary one.
    pub fn read(self) -> f64 {
        self.read as f64 / 1_000.0
    }

    /// What a new token costs, as a factor of an ordinary one.
    pub fn write(self) -> f64 {
        self.write as f64 / 1_000.0
    }

    /// What a prompt costs, in thousandths of a token.
    pub fn cost_milli(self, billed: Billed) -> u64 {
        let cost = |tokens: u64, price: u64| tokens.saturating_mul(price);
        cost(billed.read.0, self.read).saturating_add(cost(billed.written.0, self.write))
    }

    /// The same for sizes that are not whole, in tokens.
    pub fn cost(self, read: f64, written: f64) -> f64 {
        (self.read as f64 * read + self.write as f64 * written) / 1_000.0
    }
}

impl fmt::Display for Prices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.read(), self.write())
    }
}

impl FromStr for Prices {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const WANTED: &str = "give READ,WRITE as factors from 0 to 100, as in 0.05,1.25";
        let factor = |text: &str| {
            let factor = text.trim().parse::<f64>().ok().filter(|factor| (0.0..=100.0).contains(factor));
            factor.map(|factor| (factor * 1_000.0).round() as u64)
        };
        let both = text.split_once(',').and_then(|(read, write)| Some((factor(read)?, factor(write)?)));
        let (read, write) = both.ok_or(WANTED)?;
        if read > write {
            return Err(format!("a token read from the cache costs no more than a new one: {WANTED}"));
        }
        Ok(Self { read, write })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul::Tokens;

    #[test]
    fn prices_are_factors() {
        assert_eq!("0.1,1.25".parse(), Ok(Prices::default()));
        assert_eq!("0.025, 1.25".parse(), Ok(Prices { read: 25, write: 1_250 }));
        for wrong in ["", "0.1", "x,1", "-1,1", "1,NaN", "2,1", "0.1,1.25,5", "0,1000"] {
            assert!(wrong.parse::<Prices>().is_err(), "{wrong}");
        }
        let billed = Billed { read: Tokens(1_000), written: Tokens(100) };
        assert_eq!(Prices::default().cost_milli(billed), billed.cost_milli());
        assert_eq!(Prices::of(None, Some("claude-opus-5-5")), Some(Prices { read: 50, write: 1_250 }));
        assert_eq!(Prices::of(None, Some("nobody-knows-it")), None);
        let model = Prices { read: 50, write: 1_250 }.on(Models::builtin().find("nobody-knows-it").clone());
        let price = model.price.unwrap();
        assert_eq!((price.cache_read * 20, price.cache_write * 4), (price.input, price.input * 5));
    }
}
