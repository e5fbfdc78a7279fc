//! Placeholder until its gate exists.

rules! {}
