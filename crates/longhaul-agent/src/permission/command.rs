//! Takes a shell command apart: simple commands with their words, assignments and redirections, also those inside
//! substitutions, groups and loops.
//!
//! The grammar is the part of bash that dash reads in the same way, or that only makes a word unknown. Everything else
//! (`case`, functions, arithmetic, control characters) ends the parse: such a line is [opaque](Line::opaque), and whoever
//! judges it must ask. A command counts as read only if no character of it was left out.

use std::iter::Peekable;
use std::vec::IntoIter;

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// The characters that are known, without quotes.
    pub(crate) text: String,
    /// False if the shell puts something else in its place: a variable, a substitution, names that fit a pattern.
    pub(crate) is_exact: bool,
}

/// A redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirection {
    /// The file, the descriptor after `&`, or the delimiter of a here-document.
    pub(crate) target: Word,
    pub(crate) kind: RedirectionKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RedirectionKind {
    Reads,
    Writes,
    /// Another descriptor of the same command.
    Duplicates,
    /// Text of the command itself.
    Here,
}

/// A program or builtin with its words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Simple {
    /// `NAME=value` before the first word.
    pub(crate) assignments: Vec<(String, Word)>,
    pub(crate) words: Vec<Word>,
    pub(crate) redirections: Vec<Redirection>,
}

/// A command line, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Line {
    /// Every command that is in it, wherever it stands.
    pub(crate) commands: Vec<Simple>,
    /// Nothing but simple commands of exact words, one after the other or joined by `&&`, `||`, `;` and `|`.
    pub(crate) is_plain: bool,
    /// Why the rest could not be taken apart.
    pub(crate) opaque: Option<&'static str>,
}

impl Word {
    pub(crate) fn exact(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_exact: true }
    }
}

impl Line {
    pub(crate) fn read(command: &str) -> Self {
        Self::read_at(command, 0)
    }

    /// A line that stands inside another one, so many levels deep.
    fn read_at(command: &str, depth: usize) -> Self {
        let characters: Vec<char> = command.chars().collect();
        let mut parser = Parser {
            rest: characters.into_iter().peekable(),
            line: Self { is_plain: true, ..Self::default() },
            here: Vec::new(),
            may_have_lists: command.contains(',') || command.contains(".."),
            depth,
        };
        if let Err(problem) = parser.list(None) {
            parser.line.opaque = Some(problem);
            parser.line.is_plain = false;
        }
        let is = |word: Option<&Word>, text: &str| word.is_some_and(|word| word.text == text);
        let is_open = |simple: &Simple| is(simple.words.first(), "[[") && !is(simple.words.last(), "]]");
        if parser.line.commands.iter().any(is_open) {
            // What stands in it is no command, and may evaluate one.
            parser.line.opaque.get_or_insert("`[[` with an operator in it");
            parser.line.is_plain = false;
        }
        parser.line
    }
}

type Parsed<T> = Result<T, &'static str>;

/// Levels of substitutions in one another.
const DEEPEST: usize = 16;

struct Parser {
    rest: Peekable<IntoIter<char>>,
    line: Line,
    /// Here-documents whose text begins after the next line break.
    here: Vec<HereDocument>,
    /// Somewhere in the command is what makes a list of `{…}`.
    may_have_lists: bool,
    depth: usize,
}

struct HereDocument {
    delimiter: String,
    strips_tabs: bool,
    is_quoted: bool,
}

/// Where a word ends.
fn ends_word(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')')
}

