//! The calls and the prints of a script. Values are read where they are literals, sums of literals, or variables
//! that hold such; a loop over a list of literals makes its calls once for each. Small functions are read where
//! they are called.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::Label;
use super::tokens::{Kind, Token, tokens};
use crate::conversation::json::Json;

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

    // Functions

    /// Notes `function name(…) {…}` and `const name = (…) => …`.
    fn find_functions(&mut self) {
        for at in 0..self.tokens.len() {
            let (name, function) = if self.is_name(at, "function") {
                (self.name(at + 1), self.function_at(at + 2, false))
            } else if self.is_sign(at, b'=') && !self.are_signs(at, [b'=', b'>']) && at > 0 {
                let start = at + 1 + usize::from(self.is_name(at + 1, "async"));
                let is_keyword = self.is_name(start, "function");
                let start =
                    if is_keyword { start + 1 + usize::from(self.name(start + 1).is_some()) } else { start };
                (self.name(at - 1).filter(|_| !self.is_field(at - 1)), self.function_at(start, !is_keyword))
            } else {
                continue;
            };
            if let (Some(name), Some(function)) = (name, function) {
                self.functions.entry(name).or_insert(function);
            }
        }
    }

    /// A function whose parameters begin here.
    fn function_at(&self, at: usize, is_arrow: bool) -> Option<Function> {
        let parameters = match self.kind(at)? {
            Kind::Open(b'(') => (at + 1, self.close_of(at)),
            Kind::Name if is_arrow => (at, at + 1),
            _ => return None,
        };
        let mut body = self.after(at);
        if is_arrow {
            self.are_signs(body, [b'=', b'>']).then_some(())?;
            body += 2;
        }
        if self.opens(body, b'{') {
            return Some(Function { parameters, body: (body + 1, self.close_of(body)), is_read: false });
        }
        is_arrow.then_some(())?;
        Some(Function { parameters, body: (body, self.end_of_expression(body)), is_read: false })
    }

    /// Where an expression that is the body of a function ends: at a semicolon, a comma or a bracket.
    fn end_of_expression(&self, mut at: usize) -> usize {
        let ends = |at: usize| {
            self.is_sign(at, b';')
                || self.is_sign(at, b',')
                || matches!(self.kind(at), None | Some(Kind::Close))
        };
        let start = at;
        while !ends(at) {
            let next = self.after(at);
            // Without a semicolon the next line begins with a word.
            let is_statement =
                ["const", "let", "var", "await", "text", "for", "if", "return", "async", "function"];
            if next > start + 1 && self.name(next).is_some_and(|name| is_statement.contains(&name)) {
                let line = self.source.get(self.tokens[next - 1].end..self.tokens[next].start);
                if line.is_some_and(|between| between.contains('\n')) {
                    return next;
                }
            }
            at = next;
        }
        at.min(self.tokens.len())
    }

    /// Calls in functions that nobody called by name.
    fn unused_functions(&mut self) {
        let mut unused: Vec<(usize, usize)> = self
            .functions
            .values()
            .filter(|function| !function.is_read)
            .map(|function| function.body)
            .collect();
        unused.sort_unstable();
        let mut read = 0;
        for (start, end) in unused {
            // A function inside another was read with it.
            if start >= read {
                self.statements(start, end, 1);
                read = end;
            }
        }
    }

    /// Reads the body of a function with these values for its parameters.
    fn run(&mut self, name: &'a str, arguments: Vec<Option<Bound>>, depth: usize) {
        let Some(function) = self.functions.get_mut(name) else { return };
        if depth > DEPTH {
            return;
        }
        function.is_read = true;
        let Function { parameters, body, .. } = *function;
        let names = self.patterns(parameters);
        for (number, pattern) in names.into_iter().enumerate() {
            if let Some(name) = self.name(pattern)
                && !matches!(arguments.get(number), Some(Some(_)))
            {
                self.bound.remove(name);
            }
            if let Some(Some(value)) = arguments.get(number) {
                self.bind(pattern, value.clone());
            }
        }
        self.statements(body.0, body.1, depth + 1);
    }

    /// Where the parameters of a function begin.
    fn patterns(&mut self, (start, end): (usize, usize)) -> Vec<usize> {
        let (mut all, mut at, mut is_start) = (Vec::new(), start, true);
        while at < end && self.work(1).is_some() {
            if is_start {
                all.push(at);
            }
            is_start = self.is_sign(at, b',');
            at = self.after(at);
        }
        all
    }

    /// Gives a variable a value, or several variables the parts of it.
    fn bind(&mut self, pattern: usize, value: Bound) {
        if let Some(name) = self.name(pattern) {
            self.bound.insert(name, value);
            return;
        }
        let is_list = self.opens(pattern, b'[');
        if !is_list && !self.opens(pattern, b'{') {
            return;
        }
        for (number, (start, end)) in self.elements(pattern).into_iter().enumerate().take(ROUNDS) {
            let Some(field) = self.name(start) else { continue };
            let part = |value: &Value| if is_list { value.get(number) } else { value.get(field) }.cloned();
            let part = match &value {
                Bound::One(value) => part(value).map(Bound::One),
                Bound::Each(values) => values.iter().map(part).collect::<Option<Vec<_>>>().map(Bound::Each),
            };
            // `{field: name}`
            let name =
                if end > start + 2 && self.is_sign(start + 1, b':') { self.name(start + 2) } else { None };
            if let Some(part) = part
                && self.work(size_of_bound(&part)).is_some()
            {
                self.bound.insert(name.unwrap_or(field), part);
            }
        }
    }

    // Statements

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

    // Values

    /// The source of an expression, as a text.
    fn quoted(&mut self, start: usize, end: usize) -> Option<Value> {
        let from = self.tokens.get(start)?.start;
        let to = self.tokens.get(end.saturating_sub(1))?.end.max(from);
        let text = self.source.get(from..to)?;
        let text = &text[..text.floor_char_boundary(SOURCE)];
        self.work(text.len())?;
        Some(text.into())
    }

    /// An expression that is made of literals.
    fn expression(&mut self, start: usize, end: usize, depth: usize, unread: Unread) -> Option<Value> {
        if depth > DEPTH || start >= end {
            return None;
        }
        let (mut sum, mut at) = self.operand(start, end, depth, unread)?;
        while at < end {
            if !self.is_sign(at, b'+') {
                return None;
            }
            let (more, next) = self.operand(at + 1, end, depth, unread)?;
            match &mut sum {
                Value::String(text) => text.push_str(&said(&more)?),
                _ => return None,
            }
            at = next;
        }
        Some(sum)
    }

    fn operand(&mut self, at: usize, end: usize, depth: usize, unread: Unread) -> Option<(Value, usize)> {
        if at >= end {
            return None;
        }
        let token = self.tokens.get(at)?;
        self.work(1)?;
        let (mut value, mut next) = match token.kind {
            Kind::String => {
                self.work(token.end - token.start)?;
                (unescaped(self.text(at)).into(), at + 1)
            }
            Kind::Number => (number(self.text(at))?, at + 1),
            Kind::Sign(b'-') => (number(&format!("-{}", self.text(at + 1)))?, at + 2),
            Kind::Open(b'`') => (self.template(at, unescaped, depth)?, self.after(at)),
            Kind::Open(b'[') => (self.list(at, depth, unread)?, self.after(at)),
            Kind::Open(b'{') => (self.object(at, depth, unread)?, self.after(at)),
            Kind::Open(b'(') => {
                (self.expression(at + 1, self.close_of(at), depth + 1, unread)?, self.after(at))
            }
            Kind::Name => self.named(at, depth)?,
            _ => return None,
        };
        loop {
            if self.is_sign(next, b'.') && next + 1 < end {
                let name = self.name(next + 1)?;
                if self.opens(next + 2, b'(') {
                    value = self.method(value, name, next + 2)?;
                    next = self.after(next + 2);
                } else {
                    value = value.get_mut(name)?.take();
                    next += 2;
                }
            } else if self.opens(next, b'[') && next < end {
                value = self.item(value, next)?;
                next = self.after(next);
            } else {
                return Some((value, next));
            }
        }
    }

    fn named(&mut self, at: usize, depth: usize) -> Option<(Value, usize)> {
        let text = self.text(at);
        match text {
            "true" => return Some((true.into(), at + 1)),
            "false" => return Some((false.into(), at + 1)),
            "null" | "undefined" => return Some((Value::Null, at + 1)),
            "String"
                if self.is_sign(at + 1, b'.') && self.is_name(at + 2, "raw") && self.opens(at + 3, b'`') =>
            {
                return Some((self.template(at + 3, str::to_owned, depth)?, self.after(at + 3)));
            }
            "JSON" | "Object" if self.is_sign(at + 1, b'.') && self.opens(at + 3, b'(') => {
                let (start, end) = *self.elements(at + 3).first()?;
                let value = self.expression(start, end, depth + 1, Unread::Refuse)?;
                let value = match (self.name(at + 2)?, value) {
                    ("stringify", value) => Value::String(value.to_string()),
                    ("keys", Value::Object(fields)) => fields.into_iter().map(|(name, _)| name).collect(),
                    ("values", Value::Object(fields)) => fields.into_iter().map(|(_, value)| value).collect(),
                    ("entries", Value::Object(fields)) => fields
                        .into_iter()
                        .map(|(name, value)| Value::from(vec![name.into(), value]))
                        .collect(),
                    _ => return None,
                };
                return Some((value, self.after(at + 3)));
            }
            _ => {}
        }
        let round = self.round;
        let (value, rounds) = match self.bound.get(text)? {
            Bound::One(value) => (value, None),
            Bound::Each(values) => (values.get(round)?, Some(values.len())),
        };
        let value = value.clone();
        self.rounds = rounds.map(|count| self.rounds.unwrap_or(count).min(count)).or(self.rounds);
        self.work(size_of(&value))?;
        Some((value, at + 1))
    }

    /// `list[0]`, or `list[i]` with each item in turn.
    fn item(&mut self, mut value: Value, open: usize) -> Option<Value> {
        let (start, end) = (open + 1, self.close_of(open));
        let at = match self.expression(start, end, DEPTH, Unread::Refuse) {
            Some(Value::Number(number)) => usize::try_from(number.as_u64()?).ok()?,
            Some(Value::String(name)) => return Some(value.get_mut(&name)?.take()),
            Some(_) => return None,
            None => {
                self.name(start).filter(|_| end == start + 1)?;
                let count = value.as_array()?.len();
                self.rounds = Some(self.rounds.unwrap_or(count).min(count));
                self.round
            }
        };
        Some(value.get_mut(at)?.take())
    }

    fn method(&mut self, value: Value, name: &str, open: usize) -> Option<Value> {
        match (value, name) {
            (Value::Array(items), "join") => {
                let separator = match self.elements(open).first() {
                    Some((start, end)) => said(&self.expression(*start, *end, DEPTH, Unread::Refuse)?)?,
                    None => ",".to_owned(),
                };
                let items: Option<Vec<String>> = items.iter().map(said).collect();
                let text = items?.join(&separator);
                self.work(text.len())?;
                Some(text.into())
            }
            (Value::String(text), "trim" | "trimStart" | "trimEnd" | "toString") => Some(text.trim().into()),
            _ => None,
        }
    }

    /// What is computed inside a template and cannot be read stays as `${…}`.
    fn template(&mut self, open: usize, text: fn(&str) -> String, depth: usize) -> Option<Value> {
        let close = self.close_of(open);
        let (mut out, mut at) = (String::new(), open + 1);
        while at < close {
            self.work(1)?;
            if self.kind(at) == Some(Kind::Chunk) {
                let chunk = self.text(at);
                self.work(chunk.len())?;
                out.push_str(&text(chunk));
            } else if self.opens(at, b'$') {
                let end = self.close_of(at);
                let value = self.expression(at + 1, end, depth + 1, Unread::Refuse);
                match value.as_ref().and_then(said) {
                    Some(value) => out.push_str(&value),
                    None => {
                        let quoted = self.quoted(at, end + 1).or_else(|| self.quoted(at, end))?;
                        out.push_str(quoted.as_str().unwrap_or_default());
                    }
                }
            }
            at = self.after(at);
        }
        Some(out.into())
    }

    fn list(&mut self, open: usize, depth: usize, unread: Unread) -> Option<Value> {
        let mut items = Vec::new();
        for (start, end) in self.elements(open) {
            if self.are_signs(start, [b'.', b'.']) {
                match self.expression(start + 3, end, depth + 1, unread) {
                    Some(Value::Array(more)) => items.extend(more),
                    _ if unread == Unread::Refuse => return None,
                    _ => {}
                }
                continue;
            }
            let item = self.expression(start, end, depth + 1, unread);
            let item = item.or_else(|| if unread == Unread::Quote { self.quoted(start, end) } else { None });
            items.push(item?);
        }
        Some(items.into())
    }

    fn object(&mut self, open: usize, depth: usize, unread: Unread) -> Option<Value> {
        let mut fields = Map::new();
        for (start, end) in self.elements(open) {
            if self.are_signs(start, [b'.', b'.']) {
                match self.expression(start + 3, end, depth + 1, unread) {
                    Some(Value::Object(more)) => fields.extend(more),
                    _ if unread == Unread::Refuse => return None,
                    _ => {}
                }
                continue;
            }
            let name = match self.kind(start)? {
                Kind::Name | Kind::Number => self.text(start).to_owned(),
                Kind::String => unescaped(self.text(start)),
                _ if unread == Unread::Refuse => return None,
                _ => continue,
            };
            let is_short = end == start + 1;
            let from = if is_short { start } else { start + 2 };
            if !is_short && !self.is_sign(start + 1, b':') {
                if unread == Unread::Refuse {
                    return None;
                }
                continue;
            }
            let value = match (self.expression(from, end, depth + 1, unread), unread) {
                (Some(value), _) => value,
                (None, Unread::Refuse) => return None,
                // A variable that nobody knows says nothing.
                (None, Unread::Quote) if end == from + 1 && self.name(from).is_some() => continue,
                (None, Unread::Quote) => self.quoted(from, end)?,
            };
            fields.insert(name, value);
        }
        Some(fields.into())
    }
}

