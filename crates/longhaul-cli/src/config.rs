//! Settings, in layers: what is built in, the user's file, the project's file, the environment.
//! The later wins, and flags win over all. An unknown name or a bad value is an error that says
//! where it stands and what was meant.

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use longhaul::{Profile, Summariser, ToolKind};
use serde::Serialize;
use toml::de::{DeTable, DeValue};

use crate::error::Failure;
use crate::settings::{Kind, OF_PROFILES, nearest};
use crate::show;

/// Show settings and where they come from
#[derive(clap::Args)]
#[command(after_help = "\
Settings come from, the later winning: what is built in, the user's file
(~/.config/longhaul/config.toml, or the one that LONGHAUL_CONFIG names), the
project's file (longhaul.toml here or in a folder above), the environment
(LONGHAUL_WINDOW, LONGHAUL_PROFILES_LONGHAUL_TRIGGER …), flags.

A profile of your own has a base, and what differs from it; a tool of your own
has the kind of a known one (ls, glob, grep, read, edit, write, bash, todo, recall):

  [profiles.mine]
  base = \"archive\"
  trigger = 60
  ladder = [\"archive-rounds\", \"old-results\"]

  [tools]
  my_reader = \"read\"

Examples:
  longhaul config show
  LONGHAUL_WINDOW=64000 longhaul config show
  longhaul config show --json")]
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
}

/// A setting.
struct Setting {
    key: String,
    kind: Kind,
    says: &'static str,
    value: String,
    origin: Origin,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    BuiltIn,
    File(PathBuf, usize),
    Environment(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::File(path, line) => write!(f, "{}, line {line}", path.display()),
            Self::Environment(name) => f.write_str(name),
        }
    }
}

/// All settings.
pub struct Config {
    settings: Vec<Setting>,
    /// Profiles, with the ones that they are based on; built-in ones on themselves.
    profiles: Vec<(String, String)>,
}

impl Config {
    /// What is built in.
    fn built_in() -> Self {
        let mut settings = Vec::new();
        let mut add = |key: String, kind, says, value: String| {
            settings.push(Setting { key, kind, says, value, origin: Origin::BuiltIn });
        };
        let window = Kind::Number(1_000, 100_000_000);
        add("window".to_owned(), window, "tokens that fit into the model's window", "200000".to_owned());
        add("profile".to_owned(), Kind::Profile, "how to compact", "longhaul".to_owned());
        let mut config = Self { settings, profiles: Vec::new() };
        for profile in Profile::all() {
            config.define(&profile.name, &profile.name);
        }
        config
    }

    /// A profile, with what is built in for its base.
    fn define(&mut self, name: &str, base: &str) {
        let Some(profile) = Profile::find(base) else { return };
        self.profiles.push((name.to_owned(), base.to_owned()));
        for row in OF_PROFILES.iter().filter(|row| row.is_for(name, base)) {
            let key = format!("profiles.{name}.{}", row.name);
            let (kind, says, value) = (row.kind, row.says, (row.get)(&profile));
            self.settings.push(Setting { key, kind, says, value, origin: Origin::BuiltIn });
        }
    }

