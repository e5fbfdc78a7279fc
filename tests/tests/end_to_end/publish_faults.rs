//! A publish that is killed, starved or cut off at any step leaves the old site whole, and the next one comes to the
//! same tree as if nothing had happened.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use catalog::{Catalog, Data, Digest, Role};
use tests::faults::{self, CHANGES, Point};
use tests::{Installation, Ran, Served, copy_exactly};

/// How many points of a frequent system call are tried.
const POINTS_PER_CALL: usize = 4;

/// An installation that serves one tree and is about to publish another.
struct Ready {
    here: Installation,
    before: Served,
    after: Digest,
}

impl Ready {
    fn new() -> Result<Self> {
        let here = Installation::small()?;
        here.publish()?;
        let before = Served::by(&here)?;
        edit_everything(&here)?;
        copy_exactly(&here.data(""), &here.data("").with_file_name("saved"))?;
        here.publish()?;
        let after = here.live()?;
        ensure!(after != before.tree);
        let ready = Self { here, before, after };
        ready.reset()?;
        Ok(ready)
    }

    /// Back to where the second publish has not happened.
    fn reset(&self) -> Result<()> {
        fs::remove_dir_all(self.here.data(""))?;
        copy_exactly(&self.here.data("").with_file_name("saved"), &self.here.data(""))
    }

    /// Whatever happened, one of the two trees is served, whole, and the next publish ends where it should.
    fn check(&self, what: &str) -> Result<()> {
        let served = Served::by(&self.here)?;
        assert!(served == self.before || served.tree == self.after, "{what}: {}", served.tree);
        self.recovers(what)
    }

    fn recovers(&self, what: &str) -> Result<()> {
        intact(&self.here, what)?;
        let ran = self.here.sitegen(&["publish"])?;
        assert_eq!((ran.code, self.here.live()?), (0, self.after), "{what}: {ran:?}");
        intact(&self.here, what)
    }
}

fn intact(here: &Installation, what: &str) -> Result<()> {
    let ran = here.sitegen(&["verify"])?;
    assert_eq!(ran.code, 0, "{what}: {ran:?}");
    Ok(())
}

/// A page, the style of every page, and the payload of a work.
fn edit_everything(here: &Installation) -> Result<()> {
    here.edit("content/pages/about.md", "\n+++\n", "\n+++\n\nMore.\n")?;
    fs::write(here.source().join("theme/style/site.css"), "body { margin: 1px }\n")?;
    let data = Data::open(&here.data(""))?;
    let bytes = b"<!DOCTYPE html><title>Hitch</title><p>Another one.";
    let digest = data.writer()?.put(bytes)?;
    let mut catalog = Catalog::open(&here.data("catalog.db"))?;
    let mut work =
        catalog.published()?.into_iter().find(|w| w.path() == "/moth/hitch/").context("no work")?;
    let payload = work.files.iter_mut().find(|f| f.role == Role::Payload).context("no payload")?;
    (payload.digest, payload.bytes) = (digest, bytes.len() as u64);
    Ok(catalog.replace(&work)?)
}

#[test]
fn killed_before_any_step_the_old_site_stays_and_the_next_publish_is_as_ever() -> Result<()> {
    let ready = Ready::new()?;
    let points = faults::points(&ready.here, &["publish"], CHANGES, POINTS_PER_CALL)?;
    let kinds: HashSet<_> = points.iter().map(|p| p.call).collect();
    assert!(kinds.len() >= 10, "{kinds:?}");
    let mut killed = 0;
    for point in &points {
        ready.reset()?;
        let ran = faults::killed_at(&ready.here, point, &["publish"])?;
        killed += usize::from(ran.code == -1);
        ready.check(&format!("killed at {point:?}"))?;
    }
    assert!(killed * 10 >= points.len() * 9, "{killed} of {} were killed", points.len());
    Ok(())
}

#[test]
fn killed_in_its_first_publish_an_installation_starts_again() -> Result<()> {
    let here = Installation::small()?;
    let data = here.data("");
    let points = faults::points(&here, &["publish"], CHANGES, 2)?;
    let expected = here.live()?;
    for point in &points {
        fs::remove_dir_all(&data)?;
        faults::killed_at(&here, point, &["publish"])?;
        let ran = here.sitegen(&["publish"])?;
        assert_eq!((ran.code, here.live()?), (0, expected), "{point:?}: {ran:?}");
        intact(&here, &format!("{point:?}"))?;
    }
    Ok(())
}

