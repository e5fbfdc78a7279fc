//! One `intake` job: a staged submission through the gates, and into the catalogue as a version that waits.
//!
//! Every step can be done again: the gates read what is staged, objects are named by their bytes, and the row is written
//! together with the end of the job. What the gates' process hands over is not believed, only measured: names and sizes
//! are checked, and what is stored is what was read here.

use std::fs::{self, File, Permissions};
use std::io::Read as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use catalog::job::Leased;
use catalog::slug::{FileName, PAYLOAD, SIDECAR};
use catalog::{Catalog, Data, Day, Digest, Manifest, Role, Work, WorkFile};
use policy::limits;
use serde_json::Value;

use super::{Done, Worker, now, python};
use crate::desk::{self, SCREENSHOTS, STAGING};
use crate::gate::{Checked, Played};

/// Where the screen of the smoke run is kept while its work waits.
pub(crate) fn screenshot(data: &Path, job: &str) -> PathBuf {
    data.join(SCREENSHOTS).join(format!("{job}.png"))
}

/// Where the files of a submission are.
pub(crate) fn staging(data: &Path, job: &str) -> PathBuf {
    data.join(STAGING).join(job)
}

pub(super) fn run(worker: &Worker, catalog: &mut Catalog, job: &Leased) -> anyhow::Result<Done> {
    let folder = staging(&worker.data, &job.id);
    ensure!(folder.is_dir(), "the files of the submission are gone");
    let Some(submission) = catalog.submission(&job.id)? else { bail!("there is no such submission") };
    catalog.note_stage(job, "checking", false)?;
    let checked: Checked = worker.ask(
        catalog,
        job,
        worker.programs.gate(["gate", "check"], &folder),
        limits().job.check_seconds_max,
    )?;
    catalog.note_stage(job, "checking", checked.is_python)?;
    let mut report = checked.report;
    if checked.is_rejected {
        return reject(worker, catalog, job, &checked.slug, &report);
    }
    if let Some(why) = checked.held {
        return Ok(Done::Later(format!("a check could not be made, and waits: {why}")));
    }
    if checked.is_python
        && let Some(why) = python::closed(&worker.data)
    {
        return Ok(Done::Later(format!("Python is closed at the moment, and the submission waits: {why}")));
    }
    catalog.note_stage(job, "playing", checked.is_python)?;
    // For the files of the browser, which a gate that is killed could not remove.
    let home = tempfile::Builder::new().permissions(Permissions::from_mode(0o711)).tempdir()?;
    let mut command = worker.programs.gate(["gate", "play"], &folder);
    command.env("TMPDIR", home.path());
    let mut played: Played = worker.ask(catalog, job, command, limits().job.play_seconds_max)?;
    if let (Value::Array(all), Value::Array(found)) =
        (&mut report["findings"], played.report["findings"].take())
    {
        all.extend(found);
    }
    report["runs"] = played.report["runs"].take();
    if played.is_rejected {
        return reject(worker, catalog, job, &checked.slug, &report);
    }
    if let Some(why) = played.held {
        return Ok(Done::Later(format!("the smoke run could not be made, and waits: {why}")));
    }
    catalog.note_stage(job, "storing", checked.is_python)?;
    let out = folder.join("out");
    let shot = bounded(&folder.join("screen.png"), limits().job.screenshot_bytes_max)?;
    let target = screenshot(&worker.data, &job.id);
    desk::make_folder(target.parent().unwrap_or(&target))?;
    fs::write(&target, shot).with_context(|| format!("cannot write {}", target.display()))?;
    let (files, bytes) = read(&out)?;
    let sidecar = bytes.iter().zip(&files).find(|(_, f)| f.role == Role::Sidecar).context("no sidecar")?.0;
    let manifest = Manifest::parse(sidecar).context("the sidecar that passed the gates cannot be read")?;
    let today = Day::today();
    let slug = manifest.id.clone();
    let files = with_roles(files, &manifest)?;
    let work = Work { creator: submission.creator, slug, manifest, released: today, updated: today, files };
    let data = Data::open(&worker.data)?;
    // From the first object to the row, so that no `gc` comes between.
    let writer = data.writer_when_free()?;
    for bytes in &bytes {
        writer.put(bytes)?;
    }
    writer.sync()?;
    let waits = catalog.accept(job, &work, &report.to_string(), now())?;
    drop(writer);
    remove(&folder);
    tracing::info!(job = job.id, work = work.path(), waits, "passed the gates");
    Ok(Done::Ended)
}

fn reject(
    worker: &Worker,
    catalog: &mut Catalog,
    job: &Leased,
    slug: &str,
    report: &Value,
) -> anyhow::Result<Done> {
    catalog.reject(job, slug, &report.to_string(), now())?;
    remove(&staging(&worker.data, &job.id));
    tracing::info!(job = job.id, "rejected by the gates");
    Ok(Done::Ended)
}

