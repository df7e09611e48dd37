//! The report for people, in a terminal.

use std::io::{self, Write};

use super::bill::{Bill, Prices, dollars};
use super::comparison::Comparison;
use super::days::{Calendar, Period};
use super::totals::{NO_DAY, Totals};
use crate::commands::report::Table;
use crate::terminal::{self, FAINT, GOOD, STRONG, grouped, short};

/// What was looked at.
pub struct Found {
    pub files: u64,
    pub skipped: u64,
    pub unread: u64,
    /// Calls that another file had already.
    pub repeated: u64,
    pub zone: String,
    pub profile: String,
    /// The window that was asked for.
    pub window: Option<u64>,
    pub home: String,
}

/// Columns of the figures in a table of sums.
const FIGURES: usize = 50;

/// The columns that lines are made for.
const WIDEST: usize = 100;

/// The whole report.
pub fn report(
    out: &mut impl Write,
    totals: &Totals,
    found: &Found,
    comparison: Option<&Comparison>,
    prices: &mut Prices,
    calendar: &Calendar,
) -> io::Result<()> {
    let width = terminal::width().min(WIDEST);
    head(out, totals, found)?;
    billed(out, totals)?;
    let days: Vec<(String, Bill)> = totals.by_period(Period::Day);
    // A long time is shown by its months, a short one by its days.
    let (title, rows) =
        if days.len() > 14 { ("By month", totals.by_period(Period::Month)) } else { ("By day", days) };
    sums(out, title, &rows, usize::MAX, width)?;
    let projects: Vec<(String, Bill)> = totals
        .by(|key| key.project.clone())
        .into_iter()
        .map(|(path, bill)| (shown_path(&path, found), bill))
        .collect();
    sums(out, "By project", &projects, 8, width)?;
    sums(out, "By agent", &totals.by(|key| key.agent.clone()), 8, width)?;
    sums(out, "By model", &totals.by(|key| key.model.clone()), 8, width)?;
    let dearest: Vec<(String, Bill)> = (totals.sessions.iter())
        .map(|session| {
            let day = calendar.day(session.begins).map_or(NO_DAY.to_owned(), |day| day.to_string());
            (format!("{day} {} {}", last_name(&session.project), short_id(&session.session)), session.bill)
        })
        .collect();
    if dearest.len() > 1 {
        sums(out, "Dearest sessions", &dearest, 8, width)?;
    }
    context(out, totals, width)?;
    largest(out, totals, found, width)?;
    again(out, totals, found, width)?;
    compactions(out, totals)?;
    if let Some(comparison) = comparison {
        with_longhaul(out, comparison, found, prices)?;
    }
    notes(out, totals, found)
}

fn head(out: &mut impl Write, totals: &Totals, found: &Found) -> io::Result<()> {
    let days: Vec<&str> =
        totals.rows.keys().map(|key| key.day.as_str()).filter(|day| *day != NO_DAY).collect();
    let when = match (days.first(), days.last()) {
        (Some(first), Some(last)) if first == last => format!(", {first}"),
        (Some(first), Some(last)) => format!(", {first} to {last}"),
        _ => String::new(),
    };
    writeln!(
        out,
        "{STRONG}{}, {}{STRONG:#}{when} ({}), in {}",
        terminal::counted(totals.sessions.len() as u64, "session", "sessions"),
        terminal::counted(totals.bill.calls, "call", "calls"),
        found.zone,
        terminal::counted(found.files, "file", "files"),
    )
}

