//! Sessions that cost more than sending everything: what makes one, and how they are counted.

/// Sessions that cost more than sending everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Losing {
    /// How many.
    pub sessions: u64,
    /// … by more than 2 % of what sending everything costs.
    pub over_2: u64,
    /// … by more than 5 %.
    pub over_5: u64,
    /// What they cost more, together.
    pub cost: f64,
}

impl Losing {
    /// One session that cost so much, where sending everything costs `full`.
    pub fn of(cost: f64, full: f64) -> Self {
        let over = |percent: f64| u64::from(cost > full * (1.0 + percent / 100.0));
        // Rounding is not a loss.
        Self { sessions: over(0.001), over_2: over(2.0), over_5: over(5.0), cost: (cost - full).max(0.0) }
    }

    /// Adds others.
    pub fn add(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.over_2 += other.over_2;
        self.over_5 += other.over_5;
        self.cost += other.cost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_loses_by_what_it_costs_more() {
        let counts = |cost: f64| {
            let losing = Losing::of(cost, 1_000.0);
            (losing.sessions, losing.over_2, losing.over_5, losing.cost)
        };
        assert_eq!(counts(900.0), (0, 0, 0, 0.0));
        // Rounding.
        assert_eq!(counts(1_000.005).0, 0);
        assert_eq!(counts(1_001.0), (1, 0, 0, 1.0));
        assert_eq!(counts(1_021.0), (1, 1, 0, 21.0));
        assert_eq!(counts(1_051.0), (1, 1, 1, 51.0));
        // Where sending everything costs nothing, anything is more.
        assert_eq!(Losing::of(0.0, 0.0).sessions, 0);
        let mut all = Losing::of(900.0, 1_000.0);
        all.add(Losing::of(1_030.0, 1_000.0));
        assert_eq!((all.sessions, all.over_2, all.cost), (1, 1, 30.0));
    }
}
