//! What tokens cost in the lab. One rule holds for `replay`, `bench` and `report`: the engine decides by the prices that
//! its calls are billed at.

use std::fmt;
use std::str::FromStr;

use longhaul::size::{Billed, Price};
use longhaul::{Model, Models};

/// What a token read from the cache costs, and one that is new, in thousandths of an ordinary one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prices {
    read: u64,
    write: u64,
}

/// What a token costs that a model writes, as a factor of an ordinary token of a prompt.
pub const OUTPUT: u64 = 5;

impl Default for Prices {
    fn default() -> Self {
        Self { read: 100, write: 1_250 }
    }
}

impl Prices {
    /// Those of a price list; `None` where it does not price prompts.
    fn of(price: Price) -> Option<Self> {
        let factor = |tokens: u64| tokens.saturating_mul(1_000).checked_div(price.input);
        Some(Self { read: factor(price.cache_read)?, write: factor(price.cache_write)? })
    }

    /// A price list with these factors.
    fn at(self, price: Price) -> Price {
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

/// Which prices hold for a call: the price list of the model that was named, else that of the model that answers; with
/// the factors that were asked for in place of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PriceRule {
    list: PriceList,
    factors: Option<Prices>,
}

/// Whose price list holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum PriceList {
    /// That of the model that answers.
    #[default]
    Answering,
    /// That of the model that was named. It may have none.
    Named(Option<Price>),
}

impl PriceRule {
    /// The rule of `--prices` and `--model`.
    pub fn new(factors: Option<Prices>, model: Option<&str>) -> Self {
        let named = model.filter(|name| !name.is_empty());
        let list =
            named.map_or(PriceList::Answering, |name| PriceList::Named(Models::builtin().find(name).price));
        Self { list, factors }
    }

    /// The same price lists with other factors, if some are given.
    pub fn with_factors(self, factors: Option<Prices>) -> Self {
        Self { factors: factors.or(self.factors), ..self }
    }

    /// The dollars of a call, given the price list of the model that answers it.
    pub fn price(self, answering: Option<Price>) -> Option<Price> {
        let list = match self.list {
            PriceList::Answering => answering,
            PriceList::Named(named) => named,
        };
        list.map(|list| self.factors.map_or(list, |factors| factors.at(list)))
    }

    /// The factors of a call, given the price list of the model that answers it. Where no price is known, those of most
    /// providers, which the engine decides by as well.
    pub fn factors(self, answering: Option<Price>) -> Prices {
        self.factors.or_else(|| Prices::of(self.price(answering)?)).unwrap_or_default()
    }

    /// The model as the engine is to see it. Factors say nothing of dollars: where there are none, the engine gets a
    /// price that no limit in dollars holds back.
    pub fn on(self, model: Model) -> Model {
        const HIGH: u64 = 1_000_000_000;
        const NONE: Price =
            Price { input: HIGH, cache_read: 0, cache_write: 0, cache_write_1h: None, output: HIGH * 5 };
        let price = self.price(model.price).or_else(|| Some(self.factors?.at(NONE)));
        Model { price, ..model }
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
    }

    #[test]
    fn the_engine_decides_by_the_prices_of_the_bill() {
        let table = |name: &str| Models::builtin().find(name).clone();
        let (opus, nano, unknown) = (table("claude-opus-5-5"), table("gpt-5-nano"), table("nobody-knows-it"));
        let twentieth = Prices { read: 50, write: 1_250 };
        // Nothing asked for: each model's own dollars.
        let own = PriceRule::default();
        assert_eq!(own.on(nano.clone()).price, nano.price);
        assert_eq!((own.factors(opus.price), own.on(opus.clone()).price), (twentieth, opus.price));
        assert_eq!((own.factors(None), own.on(unknown.clone()).price), (Prices::default(), None));
        // A model that is named: its dollars, whichever answers.
        let named = PriceRule::new(None, Some("claude-opus-5-5"));
        assert_eq!((named.factors(nano.price), named.on(nano.clone()).price), (twentieth, opus.price));
        let nobody = PriceRule::new(None, Some("nobody-knows-it"));
        assert_eq!((nobody.factors(opus.price), nobody.on(opus.clone()).price), (Prices::default(), None));
        // Factors: of the dollars of the model that answers, or of the one that is named.
        let factors = Prices { read: 200, write: 1_000 };
        let asked = PriceRule::new(Some(factors), None);
        let (input, price) = (nano.price.unwrap().input, asked.on(nano.clone()).price.unwrap());
        assert_eq!((price.input, price.cache_read * 5, price.cache_write), (input, input, input));
        assert_eq!(asked.factors(nano.price), factors);
        let price = PriceRule::new(Some(factors), Some("claude-opus-5-5")).on(nano).price.unwrap();
        assert_eq!(price.cache_read * 5, opus.price.unwrap().input);
        // Without dollars the factors hold, and no limit in dollars.
        let price = asked.on(unknown).price.unwrap();
        assert_eq!((price.cache_read * 5, price.cache_write), (price.input, price.input));
        assert_eq!(asked.price(None), None);
        assert_eq!(asked.with_factors(Some(twentieth)).factors(None), twentieth);
        assert_eq!(asked.with_factors(None), asked);
    }
}
