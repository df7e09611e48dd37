//! What was meant: the known name that is nearest to one that nobody knows.

/// The name that differs least; empty if there is none.
pub fn nearest<K: AsRef<str>>(name: &str, known: impl IntoIterator<Item = K>) -> String {
    let nearest = known.into_iter().min_by_key(|known| distance(name, known.as_ref()));
    nearest.map(|known| known.as_ref().to_owned()).unwrap_or_default()
}

/// The name that may be meant: one that has this in it, the last of them in the order of the alphabet; else the nearest, if
/// few letters differ.
pub fn meant<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known.iter().min_by_key(|known| distance(name, known));
    let near = near.filter(|near| distance(name, near) <= name.chars().count() / 3);
    known.iter().filter(|known| known.contains(name)).max().or(near).copied()
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
        let models = ["o3", "gpt-5.5", "claude-sonnet-4-5"];
        assert_eq!(meant("gtp-5.5", &models), Some("gpt-5.5"));
        assert_eq!(meant("sonnet", &models), Some("claude-sonnet-4-5"));
        assert_eq!(meant("nope", &models), None);
    }
}
