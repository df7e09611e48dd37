//! Text as such: names in it, fingerprints of it, its middle cut out, and blocks of bytes looked at
//! together.

pub(crate) mod bits;
pub(crate) mod cut;
pub(crate) mod hash;
pub(crate) mod names;

pub use hash::fingerprint;
