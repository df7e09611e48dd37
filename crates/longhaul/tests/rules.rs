//! `docs/rules.md` and the ids that tests and mutants name belong together; and the tests that `docs/security.md` names exist.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The rules of the page, and whether each is implemented.
fn rules() -> BTreeMap<String, bool> {
    let page = std::fs::read_to_string(root().join("docs/rules.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    rows.filter(|(id, _)| is_id(id)).map(|(id, text)| (id.to_owned(), !text.starts_with("*Open.*"))).collect()
}

fn is_id(word: &str) -> bool {
    word.split_once('-').is_some_and(|(letter, rest)| {
        ["M", "T", "A", "P", "S"].contains(&letter)
            && !rest.is_empty()
            && rest.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
    })
}

/// Every file below a folder whose name ends so, but for what was built.
fn files(folder: &Path, ends: &[&str], found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name());
        match path.is_dir() {
            true if name != "target" => files(&path, ends, found),
            false if ends.iter().any(|end| name.to_string_lossy().ends_with(end)) => found.push(path),
            _ => {}
        }
    }
}

/// The ids behind `covers:`, each with the first file that names it.
fn covered() -> BTreeMap<String, PathBuf> {
    let mut found = Vec::new();
    files(&root().join("crates"), &[".rs"], &mut found);
    let mut covered = BTreeMap::new();
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        for ids in text.lines().filter_map(|line| line.trim().strip_prefix("// covers: ")) {
            for id in ids.split([',', ' ']).map(|id| id.trim_end_matches('.')).filter(|id| is_id(id)) {
                covered.entry(id.to_owned()).or_insert_with(|| path.clone());
            }
        }
    }
    covered
}

#[test]
fn every_id_that_a_test_names_is_a_rule_and_every_rule_has_a_test() {
    let (rules, covered) = (rules(), covered());
    assert!(rules.len() > 60, "{} rules were found", rules.len());
    let unknown: Vec<_> = covered.iter().filter(|(id, _)| !rules.contains_key(*id)).collect();
    assert!(unknown.is_empty(), "not in docs/rules.md: {unknown:?}");
    let untested: BTreeSet<_> = rules
        .iter()
        .filter(|(id, is_done)| **is_done && !covered.contains_key(*id))
        .map(|(id, _)| id)
        .collect();
    assert!(untested.is_empty(), "rules without a test: {untested:?}");
    let done: Vec<_> = rules.iter().filter(|(id, is_done)| !**is_done && covered.contains_key(*id)).collect();
    assert!(done.is_empty(), "still marked as open in docs/rules.md: {done:?}");
}

#[test]
fn every_test_that_the_page_on_security_names_exists() {
    let page = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    let named = page.split('`').filter_map(|name| name.split_once("::"));
    let named: Vec<_> = named.filter_map(|(file, test)| Some((file.split_once('/')?, test))).collect();
    assert!(named.len() > 30, "{} tests were found", named.len());
    for ((package, file), test) in named {
        let path = root().join(format!("crates/{package}/tests/{file}.rs"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        assert!(text.contains(&format!("fn {test}(")), "{path:?} has no test {test}");
    }
}
