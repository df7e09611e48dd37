//! What commands share that take recorded sessions apart: reading them, taking them through the
//! engine or a reference policy, and measuring what comes out. Knows no command and prints
//! nothing but what cannot be read, and that a model does not answer.

pub use longhaul_lab::{needs, pieces};

pub mod comparison;
pub mod figures;
pub mod growth;
pub mod importing;
pub mod inputs;
pub mod losing;
pub mod opencode_store;
pub mod policies;
pub mod prices;
pub mod recorded;
pub mod summariser;
pub mod thinking;
pub mod transcript_file;
pub mod views;
