//! Digests the sources that decide what a page looks like, so that pages rendered by another build are not reused.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::Path;

fn main() {
    let mut hasher = DefaultHasher::new();
    for folder in ["src", "../catalog/src", "../policy/src", "../policy/data"] {
        println!("cargo::rerun-if-changed={folder}");
        add(Path::new(folder), &mut hasher);
    }
    println!("cargo::rerun-if-changed=../Cargo.lock");
    add(Path::new("../Cargo.lock"), &mut hasher);
    println!("cargo::rustc-env=SITEGEN_BUILD={:016x}", hasher.finish());
}

fn add(path: &Path, hasher: &mut DefaultHasher) {
    if path.is_dir() {
        let mut entries: Vec<_> =
            std::fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path()).collect();
        entries.sort();
        entries.iter().for_each(|entry| add(entry, hasher));
    } else {
        path.hash(hasher);
        std::fs::read(path).unwrap_or_default().hash(hasher);
    }
}
