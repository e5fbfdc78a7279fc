//! `api`: the command line.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use api::metrics::Metrics;
use api::saves::budget::Budget;
use api::saves::words::Secret;
use api::saves::{Store, Words, store};
use api::{App, answer, route, server};
use clap::{Parser, Subcommand};
use policy::{Config, limits};
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};

/// The server behind /api/: saves it cannot read, and calls of Python functions.
///
/// Exit codes: 0 done; 1 it could not, and said why; 2 the arguments are wrong.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The installation's configuration.
    #[arg(long, global = true, env = "TINYFILES_CONFIG", default_value = policy::config::DEFAULT_FILE, value_name = "FILE")]
    config: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve until SIGTERM or SIGINT, then finish what was accepted.
    Serve {
        /// The socket that nginx asks [default: api.sock in the data folder].
        #[arg(long, value_name = "PATH")]
        socket: Option<PathBuf>,
        /// The socket with the counters [default: api-admin.sock in the data folder].
        #[arg(long, value_name = "PATH")]
        admin: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
    let outcome =
        Config::open(&arguments.config).map_err(Into::into).and_then(|config| match arguments.command {
            Command::Serve { socket, admin } => serve(&config, socket, admin),
        });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "api: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn serve(config: &Config, socket: Option<PathBuf>, admin: Option<PathBuf>) -> anyhow::Result<()> {
    let data = &config.data;
    let folder = data.join("saves");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let api = &limits().api;
    let sizes = store::Sizes {
        waiting_max: api.writes_waiting_max,
        together_max: api.writes_together_max,
        tries: limits().save.word_tries_max,
    };
    let opened = Store::open(&folder.join("saves.db"), sizes, cores)?;
    let secret = secret(&data.join("word.secret"), &opened)?;
    let socket = socket.unwrap_or_else(|| data.join("api.sock"));
    let admin = admin.unwrap_or_else(|| data.join("api-admin.sock"));
    let (listener, admin_listener) = (bind(&socket)?, bind(&admin)?);
    let (saves, writer) = opened.start().context("cannot start the writer")?;
    let app = Arc::new(App {
        saves,
        words: Words::new(secret, limits().save.word_hash_cost),
        budget: Budget::new(limits().save.day_bytes_max),
        metrics: Metrics::default(),
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(cores).enable_all().build()?;
    runtime.block_on(run(Arc::clone(&app), listener, admin_listener))?;
    drop(runtime);
    // The last handle: the writer finishes its queue and ends.
    drop(app);
    if writer.join().is_err() {
        bail!("the writer of the saves did not end well");
    }
    for path in [socket, admin] {
        let _ = std::fs::remove_file(path);
    }
    tracing::info!("stopped");
    Ok(())
}

async fn run(
    app: Arc<App>,
    listener: std::os::unix::net::UnixListener,
    admin: std::os::unix::net::UnixListener,
) -> anyhow::Result<()> {
    let (listener, admin) = (UnixListener::from_std(listener)?, UnixListener::from_std(admin)?);
    let (stop, stopped) = tokio::sync::watch::channel(());
    let (mut terminated, mut interrupted) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::spawn(async move {
        tokio::select! { _ = terminated.recv() => {}, _ = interrupted.recv() => {} }
        tracing::info!("stopping");
        drop(stop);
    });
    let until = |mut stopped: tokio::sync::watch::Receiver<()>| async move { _ = stopped.changed().await };
    let counters = {
        let app = Arc::clone(&app);
        move |_| {
            let text = app.metrics.render(&app);
            async move { answer::ok("text/plain; version=0.0.4", text) }
        }
    };
    let service = move |request| route::answer(Arc::clone(&app), request);
    tracing::info!("serving");
    tokio::join!(
        server::run(listener, service, until(stopped.clone())),
        server::run(admin, counters, until(stopped)),
    );
    Ok(())
}

/// Binds a socket, over the file of one that nobody listens to any more.
fn bind(path: &Path) -> anyhow::Result<std::os::unix::net::UnixListener> {
    let shown = path.display();
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        bail!("{shown}: another process serves there; stop it, or name another socket");
    }
    if path.exists() {
        std::fs::remove_file(path).with_context(|| format!("cannot remove the old socket {shown}"))?;
    }
    let listener = std::os::unix::net::UnixListener::bind(path)
        .with_context(|| format!("cannot bind {shown} (a socket's path has at most 107 bytes)"))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// The secret that keys words: read, or made where no word has been stored yet.
fn secret(path: &Path, opened: &store::Opened) -> anyhow::Result<Secret> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let shown = path.display();
    match std::fs::read(path) {
        Ok(bytes) => {
            let bytes = bytes
                .try_into()
                .ok()
                .with_context(|| format!("{shown} is not a secret of {} bytes", Secret::BYTES))?;
            Ok(Secret::new(bytes))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if opened.has_words()? {
                bail!(
                    "{shown} is missing, and without it no word of a save can be checked; put the file back from where it is kept"
                );
            }
            let mut bytes = [0; Secret::BYTES];
            getrandom::fill(&mut bytes).context("no random bytes")?;
            let mut options = std::fs::OpenOptions::new();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path)
                .with_context(|| format!("cannot write {shown}"))?;
            file.write_all(&bytes)
                .and_then(|()| file.sync_all())
                .with_context(|| format!("cannot write {shown}"))?;
            Ok(Secret::new(bytes))
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {shown}")),
    }
}
