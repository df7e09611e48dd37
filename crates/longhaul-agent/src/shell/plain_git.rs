//! Plain git commands: those that may write `.git`.
//!
//! A command line is plain if it is made of git commands of a short list and nothing else: words and quoted words,
//! joined by `&&` or `;`. Whatever a shell would expand makes it another command, which runs with `.git` read-only.

/// Commands of git that change a repository, or show it, and run no program that their arguments name.
/// `push` is none: to a path it runs the hooks of a repository there.
const VERBS: [&str; 19] = [
    "add",
    "branch",
    "checkout",
    "cherry-pick",
    "commit",
    "diff",
    "fetch",
    "init",
    "log",
    "merge",
    "pull",
    "rebase",
    "reset",
    "restore",
    "revert",
    "show",
    "stash",
    "status",
    "tag",
];
/// Options that name a program, a folder of settings or a file to write, or start an editor. Git takes an option by the
/// start of its name too.
const REFUSED: [&str; 11] = [
    "edit",
    "exec",
    "ext-diff",
    "interactive",
    "output",
    "receive-pack",
    "separate-git-dir",
    "strategy",
    "template",
    "textconv",
    "upload-pack",
];
/// Commands that merge: `-s` is the name of a program for them, and `-x` of rebase is a command.
const MERGING: [&str; 5] = ["cherry-pick", "merge", "pull", "rebase", "revert"];

/// Whether this is a plain git command line.
pub(crate) fn is_plain(command: &str) -> bool {
    let Some(commands) = words(command) else { return false };
    !commands.is_empty() && commands.iter().all(|words| is_plain_command(words))
}

fn is_plain_command(words: &[String]) -> bool {
    let [git, verb, arguments @ ..] = words else { return false };
    git == "git" && VERBS.contains(&&**verb) && are_plain(verb, arguments)
}

fn are_plain(verb: &str, arguments: &[String]) -> bool {
    let options = arguments.iter().take_while(|argument| *argument != "--");
    let is_refused = |option: &String| match (option.strip_prefix("--"), option.strip_prefix('-')) {
        (Some(long), _) => {
            let name = long.split('=').next().unwrap_or_default();
            REFUSED.iter().any(|refused| refused.starts_with(name) || name.starts_with(refused))
        }
        (None, Some(letters)) => {
            letters.contains('i') || (MERGING.contains(&verb) && letters.contains(['s', 'x']))
        }
        (None, None) => false,
    };
    // A transport that is a command: `ext::./program`.
    let is_transport = |argument: &String| matches!(verb, "fetch" | "pull") && argument.contains("::");
    !options.clone().any(is_refused) && !arguments.iter().any(is_transport)
}

/// The words of each command; `None` for what is more than words and quotes.
fn words(line: &str) -> Option<Vec<Vec<String>>> {
    let mut commands: Vec<Vec<String>> = Vec::new();
    let mut command: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.trim().chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            ' ' | '\t' => command.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '\'' => break,
                        other => word.push(other),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '"' => break,
                        '$' | '`' | '\\' => return None,
                        other => word.push(other),
                    }
                }
            }
            '&' if rest.next_if_eq(&'&').is_some() => {
                command.extend(word.take());
                commands.push(std::mem::take(&mut command));
            }
            ';' => {
                command.extend(word.take());
                commands.push(std::mem::take(&mut command));
            }
            // The home folder of somebody, at the start of a word.
            '~' if !word.as_deref().is_some_and(|word| word.ends_with(char::is_alphanumeric)) => return None,
            other if is_ordinary(other) => word.get_or_insert_default().push(other),
            _ => return None,
        }
    }
    command.extend(word);
    if !command.is_empty() {
        commands.push(command);
    }
    Some(commands)
}

/// A character that means itself to every shell, where it is not the first of a word.
fn is_ordinary(character: char) -> bool {
    character.is_alphanumeric() || "-_./,:=@%+^~".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_git_command_and_nothing_else_is_plain() {
        for plain in [
            "git add -A",
            "git add -- src/a.rs 'a name with spaces'",
            "git commit -m \"Mend the parser; it dropped a line\"",
            "git commit -am 'the output of it, -x, `ls` and $HOME'",
            "git add . && git commit -q -m 'a' && git log -1",
            "git status; git log --oneline -5",
            "git checkout -b feature/one",
            "git fetch origin feature/one",
            "git commit -m 'Mend a::b'",
            "git reset --soft HEAD~1; git stash -u",
        ] {
            assert!(is_plain(plain), "{plain}");
        }
    }

    #[test]
    fn whatever_else_is_in_the_line_makes_it_another_command() {
        for other in [
            "",
            "ls",
            "git",
            "git config core.fsmonitor ./evil",
            "git -c core.fsmonitor=./evil status",
            "git -C elsewhere commit",
            "git --git-dir=x add a",
            "git add a | cat",
            "git add a & touch b",
            "git add a > .git/config",
            "git add $(touch x)",
            "git add `touch x`",
            "git add \"$(touch x)\"",
            "git add a\ntouch b",
            "git add *",
            "git add {a,b}",
            "git add ~/x",
            "git add a # b",
            "git add a && touch b",
            "PATH=. git add a",
            "git 'add",
            "git rebase -x ./evil main",
            "git rebase --exec=./evil main",
            "git rebase --exe ./evil main",
            "git rebase -ix ./evil",
            "git fetch --upload-pack=./evil origin",
            "git fetch --upload ./evil origin",
            "git fetch ext::./evil",
            "git push ../evil main",
            "git merge -s evil main",
            "git merge --strategy=evil main",
            "git init --template=evil",
            "git init --separate-git-dir=evil",
            "git diff --output=.git/config",
            "git diff --ext-diff",
            "git log --textconv",
            "git branch --edit-description",
            "git commit --ed",
            "g'i't add a\\",
            "git ad\\d",
        ] {
            assert!(!is_plain(other), "{other}");
        }
    }
}
