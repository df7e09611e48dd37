//! What usage teaches about a model: how many of its tokens a counted token is, and what
//! each answer brings that nobody can see (hidden reasoning, reminders of the host). Two
//! numbers, fitted by least squares with forgetting; whole numbers throughout, so that the
//! same usage gives the same decisions on any machine.

use serde::{Deserialize, Serialize};

/// A ratio outside of this is a mistake of the record, not a tokenizer.
const LEARNT_PPM: std::ops::RangeInclusive<u64> = 300_000..=3_000_000;
/// Fixed point of the sums.
const ONE: i64 = 1 << 20;
/// How firmly the starting ratio is held: as by this many counted tokens seen.
const PRIOR_COUNTED: i64 = 1_000;
/// How firmly "an answer brings nothing hidden" is held, in tenths of an observation.
const PRIOR_ANSWERS_TENTHS: i64 = 1;
/// The error of an observation grows with its size; small ones still have this much.
const NOISE: i64 = 200;
/// Old observations lose a hundredth of their weight with each new one.
const FORGET_PERCENT: i64 = 1;
/// More than this in one step is a mistake of the record.
const LARGEST: i64 = 1_000_000;
/// No answer brings more than this that cannot be seen.
const MOST_PER_ANSWER: i64 = 2_000;

/// The learnt relation `tokens = ratio × counted + per_answer × answers`.
///
/// ```
/// use longhaul::size::Calibration;
/// let mut calibration = Calibration::new(1_000_000);
/// for n in 0..200 {
///     let counted = 300 + 37 * (n % 50);
///     calibration.learn(counted, 1, counted * 13 / 10 + 90);
/// }
/// // 1.3 of a token each, and 90 for each answer: 10,000 counted in ten answers are 13,900.
/// assert!((13_700..14_100).contains(&calibration.tokens(10_000, 10)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    ratio_ppm: u64,
    per_answer: u64,
    learnt: u32,
    sums: Sums,
}

/// Weighted sums of the products of: c(ounted), a(nswers), g(rowth).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Sums {
    cc: i64,
    ca: i64,
    aa: i64,
    cg: i64,
    ag: i64,
}

impl Calibration {
    /// Nothing learnt yet: a starting ratio in millionths.
    pub fn new(ratio_ppm: u64) -> Self {
        let ratio_ppm = ratio_ppm.clamp(*LEARNT_PPM.start(), *LEARNT_PPM.end());
        let cc = PRIOR_COUNTED * ONE;
        let cg = scale(cc, ratio_ppm);
        let aa = ONE * PRIOR_ANSWERS_TENTHS / 10;
        Self { ratio_ppm, per_answer: 0, learnt: 0, sums: Sums { cc, ca: 0, aa, cg, ag: 0 } }
    }

    /// Tokens of the model per counted token, in millionths.
    pub fn ratio_ppm(&self) -> u64 {
        self.ratio_ppm
    }

    /// Tokens that each answer brings beside its text.
    pub fn per_answer(&self) -> u64 {
        self.per_answer
    }

    /// True once any usage was seen.
    pub fn has_learnt(&self) -> bool {
        self.learnt > 0
    }

    /// Tokens of the model for a sum of counts. Negative for a difference that shrinks.
    pub fn tokens(&self, counted: i64, answers: i64) -> i64 {
        let tokens = i128::from(counted) * i128::from(self.ratio_ppm);
        let whole = tokens.div_euclid(1_000_000) + i128::from(tokens.rem_euclid(1_000_000) > 0);
        clamp_i64(whole.saturating_add(i128::from(answers) * i128::from(self.per_answer)))
    }