fn billed(out: &mut impl Write, totals: &Totals) -> io::Result<()> {
    let bill = &totals.bill;
    writeln!(
        out,
        "\n{STRONG}What was billed: {}{STRONG:#}, at the prices of the APIs",
        money(bill.dollars())
    )?;
    if bill.unpriced > 0 {
        writeln!(
            out,
            "{FAINT}{} of {} have no price: their tokens are counted, dollars are of the others{FAINT:#}",
            grouped(bill.unpriced),
            terminal::counted(bill.calls, "call", "calls")
        )?;
    }
    let kinds = [
        ("read from cache", bill.cache_read, bill.kinds.cache_read),
        ("written to cache", bill.cache_write, bill.kinds.cache_write),
        ("new, not cached", bill.input, bill.kinds.input),
        ("output", bill.output, bill.kinds.output),
    ];
    for (name, tokens, pico) in kinds {
        let share = percent(pico as f64, bill.pico as f64);
        writeln!(out, "  {name:18} {:>15} tokens {:>12} {share:>7}", grouped(tokens), money(dollars(pico)))?;
    }
    Ok(())
}

/// A table of sums, with a bar for dollars.
fn sums(
    out: &mut impl Write,
    title: &str,
    rows: &[(String, Bill)],
    most: usize,
    width: usize,
) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let name_width = width.saturating_sub(FIGURES).clamp(20, 44);
    writeln!(
        out,
        "\n{STRONG}{title:name_width$}{STRONG:#}{:>7}{:>8}{:>8}{:>8}{:>8}{:>11}",
        "calls", "read", "written", "new", "output", "cost"
    )?;
    let shown = rows.len().min(most);
    // One row more costs the line that would count it.
    let shown = if rows.len() - shown == 1 { rows.len() } else { shown };
    for (name, bill) in &rows[..shown] {
        writeln!(out, "{}", line(name, bill, name_width))?;
    }
    if rows.len() > shown {
        let mut rest = Bill::default();
        rows[shown..].iter().for_each(|(_, bill)| rest.add(bill));
        writeln!(
            out,
            "{FAINT}{}{FAINT:#}",
            line(&format!("{} more", grouped((rows.len() - shown) as u64)), &rest, name_width)
        )?;
    }
    Ok(())
}

fn line(name: &str, bill: &Bill, name_width: usize) -> String {
    let name = if name.is_empty() { "unknown" } else { name };
    let name = shortened(name, name_width - 1);
    let pad = " ".repeat(name_width.saturating_sub(terminal::columns(&name)));
    format!(
        "{name}{pad}{:>7}{:>8}{:>8}{:>8}{:>8}{:>11}",
        if bill.calls < 100_000 { grouped(bill.calls) } else { short(bill.calls) },
        short(bill.cache_read),
        short(bill.cache_write),
        short(bill.input),
        short(bill.output),
        money(bill.dollars())
    )
}

fn context(out: &mut impl Write, totals: &Totals, width: usize) -> io::Result<()> {
    const SHOWN: usize = 12;
    let all: u64 = totals.filled.iter().map(|(_, tokens)| tokens).sum();
    if all == 0 {
        return Ok(());
    }
    writeln!(
        out,
        "\n{STRONG}What filled the context{STRONG:#}: shares of {} prompt tokens, carried call by call",
        short(all)
    )?;
    let bar_width = width.saturating_sub(58).min(30);
    let row = |out: &mut dyn Write, name: &str, tokens: u64| {
        let share = tokens as f64 / all as f64;
        let bar = "█".repeat((share * bar_width as f64 * 2.0).round().min(bar_width as f64) as usize);
        let name = terminal::cut(name, 34);
        let pad = " ".repeat(35usize.saturating_sub(terminal::columns(&name)));
        writeln!(out, "  {name}{pad}{:>8} {:>6.1}%  {GOOD}{bar}{GOOD:#}", short(tokens), share * 100.0)
    };
    for (part, tokens) in totals.filled.iter().take(SHOWN) {
        row(out, &part.name(), *tokens)?;
    }
    let rest: u64 = totals.filled.iter().skip(SHOWN).map(|(_, tokens)| tokens).sum();
    if rest > 0 {
        row(out, &format!("{} more", totals.filled.len() - SHOWN), rest)?;
    }
    Ok(())
}

