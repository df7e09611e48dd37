//! `longhaul man`: the manual pages, made from the command line itself. For packages.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::Failure;

/// Print the manual page, or write those of all commands into a folder
#[derive(clap::Args)]
#[command(hide = true)]
#[command(after_help = "Example:\n  longhaul man ~/.local/share/man/man1")]
pub struct Args {
    /// Where to write a page for each command
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Runs the command, for this command line.
pub fn run(args: &Args, of: clap::Command) -> Result<(), Failure> {
    // Pages are the same for every build of a version.
    let mut of = of.long_version(env!("CARGO_PKG_VERSION")).disable_help_subcommand(true);
    of.build();
    let Some(folder) = &args.folder else {
        return Ok(io::stdout().lock().write_all(&page(of)?)?);
    };
    fs::create_dir_all(folder).map_err(|error| Failure::file(folder, error))?;
    write(folder, "longhaul", of)
}

/// The page of a command, and those of the commands below it.
fn write(folder: &Path, name: &str, command: clap::Command) -> Result<(), Failure> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        let name = format!("{name}-{}", below.get_name());
        write(folder, &name, below.clone().display_name(name.clone()))?;
    }
    let file = folder.join(format!("{name}.1"));
    fs::write(&file, page(command)?).map_err(|error| Failure::file(&file, error))
}

fn page(command: clap::Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    Ok(page)
}
