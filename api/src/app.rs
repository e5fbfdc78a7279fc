//! What all requests share.

use crate::metrics::Metrics;
use crate::saves::budget::Budget;
use crate::saves::{Store, Words};

/// The features behind the routes, opened.
pub struct App {
    /// The records of saves.
    pub saves: Store,
    /// Their words.
    pub words: Words,
    /// What may still be saved today.
    pub budget: Budget,
    /// Counters.
    pub metrics: Metrics,
}
