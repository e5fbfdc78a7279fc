//! Counters, and their text form for Prometheus, read through a socket of their own.
//!
//! They count routes, refusals and, for the abuse of one work, what was saved per work. Nothing is counted per player,
//! and a work is never counted together with a key. Only published works are counted: a client cannot make rows.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hyper::{HeaderMap, StatusCode};

use crate::App;
use crate::problem::Kind;

/// The header by which the page around a work says which one it is.
pub const WORK: &str = "tinyfiles-work";

/// A published work, as `creator/work`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Work(String);

impl Work {
    /// The work that a request names, if it is published.
    pub fn of(app: &App, headers: &HeaderMap) -> Option<Self> {
        let name = headers.get(WORK)?.to_str().ok()?;
        let (creator, slug) = name.split_once('/')?;
        let work = Self(name.to_owned());
        let known = lock(&app.metrics.works).contains_key(&work);
        let published = || app.works.published(&creator.parse().ok()?, &slug.parse().ok()?).ok()?;
        (known || published().is_some()).then_some(work)
    }
}

/// What was saved for one work.
#[derive(Debug, Clone, Copy, Default)]
struct Saved {
    saves: u64,
    rejects: u64,
    bytes: u64,
}

/// All counters.
#[derive(Debug, Default)]
pub struct Metrics {
    answers: Mutex<BTreeMap<(&'static str, u16), u64>>,
    refusals: Mutex<BTreeMap<Kind, u64>>,
    works: Mutex<BTreeMap<Work, Saved>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Metrics {
    /// Counts an answer.
    pub fn answered(&self, route: &'static str, status: StatusCode) {
        *lock(&self.answers).entry((route, status.as_u16())).or_default() += 1;
    }

    /// Counts a refusal.
    pub fn refused(&self, kind: Kind) {
        *lock(&self.refusals).entry(kind).or_default() += 1;
    }

    /// Counts a save of `bytes` for a work, or one that was refused.
    pub fn saved(&self, work: Option<Work>, bytes: Option<usize>) {
        let Some(work) = work else { return };
        let mut works = lock(&self.works);
        let saved = works.entry(work).or_default();
        match bytes {
            Some(bytes) => {
                saved.saves += 1;
                saved.bytes += bytes as u64;
            }
            None => saved.rejects += 1,
        }
    }

    /// The text that Prometheus reads.
    pub fn render(&self, app: &App) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let mut line = |name: &str, value: u64| _ = writeln!(text, "api_{name} {value}");
        let writer = &app.saves.counters;
        line("saves_waiting", app.saves.waiting() as u64);
        line("saves_commits_total", writer.commits.load(Ordering::Relaxed));
        line("saves_changes_total", writer.changes.load(Ordering::Relaxed));
        line("saves_bytes_today", app.budget.spent());
        for ((route, status), count) in &*lock(&self.answers) {
            line(&format!("answers_total{{route=\"{route}\",status=\"{status}\"}}"), *count);
        }
        for (kind, count) in &*lock(&self.refusals) {
            line(&format!("refusals_total{{type=\"{}\"}}", kind.name()), *count);
        }
        for (Work(work), saved) in &*lock(&self.works) {
            line(&format!("work_saves_total{{work=\"{work}\"}}"), saved.saves);
            line(&format!("work_rejects_total{{work=\"{work}\"}}"), saved.rejects);
            line(&format!("work_bytes_total{{work=\"{work}\"}}"), saved.bytes);
        }
        text
    }
}
