//! `runner serve`: the service, and the proof that opens it.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use runner::confine::seccomp::Role;
use runner::confine::service;
use runner::engine::Mode;
use runner::gate::{Gate, Run};
use runner::queue::Sizes;
use runner::serve::{self, Service};
use runner::spawner::{Spawned, Spawner};
use runner::supervisor::{Options, Supervisor};
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};

use super::{Flags, usage};

struct Asked {
    socket: PathBuf,
    state: PathBuf,
    cgroup: Option<String>,
    bandit: Option<PathBuf>,
    sizes: Sizes,
}

fn parse(args: &[String]) -> Result<Asked, String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut socket, mut state, mut cgroup, mut bandit) = (None, None, None, None);
    let mut sizes = Sizes { running_max: cores, waiting_max: cores * 16 };
    let mut flags = Flags::new(args);
    while let Some(word) = flags.next() {
        let value = flags.value(word)?;
        let number =
            || value.parse().ok().filter(|n| (1..=64).contains(n)).ok_or(format!("{word} is from 1 to 64"));
        match word {
            "--socket" => socket = Some(PathBuf::from(value)),
            "--state" => state = Some(PathBuf::from(value)),
            "--cgroup" => cgroup = Some(value.to_owned()),
            "--bandit" => bandit = Some(PathBuf::from(value)),
            "--calls" => sizes.running_max = number()?,
            "--queue" => sizes.waiting_max = number()?,
            other => return Err(format!("unknown flag `{other}`")),
        }
    }
    let socket = socket.ok_or("which --socket?")?;
    let state = state.ok_or("which --state folder?")?;
    Ok(Asked { socket, state, cgroup, bandit, sizes })
}

pub(super) fn run(args: &[String]) -> ExitCode {
    let asked = match parse(args) {
        Ok(asked) => asked,
        Err(problem) => return usage(&problem),
    };
    match start(&asked) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("runner serve: {why}");
            ExitCode::FAILURE
        }
    }
}

fn start(asked: &Asked) -> Result<(), String> {
    let mut options = Options::new(Mode::Guarded).map_err(|e| e.to_string())?;
    options.calls_max = asked.sizes.running_max;
    options.cgroup.clone_from(&asked.cgroup);
    let program = options.program.clone();
    let gate =
        Gate::open_in(&asked.state, &program).map_err(|e| format!("{}: {e}", asked.state.display()))?;
    // The suite needs a network, so what starts it is started before that is shut.
    let suite = Spawner::start(&program, &suite_args(asked)).map_err(|e| e.to_string())?;
    service::shut_network().map_err(|e| format!("its own confinement: {e}"))?;
    let linter = linter(&options, asked.bandit.as_deref());
    if let Err(why) = &linter {
        eprintln!("runner serve: no lint: {why}");
    }
    let supervisor = Supervisor::start(options).map_err(|e| e.to_string())?;
    let listener = listen(asked)?;
    service::shut_rest(Role::Supervisor).map_err(|e| format!("its own confinement: {e}"))?;
    let service = Arc::new(Service::new(supervisor, linter, gate.clone(), asked.sizes));
    if service.refresh().is_none() {
        announce(gate.history().unwrap_or_default().last());
    } else {
        prove(suite, Arc::clone(&service), gate);
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let listener = UnixListener::from_std(listener).map_err(|e| e.to_string())?;
        let (mut terminated, mut interrupted) = (
            signal(SignalKind::terminate()).map_err(|e| e.to_string())?,
            signal(SignalKind::interrupt()).map_err(|e| e.to_string())?,
        );
        let shutdown = async move {
            tokio::select! { _ = terminated.recv() => {}, _ = interrupted.recv() => {} }
        };
        serve::run(service, listener, shutdown).await;
        // The socket's file may be another server's by now only if somebody removed ours.
        let _ = std::fs::remove_file(&asked.socket);
        Ok(())
    })
}

/// A supervisor whose zygote holds bandit from the virtual environment `environment`. Without one, calls run all the
/// same and every lint is an error.
fn linter(options: &Options, environment: Option<&Path>) -> Result<Supervisor, String> {
    let environment = environment.ok_or("no --bandit folder was named")?;
    let packages = std::fs::read_dir(environment.join("lib"))
        .map_err(|e| format!("{}: {e}", environment.display()))?
        .filter_map(|entry| Some(entry.ok()?.path().join("site-packages")))
        .find(|folder| folder.is_dir())
        .ok_or_else(|| format!("{}: no virtual environment is there", environment.display()))?;
    let options = Options { mode: Mode::Lint, bandit: Some(packages), ..options.clone() };
    Supervisor::start(options).map_err(|e| e.to_string())
}

/// Binds the socket, over the file of one that nobody listens to any more.
fn listen(asked: &Asked) -> Result<std::os::unix::net::UnixListener, String> {
    let path = &asked.socket;
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(format!("{}: another runner serves there", path.display()));
    }
    if path.exists() {
        std::fs::remove_file(path).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    let bound =
        std::os::unix::net::UnixListener::bind(path).and_then(|l| l.set_nonblocking(true).map(|()| l));
    bound.map_err(|e| format!("{}: {e}", path.display()))
}

fn suite_args(asked: &Asked) -> Vec<String> {
    let state = asked.state.to_string_lossy().into_owned();
    let mut args = vec!["suite".to_owned(), "--json".to_owned(), "--state".to_owned(), state];
    args.extend(asked.cgroup.iter().flat_map(|path| ["--cgroup".to_owned(), path.clone()]));
    args
}

/// Runs the suite in a process of its own, then opens if it passed. Calls are refused meanwhile.
fn prove(suite: Spawner, service: Arc<Service>, gate: Gate) {
    std::thread::spawn(move || {
        eprintln!("python closed (the suite is running)");
        // It reads no input; a descriptor is part of every order.
        if let Err(e) = suite.spawn(std::io::stdin().as_fd()).and_then(Spawned::wait) {
            eprintln!("runner serve: the suite did not run: {e}");
        }
        match service.refresh() {
            None => announce(gate.history().unwrap_or_default().last()),
            Some(why) => eprintln!("python closed: {why}"),
        }
    });
}

fn announce(run: Option<&Run>) {
    let count = run.map_or(0, |r| r.attacks);
    println!("python open ({count}/{count} attacks blocked, 2 modes)");
}