    /// The names of all profiles.
    pub fn names(&self) -> Vec<String> {
        self.profiles.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Profiles that a file defines: those that are not known, each with its base.
    fn define_new(
        &mut self,
        found: &mut Vec<(String, usize, Option<String>)>,
    ) -> Result<(), (usize, String)> {
        let mut bases = Vec::new();
        for (key, at, value) in found.iter() {
            let Some((name, setting)) = key.strip_prefix("profiles.").and_then(|rest| rest.split_once('.'))
            else {
                continue;
            };
            let known = self.profiles.iter().any(|(known, _)| known == name);
            if setting == "base" {
                let base = value.clone().unwrap_or_default();
                if Profile::find(&base).is_none() {
                    let near =
                        nearest(&base, Profile::all().into_iter().map(|profile| profile.name.into_string()));
                    return Err((
                        *at,
                        format!("`{key}` is {base:?}; there is no such built-in profile, is {near:?} meant?"),
                    ));
                }
                if name.is_empty()
                    || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
                {
                    return Err((
                        *at,
                        format!("`{key}`: the name of a profile has letters, digits, - and _"),
                    ));
                }
                if Profile::find(name).is_some() {
                    return Err((*at, format!("`{key}`: {name:?} is built in and has no base")));
                }
                bases.push((name.to_owned(), base));
            } else if !known && !found.iter().any(|(other, ..)| *other == format!("profiles.{name}.base")) {
                let near = nearest(name, self.names().into_iter());
                return Err((
                    *at,
                    format!("there is no profile {name:?}; is {near:?} meant? A new one needs a `base`"),
                ));
            }
        }
        for (name, base) in bases {
            self.settings.retain(|setting| !setting.key.starts_with(&format!("profiles.{name}.")));
            self.profiles.retain(|(known, _)| *known != name);
            self.define(&name, &base);
        }
        found.retain(|(key, ..)| !(key.starts_with("profiles.") && key.ends_with(".base")));
        Ok(())
    }

    /// Reads all layers.
    pub fn load() -> Result<Self, Failure> {
        let mut config = Self::built_in();
        for path in [user_file()?, project_file()].into_iter().flatten() {
            let text = fs::read_to_string(&path).map_err(|error| Failure::file(&path, error))?;
            config.read(&path, &text)?;
        }
        config.read_environment(env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
        }))?;
        config.check()?;
        Ok(config)
    }

    fn read(&mut self, path: &Path, text: &str) -> Result<(), Failure> {
        let line = |at: usize| text.get(..at).map_or(1, |before| before.matches('\n').count() + 1);
        let table = DeTable::parse(text).map_err(|error| {
            let message = error.message().lines().next().unwrap_or("cannot be read").to_owned();
            Failure::file(
                path,
                format!("line {}: {message}", line(error.span().map_or(0, |span| span.start))),
            )
        })?;
        let mut found = Vec::new();
        leaves(table.get_ref(), "", &mut found);
        self.define_new(&mut found)
            .map_err(|(at, problem)| Failure::file(path, format!("line {}: {problem}", line(at))))?;
        for (key, at, value) in found {
            let line = line(at);
            let failed = |problem: String| Failure::file(path, format!("line {line}: {problem}"));
            let value =
                value.ok_or_else(|| failed(format!("`{key}` has a value of a kind that no setting has")))?;
            self.set(&key, &value, Origin::File(path.to_owned(), line)).map_err(failed)?;
        }
        Ok(())
    }

    fn read_environment(&mut self, vars: impl Iterator<Item = (String, String)>) -> Result<(), Failure> {
        // The order of the environment is nobody's: errors come in the order of names.
        let vars: BTreeMap<String, String> = vars.filter(|(name, _)| name.starts_with("LONGHAUL_")).collect();
        for (name, value) in vars {
            if name == "LONGHAUL_CONFIG" {
                continue;
            }
            let variable = |key: &str| format!("LONGHAUL_{}", key.replace(['.', '-'], "_").to_uppercase());
            let key =
                self.settings.iter().map(|setting| setting.key.clone()).find(|key| variable(key) == name);
            let failed = |problem: String| Failure::Input(format!("{name}: {problem}"));
            let Some(key) = key else {
                let near = nearest(&name, self.settings.iter().map(|setting| variable(&setting.key)));
                return Err(failed(format!("there is no such setting; is {near} meant?")));
            };
            self.set(&key, &value, Origin::Environment(name.clone())).map_err(failed)?;
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: &str, origin: Origin) -> Result<(), String> {
        let names = self.names();
        if let Some(tool) = key.strip_prefix("tools.") {
            let kinds = || ToolKind::NAMES.iter().map(|(name, _)| *name);
            if !kinds().any(|kind| kind == value) {
                let kinds: Vec<_> = kinds().collect();
                return Err(format!("`{key}` is {value:?}, not one of {}", kinds.join(", ")));
            }
            self.settings.retain(|setting| setting.key != key);
            let says = "a tool of this kind";
            self.settings.push(Setting {
                key: format!("tools.{tool}"),
                kind: Kind::Text,
                says,
                value: value.to_owned(),
                origin,
            });
            return Ok(());
        }
        let Some(setting) = self.settings.iter_mut().find(|setting| setting.key == key) else {
            let near = nearest(key, self.settings.iter().map(|setting| setting.key.clone()));
            return Err(format!("there is no setting `{key}`; is `{near}` meant?"));
        };
        setting.kind.check(value, &names).map_err(|problem| format!("`{key}` {problem}"))?;
        let number = matches!(setting.kind, Kind::Number(..));
        setting.value = if number { value.replace('_', "") } else { value.to_owned() };
        setting.origin = origin;
        Ok(())
    }

    /// Settings that only make sense together.
    fn check(&self) -> Result<(), Failure> {
        for (profile, _) in &self.profiles {
            let key = |name: &str| format!("profiles.{profile}.{name}");
            if self.number(&key("merge_to")) > self.number(&key("merge_above")) {
                return Err(Failure::Input(format!(
                    "`{}` is {}, above `{}`, {}",
                    key("merge_to"),
                    self.number(&key("merge_to")),
                    key("merge_above"),
                    self.number(&key("merge_above"))
                )));
            }
            let (target, trigger) = (self.number(&key("target")), self.number(&key("trigger")));
            if target > trigger {
                let of = |name: &str| self.find(&key(name)).map(|s| s.origin.to_string()).unwrap_or_default();
                return Err(Failure::Input(format!(
                    "`{}` is {target} ({}), above `{}`, {trigger} ({})",
                    key("target"),
                    of("target"),
                    key("trigger"),
                    of("trigger")
                )));
            }
        }
        Ok(())
    }

    fn find(&self, key: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.key == key)
    }

    /// The text of a setting.
    pub fn text(&self, key: &str) -> &str {
        self.find(key).map_or("", |setting| &setting.value)
    }

    fn number(&self, key: &str) -> u64 {
        self.text(key).parse().unwrap_or_default()
    }

    /// A profile, with the settings it was given.
    pub fn profile(&self, name: &str) -> Result<Profile, Failure> {
        let found = self.profiles.iter().find(|(known, _)| known == name);
        let profile = found.and_then(|(_, base)| Profile::find(base));
        let mut profile = profile.ok_or_else(|| {
            Failure::Input(format!("there is no profile {name:?}; there is {}", self.names().join(", ")))
        })?;
        for row in OF_PROFILES {
            if let Some(setting) = self.find(&format!("profiles.{name}.{}", row.name)) {
                (row.set)(&mut profile, &setting.value);
            }
        }
        for setting in &self.settings {
            let Some(tool) = setting.key.strip_prefix("tools.") else { continue };
            if let Some((_, kind)) = ToolKind::NAMES.iter().find(|(name, _)| *name == setting.value) {
                profile.aliases.add(tool, *kind);
            }
        }
        profile.name = name.into();
        Ok(profile)
    }

    /// A profile for recorded sessions: no model is asked, the extractor writes summaries.
    pub fn offline(&self, name: &str) -> Result<Profile, Failure> {
        Ok(Profile { summariser: Summariser::Extractor, ..self.profile(name)? })
    }

    /// All profiles, with the settings they were given.
    pub fn profiles(&self) -> Result<Vec<Profile>, Failure> {
        self.profiles.iter().map(|(name, _)| self.profile(name)).collect()
    }
}

