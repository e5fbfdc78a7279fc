//! The supervisor's own layers, from inside: each probe succeeds in a free process and fails in a confined one.
//!
//! Runs itself once for each probe and each state, because what is tried cannot be taken back.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test program without a harness"
)]

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use runner::confine::seccomp::Role;
use runner::confine::service;
use runner::sys::process;

/// What a probe does; true when it could.
fn attempt(probe: &str) -> bool {
    match probe {
        "bind tcp" => TcpListener::bind("127.0.0.1:0").is_ok(),
        "abstract socket" => {
            let name = std::env::var("LISTENER").unwrap();
            UnixStream::connect_addr(&SocketAddr::from_abstract_name(name).unwrap()).is_ok()
        }
        "signal" => process::kill_pid(std::env::var("VICTIM").unwrap().parse().unwrap()).is_ok(),
        "program" => Command::new("true").status().is_ok_and(|s| s.success()),
        "socket" => UnixListener::bind("/tmp/tinyfiles-supervisor-alone").is_ok(),
        "kernel release" => process::kernel().is_ok(),
        "read" => std::fs::read("/proc/self/status").is_ok(),
        other => panic!("no probe is called {other}"),
    }
}

fn inside(state: &str, probe: &str) -> ExitCode {
    if state != "free" {
        service::shut_network().unwrap();
    }
    match state {
        "all" => service::shut_rest(Role::Supervisor).unwrap(),
        "call" => service::shut_rest(Role::Call).unwrap(),
        _ => {}
    }
    ExitCode::from(if attempt(probe) { 0 } else { 10 })
}

fn outside(state: &str, probe: &str) -> ExitStatus {
    let name = format!("tinyfiles-alone-{}", std::process::id());
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let mut victim = Command::new("sleep").arg("600").stdout(Stdio::null()).spawn().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["probe", state, probe]).env("LISTENER", name).env("VICTIM", victim.id().to_string());
    let status = command.status().unwrap();
    victim.kill().unwrap();
    victim.wait().unwrap();
    drop(listener);
    // Only the free one makes it.
    let _ = std::fs::remove_file("/tmp/tinyfiles-supervisor-alone");
    status
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [word, state, probe] = &args[..]
        && word == "probe"
    {
        return inside(state, probe);
    }
    const SIGSYS: i32 = 31;
    // Which state stops it, and how it then ends: refused, or killed by the filter.
    for (probe, state, killed) in [
        ("bind tcp", "network", false),
        ("abstract socket", "network", false),
        ("signal", "network", false),
        ("socket", "all", true),
        ("program", "all", true),
        ("kernel release", "all", true),
        ("signal", "call", false),
        ("socket", "call", true),
        ("program", "call", true),
    ] {
        assert_eq!(outside("free", probe).code(), Some(0), "the control of `{probe}` must succeed");
        let stopped = outside(state, probe);
        let expected = if killed { (None, Some(SIGSYS)) } else { (Some(10), None) };
        assert_eq!((stopped.code(), stopped.signal()), expected, "`{probe}` with {state}: {stopped}");
    }
    for state in ["all", "call"] {
        assert_eq!(outside(state, "read").code(), Some(0), "what it needs still works");
    }
    println!("the supervisor's own layers: ok");
    ExitCode::SUCCESS
}
