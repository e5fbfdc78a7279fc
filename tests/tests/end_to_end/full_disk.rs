//! A disk without room at every step from upload to backup: who asks is told, nothing is there by half, and with room the
//! same thing goes on by itself.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use catalog::Catalog;
use catalog::submission::State;
use serde_json::{Value, json};
use tests::desk::{self, Key, Running};
use tests::small_disk::{SmallDisk, in_own_mounts};
use tests::{Installation, Served, http};

const SIDECAR: &str = r#"{"id": "kite", "title": "Kite", "summary": "It flies."}"#;
/// How a program ends that found no room.
const DISK_FULL: i32 = 3;

/// An installation whose data are on a small disk. What is mounted goes before what it is mounted in.
struct Here {
    _serve: Running,
    disk: SmallDisk,
    catalog: Catalog,
    maker: Key,
    moderator: Key,
    here: Installation,
}

impl Here {
    fn new() -> Result<Self> {
        let mut here = Installation::small()?;
        let disk = SmallDisk::mount(&here.data(""))?;
        here.publish()?;
        let serve = desk::serve(&here)?;
        here.serve()?;
        let (maker, moderator) = (Key::new(&here, 1)?.claim("maker")?, Key::new(&here, 2)?.claim("mod")?);
        ensure!(desk::api(&here, &["member", "grant", "mod", "moderator"])?.code == 0);
        let catalog = Catalog::open(&here.data("catalog.db"))?;
        Ok(Self { _serve: serve, disk, catalog, maker, moderator, here })
    }

    /// Does what is due, with so much room.
    fn work(&self, left_kib: Option<u64>) -> Result<i32> {
        match left_kib {
            Some(kib) => self.disk.leave(kib)?,
            None => self.disk.make_room()?,
        }
        let ran = desk::api(&self.here, &["work", "--once"])?;
        self.disk.make_room()?;
        desk::all_due(&self.here)?;
        Ok(ran.code)
    }

    fn site(&self, path: &str) -> Result<u16> {
        Ok(http::get(self.here.site_port, "localhost", path)?.status)
    }
}

/// A page of about so many KiB, of which little is seen: its screen is a small picture.
fn page(kib: usize) -> String {
    let line = "A kite is a small thing on a long line, and the wind does the rest of it for nothing.\n";
    let words = line.repeat(kib * 1024 / line.len());
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Kite</title><body><h1>Kite</h1>\n<!--\n{words}-->\n</body></html>\n"
    )
}

fn full(answer: &http::Answer) -> Result<()> {
    assert_eq!(answer.status, 507, "{}", answer.text());
    let problem: Value = serde_json::from_slice(&answer.body)?;
    assert_eq!(problem["type"], "/problems.html#storage-full");
    Ok(())
}

#[test]
fn without_room_nothing_is_half_done_and_with_room_it_goes_on() -> Result<()> {
    if !in_own_mounts("full_disk::without_room_nothing_is_half_done_and_with_room_it_goes_on")? {
        return Ok(());
    }
    let all = Here::new()?;
    let job = uploaded(&all)?;
    checked(&all, &job)?;
    decided_and_published(&all, &job)?;
    backed_up(&all)
}

/// Staging is full first, then the catalogue; a claim finds no room either. Returns the job of the upload that fitted.
fn uploaded(all: &Here) -> Result<String> {
    let html = page(100);
    let files = [("payload", "a.html", html.as_bytes()), ("sidecar", "work.json", SIDECAR.as_bytes())];
    let body = desk::multipart(&files);
    let staged_kib = html.len() as u64 / 1024 + 8;
    let (mut in_staging, mut in_catalogue) = (0, 0);
    let mut left = 0;
    let answer = loop {
        all.disk.leave(left)?;
        let answer = all.maker.send("POST", "/api/submissions", desk::MULTIPART, &body)?;
        if answer.status == 202 {
            break answer;
        }
        full(&answer)?;
        assert_eq!(desk::names(&all.here.data("staging")), Vec::<String>::new(), "{left} KiB left");
        assert!(all.catalog.job_counts()?.is_empty(), "{left} KiB left");
        if left < staged_kib {
            in_staging += 1
        } else {
            in_catalogue += 1
        }
        // In steps, but through the few blocks of the catalogue one by one.
        left += if left + 32 < staged_kib { 32 } else { 4 };
        ensure!(left < 1_000, "it never fitted");
    };
    assert!(in_staging > 2 && in_catalogue > 0, "{in_staging} and {in_catalogue}");
    all.disk.leave(0)?;
    let late = Key::new(&all.here, 3)?;
    full(&late.claim_as("late")?)?;
    all.disk.make_room()?;
    assert_eq!(late.claim_as("late")?.status, 201);
    let answer: Value = serde_json::from_slice(&answer.body)?;
    Ok(answer["jobId"].as_str().context("no job")?.to_owned())
}

