//! `sitegen list`, `verify`, `rollback` and `gc`: the trees that were published.

use std::collections::HashSet;
use std::fs::File;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail};
use catalog::directory::{Entry, Fault};
use catalog::live::{Tree, WriteError};
use catalog::{Catalog, Data, Digest};
use policy::{Config, limits};
use serde_json::json;

use crate::diagnostic::Failure;
use crate::progress::Progress;
use crate::publish::KEPT_ASSETS;
use crate::{Done, count, lines, short};

/// Lists the kept trees, newest last.
pub(crate) fn list(config: &Config, json: bool) -> Result<Done, Failure> {
    let data = Data::open(&config.data)?;
    let (live, trees) = (data.live()?, data.trees()?);
    if json {
        let rows = trees
            .iter()
            .map(|t| json!({ "number": t.number, "tree": t.digest, "served": Some(t.digest) == live }));
        return Ok(Done::Well(serde_json::Value::from_iter(rows).to_string()));
    }
    let newest = trees.iter().rposition(|t| Some(t.digest) == live);
    let rows: Vec<String> = trees
        .iter()
        .enumerate()
        .map(|(i, t)| {
            format!("{:>6}  {}{}", t.number, t.digest, if Some(i) == newest { "  served" } else { "" })
        })
        .collect();
    Ok(Done::Well(if rows.is_empty() { "nothing was published yet".to_owned() } else { lines(&rows) }))
}

/// Re-hashes a tree.
pub(crate) fn verify(
    config: &Config,
    tree: Option<&str>,
    json: bool,
    progress: &Progress,
) -> Result<Done, Failure> {
    let data = Data::open(&config.data)?;
    let digest = match tree {
        Some(name) => chosen(&data, name)?,
        None => data.live()?.context("nothing was published yet; run `sitegen publish`")?,
    };
    let (mut faults, directories) = progress.count("directories", 0, |tick| data.verify(digest, |_| tick()));
    if Some(digest) == data.live()? {
        faults.extend(asset_faults(&data, &digest));
    }
    if !faults.is_empty() {
        match data.writer() {
            Ok(writer) => writer.distrust()?,
            // Whoever writes now may finish; what was found stays to be found.
            Err(WriteError::Locked(_)) => {}
            Err(e) => return Err(e.into()),
        }
    }
    let text = if json {
        let faults: Vec<_> = faults.iter().map(|f| json!({ "path": f.path, "message": f.message })).collect();
        json!({ "tree": digest, "directories": directories, "faults": faults }).to_string()
    } else if faults.is_empty() {
        format!(
            "tree {} is intact: {}",
            short(&digest),
            count(directories, "directory").replace("directorys", "directories")
        )
    } else {
        let hint = "the next `sitegen publish` makes pages again and leaves out works whose bytes are lost; \
                    restore those from a backup";
        format!("{}\ntree {} has {}; {hint}", lines(&faults), short(&digest), count(faults.len(), "fault"))
    };
    Ok(if faults.is_empty() { Done::Well(text) } else { Done::Damaged(text) })
}

/// The assets are served from a folder beside the trees: what is not there as the tree has it.
fn asset_faults(data: &Data, tree: &Digest) -> Vec<Fault> {
    let sub = |digest: Digest, name| data.directories.read(&digest).ok()?.sub(name);
    let assets = sub(*tree, "site").and_then(|site| sub(site, "assets"));
    let listed = assets.and_then(|digest| data.directories.read(&digest).ok()).unwrap_or_default();
    let mut faults = Vec::new();
    for (name, entry) in listed.entries() {
        let path = data.path(KEPT_ASSETS).join(name);
        let found = File::open(&path).and_then(Digest::of_reader);
        let message = match (entry, found) {
            (Entry::File(expected), Ok((found, _))) if found == expected => continue,
            (Entry::File(expected), Ok((found, _))) => {
                format!("its bytes have digest {found}, its tree says {expected}")
            }
            (_, Err(e)) => e.to_string(),
            (Entry::Dir(_), Ok(_)) => "is a file, its tree says a directory".to_owned(),
        };
        faults.push(Fault { path, message });
    }
    faults
}

