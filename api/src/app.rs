//! What all requests share, and how it is opened: first everything that needs a file, then the threads.
//!
//! Between the two a program confines itself, so `Prepared` starts nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use policy::limits;

use crate::desk::{self, Desk};
use crate::metrics::Metrics;
use crate::python::Runner;
use crate::saves::budget::Budget;
use crate::saves::store::{self, Sizes};
use crate::saves::words::Secret;
use crate::saves::{Store, Words};
use crate::works::Works;

/// The features behind the routes, opened.
pub struct App {
    /// The records of saves.
    pub saves: Store,
    /// Their words.
    pub words: Words,
    /// What may still be saved today.
    pub budget: Budget,
    /// What is published.
    pub works: Works,
    /// Where functions run.
    pub runner: Runner,
    /// Members, submissions, review.
    pub desk: Arc<Desk>,
    /// Counters.
    pub metrics: Metrics,
}

/// Everything open, nothing running.
pub struct Prepared {
    saves: store::Opened,
    secret: Secret,
    works: Works,
    desk: Desk,
    runner: Runner,
}

/// The database of saves in a data folder; its log lies beside it.
pub fn saves_path(data: &Path) -> PathBuf {
    data.join("saves/saves.db")
}

/// The secret that keys words, apart from the database.
pub fn secret_path(data: &Path) -> PathBuf {
    data.join("word.secret")
}

impl Prepared {
    /// Opens what the data folder of `site` holds, making what is missing; with `readers` connections for reading.
    pub fn open(data: &Path, site: &str, readers: usize) -> anyhow::Result<Self> {
        let path = saves_path(data);
        let folder = path.parent().unwrap_or(data);
        desk::make_folder(folder)?;
        let api = &limits().api;
        let sizes = Sizes {
            waiting_max: api.writes_waiting_max,
            together_max: api.writes_together_max,
            tries: limits().save.word_tries_max,
        };
        let saves = Store::open(&path, sizes, readers)?;
        let secret = Secret::open(&secret_path(data), saves.has_words()?)?;
        let runner = Runner::new(&data.join("runner.sock"));
        let (works, desk) = (Works::open(data)?, Desk::open(data, site)?);
        Ok(Self { saves, secret, works, desk, runner })
    }

    /// Starts the writer. Its thread ends when the app is dropped and what was accepted is on disk.
    pub fn start(self) -> std::io::Result<(App, JoinHandle<()>)> {
        let (saves, writer) = self.saves.start()?;
        let app = App {
            saves,
            words: Words::new(self.secret, limits().save.word_hash_cost),
            budget: Budget::new(limits().save.day_bytes_max),
            works: self.works,
            desk: Arc::new(self.desk),
            runner: self.runner,
            metrics: Metrics::default(),
        };
        Ok((app, writer))
    }
}
