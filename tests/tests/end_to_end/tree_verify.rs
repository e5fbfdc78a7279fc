//! Trees: what their lists promise, what `verify`, `rollback` and `gc` do to them, and what stays from one to the next.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use catalog::{Catalog, Data, Digest, Role, Work};
use tests::http::{self, Answer};
use tests::{Installation, Ran, Served, copy_exactly};

fn sha256sum(folder: &Path) -> Result<Ran> {
    let check = Command::new("sha256sum")
        .args(["--check", "--strict", "checksums.txt"])
        .current_dir(folder)
        .output()?;
    Ok(Ran::of(&check))
}

#[test]
fn sha256sum_agrees_at_the_root_and_in_every_directory() -> Result<()> {
    let mut here = Installation::new()?;
    here.publish()?;
    let mut checked = 0;
    for entry in walkdir::WalkDir::new(here.data("live")).follow_links(true) {
        let entry = entry?;
        if entry.file_type().is_dir() {
            let ran = sha256sum(entry.path())?;
            assert_eq!(ran.code, 0, "{}: {ran:?}", entry.path().display());
            let listed = fs::read_to_string(entry.path().join("checksums.txt"))?.lines().count();
            assert_eq!(fs::read_dir(entry.path())?.count(), listed + 1, "{}", entry.path().display());
            checked += listed;
        }
    }
    assert!(checked > 100, "{checked} lines");
    assert_eq!(here.live()?, Digest::of(&fs::read(here.data("live/checksums.txt"))?));
    // What a player downloads checks what a player downloads.
    here.serve()?;
    let kept = tempfile::tempdir()?;
    let list = http::get(here.content_port, "127.0.0.1", "/halfpenny/envelope/checksums.txt")?;
    for line in list.text().lines() {
        let name = line.split_once("  ").context("no name")?.1;
        let file = http::get(here.content_port, "127.0.0.1", &format!("/halfpenny/envelope/{name}"))?;
        fs::write(kept.path().join(name), file.body)?;
    }
    fs::write(kept.path().join("checksums.txt"), &list.body)?;
    let ran = sha256sum(kept.path())?;
    assert_eq!(ran.code, 0, "{ran:?}");
    for name in ["index.html: OK", "envelope.py: OK", "work.json: OK", "cover.png: OK"] {
        assert!(ran.stdout.contains(name), "{ran:?}");
    }
    fs::write(kept.path().join("envelope.py"), "import os\n")?;
    assert!(sha256sum(kept.path())?.stdout.contains("envelope.py: FAILED"));
    Ok(())
}

/// Overwrites one byte of a file in place, time and size kept.
fn flip(path: &Path) -> Result<()> {
    let (mut bytes, meta) = (fs::read(path)?, fs::metadata(path)?);
    *bytes.last_mut().context("empty")? ^= 1;
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    let file = fs::File::options().write(true).open(path)?;
    std::io::Write::write_all(&mut &file, &bytes)?;
    Ok(file.set_modified(meta.modified()?)?)
}

#[test]
fn verify_finds_one_changed_byte_anywhere_in_what_is_served() -> Result<()> {
    let here = Installation::small()?;
    here.publish()?;
    let saved = here.data("").with_file_name("saved");
    copy_exactly(&here.data(""), &saved)?;
    let asset = fs::read_dir(here.data("assets"))?.next().context("no asset")??.file_name();
    let asset = format!("assets/{}", asset.to_string_lossy());
    for name in [
        "live/site/index.html",
        "live/site/index.html.gz",
        "live/content/moth/hitch/index.html",
        "live/content/moth/hitch/checksums.txt",
        "live/checksums.txt",
        asset.as_str(),
    ] {
        let ran = here.sitegen(&["verify"])?;
        assert!(ran.code == 0 && ran.stdout.contains("is intact"), "{ran:?}");
        // As a disk would: the same inode.
        flip(&here.data(name))?;
        let ran = here.sitegen(&["verify"])?;
        let file = name.rsplit('/').next().context("no name")?;
        assert_eq!(ran.code, 4, "{name}: {ran:?}");
        assert!(ran.stdout.contains(file), "{name}: {ran:?}");
        let json = here.sitegen(&["--json", "verify"])?;
        let report: serde_json::Value = serde_json::from_str(&json.stdout)?;
        assert!(report["faults"].as_array().is_some_and(|f| !f.is_empty()), "{name}: {json:?}");
        fs::remove_dir_all(here.data(""))?;
        copy_exactly(&saved, &here.data(""))?;
    }
    // An asset that was replaced by another file, which no tree holds.
    fs::remove_file(here.data(&asset))?;
    fs::write(here.data(&asset), "replaced")?;
    let ran = here.sitegen(&["verify"])?;
    assert!(ran.code == 4 && ran.stdout.contains(&asset), "{ran:?}");
    fs::remove_file(here.data(&asset))?;
    let ran = here.sitegen(&["verify"])?;
    assert!(ran.code == 4 && ran.stdout.contains(&asset), "missing: {ran:?}");
    Ok(())
}

