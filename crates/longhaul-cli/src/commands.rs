//! The commands, a file each: what a command takes, does and prints. No command knows another;
//! what they share is in [`lab`](crate::lab), [`gateway`](crate::gateway), [`place`](crate::place),
//! [`parts`](crate::parts) and [`terminal`](crate::terminal).

pub mod bench;
pub mod compact;
pub mod completions;
pub mod config;
pub mod convert;
pub mod demo;
pub mod doctor;
pub mod env;
#[cfg(unix)]
pub mod exec_confined;
pub mod explain;
pub mod inspect;
pub mod man;
pub mod persist;
pub mod profiles;
pub mod recall;
pub mod release;
pub mod replay;
pub mod report;
pub mod run;
pub mod serve;
pub mod sessions;
pub mod unpersist;
pub mod wrap;
