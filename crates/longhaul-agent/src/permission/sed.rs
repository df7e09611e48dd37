//! Scripts of sed: whether they only edit text. Its command `e` and a flag of the same name run commands.

use super::command::Word;

/// Whether sed does nothing with these arguments but print, delete and replace. Its `e` runs commands.
pub(super) fn only_edits(arguments: &[Word]) -> bool {
    let (mut rest, mut has_script) = (arguments.iter(), false);
    while let Some(word) = rest.next() {
        let text = word.text.as_str();
        let is_script = match text {
            _ if !word.is_exact => false,
            "-e" => {
                let script = rest.next();
                has_script = true;
                if !script.is_some_and(|script| script.is_exact && is_simple_script(&script.text)) {
                    return false;
                }
                continue;
            }
            "--quiet" | "--silent" | "--regexp-extended" | "--in-place" => continue,
            _ if text.starts_with('-') && text[1..].chars().all(|c| "nirEsz".contains(c)) => continue,
            _ if text.starts_with('-') => return false,
            _ => !std::mem::replace(&mut has_script, true) && !is_simple_script(text),
        };
        // Files come behind the script.
        if is_script || !word.is_exact && !has_script {
            return false;
        }
    }
    true
}

/// Whether a script of sed has no commands but `p`, `d`, `q` and `s` without the flags `e` and `w`.
fn is_simple_script(script: &str) -> bool {
    script.split([';', '\n']).all(|part| {
        let part =
            part.trim().trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ',' | '$' | ' '));
        if matches!(part, "" | "p" | "d" | "q") {
            return true;
        }
        let Some(rest) = part.strip_prefix('s') else { return false };
        let Some(delimiter) = rest.chars().next().filter(|c| !c.is_alphanumeric() && *c != '\\') else {
            return false;
        };
        let pieces: Vec<&str> = rest.split(delimiter).collect();
        // A backslash could hide a delimiter.
        let is_flag = |c: char| matches!(c, 'g' | 'p' | 'i' | 'I') || c.is_ascii_digit();
        pieces.len() == 4 && !rest.contains(&format!("\\{delimiter}")) && pieces[3].chars().all(is_flag)
    })
}