/// Serves an older tree.
pub(crate) fn rollback(config: &Config, tree: Option<&str>, json: bool) -> Result<Done, Failure> {
    let data = Data::open(&config.data)?;
    let writer = data.writer()?;
    let live = data.live()?.context("nothing was published yet; run `sitegen publish`")?;
    let digest = match tree {
        Some(name) => chosen(&data, name)?,
        None => before(&data.trees()?, live).context("no older tree is kept; see `sitegen list`")?,
    };
    if digest == live {
        return Ok(Done::Well(say_tree("is served already", &digest, json)));
    }
    let (faults, _) = data.verify(digest, |_| ());
    if !faults.is_empty() {
        let error =
            anyhow::anyhow!("{}\ntree {} is damaged, the served one stays", lines(&faults), short(&digest));
        return Err(Failure::Machine(error));
    }
    writer.serve(&digest)?;
    Ok(Done::Well(say_tree("is served", &digest, json)))
}

fn say_tree(what: &str, digest: &Digest, json: bool) -> String {
    if json { json!({ "tree": digest }).to_string() } else { format!("tree {} {what}", short(digest)) }
}

/// The tree that was served before the newest run of `live`.
fn before(trees: &[Tree], live: Digest) -> Option<Digest> {
    let newest = trees.iter().rposition(|t| t.digest == live)?;
    trees[..newest].iter().rev().map(|t| t.digest).find(|d| *d != live)
}

/// The one kept tree whose digest starts with `name`.
fn chosen(data: &Data, name: &str) -> anyhow::Result<Digest> {
    let trees: HashSet<Digest> = data.trees()?.into_iter().map(|t| t.digest).collect();
    let mut found = trees.iter().filter(|d| d.to_string().starts_with(name));
    match (found.next(), found.next()) {
        (Some(digest), None) if !name.is_empty() => Ok(*digest),
        (None, _) => bail!("no kept tree starts with {name:?}; see `sitegen list`"),
        _ => bail!("more than one kept tree starts with {name:?}; write more digits"),
    }
}

/// Removes what is not needed any more.
pub(crate) fn gc(config: &Config, json: bool) -> Result<Done, Failure> {
    let data = Data::open(&config.data)?;
    let writer = data.writer()?;
    let rows = Catalog::open(&data.path("catalog.db"))?.file_digests()?;
    let trees = data.trees()?;
    let newest =
        trees.iter().rev().nth(limits().publish.trees_kept_min.saturating_sub(1)).map_or(0, |t| t.number);
    let days = u64::from(limits().publish.asset_retention_days);
    let oldest = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
    let swept = writer.sweep(|t| t.number >= newest || t.published >= oldest, &rows)?;
    let assets = if data.path(KEPT_ASSETS).exists() { sweep_assets(&data)? } else { 0 };
    let text = if json {
        json!({ "trees": swept.trees, "directories": swept.directories, "objects": swept.objects, "assets": assets })
            .to_string()
    } else {
        format!(
            "removed {}, {} directories, {}, {}",
            count(swept.trees, "tree"),
            swept.directories,
            count(swept.objects, "object"),
            count(assets, "asset")
        )
    };
    Ok(Done::Well(text))
}

/// Removes the assets that no kept tree has.
fn sweep_assets(data: &Data) -> anyhow::Result<usize> {
    let mut needed = HashSet::new();
    for tree in data.trees()?.into_iter().map(|t| t.digest).chain(data.live()?) {
        let assets = data.directories.path(&tree).join("site/assets");
        for entry in
            std::fs::read_dir(&assets).with_context(|| format!("cannot list {}", assets.display()))?
        {
            needed.insert(entry?.file_name());
        }
    }
    let kept = data.path(KEPT_ASSETS);
    let mut removed = 0;
    for entry in std::fs::read_dir(&kept).with_context(|| format!("cannot list {}", kept.display()))? {
        let entry = entry?;
        if !needed.contains(&entry.file_name()) {
            std::fs::remove_file(entry.path())
                .with_context(|| format!("cannot remove {}", entry.path().display()))?;
            removed += 1;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_before_is_the_one_before_the_newest_run() {
        let d = |text: &str| Digest::of(text.as_bytes());
        let trees: Vec<Tree> = ["a", "b", "a", "c", "c"]
            .iter()
            .zip(1..)
            .map(|(t, number)| Tree { number, digest: d(t), published: SystemTime::UNIX_EPOCH })
            .collect();
        assert_eq!(before(&trees, d("c")), Some(d("a")));
        assert_eq!(before(&trees[..3], d("a")), Some(d("b")));
        assert_eq!(before(&trees[..1], d("a")), None);
    }
}
