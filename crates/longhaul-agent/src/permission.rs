//! What a call may do without asking: by the mode, and by rules that the user gives. A rule that denies always wins.
//!
//! A rule is the name of a tool, or `Tool(what)`: for tools that change files a glob of paths, for Bash the first words
//! of a command (`Bash(git diff)` allows `git diff --stat`, and so does `Bash(git diff:*)`). `*` at the end of a name
//! stands for the rest of it (`mcp__docs__*`).

use std::collections::BTreeSet;

use globset::{Glob, GlobBuilder};

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
    /// The user is asked.
    Ask,
    /// It does not run, for this reason.
    Deny(String),
}

/// A rule that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{rule}` is no rule for permissions: {problem}")]
pub struct BadRule {
    rule: String,
    problem: String,
}

/// A mode and rules.
#[derive(Debug, Clone, Default)]
pub struct Permissions {
    /// What may be done where no rule says it.
    pub mode: Mode,
    allow: Vec<Rule>,
    deny: Vec<Rule>,
}

#[derive(Debug, Clone)]
struct Rule {
    text: String,
    tool: String,
    what: Option<What>,
}

#[derive(Debug, Clone)]
enum What {
    Words(Vec<String>),
    Paths(Glob),
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
        if let Some(rule) = self.deny.iter().find(|rule| rule.denies(tool, effect)) {
            return Verdict::Deny(format!("a rule denies it: {}", rule.text));
        }
        let changes = !matches!(effect, Effect::None | Effect::Reads);
        if self.mode == Mode::ReadOnly && changes {
            return Verdict::Deny("permissions are read-only: nothing may be changed or run".to_owned());
        }
        let by_mode = match (self.mode, effect) {
            (_, Effect::None | Effect::Reads) | (Mode::All, _) => true,
            (Mode::Edits, Effect::Changes(_)) => true,
            (Mode::Ask | Mode::Edits | Mode::ReadOnly, _) => false,
        };
        if by_mode || self.allow.iter().any(|rule| rule.allows(tool, effect)) {
            Verdict::Allow
        } else {
            Verdict::Ask
        }
    }

    /// The rule that would let calls like this one run without asking, if there is one that is not too wide.
    pub fn rule_for(tool: &str, effect: &Effect) -> Option<String> {
        match effect {
            Effect::None | Effect::Reads => None,
            Effect::Changes(_) => Some(tool.to_owned()),
            Effect::Foreign(name) => Some(name.clone()),
            Effect::Runs(command) => {
                let parts = simple_commands(command)?;
                let [words] = parts.as_slice() else { return None };
                // Of programs that do many things the first two words say what is done.
                let take = if words.get(1).is_some_and(|word| !word.starts_with('-')) && has_verbs(&words[0])
                {
                    2
                } else {
                    1
                };
                Some(format!("{tool}({})", words[..take.min(words.len())].join(" ")))
            }
        }
    }
}

/// Programs whose second word says what they do.
fn has_verbs(program: &str) -> bool {
    const PROGRAMS: [&str; 17] = [
        "git",
        "cargo",
        "npm",
        "pnpm",
        "yarn",
        "docker",
        "kubectl",
        "go",
        "pip",
        "uv",
        "make",
        "just",
        "poetry",
        "gh",
        "apt",
        "systemctl",
        "rustup",
    ];
    PROGRAMS.contains(&program)
}

