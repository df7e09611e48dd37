//! The text of a body that several may hold without a copy.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The text of a body as a client sent it. Clones share it: whoever sends it on as it came has the same bytes as whoever
/// has read it.
#[derive(Clone, Default)]
pub struct SharedText(Arc<String>);

impl Deref for SharedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<[u8]> for SharedText {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> Self {
        Self(Arc::new(text))
    }
}

impl From<&String> for SharedText {
    fn from(text: &String) -> Self {
        text.clone().into()
    }
}

impl From<&str> for SharedText {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl fmt::Debug for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
