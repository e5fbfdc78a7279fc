//! The site as data: the works and everything that more than one page needs to know about them.

use std::collections::{BTreeMap, HashMap};

use catalog::{Day, Digest, Rating, Role, Slug, Work};
use minijinja::value::Value;
use policy::{Capability, grants, limits};
use rayon::prelude::*;
use serde::Serialize;

use crate::mark::Mark;

/// All published works, with what is derived from them.
pub(crate) struct Site {
    /// In the order of the catalogue: newest first, then by path.
    pub(crate) entries: Vec<Entry>,
    /// The entries of each creator, sorted by slug.
    pub(crate) creators: BTreeMap<Slug, Vec<usize>>,
    /// Paths that answer 410.
    pub(crate) gone: Vec<(Slug, Slug)>,
}

/// One work, ready to be shown.
pub(crate) struct Entry {
    /// The row.
    pub(crate) work: Work,
    /// A digest of everything in the row.
    pub(crate) key: Digest,
    /// What a card shows.
    pub(crate) card: Card,
    /// The entries that its page points to.
    pub(crate) related: Vec<usize>,
}

/// A work as the catalogue, a creator page or a neighbour shows it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Card {
    /// `/creator/work/`, safe in an attribute.
    pub(crate) path: Value,
    /// The creator's slug.
    pub(crate) creator: Value,
    /// As written by the creator: escaped where it is printed.
    pub(crate) title: String,
    /// One sentence.
    pub(crate) summary: String,
    /// Size of the payload.
    pub(crate) bytes: u64,
    /// SHA-256 of the payload.
    pub sha256: String,
    /// The figure.
    pub(crate) mark: Mark,
    /// Path of the cover and its description.
    pub(crate) cover: Option<CoverImage>,
    /// Capability keys.
    pub(crate) capabilities: Vec<Capability>,
    /// Tags.
    pub(crate) tags: Vec<Slug>,
    /// Whether it keeps to the small cap.
    pub(crate) tinyjam: bool,
    /// Day of the first version.
    pub(crate) released: Day,
    /// Day of this version.
    pub(crate) updated: Day,
    /// What members think of it.
    pub(crate) rating: Option<Rating>,
}

/// A cover on the first-party origin.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CoverImage {
    /// Path of the picture.
    pub(crate) src: Value,
    /// What it shows.
    pub(crate) alt: String,
}

impl Site {
    /// Derives the site from its rows.
    pub(crate) fn new(works: Vec<Work>, gone: Vec<(Slug, Slug)>) -> Self {
        let mut entries: Vec<Entry> = works.into_par_iter().map(Entry::new).collect();
        entries.sort_by(|a, b| {
            b.work
                .released
                .cmp(&a.work.released)
                .then_with(|| a.work.creator.cmp(&b.work.creator))
                .then_with(|| a.work.slug.cmp(&b.work.slug))
        });
        let mut creators: BTreeMap<Slug, Vec<usize>> = BTreeMap::new();
        for (i, entry) in entries.iter().enumerate() {
            creators.entry(entry.work.creator.clone()).or_default().push(i);
        }
        for own in creators.values_mut() {
            own.sort_by(|a, b| entries[*a].work.slug.cmp(&entries[*b].work.slug));
            for (place, i) in own.iter().enumerate() {
                // The next ones in a ring: adding a work changes the pages of its nearest neighbours only.
                let next = (1..own.len()).take(limits().site.related_works_max);
                entries[*i].related = next.map(|step| own[(place + step) % own.len()]).collect();
            }
        }
        Self { entries, creators, gone }
    }

    /// Says what members think of the works.
    pub(crate) fn rate(&mut self, ratings: &HashMap<(Slug, Slug), Rating>) {
        for entry in &mut self.entries {
            if let Some(rating) = ratings.get(&(entry.work.creator.clone(), entry.work.slug.clone())) {
                entry.rate(*rating);
            }
        }
    }

