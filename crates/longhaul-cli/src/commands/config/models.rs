//! `longhaul config models`: the rows of the table of models, and which of them a name means.

use std::io::{self, Write};

use longhaul::size::{CacheKind, CacheRule, MatchedBy, Price, ThinkingOff};
use longhaul::{Model, Models, Vocabulary};
use longhaul_config::meant;
use serde::Serialize;

use crate::error::Failure;
use crate::terminal;
use crate::terminal::{FAINT, STRONG, grouped, one_line, short};

/// A row, for scripts. Prices are in dollars per million tokens.
#[derive(Serialize)]
struct ModelLine<'a> {
    #[serde(flatten)]
    asked: Option<Asked<'a>>,
    name: &'a str,
    window: u64,
    max_output: u64,
    tokenizer: Vocabulary,
    ratio: f64,
    price: Option<PriceLine>,
    cache: CacheRule,
    binds: bool,
    thinking_off: Option<ThinkingOff>,
    system_messages: bool,
    clear_at: bool,
}

/// The name that was asked for, and what of the row fits it: nothing, if no row does.
#[derive(Serialize)]
struct Asked<'a> {
    asked: &'a str,
    matched_by: Option<MatchedBy<'a>>,
}

#[derive(Serialize)]
struct PriceLine {
    input: f64,
    cache_read: f64,
    cache_write: f64,
    cache_write_1h: Option<f64>,
    output: f64,
}

impl<'a> ModelLine<'a> {
    fn new(model: &'a Model, asked: Option<Asked<'a>>) -> Self {
        let price = model.price.map(|price| PriceLine {
            input: dollars(price.input),
            cache_read: dollars(price.cache_read),
            cache_write: dollars(price.cache_write),
            cache_write_1h: price.cache_write_1h.map(dollars),
            output: dollars(price.output),
        });
        Self {
            asked,
            name: &model.name,
            window: model.window.0,
            max_output: model.max_output.0,
            tokenizer: model.vocabulary,
            ratio: ratio(model),
            price,
            cache: model.cache,
            binds: model.binds,
            thinking_off: model.thinking_off,
            system_messages: model.system_messages,
            clear_at: model.clear_at,
        }
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}", terminal::json(self)?)
    }
}

/// Prints all rows.
pub fn list(json: bool) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    let models = Models::builtin();
    if json {
        models.iter().try_for_each(|model| ModelLine::new(model, None).print(&mut out))?;
        return Ok(());
    }
    let head = format!(
        "{:22} {:>6} {:>8} {:>8} {:>8} {:>8}  {}",
        "name", "window", "input", "read", "write", "output", "thinking"
    );
    writeln!(out, "{STRONG}{head}{STRONG:#}")?;
    for model in models.iter() {
        let price = |of: fn(Price) -> u64| model.price.map_or("–".to_owned(), |price| shown(of(price)));
        let line = format!(
            "{:22} {:>6} {:>8} {:>8} {:>8} {:>8}  {}",
            model.name,
            short(model.window.0),
            price(|price| price.input),
            price(|price| price.cache_read),
            price(|price| price.cache_write),
            price(|price| price.output),
            if model.binds { "binds" } else { "" },
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(
        out,
        "\nPrices are dollars per million tokens: of the prompt as it is, read from the\n\
         cache, written to it, and of the answer. `longhaul config models NAME` prints\n\
         which row a name means, and everything that is known of it."
    )?;
    Ok(())
}

/// Prints what a name means.
pub fn show(name: &str, json: bool) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    let models = Models::builtin();
    let matched_by = models.resolve(name).map(|(_, matched_by)| matched_by);
    let model = models.find(name);
    if json {
        ModelLine::new(model, Some(Asked { asked: name, matched_by })).print(&mut out)?;
        return Ok(());
    }
    match matched_by {
        Some(matched_by) => {
            writeln!(out, "{STRONG}{}{STRONG:#}", model.name)?;
            match matched_by {
                MatchedBy::Glob(glob) => fact(&mut out, "matched by", &format!("glob {glob:?}"))?,
                MatchedBy::Floor(floor) => fact(&mut out, "matched by", &format!("version floor {floor:?}"))?,
            }
        }
        None => {
            let known: Vec<&str> = models.iter().map(|model| &*model.name).collect();
            let meant = meant(&name.to_lowercase(), &known).map(|meant| format!(" Is {meant:?} meant?"));
            let name = one_line(name, 60);
            writeln!(out, "No row fits {name:?}.{}", meant.unwrap_or_default())?;
            writeln!(out, "Longhaul uses a careful guess:")?;
        }
    }
    facts(model, &mut out)?;
    if matched_by.is_none() {
        writeln!(
            out,
            "\nThe setting `window` sets the window. docs/models.md describes the rows, and\n\
             how a program of your own adds one."
        )?;
    }
    Ok(())
}