/// Takes away what the gates made and will make again: on a full disk it stands in the way of writing down that the job
/// waits.
pub(super) fn make_room(data: &Path, job: &str) {
    let folder = staging(data, job);
    let _ = fs::remove_dir_all(folder.join("out"));
    let _ = fs::remove_file(folder.join("screen.png"));
}

/// What cannot be removed now is removed with what else nobody needs.
fn remove(folder: &Path) {
    if let Err(error) = fs::remove_dir_all(folder) {
        tracing::warn!("cannot remove {}: {error}", folder.display());
    }
}

/// Reads the files that passed. Their folder was written by a process that had hostile bytes in its hands.
fn read(folder: &Path) -> anyhow::Result<(Vec<WorkFile>, Vec<Vec<u8>>)> {
    let (mut files, mut all) = (Vec::new(), Vec::new());
    let mut names: Vec<_> =
        fs::read_dir(folder)?.map(|e| Ok(e?.file_name())).collect::<std::io::Result<_>>()?;
    names.sort();
    for name in names {
        ensure!(files.len() < limits().submission.files_max, "more files than a work has");
        let Ok(name) = name.into_string() else { bail!("a name that is not text") };
        let role = match name.as_str() {
            PAYLOAD => Role::Payload,
            SIDECAR => Role::Sidecar,
            other => match other.parse::<FileName>() {
                Ok(_) if other.ends_with(".py") => Role::Python,
                Ok(_) => Role::Cover,
                Err(error) => bail!(error),
            },
        };
        let work = &limits().work;
        let max = match role {
            Role::Payload => work.html_bytes_max,
            Role::Python => work.python_bytes_max,
            Role::Sidecar => work.sidecar_bytes_max,
            Role::Cover => work.cover_bytes_max,
        };
        let bytes = bounded(&folder.join(&name), max)?;
        files.push(WorkFile { role, digest: Digest::of(&bytes), bytes: bytes.len() as u64, name });
        all.push(bytes);
    }
    ensure!(files.iter().any(|f| f.role == Role::Payload), "no page");
    Ok((files, all))
}

/// The files have the names that the sidecar gives them, and no others are there.
fn with_roles(files: Vec<WorkFile>, manifest: &Manifest) -> anyhow::Result<Vec<WorkFile>> {
    let python = manifest.capabilities.python_backend.as_ref().map(|n| n.as_str());
    let cover = manifest.cover.as_ref().map(|c| c.file.as_str());
    for file in &files {
        let is_named = match file.role {
            Role::Python => python == Some(&file.name),
            Role::Cover => cover == Some(&file.name),
            Role::Payload | Role::Sidecar => true,
        };
        ensure!(is_named, "{:?} is not named by the sidecar", file.name);
    }
    for name in [python, cover].into_iter().flatten() {
        ensure!(files.iter().any(|f| f.name == name), "{name:?} is missing");
    }
    Ok(files)
}

/// Reads a plain file of at most that size; a link is not followed.
fn bounded(path: &Path, bytes_max: u64) -> anyhow::Result<Vec<u8>> {
    let cannot = || format!("cannot read {}", path.display());
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    let file = File::options().read(true).custom_flags(flags).open(path).with_context(cannot)?;
    ensure!(file.metadata().with_context(cannot)?.is_file(), "{} is not a plain file", path.display());
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes).with_context(cannot)?;
    ensure!(bytes.len() as u64 <= bytes_max, "{} is larger than {bytes_max} bytes", path.display());
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_the_gates_hand_over_is_measured() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).unwrap();
        put(PAYLOAD, b"<p>");
        put(SIDECAR, br#"{"id": "kite"}"#);
        let (files, bytes) = read(dir.path()).unwrap();
        assert_eq!(
            (files[0].role, files[1].role, bytes[0].as_slice()),
            (Role::Payload, Role::Sidecar, &b"<p>"[..])
        );
        let manifest = Manifest::parse(&bytes[1]).unwrap();
        assert!(with_roles(files, &manifest).is_ok());
        put("extra.png", b"");
        let (files, _) = read(dir.path()).unwrap();
        assert!(with_roles(files, &manifest).unwrap_err().to_string().contains("not named"));
        fs::remove_file(dir.path().join("extra.png")).unwrap();
        symlink("/etc/hostname", dir.path().join("cover.png")).unwrap();
        assert!(read(dir.path()).is_err(), "a link is not followed");
        fs::remove_file(dir.path().join("cover.png")).unwrap();
        fs::create_dir(dir.path().join("cover.png")).unwrap();
        assert!(read(dir.path()).unwrap_err().to_string().contains("not a plain file"));
        fs::remove_dir(dir.path().join("cover.png")).unwrap();
        put("a.py", &vec![b' '; 16_385]);
        assert!(read(dir.path()).unwrap_err().to_string().contains("larger than 16384"));
    }
}
