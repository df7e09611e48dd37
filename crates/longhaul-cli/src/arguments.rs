//! Values of flags as people write them, and what is said of a name that nobody knows.

use std::io::Write;

use longhaul::Models;
use longhaul_config::{meant, tokens_of};
pub use longhaul_inspector::lines;

/// The least and the most tokens that a window may have.
const WINDOWS: std::ops::RangeInclusive<u64> = 1_000..=100_000_000;

/// Tokens of a window: `64000`, `64k`, `1M`.
pub fn window(text: &str) -> Result<u64, String> {
    let problem = "not a number of tokens from 1k to 100M, such as 64000, 64k or 1M";
    tokens_of(text).filter(|tokens| WINDOWS.contains(tokens)).ok_or_else(|| problem.to_owned())
}

/// Tokens, at least one: `64000`, `64k`.
pub fn tokens(text: &str) -> Result<u64, String> {
    let problem = "not a number of tokens, such as 8000 or 8k";
    tokens_of(text).filter(|tokens| *tokens > 0).ok_or_else(|| problem.to_owned())
}

/// True if the model of this name binds thinking to what stands before it.
pub fn binds(model: Option<&str>) -> bool {
    model.is_some_and(|name| Models::builtin().find(name).binds)
}

/// Says that the table of models has no row for a name, and which may be meant.
pub fn say_unknown_model(name: &str) {
    let models = Models::builtin();
    if name.is_empty() || !models.find(name).is_unknown() {
        return;
    }
    let known: Vec<&str> = models.iter().map(|model| &*model.name).collect();
    let meant = meant(&name.to_lowercase(), &known);
    let meant = meant.map_or(".".to_owned(), |meant| format!("; is {meant:?} meant?"));
    let name = crate::terminal::one_line(name, 60);
    _ = writeln!(
        std::io::stderr(),
        "the model {name:?} is not in the table{meant} Where a transcript names none, window, tokens and price are guessed."
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_read_as_people_write_them() {
        assert_eq!([window("64000"), window("32k"), window("1M")], [Ok(64_000), Ok(32_000), Ok(1_000_000)]);
        assert!(["", "999", "1G", "200M", "-1"].iter().all(|text| window(text).is_err()));
    }
}