/// Prints the facts of a model, one a line.
fn facts(model: &Model, out: &mut impl Write) -> io::Result<()> {
    fact(out, "window", &format!("{} tokens", grouped(model.window.0)))?;
    fact(out, "longest answer", &format!("{} tokens", grouped(model.max_output.0)))?;
    let vocabulary = serde_json::to_value(model.vocabulary)?;
    let vocabulary = vocabulary.as_str().unwrap_or_default();
    fact(out, "tokenizer", &format!("{vocabulary} × {}", ratio(model)))?;
    if let Some(price) = model.price {
        let hour = price.cache_write_1h.map(|hour| format!("; for an hour {}", shown(hour)));
        let per_million = format!("{} dollars per million tokens", shown(price.input));
        fact(out, "input", &per_million)?;
        fact(out, "cache read", &shown(price.cache_read))?;
        fact(out, "cache write", &(shown(price.cache_write) + &hour.unwrap_or_default()))?;
        fact(out, "output", &shown(price.output))?;
    } else {
        fact(out, "prices", "not known")?;
    }
    fact(out, "cache", &cache(model.cache))?;
    let binds = "yes: a block is valid only after the prefix that produced it";
    fact(out, "binds thinking", if model.binds { binds } else { "no" })?;
    let off = match model.thinking_off {
        Some(ThinkingOff::Disabled) => "possible",
        Some(ThinkingOff::BetweenTools) => "only before the first call of a tool (between_tools)",
        Some(ThinkingOff::Never) => "not possible",
        None => "not known",
    };
    fact(out, "thinking off", off)?;
    let taken = if model.system_messages { "taken" } else { "not taken" };
    fact(out, "system messages", &format!("{taken} inside `messages` of Anthropic's API"))?;
    fact(out, "clear_at", if model.clear_at { "taken" } else { "not taken" })
}

fn fact(out: &mut impl Write, what: &str, value: &str) -> io::Result<()> {
    writeln!(out, "  {FAINT}{what:15}{FAINT:#} {value}")
}

fn cache(rule: CacheRule) -> String {
    let steps = if rule.granularity > 1 {
        format!(", steps of {}", grouped(rule.granularity))
    } else {
        String::new()
    };
    let whose = match rule.kind {
        CacheKind::Marked => format!("by the client's marks, at most {}", rule.marks),
        CacheKind::Automatic => "by the provider".to_owned(),
        CacheKind::None => return "none".to_owned(),
    };
    format!("{whose}; from {} tokens{steps}, for {} s", grouped(rule.min_tokens), rule.lifetime_s)
}

/// Tokens of the model per token that is counted.
fn ratio(model: &Model) -> f64 {
    model.ratio_ppm as f64 / 1e6
}

/// Dollars of millionths.
fn dollars(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// Dollars with cents, and with as many more digits as they need.
fn shown(micros: u64) -> String {
    let exact = format!("{:.6}", dollars(micros));
    let (whole, digits) = exact.split_once('.').unwrap_or((&exact, ""));
    format!("{whole}.{:0<2}", digits.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_have_cents_and_no_idle_digits() {
        let prices = [4_000_000, 100_000, 12_500_000, 15_625_000, 3_000, 0].map(shown);
        assert_eq!(prices, ["4.00", "0.10", "12.50", "15.625", "0.003", "0.00"]);
    }
}