/// Words that are read before a command without being part of it.
const OPENING: [&str; 13] =
    ["if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "!", "time"];

impl Parser {
    /// Commands up to this character, or to the end.
    fn list(&mut self, until: Option<char>) -> Parsed<()> {
        let mut command = Simple::default();
        // A list of `for` has words that are no commands.
        let mut is_list = false;
        let mut ended_by_operator = false;
        // `time` takes options before the command.
        let mut is_timed = false;
        loop {
            while self.rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
            let at_start = command.words.is_empty() && !is_list;
            let Some(c) = self.rest.peek().copied() else {
                if until.is_some() {
                    return Err("a parenthesis is not closed");
                }
                break;
            };
            match c {
                '#' => while self.rest.next_if(|c| *c != '\n').is_some() {},
                '\n' | ';' | '&' | '|' => {
                    self.rest.next();
                    let is_doubled = matches!(c, '&' | '|') && self.rest.next_if_eq(&c).is_some();
                    if c == ';' && self.rest.peek() == Some(&';') {
                        return Err("`;;` is part of a `case`");
                    }
                    // A job in the background, `&>` and `|&`: shells differ in how they read these.
                    let is_other = c == '&' && !is_doubled
                        || c == '|' && !is_doubled && self.rest.next_if_eq(&'&').is_some();
                    let is_empty = command == Simple::default();
                    // A line break may stand anywhere between commands; operators may not.
                    self.line.is_plain &= !is_other && (!is_empty || c == '\n');
                    ended_by_operator = is_doubled || c == '|' || (ended_by_operator && is_empty);
                    self.end(&mut command, &mut is_list)?;
                    if c == '\n' {
                        self.here_documents()?;
                    }
                }
                ')' if until == Some(')') => {
                    self.rest.next();
                    break;
                }
                ')' => return Err("a parenthesis is closed that was not opened"),
                '(' if at_start && command == Simple::default() => {
                    self.rest.next();
                    if self.rest.peek() == Some(&'(') {
                        return Err("arithmetic");
                    }
                    self.line.is_plain = false;
                    self.nested(')')?;
                }
                '(' => return Err("a function or pattern with parentheses"),
                '<' | '>' => {
                    // `<(…)` and `>(…)` are words.
                    self.rest.next();
                    if self.rest.next_if_eq(&'(').is_some() {
                        self.line.is_plain = false;
                        self.nested(')')?;
                        command.words.push(Word { text: String::new(), is_exact: false });
                    } else {
                        command.redirections.push(self.redirection(c)?);
                    }
                }
                _ => {
                    let Some((word, was_quoted)) = self.word()? else { continue };
                    if let Some(operator @ ('<' | '>')) = self.rest.peek().copied() {
                        if !was_quoted && word.text.chars().all(|c| c.is_ascii_digit()) {
                            // The number of a descriptor.
                            self.rest.next();
                            command.redirections.push(self.redirection(operator)?);
                            continue;
                        }
                        // `{name}>` is the name of a descriptor; other words are told apart by a space.
                        self.line.is_plain = false;
                    }
                    self.line.is_plain &= word.is_exact;
                    ended_by_operator = false;
                    let follows_time = std::mem::take(&mut is_timed) && matches!(&*word.text, "-p" | "--");
                    if at_start && !was_quoted && (follows_time || self.opens(&word.text, &mut is_list)?) {
                        self.line.is_plain = false;
                        is_timed = follows_time || word.text == "time";
                        continue;
                    }
                    match (at_start, assignment(&word)) {
                        (true, Some(assignment)) => {
                            self.line.is_plain = false;
                            command.assignments.push(assignment);
                        }
                        _ => command.words.push(word),
                    }
                }
            }
        }
        self.end(&mut command, &mut is_list)?;
        self.line.is_plain &= !ended_by_operator && self.here.is_empty();
        Ok(())
    }

    /// Whether a word at the start of a command belongs to the grammar.
    fn opens(&self, word: &str, is_list: &mut bool) -> Parsed<bool> {
        match word {
            "case" | "function" | "coproc" => Err("a `case`, a function or a coprocess"),
            "for" | "select" => {
                *is_list = true;
                Ok(true)
            }
            _ => Ok(OPENING.contains(&word)),
        }
    }

    fn end(&mut self, command: &mut Simple, is_list: &mut bool) -> Parsed<()> {
        let ended = std::mem::take(command);
        if std::mem::take(is_list) {
            // `for x do a` needs no list, and has a command in its place.
            if ended.words.get(1).is_some_and(|word| word.text != "in") {
                return Err("a loop without a list");
            }
            // The loop sets its variable.
            let assignments =
                ended.words.into_iter().take(1).map(|name| (name.text, Word::exact(""))).collect();
            self.line.commands.push(Simple { assignments, ..Simple::default() });
        } else if ended != Simple::default() {
            self.line.is_plain &=
                !ended.words.is_empty() && ended.redirections.iter().all(Redirection::is_harmless);
            self.line.commands.push(ended);
        }
        Ok(())
    }

    /// The commands up to the end of a substitution or group.
    fn nested(&mut self, until: char) -> Parsed<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("substitutions stand too deep in one another");
        }
        let read = self.list(Some(until));
        self.depth -= 1;
        read
    }

    /// A command in a text of its own, such as between back quotes.
    fn inner(&mut self, text: &str) -> Parsed<()> {
        if self.depth >= DEEPEST {
            return Err("substitutions stand too deep in one another");
        }
        let inner = Line::read_at(text, self.depth + 1);
        self.line.commands.extend(inner.commands);
        inner.opaque.map_or(Ok(()), Err)
    }

    /// A redirection, from the first character of its operator on.
    fn redirection(&mut self, first: char) -> Parsed<Redirection> {
        let is_reading = first == '<';
        let second =
            self.rest.next_if(|c| matches!((is_reading, c), (_, '&' | '>') | (true, '<') | (false, '|')));
        let kind = match (is_reading, second) {
            (_, Some('&')) => RedirectionKind::Duplicates,
            (true, Some('<')) => RedirectionKind::Here,
            (true, None) => RedirectionKind::Reads,
            _ => RedirectionKind::Writes,
        };
        let is_text = kind == RedirectionKind::Here && self.rest.next_if_eq(&'<').is_some();
        let strips_tabs = kind == RedirectionKind::Here && !is_text && self.rest.next_if_eq(&'-').is_some();
        while self.rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        let (target, is_quoted) = self.word()?.ok_or("a redirection leads nowhere")?;
        // Shells differ in whether `>&2>x` has one redirection more or a bad target.
        self.line.is_plain &= !matches!(self.rest.peek(), Some('<' | '>'));
        if kind == RedirectionKind::Here && !is_text {
            self.here.push(HereDocument { delimiter: target.text.clone(), strips_tabs, is_quoted });
        }
        // `>&name` is a file in bash, and an error elsewhere.
        let is_descriptor = target.text.chars().all(|c| c.is_ascii_digit() || c == '-');
        if kind == RedirectionKind::Duplicates && !is_descriptor && !is_reading {
            self.line.is_plain = false;
            return Ok(Redirection { target, kind: RedirectionKind::Writes });
        }
        Ok(Redirection { target, kind })
    }

    /// The texts of here-documents, behind the line that names them.
    fn here_documents(&mut self) -> Parsed<()> {
        for HereDocument { delimiter, strips_tabs, is_quoted } in std::mem::take(&mut self.here) {
            let mut text = String::new();
            loop {
                let mut line: String = std::iter::from_fn(|| self.rest.next_if(|c| *c != '\n')).collect();
                let is_last = self.rest.next().is_none();
                if strips_tabs {
                    line = line.trim_start_matches('\t').to_owned();
                }
                if line == delimiter {
                    break;
                }
                text.push_str(&line);
                text.push('\n');
                if is_last {
                    return Err("a here-document does not end");
                }
            }
            if !is_quoted && ["$(", "${", "$[", "`", "\\\n"].iter().any(|sign| text.contains(sign)) {
                return Err("a here-document with substitutions");
            }
        }
        Ok(())
    }

    /// A word, and whether any of it was quoted. `None` if there is nothing but a continued line.
    fn word(&mut self) -> Parsed<Option<(Word, bool)>> {
        let mut word = Word::exact("");
        let (mut is_there, mut is_quoted) = (false, false);
        while let Some(c) = self.rest.next_if(|c| !ends_word(*c)) {
            if c == '\\' && self.rest.next_if_eq(&'\n').is_some() {
                continue;
            }
            let is_first = !std::mem::replace(&mut is_there, true);
            match c {
                '\\' => {
                    is_quoted = true;
                    word.text.push(self.rest.next().ok_or("a backslash at the end")?);
                }
                '\'' => {
                    is_quoted = true;
                    loop {
                        match self.rest.next().ok_or("a quote is not closed")? {
                            '\'' => break,
                            c => word.text.push(known(c)?),
                        }
                    }
                }
                '"' => {
                    is_quoted = true;
                    self.double_quoted(&mut word)?;
                }
                '$' => is_quoted |= self.dollar(&mut word, false)?,
                '`' => self.back_quoted(&mut word)?,
                '*' | '?' => {
                    word.is_exact = false;
                    word.text.push(c);
                }
                '[' => {
                    // Alone it is a program.
                    word.is_exact &= is_first && self.rest.peek().is_none_or(|c| ends_word(*c));
                    word.text.push(c);
                }
                '{' => {
                    word.is_exact &= !self.may_have_lists;
                    word.text.push(c);
                }
                '~' => {
                    word.is_exact &= !(is_first || word.text.ends_with(['=', ':']));
                    word.text.push(c);
                }
                c => word.text.push(known(c)?),
            }
        }
        // A pattern that is not closed is itself: the program `[[`.
        word.is_exact |= word.text == "[[";
        Ok(is_there.then_some((word, is_quoted)))
    }

    /// The rest of a text in double quotes.
    fn double_quoted(&mut self, word: &mut Word) -> Parsed<()> {
        loop {
            match self.rest.next().ok_or("a quote is not closed")? {
                '"' => return Ok(()),
                '\\' => match self.rest.next().ok_or("a quote is not closed")? {
                    '\n' => {}
                    c @ ('$' | '`' | '"' | '\\') => word.text.push(c),
                    c => word.text.extend(['\\', known(c)?]),
                },
                '$' => _ = self.dollar(word, true)?,
                '`' => self.back_quoted(word)?,
                c => word.text.push(known(c)?),
            }
        }
    }

    /// What follows a `$`. True if it was a quote.
    fn dollar(&mut self, word: &mut Word, in_quotes: bool) -> Parsed<bool> {
        match self.rest.peek().copied() {
            Some('\'') if !in_quotes => {
                self.rest.next();
                // Dash has no such quotes.
                self.line.is_plain = false;
                self.escaped(word)?;
                return Ok(true);
            }
            Some('"') if !in_quotes => {
                self.rest.next();
                self.line.is_plain = false;
                self.double_quoted(word)?;
                return Ok(true);
            }
            Some('(') => {
                self.rest.next();
                if self.rest.peek() == Some(&'(') {
                    return Err("arithmetic");
                }
                word.is_exact = false;
                self.line.is_plain = false;
                self.nested(')')?;
            }
            Some('[') => return Err("arithmetic"),
            Some('{') => {
                self.rest.next();
                let inside: String = std::iter::from_fn(|| self.rest.next_if(|c| *c != '}')).collect();
                self.rest.next().ok_or("a brace is not closed")?;
                let is_simple = |c: char| c.is_ascii_alphanumeric() || "_:-+%#./*,^?".contains(c);
                // Behind a colon an expression may stand.
                let is_plain =
                    |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit() || "-+?".contains(c));
                if inside != "@"
                    && !(inside.chars().all(is_simple) && inside.split(':').skip(1).all(is_plain))
                {
                    return Err("a variable with more than a plain expansion");
                }
                word.is_exact = false;
            }
            Some(c) if c.is_ascii_alphanumeric() || c == '_' => {
                let is_digit = c.is_ascii_digit();
                self.rest.next();
                while !is_digit && self.rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '_').is_some() {}
                word.is_exact = false;
            }
            Some('@' | '*' | '#' | '?' | '-' | '$' | '!') => {
                self.rest.next();
                word.is_exact = false;
            }
            // A dollar alone is itself.
            _ => word.text.push('$'),
        }
        Ok(false)
    }

    /// A substitution in back quotes.
    fn back_quoted(&mut self, word: &mut Word) -> Parsed<()> {
        let mut inside = String::new();
        loop {
            match self.rest.next().ok_or("a back quote is not closed")? {
                '`' => break,
                '\\' => match self.rest.next().ok_or("a back quote is not closed")? {
                    c @ ('`' | '\\' | '$') => inside.push(c),
                    c => inside.extend(['\\', c]),
                },
                c => inside.push(c),
            }
        }
        word.is_exact = false;
        self.line.is_plain = false;
        self.inner(&inside)
    }

    /// The rest of a text in `$'…'`.
    fn escaped(&mut self, word: &mut Word) -> Parsed<()> {
        const OPEN: &str = "a quote is not closed";
        loop {
            let c = match self.rest.next().ok_or(OPEN)? {
                '\'' => return Ok(()),
                '\\' => match self.rest.next().ok_or(OPEN)? {
                    'n' => '\n',
                    't' => '\t',
                    c @ ('\\' | '\'' | '"' | '?') => c,
                    'x' => self.number(16, 2, "")?,
                    'u' => self.number(16, 4, "")?,
                    'U' => self.number(16, 8, "")?,
                    c @ '0'..='7' => self.number(8, 2, &c.to_string())?,
                    _ => return Err("an escape in `$'…'` that is not known"),
                },
                c => known(c)?,
            };
            word.text.push(c);
        }
    }

    /// A character by its number, of so many more digits at most.
    fn number(&mut self, base: u32, most: usize, begun: &str) -> Parsed<char> {
        let mut digits = begun.to_owned();
        for _ in 0..most {
            digits.extend(self.rest.next_if(|c| c.is_digit(base)));
        }
        // Bytes from 128 on are parts of characters.
        let number = u32::from_str_radix(&digits, base).ok().filter(|number| *number > 0);
        let is_whole = |number: &u32| *number < 128 || (most > 2 && base == 16);
        number.filter(is_whole).and_then(char::from_u32).ok_or("an escape in `$'…'` that is not known")
    }
}