impl Rule {
    fn read(text: &str) -> Result<Self, BadRule> {
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
                let words = words.strip_suffix(":*").or_else(|| words.strip_suffix(" *")).unwrap_or(words);
                Some(What::Words(words.split_whitespace().map(str::to_owned).collect()))
            }
            Some(paths) => {
                let glob = GlobBuilder::new(paths.trim_start_matches("./")).literal_separator(true).build();
                Some(What::Paths(glob.map_err(|error| bad(&error.to_string()))?))
            }
        };
        Ok(Self { text: text.to_owned(), tool: tool.to_owned(), what })
    }

    fn is_of(&self, tool: &str, effect: &Effect) -> bool {
        let fits = |name: &str| match self.tool.strip_suffix('*') {
            Some(start) => name.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start)),
            None => name.eq_ignore_ascii_case(&self.tool),
        };
        // A rule for Edit is one for all that change files, as people expect it.
        let edits = self.tool.eq_ignore_ascii_case("edit") && matches!(effect, Effect::Changes(_));
        fits(tool) || edits
    }

    /// A command is allowed if each of its parts is; one that cannot be taken apart is asked for.
    fn allows(&self, tool: &str, effect: &Effect) -> bool {
        self.is_of(tool, effect)
            && match (&self.what, effect) {
                (None, _) => true,
                (Some(What::Words(words)), Effect::Runs(command)) => simple_commands(command)
                    .is_some_and(|parts| parts.iter().all(|part| part.starts_with(words))),
                (Some(What::Paths(glob)), Effect::Changes(path)) => glob.compile_matcher().is_match(path),
                _ => false,
            }
    }

    /// A command is denied if these words stand in it anywhere, one behind the other.
    fn denies(&self, tool: &str, effect: &Effect) -> bool {
        self.is_of(tool, effect)
            && match (&self.what, effect) {
                (None, _) => true,
                (Some(What::Words(words)), Effect::Runs(command)) => {
                    let plain: String = command.chars().map(|c| if is_word(c) { c } else { ' ' }).collect();
                    let said: Vec<&str> = plain.split_whitespace().collect();
                    said.windows(words.len()).any(|run| {
                        run.iter()
                            .zip(words)
                            .all(|(said, word)| said == word || said.rsplit('/').next() == Some(word))
                    })
                }
                (Some(What::Paths(glob)), Effect::Changes(path)) => glob.compile_matcher().is_match(path),
                _ => false,
            }
    }
}

/// A character of a word: none that separates commands, quotes or substitutes.
fn is_word(c: char) -> bool {
    !c.is_whitespace() && !";&|()<>`\"'{}$\\".contains(c)
}