#[test]
fn what_verify_found_is_made_again_by_the_next_publish() -> Result<()> {
    let here = Installation::small()?;
    here.publish()?;
    let served = Served::by(&here)?;
    let asset = fs::read_dir(here.data("assets"))?.next().context("no asset")??.file_name();
    let asset = format!("assets/{}", asset.to_string_lossy());
    for name in ["live/site/index.html", "live/site/moth/checksums.txt", asset.as_str()] {
        flip(&here.data(name))?;
        let ran = here.sitegen(&["verify"])?;
        assert_eq!(ran.code, 4, "{name}: {ran:?}");
        here.publish()?;
        let ran = here.sitegen(&["verify"])?;
        assert_eq!(ran.code, 0, "{name}: {ran:?}");
        assert_eq!(Served::by(&here)?, served, "{name}");
    }
    Ok(())
}

#[test]
fn rollback_and_forward_and_a_gc_between() -> Result<()> {
    let here = Installation::small()?;
    let style = here.source().join("theme/style/site.css");
    let mut trees = Vec::new();
    for round in 0..3 {
        fs::write(&style, format!("body {{ margin: {round}px }}\n"))?;
        here.publish()?;
        trees.push(Served::by(&here)?);
    }
    let [one, two, three] = &trees[..] else { unreachable!() };
    let rollback = |arguments: &[&str]| -> Result<Served> {
        let ran = here.sitegen(&[&["rollback"], arguments].concat())?;
        ensure!(ran.code == 0, "{ran:?}");
        ensure!(here.sitegen(&["verify"])?.code == 0);
        Served::by(&here)
    };
    assert_eq!(&rollback(&[])?, two);
    let ran = here.sitegen(&["gc"])?;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(&rollback(&[&one.tree.to_string()[..12]])?, one);
    assert_eq!(here.sitegen(&["gc"])?.code, 0);
    assert_eq!(&rollback(&[&three.tree.to_string()])?, three);
    assert_eq!(&rollback(&[])?, one, "the one that was served before");
    // A rollback lasts until the next publish, which renders the source as it is.
    here.publish()?;
    assert_eq!(&Served::by(&here)?, three);
    let list = here.sitegen(&["list"])?.stdout;
    assert!(
        list.lines().last().is_some_and(|l| l.contains(&three.tree.to_string()) && l.ends_with("served")),
        "{list}"
    );
    // A damaged tree is not served.
    let page = here.data("dirs").join(one.tree.dir_name()).join("site/index.html");
    flip(&page)?;
    let ran = here.sitegen(&["rollback", &one.tree.to_string()])?;
    assert!(ran.code == 1 && ran.stderr.contains("is damaged, the served one stays"), "{ran:?}");
    assert_eq!(&Served::by(&here)?, three);
    Ok(())
}

#[test]
fn an_edit_of_the_same_size_in_the_same_second_is_another_answer_and_so_is_its_rollback() -> Result<()> {
    let mut here = Installation::small()?;
    here.publish()?;
    here.serve()?;
    let ask =
        |path: &str, extra: &[(&str, &str)]| http::with(here.site_port, "localhost", "GET", path, extra);
    let tag = |answer: &Answer| answer.header("etag").map(str::to_owned).context("no tag");
    let old = ask("/about.html", &[])?;
    here.edit("content/pages/about.md", "a cabinet of", "a drawers of")?;
    here.publish()?;
    let new = ask("/about.html", &[])?;
    assert_eq!(old.body.len(), new.body.len());
    for (known, current) in [(&old, &new), (&new, &old)] {
        if known.body == new.body {
            ensure!(here.sitegen(&["rollback"])?.code == 0);
        }
        let (known_tag, current_tag) = (tag(known)?, tag(current)?);
        assert_ne!(known_tag, current_tag);
        let answer = ask("/about.html", &[("If-None-Match", &known_tag)])?;
        assert_eq!((answer.status, &answer.body), (200, &current.body), "no stale 304");
        assert_eq!(ask("/about.html", &[("If-None-Match", &current_tag)])?.status, 304);
        let range = ("Range", "bytes=1000-");
        let answer = ask("/about.html", &[range, ("If-Range", &known_tag)])?;
        assert_eq!((answer.status, &answer.body), (200, &current.body), "no spliced range");
        let answer = ask("/about.html", &[range, ("If-Range", &current_tag)])?;
        assert_eq!((answer.status, &answer.body[..]), (206, &current.body[1000..]));
        for date in [old.header("date"), new.header("date")] {
            let date = date.context("no date")?;
            let answer = ask("/about.html", &[range, ("If-Range", date)])?;
            assert_eq!(answer.status, 200, "a date is no validator");
            assert_eq!(ask("/about.html", &[("If-Modified-Since", date)])?.status, 200);
        }
    }
    Ok(())
}

