//! The report as one page with charts: no script, no network, nothing beside the file. Charts are drawn here, as SVG.

use super::bill::{Bill, Prices, dollars};
use super::comparison::Comparison;
use super::days::{Calendar, Period};
use super::text::{Found, change, money, question, sentence, shown_path};
use super::totals::{NO_DAY, Totals};
use crate::terminal::{self, grouped, short};

const PAGE: &str = include_str!("../../templates/report.html");

/// The page.
pub fn page(
    totals: &Totals,
    found: &Found,
    comparison: Option<&Comparison>,
    prices: &mut Prices,
    calendar: &Calendar,
) -> String {
    let parts = [
        ("{{summary}}", summary(totals, found)),
        ("{{cards}}", cards(totals, comparison, prices)),
        ("{{days}}", over_time(totals)),
        ("{{context}}", context(totals)),
        (
            "{{longhaul}}",
            comparison.map(|comparison| with_longhaul(comparison, found, prices)).unwrap_or_default(),
        ),
        ("{{projects}}", table("Project", &totals.by(|key| shown_path(&key.project, found)), 15)),
        ("{{agents}}", table("Agent", &totals.by(|key| key.agent.clone()), 10)),
        ("{{models}}", table("Model", &totals.by(|key| key.model.clone()), 15)),
        ("{{sessions}}", table("Session", &sessions(totals, found, calendar), 20)),
        ("{{largest}}", largest(totals, found)),
        ("{{again}}", again(totals, found)),
        ("{{compactions}}", compactions(totals)),
    ];
    // What a session says may look like a mark: each is replaced in the page as it was written.
    let mut page = String::with_capacity(PAGE.len() * 4);
    let mut rest = PAGE;
    while let Some(at) = rest.find("{{") {
        page.push_str(&rest[..at]);
        rest = &rest[at..];
        match parts.iter().find(|(mark, _)| rest.starts_with(mark)) {
            Some((mark, text)) => {
                page.push_str(text);
                rest = &rest[mark.len()..];
            }
            None => {
                page.push_str("{{");
                rest = &rest[2..];
            }
        }
    }
    page.push_str(rest);
    page
}

/// Text that is nothing but text in a page.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in terminal::cut(text, usize::MAX).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

fn summary(totals: &Totals, found: &Found) -> String {
    let days: Vec<&str> =
        totals.rows.keys().map(|key| key.day.as_str()).filter(|day| *day != NO_DAY).collect();
    let when = match (days.first(), days.last()) {
        (Some(first), Some(last)) if first != last => format!(", {first} to {last}"),
        (Some(day), _) => format!(", {day}"),
        _ => String::new(),
    };
    escaped(&format!(
        "{} sessions, {} calls{when} ({}).",
        grouped(totals.sessions.len() as u64),
        grouped(totals.bill.calls),
        found.zone
    ))
}

fn cards(totals: &Totals, comparison: Option<&Comparison>, prices: &mut Prices) -> String {
    let bill = &totals.bill;
    let card = |name: &str, figure: &str, note: &str| {
        format!(
            "<div class=\"card\"><span>{}</span><b>{}</b><small>{}</small></div>",
            escaped(name),
            escaped(figure),
            escaped(note)
        )
    };
    let share = |pico: u128| {
        if bill.pico > 0 {
            format!("{:.0} % of the bill", pico as f64 * 100.0 / bill.pico as f64)
        } else {
            String::new()
        }
    };
    let tokens = |tokens: u64| format!("{} tokens", short(tokens));
    let mut out = card("Billed", &money(bill.dollars()), &tokens(bill.tokens()));
    for (name, count, pico) in [
        ("Read from cache", bill.cache_read, bill.kinds.cache_read),
        ("Written to cache", bill.cache_write, bill.kinds.cache_write),
        ("New, not cached", bill.input, bill.kinds.input),
        ("Output", bill.output, bill.kinds.output),
    ] {
        out += &card(name, &money(dollars(pico)), &format!("{}, {}", tokens(count), share(pico)));
    }
    if let Some(comparison) = comparison {
        let [recorded, ours] = comparison.replayed.pico(prices);
        let note = format!("{} instead of {}", money(dollars(ours)), money(dollars(recorded)));
        out += &card("With Longhaul", &change(ours as f64, recorded as f64), &note);
    }
    out
}

