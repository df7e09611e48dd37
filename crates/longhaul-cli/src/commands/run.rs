//! `longhaul run`: an agent does one task. The answer is on stdout, progress on stderr.

use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;

use longhaul_agent::{Agent, Ended, Front};
use longhaul_config::Config;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::agent::json_front::JsonFront;
use crate::agent::options::Options;
use crate::agent::outlet::Outlet;
use crate::agent::plain_front::PlainFront;
use crate::agent::spent::Spent;
use crate::error::Failure;
use crate::gateway::signals::Signals;
use crate::terminal::printable;

/// An agent does one task in this project
#[derive(clap::Args)]
#[command(after_help = "\
The key is in ANTHROPIC_API_KEY or OPENAI_API_KEY. The answer goes to stdout,
progress to stderr; --json prints one object a line for each event instead.
Nobody is asked: what the permissions do not allow is not done. The session is
stored, and can be gone on with.

The exit code is 0 for an answer, 1 for a failure, 2 for bad input, 3 if the
steps were used up, 130 if it was interrupted.

Examples:
  longhaul run \"why does the parser drop the last line?\"
  longhaul run --permissions edits --allow 'Bash(cargo test)' \"mend it\"
  longhaul run --continue \"and now the documentation\"
  git diff | longhaul run -")]
pub struct Args {
    /// What to do; - reads it from stdin
    #[arg(value_name = "TASK")]
    task: String,
    /// Print events as JSON lines on stdout
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    options: Options,
}

/// Bytes of a task at most.
const LONGEST: u64 = 4 << 20;

/// Runs the command.
pub fn run(args: &Args, config: &Config) -> Result<ExitCode, Failure> {
    let task = task(&args.task)?;
    for ignored in config.ignored() {
        _ = writeln!(std::io::stderr(), "longhaul: {ignored}");
    }
    let options = args.options.clone().with_settings(config);
    let (mut agent, commands) = options.agent(config)?;
    for gap in commands.gaps() {
        _ = writeln!(std::io::stderr(), "longhaul: {gap}");
    }
    // Nobody is there: the task is pinned as a whole in profiles that heed pins.
    agent.session_mut().set_unattended(true);
    let spent = Spent::going_on(agent.session());
    let runtime = Runtime::new()?;
    let (ended, is_read) = runtime.block_on(async {
        let stop = stop_on_signals();
        let out = Outlet::new(stop.clone(), print);
        for problem in options.connect(&mut agent).await? {
            _ = writeln!(std::io::stderr(), "longhaul: {problem}");
        }
        if args.json {
            let session = agent.keeper().map(|keeper| keeper.id().to_string()).unwrap_or_default();
            let (model, window) = (agent.model_name().to_owned(), agent.session().budget().window.0);
            let mut front = JsonFront::begin(out.clone(), spent, &session, &model, window);
            let ended = work(&mut agent, &task, &mut front, &stop).await;
            front.end(&ended);
            let is_read = out.flush();
            ended.map(|ended| (ended, is_read))
        } else {
            // Where stderr is closed the work goes on.
            let err = Outlet::new(stop.clone(), |line| _ = writeln!(anstream::stderr(), "{line}"));
            let mut front = PlainFront::new(err.clone(), spent, options.thinking());
            let ended = work(&mut agent, &task, &mut front, &stop).await;
            if let Ok(Ended::Answered(answer)) = &ended {
                out.line(answer.trim_end().to_owned());
            }
            err.line(front.summary());
            let is_read = out.flush() & err.flush();
            ended.map(|ended| (ended, is_read))
        }
        .map_err(Failure::Failed)
    })?;
    Ok(match ended {
        // Its end was wanted before everything was written.
        Ended::Answered(_) if !is_read => ExitCode::from(130),
        Ended::Answered(_) => ExitCode::SUCCESS,
        Ended::StepLimit(steps) => {
            _ = writeln!(std::io::stderr(), "longhaul: {steps} steps were used up; `--continue` goes on");
            ExitCode::from(3)
        }
        Ended::Interrupted => ExitCode::from(130),
    })
}

/// Cancelled by Ctrl-C, or a signal that ends programs. The second one ends this process.
fn stop_on_signals() -> CancellationToken {
    let stop = CancellationToken::new();
    let interrupt = stop.clone();
    tokio::spawn(async move {
        let Ok(mut signals) = Signals::caught() else { return };
        loop {
            signals.next().await;
            if interrupt.is_cancelled() {
                // Twice is meant: what was said is stored.
                std::process::exit(130);
            }
            interrupt.cancel();
        }
    });
    stop
}

/// Does the task, until there is an answer or it is stopped.
async fn work(
    agent: &mut Agent,
    task: &str,
    front: &mut dyn Front,
    stop: &CancellationToken,
) -> Result<Ended, String> {
    let ended = agent.turn(Some(task), front, stop).await.map_err(|error| error.to_string());
    let finished = agent.finish().map_err(|error| format!("the session could not be stored: {error}"));
    let ended = ended?;
    finished?;
    Ok(ended)
}

/// What a terminal would obey is not printed to one. Where stdout is closed the work goes on.
fn print(line: &str) {
    let out = &mut std::io::stdout().lock();
    let done = if out.is_terminal() { writeln!(out, "{}", printable(line)) } else { writeln!(out, "{line}") };
    _ = done.and_then(|()| out.flush());
}

fn task(said: &str) -> Result<String, Failure> {
    let mut text = said.to_owned();
    if said == "-" {
        text.clear();
        let read = std::io::stdin().lock().take(LONGEST + 1).read_to_string(&mut text);
        read.map_err(|error| Failure::Input(format!("the task on stdin: {error}")))?;
    }
    if text.trim().is_empty() {
        return Err(Failure::Input("there is no task: say what to do".to_owned()));
    }
    if text.len() as u64 > LONGEST {
        return Err(Failure::Input(format!(
            "the task is longer than {LONGEST} bytes: put it into a file of the project"
        )));
    }
    Ok(text)
}