/// Bytes of a value, about.
fn size_of(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 8,
        Value::Array(items) => items.iter().map(size_of).sum::<usize>() + 8,
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + size_of(value)).sum::<usize>() + 8
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

fn size_of_bound(bound: &Bound) -> usize {
    match bound {
        Bound::One(value) => size_of(value),
        Bound::Each(values) => values.iter().map(size_of).sum(),
    }
}

/// The first line of a label that is not empty, if it ends in the text.
fn first_line(text: &str) -> Option<&str> {
    text.trim_start_matches('\n').split_once('\n').map(|(line, _)| line).filter(|line| !line.is_empty())
}

/// A value as a part of a text.
fn said(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn number(text: &str) -> Option<Value> {
    let text = text.replace('_', "");
    match text.parse::<i64>() {
        Ok(number) => Some(number.into()),
        Err(_) => text.parse::<f64>().ok().and_then(serde_json::Number::from_f64).map(Value::Number),
    }
}

/// The text of a string or a template, without its escapes.
fn unescaped(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let digits = |rest: &mut std::str::Chars<'_>, count: usize| {
            let digits = rest.as_str().get(..count)?;
            let code = u32::from_str_radix(digits, 16).ok()?;
            *rest = rest.as_str()[count..].chars();
            Some(code)
        };
        match rest.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('v') => out.push('\u{b}'),
            Some('0') => out.push('\0'),
            // A line that goes on.
            Some('\n') | None => {}
            Some('x') => out.extend(digits(&mut rest, 2).and_then(char::from_u32)),
            Some('u') => {
                let code = match rest.as_str().strip_prefix('{') {
                    Some(braced) => braced.find('}').filter(|end| *end <= 6).and_then(|end| {
                        rest = braced[end + 1..].chars();
                        u32::from_str_radix(&braced[..end], 16).ok()
                    }),
                    None => digits(&mut rest, 4),
                };
                // Two halves of one character.
                let code = code.map(|code| match (code, rest.as_str().strip_prefix("\\u")) {
                    (0xd800..0xdc00, Some(low)) => {
                        let half = low.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
                        match half.filter(|half| (0xdc00..0xe000).contains(half)) {
                            Some(half) => {
                                rest = low[4..].chars();
                                0x10000 + ((code - 0xd800) << 10) + (half - 0xdc00)
                            }
                            None => code,
                        }
                    }
                    _ => code,
                });
                out.push(code.and_then(char::from_u32).unwrap_or('\u{fffd}'));
            }
            Some(other) => out.push(other),
        }
    }
    out
}
