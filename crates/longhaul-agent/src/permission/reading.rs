//! Which options of well-known commands only read, or change nothing but what the command is for. A rule such as
//! `Bash(git diff)` lets these pass and no others: `--output` would replace a file, `--no-index` read any.

use super::command::Word;

/// A program, with a verb where it has several, and what it may be given.
struct Verb {
    words: &'static [&'static str],
    /// `--flag`, `--value=` (in the same word or the next), `--maybe=?` (in the same word or absent); short options in
    /// the same way, which may stand in a cluster; `-#` is a number. A value of `=*` may be any text, others are paths
    /// or names and may not lead out of the folder.
    options: &'static str,
    operands: Operands,
}

/// Arguments that are no options.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    None,
    /// Names, revisions and paths that do not lead out of the folder.
    Inside,
    /// A pattern, then paths.
    Pattern,
    /// Names and paths, and behind `--` whatever the program of the project takes.
    ForProgram,
}

const fn verb(words: &'static [&'static str], options: &'static str, operands: Operands) -> Verb {
    Verb { words, options, operands }
}

use Operands::{ForProgram, Inside, None as Nothing, Pattern};

macro_rules! diff_options {
    () => {
        "-p -u --patch -s --no-patch -U= --unified= --raw --stat=? --numstat --shortstat --summary --compact-summary \
         --dirstat=? --name-only --name-status --color=? --no-color --color-words=? --word-diff=? --check --full-index \
         --binary --abbrev=? -M=? -C=? -B=? -D --find-renames=? --find-copies=? --no-renames --diff-filter= -S=* -G=* \
         --pickaxe-all --pickaxe-regex -R --relative -a --text -w -b --ignore-all-space --ignore-space-change \
         --ignore-space-at-eol --ignore-blank-lines --minimal --patience --histogram --diff-algorithm= -W \
         --function-context --exit-code --quiet --no-ext-diff --no-textconv --submodule=? -z -m --cached --staged \
         --merge-base "
    };
}

macro_rules! log_options {
    () => {
        concat!(
            diff_options!(),
            "--oneline --graph --all --branches=? --tags=? --remotes=? --decorate=? --no-decorate --format=? --pretty=? \
             --abbrev-commit --date= -n= -# --max-count= --skip= --since=* --until=* --after=* --before=* --author=* \
             --committer=* --grep=* -i -E -F -P --all-match --invert-grep --merges --no-merges --first-parent --reverse \
             --follow --topo-order --date-order --no-walk -L=* -g --left-right --cherry-pick --no-notes "
        )
    };
}

const GREP: &str = "-i -v -w -x -n -c -l -L -o -q -s -h -H -r -E -F -G -P -a -I -z -A= -B= -C= -m= -e=* -# --ignore-case \
    --invert-match --word-regexp --line-regexp --line-number --count --files-with-matches --files-without-match \
    --only-matching --quiet --no-messages --no-filename --with-filename --recursive --extended-regexp --fixed-strings \
    --basic-regexp --perl-regexp --text --after-context= --before-context= --context= --max-count= --include=* \
    --exclude=* --exclude-dir=* --color=? --regexp=*";

/// Options of all verbs of cargo that build. One that a verb does not know makes it fail.
const CARGO: &str = "-q -v -p= -j= -F= --quiet --verbose --package= --workspace --all --exclude= --lib --bin= --bins \
    --example= --examples --test= --tests --bench= --benches --all-targets --doc --release --profile= --features= \
    --all-features --no-default-features --target= --message-format= --locked --offline --frozen --keep-going --no-run \
    --no-fail-fast --jobs= --color= --no-deps --allow-dirty --allow-staged --fix -D= -W= -A=";

