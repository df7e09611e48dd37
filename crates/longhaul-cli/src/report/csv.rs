//! The report for a spreadsheet.

use std::io::{self, Write};

use super::bill::Bill;
use super::days::Calendar;
use super::totals::Totals;
use crate::commands::report::Table;
use crate::terminal;

const FIGURES: &str = "calls,input,cache_read,cache_write,output,usd";

/// A row for each day, agent, project and model; or for each row of a table.
pub fn write(
    out: &mut impl Write,
    totals: &Totals,
    calendar: &Calendar,
    table: Option<Table>,
) -> io::Result<()> {
    match table {
        None => {
            writeln!(out, "day,agent,project,model,{FIGURES}")?;
            for (key, bill) in &totals.rows {
                let names =
                    [&key.day, &key.agent, &key.project, &key.model].map(|name| quoted(name)).join(",");
                writeln!(out, "{names},{}", figures(bill))?;
            }
        }
        Some(Table::Period(period)) => {
            writeln!(out, "{},{FIGURES}", period.title().replace(' ', "_"))?;
            for (name, bill) in totals.by_period(period) {
                writeln!(out, "{},{}", quoted(&name), figures(&bill))?;
            }
        }
        Some(Table::Sessions) => {
            writeln!(out, "session,agent,project,begins,ends,models,peak,compactions,{FIGURES}")?;
            for session in &totals.sessions {
                let models = session.models.iter().cloned().collect::<Vec<_>>().join(" ");
                let day = |at| calendar.day(at).map(|day| day.to_string()).unwrap_or_default();
                let names = [
                    &session.session,
                    &session.agent,
                    &session.project,
                    &day(session.begins),
                    &day(session.ends),
                    &models,
                ];
                let names = names.map(|name| quoted(name)).join(",");
                writeln!(out, "{names},{},{},{}", session.peak, session.compactions, figures(&session.bill))?;
            }
        }
    }
    Ok(())
}

fn figures(bill: &Bill) -> String {
    format!(
        "{},{},{},{},{},{:.6}",
        bill.calls,
        bill.input,
        bill.cache_read,
        bill.cache_write,
        bill.output,
        bill.dollars()
    )
}

/// A text that a spreadsheet takes as one, and as a text.
fn quoted(text: &str) -> String {
    // What begins so would be run as a formula.
    let text = terminal::one_line(text, usize::MAX);
    let guard = if text.starts_with(['=', '+', '-', '@']) { "'" } else { "" };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}
