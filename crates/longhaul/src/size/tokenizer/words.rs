//! The counts of words that were met before. Text is made of words that come again and again:
//! most are looked up, and only the others are split into tokens.

use std::ops::Range;

/// Half of a longest word.
const HALF: usize = 16;
/// A longer word is not remembered.
pub(super) const LONGEST: usize = 2 * HALF - 1;
/// So many short and long words are remembered, as powers of two: 1.25 MB in each
/// memo of a vocabulary.
const SHORT: u32 = 16;
const LONG: u32 = 13;
/// Where the count stands in the number of a word: above fifteen bytes, below its length.
const COUNT: u32 = 120;

/// A place that no long word has had: no word has all these bits.
const NO_WORD: (u128, u128) = (0, u128::MAX);

/// Each word has one place where it may be, and pushes out another that was there.
pub(super) struct Words {
    short: Box<[u128]>,
    long: Box<[(u128, u128)]>,
}

impl Default for Words {
    fn default() -> Self {
        Self { short: vec![0; 1 << SHORT].into(), long: vec![NO_WORD; 1 << LONG].into() }
    }
}

impl Words {
    /// The count of a word of a text. `find` finds out that of a new one.
    pub fn count(&mut self, text: &str, word: Range<usize>, find: impl FnOnce(&str) -> usize) -> usize {
        let (start, length) = (word.start, word.len());
        let known = if length < HALF {
            let key = key(text, start, length);
            let place = &mut self.short[place(key, SHORT)];
            if without_count(*place) != key {
                // No word has more tokens than bytes: four bits are enough.
                *place = key | (find(&text[word]) as u128) << COUNT;
            }
            *place
        } else if length <= LONGEST {
            let (first, key) = (sixteen(text, start, HALF), key(text, start + HALF, length - HALF));
            let place = &mut self.long[place(first ^ key.rotate_left(1), LONG)];
            if (place.0, without_count(place.1)) != (first, key) {
                let count = find(&text[word]);
                if count >= HALF {
                    return count;
                }
                *place = (first, key | (count as u128) << COUNT);
            }
            place.1
        } else {
            return find(&text[word]);
        };
        (known >> COUNT) as usize & 0xf
    }
}

fn place(key: u128, bits: u32) -> usize {
    let mixed = (key as u64 ^ (key >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - bits)) as usize
}

fn without_count(key: u128) -> u128 {
    key & !(0xf << COUNT)
}

/// Up to fifteen bytes, and how many.
fn key(text: &str, start: usize, length: usize) -> u128 {
    sixteen(text, start, length) & !(u128::MAX << (8 * length)) | (length as u128) << (COUNT + 4)
}

/// Sixteen bytes, of which so many are asked for: others may follow.
fn sixteen(text: &str, start: usize, length: usize) -> u128 {
    let bytes = &text.as_bytes()[start..];
    u128::from_le_bytes(bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut part = [0; HALF];
        part[..length].copy_from_slice(&bytes[..length]);
        part
    }))
}
