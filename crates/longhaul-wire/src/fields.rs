//! The fields of a JSON object, taken one by one; what nobody takes is kept as [`Extra`].
//! Each decoder goes through this, so that no field is lost by omission.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use longhaul::{Extra, Json};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The fields of an object, unparsed.
pub(crate) struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Reads an object. `what` names it in the error.
    pub(crate) fn read(json: &'a str, what: &'static str) -> Result<Self, FieldError> {
        serde_json::from_str(json).map_err(|error| {
            let kind = if error.is_data() { "is not an object" } else { "is not valid JSON" };
            FieldError(format!("{what} {kind}: {}", reason(&error)))
        })
    }

    /// Looks at a field, as JSON.
    pub(crate) fn peek(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| *value)
    }

    /// Takes out a field, as JSON.
    pub(crate) fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let at = self.0.iter().position(|(n, _)| n == name)?;
        Some(self.0.remove(at).1)
    }

    /// Takes out a field that is not `null`, as JSON.
    pub(crate) fn take_some(&mut self, name: &str) -> Option<&'a RawValue> {
        self.take(name).filter(|value| value.get() != "null")
    }

    /// Takes out a field of a type. `expected` is that type in words.
    pub(crate) fn take_as<T: Deserialize<'a>>(
        &mut self,
        name: &str,
        expected: &str,
    ) -> Result<Option<T>, FieldError> {
        let Some(value) = self.take_some(name) else { return Ok(None) };
        let parsed = serde_json::from_str(value.get());
        parsed
            .map(Some)
            .map_err(|_| FieldError(format!("`{name}` is not {expected}: {}", excerpt(value.get()))))
    }

    /// Takes out a text.
    pub(crate) fn take_text(&mut self, name: &str) -> Result<Option<Box<str>>, FieldError> {
        self.take_as(name, "a string")
    }

    /// Takes out a text that must be there.
    pub(crate) fn need_text(&mut self, name: &str) -> Result<Box<str>, FieldError> {
        self.take_text(name)?.ok_or_else(|| FieldError(format!("`{name}` is missing")))
    }

    /// Takes out all fields of these names, in their order.
    pub(crate) fn take_all(&mut self, names: &[&str]) -> Extra {
        let taken = self.0.extract_if(.., |(name, _)| names.contains(&&**name));
        taken.map(|(name, value)| (name.into_owned().into_boxed_str(), Json::from(value))).collect()
    }

    /// Takes out a flag that must be true, and puts anything else back.
    pub(crate) fn take_flag(&mut self, name: &str) -> bool {
        let found = self.0.iter().position(|(n, value)| n == name && value.get() == "true");
        found.map(|at| self.0.remove(at)).is_some()
    }

    /// Puts a field back: it is not what it seemed to be.
    pub(crate) fn put_back(&mut self, name: &'static str, value: &'a RawValue) {
        self.0.push((Cow::Borrowed(name), value));
    }

    /// What nobody took.
    pub(crate) fn rest(self) -> Extra {
        self.0
            .into_iter()
            .map(|(name, value)| (name.into_owned().into_boxed_str(), Json::from(value)))
            .collect()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(Key(name)) = map.next_key()? {
                    fields.push((name, map.next_value()?));
                }
                keep_last(&mut fields);
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// Of several fields of one name the last one counts, as everywhere in JSON.
pub(crate) fn keep_last<T>(fields: &mut Vec<(Cow<'_, str>, T)>) {
    let doubled = |at: usize| fields[..at].iter().any(|(name, _)| *name == fields[at].0);
    if fields.len() <= 16 && !(1..fields.len()).any(doubled) {
        return;
    }
    let mut last = HashMap::with_capacity(fields.len());
    for (at, (name, _)) in fields.iter().enumerate() {
        last.insert(name.clone(), at);
    }
    if last.len() < fields.len() {
        let mut at = 0..;
        fields.retain(|(name, _)| last.get(name) == at.next().as_ref());
    }
}

/// A field name, borrowed where it has no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a field name")
            }
            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(name)))
            }
            fn visit_str<E>(self, name: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// What is wrong with an object, in one sentence.
#[derive(Debug)]
pub(crate) struct FieldError(pub(crate) String);

/// The parser's own words, without its position: the caller knows a better one.
pub(crate) fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((reason, _)) => format!("{reason}, column {}", error.column()),
        None => text,
    }
}

/// The start of a value, for an error message.
pub(crate) fn excerpt(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
