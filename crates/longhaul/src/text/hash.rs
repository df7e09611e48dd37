//! A quick hash, for what is many and short (names) or long and met again (texts): a product per
//! eight bytes, with all bits of the input in all bits of the result. It begins with a secret of
//! the process, so that nobody can make up input that falls together; nothing that is written or
//! sent depends on it.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

/// Two numbers without a pattern.
const ODD: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xf39c_c060_5ced_c835];

fn secret() -> u64 {
    static SECRET: OnceLock<u64> = OnceLock::new();
    *SECRET.get_or_init(|| RandomState::new().build_hasher().finish())
}

/// The product of two numbers, folded.
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Up to eight bytes as a number.
fn number(bytes: &[u8]) -> u64 {
    let mut eight = [0; 8];
    eight[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(eight)
}

/// Tells texts apart: two that are not the same have the same fingerprint less than once in 2^60. Another
/// process has other fingerprints: none is written down or sent.
///
/// ```
/// use longhaul::text::fingerprint;
/// assert_ne!(fingerprint(b"one text"), fingerprint(b"another"));
/// ```
pub fn fingerprint(text: &[u8]) -> u128 {
    let secret = secret();
    let odd = [ODD[0] ^ secret, ODD[1] ^ secret.rotate_left(32)];
    let add = |[left, right]: [u64; 2], sixteen: &[u8; 16]| {
        let both = u128::from_le_bytes(*sixteen);
        let (a, b) = (both as u64, (both >> 64) as u64);
        [mix(left ^ a, odd[0] ^ b), mix(right ^ b, odd[1] ^ a)]
    };
    // Pairs of rows that do not wait for each other.
    let mut pairs: [[u64; 2]; 4] =
        std::array::from_fn(|pair| [secret.rotate_left(pair as u32), text.len() as u64]);
    let (long, rest) = text.as_chunks::<64>();
    for sixty_four in long {
        for (pair, sixteen) in pairs.iter_mut().zip(sixty_four.as_chunks().0) {
            *pair = add(*pair, sixteen);
        }
    }
    let (sixteens, rest) = rest.as_chunks();
    for (pair, sixteen) in pairs.iter_mut().zip(sixteens) {
        *pair = add(*pair, sixteen);
    }
    let mut last = [0; 16];
    last[..rest.len()].copy_from_slice(rest);
    let [a, b] = pairs.iter().fold(add([0; 2], &last), |[a, b], [left, right]| {
        [mix(a ^ left, odd[0] ^ right), mix(b ^ right, odd[1] ^ left)]
    });
    u128::from(mix(a ^ odd[1], b)) << 64 | u128::from(mix(b ^ odd[0], a.rotate_left(17)))
}

/// Makes hashers for maps and sets of names.
#[derive(Clone, Copy)]
pub(crate) struct Quick(u64);

impl Default for Quick {
    fn default() -> Self {
        Self(secret())
    }
}

impl BuildHasher for Quick {
    type Hasher = QuickHasher;

    fn build_hasher(&self) -> QuickHasher {
        QuickHasher(self.0)
    }
}

pub(crate) struct QuickHasher(u64);

impl Hasher for QuickHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.chunks(8).for_each(|eight| self.write_u64(number(eight)));
    }

    fn write_u8(&mut self, byte: u8) {
        self.0 = self.0.rotate_left(8) ^ u64::from(byte);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0 ^ number, ODD[0]);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn other_texts_have_other_fingerprints() {
        let text: String = (0..300).map(|n| char::from(b'a' + n as u8 % 26)).collect();
        let mut seen = HashSet::new();
        for end in 0..text.len() {
            assert!(seen.insert(fingerprint(&text.as_bytes()[..end])), "{end}");
            // One letter makes another text.
            for at in 0..end {
                let mut other = text[..end].to_owned().into_bytes();
                other[at] ^= 1;
                assert!(seen.insert(fingerprint(&other)), "{end} {at}");
            }
            assert!(seen.insert(fingerprint(format!("{}\0", &text[..end]).as_bytes())), "{end}");
        }
        assert_eq!(fingerprint(text.as_bytes()), fingerprint(text.clone().as_bytes()));
    }
}
