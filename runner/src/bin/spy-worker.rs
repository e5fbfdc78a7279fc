//! `spy-worker`: what `small_python` starts. The same as `runner worker`, on its own so that a wheel can hold it.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    runner::worker::main(&arguments)
}
