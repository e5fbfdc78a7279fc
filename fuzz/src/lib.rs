//! What the fuzz targets try, one function each: the readers of hostile bytes, and what must hold of them.
//!
//! The targets (`fuzz_targets/`) are for nightly and run as long as one likes. `intake/tests/seeds.rs` and
//! `runner/tests/it/seeds.rs` hold the same functions against the committed seeds and changes of them, with any compiler.

pub mod intake;
pub mod runner;
