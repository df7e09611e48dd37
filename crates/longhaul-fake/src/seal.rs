//! The signature of a thinking block. It holds everything that the block is bound to.
//!
//! As with the real provider, the server keeps no record of the blocks, so that a conversation may continue on
//! another fake.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// The facts that a thinking block is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seal {
    /// The number of the call that made the block.
    pub(crate) call: usize,
    /// The place of the block in the answer.
    pub(crate) part: usize,
    /// The name of the thinking block before it in the conversation.
    pub(crate) previous: Option<String>,
    /// The hash of the prefix.
    pub(crate) prefix: u64,
    /// The hash of the thinking.
    pub(crate) text: u64,
}

const START: &str = "bound";
/// The name in place of a previous block, if there is none.
const NONE: &str = "0";

impl Seal {
    /// The name of the block, which no other block of this fake has.
    pub(crate) fn name(&self) -> String {
        format!("{}n{}", self.call, self.part)
    }

    /// The signature. Redacted thinking has its data at the end.
    pub(crate) fn signature(&self, data: &str) -> String {
        let previous = self.previous.as_deref().unwrap_or(NONE);
        let bound = format!("{START}+{}+{previous}+{:016x}+{:016x}", self.name(), self.prefix, self.text);
        let check = hash(&(&bound, data));
        if data.is_empty() { format!("{bound}+{check:016x}") } else { format!("{bound}+{check:016x}+{data}") }
    }

    /// The seal in a signature; `None` if the fake did not make it.
    pub(crate) fn read(signature: &str) -> Option<Self> {
        let mut fields = signature.strip_prefix(START)?.strip_prefix('+')?.splitn(6, '+');
        let (call, part) = fields.next()?.split_once('n')?;
        let previous = Some(fields.next()?.to_owned()).filter(|name| name != NONE);
        let prefix = u64::from_str_radix(fields.next()?, 16).ok()?;
        let text = u64::from_str_radix(fields.next()?, 16).ok()?;
        let _check = fields.next()?;
        let data = fields.next().unwrap_or_default();
        let seal = Self { call: call.parse().ok()?, part: part.parse().ok()?, previous, prefix, text };
        (seal.signature(data) == signature).then_some(seal)
    }
}

/// The same for the same value in every run.
pub(crate) fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_read_only_if_it_is_whole() {
        let seal = Seal { call: 12, part: 3, previous: Some("11n0".to_owned()), prefix: 7, text: 9 };
        let first = Seal { previous: None, ..seal.clone() };
        for (seal, data) in [(&seal, ""), (&seal, "c2Vh+bGVk=="), (&first, "")] {
            let signature = seal.signature(data);
            assert_eq!(Seal::read(&signature).as_ref(), Some(seal));
            for damaged in
                [&signature[1..], &signature[..signature.len() - 1], &signature.replace('n', "n1"), ""]
            {
                assert_eq!(Seal::read(damaged), None, "{damaged}");
            }
        }
    }
}
