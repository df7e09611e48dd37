//! Formats in which conversations come and go. As yet Longhaul's own: [`transcript`].

#![forbid(unsafe_code)]

mod base64;
mod fields;
pub mod transcript;
