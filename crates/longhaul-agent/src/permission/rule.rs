//! A rule for permissions: how it is written, what it fits, and which one is offered to a person.

use globset::{Glob, GlobBuilder};

use super::command::{Line, Word};
use super::denial::{Denial, denial};
use super::reading::{Known, known, verb_length};
use super::started::Started;
use crate::protected::is_protected;
use crate::tool::Effect;

/// A rule that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{rule}` is no rule for permissions: {problem}")]
pub struct BadRule {
    rule: String,
    problem: String,
}

#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) text: String,
    tool: String,
    what: Option<What>,
}

#[derive(Debug, Clone)]
enum What {
    /// These words, and whatever comes after them.
    Words(Vec<String>),
    /// These words and no more.
    Only(Vec<String>),
    Paths(Glob),
}

impl Rule {
    pub(super) fn read(text: &str) -> Result<Self, BadRule> {
        let bad = |problem: &str| BadRule { rule: text.to_owned(), problem: problem.to_owned() };
        let text = text.trim();
        let (tool, what) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => {
                let what = rest.strip_suffix(')').ok_or_else(|| bad("the parenthesis is not closed"))?;
                (tool.trim(), Some(what.trim()))
            }
        };
        if tool.is_empty() || tool.contains(char::is_whitespace) {
            return Err(bad("the name of a tool is wanted, such as `Edit` or `Bash(git diff)`"));
        }
        let what = match what {
            None | Some("" | "*") => None,
            Some(words) if tool.eq_ignore_ascii_case("bash") => {
                let (words, what): (_, fn(Vec<String>) -> What) = match words.strip_prefix('=') {
                    Some(words) => (words, What::Only),
                    None => (words, What::Words),
                };
                Some(words_of(words)).filter(|words| !words.is_empty()).map(what)
            }
            Some(paths) => {
                let glob = GlobBuilder::new(paths.trim_start_matches("./")).literal_separator(true).build();
                Some(What::Paths(glob.map_err(|error| bad(&error.to_string()))?))
            }
        };
        Ok(Self { text: text.to_owned(), tool: tool.to_owned(), what })
    }

    pub(super) fn is_of(&self, tool: &str, effect: &Effect) -> bool {
        let fits = |name: &str| match self.tool.strip_suffix('*') {
            Some(start) => name.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start)),
            None => name.eq_ignore_ascii_case(&self.tool),
        };
        // A rule for Edit is one for all that change files, as people expect it.
        let edits = self.tool.eq_ignore_ascii_case("edit") && matches!(effect, Effect::Changes(_));
        fits(tool) || edits
    }

    /// Whether it fits all calls of its tool.
    pub(super) fn is_of_all(&self) -> bool {
        self.what.is_none()
    }

    /// Whether it lets a call run that is no command.
    pub(super) fn allows(&self, tool: &str, effect: &Effect) -> bool {
        self.is_of(tool, effect) && (self.is_of_all() || self.fits_path(effect))
    }

    /// Whether it lets a change of a protected path run: only if it names what is protected, and not by a pattern that
    /// is wide enough to fit it too.
    pub(super) fn names_protected(&self, tool: &str, effect: &Effect) -> bool {
        let names =
            matches!(&self.what, Some(What::Paths(glob)) if is_protected(&glob.glob().replace('\\', "")));
        names && self.allows(tool, effect)
    }

    /// Whether it lets a simple command of plain words run.
    pub(super) fn allows_words(&self, words: &[Word]) -> bool {
        let texts: Vec<String> = words.iter().map(|word| word.text.clone()).collect();
        match &self.what {
            Some(What::Words(rule)) => {
                texts.starts_with(rule) && !matches!(known(&texts, rule.len()), Known::NotListed)
            }
            Some(What::Only(rule)) => texts == *rule,
            Some(What::Paths(_)) | None => false,
        }
    }

    /// Whether it denies a call that is no command.
    pub(super) fn denies(&self, effect: &Effect) -> bool {
        self.is_of_all() || self.fits_path(effect)
    }

    /// Whether it denies a command.
    pub(super) fn denies_line(&self, command: &str, line: &Line, started: &Started) -> Denial {
        match &self.what {
            None => Denial::Yes,
            Some(What::Words(rule) | What::Only(rule)) => denial(rule, command, line, started),
            Some(What::Paths(_)) => Denial::No,
        }
    }

    fn fits_path(&self, effect: &Effect) -> bool {
        match (&self.what, effect) {
            (Some(What::Paths(glob)), Effect::Changes(path)) => glob.compile_matcher().is_match(path),
            _ => false,
        }
    }
}

/// The words of a rule, with or without the sign for more of them at the end. Quotes are read as the shell does.
fn words_of(text: &str) -> Vec<String> {
    let text = text.strip_suffix(":*").or_else(|| text.strip_suffix(" *")).unwrap_or(text);
    let line = Line::read(text);
    match line.commands.as_slice() {
        [simple] if line.is_plain && simple.redirections.is_empty() => {
            simple.words.iter().map(|word| word.text.clone()).collect()
        }
        _ => text.split_whitespace().map(str::to_owned).collect(),
    }
}

/// The rule that would let calls like this one run without asking, if there is one that is not too wide: for a file its
/// folder, for a command the words that name what it does, or all of it where no table says which options are harmless.
pub fn rule_for(tool: &str, effect: &Effect) -> Option<String> {
    /// A longer rule is not read to its end.
    const LONGEST: usize = 100;
    let rule = match effect {
        Effect::None | Effect::Reads => return None,
        Effect::Changes(path) => {
            let folder = path.rsplit_once('/').map(|(folder, _)| globset::escape(folder));
            let paths = folder.filter(|_| !is_protected(path)).map(|folder| format!("{folder}/**"));
            format!("Edit({})", paths.unwrap_or_else(|| globset::escape(path)))
        }
        Effect::Foreign(name) => name.clone(),
        Effect::Runs(command) => {
            let line = Line::read(command);
            let [simple] = line.commands.as_slice() else { return None };
            let words: Vec<String> = simple.words.iter().map(|word| word.text.clone()).collect();
            let is_usual = |word: &String| {
                !word.is_empty()
                    && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c))
            };
            if !line.is_plain || words.is_empty() {
                return None;
            }
            let length = verb_length(&words).filter(|length| matches!(known(&words, *length), Known::Reads));
            let named = &words[..length.unwrap_or(words.len())];
            if !named.iter().all(is_usual) {
                return None;
            }
            // Where no table says which options are harmless, more words may do anything.
            let only = if length.is_none() { "=" } else { "" };
            format!("{tool}({only}{})", named.join(" "))
        }
    };
    (rule.len() <= LONGEST).then_some(rule)
}
