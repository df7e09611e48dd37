//! Formats in which conversations come and go: Longhaul's own ([`transcript`]), the files
//! that other agents write ([`agents`]), and the requests of three APIs ([`api`]).

#![forbid(unsafe_code)]

pub mod agents;
pub mod api;
mod base64;
mod fields;
mod scan;
mod speakers;
mod surrogates;
pub mod transcript;

pub use surrogates::mended_surrogates;
