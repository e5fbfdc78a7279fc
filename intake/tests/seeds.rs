//! The seeds of the fuzz targets, and changes of them, through what the targets hold: without a fuzzer, on any compiler.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[expect(unreachable_pub, reason = "public in the crate of the fuzz targets")]
#[path = "../../fuzz/src/changes.rs"]
mod changes;
#[expect(unreachable_pub, reason = "public in the crate of the fuzz targets")]
#[path = "../../fuzz/src/intake.rs"]
mod targets;

use std::path::Path;

/// Changes of each seed.
const CHANGES: usize = 300;

fn replay(target: &str, holds: fn(&[u8])) {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(target);
    changes::replay(&seeds, CHANGES, holds);
}

#[test]
fn zips() {
    replay("zip", targets::zip);
}

#[test]
fn sidecars() {
    replay("sidecar", targets::sidecar);
}

#[test]
fn pages() {
    replay("page", targets::page);
}

#[test]
fn scripts() {
    replay("script", targets::script);
}

#[test]
fn functions() {
    replay("python", targets::python);
}
