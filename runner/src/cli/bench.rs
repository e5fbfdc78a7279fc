//! `runner bench`: what a call costs.

use std::process::ExitCode;
use std::time::Duration;

use runner::bench::{self, Plan};
use runner::engine::Mode;
use runner::supervisor::{Options, Supervisor};
use serde_json::Value;

use super::{Flags, usage};

/// What is measured, where it stands in the report, and what is aimed at.
const ROWS: &[(&str, &str, &str)] = &[
    ("a call of a small function, p50, µs", "/call_p50_us", ""),
    ("its p99, µs", "/call_p99_us", ""),
    ("a bare fork of the same zygote that does the same, p50, µs", "/bare_fork_p50_us", ""),
    ("call to bare fork", "/ratio", "1.8"),
    ("the same of the fastest tenth of each", "/ratio_of_p10", ""),
    ("resident memory of the zygote, KiB", "/zygote_rss_kb", "14 MiB"),
    ("what the layers add, p50, µs", "/added_us", ""),
    ("beside the sum of the parts measured alone", "/added_to_parts", "1.3"),
    ("the same of the fastest tenth of each", "/added_to_parts_of_p10", ""),
    ("a cached source of 16 KiB beside one of 200 bytes, p50", "/large_to_small", "1.3"),
    ("the same of CPU time", "/large_to_small_of_cpu", ""),
    ("the same of the fastest tenth of each", "/large_to_small_of_p10", ""),
    ("memory of a call, the kernel's for it included, KiB", "/call_memory_kb", "4 MiB"),
    ("memory beyond what a function allocates, KiB", "/memory_beyond_allocated_kb", "4 MiB"),
    ("`python3 -I -S` that does the same, p50, µs", "/python3_p50_us", ""),
    ("`crun run` of that in an equivalent bundle, p50, µs", "/crun_p50_us", ""),
    ("`crun run` left out", "/crun_left_out", ""),
    ("`crun run` to call", "/crun_to_call", "at least 12"),
    ("the same of the fastest tenth of each", "/crun_to_call_of_p10", ""),
    ("calls a second, sustained", "/sustained/calls_per_s", ""),
    ("beside what the p50 promises", "/sustained/to_promise", "1"),
    ("seconds of that", "/sustained/seconds", ""),
    ("zygote before and after, KiB", "/sustained/zygote_rss_kb", "flat"),
    ("supervisor before and after, KiB", "/sustained/supervisor_rss_kb", "flat"),
    ("counts of the host that differ afterwards", "/sustained/counts_that_differ", "none"),
    ("a client that hangs up left out", "/hang_up_left_out", ""),
];

pub(super) fn run(args: &[String]) -> ExitCode {
    let mut plan = Plan { rounds: 200, sustained: Duration::from_secs(5), threads: 2, served: false };
    let (mut json, mut cgroup, mut flags) = (false, None, Flags::new(args));
    while let Some(word) = flags.next() {
        let number = |flags: &mut Flags<'_>| flags.value(word).ok().and_then(|v| v.parse::<u64>().ok());
        match word {
            "--json" => json = true,
            "--full" => {
                plan = Plan { rounds: 400, sustained: Duration::from_secs(60), served: true, ..plan };
            }
            "--rounds" | "--seconds" => {
                let Some(n) = number(&mut flags) else { return usage(&format!("{word} needs a number")) };
                if word == "--rounds" {
                    plan.rounds = usize::try_from(n).unwrap_or(usize::MAX);
                } else {
                    plan.sustained = Duration::from_secs(n);
                }
            }
            "--cgroup" => match flags.value(word) {
                Ok(path) => cgroup = Some(path.to_owned()),
                Err(problem) => return usage(&problem),
            },
            other => return usage(&format!("unknown flag `{other}`")),
        }
    }
    match measure(plan, cgroup) {
        Ok(report) if json => println!("{report}"),
        Ok(report) => table(&report),
        Err(why) => {
            eprintln!("runner bench: {why}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// As README.md quotes it.
fn table(report: &Value) {
    println!("| what | measured | aim |\n|---|---|---|");
    for (what, place, aim) in ROWS {
        if let Some(figure) = report.pointer(place) {
            println!(
                "| {what} | {} | {aim} |",
                figure.as_str().map_or_else(|| figure.to_string(), str::to_owned)
            );
        }
    }
    println!("\n| layer, alone | p50, µs | fastest tenth, µs |\n|---|---|---|");
    for (layer, cost) in report["parts"].as_object().into_iter().flatten() {
        println!("| {layer} | {cost} | {} |", report["parts_p10"][layer]);
    }
    println!("\n| input | latest past its deadline, ms (aim 100) | ends as |\n|---|---|---|");
    for (input, row) in report["late"].as_object().into_iter().flatten() {
        let late = row["late_us"].as_f64().unwrap_or_default() / 1000.0;
        println!("| {input} | {late:.1} | {} |", row["ended"].as_str().unwrap_or("timeout"));
    }
}

fn measure(plan: Plan, cgroup: Option<String>) -> Result<Value, String> {
    let options = Options {
        calls_max: plan.threads,
        cgroup,
        lenient: true,
        ..Options::new(Mode::Guarded).map_err(|e| e.to_string())?
    };
    let supervisor = Supervisor::start(options).map_err(|e| e.to_string())?;
    if !supervisor.has_cgroups() {
        return Err(
            "no cgroup to limit calls in; run as root, or name one that you own with --cgroup".to_owned()
        );
    }
    bench::run(&supervisor, plan).map_err(|e| e.to_string())
}
