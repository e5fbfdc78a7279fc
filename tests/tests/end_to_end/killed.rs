//! kill -9 within a job and within a request: of the renderer, of the worker, of the server, each as it is about to make a
//! call that changes something. What was begun comes to its end afterwards, and has its effect once.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use catalog::{Catalog, Data};
use serde_json::json;
use tests::desk::{self, Key, Running};
use tests::faults::{self, CHANGES, Point};
use tests::{Installation, Ran, Served, copy_exactly, program};

const SIDECAR: &str = r#"{"id": "kite", "title": "Kite", "summary": "It flies."}"#;
const PAGE: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Kite</title><body><h1>Kite</h1></body></html>\n";

fn files(html: &str) -> [(&str, &str, &[u8]); 2] {
    [("payload", "a.html", html.as_bytes()), ("sidecar", "work.json", SIDECAR.as_bytes())]
}

/// An installation with a server, and as many members as there are names.
fn installation<const N: usize>(names: [&str; N]) -> Result<(Installation, Running, [Key; N])> {
    let mut here = Installation::small()?;
    here.publish()?;
    let serve = desk::serve(&here)?;
    here.serve()?;
    let mut keys = Vec::new();
    for (name, seed) in names.iter().zip(1..) {
        keys.push(Key::new(&here, seed)?.claim(name)?);
    }
    let keys = keys.try_into().ok().context("as many keys as names")?;
    Ok((here, serve, keys))
}

/// The data folder as it was at one moment.
struct Saved<'h> {
    here: &'h Installation,
    copy: std::path::PathBuf,
}

impl<'h> Saved<'h> {
    fn now(here: &'h Installation) -> Result<Self> {
        let copy = here.folder().join("saved");
        // The server of the installation goes on beside it; what its folder is for stays.
        copy_exactly(&here.data(""), &copy)?;
        Ok(Self { here, copy })
    }

    fn back(&self) -> Result<()> {
        fs::remove_dir_all(self.here.data(""))?;
        copy_exactly(&self.copy, &self.here.data(""))
    }
}

/// A folder with this `api`, and a `sitegen` that is killed at the point of its environment.
fn doomed_sitegen() -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir_in(program("api").parent().context("no folder")?)?;
    fs::hard_link(program("api"), folder.path().join("api"))?;
    let script = format!(
        "#!/bin/sh\nexec strace -f -qq -o/dev/null -etrace=$CALL -einject=$CALL:signal=SIGKILL:when=$NTH -- '{}' \"$@\"\n",
        program("sitegen").display()
    );
    let path = folder.path().join("sitegen");
    fs::write(&path, script)?;
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(folder)
}

#[test]
fn sitegen_killed_anywhere_in_a_job_the_work_is_published_once() -> Result<()> {
    let (here, mut serve, [maker, moderator]) = installation(["maker", "mod"])?;
    ensure!(desk::api(&here, &["member", "grant", "mod", "moderator"])?.code == 0);
    let job = maker.submit(&files(PAGE))?;
    ensure!(desk::api(&here, &["work", "--once"])?.code == 0);
    maker.wait(&job, "pending_review")?;
    let row = Catalog::open(&here.data("catalog.db"))?.pending()?.first().context("nothing waits")?.row;
    let approve = json!({ "decision": "approve" });
    ensure!(moderator.ask("POST", &format!("/api/review/{row}/decision"), Some(&approve))?.status == 204);
    serve.kill()?;
    let before = Served::by(&here)?;
    let saved = Saved::now(&here)?;
    let points = faults::points(&here, &["publish", "--wait"], CHANGES, 2)?;
    let points: Vec<Point> = points.into_iter().step_by(2).collect();
    let after = here.live()?;
    ensure!(after != before.tree && points.len() >= 10, "{points:?}");
    let doomed = doomed_sitegen()?;
    let mut killed = 0;
    for point in &points {
        saved.back()?;
        let mut work = Command::new(doomed.path().join("api"));
        work.arg("--config").arg(here.config()).args(["work", "--once"]);
        work.env("CALL", point.call).env("NTH", point.nth.to_string()).env("RAYON_NUM_THREADS", "1");
        let ran = Ran::of(&work.output()?);
        assert_eq!(ran.code, 0, "{point:?}: {ran:?}");
        let catalog = Catalog::open(&here.data("catalog.db"))?;
        let published =
            || Ok::<_, anyhow::Error>(catalog.audit(99)?.iter().filter(|a| a.action == "publish").count());
        killed += usize::from(published()? == 0);
        // The approval stands, and one of the two sites is served, whole.
        assert_eq!(catalog.submission(&job)?.context("it is lost")?.state.as_str(), "published", "{point:?}");
        let served = Served::by(&here)?;
        assert!(served == before || served.tree == after, "{point:?}");
        desk::all_due(&here)?;
        let ran = desk::api(&here, &["work", "--once"])?;
        assert_eq!((ran.code, here.live()?), (0, after), "{point:?}: {ran:?}");
        assert_eq!(published()?, 1, "{point:?}");
        let regen: Vec<_> =
            catalog.job_counts()?.into_iter().filter(|(kind, ..)| kind == "catalog_regen").collect();
        assert_eq!(regen, [("catalog_regen".to_owned(), "done".to_owned(), 1)], "{point:?}");
        assert!(catalog.check_audit()?.is_ok(), "{point:?}");
        assert_eq!(here.sitegen(&["verify"])?.code, 0, "{point:?}");
    }
    assert!(killed * 10 >= points.len() * 8, "{killed} of {} were killed", points.len());
    Ok(())
}

