//! What submitting and reviewing cost: the server's memory while many upload, the time from an approval to the served page,
//! how fast a queue is worked off. For `./dev bench`.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use catalog::Catalog;
use serde_json::json;

use crate::desk::{self, Key, Running};
use crate::synthetic::fill;
use crate::{Installation, http};

/// Who uploads at once.
const CLIENTS: u8 = 20;
/// Works that are published already.
const WORKS: usize = 10_000;
/// Approvals that are timed.
const APPROVALS: usize = 5;
/// Jobs in the queue, and how many of those that are played.
const JOBS: usize = 1_000;
const PLAYED: usize = 40;

/// The table, as README.md quotes it; each row is printed as soon as it is measured.
pub fn table(folder: &Path, print: impl Fn(&str)) -> Result<()> {
    print("Submitting and reviewing\n\n| what | measured |\n|---|---|");
    let (before, peak) = memory(folder)?;
    print(&format!(
        "| `api serve` while {CLIENTS} clients upload 5 MiB each through nginx | {before:.1} MB resident before, {peak:.1} MB at most |"
    ));
    let turned_away = queue(folder, JOBS, "<script>eval(\"1\")</script>", "rejected")?;
    print(&format!(
        "| a queue of {JOBS} submissions that the gates turn away, two workers | {turned_away:.1} a second |"
    ));
    let played = queue(folder, PLAYED, "<h1>Kite</h1>", "pending_review")?;
    print(&format!(
        "| a queue of {PLAYED} that pass, each five seconds in Chromium, two workers | {played:.2} a second |"
    ));
    approvals(folder, |times| {
        print(&format!(
            "| approval to the page on the served site, {WORKS} works published, median of {APPROVALS} | {:.2} s, {:.2} s at most |\n",
            times[APPROVALS / 2].as_secs_f64(),
            times[APPROVALS - 1].as_secs_f64()
        ));
    })
}

fn installation(folder: &Path) -> Result<(Installation, Running)> {
    let mut here = Installation::in_folder(folder)?;
    here.publish()?;
    let serve = desk::serve(&here)?;
    here.serve()?;
    Ok((here, serve))
}

/// A page, and a sidecar for it.
fn files(body: &str, slug: &str) -> (String, String) {
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Kite</title><body>{body}</body></html>\n"
    );
    (html, json!({ "id": slug, "title": "Kite" }).to_string())
}

/// What `api serve` holds before and at most during the uploads, in MiB.
fn memory(folder: &Path) -> Result<(f64, f64)> {
    let (here, serve) = installation(folder)?;
    let keys: Vec<Key> =
        (1..=CLIENTS).map(|n| Key::new(&here, n)?.claim(&format!("maker-{n}"))).collect::<Result<_>>()?;
    let html = vec![b' '; usize::try_from(policy::limits().work.html_bytes_max)?];
    let upload = desk::multipart(&[("payload", "a.html", &html)]);
    let before = serve.status_mb("VmRSS")?;
    fs::write(format!("/proc/{}/clear_refs", serve.id()), "5").context("cannot reset the peak")?;
    thread::scope(|scope| -> Result<()> {
        let upload = &upload;
        let send = |key: &Key| key.send("POST", "/api/submissions", desk::MULTIPART, upload);
        let all: Vec<_> = keys.iter().map(|key| scope.spawn(move || send(key))).collect();
        for one in all {
            let answer = one.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
            ensure!(answer.status == 202, "{} {}", answer.status, answer.text());
        }
        Ok(())
    })?;
    Ok((before, serve.status_mb("VmHWM")?))
}

/// From the answer being asked for to the page being there, sorted.
fn approvals(folder: &Path, found: impl FnOnce(&[Duration])) -> Result<()> {
    let mut here = Installation::in_folder(folder)?;
    fill(&here, WORKS, 100)?;
    here.publish()?;
    let _serve = desk::serve(&here)?;
    here.serve()?;
    let (maker, moderator) = (Key::new(&here, 1)?.claim("maker")?, Key::new(&here, 2)?.claim("mod")?);
    ensure!(desk::api(&here, &["member", "grant", "mod", "moderator"])?.code == 0);
    let _work = desk::command(&here, &["work"]).stderr(Stdio::null()).spawn().map(Running::from)?;
    let catalog = Catalog::open(&here.data("catalog.db"))?;
    for n in 0..APPROVALS {
        let (html, sidecar) = files("<h1>Kite</h1>", &format!("kite-{n}"));
        let job = maker.submit(&[
            ("payload", "a.html", html.as_bytes()),
            ("sidecar", "work.json", sidecar.as_bytes()),
        ])?;
        // Asked in the catalogue: nginx counts what is asked of the API.
        desk::until(|| Ok(catalog.submission(&job)?.filter(|s| s.state.as_str() == "pending_review")))?;
    }
    let mut times = Vec::new();
    for pending in catalog.pending()? {
        let decision = format!("/api/review/{}/decision", pending.row);
        let asked = Instant::now();
        let answer = moderator.ask("POST", &decision, Some(&json!({ "decision": "approve" })))?;
        ensure!(answer.status == 204, "{}", answer.text());
        while http::get(here.site_port, "localhost", &pending.work.path())?.status != 200 {
            thread::sleep(Duration::from_millis(5));
        }
        times.push(asked.elapsed());
        // The next one begins when this one's job is over.
        desk::until(|| {
            let open = |(kind, state, _): &(String, String, i64)| kind == "catalog_regen" && state != "done";
            Ok((!catalog.job_counts()?.iter().any(open)).then_some(()))
        })?;
    }
    times.sort_unstable();
    found(&times);
    Ok(())
}

/// Submissions a second, from the start of one process with two workers to the last state. Each must come to that state,
/// after one attempt.
fn queue(folder: &Path, jobs: usize, body: &str, state: &str) -> Result<f64> {
    let here = Installation::in_folder(folder)?;
    here.publish()?;
    let mut catalog = Catalog::open(&here.data("catalog.db"))?;
    let member = catalog.claim(&"k".repeat(43), "{}", &"maker".parse()?, "2026-11-30".parse()?)?;
    for n in 0..jobs {
        let (html, sidecar) = files(body, &format!("kite-{n}"));
        let job = format!("{n:032x}");
        let staged = here.data("staging").join(&job).join("in");
        fs::create_dir_all(&staged)?;
        fs::write(staged.join("payload.html"), html)?;
        fs::write(staged.join("work.json"), sidecar)?;
        catalog.submit(&job, &member, 0, u32::MAX)?;
    }
    let start = Instant::now();
    let mut work = desk::command(&here, &["work"]).stderr(Stdio::null()).spawn().map(Running::from)?;
    let db = rusqlite::Connection::open(here.data("catalog.db"))?;
    let count = |sql: &str| -> Result<usize> {
        Ok(usize::try_from(db.query_row(sql, [state], |r| r.get::<_, i64>(0))?)?)
    };
    while count("SELECT count(*) FROM submissions WHERE state = ?1")? < jobs {
        ensure!(!work.has_ended()?, "the worker ended");
        thread::sleep(Duration::from_millis(20));
    }
    let rate = jobs as f64 / start.elapsed().as_secs_f64();
    let once = count(
        "SELECT count(*) FROM jobs WHERE kind = 'intake' AND state = 'done' AND attempts = 1 AND ?1 <> ''",
    )?;
    let versions = count("SELECT count(*) FROM works WHERE status = ?1")?;
    ensure!(once == jobs, "{once} of {jobs} were done at the first attempt");
    ensure!(versions == if state == "rejected" { 0 } else { jobs }, "{versions} versions");
    Ok(rate)
}
