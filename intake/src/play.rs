//! The smoke run: a page played for five seconds in a headless Chromium, under the headers that works are served with.
//!
//! Called by `intake play` and by the server, which get the same report. The browser runs as an unprivileged user with its
//! own sandbox on, in a network namespace that holds nothing, not even a loopback: the page is handed to it through its
//! debugging pipe, and whatever else it asks for is refused and written down. Where one of these cannot be had, the run is
//! *not run*; it is never taken for passed. A page without a function is played alone, so `TF` answers "alone", as it does
//! when a save cannot be reached. A page with one is played twice within a page around it: while its function answers, and
//! while Python is closed.
//!
//! | file | what it is |
//! |---|---|
//! | `work` | what is played, found at a path |
//! | `launch` | the browser, kept apart |
//! | `browser` | its debugging pipe |
//! | `visit` | one run: what the browser asks for and says |
//! | `around` | the page around a work, with the site's own bridge |
//! | `backend` | who answers the function |

mod around;
mod backend;
mod browser;
mod launch;
mod visit;
mod work;

use std::path::Path;

use serde::Serialize;

pub use self::backend::Backend;
use self::browser::Browser;
use self::launch::Launched;
pub use self::work::{OpenError, Work, page_in};
use crate::finding::{Finding, Severity};
use crate::submission::{Verdict, explain};

/// What the runs of a work come to.
#[derive(Debug, Serialize)]
pub struct Report {
    /// What follows from the findings; held, if a run did not take place.
    pub verdict: Verdict,
    /// Why a run did not take place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// The runs, in their order.
    pub runs: Vec<Run>,
    /// Everything that was found in them.
    pub findings: Vec<Finding>,
    /// The screen after the first run that took place, as PNG.
    #[serde(skip)]
    pub screenshot: Option<Vec<u8>>,
}

/// One run of a page.
#[derive(Debug, Serialize)]
pub struct Run {
    /// What stands before its findings: nothing, or how it is with the function.
    #[serde(rename = "while")]
    pub condition: &'static str,
    /// The longest task, in milliseconds, if it took place; the browser counts from 50.
    pub longest_task_ms: Option<u64>,
}

/// What was seen in one run.
#[derive(Debug)]
struct Played {
    findings: Vec<Finding>,
    screenshot: Option<Vec<u8>>,
    longest_task_ms: u64,
}

/// Why there was no run.
#[derive(Debug, Clone, thiserror::Error)]
#[error("not run: {0}")]
struct NotRun(String);

fn not_run(why: impl Into<String>) -> NotRun {
    NotRun(why.into())
}

/// The page alone.
const ALONE: &str = "";
const ANSWERS: &str = "while the function answers";
const CLOSED: &str = "while Python is closed";

/// A work whose browsers have been started and have not been heard yet, one for each run. Whoever wants to listen to them
/// from behind a wall builds it now.
#[derive(Debug)]
pub struct Ready<'w> {
    work: &'w Work,
    config: Result<policy::Config, NotRun>,
    launched: Vec<(&'static str, Result<Launched, NotRun>)>,
}

/// Starts the browsers for a work. `program` is Chromium.
pub fn start<'w>(work: &'w Work, program: &str) -> Ready<'w> {
    let conditions = if work.function.is_some() { &[ANSWERS, CLOSED][..] } else { &[ALONE] };
    let config = config().map_err(not_run);
    Ready { work, config, launched: conditions.iter().map(|c| (*c, Launched::start(program))).collect() }
}

impl Ready<'_> {
    /// The folders that are still needed.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.launched.iter().filter_map(|(_, launched)| Some(launched.as_ref().ok()?.folder()))
    }

    /// Plays the work, its function answered by `backend`.
    pub fn play(self, backend: &Backend) -> Report {
        let Self { work, config, launched } = self;
        // All of them at first, so that none of them starts while another is watched.
        let browsers: Vec<_> =
            launched.into_iter().map(|(c, launched)| (c, launched.and_then(Browser::of))).collect();
        let played = browsers.into_iter().map(|(condition, browser)| {
            let backend = if condition == ANSWERS { backend.clone() } else { Backend::Closed };
            let config = config.as_ref().map_err(Clone::clone);
            (condition, config.and_then(|config| visit::play(work, config, browser?, backend)))
        });
        report(work, played.collect())
    }
}

/// The configuration of a developer's machine: its origins stand in the headers, and nothing is sent to them.
fn config() -> Result<policy::Config, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let path = folder.path().join("tinyfiles.toml");
    std::fs::write(&path, include_str!("../../tinyfiles.toml")).map_err(|e| e.to_string())?;
    policy::Config::open(&path).map_err(|e| e.to_string())
}

fn report(work: &Work, played: Vec<(&'static str, Result<Played, NotRun>)>) -> Report {
    let (mut runs, mut seen, mut held, mut screenshot) = (Vec::new(), Vec::new(), Vec::new(), None);
    for (condition, played) in played {
        let longest_task_ms = match played {
            Ok(played) => {
                screenshot = screenshot.or(played.screenshot);
                seen.extend(played.findings.into_iter().map(|finding| (condition, finding)));
                Some(played.longest_task_ms)
            }
            Err(why) => {
                held.push(said(condition, &why.to_string()));
                None
            }
        };
        runs.push(Run { condition, longest_task_ms });
    }
    let mut findings = merged(seen);
    if let Some(manifest) = &work.manifest {
        explain(&mut findings, &manifest.explain);
    }
    let held = (!held.is_empty()).then(|| held.join("; "));
    let verdict = match &held {
        _ if findings.iter().any(|f| f.severity > Severity::Note) => Verdict::Rejected,
        Some(_) => Verdict::Held,
        None => Verdict::Accepted,
    };
    Report { verdict, held, runs, findings, screenshot }
}

/// What was found in every run stands once; what was found in one says in which.
fn merged(seen: Vec<(&'static str, Finding)>) -> Vec<Finding> {
    let is_same =
        |a: &Finding, b: &Finding| a.rule.id == b.rule.id && a.place() == b.place() && a.what == b.what;
    let mut findings: Vec<(Vec<&'static str>, Finding)> = Vec::new();
    for (condition, finding) in seen {
        match findings
            .iter_mut()
            .find(|(conditions, f)| is_same(f, &finding) && !conditions.contains(&condition))
        {
            Some((conditions, _)) => conditions.push(condition),
            None => findings.push((vec![condition], finding)),
        }
    }
    let told = |(conditions, mut finding): (Vec<&'static str>, Finding)| {
        if let [condition] = conditions.as_slice() {
            finding.what = said(condition, &finding.what);
        }
        finding
    };
    findings.into_iter().map(told).collect()
}

fn said(condition: &str, what: &str) -> String {
    if condition.is_empty() { what.to_owned() } else { format!("{condition}: {what}") }
}
