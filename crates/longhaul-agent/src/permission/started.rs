//! What a command line would start: the commands in it, and those that its programs would start in turn (`env`, `sudo`,
//! `xargs`, `sh -c`, `find -exec` …), as far as that can be known from the words.

use super::command::{Line, Simple, Word};
use super::{git, sed};

/// Commands that a line would start, and what remains unknown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Started {
    /// Programs with their arguments. The name of the program is exact.
    pub(crate) commands: Vec<Vec<Word>>,
    /// Why more may be started than is listed.
    pub(crate) doubt: Option<String>,
}

/// A program that runs the command in its arguments.
struct Launcher {
    name: &'static str,
    /// Options without a value, as they are written; a short one stands for itself in a cluster.
    flags: &'static [&'static str],
    /// Options with a value.
    valued: &'static [&'static str],
    /// Words before the command.
    operands: usize,
    /// Whether it adds words that are not known.
    adds_words: bool,
}

const fn launcher(
    name: &'static str,
    flags: &'static [&'static str],
    valued: &'static [&'static str],
    operands: usize,
) -> Launcher {
    Launcher { name, flags, valued, operands, adds_words: false }
}

const SUDO: &[&str] =
    &["-A", "-b", "-E", "-H", "-k", "-K", "-n", "-P", "-S", "-V", "--preserve-env", "--non-interactive"];

const LAUNCHERS: [Launcher; 22] = [
    launcher(
        "sudo",
        SUDO,
        &["-u", "-g", "-p", "-C", "-r", "-t", "-T", "-U", "-D", "-R", "--user", "--group"],
        0,
    ),
    launcher("doas", &["-n", "-L"], &["-u", "-C"], 0),
    launcher(
        "env",
        &["-i", "-0", "-v", "-", "--ignore-environment", "--null"],
        &["-u", "-C", "--unset", "--chdir"],
        0,
    ),
    launcher("nohup", &[], &[], 0),
    launcher("setsid", &["-c", "-f", "-w", "--ctty", "--fork", "--wait"], &[], 0),
    launcher("nice", &[], &["-n", "--adjustment"], 0),
    launcher("ionice", &["-t"], &["-c", "-n", "--class", "--classdata"], 0),
    launcher("chrt", &["-a", "-b", "-f", "-i", "-o", "-r"], &[], 1),
    launcher("taskset", &["-a", "-c"], &[], 1),
    // The keyword is part of the grammar; this is the program.
    launcher(
        "time",
        &["-p", "-v", "-a", "--verbose", "--portability"],
        &["-f", "-o", "--format", "--output"],
        0,
    ),
    launcher(
        "timeout",
        &["-f", "-p", "-v", "--foreground", "--preserve-status", "--verbose"],
        &["-s", "-k", "--signal", "--kill-after"],
        1,
    ),
    launcher("stdbuf", &[], &["-i", "-o", "-e", "--input", "--output", "--error"], 0),
    launcher("command", &["-p"], &[], 0),
    launcher("builtin", &[], &[], 0),
    launcher("exec", &["-c", "-l"], &["-a"], 0),
    launcher("busybox", &[], &[], 0),
    launcher("toybox", &[], &[], 0),
    launcher("chroot", &[], &[], 1),
    launcher(
        "strace",
        &["-f", "-ff", "-c", "-q", "-v", "-y", "-t", "-tt", "-T"],
        &["-e", "-o", "-s", "-P"],
        0,
    ),
    launcher("unbuffer", &["-p"], &[], 0),
    launcher("catchsegv", &[], &[], 0),
    Launcher {
        name: "xargs",
        flags: &["-0", "-r", "-t", "-x", "-o", "--null", "--no-run-if-empty", "--verbose", "--exit"],
        valued: &[
            "-I",
            "-n",
            "-P",
            "-d",
            "-L",
            "-s",
            "-a",
            "-E",
            "--max-args",
            "--max-procs",
            "--delimiter",
            "--arg-file",
        ],
        operands: 0,
        adds_words: true,
    },
];

/// Shells, which take commands as text.
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash"];

/// Programs that take commands as text in ways that are not followed here.
const TAKE_COMMANDS: [&str; 62] = [
    "compgen",
    "compopt",
    "fc",
    "mapfile",
    "readarray",
    "let",
    "getopts",
    "valgrind",
    "perf",
    "gdb",
    "lldb",
    "rlwrap",
    "hyperfine",
    "numactl",
    "setarch",
    "setpriv",
    "prlimit",
    "firejail",
    "bwrap",
    "fakeroot",
    "proot",
    "pkexec",
    "gosu",
    "xvfb-run",
    "caffeinate",
    "npx",
    "uvx",
    "start-stop-daemon",
    "direnv",
    "nix",
    "nix-shell",
    "sg",
    "run0",
    "vim",
    "fish",
    "csh",
    "tcsh",
    "pwsh",
    "parallel",
    "ssh",
    "su",
    "runuser",
    "watch",
    "script",
    "expect",
    "tmux",
    "screen",
    "at",
    "batch",
    "entr",
    "socat",
    "flock",
    "systemd-run",
    "nsenter",
    "unshare",
    "alias",
    "enable",
    "hash",
    "complete",
    "bind",
    "coproc",
    "ed",
];

