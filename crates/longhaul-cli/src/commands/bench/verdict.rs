//! What `bench` found, in a sentence or two: what a profile costs and keeps, and whether another row does both
//! better.

use crate::lab::comparison::{Tallies, Tally};

/// Cost and memory of a row, as shares.
#[derive(Clone, Copy)]
struct Worth {
    cost: f64,
    /// Lines and names from far back, and names from near by, that are still there.
    kept: [Option<f64>; 3],
}

impl Worth {
    fn of(tally: &Tally) -> Option<Self> {
        (tally.full_cost > 0.0).then(|| Self {
            cost: tally.cost / tally.full_cost,
            kept: [tally.found.in_line(), tally.found.retention(), tally.found.near()],
        })
    }

    fn keeps_as_much_as(self, other: Self) -> bool {
        // Lines rank; of names a point less is as much.
        let least = [0.0, 0.01, 0.01];
        let pairs = self.kept.iter().zip(other.kept).zip(least);
        pairs.into_iter().all(|((ours, theirs), least)| ours.unwrap_or(1.0) + least >= theirs.unwrap_or(1.0))
    }
}

/// The verdict on a profile, if there were calls.
pub fn verdict(profile: &str, window: u64, Tallies(tallies): &Tallies) -> Option<String> {
    let (_, tally) = tallies.iter().find(|(name, _)| name == profile)?;
    let ours = Worth::of(tally)?;
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let kept = match ours.kept[0] {
        Some(in_line) => {
            format!(
                ", and {} of what later calls need from far back is still there, line for line",
                percent(in_line)
            )
        }
        None => "; no call needed anything from far back".to_owned(),
    };
    let first = format!("{profile} costs {} of sending everything{kept}.", percent(ours.cost));
    let unsent = match tally.errors {
        0 => String::new(),
        1 => " One call cannot be sent in this window.".to_owned(),
        errors => format!(" {errors} calls cannot be sent in this window."),
    };
    Some(format!("{first}{unsent} {}", beside(profile, window, ours, tallies)))
}

/// Whether no request of a row was larger than the window.
pub fn fits(tally: &Tally, window: u64) -> bool {
    tally.peak <= window as f64
}

/// What the other rows are beside it. Rows in parentheses, and those that do not fit the window, are no policies that
/// could be used.
fn beside(profile: &str, window: u64, ours: Worth, tallies: &[(String, Tally)]) -> String {
    let others = tallies.iter().filter(|(name, _)| name != profile && !name.starts_with('('));
    let (others, larger): (Vec<_>, Vec<_>) = others.partition(|(_, tally)| fits(tally, window));
    let others = others.into_iter();
    let no_other = if larger.is_empty() { "No other row" } else { "No other row that fits the window" };
    let rivals = others.filter_map(|(name, tally)| Some((name, Worth::of(tally)?)));
    let rival = rivals
        .filter(|(_, worth)| worth.keeps_as_much_as(ours))
        .min_by(|(_, a), (_, b)| a.cost.total_cmp(&b.cost));
    match rival {
        Some((name, worth)) if worth.cost < ours.cost => {
            format!("“{name}” keeps as much for {:.1} %.", worth.cost * 100.0)
        }
        Some((name, worth)) => format!(
            "{no_other} keeps as much, in lines and names, for less; the next that does, “{name}”, costs {:.1} %.",
            worth.cost * 100.0
        ),
        None => format!("{no_other} keeps as much, in lines and names."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, cost: f64) -> (String, Tally) {
        (name.to_owned(), Tally { calls: 1, cost, full_cost: 100.0, ..Tally::default() })
    }

    #[test]
    fn a_cheaper_row_that_keeps_as_much_is_named() {
        let rows = Tallies(vec![row("full, no limit", 100.0), row("(floor)", 5.0), row("longhaul", 40.0)]);
        let text = verdict("longhaul", 200, &rows).unwrap();
        assert_eq!(
            text,
            "longhaul costs 40.0 % of sending everything; no call needed anything from far back. No other row keeps \
             as much, in lines and names, for less; the next that does, “full, no limit”, costs 100.0 %."
        );
        let rows = Tallies(vec![row("mini", 30.0), row("longhaul", 40.0)]);
        assert!(verdict("longhaul", 200, &rows).unwrap().ends_with("“mini” keeps as much for 30.0 %."));
        assert_eq!(verdict("absent", 200, &rows), None);
        // What does not fit cannot be used.
        let mut large = row("full, no limit", 30.0);
        large.1.peak = 201.0;
        let rows = Tallies(vec![large, row("longhaul", 40.0)]);
        assert!(
            verdict("longhaul", 200, &rows)
                .unwrap()
                .ends_with("No other row that fits the window keeps as much, in lines and names.")
        );
    }
}
