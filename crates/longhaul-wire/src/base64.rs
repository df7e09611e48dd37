//! The start of base64 data, decoded: enough to read a picture's size from its header.

/// Decodes up to `most` bytes; stops at the first character that is not base64.
pub(crate) fn decode_start(text: &str, most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut bits, mut have) = (0u32, 0);
    for c in text.bytes() {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        have += 6;
        if have >= 8 {
            have -= 8;
            bytes.push((bits >> have) as u8);
            if bytes.len() == most {
                break;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_until_enough_or_foreign() {
        assert_eq!(decode_start("aGVsbG8=", 100), b"hello");
        assert_eq!(decode_start("aGVsbG8=", 2), b"he");
        assert_eq!(decode_start("!", 2), b"");
    }
}
