//! Everything that needs a kernel: real zygotes, real children, real limits.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper of a test fails where it stands")]

#[path = "it/bad_input.rs"]
mod bad_input;
#[path = "it/command.rs"]
mod command;
#[path = "it/confined.rs"]
mod confined;
#[path = "it/frames.rs"]
mod frames;
#[path = "it/layers.rs"]
mod layers;
#[path = "it/lint.rs"]
mod lint;
#[path = "it/proof.rs"]
mod proof;
#[path = "it/seeds.rs"]
mod seeds;
#[path = "it/service.rs"]
mod service;
#[path = "it/survival.rs"]
mod survival;
#[path = "it/unprivileged.rs"]
mod unprivileged;
#[path = "it/worker/mod.rs"]
mod worker;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use runner::engine::Mode;
use runner::supervisor::{Call, Options, Report, Supervisor};

/// Held by what measures the machine and by what loads it: they do not run at once.
fn machine() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program under test.
fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_runner").into()
}

fn options(mode: Mode) -> Options {
    Options {
        program: program(),
        mode,
        calls_max: 2,
        cgroup: None,
        lenient: false,
        listening: false,
        bandit: None,
    }
}

fn supervisor(mode: Mode) -> Supervisor {
    Supervisor::start(options(mode)).unwrap()
}

/// One call with every layer on.
fn call(supervisor: &Supervisor, source: &str, inputs: &str) -> Report {
    supervisor.call(&Call::new(source.as_bytes(), inputs.as_bytes())).unwrap()
}

/// `ok RESULT`, or the name of the outcome and its sentence.
fn ending(report: &Report) -> String {
    match &report.outcome {
        runner::outcome::Outcome::Ok(result) => format!("ok {result}"),
        other => format!("{}: {}", other.name(), other.sentence()),
    }
}

/// Checks that the call ends as `expected` begins, within 100 ms of its deadline, and that the next one is unharmed.
fn check(supervisor: &Supervisor, source: &str, inputs: &str, expected: &str) {
    let report = call(supervisor, source, inputs);
    let found = ending(&report);
    assert!(found.starts_with(expected), "{source}\n  ended as {found}\n  expected {expected}");
    assert!(report.wall.as_millis() < 3_600, "{source}: {:?}", report.wall);
    let next = call(supervisor, "def run(inputs):\n    return inputs\n", "[1]");
    assert_eq!(ending(&next), "ok [1]", "after {source}");
}
