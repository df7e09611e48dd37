//! A picture of a terminal, made from the bytes that a program really writes to one.
//!
//!     cargo build -p longhaul-cli
//!     cargo run -p longhaul-cli --example picture -- docs/pictures/agent.svg
//!     cargo run -p longhaul-cli --example picture -- demo.svg --rows 30 -- longhaul demo --fast
//!
//! Without a command it is the scene of docs/agent.md: the agent at work, with a scripted provider behind it. With one
//! it is what stands in the terminal when the command has ended. `longhaul` is the program of this build.

#[cfg(unix)]
mod scene;
#[cfg(unix)]
mod svg;
#[cfg(unix)]
mod watched;

#[cfg(unix)]
fn main() -> anyhow::Result<()> {
    use clap::Parser;

    let arguments = Arguments::parse();
    let size = watched::Size { rows: arguments.rows, columns: arguments.columns };
    let (title, screen) = match arguments.command.split_first() {
        None => ("longhaul".to_owned(), scene::agent(size)?),
        Some((program, rest)) => {
            let mut shown = watched::Watched::start(program, rest, None, &[], size)?;
            shown.ends()?;
            (arguments.command.join(" "), shown.screen())
        }
    };
    let picture = svg::picture(&screen, &title);
    std::fs::write(&arguments.out, &picture)?;
    println!("{}: {} bytes", arguments.out.display(), picture.len());
    Ok(())
}

#[cfg(not(unix))]
fn main() {
    eprintln!("there are no terminals of this kind here");
}

/// Make a picture of a terminal
#[cfg(unix)]
#[derive(clap::Parser)]
struct Arguments {
    /// Where the picture goes
    out: std::path::PathBuf,
    /// Rows of the terminal; what scrolled away is not in the picture
    #[arg(long, default_value = "60")]
    rows: std::num::NonZeroU16,
    /// Columns of the terminal
    #[arg(long, default_value = "88")]
    columns: std::num::NonZeroU16,
    /// The command; without one, the agent at work
    #[arg(last = true)]
    command: Vec<String>,
}
