//! Files that patches in a script name, by the headers of patches alone. The reader has limits, and patches may come from
//! where it does not look; but a file that a script patched is always named.

use std::collections::HashSet;

use super::reader::unescaped;

/// The headers of a patch that name a file.
const HEADERS: [&str; 4] = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "];
/// What all of them begin with.
const SIGN: &str = "*** ";
/// No path is longer, in bytes.
const LONGEST: usize = 1_024;
/// Headers of one script.
const MOST: usize = 1_024;

/// The headers with their paths that stand literally in a text: a script, or the JSON of a call's arguments. A path of
/// which the script computes a part is not among them.
pub(super) fn headers(text: &str) -> impl Iterator<Item = String> {
    let found = text.match_indices(SIGN).filter_map(|(at, _)| {
        let rest = &text[at..];
        let header = HEADERS.iter().find(|header| rest.starts_with(**header))?;
        let path = path(&rest[header.len()..])?;
        Some(format!("{header}{path}"))
    });
    found.take(MOST)
}

/// A patch with the headers of a script that none of these texts has; `None` if they have all of them.
pub(super) fn missing<'a>(source: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut named: Option<HashSet<String>> = None;
    let mut known = Some(known);
    let mut missing = String::new();
    for header in headers(source) {
        let named =
            named.get_or_insert_with(|| known.take().into_iter().flatten().flat_map(headers).collect());
        if !named.contains(&header) {
            missing.push_str(&header);
            missing.push('\n');
            named.insert(header);
        }
    }
    (!missing.is_empty()).then(|| format!("*** Begin Patch\n{missing}*** End Patch"))
}

/// The path that a text begins with: the rest of its line, or of the literal that it stands in.
fn path(text: &str) -> Option<String> {
    let text = &text[..text.floor_char_boundary(LONGEST)];
    let mut signs = text.char_indices().peekable();
    let end = loop {
        let Some((at, sign)) = signs.next() else { break text.len() };
        let rest = &text[at + sign.len_utf8()..];
        match sign {
            '\n' | '\r' => break at,
            '$' if rest.starts_with('{') => return None,
            '\\' if ends_line(rest) => break at,
            // Whatever is escaped is part of the path.
            '\\' => _ = signs.next(),
            '"' | '\'' | '`' if ends_literal(rest) => {
                if adds_to_path(rest) {
                    return None;
                }
                break at;
            }
            _ => {}
        }
    };
    let path = unescaped(&text[..end]);
    let path = path.trim();
    (!path.is_empty()).then(|| path.to_owned())
}

/// True if a backslash before this text ends a line: `\n`, or the same inside a literal of a literal, where the next
/// line of a patch follows.
fn ends_line(rest: &str) -> bool {
    let deeper = rest.trim_start_matches('\\');
    let Some(next) = deeper.strip_prefix(['n', 'r']) else { return false };
    deeper.len() == rest.len()
        || next.is_empty()
        || next.starts_with(['@', '*', '+', '-', ' ', '\\', '"', '\'', '`'])
}

/// True if a quotation mark before this text ends a literal, not only a word in it.
fn ends_literal(rest: &str) -> bool {
    let next = rest.trim_start_matches([' ', '\t']);
    next.is_empty()
        || next.starts_with([',', ')', ';', '+', ']', '}', '\n', '\r', '.', ':', '\\', '"', '\'', '`'])
}

/// True if the script adds something to the literal that ends before this text, and that is not the end of the line.
fn adds_to_path(rest: &str) -> bool {
    let Some(added) = rest.trim_start().strip_prefix('+') else { return false };
    let added = added.trim_start().trim_start_matches(['"', '\'', '`']);
    !(added.starts_with('\n') || added.starts_with("\\n") || added.starts_with("\\r"))
}
