//! Values in a script: literals, sums of literals, and variables that hold such.

use serde_json::{Map, Value};

use super::{Bound, DEPTH, Kind, Reader, SOURCE, Unread};

impl Reader<'_> {
    /// The source of an expression, as a text.
    pub(super) fn quoted(&mut self, start: usize, end: usize) -> Option<Value> {
        let from = self.tokens.get(start)?.start;
        let to = self.tokens.get(end.saturating_sub(1))?.end.max(from);
        let text = self.source.get(from..to)?;
        let text = &text[..text.floor_char_boundary(SOURCE)];
        self.work(text.len())?;
        Some(text.into())
    }

    /// An expression that is made of literals.
    pub(super) fn expression(
        &mut self,
        start: usize,
        end: usize,
        depth: usize,
        unread: Unread,
    ) -> Option<Value> {
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

    pub(super) fn operand(
        &mut self,
        at: usize,
        end: usize,
        depth: usize,
        unread: Unread,
    ) -> Option<(Value, usize)> {
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

    pub(super) fn named(&mut self, at: usize, depth: usize) -> Option<(Value, usize)> {
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
    pub(super) fn item(&mut self, mut value: Value, open: usize) -> Option<Value> {
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

    pub(super) fn method(&mut self, value: Value, name: &str, open: usize) -> Option<Value> {
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
    pub(super) fn template(&mut self, open: usize, text: fn(&str) -> String, depth: usize) -> Option<Value> {
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

    pub(super) fn list(&mut self, open: usize, depth: usize, unread: Unread) -> Option<Value> {
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

    pub(super) fn object(&mut self, open: usize, depth: usize, unread: Unread) -> Option<Value> {
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
pub(super) fn size_of(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 8,
        Value::Array(items) => items.iter().map(size_of).sum::<usize>() + 8,
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + size_of(value)).sum::<usize>() + 8
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

pub(super) fn size_of_bound(bound: &Bound) -> usize {
    match bound {
        Bound::One(value) => size_of(value),
        Bound::Each(values) => values.iter().map(size_of).sum(),
    }
}

/// A value as a part of a text.
pub(super) fn said(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

pub(super) fn number(text: &str) -> Option<Value> {
    let text = text.replace('_', "");
    match text.parse::<i64>() {
        Ok(number) => Some(number.into()),
        Err(_) => text.parse::<f64>().ok().and_then(serde_json::Number::from_f64).map(Value::Number),
    }
}

/// The text of a string or a template, without its escapes.
pub(in crate::conversation::script) fn unescaped(text: &str) -> String {
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
