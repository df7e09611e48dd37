//! `longhaul config`: all settings, their values, and where each comes from; and what is known of models.

mod models;

use std::io::{self, Write};

use clap::Subcommand;
use longhaul_config::{Config, Setting, ValueKind, rules_in};
use serde::Serialize;

use crate::error::Failure;
use crate::terminal;

/// Show settings and where they come from, and what a model's name means
#[derive(clap::Args)]
#[command(after_help = "\
Settings come from, the later winning: what is built in, the user's file
(~/.config/longhaul/config.toml, or the one that LONGHAUL_CONFIG names), the
project's file (longhaul.toml here or in a folder above), the environment
(LONGHAUL_WINDOW, LONGHAUL_PROFILES_LONGHAUL_TRIGGER …), flags.

A profile of your own has a base, and what differs from it; a tool of your own
has the kind of a known one (ls, glob, grep, read, edit, write, bash, todo,
recall):

  [profiles.mine]
  base = \"archive\"
  trigger = 60
  ladder = [\"archive-rounds\", \"old-results\"]

  [tools]
  my_reader = \"read\"

Examples:
  longhaul config show
  LONGHAUL_WINDOW=64000 longhaul config show
  longhaul config show --json
  longhaul config models claude-opus-5-5")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// All settings with their values and origins
    Show {
        /// Print one JSON line per setting
        #[arg(long)]
        json: bool,
    },
    /// Print what Longhaul knows about models: windows, prices, cache rules, thinking
    #[command(after_help = "\
A name is as requests have it, with what a cloud or a router puts around it.

Examples:
  longhaul config models
  longhaul config models us.anthropic.claude-opus-5-5-20260801-v1:0
  longhaul config models gpt-5.5 --json")]
    Models {
        /// The name of a model; all rows of the table if left out
        name: Option<String>,
        /// Print one JSON line per row
        #[arg(long)]
        json: bool,
    },
}

/// A setting, for scripts.
#[derive(Serialize)]
struct SettingLine<'a> {
    key: &'a str,
    value: String,
    origin: String,
    says: &'a str,
}

/// Runs the command.
pub fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    match &args.what {
        What::Show { json } => show(config, *json),
        What::Models { name: Some(name), json } => models::show(name, *json),
        What::Models { name: None, json } => models::list(*json),
    }
}

/// Prints all settings.
fn show(config: &Config, json: bool) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    let (strong, faint) = (terminal::STRONG, terminal::FAINT);
    let mut section = "";
    for setting in config.settings() {
        if json {
            let line = SettingLine {
                key: &setting.key,
                value: setting.shown(),
                origin: setting.origin.to_string(),
                says: setting.says,
            };
            writeln!(out, "{}", terminal::json(&line)?)?;
            continue;
        }
        let (table, name) = setting.key.rsplit_once('.').unwrap_or(("", &setting.key));
        if table != section {
            writeln!(out, "\n{strong}[{table}]{strong:#}")?;
            section = table;
            // A profile of one's own is nothing without its base.
            if let Some(base) = table.strip_prefix("profiles.").and_then(|name| config.base_of(name)) {
                writeln!(out, "base = {}", quoted(base))?;
            }
        }
        let assigned = format!("{} = {}", bare(name), in_toml(setting));
        writeln!(out, "{assigned:38} {faint}# {}{faint:#}", setting.origin)?;
    }
    for ignored in config.ignored() {
        _ = writeln!(io::stderr(), "longhaul: {ignored}");
    }
    Ok(())
}

/// The value of a setting as a file of settings has it.
fn in_toml(setting: &Setting) -> String {
    match setting.kind {
        ValueKind::Number(..) | ValueKind::Tokens(..) | ValueKind::Decimal(..) | ValueKind::Flag => {
            setting.value.clone()
        }
        ValueKind::Limit(_) if setting.value.bytes().all(|byte| byte.is_ascii_digit()) => {
            setting.value.clone()
        }
        ValueKind::Strategies => {
            let names = setting.value.split(", ").filter(|name| !name.is_empty());
            format!("[{}]", names.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", "))
        }
        ValueKind::Rules => {
            let rules: Vec<String> = rules_in(&setting.value).map(quoted).collect();
            format!("[{}]", rules.join(", "))
        }
        _ => quoted(&setting.shown()),
    }
}

/// A text as TOML writes it: as JSON does.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// A name as it is, or in quotes if it must be.
fn bare(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.chars().all(plain) { name.to_owned() } else { quoted(name) }
}
