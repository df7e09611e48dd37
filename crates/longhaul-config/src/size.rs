//! Numbers of bytes and of tokens, as people write them.

/// Letters, and how many bytes each stands for: powers of 1,024.
const UNITS: [(char, u64); 4] = [('k', 1 << 10), ('m', 1 << 20), ('g', 1 << 30), ('t', 1 << 40)];

/// The bytes that a text names: `1048576`, `32k`, `64M`, `10G`, `2T`, with `B` or `iB` behind them or not. `k` is
/// 1,024 bytes. `None` if it names none.
///
/// ```
/// use longhaul_config::size_of;
/// assert_eq!(size_of("32k"), Some(32_768));
/// assert_eq!(size_of("10G"), size_of("10 GiB"));
/// assert_eq!(size_of("much"), None);
/// ```
pub fn size_of(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase().replace('_', "");
    let text = text.strip_suffix("ib").or_else(|| text.strip_suffix('b')).unwrap_or(&text);
    let (number, unit) = match UNITS.iter().find(|(letter, _)| text.ends_with(*letter)) {
        Some((_, unit)) => (&text[..text.len() - 1], *unit),
        None => (text, 1),
    };
    let number = number.trim_end();
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { number.parse::<u64>().ok()?.checked_mul(unit) } else { None }
}

/// The tokens that a text names: `64000`, `64_000`, `32k`, `1M`, `1.5M`. `k` is 1,000 tokens: a window of 32k has
/// 32,000. `None` if it names none.
///
/// ```
/// use longhaul_config::tokens_of;
/// assert_eq!(tokens_of("32k"), Some(32_000));
/// assert_eq!(tokens_of("1.5M"), tokens_of("1_500_000"));
/// assert_eq!(tokens_of("much"), None);
/// ```
pub fn tokens_of(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase().replace(['_', ','], "");
    let (number, unit) = match text.strip_suffix('k').map(|number| (number, 1_000)) {
        Some(thousands) => thousands,
        None => text.strip_suffix('m').map_or((text.as_str(), 1), |number| (number, 1_000_000)),
    };
    let (whole, part) = number.trim_end().split_once('.').unwrap_or((number.trim_end(), "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // More places than the unit has would be parts of a token.
    if !digits(whole) || !digits(part) || part.len() > 6 {
        return None;
    }
    let parts = part.parse::<u64>().ok()?.checked_mul(unit)?;
    let scale = 10_u64.pow(part.len() as u32);
    if parts % scale != 0 {
        return None;
    }
    whole.parse::<u64>().ok()?.checked_mul(unit)?.checked_add(parts / scale)
}

/// Bytes in the largest unit that they are a whole number of.
pub(crate) fn shown_size(bytes: u64) -> String {
    let unit = UNITS.iter().rev().find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit));
    match unit {
        Some((letter, unit)) => {
            let letter = if *letter == 'k' { 'k' } else { letter.to_ascii_uppercase() };
            format!("{}{letter}", bytes / unit)
        }
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_meant() {
        for (text, bytes) in [
            ("0", 0),
            ("1_000", 1_000),
            ("12", 12),
            ("12B", 12),
            ("32k", 32 << 10),
            ("32K", 32 << 10),
            ("64MB", 64 << 20),
            ("10 G", 10 << 30),
            ("1TiB", 1 << 40),
        ] {
            assert_eq!(size_of(text), Some(bytes), "{text}");
        }
        for text in ["", "k", "-1", "+1", "1.5G", "1kk", "1e3", "99999999999999T", "10X", "1 2"] {
            assert_eq!(size_of(text), None, "{text}");
        }
        for (text, tokens) in
            [("1,000", 1_000), ("32K", 32_000), ("1m", 1_000_000), ("0.5k", 500), ("1.048576M", 1_048_576)]
        {
            assert_eq!(tokens_of(text), Some(tokens), "{text}");
        }
        for text in
            ["", "k", ".5k", "1.", "1.5", "1.0005k", "-1", "1G", "1 2", "99999999999999M", "1.9999999M"]
        {
            assert_eq!(tokens_of(text), None, "{text}");
        }
        for text in ["0", "17", "32k", "64M", "10G", "3T"] {
            assert_eq!(size_of(text).map(shown_size).as_deref(), Some(text));
        }
    }
}