/// The kinds of tokens in charts: class, name, dollars.
fn kinds(bill: &Bill) -> [(&'static str, &'static str, u128); 4] {
    [
        ("read", "read from cache", bill.kinds.cache_read),
        ("write", "written to cache", bill.kinds.cache_write),
        ("new", "new", bill.kinds.input),
        ("out", "output", bill.kinds.output),
    ]
}

/// Dollars over time, stacked by kind.
fn over_time(totals: &Totals) -> String {
    const MOST_BARS: usize = 92;
    let mut rows = totals.by_period_whole(Period::Day);
    for period in [Period::Week, Period::Month] {
        if rows.len() > MOST_BARS {
            rows = totals.by_period_whole(period);
        }
    }
    let highest = rows.iter().map(|(_, bill)| bill.pico).max().unwrap_or_default();
    if highest == 0 {
        return "<p>No dollars are known.</p>".to_owned();
    }
    let (width, height, left, bottom) = (960.0, 240.0, 56.0, 28.0);
    let step = (width - left) / rows.len() as f64;
    let bar = (step * 0.8).min(40.0);
    let scale = (height - bottom - 12.0) / highest as f64;
    let mut svg =
        format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"Dollars over time\">");
    for part in 0..=4 {
        let pico = highest as f64 * f64::from(part) / 4.0;
        let y = height - bottom - pico * scale;
        svg += &format!(
            "<line class=\"grid\" x1=\"{left}\" x2=\"{width}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 6.0,
            y + 4.0,
            money(pico / 1e12)
        );
    }
    // Names are 70 units wide: as many as fit.
    let every = (70.0 / step).ceil().max(1.0) as usize;
    for (n, (name, bill)) in rows.iter().enumerate() {
        let x = left + step * n as f64 + (step - bar) / 2.0;
        let mut y = height - bottom;
        let name = escaped(name);
        svg += &format!("<g><title>{name}: {}, {} calls</title>", money(bill.dollars()), grouped(bill.calls));
        for (class, _, pico) in kinds(bill) {
            let tall = pico as f64 * scale;
            y -= tall;
            svg += &format!(
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{bar:.1}\" height=\"{tall:.1}\"/>"
            );
        }
        svg += "</g>";
        if n % every == 0 {
            svg += &format!(
                "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>",
                x + bar / 2.0,
                height - 8.0
            );
        }
    }
    svg += "</svg><p class=\"legend\">";
    for (class, name, _) in kinds(&Bill::default()) {
        svg += &format!("<span><i class=\"{class}\"></i>{name}</span>");
    }
    svg + "</p>"
}

/// Bars for shares: a name, a figure, a share, and more to say.
fn bars(rows: &[(String, String, f64)]) -> String {
    let widest = rows.iter().map(|(_, _, share)| *share).fold(0.0, f64::max).max(1e-9);
    let mut out = String::from("<div class=\"bars\">");
    for (name, figure, share) in rows {
        out += &format!(
            "<span>{}</span><div><i style=\"width:{:.1}%\"></i></div><b>{:.1} %</b><small>{}</small>",
            escaped(name),
            share * 100.0 / widest,
            share * 100.0,
            escaped(figure)
        );
    }
    out + "</div>"
}

fn context(totals: &Totals) -> String {
    let all: u64 = totals.filled.iter().map(|(_, tokens)| tokens).sum();
    let row = |(part, tokens): &(super::conversation::Part, u64)| {
        (part.name(), short(*tokens), *tokens as f64 / all.max(1) as f64)
    };
    let mut rows: Vec<_> = totals.filled.iter().take(14).map(row).collect();
    let rest: u64 = totals.filled.iter().skip(14).map(|(_, tokens)| tokens).sum();
    if rest > 0 {
        rows.push((
            format!("{} more", totals.filled.len() - 14),
            short(rest),
            rest as f64 / all.max(1) as f64,
        ));
    }
    bars(&rows)
}

