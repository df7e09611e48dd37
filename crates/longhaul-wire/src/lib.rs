//! Formats in which conversations come and go: Longhaul's own ([`transcript`]) and the files
//! that other agents write ([`agents`]).

#![forbid(unsafe_code)]

pub mod agents;
mod base64;
mod fields;
pub mod transcript;
