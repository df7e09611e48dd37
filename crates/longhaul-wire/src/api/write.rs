//! JSON, written in one fixed form.

use longhaul::Extra;

use super::object::sent_name;

/// An object under construction.
pub(super) struct Object(String);

impl Object {
    pub fn new() -> Self {
        Self("{".to_owned())
    }

    /// A field whose value is JSON already.
    pub fn json(mut self, name: &str, json: &str) -> Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&quoted(name));
        self.0.push(':');
        self.0.push_str(json);
        self
    }

    pub fn text(self, name: &str, text: &str) -> Self {
        self.json(name, &quoted(text))
    }

    pub fn maybe_json(self, name: &str, json: Option<&str>) -> Self {
        match json {
            Some(json) => self.json(name, json),
            None => self,
        }
    }

    pub fn list(self, name: &str, elements: &[String]) -> Self {
        self.json(name, &list(elements))
    }

    /// The unknown fields, without those that are named and without notes of the reader.
    pub fn extra(self, extra: &Extra, but: &[&str]) -> Self {
        let sent = extra.iter().filter_map(|(name, value)| Some((sent_name(name)?, value)));
        let sent = sent.filter(|(name, _)| !but.contains(name));
        sent.fold(self, |object, (name, value)| object.json(name, value.as_str()))
    }

    pub fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

pub(super) fn list(elements: &[String]) -> String {
    format!("[{}]", elements.join(","))
}

pub(super) fn quoted(text: &str) -> String {
    // A string into memory: this cannot fail.
    serde_json::to_string(text).unwrap_or_default()
}