fn with_longhaul(comparison: &Comparison, found: &Found, prices: &mut Prices) -> String {
    let replayed = &comparison.replayed;
    let [recorded, ours] = replayed.pico(prices);
    let highest = recorded.max(ours).max(1) as f64;
    let mut out = String::from("<section><h2>With Longhaul</h2><div class=\"bars versus\">");
    for (name, pico, class) in [("as recorded", recorded, "new"), ("with Longhaul", ours, "out")] {
        out += &format!(
            "<span>{name}</span><div><i class=\"{class}\" style=\"width:{:.1}%\"></i></div><b>{}</b><small>{}</small>",
            pico as f64 * 100.0 / highest,
            money(dollars(pico)),
            if class == "out" { change(ours as f64, recorded as f64) } else { String::new() }
        );
    }
    out += "</div><table><thead><tr><th>Memory</th><th>recorded</th><th>Longhaul</th></tr></thead><tbody>";
    for (name, theirs, ours) in [
        (
            "lines needed later, still in the context",
            replayed.recorded_found.in_line(),
            replayed.found.in_line(),
        ),
        (
            "names needed later, still in the context",
            replayed.recorded_found.retention(),
            replayed.found.retention(),
        ),
        (
            "in the context, or one recall away",
            replayed.recorded_found.reachable(),
            replayed.found.reachable(),
        ),
    ] {
        out += &format!(
            "<tr><td>{name}</td><td>{}</td><td>{}</td></tr>",
            terminal::percent(theirs),
            terminal::percent(ours)
        );
    }
    out + &format!("</tbody></table><p class=\"how\">{}</p></section>", escaped(&sentence(comparison, found)))
}

fn sessions(totals: &Totals, found: &Found, calendar: &Calendar) -> Vec<(String, Bill)> {
    let row = |session: &super::totals::Session| {
        let day = calendar.day(session.begins).map_or(NO_DAY.to_owned(), |day| day.to_string());
        let id: String = session.session.chars().take(13).collect();
        (format!("{day} {} {id}", shown_path(&session.project, found)), session.bill)
    };
    totals.sessions.iter().map(row).collect()
}

fn table(title: &str, rows: &[(String, Bill)], most: usize) -> String {
    let mut out = format!(
        "<table><thead><tr><th>{title}</th><th>calls</th><th>read</th><th>written</th><th>new</th><th>output</th><th>cost</th></tr></thead><tbody>"
    );
    let mut row = |name: &str, bill: &Bill| {
        out += &format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(if name.is_empty() { "unknown" } else { name }),
            grouped(bill.calls),
            short(bill.cache_read),
            short(bill.cache_write),
            short(bill.input),
            short(bill.output),
            money(bill.dollars())
        );
    };
    rows.iter().take(most).for_each(|(name, bill)| row(name, bill));
    if rows.len() > most {
        let mut rest = Bill::default();
        rows[most..].iter().for_each(|(_, bill)| rest.add(bill));
        row(&format!("{} more", rows.len() - most), &rest);
    }
    out + "</tbody></table>"
}

fn largest(totals: &Totals, found: &Found) -> String {
    let mut out = String::from(
        "<table><thead><tr><th>Result</th><th>tokens</th><th>calls it was sent with</th></tr></thead><tbody>",
    );
    for large in &totals.largest {
        let what = question(&large.what.tool, &large.what.what, found, 160);
        out += &format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(&what),
            grouped(large.what.tokens),
            grouped(large.what.carried)
        );
    }
    out + "</tbody></table>"
}

fn again(totals: &Totals, found: &Found) -> String {
    let mut out = String::from(
        "<table><thead><tr><th>What</th><th>times</th><th>unchanged</th><th>tokens again</th></tr></thead><tbody>",
    );
    for again in &totals.repeated {
        let what = question(&again.what.tool, &again.what.what, found, 160);
        out += &format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(&what),
            again.what.times,
            again.what.unchanged,
            grouped(again.what.tokens)
        );
    }
    out + "</tbody></table>"
}

fn compactions(totals: &Totals) -> String {
    let sums = &totals.compactions;
    if sums.count == 0 {
        return "<p>None.</p>".to_owned();
    }
    let mut out = format!("<p>{} in {} conversations", grouped(sums.count), grouped(sums.sessions));
    if let (Some(before), Some(after)) =
        (sums.before.checked_div(sums.known), sums.after.checked_div(sums.known))
    {
        out += &format!("; the prompt went from {} to {} tokens on average", short(before), short(after));
    }
    out += &format!(
        ". About {} to write the summaries, {} to send {} tokens anew; {} tokens were read again behind them.</p>",
        money(dollars(sums.summaries_pico)),
        money(dollars(sums.rewritten_pico)),
        short(sums.rewritten),
        short(sums.read_again)
    );
    out
}