/// Every file and folder below the data folder: inode, size, modification and change time, in nanoseconds.
fn listing(here: &Installation) -> Result<BTreeMap<String, (u64, u64, (i64, i64), (i64, i64))>> {
    let mut all = BTreeMap::new();
    for entry in walkdir::WalkDir::new(here.data("")).min_depth(1) {
        let (entry, meta) = entry.map(|e| (e.path().to_owned(), e.metadata()))?;
        let meta = meta?;
        let times = ((meta.mtime(), meta.mtime_nsec()), (meta.ctime(), meta.ctime_nsec()));
        all.insert(entry.display().to_string(), (meta.ino(), meta.size(), times.0, times.1));
    }
    Ok(all)
}

#[test]
fn a_second_publish_writes_nothing_and_says_so() -> Result<()> {
    let here = Installation::new()?;
    here.publish()?;
    let before = listing(&here)?;
    assert!(before.len() > 300, "{}", before.len());
    let ran = here.sitegen(&["publish"])?;
    let short = &here.live()?.to_string()[..12];
    assert_eq!((ran.code, ran.stdout), (0, format!("nothing changed, tree {short} with 11 works stays\n")));
    let after = listing(&here)?;
    let changed: Vec<_> = after.iter().filter(|(path, state)| before.get(*path) != Some(*state)).collect();
    assert!(changed.is_empty() && before.len() == after.len(), "{changed:#?}");
    Ok(())
}

#[test]
fn pages_that_did_not_change_keep_inode_and_time() -> Result<()> {
    let here = Installation::new()?;
    here.publish()?;
    let look = || -> Result<BTreeMap<String, (u64, i64)>> {
        let mut all = BTreeMap::new();
        for entry in walkdir::WalkDir::new(here.data("live/")).follow_links(true) {
            let entry = entry?;
            if entry.file_type().is_file() {
                let meta = entry.metadata()?;
                all.insert(entry.path().display().to_string(), (meta.ino(), meta.mtime()));
            }
        }
        Ok(all)
    };
    let before = look()?;
    let mut catalog = Catalog::open(&here.data("catalog.db"))?;
    catalog.withdraw(&"moth".parse()?, &"tin-roof".parse()?)?;
    here.publish()?;
    let after = look()?;
    let (mut same, mut changed) = (0, Vec::new());
    for (path, state) in &after {
        match before.get(path) {
            Some(old) if old == state => same += 1,
            _ => changed.push(path.rsplit("/live/").next().unwrap_or(path)),
        }
    }
    for path in &changed {
        let may = [
            "checksums.txt",
            "gone/moth/tin-roof",
            "site/index.html",
            "site/works/",
            "site/moth/",
            "site/rss.xml",
            "site/sitemap.xml",
            "site/data/works.js",
        ];
        assert!(may.iter().any(|m| path.contains(m)), "{path} changed");
        assert!(!path.starts_with("content/moth/hitch/"), "{path} changed");
    }
    assert!(same > 80 && changed.len() > 5, "{same} the same, {changed:?}");
    Ok(())
}

/// Pseudo-random numbers (xorshift, Marsaglia 2003), so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % 1_000_003).unwrap_or_default() % sides
    }
}

#[test]
fn after_any_edits_an_incremental_publish_is_a_cold_one() -> Result<()> {
    let here = Installation::small()?;
    here.publish()?;
    let cold = here.second_data("cold")?;
    for seed in [1, 2, 3] {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        for step in 0..6 {
            let what = edit(&here, &mut dice, seed * 100 + step)?;
            here.publish()?;
            // Another data folder with the catalogue and the files it names, and nothing that was rendered.
            let _ = fs::remove_dir_all(&cold.data);
            fs::create_dir_all(&cold.data)?;
            fs::copy(here.data("catalog.db"), cold.data.join("catalog.db"))?;
            let (from, to) = (Data::open(&here.data(""))?, Data::open(&cold.data)?);
            let writer = to.writer()?;
            for digest in Catalog::open(&here.data("catalog.db"))?.file_digests()? {
                writer.put(&from.objects.read(&digest)?)?;
            }
            drop(writer);
            let ran = cold.sitegen(&["publish"])?;
            assert_eq!(ran.code, 0, "{ran:?}");
            assert_eq!(Some(here.live()?), to.live()?, "seed {seed}, step {step}: {what}");
        }
    }
    Ok(())
}

