//! The tokens of a JavaScript source, with the bracket that closes each bracket. One pass, no recursion: text
//! that is no JavaScript gives tokens too.

/// A token: where it stands, and for a bracket the token of its other half.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// The other bracket of a pair; the number of tokens if there is none.
    pub(super) other: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Name,
    Number,
    /// What stands between single or double quotation marks; the marks are not in it.
    String,
    /// A part of a template that is text.
    Chunk,
    /// `(`, `[`, `{`, a backquote, or `$` for the `${` of a template.
    Open(u8),
    Close,
    /// One sign of an operator.
    Sign(u8),
    /// A regular expression.
    Other,
}

/// Reads a source.
pub(super) fn tokens(source: &str) -> Vec<Token> {
    let mut lexer =
        Lexer { source, bytes: source.as_bytes(), at: 0, tokens: Vec::new(), open: Vec::new(), no_regex: 0 };
    while lexer.at < lexer.bytes.len() {
        lexer.next();
    }
    let count = lexer.tokens.len();
    lexer.open.iter().for_each(|open| lexer.tokens[*open].other = count);
    lexer.tokens
}

struct Lexer<'a> {
    source: &'a str,
    bytes: &'a [u8],
    at: usize,
    tokens: Vec<Token>,
    /// Brackets that are open.
    open: Vec<usize>,
    /// No regular expression begins before this byte: the line has no end of one.
    no_regex: usize,
}

impl Lexer<'_> {
    fn byte(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize) {
        self.tokens.push(Token { kind, start, end: end.max(start), other: usize::MAX });
    }

    fn opened(&self) -> Option<u8> {
        match self.tokens[*self.open.last()?].kind {
            Kind::Open(bracket) => Some(bracket),
            _ => None,
        }
    }

    fn open(&mut self, bracket: u8, length: usize) {
        self.open.push(self.tokens.len());
        self.push(Kind::Open(bracket), self.at, self.at + length);
        self.at += length;
    }

    /// A closing bracket. One that fits no open bracket is a sign like others.
    fn close(&mut self, sign: u8) {
        let fits = matches!(
            (self.opened(), sign),
            (Some(b'('), b')') | (Some(b'['), b']') | (Some(b'{' | b'$'), b'}') | (Some(b'`'), b'`')
        );
        let number = self.tokens.len();
        match self.open.pop_if(|_| fits) {
            Some(open) => {
                self.push(Kind::Close, self.at, self.at + 1);
                self.tokens[open].other = number;
                self.tokens[number].other = open;
            }
            None => self.push(Kind::Sign(sign), self.at, self.at + 1),
        }
        self.at += 1;
    }

    fn next(&mut self) {
        if self.opened() == Some(b'`') {
            return self.template();
        }
        let start = self.at;
        match self.bytes[self.at] {
            b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
            b'/' if self.byte(1) == Some(b'/') => {
                self.at = self.source[start..].find('\n').map_or(self.bytes.len(), |end| start + end);
            }
            b'/' if self.byte(1) == Some(b'*') => {
                let end = self.source[start + 2..].find("*/");
                self.at = end.map_or(self.bytes.len(), |end| start + 2 + end + 2);
            }
            b'/' if self.may_be_regex() => self.regex(),
            quote @ (b'"' | b'\'') => {
                self.at += 1;
                self.skip_to(|byte, _| byte == quote || byte == b'\n');
                self.push(Kind::String, start + 1, self.at);
                self.at = (self.at + 1).min(self.bytes.len());
            }
            b'`' => self.open(b'`', 1),
            bracket @ (b'(' | b'[' | b'{') => self.open(bracket, 1),
            sign @ (b')' | b']' | b'}') => self.close(sign),
            byte if is_word(byte) => {
                let is_number = byte.is_ascii_digit();
                let belongs = |byte: &u8| is_word(*byte) || is_number && *byte == b'.';
                self.at += self.bytes[start..].iter().take_while(|byte| belongs(byte)).count();
                self.push(if is_number { Kind::Number } else { Kind::Name }, start, self.at);
            }
            sign => {
                self.push(Kind::Sign(sign), start, start + 1);
                self.at += 1;
            }
        }
    }

    /// Goes on to a byte, past what a backslash escapes. Ends at a byte of ASCII or at the end of the source.
    fn skip_to(&mut self, stop: impl Fn(u8, Option<u8>) -> bool) {
        while let Some(byte) = self.byte(0)
            && !stop(byte, self.byte(1))
        {
            self.at += if byte == b'\\' { 2 } else { 1 };
        }
        self.at = self.at.min(self.bytes.len());
    }

    /// Text of a template, up to its end or the next `${`.
    fn template(&mut self) {
        let start = self.at;
        self.skip_to(|byte, next| byte == b'`' || byte == b'$' && next == Some(b'{'));
        if self.at > start {
            self.push(Kind::Chunk, start, self.at);
        }
        match self.byte(0) {
            Some(b'`') => self.close(b'`'),
            Some(_) => self.open(b'$', 2),
            None => {}
        }
    }

    /// True after an operator, an open bracket or a keyword: what follows a value is a division.
    fn may_be_regex(&self) -> bool {
        if self.at < self.no_regex {
            return false;
        }
        match self.tokens.last() {
            None => true,
            Some(token) => match token.kind {
                Kind::Sign(_) | Kind::Open(_) => true,
                Kind::Name => {
                    matches!(&self.source[token.start..token.end], "return" | "typeof" | "case" | "in" | "of")
                }
                _ => false,
            },
        }
    }

    fn regex(&mut self) {
        let start = self.at;
        self.at += 1;
        let mut in_class = false;
        while let Some(byte) = self.byte(0) {
            match byte {
                b'\n' => break,
                b'\\' => self.at += 1,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => {
                    self.at += 1;
                    self.push(Kind::Other, start, self.at);
                    return;
                }
                _ => {}
            }
            self.at += 1;
        }
        // It has no end: a division.
        self.no_regex = self.at;
        self.at = start + 1;
        self.push(Kind::Sign(b'/'), start, start + 1);
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}