impl Redirection {
    /// Whether it neither reads nor writes a file.
    pub(crate) fn is_harmless(&self) -> bool {
        self.target.is_exact
            && match self.kind {
                RedirectionKind::Duplicates => matches!(&*self.target.text, "0" | "1" | "2"),
                RedirectionKind::Reads | RedirectionKind::Writes => self.target.text == "/dev/null",
                RedirectionKind::Here => false,
            }
    }
}

/// A character that all shells read in the same way.
fn known(c: char) -> Parsed<char> {
    let is_usual = c == '\n' || c == '\t' || (!c.is_control() && (c.is_ascii() || !c.is_whitespace()));
    if is_usual { Ok(c) } else { Err("a control character or a space that is not a plain one") }
}

/// A word as an assignment, if it is one.
fn assignment(word: &Word) -> Option<(String, Word)> {
    let (name, value) = word.text.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    // An element of an array counts too.
    let is_name = is_name && name.chars().all(|c| c.is_ascii_alphanumeric() || "_[]".contains(c));
    is_name.then(|| (name.to_owned(), Word { text: value.to_owned(), is_exact: word.is_exact }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of all commands; `?` stands for a word that is not known.
    fn words(command: &str) -> Vec<String> {
        let line = Line::read(command);
        assert_eq!(line.opaque, None, "{command}");
        let shown = |word: &Word| if word.is_exact { word.text.clone() } else { format!("?{}", word.text) };
        let shown = |simple: &Simple| simple.words.iter().map(shown).collect::<Vec<_>>().join("|");
        line.commands.iter().map(shown).collect()
    }

    #[test]
    fn words_are_what_the_shell_makes_of_them() {
        for (command, want) in [
            ("git diff", &["git|diff"][..]),
            ("git p'us'h", &["git|push"]),
            ("r''m x", &["rm|x"]),
            ("r\\m \"x y\"", &["rm|x y"]),
            ("r\\\nm x", &["rm|x"]),
            ("$'rm' $'\\x72\\155' x", &["rm|rm|x"]),
            ("!rm x", &["!rm|x"]),
            ("! rm x", &["rm|x"]),
            ("a && b || c; d | e\nf & g", &["a", "b", "c", "d", "e", "f", "g"]),
            ("echo \"a $(rm x) b\" `ls y`", &["rm|x", "ls|y", "echo|?a  b|?"]),
            ("if a; then (b; c); else { d; }; fi", &["a", "b", "c", "d"]),
            ("for x in $(ls); do rm \"$x\"; done", &["ls", "", "rm|?"]),
            ("a # b; c\nd", &["a", "d"]),
            ("a#b", &["a#b"]),
            ("X=1 Y='2 3' a Z=4", &["a|Z=4"]),
            ("a > b 2>&1 <<< c d", &["a|d"]),
            ("cat <<'E' > f\n$(rm x)\nE\nb", &["cat", "b"]),
            ("diff <(rm x) y", &["rm|x", "diff|?|y"]),
            ("echo {a,b} *.rs ~/x a~b $x ${y} \\$z", &["echo|?{a,b}|?*.rs|?~/x|a~b|?|?|$z"]),
            ("[ -f x ] && [[ -d y ]]", &["[|-f|x|]", "[[|-d|y|]]"]),
            ("find . -name '*.rs' -exec rm {} \\;", &["find|.|-name|*.rs|-exec|rm|{}|;"]),
        ] {
            assert_eq!(words(command), want, "{command:?}");
        }
    }

    #[test]
    fn what_cannot_be_taken_apart_is_said() {
        for command in [
            "case x in a) rm;; esac",
            "f() { rm x; }",
            "echo $((1+1))",
            "echo ${x@P}",
            "a 'b",
            "a \"b",
            "a `b",
            "a $(b",
            "a \\",
            "a)",
            "a\u{a0}b",
            "a\rb",
            "cat <<E\n$(rm x)\nE",
            "cat <<E\nx",
            "a >",
            "echo @(a|b)",
            "for x do rm y; done",
            &format!("{}a{}", "$(".repeat(40), ")".repeat(40)),
        ] {
            assert!(Line::read(command).opaque.is_some(), "{command:?}");
        }
    }

    #[test]
    fn a_plain_line_has_simple_commands_alone() {
        for plain in ["a b", "a 'b c' && d |\n e; f", "a 2>&1 >/dev/null", "a # b", "a\n\nb\n", "a b=c"] {
            assert!(Line::read(plain).is_plain, "{plain:?}");
        }
        for other in [
            "a &",
            "a & b",
            "a &> b",
            "a |& b",
            "a > b",
            "a >&/dev/null",
            "a < b",
            "X=1 a",
            "a $x",
            "a *",
            "a `b`",
            "(a)",
            "! a",
            "a &&",
            "; a",
            "a ;; b",
            "a || ; b",
            "> /dev/null",
            "a $'b'",
            "a{x}>/dev/null",
            "a <<< b",
            "a |\n | b",
        ] {
            assert!(!Line::read(other).is_plain, "{other:?}");
        }
    }
}