fn largest(out: &mut impl Write, totals: &Totals, found: &Found, width: usize) -> io::Result<()> {
    if totals.largest.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{STRONG}The largest single results{STRONG:#} (tokens, and the calls they were sent with)"
    )?;
    for large in &totals.largest {
        let what = question(&large.what.tool, &large.what.what, found, width.saturating_sub(18));
        writeln!(out, "  {:>6} × {:<5} {what}", short(large.what.tokens), short(large.what.carried))?;
    }
    Ok(())
}

fn again(out: &mut impl Write, totals: &Totals, found: &Found, width: usize) -> io::Result<()> {
    if totals.repeated.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{STRONG}What was read twice{STRONG:#}: {} tokens came again (times, unchanged, tokens)",
        short(totals.repeated_tokens)
    )?;
    for again in &totals.repeated {
        let what = question(&again.what.tool, &again.what.what, found, width.saturating_sub(24));
        writeln!(
            out,
            "  {:>4}× {:>4} {:>8}  {what}",
            again.what.times,
            again.what.unchanged,
            short(again.what.tokens)
        )?;
    }
    Ok(())
}

fn compactions(out: &mut impl Write, totals: &Totals) -> io::Result<()> {
    let sums = &totals.compactions;
    if sums.count == 0 {
        return writeln!(out, "\n{STRONG}Compactions{STRONG:#}: none");
    }
    let times = if sums.count == 1 { "once".to_owned() } else { format!("{} times", grouped(sums.count)) };
    let conversations = terminal::counted(sums.sessions, "conversation", "conversations");
    writeln!(out, "\n{STRONG}Compacted {times}{STRONG:#} in {conversations}")?;
    if let (Some(before), Some(after)) =
        (sums.before.checked_div(sums.known), sums.after.checked_div(sums.known))
    {
        writeln!(out, "  the prompt went from {} to {} tokens on average", short(before), short(after))?;
    }
    writeln!(
        out,
        "  cost: about {} to write the summaries, {} to send {} tokens anew",
        money(dollars(sums.summaries_pico)),
        money(dollars(sums.rewritten_pico)),
        short(sums.rewritten)
    )?;
    if sums.read_again > 0 {
        writeln!(out, "  and {} tokens were read again behind them", short(sums.read_again))?;
    }
    Ok(())
}

fn with_longhaul(
    out: &mut impl Write,
    comparison: &Comparison,
    found: &Found,
    prices: &mut Prices,
) -> io::Result<()> {
    let replayed = &comparison.replayed;
    let [recorded, ours] = replayed.pico(prices);
    let [recorded_tokens, our_tokens] = replayed.prompts();
    writeln!(out, "\n{STRONG}With Longhaul{STRONG:#}{:21}{:>12}{:>12}", "", "recorded", "Longhaul")?;
    // Without prices there is nothing to compare in dollars.
    if recorded > 0 {
        let change = change(ours as f64, recorded as f64);
        writeln!(
            out,
            "  {:32}{:>12}{:>12}  {change}",
            "cost",
            money(dollars(recorded)),
            money(dollars(ours))
        )?;
    }
    writeln!(
        out,
        "  {:32}{:>12}{:>12}  {}",
        "prompt tokens",
        short(recorded_tokens),
        short(our_tokens),
        change(our_tokens as f64, recorded_tokens as f64)
    )?;
    let rows = [
        ("lines needed later, still there", replayed.recorded_found.in_line(), replayed.found.in_line()),
        ("names needed later, still there", replayed.recorded_found.retention(), replayed.found.retention()),
        ("… or one recall away", replayed.recorded_found.reachable(), replayed.found.reachable()),
    ];
    for (name, theirs, ours) in rows.into_iter().filter(|(_, _, ours)| ours.is_some()) {
        writeln!(out, "  {name:32}{:>12}{:>12}", terminal::percent(theirs), terminal::percent(ours))?;
    }
    for line in terminal::wrapped(&sentence(comparison, found), 78) {
        writeln!(out, "{FAINT}{line}{FAINT:#}")?;
    }
    Ok(())
}

