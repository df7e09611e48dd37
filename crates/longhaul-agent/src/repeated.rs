//! A call that fails again and again: the model is told, so that it tries something else.

use longhaul::Json;

/// Failures in a row of the same call before the model is told.
const TOLD: usize = 3;

/// The call that failed last, and how often it did in a row.
#[derive(Debug, Default)]
pub(crate) struct RepeatedFailures {
    call: Option<blake3::Hash>,
    times: usize,
}

impl RepeatedFailures {
    /// A call was answered. Says what the model should know of it.
    pub(crate) fn note(&mut self, tool: &str, arguments: &Json, failed: bool) -> Option<String> {
        let call = blake3::hash(format!("{tool}\n{}", arguments.as_str()).as_bytes());
        if !failed {
            // Another call that works changes nothing for this one.
            if self.call == Some(call) {
                *self = Self::default();
            }
            return None;
        }
        self.times = if self.call == Some(call) { self.times + 1 } else { 1 };
        self.call = Some(call);
        let times = self.times;
        (times >= TOLD)
            .then(|| format!("This same call of {tool} has failed {times} times. Do not repeat it: find out why, or try another way."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_failure_of_the_same_call_is_told() {
        let mut failures = RepeatedFailures::default();
        let json = |text: &str| Json::new(text).unwrap();
        let mut told =
            |tool: &str, arguments: &str, failed| failures.note(tool, &json(arguments), failed).is_some();
        assert!(!told("Bash", "{}", true));
        assert!(!told("Read", "{}", false));
        assert!(!told("Bash", "{}", true));
        assert!(told("Bash", "{}", true));
        assert!(told("Bash", "{}", true));
        assert!(!told("Bash", "{\"a\":1}", true));
        assert!(!told("Bash", "{}", true));
        assert!(!told("Bash", "{}", false));
        assert!(!told("Bash", "{}", true));
    }
}
