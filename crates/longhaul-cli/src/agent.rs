//! The agent on the command line: what it is told, and how a person or a script sees it work.

pub mod consent_text;
pub mod json_front;
pub mod kept_rules;
pub mod options;
pub mod outlet;
pub mod plain_front;
pub mod secrets;
pub mod shell;
pub mod spent;
pub mod terminal;
pub mod thinking;