/// One edit that a person could make, by lot.
fn edit(here: &Installation, dice: &mut Dice, number: u64) -> Result<String> {
    let mut catalog = Catalog::open(&here.data("catalog.db"))?;
    let works = catalog.published()?;
    let data = Data::open(&here.data(""))?;
    let put = |bytes: &str| -> Result<Digest> { Ok(data.writer()?.put(bytes.as_bytes())?) };
    let with_payload = |work: &Work, text: &str| -> Result<Work> {
        let mut work = work.clone();
        for file in work.files.iter_mut().filter(|f| f.role == Role::Payload) {
            (file.digest, file.bytes) = (put(text)?, text.len() as u64);
        }
        Ok(work)
    };
    let text = format!("<!DOCTYPE html><title>{number}</title><p>{number}");
    Ok(match dice.roll(7) {
        0 => {
            here.edit("content/pages/about.md", "\n+++\n", &format!("\n+++\n\nEdit {number}.\n"))?;
            "a page".into()
        }
        1 => {
            fs::write(here.source().join("theme/style/site.css"), format!("body {{ margin: {number}px }}"))?;
            "the style".into()
        }
        2 => {
            here.edit(
                "theme/templates/card.html",
                "<li class=\"card",
                &format!("<li class=\"card c{number}"),
            )?;
            "a template that others import".into()
        }
        3 if works.len() > 1 => {
            let work = &works[dice.roll(works.len())];
            catalog.withdraw(&work.creator, &work.slug)?;
            format!("withdraw {}", work.path())
        }
        4 => {
            let work = &works[dice.roll(works.len())];
            let mut newer = with_payload(work, &text)?;
            newer.manifest.title = Some(format!("Edit {number} & <more>"));
            newer.updated = format!("2027-01-{:02}", 1 + number % 28).parse()?;
            catalog.replace(&newer)?;
            format!("replace {}", work.path())
        }
        kind => {
            let mut new = with_payload(&works[0], &text)?;
            new.slug = format!("new-{number}").parse()?;
            new.manifest.id = new.slug.clone();
            if kind == 5 {
                new.creator = format!("creator-{number}").parse()?;
            }
            new.released = format!("2026-{:02}-{:02}", 1 + dice.roll(12), 1 + dice.roll(28)).parse()?;
            catalog.publish(&[new])?;
            "a new work".into()
        }
    })
}

#[test]
fn lastmod_comes_from_the_content_and_not_from_a_clock() -> Result<()> {
    let here = Installation::small()?;
    here.publish()?;
    let tree = here.live()?;
    // Another time on every source, another day on the clock of the publish: the same tree.
    for entry in walkdir::WalkDir::new(here.source()) {
        let entry = entry?;
        if entry.file_type().is_file() {
            fs::File::options()
                .append(true)
                .open(entry.path())?
                .set_modified(std::time::SystemTime::UNIX_EPOCH)?;
        }
    }
    for name in ["pages.db", "live"] {
        fs::remove_file(here.data(name))?;
    }
    fs::remove_dir_all(here.data("dirs"))?;
    fs::remove_dir_all(here.data("trees"))?;
    let mut command = here.command(&["publish"]);
    command
        .env("TZ", "Pacific/Kiritimati")
        .env("LANG", "tr_TR.UTF-8")
        .env("SOURCE_DATE_EPOCH", "1")
        .env("HOME", "/");
    let ran = Ran::of(&command.output()?);
    assert_eq!((ran.code, here.live()?), (0, tree), "{ran:?}");
    let sitemap = fs::read_to_string(here.data("live/site/sitemap.xml"))?;
    let work = sitemap.split("<url>").find(|u| u.contains("/moth/hitch/<")).context("no work")?;
    assert!(work.contains("<lastmod>2026-11-06</lastmod>"), "{work}");
    let about = fs::read_to_string(here.source().join("content/pages/about.md"))?;
    let updated = about.split("updated = \"").nth(1).and_then(|t| t.split('"').next()).context("no day")?;
    let page = sitemap.split("<url>").find(|u| u.contains("/about.html<")).context("no page")?;
    assert!(page.contains(&format!("<lastmod>{updated}</lastmod>")), "{page}");
    Ok(())
}
