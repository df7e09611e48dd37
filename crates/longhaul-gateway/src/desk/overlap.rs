//! How far the end of one list is the start of another, in one pass over both.

/// How many items at the end of `before` stand at the start of `after`: as many as possible.
pub(super) fn overlap<T: PartialEq>(before: &[T], after: &[T]) -> usize {
    let after = &after[..after.len().min(before.len())];
    let shorter = shorter(after);
    let mut same = 0;
    for item in before {
        while same > 0 && after.get(same) != Some(item) {
            same = shorter[same - 1];
        }
        same += usize::from(after.get(same) == Some(item));
    }
    same
}

/// For each start of a list, the longest shorter start that it also ends with (Knuth, Morris and Pratt).
fn shorter<T: PartialEq>(list: &[T]) -> Vec<usize> {
    let mut shorter = vec![0; list.len()];
    let mut same = 0;
    for at in 1..list.len() {
        while same > 0 && list[same] != list[at] {
            same = shorter[same - 1];
        }
        same += usize::from(list[same] == list[at]);
        shorter[at] = same;
    }
    shorter
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::overlap;

    /// The plain definition.
    fn plainly(before: &[u8], after: &[u8]) -> usize {
        (0..=before.len()).rev().find(|count| after.starts_with(&before[before.len() - count..])).unwrap_or(0)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn it_is_what_its_definition_says(
            before in prop::collection::vec(0..3_u8, 0..24),
            after in prop::collection::vec(0..3_u8, 0..24),
            again in 0..24_usize,
        ) {
            prop_assert_eq!(overlap(&before, &after), plainly(&before, &after));
            // One that overlaps for sure.
            let kept = &before[again.min(before.len())..];
            let going_on: Vec<u8> = kept.iter().chain(&after).copied().collect();
            prop_assert_eq!(overlap(&before, &going_on), plainly(&before, &going_on));
        }
    }
}
