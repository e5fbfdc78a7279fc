//! `python.toml` as types: the modules that a Python function may import and the names it may not use.
//!
//! Read by the runner (what to load, what to refuse by name), by intake (the same rules, statically) and by the pages
//! that print the lists.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// The module lists in force.
pub fn python() -> &'static Python {
    static PYTHON: LazyLock<Python> =
        LazyLock::new(|| crate::embedded("python.toml", include_str!("../data/python.toml")));
    &PYTHON
}

/// The whole of `python.toml`.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Python {
    /// What may be imported.
    pub safe: Safe,
    /// What may not, by rule.
    pub forbidden: BTreeMap<String, Forbidden>,
}

/// Modules that are loaded before any call.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Safe {
    /// Importable by name.
    pub modules: Vec<String>,
    /// Loaded for the others, not importable.
    pub inner: Vec<String>,
}

/// One group of refused names.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Forbidden {
    /// The stable name of the rule.
    pub rule: String,
    /// What such a name does, to complete "is not allowed, because it …".
    pub words: String,
    /// Modules, with all below them.
    #[serde(default)]
    pub modules: Vec<String>,
    /// Built-in functions.
    #[serde(default)]
    pub calls: Vec<String>,
}

impl Python {
    /// The group that refuses `module` (or a package above it), if one does.
    pub fn refuses(&self, module: &str) -> Option<&Forbidden> {
        let top = module.split('.').next().unwrap_or(module);
        self.forbidden.values().find(|f| f.modules.iter().any(|m| m == top))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_lists_are_these() {
        for module in
            ["math", "random", "json", "itertools", "functools", "collections", "re", "datetime", "string"]
        {
            assert!(python().safe.modules.iter().any(|m| m == module), "{module}");
        }
        let banned = [
            "os",
            "sys",
            "subprocess",
            "shutil",
            "ctypes",
            "platform",
            "builtins",
            "socket",
            "urllib",
            "requests",
            "http",
            "ftplib",
            "asyncio",
            "importlib",
            "inspect",
            "pickle",
            "marshal",
        ];
        for module in banned {
            assert!(python().refuses(module).is_some(), "{module}");
        }
        assert_eq!(python().refuses("urllib.request").unwrap().rule, "python-import-network");
        assert!(python().refuses("osmosis").is_none());
        assert_eq!(python().forbidden["dynamic"].calls, ["eval", "exec", "compile", "__import__"]);
    }

    #[test]
    fn no_name_is_both_safe_and_forbidden() {
        for module in python().safe.modules.iter().chain(&python().safe.inner) {
            assert!(python().refuses(module).is_none(), "{module}");
        }
    }
}
