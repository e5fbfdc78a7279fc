//! `limits.toml` as types: the numbers that every part of the platform enforces and every page prints.
//!
//! The last words of a field name are its unit (`_bytes_max`, `_seconds`, `_chars_max`). A limit ending in `_max` is
//! the largest value that is still accepted.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// The limits in force.
pub fn limits() -> &'static Limits {
    static LIMITS: LazyLock<Limits> =
        LazyLock::new(|| crate::embedded("limits.toml", include_str!("../data/limits.toml")));
    &LIMITS
}

/// All limits, one group a table of `limits.toml`.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "each field is a row of limits.toml, which names its unit and says what it bounds"
)]
pub struct Limits {
    pub work: Work,
    pub check: Check,
    pub zip: Zip,
    pub site: Site,
    pub bridge: Bridge,
    pub publish: Publish,
    pub http: Http,
    pub save: Save,
    pub api: Api,
    pub rate: Rate,
    pub python: Python,
    pub member: Member,
    pub submission: Submission,
    pub job: Job,
    pub review: Review,
    pub security: Security,
}

/// Declares the groups: each is a struct whose fields are the rows of its table.
macro_rules! groups {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Deserialize, Serialize)]
        #[serde(deny_unknown_fields)]
        #[expect(missing_docs, reason = "each field is a row of limits.toml")]
        pub struct $name { $(pub $field: $type),* }
    )*};
}

groups! {
    /// A work as it is submitted and stored.
    Work {
        html_bytes_max: u64, tinyjam_bytes_max: u64, python_bytes_max: u64, sidecar_bytes_max: u64,
        cover_bytes_max: u64, cover_side_px_max: u32, title_chars_max: usize,
        summary_chars_max: usize, description_bytes_max: usize, tags_max: usize, tag_chars_max: usize,
        slug_chars_max: usize,
    }
    /// How far intake reads into a work.
    Check {
        findings_per_rule_max: usize, html_depth_max: u32, html_elements_max: usize, css_depth_max: usize,
        decode_depth_max: usize, decoded_bytes_max: usize, script_stack_bytes_max: usize,
        line_chars_plain_max: usize, encoded_chars_plain_max: usize,
    }
    /// A submission as an archive.
    Zip {
        archive_bytes_max: u64, entries_max: u64, entry_bytes_max: u64, total_bytes_max: u64, ratio_max: u64,
        ratio_bytes_min: u64, name_bytes_max: usize,
    }
    /// The generated pages.
    Site {
        works_per_page: usize, works_per_shard: usize, feed_items_max: usize, sitemap_urls_max: usize,
        related_works_max: usize, hidden_seconds_max: u32, load_seconds_max: u32, size_classes_bytes: Vec<u64>,
    }
    /// Messages between a work and the page around it.
    Bridge {
        message_bytes_max: u32, messages_per_second_max: u32, messages_burst_max: u32, messages_refused_max: u32,
        dialogs_in_a_row_max: u32, focus_thefts_max: u32, saves_per_minute_max: u32, loads_per_minute_max: u32,
        autosave_seconds_min: u32, python_calls_waiting_max: u32, request_seconds_max: u32,
    }
    /// What `sitegen` keeps.
    Publish { trees_kept_min: usize, asset_retention_days: u32 }
    /// nginx, for both origins.
    Http {
        static_body_bytes_max: u32, connections_per_address_max: u32, header_buffer_bytes_max: u32,
        hsts_seconds: u32, asset_cache_seconds: u32,
    }
    /// Player saves.
    Save {
        code_symbols: u32, word_letters: u32, body_bytes_max: u32, json_depth_max: u32, idle_years_max: u32,
        day_bytes_max: u64, word_tries_max: u32, word_wait_seconds_min: u32, word_wait_seconds_max: u32,
        word_hash_cost: u32, passphrase_rounds: u32,
    }
    /// The process behind `/api/`.
    Api {
        connections_max: usize, headers_seconds_max: u32, body_seconds_max: u32, headers_bytes_max: usize,
        writes_waiting_max: usize, writes_together_max: usize, words_checked_max: usize,
        words_watched_max: usize, call_seconds_max: u32, runner_answer_bytes_max: usize, answer_seconds_max: u32, stop_seconds_max: u32,
    }
    /// What nginx lets through per network address.
    Rate { saves_per_minute_max: u32, saves_burst_max: u32, calls_per_minute_max: u32, calls_burst_max: u32, members_per_minute_max: u32, members_burst_max: u32 }
    /// One call of a Python function.
    Python {
        memory_bytes_max: u64, cpus_max: f64, processes_max: u32, wall_seconds_max: u32, tmp_bytes_max: u64,
        tmp_inodes_max: u32, inputs_bytes_max: u64, output_bytes_max: u64, print_bytes_max: u64,
        json_depth_max: u32, memory_bytes_min: u64, cpus_min: f64, uid: u32, gid: u32,
    }
    /// Members and their tokens.
    Member {
        token_bytes_max: usize, token_seconds_max: u32, clock_skew_seconds_max: u32, body_bytes_max: usize,
        requests_per_minute_max: u32,
    }
    /// An upload.
    Submission {
        body_bytes_max: u64, files_max: usize, part_headers_bytes_max: usize, hourly_max: u32, uploads_max: usize,
        upload_seconds_max: u64, listed_max: u32,
    }
    /// What `api work` does.
    Job {
        lease_seconds: u32, attempts_max: u32, retry_seconds: u32, wait_seconds: u32, check_seconds_max: u64,
        check_memory_bytes_max: u64, play_seconds_max: u64, publish_seconds_max: u64, verify_hours: u32,
        screenshot_bytes_max: u64,
    }
    /// What moderators do.
    Review { preview_seconds: u32, reason_chars_max: usize, audit_listed_max: usize, saves_listed_max: usize, rating_shown_seconds_max: u32 }
    /// The promises of the security page.
    Security { acknowledge_hours: u32, fix_days: u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_limits_are_these() {
        let l = limits();
        assert_eq!(l.work.html_bytes_max, 5 * 1024 * 1024);
        assert_eq!(l.work.tinyjam_bytes_max, 64 * 1024);
        assert_eq!(l.work.python_bytes_max, 16 * 1024);
        assert_eq!(l.python.memory_bytes_max, 128 * 1024 * 1024);
        assert_eq!(l.python.tmp_bytes_max, 1024 * 1024);
        assert_eq!((l.python.processes_max, l.python.wall_seconds_max, l.python.uid), (32, 3, 65534));
        assert_eq!((l.security.acknowledge_hours, l.security.fix_days), (72, 14));
        assert_eq!((l.save.code_symbols, l.save.word_letters), (16, 4));
    }
}
