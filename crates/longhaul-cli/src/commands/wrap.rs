//! `longhaul wrap`: an agent behind a gateway of its own, which ends with it.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use longhaul_config::Config;
use longhaul_gateway::{Gateway, Recall, Token};
use longhaul_store::MEMORY;
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::error::Failure;
use crate::gateway::activity::Activity;
use crate::gateway::agents::{self, ANY, Agent, Setting, Told, Upstream, no_proxy};
use crate::gateway::options::{ANTHROPIC, OPENAI, Options};
use crate::gateway::own_providers::Provider;
use crate::gateway::private_file::PrivateFile;
use crate::gateway::secret::{self, TOKEN};
use crate::gateway::signals::{Signal, Signals};
use crate::gateway::{programs, reach, started, stopped};
use crate::place::Place;
use crate::terminal::{one_line, printable};

/// Run an agent behind a gateway of its own
#[derive(clap::Args)]
#[command(after_help = "\
Known are claude, codex, opencode, pi, aider, qwen and mini. Any other program
is told by the usual variables (ANTHROPIC_BASE_URL, OPENAI_BASE_URL,
OPENAI_API_BASE). Where one of them is set already, the gateway goes on to
there. Only the agent knows the gateway's token. The exit code is the agent's.

Examples:
  longhaul wrap claude
  longhaul wrap --window 120000 claude -- --continue
  longhaul wrap codex -- exec \"run the tests\"
  longhaul wrap --observe claude
  longhaul wrap ./my-agent")]
pub struct Args {
    /// The agent
    #[arg(value_name = "AGENT")]
    agent: String,
    /// The program to run, if it is not the first of its name in PATH
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// What the agent is told
    #[arg(last = true, value_name = "ARGS")]
    arguments: Vec<OsString>,
    /// Seconds of work without a call through the gateway, after which a line says so
    #[arg(long, value_name = "SECONDS", default_value_t = 20, hide = true)]
    unused_after: u64,
    #[command(flatten)]
    options: Options,
}

/// Runs the command. Gives the agent's exit code. Whatever is wrong with settings or store, the agent runs.
pub fn run(args: &Args, config: Result<Config, Failure>) -> Result<ExitCode, Failure> {
    args.options.write_log(false)?;
    let (agent, name) = match agents::find(&args.agent) {
        Some(agent) => (agent, agent.program),
        None => (&ANY, args.agent.as_str()),
    };
    let program = match &args.program {
        Some(program) => program.clone(),
        None if name.contains('/') => PathBuf::from(name),
        // A shim of ours would run us again.
        None => programs::real(name).ok_or_else(|| no_program(name))?,
    };
    let set = |upstream: Upstream| {
        let names = agent.upstream.iter().filter(move |(_, of)| *of == upstream);
        names.filter_map(|(name, _)| std::env::var(name).ok()).find(|value| !value.trim().is_empty())
    };
    let anthropic = args.options.anthropic.clone().or_else(|| set(Upstream::Anthropic));
    let anthropic = anthropic.unwrap_or_else(|| ANTHROPIC.to_owned());
    let openai = set(Upstream::OpenAi).unwrap_or_else(|| OPENAI.to_owned());
    let recall = args.options.recall.unwrap_or(agent.recall);
    let is_anthropic = anthropic == ANTHROPIC;
    let arguments = &args.arguments;
    let mut run = Run { agent, program: &program, arguments, is_anthropic, recall, observes: false };
    let runtime = Runtime::new()?;
    let config = match config {
        Ok(config) => config,
        Err(failure) => return runtime.block_on(run.alone(&failure)),
    };
    run.observes = args.options.observes(&config);
    runtime.block_on(async {
        let providers = agent.own_files.providers(&program).await;
        // An agent that an agent starts goes through the gateway that is there, if that knows its providers.
        let around = reach::variable(TOKEN);
        if providers.is_empty()
            && around.as_deref().is_none_or(secret::fits_a_path)
            && let Some(gateway) = gateway_around_us().await
        {
            return run.behind(gateway, around, providers).await;
        }
        let listen = ([127, 0, 0, 1], 0).into();
        let token = secret::new()?;
        let guarded = Some(Token::of_one_user(&token));
        let settings = args.options.settings(&config, listen, guarded, [&anthropic, &openai]);
        let mut settings = match settings {
            Ok(settings) => settings,
            Err(failure) if args.options.is_told() => return Err(failure),
            Err(failure) => return run.alone(&failure).await,
        };
        settings.others = providers.iter().map(|provider| provider.base.clone()).collect();
        settings.desk.recall = recall;
        settings.desk.store = any_store(settings.desk.store);
        // A store in memory ends with the gateway: `longhaul release` would find no session.
        let has_content = !settings.desk.without_content && settings.desk.store != MEMORY;
        let gateway = match started(settings).await {
            Ok(gateway) => gateway,
            Err(failure) if args.options.is_told() => return Err(failure),
            Err(failure) => return run.alone(&failure).await,
        };
        name_inspector(&gateway, &token);
        let code = tokio::select! {
            code = run.behind(gateway.address(), Some(token), providers) => code,
            never = unused(&gateway, agent, args.unused_after) => match never {},
        };
        match code {
            Ok(_) => stopped(gateway, has_content.then_some(&args.options)).await,
            // Nothing ran.
            Err(_) => drop(gateway.stop().await),
        }
        code
    })
}

