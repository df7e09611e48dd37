//! Sixty-four bytes at once: what is true of each becomes a bit of a number.

/// How many bytes are looked at.
pub(crate) const BLOCK: usize = 64;

/// A bit for each byte that is so, the first one lowest. Written without branches, so that a
/// compiler looks at many bytes in one instruction.
pub(crate) fn bits(bytes: &[u8; BLOCK], is: impl Fn(u8) -> bool) -> u64 {
    let flags = bytes.map(|byte| u8::from(is(byte)));
    // Eight flags are gathered in the highest byte of a product.
    let (eights, _) = flags.as_chunks();
    let gather = |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    eights.iter().rev().fold(0, |all, eight| all << 8 | gather(eight))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_is_the_lowest_bit() {
        let bytes = std::array::from_fn(|at| at as u8);
        assert_eq!(bits(&bytes, |byte| byte == 0), 1);
        assert_eq!(
            bits(&bytes, |byte| byte % 9 == 1 || byte > 60),
            (0..64).fold(0, |all, at| { all | u64::from(at % 9 == 1 || at > 60) << at })
        );
    }
}