/// How the comparison was computed.
pub fn sentence(comparison: &Comparison, found: &Found) -> String {
    let replayed = &comparison.replayed;
    let priced = if comparison.unpriced > 0 { " and a known price" } else { "" };
    let window = match found.window {
        Some(window) => format!("a window of {}", grouped(window)),
        None => "the window that the session had".to_owned(),
    };
    let sessions = match comparison.of {
        1 if priced.is_empty() => "The session".to_owned(),
        1 => format!("The session with five calls or more{priced}"),
        all if all == comparison.sessions => {
            format!("All {} sessions with five calls or more{priced}", grouped(all))
        }
        all => format!(
            "{} of the {} sessions with five calls or more{priced}, taken evenly ({:.0} % of their bill; --replay all takes all),",
            grouped(comparison.sessions),
            grouped(all),
            comparison.share * 100.0
        ),
    };
    let losing = match (comparison.losing.sessions, comparison.sessions) {
        (0, _) | (_, 1) => String::new(),
        (losing, all) => format!(
            " {} of {} would have cost more, by {} together.",
            grouped(losing),
            grouped(all),
            money(dollars(comparison.losing.pico))
        ),
    };
    let (verb, errors) = (
        if comparison.of == 1 { "was" } else { "were" },
        match replayed.errors {
            0 => String::new(),
            errors => format!(" {} calls that fit no window are left out.", grouped(errors)),
        },
    );
    format!(
        "{sessions} {verb} taken call by call through profile {}, in {window}: prompts counted with the \
         model's meter and the recorded system prompt and tools, the cache as it was recorded, answers as \
         recorded, summaries by the built-in extractor. What a model would have done differently is not in it.{losing}{errors}",
        found.profile
    )
}

fn notes(out: &mut impl Write, totals: &Totals, found: &Found) -> io::Result<()> {
    let mut notes = Vec::new();
    if found.repeated > 0 {
        notes.push(format!(
            "{} counted once.",
            terminal::counted(
                found.repeated,
                "call that a resumed or forked session repeats is",
                "calls that resumed or forked sessions repeat are"
            )
        ));
    }
    if totals.unbilled > 0 {
        notes.push(format!(
            "{} in no sum of the bill.",
            terminal::counted(
                totals.unbilled,
                "answer has no usage in its file: it is",
                "answers have no usage in their files: they are"
            )
        ));
    }
    if !totals.unpriced.is_empty() {
        let calls: u64 = totals.unpriced.values().sum();
        let names: Vec<String> =
            totals.unpriced.keys().map(|name| terminal::one_line(name, 60)).take(4).collect();
        let names = if names == [""] { "a model without a name".to_owned() } else { names.join(", ") };
        let calls = terminal::counted(calls, "call has", "calls have");
        notes.push(format!("{calls} no price in the table of models: {names}."));
    }
    if found.skipped > 0 {
        let files = terminal::counted(found.skipped, "file", "files");
        notes.push(format!("{files} without messages skipped."));
    }
    if found.unread > 0 {
        notes.push(format!("{} could not be read.", terminal::counted(found.unread, "line", "lines")));
    }
    if !notes.is_empty() {
        writeln!(out)?;
    }
    notes
        .iter()
        .flat_map(|note| terminal::wrapped(note, 78))
        .try_for_each(|line| writeln!(out, "{FAINT}{line}{FAINT:#}"))
}

