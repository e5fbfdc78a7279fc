//! bandit.

/// How bandit is asked.
#[derive(Debug, Default)]
pub struct Bandit;