/// Interpreters, and the options whose value is a program. `-` and no argument at all are one that is read from stdin.
const INTERPRETERS: [(&str, &[&str]); 10] = [
    ("python", &["-c"]),
    ("perl", &["-e", "-E", "-n", "-p", "-i", "-M", "-m", "-d"]),
    ("ruby", &["-e", "-n", "-p"]),
    ("node", &["-e", "-p", "--eval", "--print", "--import", "--loader", "--experimental-loader"]),
    ("bun", &["-e", "-p", "--eval", "--print"]),
    ("deno", &["eval"]),
    ("php", &["-r", "-B", "-R", "-E"]),
    ("lua", &["-e"]),
    ("osascript", &["-e"]),
    ("Rscript", &["-e"]),
];

/// Variables that change which program a name means, or what a program reads first. A `*` stands for any rest.
const RISKY_VARIABLES: [&str; 12] = [
    "PATH",
    "IFS",
    "ENV",
    "BASH_ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PROMPT_COMMAND",
    "PS4",
    "LD_*",
    "DYLD_*",
    "GIT_*",
    "BASH_FUNC*",
];

/// Levels of programs that start programs.
const DEEPEST: usize = 16;

impl Started {
    /// What a line would start.
    pub(crate) fn by(line: &Line) -> Self {
        let mut started = Self::default();
        started.line(line, 0);
        started
    }

    fn line(&mut self, line: &Line, depth: usize) {
        if let Some(reason) = line.opaque {
            self.doubt(reason);
        }
        if depth > DEEPEST {
            return self.doubt("programs start programs too many times");
        }
        for simple in &line.commands {
            self.simple(simple, depth);
        }
    }

    fn doubt(&mut self, reason: impl Into<String>) {
        self.doubt.get_or_insert_with(|| reason.into());
    }

    fn simple(&mut self, simple: &Simple, depth: usize) {
        for (name, value) in &simple.assignments {
            self.variable(name);
            if name.contains('[') || may_substitute(value) {
                self.doubt("a value that the shell may evaluate");
            }
        }
        self.words(&simple.words, depth);
    }

