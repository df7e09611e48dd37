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
use longhaul::Profile;
use serde::Serialize;
use toml::de::{DeTable, DeValue};

use crate::error::Failure;
use crate::show;

/// Show settings and where they come from
#[derive(clap::Args)]
#[command(after_help = "\
Settings come from, the later winning: what is built in, the user's file
(~/.config/longhaul/config.toml, or the one that LONGHAUL_CONFIG names), the
project's file (longhaul.toml here or in a folder above), the environment
(LONGHAUL_WINDOW, LONGHAUL_PROFILES_LONGHAUL_TRIGGER …), flags.

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

/// What a value must be.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Number(u64, u64),
    Flag,
    Profile,
}

/// The settings of each profile: name, kind, what it says.
const OF_PROFILES: [(&str, Kind, &str); 8] = [
    ("warn", Kind::Number(1, 99), "a person is warned, in percent of the window"),
    ("trigger", Kind::Number(1, 99), "compaction starts"),
    ("target", Kind::Number(1, 98), "what it works to"),
    ("keep_recent", Kind::Number(0, 90), "the newest part that is left alone, in percent of the window"),
    ("summary", Kind::Number(1, 50), "the longest summary, in percent of the window"),
    ("entry_bytes", Kind::Number(1_000, 1 << 30), "a result enters with at most so many bytes"),
    ("entry_digests", Kind::Flag, "a result enters without its noise"),
    ("when_cold", Kind::Flag, "compact when the prompt cache has gone cold anyway"),
];

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
        for profile in Profile::all() {
            for (name, kind, says) in OF_PROFILES {
                add(format!("profiles.{}.{name}", profile.name), kind, says, get(&profile, name));
            }
        }
        Self { settings }
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
            let variable = |key: &str| format!("LONGHAUL_{}", key.replace('.', "_").to_uppercase());
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
        let Some(setting) = self.settings.iter_mut().find(|setting| setting.key == key) else {
            let near = nearest(key, self.settings.iter().map(|setting| setting.key.clone()));
            return Err(format!("there is no setting `{key}`; is `{near}` meant?"));
        };
        setting.kind.check(value).map_err(|problem| format!("`{key}` {problem}"))?;
        (setting.value, setting.origin) = (value.replace('_', ""), origin);
        if let Kind::Profile = setting.kind {
            setting.value = value.to_owned();
        }
        Ok(())
    }

    /// Settings that only make sense together.
    fn check(&self) -> Result<(), Failure> {
        for profile in Profile::all() {
            let key = |name: &str| format!("profiles.{}.{name}", profile.name);
            let (target, trigger) = (self.number(&key("target")), self.number(&key("trigger")));
            if target >= trigger {
                let of = |name: &str| self.find(&key(name)).map(|s| s.origin.to_string()).unwrap_or_default();
                return Err(Failure::Input(format!(
                    "`{}` is {target} ({}), not below `{}`, {trigger} ({})",
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
        let mut profile = Profile::find(name).ok_or_else(|| {
            let known: Vec<_> = Profile::all().into_iter().map(|profile| profile.name).collect();
            Failure::Input(format!("there is no profile {name:?}; there is {}", known.join(", ")))
        })?;
        let number = |field: &str| self.number(&format!("profiles.{name}.{field}"));
        let percent = |field: &str| u8::try_from(number(field)).unwrap_or(100);
        profile.shares.warn = percent("warn");
        profile.shares.trigger = percent("trigger");
        profile.shares.target = percent("target");
        profile.keep_recent = percent("keep_recent");
        profile.summary = percent("summary");
        profile.entry_bytes = usize::try_from(number("entry_bytes")).unwrap_or(usize::MAX);
        profile.entry_digests = self.text(&format!("profiles.{name}.entry_digests")) == "true";
        profile.when_cold = self.text(&format!("profiles.{name}.when_cold")) == "true";
        Ok(profile)
    }

    /// All profiles, with the settings they were given.
    pub fn profiles(&self) -> Result<Vec<Profile>, Failure> {
        Profile::all().iter().map(|profile| self.profile(&profile.name)).collect()
    }
}

/// What is built in for a setting of a profile.
fn get(profile: &Profile, name: &str) -> String {
    match name {
        "warn" => profile.shares.warn.to_string(),
        "trigger" => profile.shares.trigger.to_string(),
        "target" => profile.shares.target.to_string(),
        "keep_recent" => profile.keep_recent.to_string(),
        "summary" => profile.summary.to_string(),
        "entry_bytes" => profile.entry_bytes.to_string(),
        "entry_digests" => profile.entry_digests.to_string(),
        "when_cold" => profile.when_cold.to_string(),
        _ => String::new(),
    }
}

impl Kind {
    fn check(self, value: &str) -> Result<(), String> {
        match self {
            Self::Number(least, most) => match value.replace('_', "").parse::<u64>() {
                Ok(number) if (least..=most).contains(&number) => Ok(()),
                _ => Err(format!("is {value:?}, not a whole number from {least} to {most}")),
            },
            Self::Flag if matches!(value, "true" | "false") => Ok(()),
            Self::Flag => Err(format!("is {value:?}, neither true nor false")),
            Self::Profile if Profile::find(value).is_some() => Ok(()),
            Self::Profile => {
                let near =
                    nearest(value, Profile::all().into_iter().map(|profile| profile.name.into_string()));
                Err(format!("is {value:?}; there is no such profile, is {near:?} meant?"))
            }
        }
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
            DeValue::Boolean(flag) => Some(flag.to_string()),
            _ => None,
        };
        found.push((key, name.span().start, text));
    }
    // A table goes by its names, a person by the lines.
    found.sort_by_key(|(_, at, _)| *at);
}

/// The name that differs least.
fn nearest(name: &str, known: impl Iterator<Item = String>) -> String {
    known.min_by_key(|known| distance(name, known)).unwrap_or_default()
}

/// How many letters must be changed, added or left out to make one of the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
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
        }
        let quote = if matches!(setting.kind, Kind::Profile) { "\"" } else { "" };
        let value = format!("{name} = {quote}{}{quote}", setting.value);
        writeln!(out, "{value:26}{faint}# {}{faint:#}", setting.origin)?;
    }
    Ok(())
}
