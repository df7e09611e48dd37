//! The fields of an object of a request, taken one by one; what nobody takes is kept as [`Extra`].
//!
//! A reader keeps notes of its own beside a block (`~kind`: the type, where there are several for one
//! block). A client's field whose name begins with `~` gets another `~`, so that none is taken for such
//! a note.

use std::borrow::Cow;

use longhaul::conversation::{BlockPart, RawPart};
use longhaul::{Extra, Json};

use crate::fields::{FieldError, excerpt, keep_last};
use crate::scan::Value;

/// Begins the name of a reader's own note.
const OWN: char = '~';

/// Beside a block: its type, where there are several for one kind of block.
pub(super) const KIND: &str = "~kind";
/// Beside a block: the field of the message that it is, or that its arguments are.
pub(super) const FIELD: &str = "~field";

/// The fields of an object.
pub(super) struct Fields<'a>(Vec<(Cow<'a, str>, Value<'a>)>);

/// What a string says, and where it stands.
pub(super) struct Said<'a> {
    pub text: Cow<'a, str>,
    value: Value<'a>,
    /// We would write it in the same way.
    usual: bool,
}

impl<'a> Said<'a> {
    pub fn of(value: Value<'a>) -> Option<Self> {
        let (text, usual) = value.text_and_form()?;
        Some(Self { text, value, usual })
    }

    /// A value that its block has as it is written.
    pub fn verbatim(value: Value<'a>) -> Self {
        Self { text: Cow::Borrowed(""), value, usual: true }
    }

    /// The part of a text from `base` on that this string is, as long as the block that has it would be
    /// written the same.
    pub fn part(&self, base: usize, block: usize, part: BlockPart) -> Option<RawPart> {
        let (start, end) = (self.value.start() - base, self.value.end() - base);
        self.usual.then_some(RawPart { start, end, block, part })
    }
}

impl<'a> Fields<'a> {
    /// The fields of a value. `what` names it in the error.
    pub fn of(value: Value<'a>, what: &str) -> Result<Self, FieldError> {
        if !value.is_object() {
            return Err(FieldError(format!("{what} is not an object: {}", excerpt(value.raw()))));
        }
        let named = value.fields().map(|(key, value)| (key.text().unwrap_or_default(), value));
        Ok(Self::from_list(named.collect()))
    }

    /// Fields that were found one by one. Of several of one name the last one counts, as everywhere in
    /// JSON.
    pub fn from_list(mut list: Vec<(Cow<'a, str>, Value<'a>)>) -> Self {
        keep_last(&mut list);
        Self(list)
    }

    pub fn peek(&self, name: &str) -> Option<Value<'a>> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| *value)
    }

    pub fn take(&mut self, name: &str) -> Option<Value<'a>> {
        let at = self.0.iter().position(|(n, _)| n == name)?;
        Some(self.0.remove(at).1)
    }

    /// Takes out a field that is not `null`.
    pub fn take_some(&mut self, name: &str) -> Option<Value<'a>> {
        self.take(name).filter(|value| value.raw() != "null")
    }

    /// Takes out a string.
    pub fn take_said(&mut self, name: &str) -> Result<Option<Said<'a>>, FieldError> {
        let Some(value) = self.take_some(name) else { return Ok(None) };
        let wrong = || FieldError(format!("`{name}` is not a string: {}", excerpt(value.raw())));
        Said::of(value).map(Some).ok_or_else(wrong)
    }

    /// Takes out a string that must be there.
    pub fn need_said(&mut self, name: &str) -> Result<Said<'a>, FieldError> {
        self.take_said(name)?.ok_or_else(|| FieldError(format!("`{name}` is missing")))
    }

    pub fn take_text(&mut self, name: &str) -> Result<Option<Box<str>>, FieldError> {
        Ok(self.take_said(name)?.map(|said| said.text.into()))
    }

    pub fn need_text(&mut self, name: &str) -> Result<Box<str>, FieldError> {
        Ok(self.need_said(name)?.text.into())
    }

    /// Takes out a flag that must be true, and leaves anything else.
    pub fn take_flag(&mut self, name: &str) -> bool {
        let found = self.0.iter().position(|(n, value)| n == name && value.raw() == "true");
        found.map(|at| self.0.remove(at)).is_some()
    }

    /// Puts a field back: it is not what it seemed to be.
    pub fn put_back(&mut self, name: &'static str, value: Value<'a>) {
        self.0.push((Cow::Borrowed(name), value));
    }

    /// What nobody took.
    pub fn rest(self) -> Extra {
        self.0.into_iter().map(|(name, value)| (kept_name(name), value.json())).collect()
    }
}

/// The name that a client's field is kept under.
fn kept_name(name: Cow<'_, str>) -> Box<str> {
    if name.starts_with(OWN) { format!("{OWN}{name}").into() } else { name.into() }
}

/// The name of a client's field that was kept; `None` for a reader's own note.
pub(super) fn sent_name(name: &str) -> Option<&str> {
    match name.strip_prefix(OWN) {
        None => Some(name),
        Some(rest) => rest.starts_with(OWN).then_some(rest),
    }
}

/// A reader's own note that is a string.
pub(super) fn note(extra: &Extra, name: &str) -> Option<String> {
    serde_json::from_str(extra.get(name)?.as_str()).ok()
}

/// Notes a string.
pub(super) fn set_note(extra: &mut Extra, name: &'static str, text: &str) {
    extra.push(name, Json::string(text));
}
