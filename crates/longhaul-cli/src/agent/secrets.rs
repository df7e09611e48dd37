//! Keys of providers, kept out of the environment of this process: `/proc/PID/environ` shows what a program was started
//! with to every process of the same user, and the commands of the agent are such processes.
//!
//! The program starts itself again in its own place, without the variables that hold keys, and receives those over a
//! pipe. Other processes of the user cannot read its memory either; root can.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

use longhaul_config::{Config, ConfigError, Layers};

/// Which process may read keys, and from which descriptor: `PID:NUMBER`. A child that inherits it is another process.
const PIPE: &str = "LONGHAUL_KEYS_FROM";
/// Bytes that a pipe takes without a reader.
const ROOM: usize = 60_000;

static RECEIVED: OnceLock<Vec<(OsString, OsString)>> = OnceLock::new();

/// Receives the keys, where this process was started again without them. To be called before anything else.
pub fn receive() {
    let Some(number) = std::env::var(PIPE).ok().and_then(|named| descriptor(&named)) else { return };
    let mut bytes = Vec::new();
    let read = File::open(format!("/dev/fd/{number}")).and_then(|mut pipe| pipe.read_to_end(&mut bytes));
    // The descriptor was kept for this, and is for no other program.
    _ = nix::unistd::close(number);
    if read.is_ok() {
        let variables = bytes.split(|byte| *byte == 0).filter_map(|variable| {
            let at = variable.iter().position(|byte| *byte == b'=')?;
            let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            Some((text(&variable[..at]), text(&variable[at + 1..])))
        });
        _ = RECEIVED.set(variables.collect());
    }
}

/// Starts this program again without the variables that hold keys, if there are any. Where that does not work, it goes
/// on with them. No other thread may run yet. `named` are variables that the settings name.
pub fn hide<'a>(named: impl IntoIterator<Item = &'a str>) {
    if RECEIVED.get().is_none() {
        let named: Vec<&str> = named.into_iter().collect();
        let is_secret = |name: &OsStr, value: &OsStr| {
            longhaul_agent::holds_a_key(name)
                || named.iter().any(|named| name == *named)
                // The address of a store may have a password.
                || (name == "LONGHAUL_STORE" && value.as_bytes().contains(&b'@'))
        };
        let secrets: Vec<(OsString, OsString)> =
            std::env::vars_os().filter(|(name, value)| is_secret(name, value)).collect();
        if !secrets.is_empty() {
            // It comes back only if it did not work.
            _ = start_again(&secrets);
        }
    }
    // Nor does the system write keys into a dump of this process, or let others trace it.
    #[cfg(target_os = "linux")]
    {
        let no = rustix::process::DumpableBehavior::NotDumpable;
        _ = rustix::process::set_dumpable_behavior(no);
    }
}

fn start_again(secrets: &[(OsString, OsString)]) -> io::Result<()> {
    let mut bytes = Vec::new();
    for (name, value) in secrets {
        bytes.extend([name.as_bytes(), b"=", value.as_bytes(), &[0]].concat());
    }
    if bytes.len() > ROOM {
        return Err(io::Error::other("more than a pipe takes"));
    }
    let (reader, mut writer) = io::pipe()?;
    writer.write_all(&bytes)?;
    drop(writer);
    rustix::io::fcntl_setfd(&reader, rustix::io::FdFlags::empty())?;
    let mut arguments = std::env::args_os();
    let mut command = Command::new(std::env::current_exe()?);
    command.arg0(arguments.next().unwrap_or_default()).args(arguments);
    secrets.iter().for_each(|(name, _)| _ = command.env_remove(name));
    command.env(PIPE, format!("{}:{}", std::process::id(), reader.as_raw_fd()));
    Err(command.exec())
}

/// The number of the descriptor, if this process is meant.
fn descriptor(named: &str) -> Option<i32> {
    let (process, number) = named.split_once(':')?;
    (process.parse() == Ok(std::process::id())).then(|| number.parse().ok())?
}

/// A variable of the environment, or one that was received.
pub fn variable(name: &str) -> Option<String> {
    let received = RECEIVED.get().into_iter().flatten().find(|(known, _)| known == name);
    received.map_or_else(|| std::env::var_os(name), |(_, value)| Some(value.clone()))?.into_string().ok()
}

/// The settings, as [`Config::load`] reads them, with variables that were received.
pub fn settings() -> Result<Config, ConfigError> {
    let mut layers = Layers::find(&std::env::current_dir().unwrap_or_default())?;
    let received = RECEIVED.get().into_iter().flatten();
    let readable =
        |(name, value): &(OsString, OsString)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()));
    layers.variables.extend(received.filter_map(readable));
    Config::read(&layers)
}
