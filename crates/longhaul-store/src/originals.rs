//! Which originals an entry of a journal names, and how a handle that is cut short is looked up. A table of each
//! database maps handles to the entries that name them, so that a recall needs one lookup however many sessions are stored.

use longhaul::session::journal::Entry;
use longhaul::{EditKind, Handle};

use crate::rows::bytes_of;

/// At most so many sessions are returned for a handle, the newest first: one of them is enough.
pub(crate) const HOLDERS: usize = 8;

/// Sessions of a tenant that a lookup lists itself where an older version stored sessions that nobody has listed yet.
pub(crate) const LISTED_BY_LOOKUP: usize = 20;

/// Entries that are read at once while stored sessions are listed.
pub(crate) const AT_ONCE: usize = 2_000;

/// The handles that an entry makes known: what its edit took out, the answer it gave instead, thinking that went with it,
/// and texts of facts, which may be shown cut.
pub(crate) fn named_by(entry: &Entry) -> Vec<Handle> {
    match entry {
        Entry::Edit(edit) => {
            let answer = match &edit.kind {
                EditKind::Answer { text, .. } => Some(text.handle()),
                _ => None,
            };
            let kept = match &edit.kind {
                EditKind::Fold { kept, .. } => kept.as_slice(),
                _ => &[],
            };
            let kept = kept.iter().map(|kept| kept.text);
            edit.originals.iter().copied().chain(answer).chain(kept).collect()
        }
        Entry::HostNote { kept, .. } => kept.iter().map(|kept| kept.text).collect(),
        Entry::Unbound(unbound) => unbound.lost.iter().map(|lost| lost.original).collect(),
        Entry::Fact(fact) => fact.text.iter().map(|text| Handle::of(text)).collect(),
        _ => Vec::new(),
    }
}

/// The handle of these bytes.
pub(crate) fn handle_of(bytes: [u8; 16]) -> Option<Handle> {
    format!("{:032x}", u128::from_be_bytes(bytes)).parse().ok()
}

/// The lowest and the highest handle that start with these digits; `None` if they are not the start of a handle.
pub(crate) fn range_of(start: &str) -> Option<([u8; 16], [u8; 16])> {
    let digits = start.len();
    if digits > 32 || !start.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let filled = |digit: &str| {
        let handle: Option<Handle> = format!("{start}{}", digit.repeat(32 - digits)).parse().ok();
        handle.map(bytes_of)
    };
    Some((filled("0")?, filled("f")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_handle_is_a_range() {
        let (low, high) = range_of("3F9a5").unwrap();
        assert_eq!((low[..3].to_vec(), high[..3].to_vec()), (vec![0x3f, 0x9a, 0x50], vec![0x3f, 0x9a, 0x5f]));
        assert_eq!((low[15], high[15]), (0, 255));
        let whole = Handle::of("text");
        assert_eq!(range_of(&whole.to_string()), Some((bytes_of(whole), bytes_of(whole))));
        for bad in ["3f9g", "+1", "ü", &"a".repeat(33)] {
            assert_eq!(range_of(bad), None, "{bad}");
        }
    }
}
