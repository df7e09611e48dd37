//! Version floors: a row of the table of models that holds for all versions of a family from one on. This module finds
//! family and version in the names under which providers, clouds and routers offer a model. It knows no model.

/// A version as names write it: `5`, `5-5`, `5.5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    major: u8,
    minor: u8,
}

impl Version {
    /// What a name without a version means: `claude-opus-latest`.
    const NEWEST: Self = Self { major: u8::MAX, minor: u8::MAX };

    /// The version that a text begins with: `5-5-20260801` is 5.5, `5-20260801` is 5.0.
    fn leading(text: &str) -> Option<Self> {
        let (major, rest) = number(text)?;
        let minor = rest.strip_prefix(SEPARATORS).and_then(number).map_or(0, |(minor, _)| minor);
        Some(Self { major, minor })
    }
}

/// What may stand between a family, its major and its minor version.
const SEPARATORS: [char; 3] = ['-', '.', '_'];

/// A number of one or two digits, and the text after it. Longer numbers are dates, and digits before a letter are sizes
/// (`1m`, `70b`).
fn number(text: &str) -> Option<(u8, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let is_version = digits.len() <= 2 && !rest.starts_with(|c: char| c.is_alphanumeric());
    Some((digits.parse().ok().filter(|_| is_version)?, rest))
}

/// The lowest version of a family that a row is for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Floor {
    /// As the table writes it: `claude-opus 5.5`.
    pub text: Box<str>,
    /// What names of the family begin with.
    family: Box<str>,
    /// `claude-* 5`: any words before the version belong to the family.
    any_word: bool,
    version: Version,
}

impl Floor {
    /// `family version`, in lower case.
    pub fn parse(text: &str) -> Option<Self> {
        let (family, version) = text.split_once(' ')?;
        let (family, any_word) = family.strip_suffix('*').map_or((family, false), |start| (start, true));
        let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
        let version = Version { major: major.parse().ok()?, minor: minor.parse().ok()? };
        (!family.is_empty()).then(|| Self { text: text.into(), family: family.into(), any_word, version })
    }

    /// How closely a name in lower case fits, if it is of this family and not older: the floor of the longest family is
    /// closest, of one family that of the highest version.
    pub fn fit(&self, name: &str) -> Option<impl Ord + use<>> {
        let found = name.match_indices(&*self.family).filter(|(at, _)| is_start(&name[..*at]));
        let versions = found.filter_map(|(at, family)| self.version_in(&name[at + family.len()..]));
        (versions.max()? >= self.version).then_some((self.family.len(), self.version))
    }

    /// The version in what follows the start of the family's name.
    fn version_in(&self, rest: &str) -> Option<Version> {
        if self.any_word {
            let (words, version) = rest.split_at(rest.find(|c: char| c.is_ascii_digit())?);
            return Version::leading(version).filter(|_| words.len() > 1 && words.ends_with(SEPARATORS));
        }
        // `claude-opuscule` is another family than `claude-opus`.
        let is_whole = !rest.starts_with(|c: char| c.is_alphanumeric());
        let version = rest.strip_prefix(SEPARATORS).and_then(Version::leading).unwrap_or(Version::NEWEST);
        is_whole.then_some(version)
    }
}

/// Whether a family's name may begin after this text: at the start, after what a cloud or a router puts before it
/// (`us.anthropic.`, `databricks-`), not inside the name of another model (`gemma-4-27b-claude-opus-4.6-distill`).
fn is_start(before: &str) -> bool {
    match before.chars().next_back() {
        None | Some('.' | ':' | '@') => true,
        Some('-' | '_') => !before.contains(|c: char| c.is_ascii_digit()),
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_follow_a_family() {
        let version = |rest: &str| Version::leading(rest).map(|Version { major, minor }| (major, minor));
        for (rest, expected) in [
            ("5", Some((5, 0))),
            ("5-5", Some((5, 5))),
            ("5.5", Some((5, 5))),
            ("5_10", Some((5, 10))),
            ("5-5-20260801-v1:0", Some((5, 5))),
            ("5-20260801", Some((5, 0))),
            ("5@20260801", Some((5, 0))),
            ("5-5[1m]", Some((5, 5))),
            ("5-1m", Some((5, 0))),
            ("5-v1:0", Some((5, 0))),
            ("5:thinking", Some((5, 0))),
            ("20260801", None),
            ("70b", None),
            ("latest", None),
            ("", None),
        ] {
            assert_eq!(version(rest), expected, "{rest}");
        }
    }

    #[test]
    fn a_floor_holds_from_its_version_on() {
        let fits = |floor: &str, name: &str| Floor::parse(floor).unwrap().fit(name).is_some();
        for (floor, name, expected) in [
            ("claude-opus 5.5", "claude-opus-5-5", true),
            ("claude-opus 5.5", "claude-opus-5-10", true),
            ("claude-opus 5.5", "claude-opus-6", true),
            ("claude-opus 5.5", "claude-opus-5", false),
            ("claude-opus 5.5", "claude-opus", true),
            ("claude-opus 5.5", "claude-opus-latest", true),
            ("claude-opus 5.5", "us.anthropic.claude-opus-5-5-20260801-v1:0", true),
            ("claude-opus 5.5", "databricks-claude-opus-5-5", true),
            ("claude-opus 5.5", "gemma-4-27b-claude-opus-5.5-distill", false),
            ("claude-opus 5.5", "xclaude-opus-5-5", false),
            ("claude-opus 5.5", "claude-opuscule-6", false),
            ("claude-* 5", "claude-saga-6", true),
            ("claude-* 5", "claude-saga-mini-6", true),
            ("claude-* 5", "claude-säga-6", true),
            ("claude-* 5", "claude-saga", false),
            ("claude-* 5", "claude-instant-1.2", false),
            ("claude-* 5", "claude-6", false),
            ("claude 0", "claude", true),
            ("claude 5", "claude-opus-4", true),
            ("claude 5", "claude-4-opus", false),
        ] {
            assert_eq!(fits(floor, name), expected, "{floor}: {name}");
        }
    }

    #[test]
    fn the_longest_family_is_closest_then_the_highest_version() {
        let fit = |floor: &str| Floor::parse(floor).unwrap().fit("claude-opus-5-6").unwrap();
        assert!(fit("claude-opus 5.5") > fit("claude-opus 5"));
        assert!(fit("claude-opus 4") > fit("claude-* 5"));
        assert!(fit("claude-* 5") > fit("claude 0"));
    }

    #[test]
    fn a_floor_names_a_family_and_a_version() {
        for text in ["claude-opus", "claude-opus x", "claude-opus 5.x", " 5", "* 5", "claude-opus 5 5", ""] {
            assert_eq!(Floor::parse(text), None, "{text}");
        }
    }
}
