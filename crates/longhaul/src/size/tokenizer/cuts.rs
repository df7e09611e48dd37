//! Where text may be cut: places at which every pre-token pattern ends a piece, whatever stands
//! further before or behind. No pattern looks back, so that a cut there changes no count. They
//! are found for 64 bytes at once, without a branch.

use crate::text::bits::{BLOCK, bits};

/// What a byte is, one bit each. There is no cut beside a byte that is none of these: patterns
/// treat what is not ASCII, and control characters, in several ways.
const LETTER: u8 = 1;
const DIGIT: u8 = 2;
const SIGN: u8 = 4;
/// It may join a word to its ending: `'s`.
const QUOTE: u8 = 8;
/// Some patterns take it with the newlines before it.
const SLASH: u8 = 16;
const SPACE: u8 = 32;
const NEWLINE: u8 = 64;
/// The first byte of a character that is neither ASCII nor white space.
const WIDE: u8 = 128;
const SIGNS: u8 = SIGN | QUOTE | SLASH;

/// Bytes before and behind a block that decide with it.
const BEFORE: usize = 4;
const BEHIND: usize = 4;
const WINDOW: usize = BEFORE + BLOCK + BEHIND;

/// Calls `cut` with all cuts of a text, in order, and with its end. `digits`: whether the space
/// before a number is apart from other spaces before it.
pub(super) fn cuts(text: &[u8], digits: bool, mut cut: impl FnMut(usize)) {
    for start in (0..text.len()).step_by(BLOCK) {
        let mut window = [0; WINDOW];
        match start.checked_sub(BEFORE).and_then(|from| text.get(from..from + WINDOW)) {
            Some(whole) => window.copy_from_slice(whole),
            None => {
                let (from, to) = (start.saturating_sub(BEFORE), text.len().min(start + BLOCK + BEHIND));
                window[from + BEFORE - start..][..to - from].copy_from_slice(&text[from..to]);
            }
        }
        let mut cuts = cuts_of(&window, digits);
        while cuts != 0 {
            cut(start + cuts.trailing_zeros() as usize);
            cuts &= cuts - 1;
        }
    }
    cut(text.len());
}

/// A bit for each byte of the block before which there is a cut.
fn cuts_of(window: &[u8; WINDOW], digits: bool) -> u64 {
    let mut kinds = [0; WINDOW];
    for at in 2..WINDOW - 2 {
        let first = is_symbol(window[at], window[at + 1], window[at + 2]);
        let last = is_symbol(window[at - 2], window[at - 1], window[at]);
        let wide = is_wide(window[at], window[at + 1]);
        kinds[at] = kind(window[at]) | if first | last { SIGN } else { 0 } | if wide { WIDE } else { 0 };
    }
    let spaced = LETTER | SIGNS | if digits { DIGIT } else { 0 };
    let mut cut = [0; BLOCK];
    for (at, cut) in cut.iter_mut().enumerate() {
        let [second, before, now, next] = [2, 3, 4, 5].map(|offset| kinds[at + offset]);
        let ends = is(before, LETTER) & (DIGIT | SIGN | SLASH | SPACE | NEWLINE)
            | is(before, DIGIT) & (LETTER | SIGNS | SPACE | NEWLINE)
            // Newlines belong to the signs before them.
            | is(before, SIGNS) & (DIGIT | SPACE)
            // One sign belongs to the letters behind it; several, or one behind a space, do not.
            | is(before, SIGNS) & is(second, SIGN | QUOTE) & LETTER
            | is(before, SIGNS) & (if window[at + 2] == b' ' { LETTER } else { 0 })
            // The last of several spaces belongs to what follows.
            | is(before, SPACE) & is(next, spaced) & SPACE
            | is(before, NEWLINE) & (LETTER | DIGIT | SIGN | QUOTE | WIDE);
        *cut = ends & now;
    }
    bits(&cut, |cut| cut != 0)
}

fn kind(byte: u8) -> u8 {
    let visible = if byte.wrapping_sub(b'!') < 94 { SIGN } else { 0 };
    let kind = if (byte | 0x20).wrapping_sub(b'a') < 26 { LETTER } else { visible };
    let kind = if byte.wrapping_sub(b'0') < 10 { DIGIT } else { kind };
    let kind = if byte == b'\'' { QUOTE } else { kind };
    let kind = if byte == b'/' { SLASH } else { kind };
    let kind = if byte == b' ' || byte == b'\t' { SPACE } else { kind };
    if byte == b'\n' || byte == b'\r' { NEWLINE } else { kind }
}

/// Whether these are the bytes of a symbol: an arrow, a sign of mathematics, a line, a block, a
/// shape (U+2190 to U+23FF, U+2500 to U+25FF). No pattern takes one for anything else.
fn is_symbol(first: u8, second: u8, third: u8) -> bool {
    let row = second.wrapping_sub(0x86);
    let arrows = (row <= 0x09) & ((row > 0) | (third >= 0x90));
    (first == 0xe2) & (arrows | (second.wrapping_sub(0x94) <= 3))
}

/// Whether a character that begins so is certainly no white space: none of U+0080 to U+00BF,
/// U+1000 to U+2FFF, U+3000 to U+303F.
fn is_wide(first: u8, second: u8) -> bool {
    let white = (first == 0xe1) | (first == 0xe2) | ((first == 0xe3) & (second == 0x80));
    (first.wrapping_sub(0xc3) <= 0xf4 - 0xc3) & !white
}

/// All bits, if a kind is one of these.
fn is(kind: u8, of: u8) -> u8 {
    if kind & of != 0 { 0xff } else { 0 }
}
