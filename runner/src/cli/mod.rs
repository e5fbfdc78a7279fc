//! The command line: one file a subcommand.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is the program's face")]

mod bench;
mod call;
mod control;
mod serve;
mod soak;
mod suite;

use std::process::ExitCode;

use runner::{spawner, zygote};

const HELP: &str = "\
runner: one small untrusted Python function at a time, sealed

  runner call FILE [--inputs FILE|-] [--bare] [--json] [--cgroup PATH] [--unproved]
      one call as the server would run it; the result on stdout, print and outcome on stderr
      exit: 0 ok, 10 error, 11 timeout, 12 memory, 13 processes, 14 output_limit, 15 bad_answer, 16 denied, 17 crash,
      18 closed, 2 usage; with --unproved never 0: 3 where it would be

  runner serve --socket PATH --state FOLDER [--bandit VENV] [--calls N] [--queue N] [--cgroup PATH]
      POST /call, POST /lint, GET /gate, GET /metrics over a Unix socket; proves the gate first where it is not proved
      VENV is a virtual environment with the bandit of runner/bandit.txt; without it every lint is an error

  runner suite [--json] [--only NAME] [--attack FILE] [--cgroup PATH] [--state FOLDER] [--late-ms N]
      every attack of python-test-suite.py in both modes, with its control; exit 0 when all are blocked
      --attack runs your own; --state keeps a full run in the history that opens or closes the gate; a run with
      --late-ms, how late a call may end on a machine that is emulated, is never kept

  runner doctor [--cgroup PATH]
      one line for each layer: whether it holds, what shows it, what to do

  runner worker
      the engine of small_python, as the wheel holds it: PROTOCOL.md over standard input and output

  runner soak [--seconds N] [--calls N] [--cgroup PATH]
      calls as fast as the machine can, for a minute or so many; exit 0 when nothing of them is left behind

  runner bench [--json] [--full] [--rounds N] [--seconds N] [--cgroup PATH]
      what a call costs beside a bare fork of the same zygote, in one interleaved run; beside crun, where it is installed
      --full: twice the rounds, a minute of calls on two threads, and a client that hangs up on a service of its own
";

/// Exit code for a command line that makes no sense.
const USAGE: u8 = 2;

pub(crate) fn run(args: &[String]) -> ExitCode {
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", args),
    };
    match command {
        "bench" => bench::run(rest),
        "call" => call::run(rest),
        "control" => control::run(rest),
        "doctor" => suite::doctor(rest),
        "serve" => serve::run(rest),
        "soak" => soak::run(rest),
        "spawner" => start_on_order(rest),
        "suite" => suite::run(rest),
        "worker" => runner::worker::main(rest),
        "zygote" => fork_on_order(rest),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        other => usage(&format!("unknown command `{other}`")),
    }
}

/// Says what is wrong with a command line.
fn usage(problem: &str) -> ExitCode {
    eprintln!("runner: {problem}\n\n{HELP}");
    ExitCode::from(USAGE)
}

/// `runner zygote`: not for people; the supervisor starts it.
fn fork_on_order(args: &[String]) -> ExitCode {
    let Some(start) = zygote::Start::from_args(args) else {
        return usage("`zygote` is started by the supervisor");
    };
    match zygote::run(start) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("runner zygote: {e}");
            ExitCode::FAILURE
        }
    }
}

/// `runner spawner`: not for people; the supervisor starts it.
fn start_on_order(args: &[String]) -> ExitCode {
    match spawner::run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("runner spawner: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Flags of a subcommand: `--name value` or `--name`, and words.
struct Flags<'a> {
    rest: std::slice::Iter<'a, String>,
}

impl<'a> Flags<'a> {
    fn new(args: &'a [String]) -> Flags<'a> {
        Flags { rest: args.iter() }
    }

    fn next(&mut self) -> Option<&'a str> {
        self.rest.next().map(String::as_str)
    }

    fn value(&mut self, flag: &str) -> Result<&'a str, String> {
        self.next().ok_or_else(|| format!("{flag} needs a value"))
    }
}
