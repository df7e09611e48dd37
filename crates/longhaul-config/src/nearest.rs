//! What was meant: the known name that is nearest to one that nobody knows.

/// The name that differs least; empty if there is none.
pub fn nearest<K: AsRef<str>>(name: &str, known: impl IntoIterator<Item = K>) -> String {
    let nearest = known.into_iter().min_by_key(|known| distance(name, known.as_ref()));
    nearest.map(|known| known.as_ref().to_owned()).unwrap_or_default()
}

/// How many letters must be changed, added or left out to make one of the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_letters_differ() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(nearest("minni", ["longhaul", "mini", "archive"]), "mini");
        assert_eq!(nearest("mini", Vec::<String>::new()), "");
    }
}
