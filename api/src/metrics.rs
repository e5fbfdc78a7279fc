//! Counters, and their text form for Prometheus, read through a socket of their own.
//!
//! They count routes, refusals and, for the abuse of one work, what was saved and refused per work: moderators see that on
//! the review desk. Nothing is counted per player, and a work is never counted together with a key. Only published works
//! are counted: a client cannot make rows. All of it is lost when the process ends.
//!
//! What nginx refuses never gets here, so nginx says each time which work it was, and the status, to a socket of ours.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hyper::{HeaderMap, StatusCode};
use serde::Serialize;
use tokio::net::UnixDatagram;

use crate::App;
use crate::problem::Kind;
use crate::work::now;

/// The header by which the page around a work says which one it is.
pub const WORK: &str = "tinyfiles-work";
/// Where nginx says what it refused.
pub const REFUSED_SOCKET: &str = "refused.sock";
const REFUSED_BYTES_MAX: usize = 512;

/// A published work, as `creator/work`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Work(String);

impl Work {
    /// The work that a request names, if it is published.
    pub fn of(app: &App, headers: &HeaderMap) -> Option<Self> {
        Self::named(app, headers.get(WORK)?.to_str().ok()?)
    }

    fn named(app: &App, name: &str) -> Option<Self> {
        let (creator, slug) = name.split_once('/')?;
        let work = Self(name.to_owned());
        let known = lock(&app.metrics.works).contains_key(&work);
        let published = || app.works.published(&creator.parse().ok()?, &slug.parse().ok()?).ok()?;
        (known || published().is_some()).then_some(work)
    }
}

/// What was saved for one work since the server started, and what was not.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Saved {
    /// Saves that were kept.
    pub saves: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Requests that were refused.
    pub refused: Refused,
}

/// Requests about saves that were refused, by why.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Refused {
    /// They came too fast from one address.
    pub rate: u64,
    /// They were too large.
    pub size: u64,
    /// The day's bytes of all players were spent.
    pub budget: u64,
    /// Another reason: a wrong word, a newer save, a body that is none.
    pub other: u64,
}

impl Refused {
    fn count(&mut self, kind: Kind) {
        let counter = match kind {
            Kind::Rate => &mut self.rate,
            Kind::TooLarge => &mut self.size,
            Kind::Quota => &mut self.budget,
            _ => &mut self.other,
        };
        *counter += 1;
    }

    /// All of them, each under its name.
    fn named(&self) -> [(&'static str, u64); 4] {
        [("rate", self.rate), ("size", self.size), ("budget", self.budget), ("other", self.other)]
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.named().iter().map(|(_, count)| count).sum()
    }
}

/// All counters.
#[derive(Debug)]
pub struct Metrics {
    since: i64,
    answers: Mutex<BTreeMap<(&'static str, u16), u64>>,
    refusals: Mutex<BTreeMap<Kind, u64>>,
    works: Mutex<BTreeMap<Work, Saved>>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { since: now(), answers: Mutex::default(), refusals: Mutex::default(), works: Mutex::default() }
    }
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

    /// Counts a save of so many bytes for a work, or one that was refused.
    pub fn saved(&self, work: Option<Work>, outcome: Result<usize, Kind>) {
        let Some(work) = work else { return };
        let mut works = lock(&self.works);
        let saved = works.entry(work).or_default();
        match outcome {
            Ok(bytes) => {
                saved.saves += 1;
                saved.bytes += bytes as u64;
            }
            Err(kind) => saved.refused.count(kind),
        }
    }

    /// What was saved for the work at `creator/work`.
    pub fn of_work(&self, work: &str) -> Saved {
        lock(&self.works).get(&Work(work.to_owned())).copied().unwrap_or_default()
    }

    /// What was saved for each work, those with most refusals first, and since when that is counted.
    pub fn of_works(&self) -> (i64, Vec<(String, Saved)>) {
        let mut works: Vec<_> =
            lock(&self.works).iter().map(|(work, saved)| (work.0.clone(), *saved)).collect();
        works.sort_by_key(|(_, saved)| std::cmp::Reverse((saved.refused.total(), saved.saves)));
        (self.since, works)
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
            for (why, count) in saved.refused.named() {
                line(&format!("work_refusals_total{{work=\"{work}\",why=\"{why}\"}}"), count);
            }
            line(&format!("work_bytes_total{{work=\"{work}\"}}"), saved.bytes);
        }
        text
    }
}

/// Counts what nginx refused, for as long as the process lives. It says so in the way of syslog: a head, a colon, and then
/// the work and the status.
pub async fn hear(app: &App, socket: &UnixDatagram) {
    let mut said = [0; REFUSED_BYTES_MAX];
    while let Ok(length) = socket.recv(&mut said).await {
        let text = std::str::from_utf8(said.get(..length).unwrap_or_default()).unwrap_or_default();
        if let Some((work, kind)) = refusal(text) {
            app.metrics.saved(Work::named(app, work), Err(kind));
        }
    }
}

fn refusal(said: &str) -> Option<(&str, Kind)> {
    let (_, said) = said.rsplit_once(": ")?;
    match said.trim_end().split_once(' ')? {
        (work, "429") => Some((work, Kind::Rate)),
        (work, "413") => Some((work, Kind::TooLarge)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nginx_says_is_read() {
        let head = "<190>Nov 30 12:00:00 saves: ";
        assert_eq!(refusal(&format!("{head}moth/hitch 429")), Some(("moth/hitch", Kind::Rate)));
        assert_eq!(refusal(&format!("{head}moth/hitch 413\n")), Some(("moth/hitch", Kind::TooLarge)));
        for bad in ["", "moth/hitch 429", &format!("{head}- 404"), &format!("{head}429"), head] {
            assert_eq!(refusal(bad), None, "{bad}");
        }
    }

    #[test]
    fn refusals_are_told_apart_and_the_worst_comes_first() {
        let metrics = Metrics::default();
        let work = |name: &str| Some(Work(name.to_owned()));
        for kind in [Kind::Rate, Kind::TooLarge, Kind::TooLarge, Kind::Quota, Kind::NewerSave] {
            metrics.saved(work("a/b"), Err(kind));
        }
        metrics.saved(work("a/a"), Ok(7));
        metrics.saved(None, Err(Kind::Rate));
        let Saved { saves, bytes, refused } = metrics.of_work("a/b");
        assert_eq!((saves, bytes, refused.total()), (0, 0, 5));
        assert_eq!(refused.named(), [("rate", 1), ("size", 2), ("budget", 1), ("other", 1)]);
        let names: Vec<String> = metrics.of_works().1.into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a/b", "a/a"]);
        assert_eq!(metrics.of_work("no/such").refused.total(), 0);
    }
}