#[test]
fn a_full_disk_at_any_step_is_said_once_and_changes_nothing() -> Result<()> {
    let ready = Ready::new()?;
    let calls = [
        "write",
        "pwrite64",
        "mkdir",
        "linkat",
        "symlink",
        "rename",
        "ftruncate",
        "fsync",
        "fdatasync",
        "syncfs",
    ];
    let points = faults::points(&ready.here, &["publish"], &calls, POINTS_PER_CALL)?;
    let mut failed = 0;
    for point in &points {
        ready.reset()?;
        let ran = faults::failed_at(&ready.here, point, "ENOSPC", &["publish"])?;
        if ran.code == 0 {
            // Only what may be lost could not be written.
            assert_eq!(ready.here.live()?, ready.after, "{point:?}");
        } else {
            failed += 1;
            assert_eq!(ran.code, 1, "{point:?}: {ran:?}");
            // A swap that could not be made sure of is an error, but it is a swap.
            let served = Served::by(&ready.here)?;
            let swapped = point.call == "fsync" && served.tree == ready.after;
            assert!(swapped || served == ready.before, "{point:?}: {}", served.tree);
            assert_eq!(ran.stderr.lines().count(), 1, "{point:?}: {ran:?}");
            assert!(ran.stderr.contains("free some space"), "{point:?}: {ran:?}");
            assert!(ran.stderr.contains("/data"), "{point:?} names no file: {ran:?}");
        }
        ready.recovers(&format!("no space at {point:?}"))?;
    }
    assert!(failed * 2 >= points.len(), "{failed} of {} failed", points.len());
    Ok(())
}

/// What a shell in a mount namespace of its own does with a small disk: publishes, fills the disk but for so many KiB,
/// publishes again, tidies up with the disk still full, makes room, publishes.
const SMALL_DISK: &str = r#"
set -u
mount -t tmpfs -o size=24m tiny "$DATA" || exit 90
run() { out=$("$SITEGEN" --config "$CONFIG" "$2" 2>&1); code=$?; echo "$1" $out "code=$code" "live=$(readlink "$DATA/live")"; }
run first publish
printf 'body { margin: 2px }\n' >> "$SOURCE/theme/style/site.css"
for left in 0 4 8 16 64 256 512 1024; do
    while ! dd if=/dev/zero of="$DATA/filler" bs=4k 2>/dev/null; do [ -s "$DATA/filler" ] && break; done
    truncate -s "-${left}K" "$DATA/filler"
    run "left-$left" publish
    run "verify-$left" verify
    run "gc-$left" gc
    rm "$DATA/filler"
done
run last publish
run verify-last verify
"#;

#[test]
fn a_disk_that_is_really_full_changes_nothing_and_can_be_tidied() -> Result<()> {
    let here = Installation::small()?;
    fs::create_dir_all(here.data(""))?;
    let root = fs::metadata("/proc/self")?.uid() == 0;
    let output = Command::new("unshare")
        .args([if root { "-m" } else { "-rm" }, "--propagation", "private", "bash", "-c", SMALL_DISK])
        .env("DATA", here.data(""))
        .env("SOURCE", here.source())
        .env("CONFIG", here.config())
        .env("SITEGEN", tests::program("sitegen"))
        .output()?;
    let ran = Ran::of(&output);
    ensure!(ran.code == 0, "{ran:?}");
    let line = |name: &str| -> Result<(&str, &str, &str)> {
        let found = ran.stdout.lines().find_map(|l| l.strip_prefix(&format!("{name} ")));
        let (rest, live) =
            found.and_then(|l| l.rsplit_once(" live=")).with_context(|| format!("{name}: {ran:?}"))?;
        let (words, code) = rest.rsplit_once("code=").context("no code")?;
        Ok((words, code.trim(), live))
    };
    let (_, _, first) = line("first")?;
    let (_, code, last) = line("last")?;
    assert!(code == "0" && first != last, "{}", ran.stdout);
    let mut failed = 0;
    for left in [0, 4, 8, 16, 64, 256, 512, 1024] {
        let (words, code, live) = line(&format!("left-{left}"))?;
        if code == "1" {
            failed += 1;
            assert!(words.contains("free some space"), "{left} KiB left: {words}");
            assert!(live == first || live == last, "{left} KiB left");
        } else {
            assert_eq!((code, live), ("0", last), "{left} KiB left: {words}");
        }
        for then in ["verify", "gc"] {
            let (words, code, _) = line(&format!("{then}-{left}"))?;
            assert_eq!(code, "0", "{then} with {left} KiB left: {words}");
        }
    }
    assert!(failed >= 3, "{}", ran.stdout);
    assert_eq!(line("verify-last")?.1, "0", "{}", ran.stdout);
    Ok(())
}

#[test]
fn an_object_with_too_many_links_gets_a_second_inode() -> Result<()> {
    let ready = Ready::new()?;
    let points = faults::points(&ready.here, &["publish"], &["linkat"], 12)?;
    let mut seconds = 0;
    for point in &points {
        ready.reset()?;
        let ran = faults::failed_at(&ready.here, point, "EMLINK", &["publish"])?;
        assert_eq!((ran.code, ready.here.live()?), (0, ready.after), "{point:?}: {ran:?}");
        intact(&ready.here, &format!("{point:?}"))?;
        seconds += usize::from(second_inodes(&ready.here)? > 0);
    }
    assert!(seconds > 0, "of {} points none made a second inode", points.len());
    Ok(())
}

