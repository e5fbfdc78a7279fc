//! `python.toml` as types: what a Python function may name, and how bandit is asked.

use std::sync::LazyLock;

use serde::Deserialize;

/// What holds for Python functions.
pub fn python() -> &'static Python {
    static PYTHON: LazyLock<Python> =
        LazyLock::new(|| crate::embedded("python.toml", include_str!("../data/python.toml")));
    &PYTHON
}

/// The whole of `python.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Python {
    /// The form of the function.
    pub function: Function,
    /// Modules by name.
    pub modules: Modules,
    /// Names of functions and attributes.
    pub names: Names,
    /// The linter.
    pub bandit: Bandit,
}

/// The form of the function.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Function {
    /// The name of the only entry point.
    pub entry: String,
    /// The name of its only parameter.
    pub parameter: String,
    /// The version of the language.
    pub version: String,
}

/// Modules by name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Modules {
    /// Those that import.
    pub safe: Vec<String>,
    /// Those that are rejected on sight.
    pub forbidden: Vec<String>,
}

/// Names of functions and attributes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Names {
    /// Functions that are rejected on sight.
    pub forbidden: Vec<String>,
    /// Attributes with two underscores that may be used.
    pub dunder: Vec<String>,
}

/// The linter.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bandit {
    /// The release whose answer counts.
    pub version: String,
    /// Tests that are off.
    pub skip: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_lists_are_complete_and_apart() {
        let modules = &python().modules;
        for module in ["math", "random", "json", "itertools", "functools", "collections", "re", "datetime", "string"] {
            assert!(modules.safe.iter().any(|m| m == module), "{module}");
        }
        for module in [
            "os", "sys", "subprocess", "shutil", "ctypes", "platform", "builtins", "socket", "urllib", "requests",
            "http", "ftplib", "asyncio", "importlib", "inspect", "pickle", "marshal",
        ] {
            assert!(modules.forbidden.iter().any(|m| m == module), "{module}");
            assert!(!modules.safe.iter().any(|m| m == module), "{module}");
        }
        for name in ["eval", "exec", "compile", "__import__"] {
            assert!(python().names.forbidden.iter().any(|n| n == name), "{name}");
        }
    }
}
