//! `spy-worker`: an interpreter for code that nobody trusts, at the end of two pipes.
//!
//! `PROTOCOL.md` beside this crate is what it speaks; the Python package `small_python` is the other side. One thread
//! does everything: it reads a message, does what it says, answers. Code of the engine that calls out (a function of the
//! parent, `print`, an import) sends a request of the worker's own and waits, and may meanwhile be asked again, so the
//! stack of the thread is the stack of turns.
//!
//! | file | what it is |
//! |---|---|
//! | [`turn`] | requests, replies, callouts |
//! | [`fields`], [`codec`], [`message`], [`channel`] | bytes, values, kinds, streams |
//! | [`engine`] | the namespace that code runs in, and running it |
//! | [`builtins`], [`imports`], [`files`] | what code finds there instead of CPython's own: `print`, `import`, `open` |
//! | [`objects`] | handles and functions of the parent |
//! | [`errors`] | exceptions, both ways |
//! | [`read`] | the reading of messages, for tests |
//! | `engine::memory`, `engine::steps` | limits inside the interpreter |
//! | [`start`], [`confine`] | the first and the last thing before code runs |
//!
//! Inside the interpreter nothing is a boundary: what is left out of the engine is left out so that honest code meets
//! only its grants. The boundary is the process, with the layers of [`confine`].

mod builtins;
mod channel;
mod codec;
mod confine;
mod engine;
mod errors;
mod fields;
mod files;
mod imports;
mod message;
mod objects;
pub mod read;
mod start;
mod turn;

use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use pyo3::Python;

use self::channel::Channel;
use self::engine::Engine;
use self::errors::Raised;
use self::files::Mounts;
use self::imports::Modules;
use self::objects::Objects;
use self::start::Settings;
use crate::engine::interpreter::{self, Library};
use crate::engine::{memory, steps};

/// Standard input ended, or the parent is gone.
pub const EXIT_OK: u8 = 0;
/// The command line makes no sense.
pub const EXIT_USAGE: u8 = 64;
/// The parent broke the protocol.
pub const EXIT_VIOLATION: u8 = 65;
/// A layer was refused.
pub const EXIT_UNCONFINED: u8 = 70;
/// The engine did not start.
pub const EXIT_ENGINE: u8 = 71;

/// The version that `spy-worker --version` prints.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Everything that the functions in the engine share. There is one thread; the locks only say so to the compiler, and
/// none is held while Python runs.
#[derive(Debug)]
struct Worker {
    settings: OnceLock<&'static Settings>,
    engine: OnceLock<Engine>,
    channel: Mutex<Channel>,
    objects: Mutex<Objects>,
    modules: Mutex<Modules>,
    mounts: Mutex<Mounts>,
    raised: Mutex<Raised>,
    turns: Mutex<turn::Turns>,
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The whole program.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "this is the program's face")]
pub fn main(arguments: &[String]) -> ExitCode {
    match arguments {
        [] => run(),
        [flag] if flag == "--version" => {
            println!("{VERSION}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("spy-worker: takes no arguments, or --version; small_python starts it");
            ExitCode::from(EXIT_USAGE)
        }
    }
}

fn run() -> ! {
    start::shed_the_caller();
    let channel = Channel::new(message::MESSAGE_MIN);
    memory::hook();
    if let Err(why) = interpreter::start(Library::Embedded) {
        channel.end(EXIT_ENGINE, &format!("CPython did not start: {why}"));
    }
    Python::attach(|py| turn::serve(py, channel))
}