    /// Takes in that the prompt grew by `growth` when this was added. What shrank teaches
    /// nothing (something was removed), and a wild figure only as much as a bold one would.
    pub fn learn(&mut self, counted: i64, answers: i64, growth: i64) {
        if counted <= 0 || counted > LARGEST || !(0..=1000).contains(&answers) || growth <= 0 {
            return;
        }
        let growth = growth.clamp(counted / 2, counted * 4 + MOST_PER_ANSWER);
        let weight = ONE / (counted + NOISE);
        let sums = &mut self.sums;
        for (sum, product) in [
            (&mut sums.cc, counted.saturating_mul(counted)),
            (&mut sums.ca, counted * answers),
            (&mut sums.aa, answers * answers),
            (&mut sums.cg, counted.saturating_mul(growth)),
            (&mut sums.ag, answers * growth),
        ] {
            let kept = *sum - *sum / 100 * FORGET_PERCENT;
            *sum = clamp_i64(i128::from(kept) + i128::from(product) * i128::from(weight));
        }
        self.learnt = self.learnt.saturating_add(1);
        self.solve();
    }

    /// Least squares in two unknowns; each is kept where it can be, and the other follows.
    fn solve(&mut self) {
        let Sums { cc, ca, aa, cg, ag } = self.sums;
        let [cc, ca, aa, cg, ag] = [cc, ca, aa, cg, ag].map(i128::from);
        const PPM: i128 = 1_000_000;
        let within =
            |ratio: i128| ratio.clamp(i128::from(*LEARNT_PPM.start()), i128::from(*LEARNT_PPM.end()));
        // Never 0: both priors decay, but not below the newest observation.
        let (cc, aa) = (cc.max(1), aa.max(1));
        let determinant = (cc * aa - ca * ca).max(1);
        let mut ratio = within((cg * aa - ag * ca) * PPM / determinant);
        let mut per_answer = (ag * PPM - ratio * ca) / (aa * PPM);
        if !(0..=i128::from(MOST_PER_ANSWER)).contains(&per_answer) {
            per_answer = per_answer.clamp(0, i128::from(MOST_PER_ANSWER));
            ratio = within((cg - per_answer * ca) * PPM / cc);
        }
        self.ratio_ppm = ratio as u64;
        self.per_answer = per_answer as u64;
    }
}

fn scale(value: i64, ppm: u64) -> i64 {
    clamp_i64(i128::from(value) * i128::from(ppm) / 1_000_000)
}

fn clamp_i64(value: i128) -> i64 {
    value.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_is_learnt_from_a_shrunk_prompt() {
        let mut calibration = Calibration::new(1_350_000);
        calibration.learn(1000, 1, -500);
        calibration.learn(0, 1, 500);
        assert_eq!(calibration, Calibration::new(1_350_000));
    }

    #[test]
    fn one_wild_figure_does_not_ruin_the_ratio() {
        let mut calibration = Calibration::new(1_250_000);
        for _ in 0..30 {
            calibration.learn(1000, 1, 1300);
        }
        calibration.learn(50, 1, 100_000);
        assert!(calibration.tokens(10_000, 10) < 15_000, "{calibration:?}");
    }

    #[test]
    fn a_stored_calibration_goes_on_as_if_never_stored() {
        let mut a = Calibration::new(1_250_000);
        a.learn(700, 1, 1000);
        let text = serde_json::to_string(&a).unwrap();
        let mut b: Calibration = serde_json::from_str(&text).unwrap();
        a.learn(2000, 1, 3000);
        b.learn(2000, 1, 3000);
        assert_eq!(a, b);
    }

    proptest! {
        #[test]
        fn never_panics_and_stays_in_bounds(seen in prop::collection::vec((any::<i64>(), any::<i64>(), any::<i64>()), 0..200),
                                            real in prop::collection::vec((0..50_000i64, 0..3i64, -5_000..100_000i64), 0..200),
                                            counted: i64, answers: i64) {
            let mut calibration = Calibration::new(1_000_000);
            for (counted, answers, growth) in seen.into_iter().chain(real) {
                calibration.learn(counted, answers, growth);
                prop_assert!(LEARNT_PPM.contains(&calibration.ratio_ppm()));
                prop_assert!(calibration.per_answer() <= MOST_PER_ANSWER as u64);
            }
            calibration.tokens(counted, answers);
        }
    }
}