/// The commands that are known, those with more words first.
const VERBS: [Verb; 51] = [
    verb(&["git", "stash", "list"], log_options!(), Nothing),
    verb(&["git", "worktree", "list"], "-v --porcelain -z", Nothing),
    verb(&["git", "diff"], diff_options!(), Inside),
    verb(&["git", "log"], log_options!(), Inside),
    verb(&["git", "show"], log_options!(), Inside),
    verb(&["git", "whatchanged"], log_options!(), Inside),
    verb(
        &["git", "status"],
        "-s --short -b --branch --porcelain=? --long -v --verbose -u=? --untracked-files=? --ignored=? -z --column=? \
         --no-column --ahead-behind --no-ahead-behind --renames --no-renames --show-stash --ignore-submodules=?",
        Inside,
    ),
    verb(
        &["git", "blame"],
        "-L=* -l -t -s -e -w -M=? -C=? -p --porcelain --line-porcelain --show-name --show-number --show-email --date= \
         --root --abbrev= -f -n",
        Inside,
    ),
    verb(
        &["git", "grep"],
        "-i -v -w -n -c -l -L -o -q -h -H -E -F -G -P -I -a -p -W -A= -B= -C= -e=* --cached --untracked --ignore-case \
         --invert-match --word-regexp --line-number --count --files-with-matches --name-only --extended-regexp \
         --fixed-strings --perl-regexp --and --or --not --all-match --break --heading --max-depth= --color=?",
        Pattern,
    ),
    verb(
        &["git", "ls-files"],
        "-c -d -o -m -s -i -u -k -t -v -z --cached --deleted --others --modified --stage --ignored --unmerged --full-name \
         --exclude-standard --directory --eol --error-unmatch",
        Inside,
    ),
    verb(&["git", "ls-tree"], "-r -d -t -l -z --long --name-only --full-name --full-tree --abbrev=?", Inside),
    verb(&["git", "cat-file"], "-t -s -e -p --batch-check=?", Inside),
    verb(
        &["git", "rev-parse"],
        "--show-toplevel --show-prefix --show-cdup --git-dir --is-inside-work-tree --abbrev-ref=? --short=? --verify -q \
         --symbolic --symbolic-full-name --all --branches=? --tags=? --remotes=?",
        Inside,
    ),
    verb(&["git", "rev-list"], log_options!(), Inside),
    verb(
        &["git", "shortlog"],
        "-s -n -e -c --summary --numbered --email --no-merges --since=* --until=*",
        Inside,
    ),
    verb(
        &["git", "describe"],
        "--tags --all --always --dirty=? --long --abbrev=? --match=? --exact-match",
        Inside,
    ),
    verb(&["git", "merge-base"], "--all --is-ancestor --fork-point --octopus", Inside),
    verb(&["git", "show-ref"], "--heads --tags --head -s -q --verify", Inside),
    verb(
        &["git", "branch"],
        "-a -r -v -vv --all --remotes --verbose --list --show-current --no-color --color=? --column=? --sort= --format=?",
        Nothing,
    ),
    verb(&["git", "tag"], "-l --list --sort= --column=? --format=?", Nothing),
    verb(&["git", "remote"], "-v --verbose", Nothing),
    verb(&["git", "reflog"], log_options!(), Nothing),
    // These change the repository and nothing else.
    verb(&["git", "add"], "-A -u -v -n --all --update --verbose --dry-run --intent-to-add -N", Inside),
    verb(
        &["git", "commit"],
        "-a -m=* -q -v -s -n --all --message=* --quiet --verbose --signoff --amend --no-edit --allow-empty --dry-run \
         --no-verify --author=* --date=* --fixup= --no-gpg-sign",
        Inside,
    ),
    verb(&["cargo", "test"], CARGO, ForProgram),
    verb(&["cargo", "run"], CARGO, ForProgram),
    verb(&["cargo", "bench"], CARGO, ForProgram),
    verb(&["cargo", "build"], CARGO, Inside),
    verb(&["cargo", "check"], CARGO, Inside),
    verb(&["cargo", "clippy"], CARGO, Inside),
    verb(&["cargo", "fmt"], "-q -v -p= --quiet --verbose --package= --all --check", Nothing),
    verb(&["cargo", "doc"], CARGO, Inside),
    verb(
        &["cargo", "tree"],
        "-q -v -p= -i= -e= -d -f=* --workspace --package= --invert= --edges= --duplicates --depth= --prefix= --format=* \
         --features= --all-features --no-default-features --target= --locked --offline --frozen",
        Inside,
    ),
    verb(&["cargo", "metadata"], "-q -v --no-deps --format-version= --locked --offline --frozen", Nothing),
    verb(
        &["ls"],
        "-a -A -l -h -1 -R -r -t -S -d -F -p -i -s -n -o -g -k -m -x -X -U -c -u -v -L -H -G -b -q -Q -N --all \
         --almost-all --human-readable --recursive --reverse --directory --classify=? --color=? --group-directories-first \
         --sort= --time= --full-time --size --inode --si",
        Inside,
    ),
    verb(
        &["cat"],
        "-n -b -s -A -E -T -v -e -t --number --squeeze-blank --show-all --number-nonblank",
        Inside,
    ),
    verb(&["head"], "-n= -c= -q -v -# --lines= --bytes= --quiet --verbose", Inside),
    verb(&["tail"], "-n= -c= -q -v -# --lines= --bytes= --quiet --verbose", Inside),
    verb(&["wc"], "-l -w -c -m -L --lines --words --bytes --chars --max-line-length", Inside),
    verb(&["grep"], GREP, Pattern),
    verb(&["egrep"], GREP, Pattern),
    verb(&["fgrep"], GREP, Pattern),
    verb(
        &["rg"],
        "-i -S -s -v -w -x -n -N -c -l -o -q -H -I -F -P -U -a -u -. -p -0 -A= -B= -C= -m= -e=* -g=* -t= -T= -r=* -j= -M= \
         -d= --ignore-case --smart-case --case-sensitive --invert-match --word-regexp --line-number --no-line-number \
         --count --count-matches --files-with-matches --files-without-match --files --only-matching --quiet \
         --with-filename --no-filename --fixed-strings --pcre2 --multiline --multiline-dotall --text --hidden --no-ignore \
         --no-ignore-vcs --unrestricted --glob=* --iglob=* --type= --type-not= --type-list --replace=* --max-count= \
         --max-depth= --max-columns= --max-filesize= --context= --after-context= --before-context= --regexp=* --sort= \
         --sortr= --color= --heading --no-heading --column --vimgrep --json --stats --trim --null --pretty --no-messages \
         --no-config",
        Pattern,
    ),
    verb(
        &["sort"],
        "-r -n -u -f -b -h -V -k= -t=* -s -c -d -g -M -i --reverse --numeric-sort --unique --key=",
        Inside,
    ),
    verb(&["uniq"], "-c -d -u -i", Nothing),
    verb(
        &["cut"],
        "-d=* -f= -c= -b= -s --delimiter=* --fields= --characters= --only-delimited --complement",
        Inside,
    ),
    verb(
        &["diff"],
        "-u -U= -r -q -b -w -B -i -N -y -s -a --unified=? --brief --recursive --side-by-side --color=?",
        Inside,
    ),
    verb(&["stat"], "-c=* -t -L --format=* --terse", Inside),
    verb(&["file"], "-b -i -L --brief --mime --mime-type", Inside),
    verb(&["du"], "-s -h -a -c -d= -k -m -x --summarize --human-readable --max-depth= --total", Inside),
    verb(&["pwd"], "-L -P", Nothing),
];

