//! `runner call`: a creator's dry run.

use std::io::{Read, Write};
use std::process::ExitCode;

use runner::confine::seccomp::Role;
use runner::confine::{Step, Steps, service};
use runner::engine::Mode;
use runner::outcome::Outcome;
use runner::supervisor::{Call, Options, Report, Supervisor};

use super::{Flags, usage};

/// Exit code of a call that would be 0 with every layer on.
const UNPROVED: u8 = 3;

struct Asked {
    file: String,
    inputs: Option<String>,
    bare: bool,
    json: bool,
    unproved: bool,
    cgroup: Option<String>,
}

fn parse(args: &[String]) -> Result<Asked, String> {
    let mut asked =
        Asked { file: String::new(), inputs: None, bare: false, json: false, unproved: false, cgroup: None };
    let mut flags = Flags::new(args);
    while let Some(word) = flags.next() {
        match word {
            "--inputs" => asked.inputs = Some(flags.value(word)?.to_owned()),
            "--cgroup" => asked.cgroup = Some(flags.value(word)?.to_owned()),
            "--bare" => asked.bare = true,
            "--json" => asked.json = true,
            "--unproved" => asked.unproved = true,
            flag if flag.starts_with("--") => return Err(format!("unknown flag `{flag}`")),
            file if asked.file.is_empty() => asked.file = file.to_owned(),
            more => return Err(format!("one file at a time: `{more}`")),
        }
    }
    if asked.file.is_empty() { Err("which file?".to_owned()) } else { Ok(asked) }
}

pub(super) fn run(args: &[String]) -> ExitCode {
    let asked = match parse(args) {
        Ok(asked) => asked,
        Err(problem) => return usage(&problem),
    };
    let read = std::fs::read(&asked.file).map_err(|e| format!("{}: {e}", asked.file));
    let (source, inputs) = match read.and_then(|source| Ok((source, inputs(asked.inputs.as_deref())?))) {
        Ok(both) => both,
        Err(problem) => return usage(&problem),
    };
    let report = call(&asked, &source, &inputs).unwrap_or_else(|why| Report {
        outcome: Outcome::Closed { why },
        printed: Vec::new(),
        errors: Vec::new(),
        wall: std::time::Duration::ZERO,
        cpu: std::time::Duration::ZERO,
        memory_peak_bytes: 0,
    });
    show(&asked, &report)
}

fn inputs(from: Option<&str>) -> Result<Vec<u8>, String> {
    match from {
        None => Ok(b"{}".to_vec()),
        Some("-") => {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes).map_err(|e| format!("standard input: {e}"))?;
            Ok(bytes)
        }
        Some(file) => std::fs::read(file).map_err(|e| format!("{file}: {e}")),
    }
}

fn call(asked: &Asked, source: &[u8], inputs: &[u8]) -> Result<Report, String> {
    let mode = if asked.bare { Mode::Bare } else { Mode::Guarded };
    let mut options = Options::new(mode).map_err(|e| e.to_string())?;
    options.cgroup.clone_from(&asked.cgroup);
    options.lenient = asked.unproved;
    options.listening = true;
    // What it hears from a child it hears behind the layers of the service: a creator's files are at stake here.
    service::shut_network().map_err(|e| format!("its own confinement: {e}"))?;
    let supervisor = Supervisor::start(options).map_err(|e| e.to_string())?;
    service::shut_rest(Role::Call).map_err(|e| format!("its own confinement: {e}"))?;
    let steps = if supervisor.has_cgroups() { Steps::ALL } else { Steps::ALL.without(Step::Cgroup) };
    if asked.unproved {
        let missing = if supervisor.has_cgroups() { "nothing" } else { "the cgroup limits" };
        eprintln!("runner: --unproved: {missing} missing; this says nothing about how a server would run it");
    }
    let call = Call { steps, ..Call::new(source, inputs) };
    supervisor.call(&call).map_err(|e| e.to_string())
}

fn show(asked: &Asked, report: &Report) -> ExitCode {
    // A reader that has gone away changes nothing about the outcome.
    let _ = std::io::stderr().write_all(&report.printed);
    let _ = std::io::stderr().write_all(&report.errors);
    if asked.json {
        let mut object = report.outcome.to_json();
        if let serde_json::Value::Object(object) = &mut object {
            object
                .insert("wall_us".into(), u64::try_from(report.wall.as_micros()).unwrap_or(u64::MAX).into());
            object.insert("cpu_us".into(), u64::try_from(report.cpu.as_micros()).unwrap_or(u64::MAX).into());
            object.insert("memory_peak_bytes".into(), report.memory_peak_bytes.into());
        }
        eprintln!("{object}");
    } else {
        eprintln!("runner: {}: {}", report.outcome.name(), report.outcome.sentence());
        if let Outcome::Error(raised) = &report.outcome {
            for (line, function) in &raised.frames {
                eprintln!("  {}:{line} in {function}", asked.file);
            }
        }
    }
    if let Outcome::Ok(result) = &report.outcome {
        println!("{result}");
    }
    let code = report.outcome.exit_code();
    ExitCode::from(if asked.unproved && code == 0 { UNPROVED } else { code })
}
