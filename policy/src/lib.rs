//! The one place of limits, header sets and capability grants.
//!
//! Everything a page prints, nginx sends, a frame allows or a gate enforces is read from `policy/data/*.toml`
//! through the typed views of this crate. The data is compiled in, so a program and its policy cannot drift apart.
//!
//! | file | what it is |
//! |---|---|
//! | [`mod@limits`] | sizes, counts and times, each with its unit in its name |
//! | [`headers`] | the response headers of the two origins, rendered for a deployment |
//! | [`mod@grants`] | the frame's tokens and what each declared capability hands over |
//! | [`channels`] | the ways out of a frame that were tried, and what arrived |
//! | [`mod@lint`] | the rest of what intake reads in a Python function, and the linter it is given to |
//! | [`mod@python`] | what a Python function may import and what it may not |
//! | [`script`] | what the page around a work enforces, as a script module |
//! | [`config`] | `tinyfiles.toml`: the origins, ports and folders of one installation |
//!
//! It knows nothing of the catalogue, and it opens no file but the configuration.

pub mod channels;
pub mod config;
pub mod grants;
pub mod headers;
pub mod limits;
pub mod lint;
pub mod python;
pub mod script;

pub use config::Config;
pub use grants::{Capability, grants};
pub use limits::limits;
pub use lint::lint;
pub use python::python;
pub use script::host_script;

/// Every data file with its text, in a fixed order: what a policy digest is made of.
pub fn sources() -> [(&'static str, &'static str); 6] {
    [
        ("channels.toml", include_str!("../data/channels.toml")),
        ("grants.toml", include_str!("../data/grants.toml")),
        ("headers.toml", include_str!("../data/headers.toml")),
        ("limits.toml", include_str!("../data/limits.toml")),
        ("lint.toml", include_str!("../data/lint.toml")),
        ("python.toml", include_str!("../data/python.toml")),
    ]
}

/// Reads one of the compiled-in data files.
///
/// Panics if the file does not have the shape of `T`: the data is part of the program, and a test reads every file.
fn embedded<T: serde::de::DeserializeOwned>(file: &str, text: &str) -> T {
    toml::from_str(text).unwrap_or_else(|e| unreachable!("policy/data/{file}: {e}"))
}