/// Files of directories that are not the inode of their object any more.
fn second_inodes(here: &Installation) -> Result<usize> {
    let data = Data::open(&here.data(""))?;
    let mut count = 0;
    for digest in data.reachable(&[here.live()?])?.directories {
        let path = data.directories.path(&digest);
        for (name, entry) in data.directories.read(&digest)?.entries() {
            if let catalog::directory::Entry::File(file) = entry {
                let [own, object] = [path.join(name), data.objects.path(&file)].map(fs::metadata);
                count += usize::from(own?.ino() != object?.ino());
            }
        }
    }
    Ok(count)
}

#[test]
fn a_process_with_the_number_of_a_killed_one_is_not_in_its_way() -> Result<()> {
    // In a container every publish may be process 1.
    let ready = Ready::new()?;
    let root = fs::metadata("/proc/self")?.uid() == 0;
    let plain = ready.here.command(&["publish"]);
    let contained = |program: &str, options: &[&str]| {
        let mut command = Command::new(program);
        command.args(options).args([if root { "-pf" } else { "-rpf" }]);
        command.arg(plain.get_program()).args(plain.get_args()).env("RAYON_NUM_THREADS", "1");
        command
    };
    for nth in [1, 5] {
        ready.reset()?;
        let inject = format!("-einject=rename:signal=SIGKILL:when={nth}");
        let killed = ["-f", "-qq", "-o/dev/null", "-etrace=rename", &inject, "--", "unshare"];
        let ran = Ran::of(&contained("strace", &killed).output()?);
        assert_ne!(ran.code, 0, "{ran:?}");
        let ran = Ran::of(&contained("unshare", &[]).output()?);
        assert_eq!((ran.code, ready.here.live()?), (0, ready.after), "{ran:?}");
    }
    Ok(())
}

#[test]
fn after_a_power_failure_what_is_empty_is_written_again() -> Result<()> {
    let ready = Ready::new()?;
    let known = objects(&ready.here)?;
    let late = Point { call: "syncfs", nth: 1 };
    assert_eq!(faults::killed_at(&ready.here, &late, &["publish"])?.code, -1);
    let marker = ready.here.data("unsynced");
    fs::read(&marker).context("a publish that did not sync leaves a mark")?;
    fs::write(&marker, "another boot")?;
    let new: Vec<_> = objects(&ready.here)?.difference(&known).copied().collect();
    assert!(new.len() > 10);
    let data = Data::open(&ready.here.data(""))?;
    for digest in &new {
        let path = data.objects.path(digest);
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
        fs::write(&path, "")?;
    }
    ready.check("power failure")?;
    assert!(!marker.exists());
    for digest in objects(&ready.here)? {
        data.objects.read(&digest)?;
    }
    Ok(())
}

fn objects(here: &Installation) -> Result<HashSet<Digest>> {
    Ok(Data::open(&here.data(""))?.objects.list()?.0.into_iter().collect())
}

#[test]
fn a_gc_killed_at_any_step_takes_nothing_that_a_later_publish_relies_on() -> Result<()> {
    let here = Installation::small()?;
    let css = here.source().join("theme/style/site.css");
    let first_css = fs::read_to_string(&css)?;
    here.publish()?;
    let first = here.live()?;
    for round in 0..6 {
        fs::write(&css, format!("body {{ margin: {round}px }}\n"))?;
        here.publish()?;
    }
    // Old enough to be let go.
    for entry in fs::read_dir(here.data("trees"))? {
        let ok =
            Command::new("touch").args(["-h", "-d", "2001-01-01"]).arg(entry?.path()).status()?.success();
        ensure!(ok);
    }
    let served = Served::by(&here)?;
    let saved = here.data("").with_file_name("saved");
    copy_exactly(&here.data(""), &saved)?;
    let points = faults::points(&here, &["gc"], &["unlink", "unlinkat", "rmdir", "rename"], 12)?;
    assert!(!Data::open(&here.data(""))?.directories.has(&first), "gc let go of the first tree");
    fs::write(&css, first_css)?;
    for point in &points {
        fs::remove_dir_all(here.data(""))?;
        copy_exactly(&saved, &here.data(""))?;
        let ran = faults::killed_at(&here, point, &["gc"])?;
        assert_eq!(ran.code, -1, "{point:?}: {ran:?}");
        assert_eq!(Served::by(&here)?, served, "{point:?}");
        intact(&here, &format!("{point:?}"))?;
        here.publish()?;
        assert_eq!(here.live()?, first, "{point:?}");
        intact(&here, &format!("{point:?}, then the first tree again"))?;
        assert_eq!(here.sitegen(&["gc"])?.code, 0);
        intact(&here, &format!("{point:?}, then gc again"))?;
        assert_eq!(rubbish(&here)?, Vec::<String>::new(), "{point:?}");
    }
    Ok(())
}

/// Names that begin with a dot: what interrupted writers leave.
fn rubbish(here: &Installation) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in walkdir::WalkDir::new(here.data("")).min_depth(1) {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy();
        if name.starts_with('.') && name != ".well-known" {
            found.push(entry.path().display().to_string());
        }
    }
    Ok(found)
}
