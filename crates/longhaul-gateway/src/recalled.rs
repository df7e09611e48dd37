//! A recalled text in pages, and how the next page is asked for.

use longhaul::RecallPart;

/// Bytes of the longest page. No agent cuts it by rules of its own: opencode cuts results of more than 50 KB, Claude
/// Code those of more than 25,000 tokens.
pub(crate) const PAGE: usize = 40_000;

/// Lines of the longest page: opencode cuts results of more than 2,000.
const LINES: usize = 1_900;

/// A page of a recalled text.
pub(crate) struct Page<'a> {
    /// What was asked for.
    pub(crate) part: &'a RecallPart,
    /// The page begins behind so many bytes of the recalled text.
    pub(crate) from: usize,
    /// It has at most so many bytes.
    pub(crate) most: usize,
    /// The arguments that ask for lines from a first to a last, as the tool of the model takes them.
    pub(crate) lines: fn(usize, usize) -> String,
}

impl Page<'_> {
    /// The page, and how to get the rest.
    pub(crate) fn of(&self, text: &str) -> String {
        let from = text.floor_char_boundary(self.from);
        let rest = &text[from..];
        let lines = rest.match_indices('\n').nth(LINES - 1).map_or(rest.len(), |(at, _)| at + 1);
        let most = self.most.min(lines);
        if rest.len() <= most {
            return rest.to_owned();
        }
        // A page is never empty: who asks for the next one would get the same again.
        let most = rest.floor_char_boundary(most).max(rest.ceil_char_boundary(1));
        let end = rest[..most].rfind('\n').map(|end| end + 1);
        let shown = &rest[..end.unwrap_or(most)];
        let numbers = match self.part {
            RecallPart::Whole => Some((1, text.lines().count())),
            // Behind the last of these lines is no end of a line: what looks like one is an empty line.
            RecallPart::Lines(first, _) => Some((*first, first.saturating_add(text.matches('\n').count()))),
            // These lines have other numbers.
            RecallPart::Pattern(_) => None,
        };
        match numbers.filter(|_| from == 0 && end.is_some()) {
            Some((first, last)) => {
                let next = first.saturating_add(shown.lines().count());
                let lines = (self.lines)(next, last);
                format!("{shown}[… lines {next} to {last} are left out here: recall again with {lines}]")
            }
            // The rest begins inside a line, or its lines cannot be asked for by number.
            None => {
                let (left, next) = (rest.len() - shown.len(), from + shown.len());
                format!(
                    "{shown}[… {left} bytes are left out here: recall the same again with first_byte {next}]"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str, part: &RecallPart, from: usize) -> String {
        Page { part, from, most: PAGE, lines: |first, _| format!("first_line {first}") }.of(text)
    }

    #[test]
    fn a_long_text_has_pages() {
        let text: String = (1..=9_000).map(|n| format!("line {n}\n")).collect();
        let shown = page(&text, &RecallPart::Whole, 0);
        assert!(shown.len() < PAGE + 200 && shown.lines().count() <= LINES + 1);
        // What is left out begins behind what is shown.
        let last = shown.lines().rev().nth(1).unwrap();
        let next = last.strip_prefix("line ").unwrap().parse::<usize>().unwrap() + 1;
        assert!(shown.ends_with(&format!(
            "[… lines {next} to 9000 are left out here: recall again with first_line {next}]"
        )));
    }

    /// What a page shows, and the number that it says to go on with.
    fn shown(page: &str) -> (&str, usize) {
        let (shown, says) = page.rsplit_once("[…").unwrap();
        let next = says.trim_end_matches(']').rsplit_once(' ').unwrap().1;
        (shown, next.parse().unwrap())
    }

    #[test]
    fn pages_behind_the_first_go_on_where_they_are() {
        let text: String = (1..=20_000).map(|n| format!("line {n}\n")).collect();
        let lines: String = text.lines().skip(6_999).collect::<Vec<_>>().join("\n");
        let page = page(&lines, &RecallPart::Lines(7_000, usize::MAX), 0);
        let (shown, next) = shown(&page);
        assert!(shown.ends_with(&format!("line {}\n", next - 1)), "{next}");
        assert!(page.contains("to 20000 are left out"));
    }

    #[test]
    fn empty_lines_at_the_end_are_counted_on_every_page() {
        let lines = "line\n".repeat(20_000) + "\n";
        let page = page(&lines, &RecallPart::Lines(5, 20_006), 0);
        assert!(page.contains("to 20006 are left out"), "{}", &page[page.len() - 100..]);
    }

    #[test]
    fn a_long_line_and_found_lines_have_pages_too() {
        let found: String = (1..=9_000).map(|n| format!("{}:line\n", n * 7)).collect();
        for (text, part) in
            [("ü".repeat(PAGE * 2), RecallPart::Whole), (found, RecallPart::Pattern("line".to_owned()))]
        {
            let (mut whole, mut from) = (String::new(), 0);
            loop {
                let page = page(&text, &part, from);
                if !page.contains("[…") {
                    whole.push_str(&page);
                    break;
                }
                let (part, next) = shown(&page);
                whole.push_str(part);
                assert!(next > from);
                from = next;
            }
            assert!(whole == text);
        }
        assert_eq!(page("abc", &RecallPart::Whole, usize::MAX), "");
    }
}