/// How many workers are killed at once. Each then spends most of its time waiting for Chromium.
const AT_ONCE: usize = 4;

#[test]
fn a_worker_killed_before_any_call_of_a_job_every_submission_comes_through_once() -> Result<()> {
    let (here, mut serve, [maker]) = installation(["maker"])?;
    let work = desk::command(&here, &["work", "--once"]);
    maker.submit(&files(PAGE))?;
    let points = faults::points_of(&here, &work, &[], CHANGES, 3)?;
    let [first] = &Catalog::open(&here.data("catalog.db"))?.pending()?[..] else {
        anyhow::bail!("nothing waits")
    };
    let mut jobs = vec![first.job.clone()];
    for n in 0..AT_ONCE {
        let sidecar = SIDECAR.replace("kite", &format!("kite-{n}"));
        jobs.push(maker.submit(&[
            ("payload", "a.html", PAGE.as_bytes()),
            ("sidecar", "work.json", sidecar.as_bytes()),
        ])?);
    }
    serve.kill()?;
    // From the lease to what is removed at the end, evenly.
    let chosen: Vec<&Point> = points.iter().step_by(points.len().div_ceil(3 * AT_ONCE)).collect();
    let mut killed = 0;
    for round in chosen.chunks(AT_ONCE) {
        let workers: Vec<Child> = round
            .iter()
            .map(|point| faults::doomed(&work, point).stderr(Stdio::null()).spawn())
            .collect::<std::io::Result<_>>()?;
        for mut worker in workers {
            killed += usize::from(!worker.wait()?.success());
        }
        desk::all_due(&here)?;
        // That a job is given up that never comes to an end is another promise.
        rusqlite::Connection::open(here.data("catalog.db"))?.execute("UPDATE jobs SET attempts = 0", [])?;
    }
    assert!(killed * 10 >= chosen.len() * 7, "{killed} of {} were killed", chosen.len());
    let _worker = desk::work(&here)?;
    let catalog = Catalog::open(&here.data("catalog.db"))?;
    for job in &jobs {
        desk::until(|| Ok(catalog.submission(job)?.filter(|s| s.state.as_str() == "pending_review")))
            .with_context(|| format!("{:?}", catalog.submission(job)))?;
    }
    let pending = catalog.pending()?;
    let mut came: Vec<&String> = pending.iter().map(|p| &p.job).collect();
    came.sort_unstable();
    jobs.sort_unstable();
    assert_eq!(came, jobs.iter().collect::<Vec<_>>(), "each once");
    let data = Data::open(&here.data(""))?;
    for file in pending.iter().flat_map(|p| &p.work.files) {
        data.objects.read(&file.digest)?;
    }
    // What was killed between the row and the folder leaves a folder, until no upload can be that old.
    for name in desk::names(&here.data("staging")) {
        made_old(&here.data("staging").join(name))?;
    }
    desk::until(|| Ok(desk::names(&here.data("staging")).is_empty().then_some(())))?;
    Ok(())
}

/// strace on a program that runs already: its calls count from now on.
struct Attached(Child);

