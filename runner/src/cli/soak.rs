//! `runner soak`: many calls, and whether anything stays behind.

use std::process::ExitCode;
use std::time::Duration;

use runner::engine::Mode;
use runner::soak::{self, Plan};
use runner::supervisor::{Options, Supervisor};
use serde_json::Value;

use super::{Flags, usage};

pub(super) fn run(args: &[String]) -> ExitCode {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut plan = Plan { calls: u64::MAX, time: Duration::from_secs(60), threads };
    let (mut cgroup, mut flags) = (None, Flags::new(args));
    while let Some(word) = flags.next() {
        let value = match flags.value(word) {
            Ok(value) => value,
            Err(problem) => return usage(&problem),
        };
        match (word, value.parse::<u32>()) {
            ("--calls", Ok(n)) => plan.calls = n.into(),
            ("--seconds", Ok(n)) => plan.time = Duration::from_secs(n.into()),
            ("--cgroup", _) => cgroup = Some(value.to_owned()),
            _ => return usage(&format!("{word} {value}: not understood")),
        }
    }
    match soak(plan, cgroup) {
        Ok(report) => {
            println!("{report:#}");
            ExitCode::from(u8::from(report["clean"] != true))
        }
        Err(why) => {
            eprintln!("runner soak: {why}");
            ExitCode::FAILURE
        }
    }
}

fn soak(plan: Plan, cgroup: Option<String>) -> Result<Value, String> {
    let options = Options::new(Mode::Guarded).map_err(|e| e.to_string())?;
    let options = Options { calls_max: plan.threads, cgroup, ..options };
    let supervisor = Supervisor::start(options).map_err(|e| e.to_string())?;
    soak::run(&supervisor, plan).map_err(|e| e.to_string())
}
