//! Text as such: names in it, its words counted, fingerprints of it, its middle cut out, and blocks of
//! bytes looked at together.

pub(crate) mod ansi;
pub(crate) mod bits;
pub(crate) mod count;
pub(crate) mod cut;
pub(crate) mod hash;
pub(crate) mod names;

pub use hash::fingerprint;