    fn variable(&mut self, name: &str) {
        let is_risky = RISKY_VARIABLES.iter().any(|risky| match risky.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == *risky,
        });
        if is_risky {
            self.doubt(format!("the variable {name} changes what programs do"));
        }
    }

    /// A command, and what it starts in turn.
    fn words(&mut self, words: &[Word], depth: usize) {
        let Some((program, arguments)) = words.split_first() else { return };
        if depth > DEEPEST {
            return self.doubt("programs start programs too many times");
        }
        if !program.is_exact {
            return self.doubt("the shell fills in the name of a program");
        }
        let name = name_of(&program.text).to_owned();
        if name.is_empty() || name.starts_with('-') {
            return self.doubt("a word without a program");
        }
        // Git has its verbs as programs too.
        if let Some(verb) = name.strip_prefix("git-") {
            let words = [Word::exact("git"), Word::exact(verb)].into_iter().chain(arguments.iter().cloned());
            return self.words(&words.collect::<Vec<_>>(), depth + 1);
        }
        let own = std::iter::once(Word::exact(name.as_str())).chain(arguments.iter().cloned());
        self.commands.push(own.collect());
        if let Some(launcher) = LAUNCHERS.iter().find(|launcher| launcher.name == name) {
            return self.launched(launcher, arguments, depth);
        }
        if SHELLS.contains(&name.as_str()) {
            return self.shell(arguments, depth);
        }
        if TAKE_COMMANDS.contains(&name.as_str()) {
            return self.doubt(format!("{name} takes commands"));
        }
        match name.as_str() {
            "eval" => self.text(arguments, depth),
            "trap" => self.text(arguments.get(..1).unwrap_or_default(), depth),
            "source" | "." => {
                let is_shown =
                    |word: &Word| word.is_exact && !word.text.starts_with('-') && !is_stream(&word.text);
                if !arguments.first().is_some_and(is_shown) {
                    self.doubt("the shell reads commands that are not shown");
                }
            }
            "export" | "declare" | "typeset" | "local" | "readonly" | "unset" | "read" => {
                for argument in arguments {
                    self.variable(argument.text.split(['=', '+']).next().unwrap_or_default());
                    if !argument.is_exact && !argument.text.contains('=') {
                        self.doubt("the shell fills in the name of a variable");
                    }
                    if argument.text.contains('[') || may_substitute(argument) {
                        self.doubt("a value that the shell may evaluate");
                    }
                }
            }
            "test" | "[" | "[[" | "printf" => {
                if evaluates(&name, arguments) {
                    self.doubt(format!("{name} may evaluate its arguments"));
                }
            }
            "find" => self.found(arguments, depth),
            "fd" | "fdfind" => {
                let is_run = |word: &Word| matches!(&*word.text, "-x" | "-X" | "--exec" | "--exec-batch");
                if let Some(at) = arguments.iter().position(is_run) {
                    self.words(&filled_in(&arguments[at + 1..], "{"), depth + 1);
                } else if arguments.iter().any(|word| word.text.starts_with("--exec")) {
                    self.doubt("fd takes commands");
                }
            }
            "awk" | "gawk" | "mawk" | "nawk" => {
                let runs = |word: &Word| word.text.contains("system") || word.text.contains(['|', '@']);
                if arguments.iter().any(|word| runs(word) || !word.is_exact) {
                    self.doubt(format!("{name} may run commands"));
                }
            }
            "sed" | "gsed" => {
                if !sed::only_edits(arguments) {
                    self.doubt("sed may run commands");
                }
            }
            "git" => {
                if let Some(reason) = git::doubt(arguments) {
                    self.doubt(reason);
                }
            }
            _ => self.interpreter(&name, arguments),
        }
    }

    /// The command in the arguments of a program that runs it.
    fn launched(&mut self, launcher: &Launcher, arguments: &[Word], depth: usize) {
        // The sign that xargs puts its lines in the place of.
        let mut mark = None;
        let mut rest = arguments;
        // `command -v` says where a program is.
        if launcher.name == "command" && rest.first().is_some_and(|word| matches!(&*word.text, "-v" | "-V")) {
            return;
        }
        while let Some((first, after)) = rest.split_first() {
            let text = first.text.as_str();
            if !first.is_exact {
                return self.doubt(format!("the shell fills in the arguments of {}", launcher.name));
            }
            if text == "--" {
                rest = after;
                break;
            }
            if !text.starts_with('-') || (text == "-" && launcher.name != "env") {
                break;
            }
            if let Some(sign) = text.strip_prefix("-I").filter(|_| launcher.adds_words) {
                let next = after.first().map(|word| word.text.as_str());
                mark = Some(if sign.is_empty() { next.unwrap_or_default() } else { sign }.to_owned());
            }
            let long = text.split_once('=').map(|(name, _)| name).filter(|name| name.starts_with("--"));
            if launcher.flags.contains(&text)
                || long.is_some_and(|name| launcher.valued.contains(&name) || launcher.flags.contains(&name))
                || (launcher.name == "nice" && text[1..].bytes().all(|byte| byte.is_ascii_digit()))
            {
                rest = after;
            } else if launcher.valued.contains(&text) {
                rest = after.get(1..).unwrap_or_default();
            } else {
                // A short option with its value in one word, or several flags.
                let is_valued = |option: &&&str| option.len() == 2 && text.starts_with(**option);
                let is_cluster =
                    text[1..].chars().all(|c| launcher.flags.contains(&format!("-{c}").as_str()));
                if text.starts_with("--")
                    || !(launcher.valued.iter().any(|option| is_valued(&option)) || is_cluster)
                {
                    return self.doubt(format!("{} with an option that is not known: {text}", launcher.name));
                }
                rest = after;
            }
        }
        rest = rest.get(launcher.operands..).unwrap_or_default();
        if matches!(launcher.name, "env" | "sudo" | "doas") {
            while let Some((first, after)) = rest.split_first().filter(|(word, _)| word.text.contains('=')) {
                self.variable(first.text.split('=').next().unwrap_or_default());
                rest = after;
            }
        }
        let mut command = rest.to_vec();
        if launcher.adds_words && !command.is_empty() {
            if let Some(mark) = mark {
                command = filled_in(&command, &mark);
            }
            command.push(Word { text: String::new(), is_exact: false });
        }
        self.words(&command, depth + 1);
    }

    fn shell(&mut self, arguments: &[Word], depth: usize) {
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            let text = word.text.as_str();
            if !word.is_exact {
                return self.doubt("the shell fills in what another shell runs");
            }
            if !text.starts_with(['-', '+']) || text == "-" {
                // A script runs what it wants, as any program does.
                if is_stream(text) {
                    return self.doubt("a shell reads commands that are not shown");
                }
                return;
            }
            if !text.starts_with("--") && text.contains('c') {
                let command = rest.next().filter(|word| word.is_exact && !word.text.starts_with('-'));
                return match command {
                    Some(command) => self.line(&Line::read(&command.text), depth + 1),
                    None => self.doubt("the shell fills in what another shell runs"),
                };
            }
            if !matches!(
                text,
                "-e" | "-x" | "-u" | "-ex" | "-eu" | "-eux" | "-l" | "--login" | "--norc" | "--version"
            ) {
                return self.doubt(format!("a shell with an option that is not known: {text}"));
            }
        }
        if !arguments.iter().any(|word| word.text == "--version") {
            self.doubt("a shell reads commands that are not shown");
        }
    }

    /// Words that are joined and read as a command.
    fn text(&mut self, arguments: &[Word], depth: usize) {
        if arguments.iter().any(|word| !word.is_exact) {
            return self.doubt("the shell fills in a command");
        }
        let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
        self.line(&Line::read(&texts.join(" ")), depth + 1);
    }

    fn found(&mut self, arguments: &[Word], depth: usize) {
        if arguments.iter().any(|word| !word.is_exact && word.text.is_empty()) {
            self.doubt("the shell fills in what find does");
        }
        let mut rest = arguments;
        while let Some(at) =
            rest.iter().position(|word| matches!(&*word.text, "-exec" | "-execdir" | "-ok" | "-okdir"))
        {
            let command = &rest[at + 1..];
            let end = command.iter().position(|word| matches!(&*word.text, ";" | "+"));
            let end = end.unwrap_or(command.len());
            self.words(&filled_in(&command[..end], "{}"), depth + 1);
            rest = &command[end..];
        }
    }

    fn interpreter(&mut self, name: &str, arguments: &[Word]) {
        let base = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let Some((_, options)) = INTERPRETERS.iter().find(|(known, _)| *known == base) else { return };
        // Options come before the file; those behind it are the program's own. A word behind an option may be its value.
        let mut follows_option = false;
        for word in arguments {
            if !word.is_exact {
                return self.doubt(format!("the shell fills in the arguments of {base}"));
            }
            let text = word.text.as_str();
            let is_code = |option: &&str| match option.strip_prefix('-').filter(|letter| letter.len() == 1) {
                Some(letter) => text.starts_with('-') && !text.starts_with("--") && text.contains(letter),
                None => text.starts_with(option),
            };
            if options.iter().any(is_code) || is_stream(text) {
                return self.doubt(format!("{base} runs code that is part of the command"));
            }
            if !text.starts_with('-') && !follows_option {
                return;
            }
            follows_option = text.starts_with('-');
        }
        let has_file = arguments.iter().any(|word| {
            !word.text.starts_with('-') || matches!(&*word.text, "--version" | "-V" | "-v" | "--help")
        });
        if !has_file {
            self.doubt(format!("{base} reads code that is not shown"));
        }
    }
}