/// The place of a store that can be used: this one, made if it is not there. A file that is damaged is moved aside, and
/// where nothing else can be done, sessions are kept in memory.
fn any_store(place: String) -> String {
    let in_memory = |failure: &Failure| {
        say(&format!("{failure}; sessions are kept in memory alone until the agent ends"));
        MEMORY.to_owned()
    };
    let opened = Place::new(place).and_then(|place| match place.open_or_replace()? {
        None => Ok(place),
        Some(aside) => {
            let aside = one_line(&aside.display().to_string(), 500);
            say(&format!(
                "{place} is damaged and was moved to {aside}; a new one was begun. \
                 `longhaul sessions salvage {aside}` gets back what can be read"
            ));
            Ok(place)
        }
    });
    match opened {
        Ok(place) => place.as_str().to_owned(),
        Err(failure) => in_memory(&failure),
    }
}

/// A line to the person who started the agent. Where stderr is closed there is no reader.
fn say(line: &str) {
    _ = writeln!(anstream::stderr(), "longhaul: {}", printable(line));
}

/// Prints where a person sees what the gateway does. The address has the token in it: it is for a terminal alone.
fn name_inspector(gateway: &Gateway, token: &str) {
    if std::io::stderr().is_terminal() {
        say(&format!("inspector at http://{}/inspect/?token={token}", gateway.address()));
    }
}

/// Reports, once, that the agent has been at work for so long and has not asked the gateway anything.
async fn unused(gateway: &Gateway, agent: &Agent, after: u64) -> Infallible {
    let mut activity = Activity::below(std::process::id());
    while activity.seconds() < after {
        tokio::time::sleep(Duration::from_secs(1)).await;
        activity.look();
        let figures = gateway.figures();
        // A request counts when it comes, long before its answer has ended.
        if !figures.own_time.is_empty() || !figures.requests.is_empty() {
            return std::future::pending().await;
        }
    }
    // The agent may have the terminal in raw mode.
    let (lead, end) = if std::io::stderr().is_terminal() { ("\r\n", "\r") } else { ("", "") };
    let (name, keeps) = (agent.name, agent.keeps_address);
    let name = if name.is_empty() { "the agent" } else { name };
    _ = writeln!(
        anstream::stderr(),
        "{lead}longhaul: {name} is working but has made no call through Longhaul yet: {keeps} may name another address{end}"
    );
    std::future::pending().await
}

/// Where agents that are started by an agent find the gateway that it is behind.
const GATEWAY: &str = "LONGHAUL_GATEWAY";

/// The setting `gateway.observe`, as a variable.
const OBSERVE: &str = "LONGHAUL_GATEWAY_OBSERVE";

/// The gateway of the agent that runs us, if there is one.
async fn gateway_around_us() -> Option<SocketAddr> {
    let address: SocketAddr = std::env::var(GATEWAY).ok()?.parse().ok()?;
    let connected = timeout(Duration::from_secs(1), TcpStream::connect(address)).await.ok()?;
    (address.ip().is_loopback() && connected.is_ok()).then_some(address)
}

