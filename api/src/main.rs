//! `api`: the command line.

use std::io::{IsTerminal as _, Write as _};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use api::app::Prepared;
use api::confine::confine;
use api::saves::Today;
use api::{App, answer, backup, doctor, gate, metrics, operator, route, server, work};
use catalog::Slug;
use catalog::member::Role;
use clap::{Parser, Subcommand};
use policy::{Config, limits};
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};

/// The server behind /api/: saves it cannot read, submissions and their review; and the worker behind it.
///
/// Exit codes: 0 done; 1 it could not, and said why; 2 the arguments are wrong; 3 the disk is full.
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
    /// Copy the databases and their objects into a new folder, also while the server runs.
    Backup {
        /// The folder; it must not be there yet.
        folder: PathBuf,
    },
    /// Check a backup and put it into a data folder that has no databases; the server must not run.
    Restore {
        /// The folder that `backup` made.
        folder: PathBuf,
    },
    /// Do the jobs of the catalogue until killed: checks, previews, publishing, verification.
    Work {
        /// How many jobs at once.
        #[arg(long, value_name = "NUMBER", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
        workers: u8,
        /// End when nothing is due.
        #[arg(long)]
        once: bool,
    },
    /// One submission in the hands of a process of its own; started by `work`.
    #[command(subcommand, hide = true)]
    Gate(Gate),
    /// Who may submit and who decides.
    #[command(subcommand)]
    Member(Members),
    /// Submissions that wait.
    #[command(subcommand)]
    Submissions(Submissions),
    /// Follow the chain of the audit.
    Audit,
    /// Look at the whole installation, one line a thing, with what to do where it is wrong; exit code 1 if any is.
    Doctor {
        /// As an array of objects: thing, state (ok, note, wrong), seen, remedy.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Subcommand)]
enum Gate {
    /// Judge what is in the folder.
    Check {
        /// The folder of the submission.
        folder: PathBuf,
    },
    /// Play what passed.
    Play {
        /// The folder of the submission.
        folder: PathBuf,
    },
}

#[derive(Subcommand)]
enum Members {
    /// List everybody who has a name.
    List,
    /// Give a member a role.
    Grant {
        /// Their name.
        pseudonym: Slug,
        /// creator, moderator or rater.
        role: Role,
    },
    /// Take a role from a member.
    Revoke {
        /// Their name.
        pseudonym: Slug,
        /// creator, moderator or rater.
        role: Role,
    },
}

#[derive(Subcommand)]
enum Submissions {
    /// Give submissions back to their creators, with the reason.
    Return {
        /// Those that wait because Python is closed.
        #[arg(long, required = true)]
        python: bool,
        /// What their creators read.
        #[arg(
            long,
            default_value = "Python is closed, and will not open soon. Submit it again when the Python page says it is open."
        )]
        reason: String,
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
            Command::Backup { folder } => {
                let files = backup::backup(&config.data, &folder)?;
                say(&format!("{files} files in {}", folder.display()));
                let secret = api::app::secret_path(&config.data);
                say(&format!("not among them: {}; keep a copy of it in another place", secret.display()));
                Ok(())
            }
            Command::Restore { folder } => {
                let files = backup::restore(&folder, &config.data)?;
                say(&format!(
                    "{files} files restored; put {} back, then run `sitegen publish`",
                    api::app::secret_path(&config.data).display()
                ));
                Ok(())
            }
            Command::Work { workers, once } => work::run(&config, &arguments.config, workers.into(), once),
            Command::Gate(Gate::Check { folder }) => {
                print(&serde_json::to_string(&gate::check(&folder, &config.data.join("runner.sock"))?)?)
            }
            Command::Gate(Gate::Play { folder }) => {
                print(&serde_json::to_string(&gate::play(&folder, &config.data.join("runner.sock"))?)?)
            }
            Command::Member(Members::List) => print(&operator::list(&config.data)?),
            Command::Member(Members::Grant { pseudonym, role }) => {
                print(&operator::grant(&config.data, &pseudonym, role)?)
            }
            Command::Member(Members::Revoke { pseudonym, role }) => {
                print(&operator::revoke(&config.data, &pseudonym, role)?)
            }
            Command::Submissions(Submissions::Return { reason, .. }) => {
                print(&operator::return_python(&config.data, &reason)?)
            }
            Command::Doctor { json } => examine(&config, &arguments.config, json),
            Command::Audit => print(&operator::check_audit(&config.data)?),
        });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "api: {}", causes(&error));
            if work::is_disk_full(&error) { ExitCode::from(gate::DISK_FULL) } else { ExitCode::FAILURE }
        }
    }
}

