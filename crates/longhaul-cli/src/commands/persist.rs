//! `longhaul persist`: a shim before an agent's program.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::Failure;
use crate::gateway::shell::quoted;
use crate::gateway::shim::Shim;
use crate::gateway::{agents, programs};
use crate::terminal;

/// Let the bare command of an agent go through Longhaul
#[derive(clap::Args)]
#[command(after_help = "\
A small script, named like the agent's program, is put into a folder that
comes before the program in PATH. It runs `longhaul wrap AGENT`. A file that
is not ours is never overwritten; `longhaul unpersist AGENT` takes the script
away again.

Examples:
  longhaul persist claude && claude
  longhaul persist codex --dir ~/bin")]
pub struct Args {
    /// The agent: claude, codex, opencode, pi, aider, qwen, mini, or a program in PATH
    #[arg(value_name = "AGENT")]
    agent: String,
    /// The folder that the script is put into; ~/.local/bin if none is named
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let name = agents::program(&args.agent)?;
    let folder = match &args.dir {
        Some(folder) => folder.clone(),
        None => {
            let no_home = || Failure::Input("HOME is not set: give --dir".to_owned());
            let folder = agents::shim_folder().ok_or_else(no_home)?;
            // Users keep their own programs there, and many shells add the folder to PATH once it exists.
            std::fs::create_dir_all(&folder).map_err(|error| Failure::file(&folder, error))?;
            folder
        }
    };
    let problem = |problem: &str| Err(Failure::file(&folder, problem));
    if !folder.is_dir() {
        return problem("there is no such folder; make it and put it first in PATH, or give --dir");
    }
    let folder = std::path::absolute(&folder).map_err(|error| Failure::file(&folder, error))?;
    let path = folder.join(name);
    if path.symlink_metadata().is_ok() && !Shim::is_at(&path) {
        let problem = "this is no script of ours and stays; give --dir another folder, one before it in PATH";
        return Err(Failure::file(&path, problem));
    }
    let Some(program) = programs::real(name) else {
        return Err(Failure::Input(format!("there is no program `{name}` in PATH")));
    };
    let longhaul = env::current_exe().map_err(|error| Failure::Failed(format!("our own path: {error}")))?;
    let shim = Shim { longhaul: text(&longhaul)?, program: text(&program)?, agent: &args.agent };
    shim.write(&path).map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
    let mut out = anstream::stdout().lock();
    writeln!(
        out,
        "{name} goes through longhaul: {} runs {}",
        terminal::path(&path),
        terminal::path(&program)
    )?;
    if programs::in_path(name).first() != Some(&path) {
        let folder = quoted(&folder.display().to_string());
        writeln!(
            out,
            "but {} comes first in PATH; set: export PATH={folder}:\"$PATH\"",
            terminal::path(&program)
        )?;
    }
    Ok(())
}

/// A path as a script can hold it.
fn text(path: &Path) -> Result<&str, Failure> {
    path.to_str()
        .ok_or_else(|| Failure::file(path, "a path that is not UTF-8 cannot be written into a script"))
}
