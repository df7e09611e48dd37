//! The calls and the prints of a script, statement by statement. Values are read where they are literals, sums of
//! literals, or variables that hold such (`values`); a loop over a list of literals makes its calls once for each.
//! Small functions are read where they are called (`functions`).

mod functions;
mod values;

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::Label;
use super::tokens::{Kind, Token, tokens};
use crate::conversation::json::Json;
pub(super) use values::unescaped;

/// Calls of one script.
const CALLS: usize = 256;
/// Rounds of one loop.
const ROUNDS: usize = 64;
/// Literals and functions inside each other.
const DEPTH: usize = 24;
/// Of an expression that cannot be read, so many bytes stay as they are.
const SOURCE: usize = 2_000;
/// Work for each byte of the source, and for any source: a token costs one, a byte of a value one.
const WORK: (usize, usize) = (24, 16 << 10);

/// How a patch names a file.
const PATCHES: [&str; 4] = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Begin Patch"];

/// Functions of Node that read or change files or run a command, by their names: the tool that does the same,
/// and the names of their first arguments.
const NODE: [(&[&str], &str, &[&str]); 6] = [
    (&["readFile", "readFileSync"], "read_file", &["path"]),
    (&["writeFile", "writeFileSync", "appendFile", "appendFileSync"], "write_file", &["path", "content"]),
    (&["rm", "rmSync", "unlink", "unlinkSync"], "edit_file", &["path"]),
    (&["rename", "renameSync"], "edit_file", &["path", "to"]),
    (&["copyFile", "copyFileSync"], "write_file", &["from", "path"]),
    (&["execSync", "execFileSync", "spawnSync"], "shell", &["command"]),
];

/// What was read in a script.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) calls: Vec<(Box<str>, Json)>,
    pub(super) labels: Vec<Label>,
}

pub(super) fn read(source: &str) -> Script {
    let tokens = tokens(source);
    let (each, any) = WORK;
    let mut reader = Reader {
        source,
        functions: HashMap::new(),
        bound: HashMap::new(),
        tools: HashMap::new(),
        round: 0,
        rounds: None,
        left: source.len().saturating_mul(each) + any,
        script: Script::default(),
        unread_patches: Vec::new(),
        tokens: &tokens,
    };
    reader.find_functions();
    reader.statements(0, tokens.len(), 0);
    reader.unused_functions();
    reader.patches_elsewhere();
    reader.script
}

/// What a variable holds.
#[derive(Debug, Clone)]
enum Bound {
    One(Value),
    /// Each of these, in the rounds of a loop.
    Each(Vec<Value>),
}

/// A function of the script: the tokens of its parameters and of its body.
#[derive(Debug, Clone, Copy)]
struct Function {
    parameters: (usize, usize),
    body: (usize, usize),
    is_read: bool,
}

struct Reader<'a> {
    source: &'a str,
    tokens: &'a [Token],
    functions: HashMap<&'a str, Function>,
    bound: HashMap<&'a str, Bound>,
    /// Other names of tools.
    tools: HashMap<&'a str, &'a str>,
    /// The round of the loop that is read, and how many rounds there are, if the expression is in a loop.
    round: usize,
    rounds: Option<usize>,
    /// Work that may still be done.
    left: usize,
    script: Script,
    /// Calls of which the patch could not be read.
    unread_patches: Vec<usize>,
}

/// What is done with a part of a literal that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unread {
    /// Nothing of the literal is used.
    Refuse,
    /// It stays as it stands in the source.
    Quote,
}

impl<'a> Reader<'a> {
    fn kind(&self, at: usize) -> Option<Kind> {
        self.tokens.get(at).map(|token| token.kind)
    }

