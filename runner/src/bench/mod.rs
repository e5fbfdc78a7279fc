//! What a call costs, beside a bare fork of the same zygote, in one interleaved run.
//!
//! Used by `runner bench`. A figure is the time from the order to the zygote until the child is reaped, on a warm
//! cache; each part is a bare fork with one layer, so the sum of the parts can be compared with the whole. `steady` is
//! the same for a while on all cores, `late` what ends badly, `crun` what others do.

mod crun;
mod late;
mod steady;

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::confine::{Step, Steps};
use crate::soak::resident_kb;
use crate::supervisor::{Call, RunError, Supervisor};
use crun::Bundle;

const TRIVIAL: &[u8] = b"def run(inputs):\n    return {\"sum\": inputs[\"a\"] + inputs[\"b\"]}\n";
const INPUTS: &[u8] = b"{\"a\": 1, \"b\": 2}";
/// The same for an interpreter on its own.
const PLAIN: &str =
    "import json; v = json.loads('{\"a\": 1, \"b\": 2}'); print(json.dumps({'sum': v['a'] + v['b']}))";
/// What a call allocates whose memory is compared with that, in MiB.
const ALLOCATED_MIB: u64 = 8;

/// How long to measure.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Interleaved rounds of every kind of call.
    pub rounds: usize,
    /// How long to call as fast as possible.
    pub sustained: Duration,
    /// From how many threads.
    pub threads: usize,
    /// Whether a service is started, for the client that hangs up.
    pub served: bool,
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

/// One kind of call, and what was measured of it.
struct Kind<'a> {
    name: &'static str,
    call: Call<'a>,
    wall: Vec<u64>,
    cpu: Vec<u64>,
    peak: Vec<u64>,
}

/// What came out of a kind: microseconds, and bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Figures {
    p10: u64,
    p50: u64,
    p99: u64,
    cpu: u64,
    peak_bytes: u64,
}

impl Kind<'_> {
    fn figures(&mut self) -> Figures {
        Figures {
            p10: percentile(&mut self.wall, 10),
            p50: percentile(&mut self.wall, 50),
            p99: percentile(&mut self.wall, 99),
            cpu: percentile(&mut self.cpu, 50),
            peak_bytes: percentile(&mut self.peak, 50),
        }
    }
}

/// What is run beside calls, now and then.
struct Others {
    python: Vec<u64>,
    bundle: Result<Bundle, String>,
    crun: Vec<u64>,
}

/// Runs the plan against a lenient supervisor.
pub fn run(supervisor: &Supervisor, plan: Plan) -> Result<Value, RunError> {
    let mut others = Others { python: Vec::new(), bundle: Bundle::make(), crun: Vec::new() };
    let figures = interleaved(supervisor, plan.rounds, &mut others)?;
    let of = |name: &str| figures.get(name).copied().unwrap_or_default();
    let (call, bare, large) = (of("call"), of("bare"), of("large"));
    let (added, costs) = (call.p50.saturating_sub(bare.p50), layers(of, |f| f.p50));
    let (added_p10, costs_p10) = (call.p10.saturating_sub(bare.p10), layers(of, |f| f.p10));
    let (sum, sum_p10) = (costs.values().sum(), costs_p10.values().sum());
    let mut report = json!({
        "call_p50_us": call.p50, "call_p99_us": call.p99, "call_p10_us": call.p10, "call_cpu_p50_us": call.cpu,
        "bare_fork_p50_us": bare.p50, "bare_fork_p10_us": bare.p10, "bare_fork_cpu_p50_us": bare.cpu,
        "ratio": hundredths(call.p50, bare.p50), "ratio_of_p10": hundredths(call.p10, bare.p10),
        "ratio_of_cpu": hundredths(call.cpu, bare.cpu),
        "zygote_rss_kb": resident_kb(supervisor.zygote_pid()),
        "parts": costs, "parts_sum_us": sum, "added_us": added, "added_to_parts": hundredths(added, sum),
        "parts_p10": costs_p10, "added_to_parts_of_p10": hundredths(added_p10, sum_p10),
        "large_source_p50_us": large.p50, "large_to_small": hundredths(large.p50, call.p50),
        "large_p10_us": large.p10, "large_to_small_of_p10": hundredths(large.p10, call.p10),
        "large_cpu_p50_us": large.cpu, "large_to_small_of_cpu": hundredths(large.cpu, call.cpu),
        "call_memory_kb": call.peak_bytes >> 10,
        "memory_beyond_allocated_kb": (of("allocating").peak_bytes >> 10).saturating_sub(ALLOCATED_MIB << 10),
        "python3_p50_us": percentile(&mut others.python, 50),
        "late": late::measure(supervisor, plan.rounds)?,
        "sustained": steady::measure(supervisor, plan, call.p50)?,
        "rounds": plan.rounds,
    });
    match others.bundle {
        Ok(_) => {
            let crun = percentile(&mut others.crun, 50);
            report["crun_p50_us"] = crun.into();
            report["crun_to_call"] = hundredths(crun, call.p50).into();
            report["crun_to_call_of_p10"] = hundredths(percentile(&mut others.crun, 10), call.p10).into();
        }
        Err(why) => report["crun_left_out"] = why.into(),
    }
    if plan.served {
        match late::hung_up(supervisor.program()) {
            Ok(late_us) => report["late"]["a client that hangs up"] = json!({"late_us": late_us}),
            Err(why) => report["hang_up_left_out"] = why.into(),
        }
    }
    Ok(report)
}