/// One table alone.
pub fn table(
    out: &mut impl Write,
    totals: &Totals,
    found: &Found,
    calendar: &Calendar,
    table: Table,
) -> io::Result<()> {
    let width = terminal::width().min(WIDEST);
    let (title, rows) = match table {
        Table::Period(period) => (period.title(), totals.by_period(period)),
        Table::Sessions => {
            let row = |session: &super::totals::Session| {
                let day = calendar.day(session.begins).map_or(NO_DAY.to_owned(), |day| day.to_string());
                let name = format!("{day} {} {}", last_name(&session.project), short_id(&session.session));
                (name, session.bill)
            };
            ("session", totals.sessions.iter().map(row).collect())
        }
    };
    head(out, totals, found)?;
    sums(out, title, &rows, usize::MAX, width)?;
    let name_width = width.saturating_sub(FIGURES).clamp(20, 44);
    writeln!(out, "{STRONG}{}{STRONG:#}", line("all", &totals.bill, name_width))?;
    notes(out, totals, found)
}

/// Dollars, in as many places as matter.
pub fn money(dollars: f64) -> String {
    if dollars >= 1_000.0 {
        return format!("${}", grouped(dollars.round() as u64));
    }
    if dollars > 0.0 && dollars < 0.01 { "<$0.01".to_owned() } else { format!("${dollars:.2}") }
}

fn percent(part: f64, of: f64) -> String {
    if of > 0.0 { format!("{:.1}%", part * 100.0 / of) } else { String::new() }
}

/// How much less, or more.
pub fn change(now: f64, before: f64) -> String {
    if before <= 0.0 {
        return String::new();
    }
    let percent = (now - before) * 100.0 / before;
    if percent <= 0.0 { format!("−{:.1}%", -percent) } else { format!("+{percent:.1}%") }
}

/// A path as a person knows it.
pub fn shown_path(path: &str, found: &Found) -> String {
    let rest = path.strip_prefix(&*found.home).filter(|_| found.home.len() > 1);
    match rest.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
        Some(rest) => format!("~{rest}"),
        None => path.to_owned(),
    }
}

/// What a tool was asked, in so many columns.
pub fn question(tool: &str, what: &str, found: &Found, most: usize) -> String {
    let tool = terminal::one_line(tool, 30);
    let room = most.saturating_sub(terminal::columns(&tool) + 2);
    let what = shown_path(what, found);
    // Of a path its end says more, of a command its beginning.
    let is_path = what.starts_with(['/', '~']) || what.get(1..3) == Some(":\\");
    let what = if is_path { shortened(&what, room) } else { terminal::one_line(&what, room) };
    format!("{tool}: {what}")
}

/// A name that fits: the end of a path says more than its beginning.
fn shortened(name: &str, most: usize) -> String {
    let clean = terminal::one_line(name, usize::MAX);
    let count = clean.chars().count();
    if terminal::columns(&clean) <= most {
        return clean;
    }
    if !clean.contains(['/', '\\']) {
        return terminal::cut(&clean, most);
    }
    let end: String = clean.chars().skip(count - most.saturating_sub(1).min(count)).collect();
    terminal::cut(&format!("…{end}"), most)
}

/// The last name of a path.
fn last_name(path: &str) -> &str {
    path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default()
}

/// The beginning of a session's name, where that is a long number; names that people gave are whole.
fn short_id(id: &str) -> String {
    let is_number = id.len() >= 32 && id.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    if is_number { id.chars().take(8).collect() } else { terminal::cut(id, 24) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_for_people() {
        assert_eq!([0.0, 0.004, 1.5, 12_345.6].map(money), ["$0.00", "<$0.01", "$1.50", "$12,346"]);
        assert_eq!((change(50.0, 100.0), change(110.0, 100.0)), ("−50.0%".to_owned(), "+10.0%".to_owned()));
        assert_eq!(shortened("/a/long/path/of/a/project", 12), "…f/a/project");
        assert_eq!(shortened("a model with a long name", 12), "a model wit…");
        assert_eq!((last_name("/a/b/"), last_name("C:\\x\\y"), last_name("")), ("b", "y", ""));
    }
}