    fn text(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| &self.source[token.start..token.end])
    }

    fn name(&self, at: usize) -> Option<&'a str> {
        (self.kind(at) == Some(Kind::Name)).then(|| self.text(at))
    }

    fn is_name(&self, at: usize, name: &str) -> bool {
        self.name(at) == Some(name)
    }

    fn is_sign(&self, at: usize, sign: u8) -> bool {
        self.kind(at) == Some(Kind::Sign(sign))
    }

    fn opens(&self, at: usize, bracket: u8) -> bool {
        self.kind(at) == Some(Kind::Open(bracket))
    }

    /// `=>`, or any two signs side by side.
    fn are_signs(&self, at: usize, signs: [u8; 2]) -> bool {
        self.is_sign(at, signs[0])
            && self.is_sign(at + 1, signs[1])
            && self.tokens[at].end == self.tokens[at + 1].start
    }

    /// The token that closes a bracket.
    fn close_of(&self, open: usize) -> usize {
        self.tokens.get(open).map_or(self.tokens.len(), |token| token.other.min(self.tokens.len()))
    }

    /// The token after this one, past all of a bracket.
    fn after(&self, at: usize) -> usize {
        match self.kind(at) {
            Some(Kind::Open(_)) => self.close_of(at) + 1,
            _ => at + 1,
        }
    }

    /// True if the name before is a field of something: `x.name`.
    fn is_field(&self, at: usize) -> bool {
        at > 0 && self.is_sign(at - 1, b'.') && !(at > 1 && self.is_sign(at - 2, b'.'))
    }

    /// Takes some of the work that is left.
    fn work(&mut self, amount: usize) -> Option<()> {
        self.left = self.left.checked_sub(amount)?;
        Some(())
    }

    /// What stands between commas inside a bracket.
    fn elements(&mut self, open: usize) -> Vec<(usize, usize)> {
        let close = self.close_of(open);
        let (mut all, mut start, mut at) = (Vec::new(), open + 1, open + 1);
        while at < close && self.work(1).is_some() {
            if self.is_sign(at, b',') {
                all.push((start, at));
                start = at + 1;
            }
            at = self.after(at);
        }
        if start < close {
            all.push((start, close));
        }
        all.retain(|(start, end)| start < end);
        all
    }

    /// Looks at each token of a stretch for a call, a print, a variable or a loop.
    fn statements(&mut self, start: usize, end: usize, depth: usize) {
        let mut at = start;
        while at < end.min(self.tokens.len()) && self.work(1).is_some() {
            at = self.statement(at, depth).unwrap_or(at + 1).max(at + 1);
        }
    }

    /// Gives where to go on, if that is not the next token.
    fn statement(&mut self, at: usize, depth: usize) -> Option<usize> {
        if self.is_sign(at, b'.') {
            self.walk(at, depth);
            return None;
        }
        let name = self.name(at)?;
        if self.is_field(at) {
            self.node_function(name, at);
            return None;
        }
        match name {
            "function" => return self.body_end(self.name(at + 1)?, at),
            "for" => self.loops(at),
            "text" if self.opens(at + 1, b'(') => self.prints(at + 1),
            "tools" => self.tool(at),
            _ => {}
        }
        if self.opens(at + 1, b'(') {
            if let Some(tool) = self.tools.get(name).copied() {
                self.call(tool, at + 1);
            } else if self.functions.contains_key(name) {
                let elements = self.elements(at + 1);
                let values = elements.into_iter().map(|range| self.argument(range).map(Bound::One)).collect();
                self.run(name, values, depth);
            } else {
                self.node_function(name, at);
            }
        }
        if self.are_signs(at + 1, [b'+', b'+']) {
            self.bound.remove(name);
        }
        self.assigns(name, at);
        self.is_sign(at + 1, b'=').then(|| self.body_end(name, at)).flatten()
    }

    /// The end of the body of a function that begins soon after this token: it is read where it is called.
    fn body_end(&self, name: &str, at: usize) -> Option<usize> {
        let function = self.functions.get(name)?;
        let (start, end) = function.body;
        (start > at && function.parameters.0 <= at + 6).then_some(end)
    }

    /// An argument of a function of the script, as a value.
    fn argument(&mut self, (start, end): (usize, usize)) -> Option<Value> {
        self.expression(start, end, 0, Unread::Refuse)
    }

    /// `name = literal`, `name += literal`, `name = tools.tool`.
    fn assigns(&mut self, name: &'a str, at: usize) {
        let adds = self.are_signs(at + 1, [b'+', b'=']);
        let value = if adds { at + 3 } else { at + 2 };
        let is_plain = self.is_sign(at + 1, b'=')
            && !self.are_signs(at + 1, [b'=', b'='])
            && !self.are_signs(at + 1, [b'=', b'>']);
        if !adds && !is_plain {
            return;
        }
        if self.is_name(value, "tools")
            && let Some((tool, next)) = self.tool_named(value)
            && !self.opens(next, b'(')
        {
            self.tools.insert(name, tool);
            return;
        }
        match (self.literal(value), adds) {
            (Some(new), false) => _ = self.bound.insert(name, Bound::One(new)),
            (Some(Value::String(new)), true) => match self.bound.get_mut(name) {
                Some(Bound::One(Value::String(old))) => old.push_str(&new),
                _ => _ = self.bound.remove(name),
            },
            _ => _ = self.bound.remove(name),
        }
    }

    /// A literal that is all of an expression.
    fn literal(&mut self, start: usize) -> Option<Value> {
        let mut end = start;
        let mut last = start;
        loop {
            self.work(1)?;
            let is_end = match self.kind(end) {
                None | Some(Kind::Close) => true,
                Some(Kind::Sign(sign)) => matches!(sign, b';' | b','),
                // On a new line the next statement begins, unless the one before goes on.
                Some(Kind::Name | Kind::Open(b'{')) if end > start => {
                    let between = self.source.get(self.tokens[last].end..self.tokens[end].start);
                    between.is_some_and(|text| text.contains('\n'))
                        && !matches!(self.kind(last), Some(Kind::Sign(_)))
                }
                _ => false,
            };
            if is_end {
                break;
            }
            // Far from a literal.
            if matches!(self.name(end), Some("await" | "new" | "async" | "function" | "tools")) {
                return None;
            }
            let next = self.after(end);
            last = (next - 1).min(self.tokens.len() - 1);
            end = next;
        }
        self.expression(start, end.min(self.tokens.len()), 0, Unread::Refuse)
    }

    /// `for (const x of list)`.
    fn loops(&mut self, at: usize) {
        let open = at + 1 + usize::from(self.is_name(at + 1, "await"));
        if !self.opens(open, b'(') {
            return;
        }
        let declares = matches!(self.name(open + 1), Some("const" | "let" | "var"));
        let pattern = open + 1 + usize::from(declares);
        let of = self.after(pattern);
        if !self.is_name(of, "of") {
            return;
        }
        let list = self.expression(of + 1, self.close_of(open), 0, Unread::Refuse);
        if let Some(Value::Array(values)) = list {
            self.bind(pattern, Bound::Each(values));
        } else if let Some(name) = self.name(pattern) {
            self.bound.remove(name);
        }
    }

    /// `list.map(x => …)`.
    fn walk(&mut self, at: usize, depth: usize) {
        let walks = matches!(self.name(at + 1), Some("map" | "flatMap" | "forEach"));
        if !walks || !self.opens(at + 2, b'(') || at == 0 {
            return;
        }
        let list = match self.kind(at - 1) {
            Some(Kind::Name) if !self.is_field(at - 1) => at - 1,
            Some(Kind::Close) if self.tokens.get(self.tokens[at - 1].other).is_some() => {
                self.tokens[at - 1].other
            }
            _ => return,
        };
        // `Object.entries(list).map`
        let list = if self.opens(list, b'(') && list >= 3 { list - 3 } else { list };
        let Some(Value::Array(values)) = self.expression(list, at, 0, Unread::Refuse) else { return };
        let callback = at + 3 + usize::from(self.is_name(at + 3, "async"));
        if let Some(name) = self.name(callback)
            && self.functions.contains_key(name)
            && self.kind(callback + 1) == Some(Kind::Close)
        {
            return self.run(name, vec![Some(Bound::Each(values))], depth);
        }
        let Some(Function { parameters: (start, _), .. }) = self.function_at(callback, true) else { return };
        self.bind(start, Bound::Each(values));
    }

    /// The tool that stands after `tools`, and the token after its name.
    fn tool_named(&self, at: usize) -> Option<(&'a str, usize)> {
        let at = at + 1 + usize::from(self.is_sign(at + 1, b'?'));
        if self.is_sign(at, b'.') {
            return Some((self.name(at + 1)?, at + 2));
        }
        let is_string = self.opens(at, b'[') && self.kind(at + 1) == Some(Kind::String);
        is_string.then(|| (self.text(at + 1), self.close_of(at) + 1))
    }

    fn tool(&mut self, at: usize) {
        if let Some((tool, next)) = self.tool_named(at) {
            let next = if self.are_signs(next, [b'?', b'.']) { next + 2 } else { next };
            if self.opens(next, b'(') {
                self.call(tool, next);
            }
            return;
        }
        // `const {exec_command, apply_patch: patch} = tools;`
        if at >= 2 && self.is_sign(at - 1, b'=') && self.kind(at - 2) == Some(Kind::Close) {
            let open = self.tokens[at - 2].other;
            if !self.opens(open, b'{') {
                return;
            }
            for (start, end) in self.elements(open) {
                let Some(tool) = self.name(start) else { continue };
                let renamed = end == start + 3 && self.is_sign(start + 1, b':');
                let name = if renamed { self.name(start + 2) } else { Some(tool) };
                name.into_iter().for_each(|name| _ = self.tools.insert(name, tool));
            }
        }
    }

    /// A call of a tool, once for each round of the loop it is in.
    fn call(&mut self, tool: &str, open: usize) {
        let first = self.elements(open).first().copied();
        self.in_rounds(|reader| {
            let (arguments, is_read) = match first {
                None => (Value::Object(Map::new()), true),
                Some((start, end)) => match reader.expression(start, end, 0, Unread::Quote) {
                    Some(value @ Value::Object(_)) => (value, true),
                    Some(value) => (Value::Object(Map::from_iter([("input".to_owned(), value)])), true),
                    None => {
                        let quoted = reader.quoted(start, end)?;
                        (Value::Object(Map::from_iter([("input".to_owned(), quoted)])), false)
                    }
                },
            };
            reader.record(tool, &arguments, is_read)
        });
    }

    /// A function of Node, if its first argument can be read.
    fn node_function(&mut self, name: &str, at: usize) {
        if !self.opens(at + 1, b'(') {
            return;
        }
        let Some((_, tool, parameters)) = NODE.iter().find(|(names, ..)| names.contains(&name)) else {
            return;
        };
        let elements = self.elements(at + 1);
        self.in_rounds(|reader| {
            let mut arguments = Map::new();
            for (name, (start, end)) in parameters.iter().zip(&elements) {
                if let Some(value @ Value::String(_)) = reader.expression(*start, *end, 0, Unread::Refuse) {
                    arguments.insert((*name).to_owned(), value);
                }
            }
            // A path that nobody knows names no file.
            let names_file = arguments.contains_key("path") || arguments.contains_key("command");
            if names_file { reader.record(tool, &Value::Object(arguments), true) } else { Some(()) }
        });
    }

    fn in_rounds(&mut self, mut round: impl FnMut(&mut Self) -> Option<()>) {
        (self.round, self.rounds) = (0, None);
        let mut more = round(self).is_some();
        while more && self.round + 1 < self.rounds.unwrap_or(0).min(ROUNDS) {
            self.round += 1;
            more = round(self).is_some();
        }
        (self.round, self.rounds) = (0, None);
    }

    fn record(&mut self, tool: &str, arguments: &Value, is_read: bool) -> Option<()> {
        let calls = &mut self.script.calls;
        if calls.len() >= CALLS {
            return None;
        }
        let is_patch = tool.rsplit("__").next() == Some("apply_patch");
        let json = Json::from(arguments);
        if is_patch && !(is_read && PATCHES.iter().any(|sign| json.as_str().contains(sign))) {
            self.unread_patches.push(calls.len());
        }
        calls.push((tool.into(), json));
        Some(())
    }

    /// A patch that could not be read is one of the texts of the script that are patches: it has all of those
    /// that no other call has.
    fn patches_elsewhere(&mut self) {
        let Some(number) = self.unread_patches.first().copied() else { return };
        let mut patches = String::new();
        for token in self.tokens {
            let text = &self.source[token.start..token.end];
            if matches!(token.kind, Kind::String | Kind::Chunk)
                && PATCHES.iter().any(|sign| text.contains(sign))
            {
                patches.push_str(&unescaped(text));
                patches.push('\n');
            }
        }
        if let Some((_, arguments)) = self.script.calls.get_mut(number)
            && !patches.is_empty()
        {
            *arguments = Json::from(&Value::Object(Map::from_iter([("input".to_owned(), patches.into())])));
        }
    }

    /// The line that a print begins with, or that stands between what it prints.
    fn prints(&mut self, open: usize) {
        let close = self.close_of(open);
        let mut label = None;
        let mut at = open + 1;
        while at < close && label.is_none() && self.work(1).is_some() {
            label = match self.kind(at) {
                // `.join("\n---\n")`
                Some(Kind::String) if self.is_name(at.saturating_sub(2), "join") => {
                    Label::new(unescaped(self.text(at)).trim(), "", true)
                }
                Some(Kind::String) => {
                    let text = unescaped(self.text(at));
                    first_line(&text).and_then(|line| Label::new(line, "", false))
                }
                Some(Kind::Open(b'`')) => self.template_label(at),
                _ => None,
            };
            at += 1;
        }
        // A print without a label is one too: then the labels are not those of all calls.
        let label = label.unwrap_or(Label { before: "\0".to_owned(), after: String::new(), between: false });
        self.script.labels.push(label);
    }

    /// The first line of a template: its text up to what is computed, and the text after that.
    fn template_label(&self, open: usize) -> Option<Label> {
        if self.kind(open + 1) != Some(Kind::Chunk) {
            return None;
        }
        let before = unescaped(self.text(open + 1));
        if let Some(line) = first_line(&before) {
            return Label::new(line, "", false);
        }
        let before = before.trim_start_matches('\n');
        let next = self.after(open + 2);
        if !self.opens(open + 2, b'$') || self.kind(next) != Some(Kind::Chunk) {
            return None;
        }
        let after = unescaped(self.text(next));
        Label::new(before, after.split('\n').next().unwrap_or_default(), false)
            .filter(|_| after.contains('\n'))
    }
}

/// The first line of a label that is not empty, if it ends in the text.
fn first_line(text: &str) -> Option<&str> {
    text.trim_start_matches('\n').split_once('\n').map(|(line, _)| line).filter(|line| !line.is_empty())
}
