//! The data folder: may it be written, who else may read it, is there room, are databases and secret there, what is served.
//!
//! Called by the doctor. Whether the bytes of the tree are whole is `sitegen verify`'s and the worker's.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use catalog::Day;
use policy::{Config, limits};
use rusqlite::{Connection, OpenFlags};

use super::{Seen, note, wrong};
use crate::app;
use crate::desk::{SCREENSHOTS, STAGING};

type Found = (&'static str, Seen, &'static str);

/// Looks at all of it.
pub(super) fn look(config: &Config) -> Vec<Found> {
    let data = &config.data;
    vec![
        (
            "sources",
            sources(&config.source).into(),
            "name the checked-out folder as `source` in the configuration",
        ),
        (
            "data folder",
            writable(data).into(),
            "make it, owned by the user of the services: systemd/tmpfiles.conf",
        ),
        (
            "rights",
            rights(data).into(),
            "take them away: chmod go= PATH; systemd/tmpfiles.conf makes them so",
        ),
        ("room", room(data).into(), "free some space: `sitegen gc`, older backups; or a larger disk"),
        ("saves", saves(&app::saves_path(data)).into(), "`api serve` makes it; a damaged one: `api restore`"),
        ("word.secret", secret(data), "`api serve` makes it once; after a restore put the copy back"),
        ("tree", tree(data).into(), "run `sitegen publish`"),
        (
            "security.txt",
            security_txt(config).into(),
            "write a later day as `security_txt_expires`, then `sitegen publish`",
        ),
    ]
}

fn sources(source: &Path) -> Result<String, String> {
    let source = if source.as_os_str().is_empty() { Path::new(".") } else { source };
    for name in ["content/pages", "theme/templates", "nginx/nginx.conf"] {
        let path = source.join(name);
        fs::metadata(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(format!("{} has content, theme and nginx", source.display()))
}

fn writable(data: &Path) -> Result<String, String> {
    let probe = data.join(format!("doctor-{}", std::process::id()));
    let written = fs::File::create_new(&probe).and_then(|mut file| file.write_all(b"x").and(file.sync_all()));
    let _ = fs::remove_file(&probe);
    let shown = data.display();
    written
        .map(|()| format!("a file was written and synced in {shown}"))
        .map_err(|e| format!("cannot write in {shown}: {e}"))
}

/// Saves, members and what waits are for the user of the services alone. What is not there yet tells nobody anything.
fn rights(data: &Path) -> Result<String, String> {
    let own = [
        data.join("saves"),
        data.join("catalog.db"),
        data.join(STAGING),
        data.join(SCREENSHOTS),
        app::secret_path(data),
    ];
    for path in &own {
        let Ok(found) = fs::metadata(path) else { continue };
        let mode = found.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(format!("{} is open to other users (mode {mode:04o})", path.display()));
        }
    }
    Ok("saves, catalogue, submissions and secret are closed to other users".to_owned())
}

fn room(data: &Path) -> Result<String, String> {
    let found = rustix::fs::statvfs(data).map_err(|e| format!("{}: {e}", data.display()))?;
    let (free, needed) = (found.f_bavail.saturating_mul(found.f_frsize), limits().save.day_bytes_max);
    let text = format!("{} MiB free; a day of saves may take {}", free >> 20, needed >> 20);
    if found.f_files > 0 && found.f_favail == 0 {
        return Err("no file can be made: the file system has no inode left".to_owned());
    }
    if free < needed { Err(text) } else { Ok(text) }
}

fn saves(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let asked = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).and_then(|db| {
        let tables: u32 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |r| r.get(0))?;
        Ok((tables, db.query_row("PRAGMA integrity_check(1)", [], |r| r.get::<_, String>(0))?))
    });
    match asked {
        Ok((0, _)) => Err(format!("{shown} is empty")),
        Ok((_, verdict)) if verdict == "ok" => Ok(format!("integrity_check of {shown}: ok")),
        Ok((_, verdict)) => Err(format!("{shown} is damaged: {verdict}")),
        Err(error) => Err(format!("cannot read {shown}: {error}")),
    }
}

fn secret(data: &Path) -> Seen {
    let path = app::secret_path(data);
    match fs::read(&path) {
        Ok(_) => note(format!(
            "{} is readable; no backup has it: is a copy kept in another place?",
            path.display()
        )),
        Err(error) => wrong(format!("cannot read {}: {error}", path.display())),
    }
}

fn tree(data: &Path) -> Result<String, String> {
    let live = data.join("live");
    let named = fs::read_link(&live).map_err(|e| format!("{}: {e}", live.display()))?;
    for page in ["site/index.html", "content/404.html"] {
        fs::metadata(live.join(page)).map_err(|e| format!("{}: {e}", live.join(page).display()))?;
    }
    Ok(format!("{} -> {}", live.display(), named.display()))
}

fn security_txt(config: &Config) -> Result<String, String> {
    let (last, today) = (&config.security_txt_expires, Day::today().to_string());
    if *last < today { Err(format!("it ended on {last}")) } else { Ok(format!("valid until {last}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_its_parts_is_found_out() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path();
        assert!(sources(data).unwrap_err().contains("content/pages"));
        assert!(writable(data).is_ok());
        assert!(writable(&data.join("none")).unwrap_err().contains("cannot write"));
        assert_eq!(fs::read_dir(data).unwrap().count(), 0, "the probe is gone");
        assert!(tree(data).unwrap_err().contains("live"));
        assert_eq!(secret(data).0, super::super::State::Wrong);
        fs::write(app::secret_path(data), "x").unwrap();
        assert_eq!(secret(data).0, super::super::State::Note);
    }

    #[test]
    fn what_others_may_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("saves");
        assert!(rights(folder.path()).is_ok(), "what is not there is no secret");
        fs::create_dir(&path).unwrap();
        for (mode, is_closed) in [(0o700, true), (0o750, false), (0o701, false), (0o600, true)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(rights(folder.path()).is_ok(), is_closed, "{mode:o}");
        }
    }

    #[test]
    fn a_disk_without_room_is_found_out() {
        assert!(room(Path::new("/proc")).is_err(), "it has no room at all");
    }

    #[test]
    fn a_damaged_database_is_told_from_a_whole_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        assert!(saves(&path).unwrap_err().contains("cannot read"));
        let db = Connection::open(&path).unwrap();
        db.execute_batch(
            "CREATE TABLE t (x); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
             INSERT INTO t SELECT hex(randomblob(20)) FROM n; CREATE INDEX i ON t (x)",
        )
        .unwrap();
        drop(db);
        assert!(saves(&path).unwrap().ends_with("ok"));
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 4096].fill(7);
        fs::write(&path, bytes).unwrap();
        assert!(saves(&path).is_err());
        fs::write(&path, "").unwrap();
        assert!(saves(&path).unwrap_err().contains("is empty"));
    }
}
