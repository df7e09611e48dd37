//! A launcher of confined commands: what `longhaul exec-confined` is, for programs that have the agent as a library.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use longhaul_agent::launch_confined;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (options, command) = match arguments.iter().position(|argument| argument == "--") {
        Some(at) => (&arguments[..at], &arguments[at + 1..]),
        None => (&arguments[..], &[][..]),
    };
    let anywhere = [OsString::from("exec-confined"), OsString::from("--anywhere")];
    if options == anywhere {
        return ended(launch_confined(None, command));
    }
    let folders: Option<Vec<PathBuf>> = match options {
        [name, folders @ ..] if name == "exec-confined" => folders.chunks(2).map(folder).collect(),
        _ => None,
    };
    let Some(folders) = folders else {
        eprintln!("usage: launcher exec-confined [--anywhere | --write FOLDER…] [-- COMMAND ARGUMENTS…]");
        return ExitCode::from(2);
    };
    ended(launch_confined(Some(&folders), command))
}

fn ended(launched: std::io::Result<()>) -> ExitCode {
    match launched {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn folder(option: &[OsString]) -> Option<PathBuf> {
    match option {
        [write, folder] if write == "--write" => Some(folder.into()),
        _ => None,
    }
}
