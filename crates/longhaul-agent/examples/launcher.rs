//! A launcher of confined commands: what `longhaul exec-confined` is, for programs that have the agent as a library.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|argument| argument != "exec-confined") {
        eprintln!("usage: launcher exec-confined --write FOLDER… -- COMMAND ARGUMENTS…");
        return ExitCode::from(2);
    }
    match longhaul_agent::launch_confined(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
