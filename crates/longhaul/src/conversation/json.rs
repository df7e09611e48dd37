//! JSON kept as it was written: [`Json`] for one value, [`Extra`] for the fields of an
//! object that nobody here knows. Neither is parsed until somebody asks, so what is not
//! understood costs nothing and loses nothing (key order, spacing, number form).

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// One JSON value, held as the text it came in.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Takes a JSON text, whatever it holds.
    ///
    /// ```
    /// use longhaul::Json;
    /// let json = Json::new(r#"{"b": 2.10, "a": 1}"#).unwrap();
    /// assert_eq!(json.as_str(), r#"{"b": 2.10, "a": 1}"#);
    /// assert!(Json::new("{").is_err());
    /// ```
    pub fn new(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text.into()).map(Self)
    }

    /// The empty object, `{}`.
    pub fn empty_object() -> Self {
        Self::from(&serde_json::Value::Object(serde_json::Map::new()))
    }

    /// A JSON string that holds `text`.
    pub fn string(text: &str) -> Self {
        Self::from(&serde_json::Value::String(text.to_owned()))
    }

    /// The text, byte for byte as it came.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The value, parsed. `Null` if it is nested deeper than can be parsed.
    pub fn value(&self) -> serde_json::Value {
        serde_json::from_str(self.0.get()).unwrap_or(serde_json::Value::Null)
    }

    /// True for everything but `false` and `null`.
    pub fn is_truthy(&self) -> bool {
        !matches!(self.as_str(), "false" | "null")
    }

    /// True if this is an object.
    pub fn is_object(&self) -> bool {
        self.as_str().starts_with('{')
    }
}

impl From<&serde_json::Value> for Json {
    fn from(value: &serde_json::Value) -> Self {
        Self(serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }
}

impl From<&RawValue> for Json {
    fn from(raw: &RawValue) -> Self {
        Self(raw.to_owned())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Fields of an object that the model has no name for, in their order.
///
/// Empty in nearly every block, so it is one pointer wide.
#[derive(Clone, Default, PartialEq, Eq)]
// The box is the point: a vector is three words, and there is one in every block.
#[allow(clippy::box_collection)]
pub struct Extra(Option<Box<Vec<Field>>>);

/// A name and a value.
type Field = (Box<str>, Json);

impl Extra {
    /// No fields.
    pub const NONE: Self = Self(None);

    /// The value of the field `name`.
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.iter().find(|(n, _)| *n == name).map(|(_, v)| v)
    }

    /// True if the field `name` is there and neither `false` nor `null`.
    pub fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some_and(Json::is_truthy)
    }

    /// Appends a field; a field of that name that is already there keeps its place.
    pub fn set(&mut self, name: &str, value: Json) {
        let fields = self.0.get_or_insert_default();
        match fields.iter_mut().find(|(n, _)| **n == *name) {
            Some((_, old)) => *old = value,
            None => fields.push((name.into(), value)),
        }
    }

    /// Appends a field without looking for one of that name, as a decoder does.
    pub fn push(&mut self, name: impl Into<Box<str>>, value: Json) {
        self.0.get_or_insert_default().push((name.into(), value));
    }

    /// All fields, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().flat_map(|fields| fields.iter()).map(|(n, v)| (&**n, v))
    }

    /// True if there is no field.
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|fields| fields.is_empty())
    }

    /// Bytes of names and values, for size reports.
    pub fn bytes(&self) -> usize {
        self.iter().map(|(n, v)| n.len() + v.as_str().len()).sum()
    }
}

impl FromIterator<(Box<str>, Json)> for Extra {
    fn from_iter<I: IntoIterator<Item = (Box<str>, Json)>>(iter: I) -> Self {
        let mut extra = Self::NONE;
        for (name, value) in iter {
            extra.push(name, value);
        }
        extra
    }
}

impl Serialize for Extra {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Extra {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Extra;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Extra, A::Error> {
                let mut extra = Extra::NONE;
                while let Some((name, value)) = map.next_entry::<Box<str>, Json>()? {
                    extra.push(name, value);
                }
                Ok(extra)
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

impl fmt::Debug for Extra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_and_number_form() {
        let mut extra = Extra::NONE;
        extra.set("z", Json::new("2.10").unwrap());
        extra.set("a", Json::new(r#"{"y":1, "x":2}"#).unwrap());
        extra.set("z", Json::new("2.20").unwrap());
        let fields: Vec<_> = extra.iter().map(|(n, v)| (n, v.as_str())).collect();
        assert_eq!(fields, [("z", "2.20"), ("a", r#"{"y":1, "x":2}"#)]);
    }

    #[test]
    fn deep_nesting_is_text_until_asked_and_null_then() {
        let deep = "[".repeat(10_000) + &"]".repeat(10_000);
        let json = Json::new(deep.clone()).unwrap();
        assert_eq!(json.as_str(), deep);
        assert!(json.value().is_null());
    }
}