fn no_program(name: &str) -> Failure {
    Failure::Input(format!(
        "there is no program `{}` in PATH: install it, or say where it is with --program",
        one_line(name, 200)
    ))
}

/// An agent to run.
struct Run<'a> {
    agent: &'a Agent,
    program: &'a Path,
    arguments: &'a [OsString],
    /// Requests go on to Anthropic itself.
    is_anthropic: bool,
    recall: Recall,
    /// The gateway only observes.
    observes: bool,
}

impl Run<'_> {
    /// Runs the agent as if there were no Longhaul, and says why.
    async fn alone(&self, failure: &Failure) -> Result<ExitCode, Failure> {
        say(&format!("{failure}; {} runs without Longhaul", self.program.display()));
        self.to_its_end(Command::new(self.program)).await
    }

    /// Runs the agent to its end, behind the gateway at this address.
    async fn behind(
        &self,
        gateway: SocketAddr,
        token: Option<String>,
        providers: Vec<Provider>,
    ) -> Result<ExitCode, Failure> {
        let told = Told {
            gateway,
            is_anthropic: self.is_anthropic,
            has_openai_key: reach::variable("OPENAI_API_KEY").is_some(),
            token,
            scope: secret::scope()?,
            providers,
            command: self.arguments.first().map(|first| first.to_string_lossy().into_owned()),
            opencode_config: reach::variable("OPENCODE_CONFIG_CONTENT"),
            recall: self.recall,
            observes: self.observes,
        };
        let mut command = Command::new(self.program);
        command.env(GATEWAY, gateway.to_string());
        told.token.as_ref().map(|token| command.env(TOKEN, token));
        if self.observes {
            // An agent that the agent starts by `longhaul wrap` is only observed too.
            command.env(OBSERVE, "true");
        }
        let mut files = Vec::new();
        for setting in (self.agent.told)(&told) {
            match setting {
                Setting::Variable(name, value) => command.env(name, value),
                Setting::Argument(argument) => command.arg(argument),
                Setting::File { flag, name, text } => {
                    let file = PrivateFile::new(&secret::new()?, name, text);
                    let file = file.map_err(|error| Failure::Failed(format!("{name}: {error}")))?;
                    command.arg(flag).arg(file.path());
                    files.push(file);
                    &mut command
                }
            };
        }
        for name in ["NO_PROXY", "no_proxy"] {
            command.env(name, no_proxy(std::env::var(name).ok().as_deref()));
        }
        // Files are there until the agent has ended.
        let code = self.to_its_end(command).await;
        drop(files);
        code
    }

    /// Starts the program, with the arguments of the user, and waits for its end.
    async fn to_its_end(&self, mut command: Command) -> Result<ExitCode, Failure> {
        let shown = self.program.display();
        let failed = |error| Failure::Failed(format!("`{shown}` cannot be run: {error}"));
        let mut signals = Signals::caught().map_err(failed)?;
        let mut child = command.args(self.arguments).spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => no_program(&shown.to_string()),
            _ => failed(error),
        })?;
        let id = child.id();
        loop {
            tokio::select! {
                status = child.wait() => return status.map(exit_code).map_err(failed),
                signal = signals.next() => pass_on(signal, id),
            }
        }
    }
}

/// Passes a signal on to the agent. Of Ctrl-C the terminal tells the agent too, and it knows what to do.
#[cfg(unix)]
fn pass_on(signal: Signal, child: Option<u32>) {
    use rustix::process::{Pid, Signal as Own, kill_process};
    let signal = match signal {
        Signal::Interrupt => return,
        Signal::Interrupted => Own::INT,
        Signal::Terminate => Own::TERM,
        Signal::HangUp => Own::HUP,
    };
    let pid = child.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    // An agent that has just ended needs no signal.
    _ = pid.map(|pid| kill_process(pid, signal));
}

#[cfg(not(unix))]
fn pass_on(_: Signal, _: Option<u32>) {}

/// The exit code of a program; 128 and the number of the signal that ended it.
fn exit_code(status: std::process::ExitStatus) -> ExitCode {
    #[cfg(unix)]
    let by_signal = std::os::unix::process::ExitStatusExt::signal(&status).map(|signal| 128 + signal);
    #[cfg(not(unix))]
    let by_signal = None;
    let code = status.code().or(by_signal).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
