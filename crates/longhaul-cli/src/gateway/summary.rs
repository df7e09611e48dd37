//! What a gateway did, in the line that `wrap` and `serve` end with: what was billed, what it would have cost without
//! Longhaul, and plainly so where that is less.

use longhaul::Tokens;
use longhaul::size::{Billed, Tally};
use longhaul_gateway::{Costs, Figures};

use crate::report::text::money;
use crate::terminal::{counted, short};

/// More breaks than one in so many calls are reported.
const CALLS_PER_BREAK: u64 = 4;

/// What was billed, and what it would have cost without Longhaul, in one line.
pub fn summary(figures: &Figures) -> String {
    let passed_on: u64 = figures.passed_on.values().sum();
    let others = if passed_on == 0 { String::new() } else { format!(" and {passed_on} passed on") };
    if figures.calls == 0 {
        return format!("longhaul: no calls{others}");
    }
    let costs = figures.bookings.total();
    let mut clauses = vec![format!("longhaul: {}{others}", counted(figures.calls, "call", "calls"))];
    if costs.calls == 0 {
        clauses.push("no answer said what it used, so the cost is not known".to_owned());
    } else {
        clauses.extend(compared(&costs, figures.bookings.has_subscription));
    }
    clauses.extend(done(figures, &costs));
    if costs.calls > 0 && costs.calls < figures.calls {
        let unknown = counted(figures.calls - costs.calls, "call is", "calls are");
        clauses.push(format!("{unknown} not in it, as no answer said what was used"));
    }
    if costs.billed.pico > 0 && costs.unpriced > 0 {
        clauses.push(format!(
            "{} of models without a known price not in it",
            counted(costs.unpriced, "call", "calls")
        ));
    }
    let breaks: u64 = figures.breaks.values().sum();
    if figures.calls >= CALLS_PER_BREAK && breaks * CALLS_PER_BREAK > figures.calls {
        clauses.push(format!(
            "{breaks} of {} calls broke their prefix, and what follows a break is billed as new",
            figures.calls
        ));
    }
    clauses.join("; ")
}

/// The bill, and the estimate beside it: in dollars, or in tokens where no price is known.
fn compared(costs: &Costs, has_subscription: bool) -> Vec<String> {
    let Costs { billed, otherwise, .. } = costs;
    if billed.pico == 0 {
        let prices = "no price is known for the model".to_owned();
        let worse = match neutral(&billed.tokens) > neutral(&otherwise.tokens) {
            true => ", which is less where a cache has the usual prices",
            false => "",
        };
        let about = match billed.tokens == otherwise.tokens {
            true => "the same without".to_owned(),
            false => format!("about {} without{worse}", prompts(&otherwise.tokens)),
        };
        return vec![
            format!("{}, {} out", prompts(&billed.tokens), short(billed.tokens.output)),
            about,
            prices,
        ];
    }
    let at = if has_subscription { " at API prices" } else { "" };
    let [paid, other] = [billed.dollars(), otherwise.dollars()].map(money);
    let about = match () {
        () if paid == other => "about the same without".to_owned(),
        () if billed.pico > otherwise.pico => {
            format!(
                "about {other} without: Longhaul cost {} more",
                money(billed.dollars() - otherwise.dollars())
            )
        }
        () => format!("about {other} without"),
    };
    vec![format!("{paid}{at}"), about]
}

/// Folds and recalls; or why there was nothing to save.
fn done(figures: &Figures, costs: &Costs) -> Vec<String> {
    let recalls = figures.bookings.all_recalls();
    let mut did = Vec::new();
    if costs.folds > 0 {
        did.push(counted(costs.folds, "fold", "folds"));
    }
    if recalls > 0 {
        did.push(counted(recalls, "recall", "recalls"));
    }
    let mut clauses: Vec<String> = (!did.is_empty()).then(|| did.join(", ")).into_iter().collect();
    let has_saved = costs.billed.pico < costs.otherwise.pico
        || neutral(&costs.billed.tokens) < neutral(&costs.otherwise.tokens);
    let fullest = figures.bookings.fullest;
    match (costs.folds, has_saved || costs.calls == 0) {
        (0, _) if fullest < 50 => {
            clauses.push("nothing was folded: the conversation never filled half of its window".to_owned());
        }
        (0, _) => clauses.push(format!("nothing was folded: the window was {fullest} % full at most")),
        (_, false) => clauses.push("a fold pays back only where many calls follow it".to_owned()),
        (_, true) => {}
    }
    clauses
}