    /// The day on which anything in `entries` last changed.
    pub(crate) fn updated<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Option<Day> {
        entries.into_iter().map(|e| e.work.updated).max()
    }
}

impl Entry {
    pub(crate) fn new(work: Work) -> Self {
        let manifest = &work.manifest;
        let payload = work.file(Role::Payload);
        let digest = payload.map_or_else(|| Digest::of(b""), |f| f.digest);
        let path = work.path();
        let cover = work.file(Role::Cover).map(|file| CoverImage {
            src: Value::from_safe_string(format!("{path}{}", file.name)),
            alt: manifest.cover.as_ref().map(|c| c.alt.clone()).unwrap_or_default(),
        });
        let card = Card {
            creator: Value::from_safe_string(work.creator.to_string()),
            path: Value::from_safe_string(path),
            title: manifest.title(),
            summary: manifest.summary.clone(),
            bytes: payload.map_or(0, |f| f.bytes),
            sha256: digest.to_string(),
            mark: Mark::of(&digest),
            cover,
            capabilities: manifest.capabilities.declared().filter_map(Capability::from_key).collect(),
            tags: manifest.tags.clone(),
            tinyjam: manifest.tinyjam,
            released: work.released,
            updated: work.updated,
            rating: None,
        };
        let key = Digest::of(format!("{work:?}").as_bytes());
        Self { work, key, card, related: Vec::new() }
    }

    /// Says what members think of it.
    pub(crate) fn rate(&mut self, rating: Rating) {
        self.card.rating = Some(rating);
        self.key = Digest::of(format!("{} {rating:?}", self.key).as_bytes());
    }

    /// What this work may be given, in words.
    pub(crate) fn granted_words(&self) -> Vec<(&'static str, &'static str)> {
        let declared = Capability::ALL.into_iter().filter(|c| self.card.capabilities.contains(c));
        declared.map(|c| (c.key(), grants().grant(c).words.as_str())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catalog::Manifest;

    pub(crate) fn work(path: &str, released: &str) -> Work {
        let (creator, slug) = path.split_once('/').unwrap();
        Work {
            creator: creator.parse().unwrap(),
            slug: slug.parse().unwrap(),
            manifest: Manifest::parse(
                format!(r#"{{"id": "{slug}", "capabilities": {{"audio": true}}}}"#).as_bytes(),
            )
            .unwrap(),
            released: released.parse().unwrap(),
            updated: released.parse().unwrap(),
            files: vec![],
        }
    }

    #[test]
    fn newest_first_and_neighbours_in_a_ring() {
        let days =
            [("a/x", "2026-01-01"), ("a/y", "2026-01-03"), ("b/z", "2026-01-02"), ("a/w", "2026-01-01")];
        let site = Site::new(days.iter().map(|(p, d)| work(p, d)).collect(), vec![]);
        let paths: Vec<_> = site.entries.iter().map(|e| e.work.path()).collect();
        assert_eq!(paths, ["/a/y/", "/b/z/", "/a/w/", "/a/x/"]);
        let related =
            |i: usize| -> Vec<String> { site.entries[i].related.iter().map(|r| paths[*r].clone()).collect() };
        assert_eq!(related(0), ["/a/w/", "/a/x/"]);
        assert_eq!(related(1), Vec::<String>::new());
        assert_eq!(related(3), ["/a/y/", "/a/w/"]);
    }

    #[test]
    fn every_capability_of_a_sidecar_has_a_grant() {
        let all = r#"{"id": "a", "capabilities": {"audio": true, "fullscreen": true, "pointer_lock": true,
                      "save_api": true, "python_backend": "a.py"}}"#;
        let manifest = Manifest::parse(all.as_bytes()).unwrap();
        let mapped = manifest.capabilities.declared().filter_map(Capability::from_key).count();
        assert_eq!(mapped, Capability::ALL.len());
    }
}
