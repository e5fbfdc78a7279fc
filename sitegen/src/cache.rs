//! What was rendered before: for each page the key of its inputs, its objects and its links.
//!
//! `data/pages.db` may be deleted at any time; the next publish renders everything and comes to the same tree. An entry
//! is only believed while its objects are in the store.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;

use catalog::{Data, Digest};
use rusqlite::{Connection, params};

use crate::html::Anchors;

/// Changes whenever the meaning of the table does.
const FORMAT: u32 = 1;

/// A rendered page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    /// The object of the page.
    pub(crate) plain: Digest,
    /// The object of its gzip form, where that is smaller.
    pub(crate) gzip: Option<Digest>,
    /// Its links and ids.
    pub(crate) anchors: Anchors,
}

/// The pages of earlier publishes.
pub(crate) struct Cache {
    db: Mutex<Connection>,
    known: HashMap<String, (Digest, Page)>,
    fresh: Mutex<Vec<(String, Digest, Page)>>,
}

impl Cache {
    /// Opens the cache of a data folder. One that cannot be read is started afresh.
    pub(crate) fn open(data: &Data) -> rusqlite::Result<Self> {
        let path = data.path("pages.db");
        Self::read(&path).or_else(|_| {
            for name in ["pages.db", "pages.db-wal", "pages.db-shm"] {
                let _ = std::fs::remove_file(data.path(name));
            }
            Self::read(&path)
        })
    }

    fn read(path: &Path) -> rusqlite::Result<Self> {
        let db = Connection::open(path)?;
        db.pragma_update(None, "journal_mode", "wal")?;
        db.pragma_update(None, "synchronous", "normal")?;
        if db.pragma_query_value(None, "user_version", |r| r.get::<_, u32>(0))? != FORMAT {
            db.execute_batch(
                "DROP TABLE IF EXISTS pages;
                 CREATE TABLE pages (path TEXT PRIMARY KEY, key TEXT NOT NULL, plain TEXT NOT NULL, gzip TEXT,
                                     links TEXT NOT NULL, ids TEXT NOT NULL) STRICT, WITHOUT ROWID;",
            )?;
            db.pragma_update(None, "user_version", FORMAT)?;
        }
        let mut known = HashMap::new();
        {
            let mut rows = db.prepare("SELECT path, key, plain, gzip, links, ids FROM pages")?;
            let mut rows = rows.query([])?;
            while let Some(row) = rows.next()? {
                let text = |column| row.get::<_, String>(column);
                let lines = |text: String| text.lines().map(str::to_owned).collect();
                let read =
                    (text(1)?.parse(), text(2)?.parse(), row.get::<_, Option<String>>(3)?.map(|t| t.parse()));
                if let (Ok(key), Ok(plain), gzip) = read {
                    let anchors = Anchors { links: lines(text(4)?), ids: lines(text(5)?) };
                    let page = Page { plain, gzip: gzip.transpose().ok().flatten(), anchors };
                    known.insert(text(0)?, (key, page));
                }
            }
        }
        Ok(Self { db: Mutex::new(db), known, fresh: Mutex::default() })
    }

    /// The page at `path`, if it was rendered from the inputs of that key and its objects are there.
    pub(crate) fn get(&self, data: &Data, path: &str, key: &Digest) -> Option<Page> {
        let (_, page) = self.known.get(path).filter(|(k, _)| k == key)?;
        let there = data.objects.has(&page.plain) && page.gzip.is_none_or(|g| data.objects.has(&g));
        there.then(|| page.clone())
    }

    /// Remembers a page, once [`Cache::save`] is called.
    pub(crate) fn put(&self, path: &str, key: Digest, page: &Page) {
        let mut fresh = self.fresh.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        fresh.push((path.to_owned(), key, page.clone()));
    }

    /// Writes what was put.
    pub(crate) fn save(self) -> rusqlite::Result<()> {
        let fresh = self.fresh.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut db = self.db.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        if fresh.is_empty() {
            return Ok(());
        }
        let all = db.transaction()?;
        {
            let mut row = all.prepare("INSERT OR REPLACE INTO pages VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
            for (path, key, page) in fresh {
                let gzip = page.gzip.map(|g| g.to_string());
                let (links, ids) = (page.anchors.links.join("\n"), page.anchors.ids.join("\n"));
                row.execute(params![path, key.to_string(), page.plain.to_string(), gzip, links, ids])?;
            }
        }
        all.commit()
    }
}
