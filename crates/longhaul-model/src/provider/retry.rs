//! Asking again: how often, and after how long.

use std::time::{Duration, SystemTime};

use reqwest::Response;

use crate::fault::Fault;

/// When to ask again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// So often at most, the first time included.
    pub attempts: u32,
    /// The first pause; each is twice as long as the one before.
    pub first: Duration,
    /// No pause is longer. A provider that wants a longer one has refused.
    pub longest: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 6, first: Duration::from_millis(500), longest: Duration::from_secs(60) }
    }
}

impl Retry {
    /// The pause before the next attempt, when so many were made and the last ended so; `None` to give up.
    pub(super) fn pause(&self, attempts: u32, fault: &Fault) -> Option<Duration> {
        if !fault.passes() || attempts >= self.attempts {
            return None;
        }
        if let Some(wanted) = fault.retry_after() {
            return (wanted <= self.longest).then_some(wanted);
        }
        let doubled = self.first.saturating_mul(1 << attempts.saturating_sub(1).min(20)).min(self.longest);
        // Clients that were refused together do not come back together.
        Some(doubled.mul_f64(0.75 + 0.25 * chance()))
    }
}

/// A number from 0 to 1 that others do not share.
fn chance() -> f64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    f64::from(now.subsec_nanos() % 1_000_003) / 1_000_003.0
}

/// How long a provider wants to be left alone, by its headers.
pub(super) fn after(response: &Response) -> Option<Duration> {
    let number = |name| response.headers().get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|ms| ms / 1_000.0).or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(retry_after: Option<u64>) -> Fault {
        Fault::Limited { retry_after: retry_after.map(Duration::from_secs), says: String::new() }
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let retry = Retry { attempts: 10, first: Duration::from_secs(1), longest: Duration::from_secs(5) };
        for (attempt, most) in [(1, 1.0), (2, 2.0), (3, 4.0), (4, 5.0), (9, 5.0)] {
            let pause = retry.pause(attempt, &limited(None)).unwrap().as_secs_f64();
            assert!(pause <= most && pause >= most * 0.75, "{attempt} {pause}");
        }
        assert_eq!(retry.pause(10, &limited(None)), None);
    }

    #[test]
    fn what_the_provider_says_counts_and_what_does_not_pass_is_not_tried_again() {
        let retry = Retry::default();
        assert_eq!(retry.pause(1, &limited(Some(7))), Some(Duration::from_secs(7)));
        assert_eq!(retry.pause(1, &limited(Some(3_600))), None);
        assert_eq!(retry.pause(1, &Fault::Key("no".to_owned())), None);
        assert!(retry.pause(1, &Fault::Cut).is_some());
    }
}
