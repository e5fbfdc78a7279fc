//! Calls as fast as the cores can, for a while: the rate beside the one that the latency promises, memory, and what the
//! host holds before and after.
//!
//! Used by the bench. `soak` calls all sorts of functions to find what they leave; here one trivial function is called,
//! so that the rate can be compared.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde_json::{Value, json};

use super::{INPUTS, Plan, TRIVIAL, hundredths, microseconds};
use crate::soak::{observe, resident_kb};
use crate::supervisor::{Call, RunError, Supervisor};

/// Runs for as long as the plan says. `call_us` is what one call took alone.
pub(super) fn measure(supervisor: &Supervisor, plan: Plan, call_us: u64) -> Result<Value, RunError> {
    let memory = || [resident_kb(supervisor.zygote_pid()), resident_kb(std::process::id())];
    // A first second brings threads and heaps to their size.
    calls(supervisor, Plan { sustained: plan.sustained.min(std::time::Duration::from_secs(1)), ..plan })?;
    let (before, memory_before, started) = (observe(&[supervisor]), memory(), Instant::now());
    let done = calls(supervisor, plan)?;
    let took = started.elapsed();
    let (after, memory_after) = (observe(&[supervisor]), memory());
    let differing: Vec<Value> = after
        .iter()
        .filter(|(name, count)| before.get(*name) != Some(count))
        .map(|(name, count)| json!([name, before.get(name), count]))
        .collect();
    // Calls in a hundred seconds, so that two places are left of a whole number.
    let rate = done * 100_000_000 / microseconds(took).max(1);
    let promised = plan.threads as u64 * 100_000_000 / call_us.max(1);
    Ok(json!({
        "seconds": took.as_secs(), "calls": done,
        "calls_per_s": hundredths(rate, 100), "promised_per_s": hundredths(promised, 100),
        "to_promise": hundredths(rate, promised),
        "zygote_rss_kb": [memory_before[0], memory_after[0]],
        "supervisor_rss_kb": [memory_before[1], memory_after[1]],
        "counts": before.len(), "counts_that_differ": differing,
    }))
}

fn calls(supervisor: &Supervisor, plan: Plan) -> Result<u64, RunError> {
    let (started, done) = (Instant::now(), AtomicU64::new(0));
    let call = Call::new(TRIVIAL, INPUTS);
    let results: Vec<Result<(), RunError>> = std::thread::scope(|scope| {
        let work = || {
            while started.elapsed() < plan.sustained {
                supervisor.call(&call)?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        let threads: Vec<_> = (0..plan.threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().filter_map(|t| t.join().ok()).collect()
    });
    results.into_iter().collect::<Result<(), RunError>>()?;
    Ok(done.into_inner())
}
