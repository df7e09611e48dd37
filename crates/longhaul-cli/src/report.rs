//! What recorded sessions cost, what filled them, and what Longhaul would have sent.
//!
//! | what | where |
//! |---|---|
//! | where agents keep their sessions | `places` |
//! | a file read line by line into figures, a format each | `scan`, `node` |
//! | the figures of a conversation while it is read, and then | `recorder`, `conversation` |
//! | all files, on all cores, with a cache between runs | `files`, `cache` |
//! | calls counted once, prices, sums | `counted`, `bill`, `totals` |
//! | the same sessions through the engine: one, and all | `replayed`, `comparison` |
//! | what is printed | `text`, `json`, `csv`, `html` |

pub mod bill;
pub mod cache;
pub mod comparison;
pub mod conversation;
pub mod counted;
pub mod csv;
pub mod days;
pub mod files;
pub mod html;
pub mod json;
pub mod node;
pub mod places;
pub mod recorder;
pub mod replayed;
pub mod scan;
pub mod text;
pub mod totals;
