//! A key of a provider: it goes into a header, and nowhere else.

use std::fmt;

/// What stands in the place of a key wherever text is shown or kept.
const REDACTED: &str = "[key]";

/// What stands behind a text that was cut.
pub(crate) const CUT: char = '…';

/// A key. Neither its `Debug` nor anything else of it can be printed.
///
/// ```
/// use longhaul_model::Key;
/// let key = Key::new("sk-123456");
/// assert_eq!(format!("{key:?}"), "[key]");
/// assert_eq!(key.redacted("wrong key sk-123456 given"), "wrong key [key] given");
/// assert_eq!(key.redacted("wrong key sk-1234…"), "wrong key [key]…");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Box<str>);

impl Key {
    /// This key. Space around it is none of it.
    pub fn new(key: &str) -> Self {
        Self(key.trim().into())
    }

    /// The key in a variable of the environment, if it is there and not empty.
    pub fn from_env(name: &str) -> Option<Self> {
        std::env::var(name).ok().map(|key| Self::new(&key)).filter(|key| !key.0.is_empty())
    }

    /// A text without this key in it.
    pub fn redacted(&self, text: &str) -> String {
        /// Fewer characters are no secret, and may stand anywhere.
        const LEAST: usize = 6;
        if self.0.len() < LEAST {
            return text.to_owned();
        }
        let text = text.replace(&*self.0, REDACTED);
        // What is quoted may have been cut in the middle of the key.
        let Some(kept) = text.strip_suffix(CUT) else { return text };
        let begun = self.0.char_indices().map(|(end, _)| &self.0[..end]).skip(LEAST);
        match begun.filter(|start| kept.ends_with(start)).last() {
            Some(start) => format!("{}{REDACTED}{CUT}", &kept[..kept.len() - start.len()]),
            None => text,
        }
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}