/// The values of a file with their whole names and places; `None` for a value of no known kind.
fn leaves(table: &DeTable<'_>, before: &str, found: &mut Vec<(String, usize, Option<String>)>) {
    for (name, value) in table {
        let key = if before.is_empty() {
            name.get_ref().to_string()
        } else {
            format!("{before}.{}", name.get_ref())
        };
        let text = match value.get_ref() {
            DeValue::Table(inner) => {
                leaves(inner, &key, found);
                continue;
            }
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Integer(number) => {
                let read = i128::from_str_radix(&number.as_str().replace('_', ""), number.radix());
                Some(read.map_or_else(|_| number.to_string(), |number| number.to_string()))
            }
            DeValue::Float(number) => Some(number.as_str().to_owned()),
            DeValue::Boolean(flag) => Some(flag.to_string()),
            DeValue::Array(items) => items
                .iter()
                .map(|item| item.get_ref().as_str().map(str::to_owned))
                .collect::<Option<Vec<_>>>()
                .map(|items| items.join(", ")),
            _ => None,
        };
        found.push((key, name.span().start, text));
    }
    // A table goes by its names, a person by the lines.
    found.sort_by_key(|(_, at, _)| *at);
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

/// The file of the user, if there is one. One that is named must be there.
fn user_file() -> Result<Option<PathBuf>, Failure> {
    if let Some(path) = env::var_os("LONGHAUL_CONFIG").filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        if !path.is_file() {
            return Err(Failure::file(&path, "LONGHAUL_CONFIG names this file, which is not there"));
        }
        return Ok(Some(path));
    }
    let base = env::var_os("XDG_CONFIG_HOME").filter(|base| !base.is_empty()).map(PathBuf::from);
    let base = base.or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".config")));
    Ok(base.map(|base| base.join("longhaul/config.toml")).filter(|path| path.is_file()))
}

