//! The report for scripts: one object.

use serde_json::{Value, json};

use super::bill::{Bill, Prices, dollars};
use super::comparison::Comparison;
use super::days::{Calendar, Period};
use super::text::{Found, sentence};
use super::totals::Totals;
use crate::commands::report::Table;
use crate::lab::needs;

pub fn report(
    totals: &Totals,
    found: &Found,
    comparison: Option<&Comparison>,
    prices: &mut Prices,
    calendar: &Calendar,
    table: Option<Table>,
) -> Value {
    let mut out = bill(&totals.bill);
    let mut put = |name: &str, value: Value| out[name] = value;
    put("sessions", json!(totals.sessions.len()));
    put("files", json!(found.files));
    put("skipped_files", json!(found.skipped));
    put("unread_lines", json!(found.unread));
    put("repeated_calls", json!(found.repeated));
    put("calls_without_usage", json!(totals.unbilled));
    put("unpriced_models", json!(totals.unpriced));
    put("time_zone", json!(found.zone));
    match table {
        Some(Table::Period(period)) => put("rows", named("name", totals.by_period(period))),
        Some(Table::Sessions) => put("rows", sessions(totals, calendar)),
        None => {
            put("by_day", named("day", totals.by_period(Period::Day)));
            put("by_project", named("project", totals.by(|key| key.project.clone())));
            put("by_agent", named("agent", totals.by(|key| key.agent.clone())));
            put("by_model", named("model", totals.by(|key| key.model.clone())));
            put("by_session", sessions(totals, calendar));
            put(
                "context",
                totals
                    .filled
                    .iter()
                    .map(|(part, tokens)| json!({"part": part.name(), "tokens": tokens}))
                    .collect(),
            );
            put("largest_results", totals.largest.iter().map(|large| {
                json!({"tool": large.what.tool, "what": large.what.what, "tokens": large.what.tokens, "carried": large.what.carried,
                       "project": large.project, "session": large.session})
            }).collect());
            put("read_again", totals.repeated.iter().map(|again| {
                json!({"tool": again.what.tool, "what": again.what.what, "times": again.what.times, "unchanged": again.what.unchanged,
                       "tokens": again.what.tokens, "project": again.project, "session": again.session})
            }).collect());
            put("read_again_tokens", json!(totals.repeated_tokens));
            let compactions = &totals.compactions;
            put(
                "compactions",
                json!({
                    "count": compactions.count, "automatic": compactions.automatic, "sessions": compactions.sessions,
                    "tokens_before": compactions.before, "tokens_after": compactions.after, "known": compactions.known,
                    "summaries_usd": dollars(compactions.summaries_pico), "rewritten_tokens": compactions.rewritten,
                    "rewritten_usd": dollars(compactions.rewritten_pico), "read_again_tokens": compactions.read_again,
                }),
            );
            put(
                "longhaul",
                comparison.map_or(Value::Null, |comparison| with_longhaul(comparison, found, prices)),
            );
        }
    }
    out
}

fn bill(bill: &Bill) -> Value {
    json!({
        "calls": bill.calls, "input": bill.input, "cache_read": bill.cache_read, "cache_write": bill.cache_write,
        "output": bill.output, "usd": bill.dollars(),
    })
}

fn named(name: &str, rows: Vec<(String, Bill)>) -> Value {
    let row = |(value, sums): (String, Bill)| {
        let mut row = json!({ name: value });
        if let (Value::Object(row), Value::Object(sums)) = (&mut row, bill(&sums)) {
            row.extend(sums);
        }
        row
    };
    rows.into_iter().map(row).collect()
}

fn sessions(totals: &Totals, calendar: &Calendar) -> Value {
    let row = |session: &super::totals::Session| {
        let day = |at| calendar.day(at).map(|day| day.to_string());
        let mut row = json!({
            "session": session.session, "agent": session.agent, "project": session.project,
            "begins": day(session.begins), "ends": day(session.ends), "models": session.models, "peak": session.peak,
            "compactions": session.compactions,
        });
        if let (Value::Object(row), Value::Object(sums)) = (&mut row, bill(&session.bill)) {
            row.extend(sums);
        }
        row
    };
    totals.sessions.iter().map(row).collect()
}

fn with_longhaul(comparison: &Comparison, found: &Found, prices: &mut Prices) -> Value {
    let replayed = &comparison.replayed;
    let [recorded, ours] = replayed.pico(prices);
    let [recorded_tokens, our_tokens] = replayed.prompts();
    let memory = |found: &needs::Found| json!({"retention": found.retention(), "in_line": found.in_line(), "near": found.near(), "reachable": found.reachable()});
    json!({
        "profile": found.profile, "sessions": comparison.sessions, "of_sessions": comparison.of,
        "share_of_bill": comparison.share, "calls": replayed.calls, "errors": replayed.errors, "edits": replayed.edits,
        "recorded": {"usd": dollars(recorded), "prompt_tokens": recorded_tokens, "kept": memory(&replayed.recorded_found)},
        "sent": {"usd": dollars(ours), "prompt_tokens": our_tokens, "kept": memory(&replayed.found)},
        "losing": {"sessions": comparison.losing.sessions, "usd": dollars(comparison.losing.pico)},
        "how": sentence(comparison, found),
    })
}
