//! What follows from decisions: `catalog_regen`, `preview` and `verify` jobs.
//!
//! Publishing is `sitegen`'s; here it is started, and what came of it is written down. A regeneration that fails is tried
//! again for as long as it takes: the approval stands, and the site stays as it is meanwhile.

use anyhow::{Context as _, bail};
use catalog::job::{Kind, Leased};
use catalog::{Catalog, Data};
use policy::limits;
use serde_json::Value;

use super::{Done, Worker, now};

const HOUR_SECONDS: i64 = 3_600;

/// Publishes the catalogue as it is now.
pub(super) fn regenerate(worker: &Worker, catalog: &mut Catalog, job: &Leased) -> anyhow::Result<Done> {
    let data = Data::open(&worker.data)?;
    let before = data.live()?.map(|t| t.to_string()).unwrap_or_default();
    let report = sitegen(worker, catalog, job, &["publish", "--wait"])?;
    let after = report["tree"].as_str().context("sitegen names no tree")?;
    let left_out = match &report["left_out"] {
        Value::Array(none) if none.is_empty() => String::new(),
        left_out => left_out.to_string(),
    };
    if !left_out.is_empty() {
        tracing::error!(left_out, "published without what is damaged");
        catalog.enqueue(&format!("left-out-{}", now()), Kind::Verify, "", now())?;
    }
    catalog.regenerated(job, &before, after, &left_out, now())?;
    tracing::info!(tree = after, "published");
    Ok(Done::Ended)
}

/// Renders a pending work for the moderator who asked.
pub(super) fn preview(worker: &Worker, catalog: &mut Catalog, job: &Leased) -> anyhow::Result<Done> {
    sitegen(worker, catalog, job, &["preview", &job.subject])?;
    catalog.finish(job, "rendered")?;
    Ok(Done::Ended)
}

/// Re-hashes every stored byte that is served. A work whose bytes are not those of its row is taken down; a damaged page
/// is made again.
pub(super) fn verify(worker: &Worker, catalog: &mut Catalog, job: &Leased) -> anyhow::Result<Done> {
    let data = Data::open(&worker.data)?;
    let tree = data.live()?.map(|t| t.to_string()).unwrap_or_default();
    let (mut down, mut asked) = (0, std::time::Instant::now());
    for work in catalog.published()? {
        if asked.elapsed() >= super::ASKED_EVERY {
            worker.renew(catalog, job)?;
            asked = std::time::Instant::now();
        }
        let damage = work
            .files
            .iter()
            .find_map(|f| Some(format!("{}: {}", f.name, data.objects.read(&f.digest).err()?)));
        if let Some(what) = damage {
            tracing::error!(work = work.path(), what, "taken down: stored bytes are damaged");
            down += usize::from(catalog.take_down_damaged(&work.creator, &work.slug, &what, &tree, now())?);
        }
    }
    let faults = if tree.is_empty() { 0 } else { faults(worker, catalog, job)? };
    if faults > 0 {
        catalog.enqueue(&format!("repair-{}", now()), Kind::CatalogRegen, "damaged pages", now())?;
    }
    catalog.finish(job, &verdict(down, faults))?;
    let next = now() + i64::from(limits().job.verify_hours) * HOUR_SECONDS;
    catalog.enqueue(&format!("verify-{next}"), Kind::Verify, "", next)?;
    Ok(Done::Ended)
}

/// What a verification leaves: how many works it took down, and how many faults the tree has.
pub(crate) fn verdict(down: usize, faults: usize) -> String {
    format!("{down} works taken down, {faults} faults")
}

fn faults(worker: &Worker, catalog: &mut Catalog, job: &Leased) -> anyhow::Result<usize> {
    let report = sitegen(worker, catalog, job, &["verify"])?;
    let faults = report["faults"].as_array().map_or(0, Vec::len);
    if faults > 0 {
        tracing::error!(faults = report["faults"].to_string(), "the served tree is damaged");
    }
    Ok(faults)
}

/// Runs `sitegen`; that something stored is damaged is an answer too.
fn sitegen(worker: &Worker, catalog: &mut Catalog, job: &Leased, words: &[&str]) -> anyhow::Result<Value> {
    let ended = worker.run(catalog, job, worker.programs.sitegen(words), limits().job.publish_seconds_max)?;
    match ended.code {
        0 | 4 => serde_json::from_slice(&ended.output).context("the answer of sitegen cannot be read"),
        code => bail!("sitegen ended with exit code {code}: {}", ended.complaint),
    }
}
