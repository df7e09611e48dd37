//! The command line of Longhaul. Errors are one line on stderr; exit code 2 for bad usage or
//! input, 1 for a failure.

#![forbid(unsafe_code)]

mod agent;
mod arguments;
mod build;
mod commands;
mod error;
mod file_start;
mod filling;
mod gateway;
mod lab;
mod output_file;
mod parts;
mod place;
mod report;
mod terminal;
mod writing_model;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use longhaul_config::Config;

use agent::options::Options;
use commands::{
    bench, compact, completions, config, convert, demo, doctor, env, explain, inspect, man, persist,
    profiles, recall, release, replay, report as report_command, run, serve, sessions, unpersist, wrap,
};
use error::Failure;

/// Keeps an LLM agent's conversation inside its context window.
#[derive(Parser)]
#[command(name = "longhaul", version, long_version = build::described(), max_term_width = 80)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Without a command the agent is started in the current folder.

Examples:
  longhaul                            an agent in this project, in the terminal
  longhaul demo                       a long session in a small window, live
  longhaul run \"mend the parser\"      an agent works on this project
  longhaul report                     what your sessions cost, and why
  longhaul replay session.jsonl.gz    what a recorded session was, call by call
  longhaul replay *.gz --json         the same for scripts, one JSON line a file
  longhaul bench corpus               profiles beside reference policies
  longhaul profiles archive           what a way to compact does
  longhaul explain session.jsonl --call 40     what would be sent there, and why
  longhaul inspect session.jsonl      the same in a browser, call by call
  longhaul wrap claude                Claude Code, longer and cheaper
  longhaul serve                      the same for any agent, by its base URL
  longhaul doctor                     whether that would work here
  longhaul convert rollout.jsonl out.jsonl     another agent's session as ours
  longhaul sessions list              stored sessions, the newest first")]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: Options,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Demo(demo::Args),
    Report(report_command::Args),
    Replay(replay::Args),
    Bench(bench::Args),
    Explain(explain::Args),
    Inspect(inspect::Args),
    Compact(compact::Args),
    Recall(recall::Args),
    Release(release::Args),
    Convert(convert::Args),
    Sessions(sessions::Args),
    Config(config::Args),
    Profiles(profiles::Args),
    Serve(serve::Args),
    Wrap(wrap::Args),
    Env(env::Args),
    Persist(persist::Args),
    Unpersist(unpersist::Args),
    Doctor(doctor::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[cfg(unix)]
    ExecConfined(commands::exec_confined::Args),
}

fn main() -> ExitCode {
    // A broken file of settings is an error of the commands that go by it.
    agent::secrets::receive();
    let config = agent::secrets::settings().map_err(Failure::from);
    let parsed =
        command(config.as_ref().ok()).try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        // Help and version are no errors; clap knows where each goes.
        Err(error) => {
            let code = if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
            return match error.print() {
                Ok(()) => code,
                // Who reads has enough, as `head` does.
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => code,
                Err(_) => ExitCode::FAILURE,
            };
        }
    };
    if let (None | Some(Command::Run(_)), Ok(config)) = (&cli.command, &config) {
        agent::secrets::hide(config.agent().key_env);
    }
    let Some(command) = cli.command else {
        return match config.and_then(|config| agent::terminal::run(cli.options, &config)) {
            Ok(code) => code,
            Err(failure) => ended(Err(failure)),
        };
    };
    let done = match command {
        Command::Run(args) => match config.and_then(|config| run::run(&args, &config)) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Demo(args) => demo::run(&args),
        Command::Replay(args) => config.and_then(|config| replay::run(&args, &config)),
        Command::Report(args) => config.and_then(|config| report_command::run(&args, &config)),
        Command::Bench(args) => config.and_then(|config| bench::run(&args, &config)),
        Command::Explain(args) => config.and_then(|config| explain::run(&args, &config)),
        Command::Inspect(args) => config.and_then(|config| inspect::run(&args, &config)),
        Command::Compact(args) => config.and_then(|config| compact::run(&args, &config)),
        Command::Recall(args) => config.and_then(|config| recall::run(&args, &config)),
        Command::Release(args) => config.and_then(|config| release::run(&args, &config)),
        Command::Convert(args) => convert::run(&args),
        Command::Sessions(args) => config.and_then(|config| sessions::run(&args, &config)),
        Command::Config(args) => config.and_then(|config| config::run(&args, &config)),
        Command::Profiles(args) => config.and_then(|config| profiles::run(&args, &config)),
        Command::Serve(args) => config.and_then(|config| serve::run(&args, &config)),
        Command::Wrap(args) => match wrap::run(&args, config) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Env(args) => env::run(&args),
        Command::Persist(args) => persist::run(&args),
        Command::Unpersist(args) => unpersist::run(&args),
        Command::Doctor(args) => match doctor::run(&args, config) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Completions(args) => completions::run(&args, Cli::command()),
        Command::Man(args) => man::run(&args, Cli::command()),
        #[cfg(unix)]
        Command::ExecConfined(args) => commands::exec_confined::run(&args),
    };
    ended(done)
}

/// The exit code, with what went wrong said on stderr.
fn ended(done: Result<(), Failure>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            // Where stderr is closed the exit code says it alone.
            // A name of a file may be in it.
            let failure_shown = terminal::printable(&failure.to_string());
            _ = writeln!(anstream::stderr(), "{}error:{:#} {failure_shown}", terminal::BAD, terminal::BAD);
            failure.code()
        }
    }
}

/// The command line, with the settings as defaults of its flags.
fn command(config: Option<&Config>) -> clap::Command {
    let Some(config) = config else { return Cli::command() };
    let with = |command: clap::Command, flag: &'static str| match config.get(flag) {
        Some(setting) => command.mut_arg(flag, |arg| arg.default_value(setting.value.clone())),
        None => command,
    };
    ["replay", "bench", "explain", "compact", "recall"].into_iter().fold(Cli::command(), |all, name| {
        all.mut_subcommand(name, |command| {
            // Where nobody set a window, it is the model's or the profile's; a comparison has one for all.
            let own = name == "bench" || config.own_window().is_some();
            let command = if own { with(command, "window") } else { command };
            if name == "replay" { with(command, "profile") } else { command }
        })
    })
}