fn say(text: &str) {
    // A reader who has gone has read enough.
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// An error with its causes, less what an earlier one says already.
fn causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

fn print(text: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{text}").context("cannot write what there is to say")
}

/// Prints what the doctor saw.
fn examine(config: &Config, file: &Path, json: bool) -> anyhow::Result<()> {
    let lines = doctor::look(config, file);
    print(&if json { serde_json::to_string_pretty(&lines)? } else { doctor::report(&lines) })?;
    ensure!(doctor::is_well(&lines), "something is wrong");
    Ok(())
}

fn serve(config: &Config, socket: Option<PathBuf>, admin: Option<PathBuf>) -> anyhow::Result<()> {
    let data = &config.data;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let prepared = Prepared::open(data, &config.site.to_string(), cores)?;
    let socket = socket.unwrap_or_else(|| data.join("api.sock"));
    let admin = admin.unwrap_or_else(|| data.join("api-admin.sock"));
    let (listener, admin_listener) = (bind(&socket)?, bind(&admin)?);
    let refused = data.join(metrics::REFUSED_SOCKET);
    let _ = std::fs::remove_file(&refused);
    let refused =
        UnixDatagram::bind(&refused).with_context(|| format!("cannot bind {}", refused.display()))?;
    refused.set_nonblocking(true)?;
    confine(data)?;
    let (app, writer) = prepared.start().context("cannot start the writer of the saves")?;
    let app = Arc::new(app);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(cores).enable_all().build()?;
    runtime.block_on(run(Arc::clone(&app), listener, admin_listener, refused))?;
    drop(runtime);
    // The last handle: the writer finishes its queue and ends.
    drop(app);
    if writer.join().is_err() {
        bail!("the writer of the saves did not end well");
    }
    tracing::info!("stopped");
    Ok(())
}

async fn run(
    app: Arc<App>,
    listener: std::os::unix::net::UnixListener,
    admin: std::os::unix::net::UnixListener,
    refused: UnixDatagram,
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
    tokio::spawn(expire(Arc::clone(&app), until(stopped.clone())));
    let refused = tokio::net::UnixDatagram::from_std(refused)?;
    tokio::spawn({
        let (app, stopped) = (Arc::clone(&app), until(stopped.clone()));
        async move {
            tokio::select! { () = metrics::hear(&app, &refused) => {}, () = stopped => {} }
        }
    });
    let service = move |request| route::answer(Arc::clone(&app), request);
    tracing::info!("serving");
    tokio::join!(
        server::run(listener, service, until(stopped.clone())),
        server::run(admin, counters, until(stopped)),
    );
    Ok(())
}

/// Once a day, and at the start, removes what nobody has used for too long.
async fn expire(app: Arc<App>, stopped: impl Future<Output = ()>) {
    tokio::pin!(stopped);
    loop {
        let removed = app.saves.expire(Today::now().years_ago(limits().save.idle_years_max)).await;
        match removed {
            Ok(0) => {}
            Ok(count) => tracing::info!("{count} saves expired"),
            Err(_) => {
                tracing::warn!("not all saves that expired could be removed; tomorrow they are tried again")
            }
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(Today::SECONDS)) => {}
            () = &mut stopped => return,
        }
    }
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
