//! `runner suite`, `runner doctor`: the proof and the layers, for people and as JSON.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use runner::doctor;
use runner::engine::Mode;
use runner::gate::Gate;
use runner::suite::{self, Finished, Plan};
use runner::supervisor::Options;
use serde_json::Value;

use super::{Flags, usage};

pub(super) fn run(args: &[String]) -> ExitCode {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(e) => return usage(&e.to_string()),
    };
    let mut plan = Plan { program, cgroup: None, only: None, attacks: None, late_max: suite::LATE_MAX };
    let (mut json, mut state, mut flags) = (false, None, Flags::new(args));
    while let Some(word) = flags.next() {
        let value = match word {
            "--json" => {
                json = true;
                continue;
            }
            "--only" | "--attack" | "--cgroup" | "--state" | "--late-ms" => match flags.value(word) {
                Ok(value) => value.to_owned(),
                Err(problem) => return usage(&problem),
            },
            other => return usage(&format!("unknown flag `{other}`")),
        };
        match word {
            "--only" => plan.only = Some(value),
            "--cgroup" => plan.cgroup = Some(value),
            "--late-ms" => match value.parse() {
                Ok(ms) => plan.late_max = Duration::from_millis(ms),
                Err(_) => return usage(&format!("--late-ms is a number, not `{value}`")),
            },
            "--state" => state = Some(PathBuf::from(value)),
            _ => match std::fs::read_to_string(&value) {
                Ok(text) => plan.attacks = Some(text),
                Err(e) => return usage(&format!("{value}: {e}")),
            },
        }
    }
    match prove(&plan, state.as_deref(), !json && std::io::stderr().is_terminal()) {
        Ok(finished) => {
            if json {
                println!("{}", finished.report)
            } else {
                table(&finished)
            }
            ExitCode::from(u8::from(!finished.failures.is_empty()))
        }
        Err(why) => {
            eprintln!("runner suite: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the plan, and keeps the run in the gate's history when it was a full one.
fn prove(plan: &Plan, state: Option<&std::path::Path>, show: bool) -> Result<Finished, String> {
    let done = AtomicUsize::new(0);
    let mut finished = suite::run(plan, &|name| {
        let n = done.fetch_add(1, Ordering::Relaxed) + 1;
        if show {
            eprint!("\r\x1b[K{n} {name}");
        }
    })
    .map_err(|e| e.to_string())?;
    if show {
        eprint!("\r\x1b[K");
    }
    let whole = plan.only.is_none() && plan.attacks.is_none() && plan.late_max == suite::LATE_MAX;
    let gate =
        Gate::open_in(state.unwrap_or(&std::env::temp_dir()), &plan.program).map_err(|e| e.to_string())?;
    if let (Value::Object(report), Ok(Value::Object(subject))) =
        (&mut finished.report, serde_json::to_value(gate.subject()))
    {
        report.extend(subject);
    }
    if whole && state.is_some() {
        gate.keep(&finished).map_err(|e| e.to_string())?;
    }
    Ok(finished)
}

fn table(finished: &Finished) {
    let rows = finished.report["attacks"].as_array().map_or(&[][..], Vec::as_slice);
    println!("{:<20} {:<38} {:<22} {:<28} outside", "category", "attack", "guarded", "bare");
    for row in rows {
        let side = |mode: &str| {
            let how = row[mode]["how"].as_str().unwrap_or("not run");
            if row[mode]["blocked"] == true { how.to_owned() } else { format!("OPEN {how}") }
        };
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        println!(
            "{:<20} {:<38} {:<22} {:<28} {}",
            text("category"),
            text("name"),
            side("guarded"),
            side("bare"),
            text("control")
        );
    }
    for failure in &finished.failures {
        println!("FAILED {failure}");
    }
    let blocked = |row: &&Value| row["guarded"]["blocked"] == true && row["bare"]["blocked"] == true;
    let count = rows.iter().filter(blocked).count();
    let state = if finished.failures.is_empty() { "open" } else { "closed" };
    println!("python {state} ({count}/{} attacks blocked, 2 modes)", rows.len());
}

pub(super) fn doctor(args: &[String]) -> ExitCode {
    let mut options = match Options::new(Mode::Guarded) {
        Ok(options) => options,
        Err(e) => return usage(&e.to_string()),
    };
    let mut flags = Flags::new(args);
    while let Some(word) = flags.next() {
        match (word, flags.value(word)) {
            ("--cgroup", Ok(path)) => options.cgroup = Some(path.to_owned()),
            _ => return usage(&format!("unknown flag `{word}`")),
        }
    }
    let lines = doctor::look(&options);
    let mut healthy = doctor::control();
    for line in &lines {
        match &line.found {
            Ok(how) => println!("ok       {:<20} {how}", line.layer),
            Err(why) => {
                healthy = false;
                println!("MISSING  {:<20} {why}\n         {:<20} {}", line.layer, "", line.remedy);
            }
        }
    }
    ExitCode::from(u8::from(!healthy))
}
