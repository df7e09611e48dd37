//! Days, weeks and months of calls, in the time zone of this machine.

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// How calls are put together by their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    Day,
    Week,
    Month,
}

/// Where days begin.
pub struct Calendar {
    zone: TimeZone,
}

impl Calendar {
    pub fn of_machine() -> Self {
        Self { zone: TimeZone::system() }
    }

    /// The name of the zone.
    pub fn zone(&self) -> String {
        if self.zone.is_unknown() {
            return "UTC: the time zone of this machine is not known".to_owned();
        }
        self.zone.iana_name().unwrap_or("local time").to_owned()
    }

    /// The day of a time in seconds since 1970; `None` if nobody knows when it was.
    pub fn day(&self, at: i64) -> Option<Date> {
        let time = Timestamp::from_second(at).ok().filter(|_| at > 0)?;
        Some(time.to_zoned(self.zone.clone()).date())
    }

    /// The first second of a day.
    fn begins(&self, day: Date) -> Option<i64> {
        Some(day.to_zoned(self.zone.clone()).ok()?.timestamp().as_second())
    }

    /// The first second that `--since` lets in: a day, a time, or how long ago.
    pub fn since(&self, text: &str, now: i64) -> Result<i64, String> {
        self.read(text, now, 0)
    }

    /// The first second that `--until` leaves out: the day that is named is still in.
    pub fn until(&self, text: &str, now: i64) -> Result<i64, String> {
        self.read(text, now, 1)
    }

    fn read(&self, text: &str, now: i64, days_more: i64) -> Result<i64, String> {
        let problem =
            || format!("{text:?} is no time: give a day (2026-03-02), or how long ago (12h, 7d, 2w)");
        let text = text.trim();
        if let Ok(time) = text.parse::<Timestamp>() {
            return Ok(time.as_second());
        }
        let compact = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit());
        // The day as ccusage takes it: 20260302.
        let written =
            if compact { format!("{}-{}-{}", &text[..4], &text[4..6], &text[6..]) } else { text.to_owned() };
        if let Ok(day) = written.parse::<Date>() {
            let day = day.checked_add(days_more.days()).map_err(|_| problem())?;
            return self.begins(day).ok_or_else(problem);
        }
        let unit = text.chars().last().ok_or_else(problem)?;
        let seconds = match unit {
            'h' => 3_600,
            'd' => 86_400,
            'w' => 7 * 86_400,
            _ => return Err(problem()),
        };
        let count: i64 =
            text[..text.len() - 1].parse().ok().filter(|count| *count >= 0).ok_or_else(problem)?;
        count.checked_mul(seconds).and_then(|ago| now.checked_sub(ago)).ok_or_else(problem)
    }
}

impl Period {
    /// The name of the period that a day is in.
    pub fn name(self, day: Date) -> String {
        match self {
            Self::Day => day.to_string(),
            Self::Week => {
                let back = i64::from(day.weekday().since(Weekday::Monday));
                day.checked_sub(back.days()).unwrap_or(day).to_string()
            }
            Self::Month => format!("{:04}-{:02}", day.year(), day.month()),
        }
    }

    /// What the column is called.
    pub fn title(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week from",
            Self::Month => "month",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_weeks_and_months() {
        let calendar = Calendar { zone: TimeZone::fixed(jiff::tz::offset(2)) };
        // 23:30 in UTC is the next day two hours east.
        let at = "2026-03-01T23:30:00Z".parse::<Timestamp>().unwrap().as_second();
        let day = calendar.day(at).unwrap();
        assert_eq!(Period::Day.name(day), "2026-03-02");
        assert_eq!(
            (Period::Week.name(day), Period::Month.name(day)),
            ("2026-03-02".to_owned(), "2026-03".to_owned())
        );
        assert_eq!(Period::Week.name("2026-03-08".parse().unwrap()), "2026-03-02");
        assert_eq!(calendar.day(0), None);
    }

    #[test]
    fn limits_are_read_as_people_write_them() {
        let calendar = Calendar { zone: TimeZone::UTC };
        let now = 1_800_000_000;
        let day = |text: &str| text.parse::<Timestamp>().unwrap().as_second();
        assert_eq!(calendar.since("2026-03-02", now), Ok(day("2026-03-02T00:00:00Z")));
        assert_eq!(calendar.until("20260302", now), Ok(day("2026-03-03T00:00:00Z")));
        assert_eq!(calendar.since("7d", now), Ok(now - 7 * 86_400));
        for bad in ["", "d", "yesterday", "2026-13-01", "99999999999999999999d", "7é", "-3d"] {
            assert!(calendar.since(bad, now).is_err(), "{bad}");
        }
    }
}
