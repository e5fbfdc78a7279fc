//! How many bytes all players together may save in a day.
//!
//! Counted in memory: a restart begins the day's budget anew. It keeps one day's flood from filling the disk; it is
//! not an account of anybody.

use std::sync::{Mutex, PoisonError};

use super::{Refusal, Today};

/// What is left of the day.
#[derive(Debug)]
pub struct Budget {
    bytes_max: u64,
    spent: Mutex<(Today, u64)>,
}

impl Budget {
    /// A budget of so many bytes a day.
    pub fn new(bytes_max: u64) -> Self {
        Self { bytes_max, spent: Mutex::new((Today::now(), 0)) }
    }

    /// Takes `bytes` from it.
    pub fn spend(&self, bytes: usize, today: Today) -> Result<(), Refusal> {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if spent.0 != today {
            *spent = (today, 0);
        }
        let after = spent.1.saturating_add(bytes as u64);
        if after > self.bytes_max {
            return Err(Refusal::Quota { seconds: Today::seconds_left() });
        }
        spent.1 = after;
        Ok(())
    }

    /// The bytes spent today.
    pub fn spent(&self) -> u64 {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_its_bytes_and_the_next_has_them_again() {
        let budget = Budget::new(10);
        assert_eq!(budget.spend(6, Today(1)), Ok(()));
        assert!(matches!(budget.spend(5, Today(1)), Err(Refusal::Quota { .. })));
        assert_eq!(budget.spend(4, Today(1)), Ok(()));
        assert_eq!(budget.spent(), 10);
        assert_eq!(budget.spend(10, Today(2)), Ok(()));
    }
}