/// `find`, whose options are whole words, and of which some write, delete and run.
const FIND: &str = "-name=* -iname=* -path=* -ipath=* -regex=* -iregex=* -type= -size= -mtime= -mmin= -atime= -amin= \
    -ctime= -cmin= -newer= -perm= -user= -group= -maxdepth= -mindepth= -regextype= -links= -inum= -samefile= -empty \
    -print -print0 -prune -not -and -or -a -o -follow -mount -xdev -depth -daystart -readable -writable -executable -true \
    -false -quit -L -P -H";

/// Commands whose arguments are not read by a table of options.
const SPECIAL: [&str; 4] = ["find", "echo", "printf", "cd"];

/// What is known of a command that a rule names.
pub(crate) enum Known {
    /// There is a table for it, and all arguments are in it.
    Reads,
    /// There is a table for it, and an argument is not.
    NotListed,
    /// There is no table.
    NoTable,
}

/// How many words name a command that there is a table for.
pub(crate) fn verb_length(words: &[String]) -> Option<usize> {
    let is_start = |verb: &&Verb| {
        words.len() >= verb.words.len() && verb.words.iter().zip(words).all(|(known, word)| known == word)
    };
    let first = words.first()?;
    if SPECIAL.contains(&first.as_str()) {
        return Some(1);
    }
    VERBS.iter().find(is_start).map(|verb| verb.words.len())
}

/// What is known of a command, after the words that a rule names already.
pub(crate) fn known(words: &[String], named: usize) -> Known {
    let Some(length) = verb_length(words).filter(|length| named >= *length) else { return Known::NoTable };
    let arguments = &words[named..];
    let fits = match words[0].as_str() {
        "find" => find_reads(arguments),
        // Without an argument it leads home.
        "cd" => {
            arguments.len() == 1 && arguments.iter().all(|word| !word.starts_with('-') && is_inside(word))
        }
        "echo" => true,
        // `-v` sets a variable.
        "printf" => !arguments.first().is_some_and(|word| word.starts_with('-')),
        _ => {
            let is_this = |verb: &&Verb| verb.words.iter().zip(words).all(|(known, word)| known == word);
            let verb = VERBS.iter().find(|verb| verb.words.len() == length && is_this(verb));
            verb.is_some_and(|verb| verb.takes(arguments))
        }
    };
    if fits { Known::Reads } else { Known::NotListed }
}

