//! What a call costs, beside a bare fork of the same zygote, in one interleaved run.
//!
//! Used by `runner bench`. A figure is the time from the order to the zygote until the child is reaped, on a warm
//! cache; each part is a bare fork with one layer, so the sum of the parts can be compared with the whole.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::confine::{Step, Steps};
use crate::soak::resident_kb;
use crate::supervisor::{Call, RunError, Supervisor};

const TRIVIAL: &[u8] = b"def run(inputs):\n    return {\"sum\": inputs[\"a\"] + inputs[\"b\"]}\n";
const INPUTS: &[u8] = b"{\"a\": 1, \"b\": 2}";

/// How long to measure.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Interleaved rounds of every kind of call.
    pub rounds: usize,
    /// How long to call as fast as possible.
    pub sustained: Duration,
    /// From how many threads.
    pub threads: usize,
}

/// A source of about `bytes` bytes that does the same as the trivial one, beside the rules of a small game.
pub fn padded(bytes: usize) -> Vec<u8> {
    let mut source = TRIVIAL.to_vec();
    let mut n = 0;
    loop {
        let more = format!(
            "\ndef rule_{n}(state, move):\n    \"\"\"Decide what rule {n} makes of a move.\"\"\"\n    total = 0\n    \
             for index, value in enumerate(state.get(\"cells\", [])):\n        \
             if value == move and index % {n} == 0:\n            total += value * {n}\n        \
             elif value > move:\n            total -= 1\n    if total > {n} * 10:\n        \
             return {{\"won\": True, \"score\": total}}\n    \
             return {{\"won\": False, \"score\": total, \"next\": [total, move]}}\n"
        );
        if source.len() + more.len() > bytes {
            return source;
        }
        source.extend_from_slice(more.as_bytes());
        n += 1;
    }
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The value below which `percent` of the sorted samples lie.
fn percentile(samples: &mut [u64], percent: usize) -> u64 {
    samples.sort_unstable();
    samples.get((samples.len() * percent / 100).min(samples.len().saturating_sub(1))).copied().unwrap_or(0)
}

/// The parts of a call: groups of steps that make sense alone.
fn parts() -> Vec<(&'static str, Steps)> {
    let only = |steps: &[Step]| steps.iter().fold(Steps::NONE, |set, s| set.with(*s));
    vec![
        ("namespaces", only(&[Step::Namespaces])),
        ("cgroup", only(&[Step::Cgroup])),
        ("tmp", only(&[Step::Namespaces, Step::Tmp])),
        (
            "identity",
            only(&[Step::Rlimits, Step::Bounding, Step::Groups, Step::Gid, Step::Uid, Step::LinuxCaps]),
        ),
        ("no_new_privs", only(&[Step::NoNewPrivs])),
        ("landlock", only(&[Step::Landlock])),
        ("seccomp", only(&[Step::Seccomp])),
    ]
}

/// Runs the plan against a lenient supervisor.
pub fn run(supervisor: &Supervisor, plan: Plan) -> Result<Value, RunError> {
    let big = padded(16_384);
    let whole = Call::new(TRIVIAL, INPUTS);
    let large = Call::new(&big, INPUTS);
    let bare = Call { steps: Steps::NONE, ..whole };
    let mut kinds: Vec<(&str, Call<'_>, Vec<u64>, Vec<u64>)> = vec![
        ("call", whole, Vec::new(), Vec::new()),
        ("bare", bare, Vec::new(), Vec::new()),
        ("large", large, Vec::new(), Vec::new()),
    ];
    // A self-check passes only with everything on: its cost is what leaving it out saves.
    let unchecked = Call { steps: Steps::ALL.without(Step::SelfCheck), ..whole };
    kinds.push(("no_check", unchecked, Vec::new(), Vec::new()));
    for (name, steps) in parts() {
        kinds.push((name, Call { steps, ..whole }, Vec::new(), Vec::new()));
    }
    let mut python = Vec::new();
    let count = kinds.len();
    for round in 0..=plan.rounds {
        for place in 0..count {
            // Each round in another order, so that no kind always follows the same other one.
            let at = (place * (round % (count - 1) + 1) + round) % count;
            let (_, call, samples, cpu) = &mut kinds[at];
            let report = supervisor.call(call)?;
            // The first round fills the cache and warms what there is to warm.
            if round > 0 {
                samples.push(microseconds(report.wall));
                cpu.push(microseconds(report.cpu));
            }
        }
        if round % 8 == 1 {
            python.extend(plain_python());
        }
    }
    let deadline = late(supervisor)?;
    let rate = sustained(supervisor, plan)?;
    let mut cpu = |name: &str| {
        let samples = kinds.iter_mut().find(|k| k.0 == name).map_or(&mut [][..], |k| k.3.as_mut_slice());
        percentile(samples, 50)
    };
    let (call_cpu, bare_cpu, large_cpu) = (cpu("call"), cpu("bare"), cpu("large"));
    let mut of = |name: &str, percent| {
        let samples = kinds.iter_mut().find(|k| k.0 == name).map_or(&mut [][..], |k| k.2.as_mut_slice());
        percentile(samples, percent)
    };
    let (call, bare) = (of("call", 50), of("bare", 50));
    let mut costs = serde_json::Map::new();
    for (name, _) in parts() {
        let alone = of(name, 50).saturating_sub(bare);
        costs.insert(name.to_owned(), alone.into());
    }
    costs.insert("self_check".to_owned(), call.saturating_sub(of("no_check", 50)).into());
    // A /tmp needs its namespace, so its own cost is what it adds to that.
    let spaces = costs.get("namespaces").and_then(Value::as_u64).unwrap_or(0);
    if let Some(tmp) = costs.get_mut("tmp") {
        *tmp = tmp.as_u64().unwrap_or(0).saturating_sub(spaces).into();
    }
    let sum: u64 = costs.values().filter_map(Value::as_u64).sum();
    let hundredths = |a: u64, b: u64| (a * 100 / b.max(1)) as f64 / 100.0;
    Ok(json!({
        "call_p50_us": call, "call_p99_us": of("call", 99), "bare_fork_p50_us": bare,
        "ratio": hundredths(call, bare),
        "call_cpu_p50_us": call_cpu, "bare_fork_cpu_p50_us": bare_cpu, "large_cpu_p50_us": large_cpu,
        "ratio_of_cpu": hundredths(call_cpu, bare_cpu), "large_to_small_of_cpu": hundredths(large_cpu, call_cpu),
        "large_min_us": of("large", 0), "large_to_small_of_min": hundredths(of("large", 0), of("call", 0)),
        "call_min_us": of("call", 0), "bare_fork_min_us": of("bare", 0),
        "ratio_of_min": hundredths(of("call", 0), of("bare", 0)),
        "parts": costs, "parts_sum_us": sum, "added_us": call.saturating_sub(bare),
        "added_to_parts": hundredths(call.saturating_sub(bare), sum),
        "large_source_p50_us": of("large", 50), "large_to_small": hundredths(of("large", 50), call),
        "python3_p50_us": percentile(&mut python, 50),
        "zygote_rss_kb": resident_kb(supervisor.zygote_pid()),
        "late_by_us": deadline,
        "calls_per_s": rate, "rounds": plan.rounds,
    }))
}

/// By how much an endless loop outlives a short deadline.
fn late(supervisor: &Supervisor) -> Result<u64, RunError> {
    let wall = Duration::from_millis(300);
    let source = b"def run(inputs):\n    while True:\n        pass\n";
    let call = Call::new(source, b"null").within(wall);
    let mut most = 0;
    for _ in 0..3 {
        let started = Instant::now();
        supervisor.call(&call)?;
        most = most.max(microseconds(started.elapsed().saturating_sub(wall)));
    }
    Ok(most)
}

fn sustained(supervisor: &Supervisor, plan: Plan) -> Result<f64, RunError> {
    let (started, done) = (Instant::now(), AtomicU64::new(0));
    let call = Call::new(TRIVIAL, INPUTS);
    let results: Vec<Result<(), RunError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.threads)
            .map(|_| {
                scope.spawn(|| {
                    while started.elapsed() < plan.sustained {
                        supervisor.call(&call)?;
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().filter_map(|t| t.join().ok()).collect()
    });
    results.into_iter().collect::<Result<(), RunError>>()?;
    let per_ms = done.into_inner() as f64 / started.elapsed().as_secs_f64();
    Ok((per_ms * 10.0).round() / 10.0)
}

/// The time of an interpreter that starts, does the same and ends, without any confinement.
fn plain_python() -> Option<u64> {
    let started = Instant::now();
    let code =
        "import json; v = json.loads('{\"a\": 1, \"b\": 2}'); print(json.dumps({'sum': v['a'] + v['b']}))";
    let python = std::path::Path::new(env!("TINYFILES_PYTHON_HOME")).join("bin/python3");
    let ended = Command::new(python).args(["-I", "-S", "-c", code]).stdout(Stdio::null()).status();
    ended.ok().filter(std::process::ExitStatus::success).map(|_| microseconds(started.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_samples() {
        let mut samples = vec![5, 1, 4, 2, 3];
        assert_eq!((percentile(&mut samples, 50), percentile(&mut samples, 99)), (3, 5));
        assert_eq!(percentile(&mut [], 50), 0);
    }

    #[test]
    fn a_padded_source_is_as_long_as_asked() {
        let source = padded(16_384);
        assert!((15_900..=16_384).contains(&source.len()), "{}", source.len());
    }
}
