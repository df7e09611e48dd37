//! What a gateway did, in the line that `wrap` and `serve` end with: what was billed, what it would have cost without
//! Longhaul, and plainly so where that is less.

use longhaul::Tokens;
use longhaul::size::{Billed, Tally};
use longhaul_gateway::{Costs, Figures, Observed};

use crate::report::text::money;
use crate::terminal::{counted, short};

/// More breaks than one in so many calls are reported.
const CALLS_PER_BREAK: u64 = 4;

/// The last line of a run: the bill, and the estimated cost without Longhaul. Where Longhaul only observed, the estimate is
/// of the cost with it, and another line reports what Longhaul would have done.
pub fn summary(figures: &Figures) -> String {
    let passed_on: u64 = figures.passed_on.values().sum();
    let others = if passed_on == 0 { String::new() } else { format!(" and {passed_on} passed on") };
    if figures.calls == 0 {
        return format!("longhaul: no calls{others}");
    }
    let costs = figures.bookings.total();
    let as_what = As::of(figures);
    let mut clauses =
        vec![format!("longhaul: {}{others}{}", counted(figures.calls, "call", "calls"), as_what.sent())];
    if costs.calls == 0 {
        clauses.push("no answer said what it used, so the cost is not known".to_owned());
    } else {
        clauses.extend(compared(&costs, figures.bookings.has_subscription, as_what));
    }
    clauses.extend(done(figures, &costs, as_what));
    if costs.calls > 0 && costs.calls < figures.calls {
        let unknown = counted(figures.calls - costs.calls, "call is", "calls are");
        clauses.push(format!("{unknown} not in it, as no answer said what was used"));
    }
    if costs.billed.pico > 0 && costs.unpriced > 0 {
        let unpriced = counted(costs.unpriced, "call", "calls");
        clauses.push(format!("{unpriced} of models without a known price not in it"));
    }
    let breaks: u64 = figures.breaks.values().sum();
    if figures.calls >= CALLS_PER_BREAK && breaks * CALLS_PER_BREAK > figures.calls {
        let broke = if as_what == As::Sent { "broke" } else { "would have broken" };
        clauses.push(format!(
            "{breaks} of {} calls {broke} their prefix, and what follows a break is billed as new",
            figures.calls
        ));
    }
    let line = clauses.join("; ");
    match as_what {
        As::Sent => line,
        As::Observed => format!("{line}\n{}", observed(figures, &costs)),
    }
}

/// Whether the views of Longhaul were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum As {
    Sent,
    /// The client's own requests were.
    Observed,
}

impl As {
    fn of(figures: &Figures) -> Self {
        if figures.bookings.observed.calls > 0 { Self::Observed } else { Self::Sent }
    }

    fn sent(self) -> &'static str {
        match self {
            Self::Sent => "",
            Self::Observed => ", sent as they came",
        }
    }

    /// What the estimate is of.
    fn other(self) -> &'static str {
        match self {
            Self::Sent => "without",
            Self::Observed => "with Longhaul",
        }
    }

    /// How the sums of a session with Longhaul and of one without stand to each other.
    fn with_and_without<T>(self, billed: T, otherwise: T) -> (T, T) {
        match self {
            Self::Sent => (billed, otherwise),
            Self::Observed => (otherwise, billed),
        }
    }
}

/// The bill, and the estimate beside it: in dollars, or in tokens where no price is known.
fn compared(costs: &Costs, has_subscription: bool, as_what: As) -> Vec<String> {
    let Costs { billed, otherwise, .. } = costs;
    let (with, without) = as_what.with_and_without(billed, otherwise);
    let other = as_what.other();
    if billed.pico == 0 {
        let worse = match neutral(&with.tokens) > neutral(&without.tokens) {
            true => ": Longhaul costs more, where a cache has the usual prices",
            false => "",
        };
        let about = match billed.tokens == otherwise.tokens {
            true => format!("the same {other}"),
            false => format!("about {} {other}{worse}", prompts(&otherwise.tokens)),
        };
        let billed = format!("{}, {} out", prompts(&billed.tokens), short(billed.tokens.output));
        return vec![billed, about, "no price is known for the model".to_owned()];
    }
    let at = if has_subscription { " at API prices" } else { "" };
    let [paid, estimate] = [billed.dollars(), otherwise.dollars()].map(money);
    let more = || money(with.dollars() - without.dollars());
    let about = match as_what {
        _ if paid == estimate => format!("about the same {other}"),
        As::Sent if with.pico > without.pico => {
            format!("about {estimate} {other}: Longhaul cost {} more", more())
        }
        As::Observed if with.pico > without.pico => {
            format!("about {estimate} {other}, which is {} more", more())
        }
        As::Sent | As::Observed => format!("about {estimate} {other}"),
    };
    vec![format!("{paid}{at}"), about]
}

