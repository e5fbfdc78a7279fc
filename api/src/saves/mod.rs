//! Saves: what a player keeps here under the hash of a code that never arrives.
//!
//! | module | what it is |
//! |---|---|
//! | [`http`] | the three methods of `/api/saves/{key}` |
//! | [`words`] | the four letters that may guard a plaintext save: tries, waits, bcrypt |
//! | [`store`] | the records: readers in parallel, one writer that commits in groups |
//! | [`budget`] | how much may be saved in a day |
//!
//! Nothing here knows HTTP statuses; a [`Refusal`] says why, `problem` says how.

pub mod budget;
pub mod http;
pub mod store;
pub mod words;

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;

use crate::json::JsonError;

pub use store::Store;
pub use words::Words;

/// The name of a record: the hash of a code and of the work it belongs to, made in the browser.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; 32]);

impl FromStr for Key {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let bytes = HEXLOWER.decode(text.as_bytes()).map_err(|_| Refusal::BadKey)?;
        Ok(Self(bytes.try_into().map_err(|_| Refusal::BadKey)?))
    }
}

impl Key {
    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Key {
    /// Says nothing: a key is in no log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// What the server can read of a save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// Ciphertext.
    Encrypted,
    /// JSON.
    Plaintext,
}

impl Position {
    /// The word that is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Encrypted => "encrypted",
            Self::Plaintext => "plaintext",
        }
    }
}

/// Which state of a record: one more with each change. The first is drawn at random, so that a record which was
/// deleted and made anew has no revision that anybody knows from before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revision(pub i64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Days since 1970 in UTC: the finest time that a record carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Today(pub i64);

impl Today {
    /// Seconds of a day.
    pub const SECONDS: u64 = 24 * 60 * 60;

    /// Today.
    pub fn now() -> Self {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        Self(i64::try_from(seconds / Self::SECONDS).unwrap_or(0))
    }

    /// The day that many years before, leap days and all.
    pub fn years_ago(self, years: u32) -> Self {
        Self(self.0 - i64::from(years) * 366)
    }

    /// Seconds until tomorrow.
    pub fn seconds_left() -> u64 {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        Self::SECONDS - seconds % Self::SECONDS
    }
}

/// Why a save is not read, written or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Not 64 lower-case hexadecimal digits.
    BadKey,
    /// Not four letters.
    BadWord,
    /// A precondition that means nothing here.
    BadPrecondition(&'static str),
    /// No precondition at all.
    NoPrecondition,
    /// A content type or encoding that is not taken.
    BadType(&'static str),
    /// A plaintext save that is not JSON, or nested too deep.
    BadJson(JsonError),
    /// The word is wrong or missing.
    WrongWord {
        /// Wrong words that still cost no wait.
        tries_left: u32,
        /// The wait that has begun.
        wait_seconds: u64,
    },
    /// A wait is under way.
    WordWait {
        /// Its rest.
        seconds: u64,
    },
    /// Nothing is kept under this key.
    Missing,
    /// The record has this revision, not the one that was named.
    Newer(Revision),
    /// Too much waits for the disk.
    Busy,
    /// The day's budget is spent.
    Quota {
        /// Until the next day.
        seconds: u64,
    },
    /// The disk is full.
    Full,
    /// A fault that stands in the log.
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_64_lower_case_hexadecimal_digits() {
        let good = "0123456789abcdef".repeat(4);
        assert!(good.parse::<Key>().is_ok());
        for bad in ["", "0", &good[1..], &format!("{good}0"), &good.to_uppercase(), &good.replace('0', "g")] {
            assert_eq!(bad.parse::<Key>(), Err(Refusal::BadKey), "{bad}");
        }
        assert_eq!(format!("{:?}", good.parse::<Key>().unwrap()), "Key");
    }
}
