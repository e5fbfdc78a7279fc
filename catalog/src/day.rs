//! Calendar days: the finest time that a page or a row carries.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

/// A day of the proleptic Gregorian calendar, written `YYYY-MM-DD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Day(Date);

/// A text that is not a day.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0:?} is not a day; write it as 2026-11-30")]
pub struct DayError(String);

impl Day {
    /// Today in UTC. Only imports and decisions ask for it; rendering never does.
    pub fn today() -> Self {
        Self(jiff::tz::Offset::UTC.to_datetime(jiff::Timestamp::now()).date())
    }

    /// For feeds: midnight UTC of that day as RFC 822 wants it, with a four-digit year.
    pub fn rfc822(self) -> String {
        self.0.strftime("%a, %d %b %Y 00:00:00 +0000").to_string()
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for Day {
    type Err = DayError;

    fn from_str(text: &str) -> Result<Self, DayError> {
        let error = || DayError(text.to_owned());
        let day = Self(Date::strptime("%Y-%m-%d", text).map_err(|_| error())?);
        if day.to_string() == text { Ok(day) } else { Err(error()) }
    }
}

impl TryFrom<String> for Day {
    type Error = DayError;

    fn try_from(text: String) -> Result<Self, DayError> {
        text.parse()
    }
}

impl From<Day> for String {
    fn from(day: Day) -> Self {
        day.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days() {
        let day: Day = "2026-11-30".parse().unwrap();
        assert_eq!(day.to_string(), "2026-11-30");
        assert_eq!(day.rfc822(), "Mon, 30 Nov 2026 00:00:00 +0000");
        for text in ["", "2026-11-31", "2026-1-1", "30.11.2026", "2026-11-30T00:00", "12026-11-30"] {
            assert!(text.parse::<Day>().is_err(), "{text}");
        }
    }
}