/// Calls every kind in every round.
fn interleaved(
    supervisor: &Supervisor,
    rounds: usize,
    others: &mut Others,
) -> Result<BTreeMap<&'static str, Figures>, RunError> {
    let big = padded(usize::try_from(policy::limits().work.python_bytes_max).unwrap_or(0));
    let whole = Call::new(TRIVIAL, INPUTS);
    let allocating = format!("def run(i):\n    return len(b'x' * ({ALLOCATED_MIB} << 20))\n");
    let kind = |name, call| Kind { name, call, wall: Vec::new(), cpu: Vec::new(), peak: Vec::new() };
    let mut kinds = vec![
        kind("call", whole),
        kind("bare", Call { steps: Steps::NONE, ..whole }),
        kind("large", Call::new(&big, INPUTS)),
        // A self-check passes only with everything on: its cost is what leaving it out saves.
        kind("no_check", Call { steps: Steps::ALL.without(Step::SelfCheck), ..whole }),
        kind("allocating", Call::new(allocating.as_bytes(), INPUTS)),
    ];
    kinds.extend(parts().into_iter().map(|(name, steps)| kind(name, Call { steps, ..whole })));
    for round in 0..=rounds {
        for at in order(kinds.len(), round) {
            let kind = &mut kinds[at];
            let report = supervisor.call(&kind.call)?;
            // The first round fills the cache and warms what there is to warm.
            if round > 0 {
                kind.wall.push(microseconds(report.wall));
                kind.cpu.push(microseconds(report.cpu));
                kind.peak.push(report.memory_peak_bytes);
            }
        }
        if round % 8 == 1 {
            others.python.extend(plain_python());
            let once = others.bundle.as_ref().ok().and_then(|bundle| bundle.run().ok());
            others.crun.extend(once.map(microseconds));
        }
    }
    Ok(kinds.iter_mut().map(|kind| (kind.name, kind.figures())).collect())
}

/// Every number below `count` once, in each round in another order, so that no kind always follows the same other one.
fn order(count: usize, round: usize) -> impl Iterator<Item = usize> {
    // Steps of any length reach everything on a circle of a prime number of places.
    const PLACES: usize = 31;
    let step = round % (PLACES - 1) + 1;
    (0..PLACES).map(move |place| (place * step + round) % PLACES).filter(move |at| *at < count)
}

/// What each part costs alone, by one of its figures.
fn layers(of: impl Fn(&str) -> Figures, figure: impl Fn(Figures) -> u64) -> BTreeMap<&'static str, u64> {
    let beyond = |name, base| figure(of(name)).saturating_sub(figure(of(base)));
    // A /tmp needs its namespace, so its own cost is what it adds to that.
    let base = |name| if name == "tmp" { "namespaces" } else { "bare" };
    let alone = parts().into_iter().map(|(name, _)| (name, beyond(name, base(name))));
    alone.chain([("self_check", beyond("call", "no_check"))]).collect()
}

/// `a` to `b`, to two places.
fn hundredths(a: u64, b: u64) -> f64 {
    (a * 100 / b.max(1)) as f64 / 100.0
}

/// The time of an interpreter that starts, does the same and ends, without any confinement.
fn plain_python() -> Option<u64> {
    let started = Instant::now();
    let python = std::path::Path::new(env!("TINYFILES_PYTHON_HOME")).join("bin/python3");
    let ended = Command::new(python).args(["-I", "-S", "-c", PLAIN]).stdout(Stdio::null()).status();
    ended.ok().filter(std::process::ExitStatus::success).map(|_| microseconds(started.elapsed()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_samples() {
        let mut samples = vec![5, 1, 4, 2, 3];
        assert_eq!((percentile(&mut samples, 50), percentile(&mut samples, 99)), (3, 5));
        assert_eq!(percentile(&mut [], 50), 0);
    }

    #[test]
    fn every_round_has_every_kind_once_and_orders_differ() {
        let orders: Vec<Vec<usize>> = (0..30).map(|round| order(12, round).collect()).collect();
        for order in &orders {
            let mut kinds = order.clone();
            kinds.sort_unstable();
            assert_eq!(kinds, (0..12).collect::<Vec<_>>(), "{order:?}");
        }
        let followers: BTreeSet<usize> =
            orders.iter().flat_map(|o| o.windows(2)).filter(|w| w[0] == 3).map(|w| w[1]).collect();
        assert!(followers.len() > 8, "3 is followed by {followers:?} only");
    }

    #[test]
    fn a_padded_source_is_as_long_as_asked() {
        let source = padded(16_384);
        assert!((15_900..=16_384).contains(&source.len()), "{}", source.len());
    }
}
