//! How good a view is: what the next call of a recorded session needs of its log, and whether the view has it.
//! Definitions are in `docs/measuring.md`. The commands that replay sessions and the inspector judge by it.

#![forbid(unsafe_code)]

pub mod needs;
mod numbered;
mod origin;
mod own_compaction;
pub mod pieces;

pub use origin::Origin;
pub use own_compaction::OwnCompaction;
