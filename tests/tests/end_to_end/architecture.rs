//! What ARCHITECTURE.md says of the source, held to the source.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use tests::repository;

/// The only edges between crates of this workspace.
const ARROWS: &[(&str, &[&str])] = &[
    ("catalog", &[]),
    ("policy", &[]),
    ("intake", &["catalog", "policy"]),
    ("sitegen", &["catalog", "policy"]),
    ("api", &["catalog", "intake", "policy"]),
    ("runner", &["policy"]),
    ("tests", &["catalog", "policy"]),
];

#[test]
fn crates_depend_on_each_other_one_way_only() -> Result<()> {
    let ran = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(repository())
        .output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&ran.stdout).context("cargo metadata")?;
    let packages = metadata["packages"].as_array().context("packages")?;
    let own: BTreeSet<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    assert!(own.contains("sitegen"), "{own:?}");
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let (_, allowed) =
            ARROWS.iter().find(|(n, _)| *n == name).with_context(|| format!("{name} is not in the map"))?;
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        for to in dependencies.filter_map(|d| d["name"].as_str()).filter(|d| own.contains(d)) {
            assert!(allowed.contains(&to), "{name} must not depend on {to}");
        }
    }
    Ok(())
}

/// The only files that may lift the ban on `unsafe`: the system calls, and the boundary to CPython.
const FENCE: &[&str] = &[
    "runner/src/engine/interpreter.rs",
    "runner/src/engine/memory.rs",
    "runner/src/engine/mod.rs",
    "runner/src/engine/steps.rs",
    "runner/src/sys/mod.rs",
];

#[test]
fn unsafe_code_stays_within_its_fence() -> Result<()> {
    let lifts = format!("({}", "unsafe_code");
    let mut found = BTreeSet::new();
    for (folder, _) in ARROWS {
        for path in sources(folder, &["rs"])? {
            if fs::read_to_string(&path)?.contains(&lifts) {
                found.insert(path.strip_prefix(repository())?.display().to_string());
            }
        }
    }
    assert_eq!(found, FENCE.iter().map(|path| (*path).to_owned()).collect());
    Ok(())
}

/// Files below a folder of the repository with one of these extensions.
fn sources(folder: &str, extensions: &[&str]) -> Result<Vec<PathBuf>> {
    let (mut found, mut ahead) = (Vec::new(), vec![repository().join(folder)]);
    while let Some(path) = ahead.pop() {
        if path.is_dir() && !path.ends_with("node_modules") {
            ahead.extend(fs::read_dir(&path)?.flatten().map(|e| e.path()));
        } else if path.extension().is_some_and(|e| extensions.iter().any(|x| e == *x)) {
            found.push(path);
        }
    }
    Ok(found)
}

/// A source without its unit tests, where a limit may be written out to be compared with the policy.
fn without_tests(path: &Path) -> Result<String> {
    let text = fs::read_to_string(path)?;
    Ok(text.split("#[cfg(test)]").next().unwrap_or_default().to_owned())
}

#[test]
fn a_limit_is_written_in_the_policy_and_nowhere_else() -> Result<()> {
    let limits = fs::read_to_string(repository().join("policy/data/limits.toml"))?;
    let values: Vec<String> = limits
        .lines()
        .filter_map(|line| line.split_once(" = ")?.1.split('#').next().map(|v| v.trim().to_owned()))
        .filter(|v| v.chars().filter(char::is_ascii_digit).count() >= 5)
        .collect();
    assert!(values.len() > 10, "{values:?}");
    let spellings: Vec<String> =
        values.iter().flat_map(|v| [v.clone(), v.replace('_', ""), v.replace('_', ",")]).collect();
    let mut found = Vec::new();
    for folder in
        ["catalog/src", "sitegen/src", "theme", "content/pages", "nginx/nginx.conf", "intake/src", "api/src"]
    {
        if !repository().join(folder).exists() {
            continue;
        }
        for path in sources(folder, &["rs", "html", "css", "js", "md", "conf"])? {
            let text = without_tests(&path)?;
            for spelling in spellings.iter().filter(|s| text.contains(s.as_str())) {
                found.push(format!("{}: {spelling}", path.display()));
            }
        }
    }
    assert!(found.is_empty(), "limits outside policy/: {found:#?}");
    Ok(())
}

#[test]
fn every_file_says_what_it_is() -> Result<()> {
    for package in ["catalog", "policy", "sitegen", "tests", "intake", "runner", "api"] {
        if !repository().join(package).exists() {
            continue;
        }
        for path in sources(package, &["rs"])? {
            let text = fs::read_to_string(&path)?;
            assert!(text.starts_with("//! "), "{} has no first line that says what it is", path.display());
        }
    }
    Ok(())
}

#[test]
fn proofs_named_on_the_security_page_exist() -> Result<()> {
    let page = fs::read_to_string(repository().join("content/pages/security.md"))?;
    let proofs: BTreeSet<&str> =
        page.split('`').filter(|t| t.starts_with("tests/") && t.ends_with(".rs")).collect();
    assert!(proofs.len() >= 4, "{proofs:?}");
    for proof in proofs {
        assert!(repository().join(proof).is_file(), "{proof} is named as a proof and does not exist");
    }
    Ok(())
}
