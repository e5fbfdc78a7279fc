//! `api work`: takes jobs from the catalogue and does them.
//!
//! | module | what it is |
//! |---|---|
//! | [`intake`] | a submission through the gates |
//! | [`publishing`] | publishing, previews, verification: `sitegen`'s part, started here |
//! | [`holder`] | this process as a holder of leases |
//! | [`child`] | the programs that are started, and their bounds |
//! | [`python`] | whether Python is open |
//! | [`sweep`] | what nobody needs any more |
//!
//! Several workers, in this process or in others, share the catalogue; a lease says whose a job is. Any of them may be
//! killed at any instant: its jobs are taken up again when another one looks. A worker parses nothing that a stranger sent
//! but the answer of the gates' process and a sidecar that passed.

mod child;
mod holder;
mod intake;
mod publishing;
mod python;
mod sweep;

use std::io::{self, ErrorKind};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};
use catalog::Catalog;
use catalog::job::{After, JobError, Kind, Leased};
use data_encoding::HEXLOWER;
use policy::{Config, limits};
use serde::de::DeserializeOwned;

pub(crate) use intake::{screenshot, staging};
pub(crate) use publishing::verdict;
pub(crate) use python::closed as python_closed;

use crate::gate;

/// Where a worker hears that there is something to do.
pub const WAKE_SOCKET: &str = "work.sock";
/// How long nothing may be heard before one looks anyway: a job of another process may have become due.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How often a running job is asked whether it is still this worker's.
const ASKED_EVERY: Duration = Duration::from_secs(10);
/// The longest pause between two attempts to publish.
const REGEN_PAUSE_SECONDS_MAX: i64 = 300;
const ANSWER_BYTES_MAX: u64 = 8 << 20;

/// What a worker works with.
pub struct Worker {
    data: PathBuf,
    programs: child::Programs,
    holder: holder::Holder,
}

/// How a job went.
enum Done {
    /// It is over, and written down.
    Ended,
    /// It cannot be done yet.
    Later(String),
}

/// `sitegen` with these words, as a worker would start it.
pub(crate) fn sitegen(file: &Path, words: &[&str]) -> anyhow::Result<Command> {
    Ok(child::Programs::beside_this_one(file)?.sitegen(words))
}

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or(i64::MAX))
}

/// A word that was never used before.
pub(crate) fn word() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).context("no random bytes")?;
    Ok(HEXLOWER.encode(&bytes))
}

/// Whether there was no room for something.
pub fn is_disk_full(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let file = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let row = cause.downcast_ref::<rusqlite::Error>().and_then(rusqlite::Error::sqlite_error_code);
        matches!(file, Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
            || row == Some(rusqlite::ErrorCode::DiskFull)
    })
}

/// Says that a job was enqueued. Nobody hears it where no worker runs, and the job waits.
pub fn wake(data: &Path) {
    if let Ok(socket) = UnixDatagram::unbound() {
        let _ = socket.set_nonblocking(true);
        let _ = socket.send_to(b"", data.join(WAKE_SOCKET));
    }
}

/// Works until it is killed. `once` ends when nothing is due.
pub fn run(config: &Config, file: &Path, workers: usize, once: bool) -> anyhow::Result<()> {
    let data = std::path::absolute(&config.data)?;
    std::fs::create_dir_all(&data).with_context(|| format!("cannot create {}", data.display()))?;
    let worker = Worker {
        programs: child::Programs::beside_this_one(file)?,
        holder: holder::Holder::new(&data)?,
        data,
    };
    let open = || Catalog::open(&worker.data.join("catalog.db"));
    let mut first = open()?;
    sweep::all(&worker.data, &first);
    if once {
        while worker.step(&mut first)? {}
        return Ok(());
    }
    first.enqueue(&format!("verify-{}", now()), Kind::Verify, "", now())?;
    let heard = Bell::default();
    let path = worker.data.join(WAKE_SOCKET);
    let _ = std::fs::remove_file(&path);
    let socket = UnixDatagram::bind(&path).with_context(|| format!("cannot bind {}", path.display()))?;
    socket.set_read_timeout(Some(LOOK_EVERY))?;
    let catalogs = (0..workers).map(|_| open()).collect::<Result<Vec<_>, _>>()?;
    tracing::info!(workers, "working");
    std::thread::scope(|scope| {
        for mut catalog in catalogs {
            let (worker, heard) = (&worker, &heard);
            scope.spawn(move || {
                let _end = EndsAll;
                loop {
                    let rings = heard.rings();
                    match worker.step(&mut catalog) {
                        Ok(true) => {}
                        Ok(false) => heard.wait(rings),
                        Err(error) => {
                            tracing::error!("{error:#}");
                            heard.wait(rings);
                        }
                    }
                }
            });
        }
        loop {
            let is_silent = socket.recv(&mut [0]).is_err();
            heard.ring();
            if is_silent {
                sweep::all(&worker.data, &first);
            }
        }
    })
}

