//! Small functions of a script: where they are, and what their bodies are with the values of a call.

use super::values::size_of_bound;
use super::{Bound, DEPTH, Function, Kind, ROUNDS, Reader};
use serde_json::Value;

impl<'a> Reader<'a> {
    /// Notes `function name(…) {…}` and `const name = (…) => …`.
    pub(super) fn find_functions(&mut self) {
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
    pub(super) fn function_at(&self, at: usize, is_arrow: bool) -> Option<Function> {
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
    pub(super) fn end_of_expression(&self, mut at: usize) -> usize {
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
    pub(super) fn unused_functions(&mut self) {
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
    pub(super) fn run(&mut self, name: &'a str, arguments: Vec<Option<Bound>>, depth: usize) {
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
    pub(super) fn patterns(&mut self, (start, end): (usize, usize)) -> Vec<usize> {
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
    pub(super) fn bind(&mut self, pattern: usize, value: Bound) {
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
}