/// The nearest `longhaul.toml`, here or in a folder above, up to the root of a repository.
fn project_file() -> Option<PathBuf> {
    let here = env::current_dir().ok()?;
    for folder in here.ancestors() {
        let path = folder.join("longhaul.toml");
        if path.is_file() {
            return Some(path);
        }
        if folder.join(".git").exists() {
            return None;
        }
    }
    None
}

/// A setting, for scripts.
#[derive(Serialize)]
struct Line<'a> {
    key: &'a str,
    value: &'a str,
    origin: String,
    says: &'a str,
}

/// Runs the command.
pub fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let What::Show { json } = args.what;
    let mut out = anstream::stdout().lock();
    let (strong, faint) = (show::STRONG, show::FAINT);
    let mut section = "";
    for setting in &config.settings {
        if json {
            let line = Line {
                key: &setting.key,
                value: &setting.value,
                origin: setting.origin.to_string(),
                says: setting.says,
            };
            writeln!(out, "{}", serde_json::to_string(&line).map_err(io::Error::from)?)?;
            continue;
        }
        let (table, name) = setting.key.rsplit_once('.').unwrap_or(("", &setting.key));
        if table != section {
            writeln!(out, "\n{strong}[{table}]{strong:#}")?;
            section = table;
            // A profile of one's own is nothing without its base.
            let own = table.strip_prefix("profiles.").filter(|name| Profile::find(name).is_none());
            if let Some((_, base)) = own.and_then(|own| config.profiles.iter().find(|(name, _)| name == own))
            {
                writeln!(out, "base = {}", quoted(base))?;
            }
        }
        let value = match setting.kind {
            Kind::Strategies => {
                let names = setting.value.split(", ").filter(|name| !name.is_empty());
                format!(
                    "{name} = [{}]",
                    names.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
                )
            }
            kind if kind.is_text() => format!("{} = {}", bare(name), quoted(&setting.value)),
            _ => format!("{name} = {}", setting.value),
        };
        writeln!(out, "{value:38} {faint}# {}{faint:#}", setting.origin)?;
    }
    Ok(())
}