impl Attached {
    fn to(process: &Running, point: &Point) -> Result<Self> {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-p", &process.id().to_string()]).args(faults::tampering(point, "signal=SIGKILL"));
        let mut child =
            strace.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().context("cannot run strace")?;
        let mut said = BufReader::new(child.stderr.take().context("no standard error")?);
        let mut line = String::new();
        while !line.contains("attached") {
            line.clear();
            ensure!(said.read_line(&mut line)? > 0, "strace ended");
        }
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Ok(Self(child))
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn at(call: &'static str, times: std::ops::RangeInclusive<usize>) -> impl Iterator<Item = Point> {
    times.map(move |nth| Point { call, nth })
}

#[test]
fn the_server_killed_within_an_upload_what_was_acknowledged_is_there_and_nothing_by_half() -> Result<()> {
    let (here, mut serve, [maker]) = installation(["maker"])?;
    // Turned away by the gates, it is through with them at once.
    let html = PAGE.replace("</body>", "<script>eval(\"1\")</script></body>");
    let catalog = Catalog::open(&here.data("catalog.db"))?;
    let points =
        at("mkdir", 1..=2).chain(at("openat", 1..=3)).chain(at("write", 1..=2)).chain(at("fsync", 1..=3));
    let points: Vec<Point> = points.chain(at("pwrite64", 1..=4)).chain(at("fdatasync", 1..=2)).collect();
    let (mut killed, mut known) = (0, 0);
    for point in &points {
        let strace = Attached::to(&serve, point)?;
        let acknowledged = maker.submit(&files(&html)).ok();
        if acknowledged.is_none() {
            desk::until(|| Ok(serve.has_ended()?.then_some(())))?;
            killed += 1;
        }
        serve.kill()?;
        drop(strace);
        let staged = catalog.staged()?;
        if let Some(job) = &acknowledged {
            assert!(staged.contains(job), "{point:?}: {job} was acknowledged");
        }
        for job in &staged {
            let file = here.data("staging").join(job).join("in/payload.html");
            assert!(
                fs::read(&file).is_ok_and(|bytes| bytes == html.as_bytes()),
                "{point:?}: {}",
                file.display()
            );
        }
        ensure!(staged.len() <= known + 1, "{point:?}");
        known = staged.len();
        serve = desk::serve(&here)?;
    }
    assert!(killed * 10 >= points.len() * 6, "{killed} of {} were killed", points.len());
    // What is not known to the catalogue goes as soon as no upload can be that old.
    for name in desk::names(&here.data("staging")) {
        made_old(&here.data("staging").join(name))?;
    }
    ensure!(desk::api(&here, &["work", "--once"])?.code == 0);
    assert_eq!(desk::names(&here.data("staging")), Vec::<String>::new());
    let rejected = (String::from("intake"), String::from("done"), i64::try_from(known)?);
    assert_eq!(catalog.job_counts()?, [rejected], "each once");
    // The same server takes the next one.
    maker.submit(&files(&html))?;
    Ok(())
}

fn made_old(folder: &Path) -> Result<()> {
    ensure!(Command::new("touch").args(["-d", "2001-01-01"]).arg(folder).status()?.success());
    Ok(())
}

#[test]
fn the_server_killed_within_a_decision_all_of_it_is_written_or_nothing() -> Result<()> {
    let (here, mut serve, [maker, moderator]) = installation(["maker", "mod"])?;
    ensure!(desk::api(&here, &["member", "grant", "mod", "moderator"])?.code == 0);
    let job = maker.submit(&files(PAGE))?;
    ensure!(desk::api(&here, &["work", "--once"])?.code == 0);
    maker.wait(&job, "pending_review")?;
    let catalog = Catalog::open(&here.data("catalog.db"))?;
    let row = catalog.pending()?.first().context("nothing waits")?.row;
    let path = format!("/api/review/{row}/decision");
    let approve = json!({ "decision": "approve" });
    let mut killed = 0;
    let points: Vec<Point> = at("pwrite64", 1..=4).chain(at("fdatasync", 1..=1)).collect();
    for point in &points {
        let strace = Attached::to(&serve, point)?;
        let status = moderator.ask("POST", &path, Some(&approve)).map_or(502, |a| a.status);
        if status == 502 {
            desk::until(|| Ok(serve.has_ended()?.then_some(())))?;
            killed += 1;
        }
        serve.kill()?;
        drop(strace);
        let state = catalog.submission(&job)?.context("it is lost")?.state;
        let decisions = catalog.audit(99)?.iter().filter(|a| a.action == "approve").count();
        let jobs = catalog.job_counts()?.iter().filter(|(kind, ..)| kind == "catalog_regen").count();
        let expected = match state.as_str() {
            "published" => (1, 1, 0),
            _ if status == 204 => (9, 9, 9), // acknowledged, and not there
            _ => (0, 0, 1),
        };
        assert_eq!((decisions, jobs, catalog.pending()?.len()), expected, "{point:?}: {state:?}");
        assert!(catalog.check_audit()?.is_ok(), "{point:?}");
        serve = desk::serve(&here)?;
    }
    assert!(killed >= 3, "{killed} of {} were killed", points.len());
    // Decided by one of them or by none: asked once more, it is.
    let status = moderator.ask("POST", &path, Some(&approve))?.status;
    assert!([204, 409].contains(&status), "{status}");
    ensure!(desk::api(&here, &["work", "--once"])?.code == 0);
    let actions: Vec<String> = catalog.audit(99)?.into_iter().map(|a| a.action).collect();
    for action in ["approve", "publish"] {
        assert_eq!(actions.iter().filter(|a| *a == action).count(), 1, "{actions:?}");
    }
    Ok(())
}