/// The gates hand over, the screen of the smoke run, objects, the row: each without room, and more often than a job that
/// fails is tried. It waits, its creator reads why, and comes through.
fn checked(all: &Here, job: &str) -> Result<()> {
    let mut stages = Vec::new();
    for left in [0, 4, 48, 56, 64, 72, 80, 96, 170, 200] {
        let code = all.work(Some(left))?;
        let found = all.catalog.submission(job)?.context("it is lost")?;
        if found.state != State::Received {
            break;
        }
        assert!([0, DISK_FULL].contains(&code), "{left} KiB left: {code}");
        if code == 0 {
            assert!(found.note.contains("disk of the server is full"), "{left} KiB left: {found:?}");
        }
        assert!(all.catalog.pending()?.is_empty(), "{left} KiB left");
        stages.push(found.stage);
    }
    let at = |stage: &str| stages.iter().filter(|s| *s == stage).count();
    assert!(at("checking") >= 5 && at("storing") >= 1, "{stages:?}");
    assert_eq!(all.work(None)?, 0);
    all.maker.wait(job, "pending_review")?;
    let [pending] = &all.catalog.pending()?[..] else { anyhow::bail!("not one version waits") };
    let data = catalog::Data::open(&all.here.data(""))?;
    for file in &pending.work.files {
        data.objects.read(&file.digest)?;
    }
    assert_eq!(desk::names(&all.here.data("staging")), Vec::<String>::new());
    Ok(())
}

/// A decision that cannot be written is none; one that is written stands while publishing has no room.
fn decided_and_published(all: &Here, job: &str) -> Result<()> {
    let row = all.catalog.pending()?.first().context("nothing waits")?.row;
    let (path, approve) = (format!("/api/review/{row}/decision"), json!({ "decision": "approve" }));
    all.disk.leave(0)?;
    full(&all.moderator.ask("POST", &path, Some(&approve))?)?;
    all.disk.make_room()?;
    assert_eq!(
        (
            all.catalog.pending()?.len(),
            all.catalog.audit(9)?.iter().filter(|a| a.action == "approve").count()
        ),
        (1, 0)
    );
    assert_eq!(all.moderator.ask("POST", &path, Some(&approve))?.status, 204);
    let before = Served::by(&all.here)?;
    let mut failed = 0;
    for left in [0, 16, 32, 64, 96, 128, 256] {
        all.work(Some(left))?;
        if Served::by(&all.here)? != before {
            break;
        }
        assert_eq!((all.site("/maker/kite/")?, all.site("/")?), (404, 200), "{left} KiB left");
        failed += 1;
    }
    assert!(failed >= 3, "{failed}");
    assert_eq!(all.maker.job(job)?["state"], "published", "the approval stands");
    assert_eq!(all.work(None)?, 0);
    assert_eq!(all.site("/maker/kite/")?, 200);
    assert_eq!(all.here.sitegen(&["verify"])?.code, 0);
    let published = all.catalog.audit(99)?.iter().filter(|a| a.action == "publish").count();
    assert_eq!(published, 1, "once to effect");
    Ok(())
}

/// A folder of that name is a whole backup, or there is none.
fn backed_up(all: &Here) -> Result<()> {
    let place = all.here.folder().join("backups");
    let disk = SmallDisk::mount(&place)?;
    let to = place.join("one");
    let backup = || desk::api(&all.here, &["backup", &to.to_string_lossy()]);
    for left in [0, 16, 96, 160] {
        disk.leave(left)?;
        let ran = backup()?;
        assert_eq!(ran.code, DISK_FULL, "{left} KiB left: {ran:?}");
        assert!(ran.stderr.contains("backups/one"), "it names the place: {ran:?}");
        assert!(!to.exists(), "{left} KiB left");
        disk.make_room()?;
    }
    let ran = backup()?;
    assert_eq!(ran.code, 0, "{ran:?}");
    let check =
        Command::new("sha256sum").args(["-c", "--quiet", "checksums.txt"]).current_dir(&to).status()?;
    assert!(check.success());
    Ok(())
}
