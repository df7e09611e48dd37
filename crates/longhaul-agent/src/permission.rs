//! What a call may do without asking: by the mode, and by rules that the user gives. A rule that denies always wins.
//!
//! A rule is the name of a tool, or `Tool(what)`: for tools that change files a glob of paths, for Bash the first words
//! of a command (`Bash(git diff)` allows `git diff --stat`, and so does `Bash(git diff:*)`). `*` at the end of a name
//! stands for the rest of it (`mcp__docs__*`).
//!
//! Commands are [taken apart](command) before a rule is tried. A rule that allows lets nothing pass that was not
//! understood, and a rule that denies has whatever was not understood asked for. What is [protected](crate::protected)
//! is asked for in every mode.

mod command;
mod denial;
mod git;
mod reading;
mod rule;
mod sed;
mod started;

use self::command::{Line, RedirectionKind, Simple};
use self::denial::Denial;
use self::rule::Rule;
pub use self::rule::{BadRule, rule_for};
use self::started::Started;
use crate::protected::is_protected;
use crate::tool::Effect;

/// What may be done without asking, where no rule says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Looking at files. All else is asked for.
    #[default]
    Ask,
    /// Changing files of the project too.
    Edits,
    /// Looking at files, and nothing else, whoever is asked.
    ReadOnly,
    /// Everything.
    All,
}

impl Mode {
    /// All modes, by name.
    pub const NAMES: [(&str, Self); 4] =
        [("ask", Self::Ask), ("edits", Self::Edits), ("read-only", Self::ReadOnly), ("all", Self::All)];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Edits => "edits",
            Self::ReadOnly => "read-only",
            Self::All => "all",
        }
    }
}

/// What is done with a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Allow,
    /// The user is asked, for this reason if it is another than that no rule allows it.
    Ask(Option<String>),
    /// It does not run, for this reason.
    Deny(String),
}

/// A mode and rules.
#[derive(Debug, Clone, Default)]
pub struct Permissions {
    /// What may be done where no rule says it.
    pub mode: Mode,
    allow: Vec<Rule>,
    deny: Vec<Rule>,
}

impl Permissions {
    /// A mode without rules.
    pub fn new(mode: Mode) -> Self {
        Self { mode, ..Self::default() }
    }

    /// Lets calls run that this rule fits.
    pub fn allow(&mut self, rule: &str) -> Result<(), BadRule> {
        self.allow.push(Rule::read(rule)?);
        Ok(())
    }

    /// Lets no call run that this rule fits, whatever else is said.
    pub fn deny(&mut self, rule: &str) -> Result<(), BadRule> {
        self.deny.push(Rule::read(rule)?);
        Ok(())
    }

    /// The rules, those that deny first.
    pub fn rules(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let deny = self.deny.iter().map(|rule| ("deny", rule.text.as_str()));
        deny.chain(self.allow.iter().map(|rule| ("allow", rule.text.as_str())))
    }

    /// What is done with a call of this tool. A path is one that the project has resolved, from its root on.
    pub fn verdict(&self, tool: &str, effect: &Effect) -> Verdict {
        let line = match effect {
            Effect::Runs(command) => Some(Line::read(command)),
            _ => None,
        };
        let unclear = match self.denied(tool, effect, line.as_ref()) {
            Ok(unclear) => unclear,
            Err(reason) => return Verdict::Deny(reason),
        };
        let changes = !matches!(effect, Effect::None | Effect::Reads);
        if self.mode == Mode::ReadOnly && changes {
            return Verdict::Deny("permissions are read-only: nothing may be changed or run".to_owned());
        }
        if unclear.is_some() {
            return Verdict::Ask(unclear);
        }
        if let Some(path) = protected(effect, line.as_ref())
            && !self.allow.iter().any(|rule| rule.names_protected(tool, effect))
        {
            return Verdict::Ask(Some(format!("{path} is protected")));
        }
        let by_mode = match (self.mode, effect) {
            (_, Effect::None | Effect::Reads) | (Mode::All, _) => true,
            (Mode::Edits, Effect::Changes(_)) => true,
            (Mode::Ask | Mode::Edits | Mode::ReadOnly, _) => false,
        };
        let by_rule = || match &line {
            Some(line) => self.allows_line(tool, effect, line),
            None => self.allow.iter().any(|rule| rule.allows(tool, effect)),
        };
        if by_mode || by_rule() { Verdict::Allow } else { Verdict::Ask(None) }
    }

    /// The reason of a rule that denies a call, or why such a rule cannot tell.
    fn denied(&self, tool: &str, effect: &Effect, line: Option<&Line>) -> Result<Option<String>, String> {
        let started = line.map(Started::by);
        let mut unclear = None;
        for rule in self.deny.iter().filter(|rule| rule.is_of(tool, effect)) {
            let denial = match (line, &started, effect) {
                (Some(line), Some(started), Effect::Runs(command)) => {
                    rule.denies_line(command, line, started)
                }
                _ if rule.denies(effect) => Denial::Yes,
                _ => Denial::No,
            };
            match denial {
                Denial::Yes => return Err(format!("a rule denies it: {}", rule.text)),
                Denial::Perhaps(why) => {
                    unclear.get_or_insert_with(|| {
                        format!("it may be what the rule {} denies: {why}", rule.text)
                    });
                }
                Denial::No => {}
            }
        }
        Ok(unclear)
    }

    /// Whether a line is nothing but commands that rules allow, each by one of them.
    fn allows_line(&self, tool: &str, effect: &Effect, line: &Line) -> bool {
        let rules: Vec<&Rule> = self.allow.iter().filter(|rule| rule.is_of(tool, effect)).collect();
        let of_tool = rules.iter().any(|rule| rule.is_of_all());
        let commands = &line.commands;
        of_tool
            || line.is_plain
                && !commands.is_empty()
                && commands.iter().all(|simple| rules.iter().any(|rule| rule.allows_words(&simple.words)))
    }
}

/// Programs that change the files that they are given.
const WRITERS: [&str; 15] = [
    "tee", "cp", "mv", "ln", "install", "touch", "rm", "rmdir", "mkdir", "dd", "truncate", "chmod", "chown",
    "rsync", "patch",
];

/// Whether a command changes the files that it is given. `sed` does so with an option only.
fn is_writer(simple: &Simple) -> bool {
    let Some((program, arguments)) = simple.words.split_first() else { return false };
    match program.text.rsplit('/').next() {
        Some("sed") => {
            arguments.iter().any(|word| word.text.starts_with("-i") || word.text.starts_with("--in-"))
        }
        Some(name) => WRITERS.contains(&name),
        None => false,
    }
}

/// The protected path that a call would change, as far as its effect says it.
fn protected<'a>(effect: &'a Effect, line: Option<&'a Line>) -> Option<&'a str> {
    let commands = || line.into_iter().flat_map(|line| &line.commands);
    let redirected = commands().flat_map(|simple| &simple.redirections);
    let redirected = redirected.filter(|redirection| redirection.kind == RedirectionKind::Writes);
    let redirected = redirected.map(|redirection| &redirection.target);
    let written = commands().filter(|simple| is_writer(simple)).flat_map(|simple| &simple.words[1..]);
    match effect {
        Effect::Changes(path) => Some(path.as_str()).filter(|path| is_protected(path)),
        // `of=` and the like stand before a path.
        _ => redirected
            .chain(written)
            .map(|word| word.text.as_str())
            .find(|text| text.split('=').any(is_protected)),
    }
}

#[cfg(test)]
mod tests;