/// Folds and recalls; or why there was nothing to save.
fn done(figures: &Figures, costs: &Costs, as_what: As) -> Vec<String> {
    let recalls = figures.bookings.all_recalls();
    let mut did = Vec::new();
    if costs.folds > 0 {
        did.push(counted(costs.folds, "fold", "folds"));
    }
    if recalls > 0 {
        did.push(counted(recalls, "recall", "recalls"));
    }
    let mut clauses: Vec<String> = (!did.is_empty()).then(|| did.join(", ")).into_iter().collect();
    let (with, without) = as_what.with_and_without(costs.billed, costs.otherwise);
    let has_saved = with.pico < without.pico || neutral(&with.tokens) < neutral(&without.tokens);
    let fullest = figures.bookings.fullest;
    let nothing = match as_what {
        As::Sent => "nothing was folded",
        As::Observed => "nothing would have been folded",
    };
    match (costs.folds, has_saved || costs.calls == 0) {
        (0, _) if fullest < 50 => {
            clauses.push(format!("{nothing}: the conversation never filled half of its window"));
        }
        (0, _) => clauses.push(format!("{nothing}: the window was {fullest} % full at most")),
        (_, false) => clauses.push("a fold pays back only where many calls follow it".to_owned()),
        (_, true) => {}
    }
    clauses
}

/// What Longhaul would have done to the requests that it only observed, and what that would have cost the model.
fn observed(figures: &Figures, costs: &Costs) -> String {
    let Observed { calls, asked_again, tied, violations } = figures.bookings.observed;
    let (all, sent) = (costs.billed.tokens.prompt(), costs.otherwise.tokens.prompt());
    let left_out = all.saturating_sub(sent);
    let share = (left_out * 100).checked_div(all).unwrap_or_default();
    let mut clauses = vec![format!(
        "longhaul: of {} tokens in {}, it would have left out {} ({share} %)",
        short(all),
        counted(calls, "request", "requests"),
        short(left_out)
    )];
    clauses.push(format!(
        "{} repeated one whose result would have been left out",
        counted(asked_again, "tool call", "tool calls")
    ));
    if tied > 0 {
        let answers = counted(tied, "answer has", "answers have");
        clauses.push(format!(
            "{answers} thinking that would be refused after leaving Longhaul without `longhaul release`"
        ));
    }
    clauses.push(match violations {
        0 => "no rule of the guard would have been broken".to_owned(),
        _ => format!(
            "{} of the guard would have been broken: please report this",
            counted(violations, "rule", "rules")
        ),
    });
    clauses.join("; ")
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

    #[test]
    fn what_was_only_observed_is_reported_in_two_lines() {
        let mut figures = figures(costs(4.4, 3.1, 2));
        figures.bookings.observed = Observed { calls: 31, asked_again: 1, tied: 0, violations: 0 };
        assert_eq!(
            summary(&figures),
            "longhaul: 31 calls, sent as they came; $4.40; about $3.10 with Longhaul; 2 folds\n\
             longhaul: of 4.40M tokens in 31 requests, it would have left out 1.30M (29 %); \
             1 tool call repeated one whose result would have been left out; \
             no rule of the guard would have been broken"
        );
        figures.bookings.costs = [(("messages", "m"), costs(3.1, 4.4, 2))].into();
        figures.bookings.observed.tied = 3;
        figures.bookings.observed.violations = 1;
        let said = summary(&figures);
        assert!(
            said.contains("; about $4.40 with Longhaul, which is $1.30 more; 2 folds; a fold pays"),
            "{said}"
        );
        assert!(
            said.contains("; 3 answers have thinking") && said.contains("; 1 rule of the guard"),
            "{said}"
        );
    }
}
