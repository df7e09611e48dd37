//! A launcher of confined commands: what `longhaul exec-confined` is, for programs that have the agent as a library.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use longhaul_agent::{Bounds, launch_confined};

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
    let bounds = match options {
        [name, options @ ..] if name == "exec-confined" => bounds(options),
        _ => None,
    };
    let Some(bounds) = bounds else {
        eprintln!(
            "usage: launcher exec-confined [--anywhere | --write FOLDER… --keep PATH… --hide PATH…] [-- COMMAND…]"
        );
        return ExitCode::from(2);
    };
    ended(launch_confined(Some(&bounds), command))
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

fn bounds(options: &[OsString]) -> Option<Bounds> {
    let mut bounds = Bounds::default();
    for option in options.chunks(2) {
        let [name, path] = option else { return None };
        let paths = match name.to_str()? {
            "--write" => &mut bounds.writable,
            "--keep" => &mut bounds.kept,
            "--hide" => &mut bounds.hidden,
            _ => return None,
        };
        paths.push(PathBuf::from(path));
    }
    Some(bounds)
}
