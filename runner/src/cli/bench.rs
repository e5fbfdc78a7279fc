//! `runner bench`: what a call costs.

use std::process::ExitCode;
use std::time::Duration;

use runner::bench::{self, Plan};
use runner::engine::Mode;
use runner::supervisor::{Options, Supervisor};

use super::{Flags, usage};

pub(super) fn run(args: &[String]) -> ExitCode {
    let mut plan = Plan { rounds: 200, sustained: Duration::from_secs(5), threads: 2 };
    let (mut json, mut flags) = (false, Flags::new(args));
    while let Some(word) = flags.next() {
        let number = |flags: &mut Flags<'_>| flags.value(word).ok().and_then(|v| v.parse::<u64>().ok());
        match word {
            "--json" => json = true,
            "--rounds" | "--seconds" => {
                let Some(n) = number(&mut flags) else { return usage(&format!("{word} needs a number")) };
                if word == "--rounds" {
                    plan.rounds = usize::try_from(n).unwrap_or(usize::MAX);
                } else {
                    plan.sustained = Duration::from_secs(n);
                }
            }
            other => return usage(&format!("unknown flag `{other}`")),
        }
    }
    match measure(plan) {
        Ok(figures) if json => println!("{figures}"),
        Ok(figures) => {
            for (name, value) in figures.as_object().into_iter().flatten() {
                println!("{name:>20}  {value}");
            }
        }
        Err(why) => {
            eprintln!("runner bench: {why}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn measure(plan: Plan) -> Result<serde_json::Value, String> {
    let options = Options {
        calls_max: plan.threads,
        lenient: true,
        ..Options::new(Mode::Guarded).map_err(|e| e.to_string())?
    };
    let supervisor = Supervisor::start(options).map_err(|e| e.to_string())?;
    bench::run(&supervisor, plan).map_err(|e| e.to_string())
}
