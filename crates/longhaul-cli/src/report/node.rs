//! A JSON value of a line, with its texts borrowed from the line: reading a gigabyte of sessions
//! is mostly this. Any shape is read; what is not there is nothing.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Node<'a> {
    Nothing,
    Flag(bool),
    Number(f64),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Fields(Vec<(Cow<'a, str>, Node<'a>)>),
}

/// No count of tokens is larger: a number that is says nothing, and sums stay sums.
pub const MOST: f64 = 1e12;

static NOTHING: Node<'static> = Node::Nothing;

/// Fields that say nothing of cost or context, and are large: copies of results, snapshots of files, seals.
const LEFT_OUT: [&str; 7] = [
    "toolUseResult",
    "snapshot",
    "encrypted_content",
    "signature",
    "thinkingSignature",
    "thoughtSignature",
    "rate_limits",
];

impl<'a> Node<'a> {
    /// The value of a line, if it is JSON.
    pub fn read(line: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// A field, or nothing.
    pub fn get(&self, name: &str) -> &Node<'a> {
        let fields = if let Self::Fields(fields) = self { fields.as_slice() } else { &[] };
        fields.iter().find(|(field, _)| field == name).map_or(&NOTHING, |(_, value)| value)
    }

    /// A field of a field, and so on.
    pub fn at(&self, path: &[&str]) -> &Node<'a> {
        path.iter().fold(self, |node, name| node.get(name))
    }

    /// The text, or an empty one.
    pub fn text(&self) -> &str {
        if let Self::Text(text) = self { text } else { "" }
    }

    /// The whole number, or 0 for what can be no count.
    pub fn number(&self) -> u64 {
        match self {
            Self::Number(number) if (0.0..=MOST).contains(number) => *number as u64,
            _ => 0,
        }
    }

    /// The fraction, or 0.
    pub fn fraction(&self) -> f64 {
        match self {
            Self::Number(number) if (0.0..=MOST).contains(number) => *number,
            _ => 0.0,
        }
    }

    pub fn is_true(&self) -> bool {
        matches!(self, Self::Flag(true))
    }

    pub fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// The elements of a list; of anything else, none.
    pub fn list(&self) -> &[Node<'a>] {
        if let Self::List(list) = self { list } else { &[] }
    }

    /// Calls `each` with every text in it.
    pub fn texts(&self, each: &mut impl FnMut(&str)) {
        match self {
            Self::Text(text) => each(text),
            Self::List(list) => list.iter().for_each(|node| node.texts(each)),
            Self::Fields(fields) => fields.iter().for_each(|(_, node)| node.texts(each)),
            Self::Nothing | Self::Flag(_) | Self::Number(_) => {}
        }
    }
}

impl<'de> Deserialize<'de> for Node<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node<'de>, E> {
        Ok(Node::Nothing)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Node<'de>, E> {
        Ok(Node::Flag(flag))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node<'de>, E> {
        Ok(Node::Number(number as f64))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node<'de>, E> {
        Ok(Node::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node<'de>, E> {
        Ok(Node::Number(number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node<'de>, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element()? {
            nodes.push(node);
        }
        Ok(Node::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some(Name(name)) = map.next_key()? {
            if LEFT_OUT.contains(&&*name) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            fields.push((name, map.next_value()?));
        }
        Ok(Node::Fields(fields))
    }
}

/// The name of a field, borrowed where it can be.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        from.deserialize_str(NameVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_shape_is_read_and_what_is_not_there_is_nothing() {
        let line =
            br#"{"a": {"b": [1, "x\n", null]}, "toolUseResult": {"x": "y"}, "n": 7, "t": true, "m": -3}"#;
        let node = Node::read(line).unwrap();
        assert_eq!(node.at(&["a", "b"]).list().len(), 3);
        assert_eq!(node.at(&["a", "b"]).list()[1].text(), "x\n");
        assert!(node.get("toolUseResult").is_nothing() && node.get("t").is_true());
        assert_eq!((node.get("n").number(), node.get("m").number(), node.get("a").text()), (7, 0, ""));
        let mut texts = Vec::new();
        node.texts(&mut |text| texts.push(text.to_owned()));
        assert_eq!(texts, ["x\n"]);
        assert!(Node::read(b"{").is_none() && Node::read(&[0xff, 0xfe]).is_none());
        assert!(Node::read("[".repeat(10_000).as_bytes()).is_none());
    }
}
