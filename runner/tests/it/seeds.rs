//! The seeds of the fuzz targets, and changes of them, through what the targets hold: without a fuzzer, on any compiler.

#[expect(unreachable_pub, reason = "public in the crate of the fuzz targets")]
#[path = "../../../fuzz/src/changes.rs"]
mod changes;
#[expect(unreachable_pub, reason = "public in the crate of the fuzz targets")]
#[path = "../../../fuzz/src/runner.rs"]
mod targets;

use std::path::Path;

/// Changes of each seed.
const CHANGES: usize = 2_000;

fn replay(target: &str, holds: fn(&[u8])) {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(target);
    changes::replay(&seeds, CHANGES, holds);
}

#[test]
fn frames() {
    replay("frames", targets::frames);
}

#[test]
fn messages_to_a_worker() {
    replay("worker", targets::worker);
}
