//! `api gate`: the process that has a submission's bytes in its hands.
//!
//! Started by `api work` for one submission, whose folder it is given:
//!
//! ```text
//! in/         what was uploaded     out/         the files that passed, under the names they are published with
//!                                   screen.png   what the smoke run showed
//! ```
//!
//! `check` reads and judges. Before it opens the first file it gives up everything else: of all files it reaches those of
//! this folder and the runner's socket, it starts nothing, and it has so much memory and time.
//! `play` shows the page that passed to Chromium, which brings a sandbox of its own. Once the browsers are started, and
//! before the first word of theirs is read, it gives up the same, but for the browsers' own folders.
//! Both answer with JSON on standard output, which the worker treats as a claim, and in it with the report that `intake`
//! prints on a creator's machine. What a browser leaves behind is ended by the worker.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use catalog::slug::{PAYLOAD, SIDECAR};
use catalog::{Digest, Manifest};
use intake::play::{Backend, Work};
use intake::python::bandit::Bandit;
use intake::submission::{File, Submission, Verdict};
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, Scope, path_beneath_rules,
};
use policy::limits;
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The browser that plays.
pub(crate) const CHROMIUM: &str = "chromium";
/// How a gate ends that found no room on the disk: it is asked again, and that is no attempt.
pub const DISK_FULL: u8 = 3;

/// What `check` answers.
#[derive(Debug, Serialize, Deserialize)]
pub struct Checked {
    /// Whether something must be mended or explained.
    pub is_rejected: bool,
    /// Why a gate could not be asked.
    pub held: Option<String>,
    /// The slug its sidecar names, if it could be read.
    pub slug: String,
    /// Whether it has a Python function.
    pub is_python: bool,
    /// The whole report.
    pub report: Value,
}

/// What `play` answers.
#[derive(Debug, Serialize, Deserialize)]
pub struct Played {
    /// Whether something must be mended or explained.
    pub is_rejected: bool,
    /// Why a run did not take place.
    pub held: Option<String>,
    /// The whole report.
    pub report: Value,
}

/// Runs the gates over the submission in `folder`; the `runner` is asked to lint Python.
pub fn check(folder: &Path, runner: &Path) -> anyhow::Result<Checked> {
    confine([folder])?;
    let (payload, others) = uploaded(&folder.join("in"))?;
    let submission = Submission::from_upload(payload, others);
    let files = submission.files().to_vec();
    let manifest = files
        .iter()
        .find(|f| published_name(&f.name) == SIDECAR)
        .and_then(|f| Manifest::parse(&f.bytes).ok());
    let report = submission.check(&Bandit::of_runner(runner));
    let is_python = files.iter().any(|f| f.name.ends_with(".py"));
    if report.verdict == Verdict::Accepted {
        hand_over(&folder.join("out"), &files, &report.files)?;
    }
    Ok(Checked {
        is_rejected: report.verdict == Verdict::Rejected,
        held: report.held.clone(),
        slug: manifest.map(|m| m.id.to_string()).unwrap_or_default(),
        is_python,
        report: serde_json::to_value(&report)?,
    })
}

/// Plays the page that passed; the `runner` is asked to call its function.
pub fn play(folder: &Path, runner: &Path) -> anyhow::Result<Played> {
    let work = Work::open(&folder.join("out"))?;
    let ready = intake::play::start(&work, CHROMIUM);
    confine(std::iter::once(folder).chain(ready.folders()))?;
    let backend = work.function().map_or(Backend::Closed, |function| Backend::of(Some(runner), function));
    let report = ready.play(&backend);
    if let Some(picture) = &report.screenshot {
        fs::write(folder.join("screen.png"), picture).context("cannot write the screenshot")?;
    }
    Ok(Played {
        is_rejected: report.verdict == Verdict::Rejected,
        held: report.held.clone(),
        report: serde_json::to_value(&report)?,
    })
}

/// The payload and what was sent beside it.
fn uploaded(folder: &Path) -> anyhow::Result<(File, Vec<File>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).context("the upload cannot be read")? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.push(File { bytes: fs::read(&path).with_context(|| format!("cannot read {name}"))?, name });
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    let Some(place) = files.iter().position(|f| f.name.starts_with("payload.")) else {
        bail!("the upload has no payload");
    };
    let mut payload = files.remove(place);
    if payload.name != "payload.zip" {
        payload.name = PAYLOAD.to_owned();
    }
    Ok((payload, files))
}

/// The name that a file of a submission is published under.
fn published_name(name: &str) -> &str {
    let lower = name.to_ascii_lowercase();
    if lower.ends_with(".html") || lower.ends_with(".htm") {
        PAYLOAD
    } else if lower.ends_with(".json") {
        SIDECAR
    } else {
        name
    }
}

/// Writes the files that passed, and no others.
fn hand_over(out: &Path, files: &[File], passed: &[intake::submission::Published]) -> anyhow::Result<()> {
    match fs::remove_dir_all(out) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e).context("cannot empty out/"),
        _ => fs::create_dir(out).context("cannot make out/")?,
    }
    for published in passed {
        let file =
            files.iter().find(|f| f.name == published.name).context("a file that passed is not there")?;
        if Digest::of(&file.bytes).to_string() != published.sha256 {
            bail!("two files are called {:?}", file.name);
        }
        let path = out.join(published_name(&file.name));
        fs::write(&path, &file.bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Gives up everything that judging a submission does not need but these folders. All of it, or nothing is judged. What was
/// started before is not concerned, nor would another thread be.
fn confine<'p>(folders: impl IntoIterator<Item = &'p Path>) -> anyhow::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).context("cannot be bound to the worker's life")?;
    let job = &limits().job;
    for (resource, most) in [
        (Resource::As, job.check_memory_bytes_max),
        (Resource::Cpu, job.check_seconds_max),
        (Resource::Fsize, limits().zip.total_bytes_max),
        (Resource::Core, 0),
    ] {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })
            .with_context(|| format!("cannot limit {resource:?}"))?;
    }
    let abi = ABI::V6;
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?
        .add_rules(path_beneath_rules(folders, AccessFs::from_all(abi) & !AccessFs::Execute))?
        .restrict_self()
        .context("this kernel cannot confine the gates (Landlock of Linux 6.12 or newer is needed)")?;
    if status.ruleset != landlock::RulesetStatus::FullyEnforced {
        bail!("the gates are not confined; see `api doctor`");
    }
    Ok(())
}