/// The commands of a line, word by word, if it is nothing but simple commands with `&&`, `||`, `;` or `|` between them.
/// Anything that a shell would read in another way, quotes and all, gives `None`: such a line is asked for.
fn simple_commands(command: &str) -> Option<Vec<Vec<String>>> {
    // A line break is a separator too. Redirection, substitution, groups, jobs and variables are not simple.
    let forbidden: BTreeSet<char> = "<>`$(){}\\#!*?[]~=^".chars().collect();
    let mut parts: Vec<Vec<String>> = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut characters = command.trim().chars().peekable();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('"'), '$' | '`' | '\\' | '!') => return None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '&') => {
                characters.next_if_eq(&'&')?;
                parts.last_mut()?.extend(word.take());
                parts.push(Vec::new());
            }
            (None, ';' | '|' | '\n') => {
                characters.next_if(|next| c == '|' && *next == '|');
                parts.last_mut()?.extend(word.take());
                parts.push(Vec::new());
            }
            (None, c) if c.is_whitespace() => parts.last_mut()?.extend(word.take()),
            // `a=b` is a word behind the first one, and an assignment before it.
            (None, '=') if parts.last().is_some_and(|part| !part.is_empty()) => {
                word.get_or_insert_default().push(c);
            }
            (None, c) if forbidden.contains(&c) || c.is_control() => return None,
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    parts.last_mut()?.extend(word.take());
    if quote.is_some() || parts.iter().any(Vec::is_empty) {
        return None;
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(command: &str) -> Effect {
        Effect::Runs(command.to_owned())
    }

    fn permissions(mode: Mode, allow: &[&str], deny: &[&str]) -> Permissions {
        let mut permissions = Permissions::new(mode);
        allow.iter().for_each(|rule| permissions.allow(rule).unwrap());
        deny.iter().for_each(|rule| permissions.deny(rule).unwrap());
        permissions
    }

    #[test]
    fn a_mode_says_what_is_done_without_asking() {
        let change = Effect::Changes("src/a.rs".into());
        let table = [
            (Mode::Ask, Verdict::Ask, Verdict::Ask),
            (Mode::Edits, Verdict::Allow, Verdict::Ask),
            (Mode::All, Verdict::Allow, Verdict::Allow),
        ];
        for (mode, edit, bash) in table {
            let permissions = Permissions::new(mode);
            assert_eq!(permissions.verdict("Read", &Effect::Reads), Verdict::Allow);
            assert_eq!(permissions.verdict("Edit", &change), edit, "{mode:?}");
            assert_eq!(permissions.verdict("Bash", &runs("make")), bash, "{mode:?}");
        }
        let read_only = permissions(Mode::ReadOnly, &["Bash(make)", "Edit"], &[]);
        for effect in [change, runs("make"), Effect::Foreign("mcp__a__b".into())] {
            assert!(matches!(read_only.verdict("Edit", &effect), Verdict::Deny(_)), "{effect:?}");
        }
        assert_eq!(read_only.verdict("Read", &Effect::Reads), Verdict::Allow);
    }

    #[test]
    fn a_deny_always_wins() {
        let all =
            permissions(Mode::All, &["Bash", "Edit"], &["Bash(rm)", "Edit(secrets/**)", "mcp__mail__*"]);
        for command in
            ["rm -rf x", "cd a && rm x", "echo $(rm x)", "/bin/rm x", "sudo rm x", "true;rm x", "'rm' x"]
        {
            assert!(matches!(all.verdict("Bash", &runs(command)), Verdict::Deny(_)), "{command}");
        }
        assert_eq!(all.verdict("Bash", &runs("cargo fmt")), Verdict::Allow);
        assert!(matches!(all.verdict("Write", &Effect::Changes("secrets/a/key".into())), Verdict::Deny(_)));
        assert_eq!(all.verdict("Write", &Effect::Changes("src/a".into())), Verdict::Allow);
        let mail = Effect::Foreign("mcp__mail__send".into());
        assert!(matches!(all.verdict("mcp__mail__send", &mail), Verdict::Deny(_)));
    }

    #[test]
    fn a_command_is_allowed_if_each_part_of_it_is_and_nothing_is_hidden_in_it() {
        let ask = permissions(Mode::Ask, &["Bash(git diff:*)", "Bash(cargo test)"], &[]);
        for good in ["git diff", "git diff --stat HEAD", "git diff 'a b'", "cargo test -p x"] {
            assert_eq!(ask.verdict("Bash", &runs(good)), Verdict::Allow, "{good}");
        }
        for bad in [
            "git",
            "git push",
            "git difftool",
            "git diff; rm x",
            "git diff && rm x",
            "git diff | sh",
            "git diff & rm x",
            "git diff > x",
            "git diff $(rm x)",
            "git diff `rm x`",
            "git diff \"$(rm x)\"",
            "git diff\nrm x",
            "FOO=1 git diff",
            "git diff <(rm x)",
            "git diff \\\nrm",
            "(git diff)",
            "git diff || curl x",
            "gitdiff",
            "git diff {a,b}",
            "",
            ";",
            "git diff &&",
            "git diff 'x",
            "git\u{a0}diff x\r\nrm",
        ] {
            assert_eq!(ask.verdict("Bash", &runs(bad)), Verdict::Ask, "{bad:?}");
        }
        let both = permissions(Mode::Ask, &["Bash(git)"], &[]);
        assert_eq!(both.verdict("Bash", &runs("git add . && git commit -m 'a; b'")), Verdict::Allow);
    }

    #[test]
    fn the_rule_that_is_offered_is_not_too_wide() {
        let rule = |command: &str| Permissions::rule_for("Bash", &runs(command));
        assert_eq!(rule("git status --short").as_deref(), Some("Bash(git status)"));
        assert_eq!(rule("ls -la").as_deref(), Some("Bash(ls)"));
        assert_eq!(rule("cd a && make"), None);
        assert_eq!(rule("echo $HOME"), None);
        assert_eq!(Permissions::rule_for("Write", &Effect::Changes("a".into())).as_deref(), Some("Write"));
    }

    #[test]
    fn a_rule_that_cannot_be_read_is_said() {
        for bad in ["", "Bash(git", "two words", "Edit(a[)"] {
            let error = Permissions::default().allow(bad).unwrap_err();
            assert!(error.to_string().contains("is no rule for permissions"), "{error}");
        }
    }
}