/// Whether a path is one of a stream, whose content is not in the command.
fn is_stream(path: &str) -> bool {
    path == "-" || path.starts_with("/dev/") || path.starts_with("/proc/")
}

/// Words in which a program puts something in the place of a sign.
fn filled_in(words: &[Word], sign: &str) -> Vec<Word> {
    let is_filled = |word: &Word| !sign.is_empty() && word.text.contains(sign);
    let filled = |word: &Word| Word { is_exact: word.is_exact && !is_filled(word), ..word.clone() };
    words.iter().map(filled).collect()
}

/// Whether a text has a substitution in it that was quoted: in a subscript the shell makes it all the same.
fn may_substitute(word: &Word) -> bool {
    word.text.contains("$(") || word.text.contains('`')
}

/// Whether a builtin may take an argument for an arithmetic expression, in which a subscript may run commands.
fn evaluates(name: &str, arguments: &[Word]) -> bool {
    let is_number = |word: Option<&Word>| {
        word.is_some_and(|word| {
            word.is_exact && word.text.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit())
        })
    };
    let names = |word: Option<&Word>| {
        word.is_some_and(|word| word.is_exact && word.text.chars().all(|c| c.is_alphanumeric() || c == '_'))
    };
    let compares = |text: &str| matches!(text, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge");
    arguments.iter().enumerate().any(|(at, word)| {
        let (before, after) = (at.checked_sub(1).and_then(|at| arguments.get(at)), arguments.get(at + 1));
        match name {
            "printf" => {
                at == 0
                    && (!word.is_exact && word.text.is_empty()
                        || word.text.starts_with("-v") && !(word.text == "-v" && names(after)))
            }
            _ if matches!(&*word.text, "-v" | "-R") => !names(after),
            "[[" => compares(&word.text) && !(is_number(before) && is_number(after)),
            _ => may_substitute(word),
        }
    })
}

/// The name of a program, without its folder. Some shells negate by a `!` at the start of the word.
fn name_of(program: &str) -> &str {
    program.trim_start_matches('!').rsplit('/').next().unwrap_or_default()
}
