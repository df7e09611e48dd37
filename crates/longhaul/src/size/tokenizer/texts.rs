//! The counts of texts that were met before: a summary that is checked and then shown, a file
//! that is read twice, a history that is loaded again.

use std::collections::HashMap;

use super::TextCount;
use crate::text::hash::{Quick, fingerprint};

/// A shorter text is counted faster than it is remembered.
const SHORTEST: usize = 256;
/// So many texts are remembered in each of two generations: about a megabyte in all.
const REMEMBERED: usize = 7 << 11;

/// Counts by fingerprint.
#[derive(Default)]
pub(super) struct Texts {
    young: HashMap<u128, TextCount, Quick>,
    old: HashMap<u128, TextCount, Quick>,
}

impl Texts {
    /// The count of a text. `find` finds out that of a new one.
    pub fn count(&mut self, text: &str, find: impl FnOnce(&str) -> TextCount) -> TextCount {
        if text.len() < SHORTEST {
            return find(text);
        }
        let key = fingerprint(text.as_bytes());
        if let Some(count) = self.young.get(&key) {
            return *count;
        }
        let count = self.old.get(&key).copied().unwrap_or_else(|| find(text));
        if self.young.len() >= REMEMBERED {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, count);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_met_again_is_not_counted_and_memory_is_bounded() {
        let mut texts = Texts::default();
        let text = |n: usize| format!("{n:0>SHORTEST$}");
        let count = |tokens| TextCount { tokens, exact: true };
        for n in 0..3 * REMEMBERED {
            assert_eq!(texts.count(&text(n), |_| count(n as u64)), count(n as u64));
        }
        assert!(texts.young.len() + texts.old.len() <= 2 * REMEMBERED);
        let last = 3 * REMEMBERED - 1;
        assert_eq!(texts.count(&text(last), |_| count(0)), count(last as u64));
        assert_eq!(texts.count(&text(0), |_| count(7)), count(7), "the first are forgotten");
    }
}