impl Worker {
    /// Takes one job and does it; `false` if none is due.
    fn step(&self, catalog: &mut Catalog) -> anyhow::Result<bool> {
        let seconds = i64::from(limits().job.lease_seconds);
        let Some(job) = catalog.lease(&self.holder.lease()?, now(), seconds)? else { return Ok(false) };
        let bounded = matches!(job.kind, Kind::Intake | Kind::Preview);
        let done = if bounded && job.attempts > limits().job.attempts_max {
            // Whoever began it was killed each time.
            Err(anyhow::anyhow!("it was begun {} times and never came to an end", job.attempts - 1))
        } else {
            match job.kind {
                Kind::Intake => intake::run(self, catalog, &job),
                Kind::Preview => publishing::preview(self, catalog, &job),
                Kind::CatalogRegen => publishing::regenerate(self, catalog, &job),
                Kind::Verify => publishing::verify(self, catalog, &job),
            }
        };
        let ended = match done {
            Ok(Done::Ended) => Ok(()),
            Ok(Done::Later(why)) => {
                tracing::info!(job = job.id, why, "waits");
                catalog.postpone(&job, now() + i64::from(limits().job.wait_seconds), &why)
            }
            Err(error) if matches!(error.downcast_ref(), Some(JobError::LeaseLost(_))) => {
                tracing::warn!("{error}");
                Ok(())
            }
            Err(error) if bounded && is_disk_full(&error) => {
                tracing::warn!(job = job.id, "waits: {error:#}");
                intake::make_room(&self.data, &job.id);
                let why = "the disk of the server is full; it goes on when there is room";
                catalog.postpone(&job, now() + i64::from(limits().job.wait_seconds), why)
            }
            Err(error) => {
                tracing::error!(job = job.id, attempt = job.attempts, "{error:#}");
                catalog.fail(&job, after(&job, bounded), &format!("{error:#}"), now())
            }
        };
        match ended {
            Err(JobError::LeaseLost(_)) | Ok(()) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    fn renew(&self, catalog: &Catalog, job: &Leased) -> anyhow::Result<()> {
        Ok(catalog.renew(job, now(), i64::from(limits().job.lease_seconds))?)
    }

    /// Runs one of the programs for a job.
    fn run(
        &self,
        catalog: &Catalog,
        job: &Leased,
        command: Command,
        seconds_max: u64,
    ) -> anyhow::Result<child::Ended> {
        let bounds =
            child::Bounds { seconds_max, output_bytes_max: ANSWER_BYTES_MAX, asked_every: ASKED_EVERY };
        child::run(command, bounds, &mut || self.renew(catalog, job))
    }

    /// Runs a gate and reads its answer.
    fn ask<T: DeserializeOwned>(
        &self,
        catalog: &Catalog,
        job: &Leased,
        command: Command,
        seconds_max: u64,
    ) -> anyhow::Result<T> {
        let ended = self.run(catalog, job, command, seconds_max)?;
        if ended.code == i32::from(gate::DISK_FULL) {
            return Err(io::Error::from(ErrorKind::StorageFull)).context(ended.complaint);
        }
        ensure!(ended.code == 0, "the gates ended with exit code {}: {}", ended.code, ended.complaint);
        serde_json::from_slice(&ended.output).context("the answer of the gates cannot be read")
    }
}

/// When a failed job is tried again.
fn after(job: &Leased, bounded: bool) -> After {
    if bounded && job.attempts >= limits().job.attempts_max {
        return After::GivenUp;
    }
    let pause = i64::from(limits().job.retry_seconds) << job.attempts.saturating_sub(1).min(10);
    After::Again(now() + pause.min(REGEN_PAUSE_SECONDS_MAX))
}

/// A worker that panics takes the process with it: whoever watches it starts it again, and its jobs are taken up.
struct EndsAll;

impl Drop for EndsAll {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// Rings in all workers at once; a ring between a look and the wait for the next is not missed.
#[derive(Default)]
struct Bell {
    rings: Mutex<u64>,
    heard: Condvar,
}

impl Bell {
    fn rings(&self) -> u64 {
        *self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        *self.rings.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.heard.notify_all();
    }

    /// Waits for a ring after the first `known`.
    fn wait(&self, known: u64) {
        let rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.heard.wait_while(rings, |rings| *rings == known));
    }
}
