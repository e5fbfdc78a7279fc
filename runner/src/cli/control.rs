//! `runner control`: not for people; the suite runs an attack outside the sandbox through it.

use std::process::ExitCode;

use runner::control;

use super::usage;

pub(super) fn run(args: &[String]) -> ExitCode {
    let [source, host, _ends] = args else { return usage("`control` is started by the suite") };
    match control::enter(source, host) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("runner control: {e}");
            ExitCode::FAILURE
        }
    }
}
