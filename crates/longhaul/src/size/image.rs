//! How many tokens a picture is: by its pixels and the provider's rule, never by its bytes.

use serde::{Deserialize, Serialize};

use crate::size::tokens::Tokens;

/// How a provider bills pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageRule {
    /// Anthropic: width × height / 750, scaled down to 1,600 tokens at most.
    Claude,
    /// OpenAI's older models: 85, and 170 per tile of 512 pixels after scaling to 2,048 × 768.
    #[default]
    Tiles,
    /// OpenAI's newer models: patches of 32 pixels, 1,536 at most.
    Patches,
    /// Google: 258 per tile of 768 pixels.
    Gemini,
}

/// A picture of unknown size.
pub const UNKNOWN: Tokens = Tokens(85);

impl ImageRule {
    /// The tokens of a picture of this size in pixels.
    ///
    /// ```
    /// use longhaul::Tokens;
    /// use longhaul::size::ImageRule;
    /// assert_eq!(ImageRule::Claude.tokens((1000, 750)), Tokens(1000));
    /// assert_eq!(ImageRule::Tiles.tokens((1024, 1024)), Tokens(765));
    /// ```
    pub fn tokens(self, (width, height): (u32, u32)) -> Tokens {
        let (w, h) = (u64::from(width.max(1)), u64::from(height.max(1)));
        Tokens(match self {
            Self::Claude => (w * h).div_ceil(750).min(1600),
            Self::Tiles => {
                let (w, h) = fit(w, h, w.max(h), 2048);
                let (w, h) = fit(w, h, w.min(h), 768);
                85 + 170 * w.div_ceil(512) * h.div_ceil(512)
            }
            Self::Patches => (w.div_ceil(32) * h.div_ceil(32)).min(1536),
            Self::Gemini if w <= 384 && h <= 384 => 258,
            // Larger pictures are scaled down before they are cut into tiles.
            Self::Gemini => 258 * (w.div_ceil(768) * h.div_ceil(768)).min(64),
        })
    }
}

/// Scales so that `side`, one of width and height, is at most `limit`.
fn fit(w: u64, h: u64, side: u64, limit: u64) -> (u64, u64) {
    if side <= limit { (w, h) } else { ((w * limit / side).max(1), (h * limit / side).max(1)) }
}

/// Reads width and height from the first bytes of a PNG, GIF, JPEG or WebP file.
pub fn size_of(file: &[u8]) -> Option<(u32, u32)> {
    let be16 = |at: usize| Some(u32::from(u16::from_be_bytes(file.get(at..at + 2)?.try_into().ok()?)));
    let le16 = |at: usize| Some(u32::from(u16::from_le_bytes(file.get(at..at + 2)?.try_into().ok()?)));
    let be32 = |at: usize| Some(u32::from_be_bytes(file.get(at..at + 4)?.try_into().ok()?));
    let le24 = |at: usize| Some(le16(at)? | u32::from(*file.get(at + 2)?) << 16);
    if file.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Some((be32(16)?, be32(20)?));
    }
    if file.starts_with(b"GIF8") {
        return Some((le16(6)?, le16(8)?));
    }
    if file.starts_with(b"RIFF") && file.get(8..12)? == b"WEBP" {
        return match file.get(12..16)? {
            b"VP8 " => Some((le16(26)? & 0x3fff, le16(28)? & 0x3fff)),
            b"VP8L" => {
                let bits = u32::from_le_bytes(file.get(21..25)?.try_into().ok()?);
                Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
            }
            b"VP8X" => Some((le24(24)? + 1, le24(27)? + 1)),
            _ => None,
        };
    }
    if file.starts_with(&[0xff, 0xd8]) {
        let mut at = 2;
        // Segments follow each other until a start-of-frame, which has the size.
        while *file.get(at)? == 0xff {
            let marker = *file.get(at + 1)?;
            if matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc) {
                return Some((be16(at + 7)?, be16(at + 5)?));
            }
            at += 2 + be16(at + 2)? as usize;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_from_headers() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        png.extend([0, 0, 4, 0, 0, 0, 3, 0]);
        assert_eq!(size_of(&png), Some((1024, 768)));
        assert_eq!(size_of(b"GIF89a\x40\x01\xf0\x00"), Some((320, 240)));
        let jpeg = [0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2, 0xff, 0xc2, 0, 11, 8, 0, 100, 0, 200];
        assert_eq!(size_of(&jpeg), Some((200, 100)));
        let mut webp = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0".to_vec();
        webp.extend([0x8f, 2, 0, 0xdf, 1, 0]);
        assert_eq!(size_of(&webp), Some((656, 480)));
    }

    #[test]
    fn cut_or_foreign_files_have_no_size() {
        assert_eq!(size_of(b""), None);
        assert_eq!(size_of(b"\x89PNG\r\n\x1a\n"), None);
        assert_eq!(size_of(&[0xff, 0xd8, 0xff]), None);
        assert_eq!(size_of(b"hello"), None);
    }

    #[test]
    fn a_picture_never_costs_what_its_bytes_would() {
        for rule in [ImageRule::Claude, ImageRule::Tiles, ImageRule::Patches] {
            assert!(rule.tokens((8000, 8000)) <= Tokens(2000), "{rule:?}");
            assert!(rule.tokens((0, 0)) > Tokens::ZERO);
            assert!(rule.tokens((u32::MAX, u32::MAX)) <= Tokens(2000), "{rule:?}");
        }
    }
}
