//! The commands, a file each: what a command takes, does and prints. No command knows another;
//! what they share is in [`lab`](crate::lab), [`parts`](crate::parts) and [`terminal`](crate::terminal).

pub mod bench;
pub mod compact;
pub mod completions;
pub mod config;
pub mod convert;
pub mod demo;
pub mod explain;
pub mod profiles;
pub mod replay;
pub mod sessions;
