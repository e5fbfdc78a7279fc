//! `channels.toml` as types: every way out of a frame that was tried, and what arrived.
//!
//! The security page prints the table; `tests/tests/end_to_end/egress.rs` opens a hostile work that tries each channel, counts
//! what reaches a server, and fails where the count is not the one written here.

use std::fmt::Write as _;
use std::sync::LazyLock;

use serde::Deserialize;

/// One way in which a document could reach a server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Channel {
    /// The name of the probe.
    pub id: String,
    /// What is tried, in words.
    pub what: String,
    /// What stops it.
    pub stopped_by: String,
    /// 1 if anything arrives from a work in the frame of its page.
    pub framed: u32,
    /// 1 if anything arrives from a work opened on its own.
    pub alone: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    channel: Vec<Channel>,
}

/// The channels, in the order of the page.
pub fn channels() -> &'static [Channel] {
    static FILE: LazyLock<File> =
        LazyLock::new(|| crate::embedded("channels.toml", include_str!("../data/channels.toml")));
    &FILE.channel
}

/// The table as Markdown.
pub fn markdown_table() -> String {
    let mut text = String::from(
        "| A work tries | Arrives, framed | Arrives, opened on its own | Stopped by |\n|---|---|---|---|\n",
    );
    let count = |n: u32| if n == 0 { "nothing" } else { "**yes**" };
    for c in channels() {
        let _ =
            writeln!(text, "| {} | {} | {} | {} |", c.what, count(c.framed), count(c.alone), c.stopped_by);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_channel_has_a_name_of_its_own_and_a_row() {
        let mut ids: Vec<&str> = channels().iter().map(|c| c.id.as_str()).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
        assert_eq!(markdown_table().lines().count(), count + 2);
        for c in channels() {
            assert!(!c.what.contains('|') && !c.stopped_by.contains('|'), "{}", c.id);
        }
    }
}
