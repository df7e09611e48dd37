//! `longhaul doctor`: whether it would work here, and what to do.

use std::io::{self, Write};
use std::process::ExitCode;

use longhaul_config::Config;
use tokio::runtime::Runtime;

use crate::error::Failure;
use crate::gateway::checks::{self, Check, State};
use crate::gateway::reach::Peer;
use crate::place::Place;
use crate::terminal;

/// Check an installation and say what to do
#[derive(clap::Args)]
#[command(after_help = "\
Looks at settings, the store, agents in PATH, a gateway, the variables of this
shell, and whether providers can be reached (a connection, no request). Each
line is `ok`, a `hint`, or a `problem`; the exit code is 1 if there is a
problem.

Examples:
  longhaul doctor
  longhaul doctor --gateway 127.0.0.1:9000
  longhaul doctor --json")]
pub struct Args {
    /// Where a gateway should answer; 127.0.0.1:8484 is looked at if none is named
    #[arg(long, value_name = "ADDRESS")]
    gateway: Option<String>,
    /// Where sessions are kept: the path of a file, or postgres://…
    #[arg(long, value_name = "PLACE")]
    store: Option<String>,
    /// Print one JSON line per check
    #[arg(long)]
    json: bool,
}

/// Runs the command. The exit code says whether there is a problem.
pub fn run(args: &Args, config: Result<Config, Failure>) -> Result<ExitCode, Failure> {
    let address = args.gateway.as_deref().unwrap_or("127.0.0.1:8484");
    let Some(gateway) = Peer::of(address) else {
        return Err(Failure::Input("--gateway wants a host and a port, like 127.0.0.1:8484".to_owned()));
    };
    let mut out = anstream::stdout().lock();
    let mut is_well = true;
    let mut say = |checks: Vec<Check>| {
        is_well &= checks.iter().all(|check| check.state != State::Problem);
        checks.iter().try_for_each(|check| show(&mut out, check, args.json))
    };
    say(vec![checks::settings(&config)])?;
    match (&args.store, &config) {
        (Some(place), _) => say(checks::stores(|| Place::new(place.clone())))?,
        (None, Ok(config)) => say(checks::stores(|| Place::new(config.store())))?,
        // Nobody knows where it is.
        (None, Err(_)) => {}
    }
    let runtime = Runtime::new().map_err(|error| Failure::Failed(format!("threads: {error}")))?;
    let checked: io::Result<()> = runtime.block_on(async {
        say(checks::agents().await)?;
        let is_base = checks::is_base(&gateway);
        say(vec![checks::gateway(&gateway, is_base || args.gateway.is_some()).await])?;
        say(vec![checks::token()])?;
        say(checks::bases(&gateway))?;
        say(vec![checks::proxy(&gateway, is_base)])?;
        say(checks::providers(&gateway).await)
    });
    // A name that is still looked up is not waited for.
    runtime.shutdown_background();
    checked?;
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(out: &mut impl Write, check: &Check, json: bool) -> io::Result<()> {
    if json {
        return writeln!(out, "{}", terminal::json(check)?);
    }
    let style = match check.state {
        State::Ok => terminal::GOOD,
        State::Hint => terminal::STRONG,
        State::Problem => terminal::BAD,
    };
    // Texts of others may hold anything; a line stays one.
    let says = terminal::one_line(&check.says, 400);
    writeln!(out, "{style}{:7}{style:#} {:18} {says}", check.state.name(), check.what)?;
    match &check.todo {
        Some(todo) => writeln!(out, "{:7} {:18} {}→ {todo}{:#}", "", "", terminal::FAINT, terminal::FAINT),
        None => Ok(()),
    }
}
