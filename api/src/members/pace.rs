//! How often a member may ask: so many requests a minute for each key, from wherever they come.
//!
//! Called by the desk once a token has proved its key, so nobody spends another's minute. nginx counts by address, which a
//! member can have many of. Kept in memory, for the minute that is now.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The minute, and what each key asked in it.
#[derive(Debug)]
pub struct Pace {
    requests_max: u32,
    asked: Mutex<(i64, HashMap<String, u32>)>,
}

impl Pace {
    /// At most so many requests a minute.
    pub fn new(requests_max: u32) -> Self {
        Self { requests_max, asked: Mutex::default() }
    }

    /// Counts a request of the key with that thumbprint at that second; `Err` with the rest of the minute if it is one too many.
    pub fn count(&self, thumbprint: &str, now: i64) -> Result<(), i64> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let (minute, keys) = &mut *asked;
        if *minute != now / 60 {
            (*minute, *keys) = (now / 60, HashMap::new());
        }
        let count = keys.entry(thumbprint.to_owned()).or_default();
        *count = count.saturating_add(1);
        if *count > self.requests_max { Err(60 - now.rem_euclid(60)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_requests_and_in_the_next_minute_again() {
        let pace = Pace::new(2);
        assert_eq!([1, 2, 3].map(|_| pace.count("a", 45)), [Ok(()), Ok(()), Err(15)]);
        assert_eq!(pace.count("b", 46), Ok(()), "another's minute is their own");
        assert_eq!(pace.count("a", 60), Ok(()));
        assert_eq!(pace.count("a", 45), Ok(()), "a clock that jumps back begins a minute too");
    }
}
