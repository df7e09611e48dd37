//! Text as such: names in it, fingerprints of it, and blocks of bytes looked at together.

pub(crate) mod bits;
pub(crate) mod hash;
pub(crate) mod names;