/// Tokens of prompts, by whether the cache had them.
fn prompts(tokens: &Tally) -> String {
    let new = tokens.input.saturating_add(tokens.written);
    format!("{} tokens from the cache and {} new", short(tokens.read), short(new))
}

/// The cost of prompts where no price is known, in thousandths of a token.
fn neutral(tokens: &Tally) -> u64 {
    let written = Tokens(tokens.input.saturating_add(tokens.written));
    Billed { read: Tokens(tokens.read), written }.cost_milli()
}

#[cfg(test)]
mod tests {
    use longhaul_gateway::{Bookings, Spent};

    use super::*;

    fn spent(dollars: f64, [read, written, output]: [u64; 3]) -> Spent {
        Spent { tokens: Tally { read, written, output, ..Tally::default() }, pico: (dollars * 1e12) as u128 }
    }

    fn costs(billed: f64, otherwise: f64, folds: u64) -> Costs {
        let tokens = |dollars: f64| [(dollars * 1e6) as u64, 1_000, 100];
        let (billed, otherwise) = (spent(billed, tokens(billed)), spent(otherwise, tokens(otherwise)));
        Costs { calls: 31, billed, otherwise, folds, ..Costs::default() }
    }

    fn figures(costs: Costs) -> Figures {
        let bookings = Bookings { costs: [(("messages", "m"), costs)].into(), ..Bookings::default() };
        Figures { calls: 31, bookings: Bookings { fullest: 100, ..bookings }, ..Figures::default() }
    }

    #[test]
    fn the_line_compares_in_money() {
        assert_eq!(summary(&Figures::default()), "longhaul: no calls");
        let mut cheaper = figures(costs(3.1, 4.4, 2));
        cheaper.bookings.recalls = 3;
        assert_eq!(summary(&cheaper), "longhaul: 31 calls; $3.10; about $4.40 without; 2 folds, 3 recalls");
        cheaper.bookings.has_subscription = true;
        cheaper.passed_on.insert("side", 1);
        assert_eq!(
            summary(&cheaper),
            "longhaul: 31 calls and 1 passed on; $3.10 at API prices; about $4.40 without; 2 folds, 3 recalls"
        );
    }

    #[test]
    fn the_line_says_when_it_was_worse() {
        assert_eq!(
            summary(&figures(costs(3.1, 2.9, 1))),
            "longhaul: 31 calls; $3.10; about $2.90 without: Longhaul cost $0.20 more; 1 fold; \
             a fold pays back only where many calls follow it"
        );
    }

    #[test]
    fn the_line_says_why_nothing_was_saved() {
        let mut whole = figures(costs(3.1, 3.1, 0));
        whole.bookings.fullest = 49;
        assert_eq!(
            summary(&whole),
            "longhaul: 31 calls; $3.10; about the same without; \
             nothing was folded: the conversation never filled half of its window"
        );
        whole.bookings.fullest = 71;
        assert!(summary(&whole).ends_with("; nothing was folded: the window was 71 % full at most"));
    }

    #[test]
    fn the_line_reports_breaks_of_more_than_one_call_in_four() {
        let mut figures = figures(costs(3.1, 4.4, 2));
        figures.breaks = [("frame", 5), ("edited", 2)].into();
        assert!(!summary(&figures).contains("broke"));
        figures.breaks.insert("other", 1);
        assert!(summary(&figures).contains("; 8 of 31 calls broke their prefix"), "{}", summary(&figures));
    }

    #[test]
    fn without_a_price_the_line_counts_tokens() {
        let mut unpriced = costs(0.0, 0.0, 2);
        unpriced.unpriced = 31;
        unpriced.billed.tokens = spent(0.0, [844_000, 76_600, 568]).tokens;
        unpriced.otherwise.tokens = spent(0.0, [1_220_000, 140_000, 568]).tokens;
        assert_eq!(
            summary(&figures(unpriced)),
            "longhaul: 31 calls; 844k tokens from the cache and 76.6k new, 568 out; \
             about 1.22M tokens from the cache and 140k new without; no price is known for the model; 2 folds"
        );
        let some = Costs { unpriced: 2, ..costs(3.1, 4.4, 2) };
        assert!(summary(&figures(some)).ends_with("; 2 calls of models without a known price not in it"));
        let mut unknown = figures(Costs::default());
        unknown.bookings.costs.clear();
        assert!(summary(&unknown).contains("31 calls; no answer said what it used"));
    }
}