/// Whether a command is one of those that are known to start nothing and to change nothing.
pub(crate) fn only_reads(words: &[Word]) -> bool {
    let texts: Vec<String> = words.iter().map(|word| word.text.clone()).collect();
    words.iter().all(|word| word.is_exact)
        && verb_length(&texts).is_some_and(|length| matches!(known(&texts, length), Known::Reads))
}

/// Whether a name or path stays in the folder: neither absolute, nor with `..`.
fn is_inside(text: &str) -> bool {
    text == "/dev/null"
        || !(text.starts_with(['/', '~', '\\'])
            || text.split('/').any(|part| part == "..")
            || text.contains(":/"))
}

/// What an option of a table takes.
#[derive(Clone, Copy)]
enum Takes {
    Nothing,
    Inside,
    Text,
    /// A value in the same word, if any.
    Attached,
}

fn option_in(table: &str, name: &str) -> Option<Takes> {
    table.split_whitespace().find_map(|entry| {
        let rest = entry.strip_prefix(name)?;
        match rest {
            "" => Some(Takes::Nothing),
            "=" => Some(Takes::Inside),
            "=*" => Some(Takes::Text),
            "=?" => Some(Takes::Attached),
            _ => None,
        }
    })
}

impl Verb {
    fn takes(&self, arguments: &[String]) -> bool {
        let mut rest = arguments.iter();
        let mut has_pattern = self.operands != Pattern;
        while let Some(word) = rest.next() {
            if word == "--" {
                return match self.operands {
                    ForProgram => true,
                    // What follows are paths, or options of another table: `clippy -- -D warnings`.
                    _ if self.words[0] == "cargo" => self.takes(rest.as_slice()),
                    Nothing => rest.next().is_none(),
                    _ => {
                        let skip = usize::from(!has_pattern);
                        rest.skip(skip).all(|word| is_inside(word))
                    }
                };
            }
            let fits = if word.starts_with("--") {
                match word.split_once('=') {
                    Some((name, value)) => match option_in(self.options, name) {
                        Some(Takes::Inside | Takes::Attached) => is_inside(value),
                        Some(Takes::Text) => true,
                        Some(Takes::Nothing) | None => false,
                    },
                    None => self.value_follows(word, &mut rest),
                }
            } else if word.len() > 1 && word.starts_with('-') {
                // `-e` has the pattern, in a cluster too.
                has_pattern |= word.contains('e');
                self.cluster(word, &mut rest)
            } else if !has_pattern {
                has_pattern = true;
                true
            } else {
                match self.operands {
                    Nothing => false,
                    Inside | Pattern | ForProgram => is_inside(word),
                }
            };
            has_pattern |= word.starts_with("--regexp") || word == "--files";
            if !fits {
                return false;
            }
        }
        true
    }

    /// An option whose value, if it wants one, is the next word.
    fn value_follows<'a>(&self, option: &str, rest: &mut impl Iterator<Item = &'a String>) -> bool {
        // A program that reads this in another way must not find an option there.
        let mut value = || rest.next().filter(|value| !value.starts_with('-'));
        match option_in(self.options, option) {
            Some(Takes::Nothing | Takes::Attached) => true,
            Some(Takes::Inside) => value().is_some_and(|value| is_inside(value)),
            Some(Takes::Text) => value().is_some(),
            None => false,
        }
    }

    /// Short options in one word.
    fn cluster<'a>(&self, word: &str, rest: &mut impl Iterator<Item = &'a String>) -> bool {
        if option_in(self.options, "-#").is_some() && word[1..].bytes().all(|byte| byte.is_ascii_digit()) {
            return true;
        }
        let letters = &word[1..];
        for (at, letter) in letters.char_indices() {
            let value = &letters[at + letter.len_utf8()..];
            let takes = option_in(self.options, &format!("-{letter}"));
            match takes {
                Some(Takes::Nothing) => {}
                Some(Takes::Attached) => return is_inside(value),
                Some(Takes::Inside | Takes::Text) if value.is_empty() => {
                    return self.value_follows(&format!("-{letter}"), rest);
                }
                Some(Takes::Inside) => return is_inside(value),
                Some(Takes::Text) => return true,
                None => return false,
            }
        }
        true
    }
}

fn find_reads(arguments: &[String]) -> bool {
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let fits = match word.as_str() {
            "(" | ")" | "!" | "," => true,
            word if word.starts_with('-') => match option_in(FIND, word) {
                Some(Takes::Nothing | Takes::Attached) => true,
                Some(Takes::Inside) => rest.next().is_some_and(|value| is_inside(value)),
                Some(Takes::Text) => rest.next().is_some(),
                None => false,
            },
            word => is_inside(word),
        };
        if !fits {
            return false;
        }
    }
    true
}
