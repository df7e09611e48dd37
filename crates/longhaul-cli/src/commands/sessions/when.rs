//! Times, as people write and read them.

use std::time::SystemTime;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use longhaul::Time;

/// A moment in the past that sessions are looked for from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since(Timestamp);

impl Since {
    pub fn time(self) -> Time {
        Time(self.0.as_microsecond())
    }
}

/// `2026-03-02` (UTC), `2026-03-02T10:00:00Z`, `90m`, `12h`, `7d`, `2w`.
pub fn since(text: &str) -> Result<Since, String> {
    since_then(text, now())
}

fn since_then(text: &str, now: Timestamp) -> Result<Since, String> {
    let problem = || "not a time: give a date (2026-03-02), or how long ago (90m, 12h, 7d, 2w)".to_owned();
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(Since(moment));
    }
    if let Ok(date) = text.parse::<Date>() {
        return date.to_zoned(TimeZone::UTC).map(|start| Since(start.timestamp())).map_err(|_| problem());
    }
    let unit = text.chars().last().ok_or_else(problem)?;
    let hours = match unit {
        'm' => None,
        'h' => Some(1),
        'd' => Some(24),
        'w' => Some(24 * 7),
        _ => return Err(problem()),
    };
    let count: i64 =
        text.trim_end_matches(unit).parse().ok().filter(|count| *count >= 0).ok_or_else(problem)?;
    let seconds = count.checked_mul(hours.map_or(60, |hours: i64| hours * 3_600)).ok_or_else(problem)?;
    now.checked_sub(SignedDuration::from_secs(seconds)).map(Since).map_err(|_| problem())
}

fn now() -> Timestamp {
    Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// How long ago, or the day.
pub fn ago(time: Time) -> String {
    ago_then(time, Time(now().as_microsecond()))
}

fn ago_then(time: Time, now: Time) -> String {
    let minutes = now.0.saturating_sub(time.0) / 60_000_000;
    match minutes {
        ..1 => "now".to_owned(),
        1..60 => format!("{minutes}m ago"),
        60..1_440 => format!("{}h ago", minutes / 60),
        1_440..20_160 => format!("{}d ago", minutes / 1_440),
        _ => time.to_string().chars().take(10).collect(),
    }
}

/// For scripts: `2026-03-02T10:00:00.123456Z`.
pub fn stamp(time: Time) -> String {
    Timestamp::from_microsecond(time.0).map_or_else(|_| time.0.to_string(), |moment| moment.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let now: Timestamp = "2026-03-09T12:00:00Z".parse().unwrap();
        let read = |text: &str| since_then(text, now).map(|since| since.0.to_string());
        assert_eq!(read("2026-03-02").unwrap(), "2026-03-02T00:00:00Z");
        assert_eq!(read("2026-03-02T10:00:00+02:00").unwrap(), "2026-03-02T08:00:00Z");
        assert_eq!(read("90m").unwrap(), "2026-03-09T10:30:00Z");
        assert_eq!(read("7d").unwrap(), "2026-03-02T12:00:00Z");
        assert_eq!(read("2w").unwrap(), "2026-02-23T12:00:00Z");
        for bad in [
            "",
            "d",
            "7",
            "-3d",
            "yesterday",
            "99999999999999999999d",
            "9999999999999999w",
            "7é",
            "2026-13-01",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_are_shown_in_few_characters() {
        let now = Time(1_800_000_000_000_000);
        let shown = |minutes: i64| ago_then(Time(now.0 - minutes * 60_000_000), now);
        assert_eq!([-5, 0, 5, 125, 3_000].map(shown), ["now", "now", "5m ago", "2h ago", "2d ago"]);
        assert_eq!(shown(30 * 1_440), "2026-12-16");
    }
}
