//! Commands of git: where the verb is, and whether anything in them may run a command of its own.

use super::command::Word;

/// Why git may run more than its verb: it has aliases, and options that name commands.
pub(super) fn doubt(arguments: &[Word]) -> Option<String> {
    let Some(rest) = after_global_options(arguments) else {
        return Some("git with settings or options that may name commands".to_owned());
    };
    let (verb, rest) = rest.split_first()?;
    if !verb.is_exact || !VERBS.contains(&&*verb.text) {
        return Some("a verb of git that may be an alias".to_owned());
    }
    let runs = rest.iter().any(|word| {
        let option = word.text.split('=').next().unwrap_or_default();
        let is_start = |name: &&str| option.len() > 2 && name.starts_with(option);
        // Short options stand together: `-qx`.
        let has = |letters: &str| {
            option.starts_with('-') && !option.starts_with("--") && option.contains(|c| letters.contains(c))
        };
        RUNS.iter().any(is_start)
            || word.text.starts_with("ext::")
            || match &*verb.text {
                "rebase" | "difftool" => has("x"),
                "clone" => has("uc") || is_start(&"--config"),
                "grep" => has("O"),
                _ => false,
            }
    });
    runs.then(|| format!("git {} with an option that names a command", verb.text))
}

/// The arguments of git from the verb on; `None` if an option before it may name commands.
pub(super) fn after_global_options(arguments: &[Word]) -> Option<&[Word]> {
    let mut rest = arguments;
    while let Some((first, after)) = rest.split_first() {
        rest = match first.text.as_str() {
            text if !first.is_exact && text.is_empty() => return Some(rest),
            "-C" | "--git-dir" | "--work-tree" | "--namespace" | "--super-prefix" => after.get(1..)?,
            "--no-pager"
            | "-P"
            | "-p"
            | "--paginate"
            | "--bare"
            | "--no-replace-objects"
            | "--literal-pathspecs"
            | "--glob-pathspecs"
            | "--noglob-pathspecs"
            | "--icase-pathspecs"
            | "--no-optional-locks"
            | "--no-advice"
            | "--version"
            | "-v"
            | "--help"
            | "-h" => after,
            text if ["--git-dir=", "--work-tree=", "--namespace="]
                .iter()
                .any(|start| text.starts_with(start)) =>
            {
                after
            }
            text if text.starts_with('-') => return None,
            _ => return Some(rest),
        };
    }
    Some(rest)
}

/// Options of git whose value is a command.
const RUNS: [&str; 8] = [
    "--upload-pack",
    "--receive-pack",
    "--exec",
    "--extcmd",
    "--ext-diff",
    "--open-files-in-pager",
    "--to-cmd",
    "--cc-cmd",
];

/// Verbs of git that are its own and run no command that their words name. Any other may be an alias.
const VERBS: [&str; 77] = [
    "add",
    "am",
    "apply",
    "archive",
    "blame",
    "branch",
    "bundle",
    "cat-file",
    "check-attr",
    "check-ignore",
    "checkout",
    "cherry",
    "cherry-pick",
    "clean",
    "clone",
    "commit",
    "commit-tree",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "fetch",
    "for-each-ref",
    "format-patch",
    "fsck",
    "gc",
    "grep",
    "hash-object",
    "init",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge",
    "merge-base",
    "merge-tree",
    "mktree",
    "mv",
    "name-rev",
    "notes",
    "prune",
    "pull",
    "push",
    "range-diff",
    "read-tree",
    "rebase",
    "reflog",
    "remote",
    "repack",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "shortlog",
    "show",
    "show-branch",
    "show-ref",
    "sparse-checkout",
    "stash",
    "status",
    "stripspace",
    "switch",
    "symbolic-ref",
    "tag",
    "update-index",
    "update-ref",
    "var",
    "verify-commit",
    "verify-tag",
    "version",
    "whatchanged",
    "worktree",
    "write-tree",
];
