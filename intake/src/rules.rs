//! THE table of rules: what every gate looks for, why, how to mend it, and one example each way.
//!
//! The gates refer to its rows by name, `intake rules` and the site's rules page print it, and a test runs the two
//! examples of each row. A rule's id is a promise: explanations in sidecars name it.

use crate::finding::{Example, Kind, Rule};

/// Writes rows of the table: each is a `pub static`, and `ALL` lists them.
macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $id:literal $category:ident $severity:ident {
        title: $title:expr,
        why: $why:expr,
        fix: $fix:expr,
        fails: $fk:ident $fails:expr,
        passes: $pk:ident $passes:expr $(,)?
    })*) => {
        $(
            #[doc = $title]
            pub static $name: crate::finding::Rule = crate::finding::Rule {
                id: $id,
                category: crate::finding::Category::$category,
                severity: crate::finding::Severity::$severity,
                title: $title,
                why: $why,
                fix: $fix,
                fails: crate::finding::Example { kind: crate::finding::Kind::$fk, text: $fails },
                passes: crate::finding::Example { kind: crate::finding::Kind::$pk, text: $passes },
            };
        )*
        pub(super) static ALL: &[&crate::finding::Rule] = &[$(&$name),*];
    };
}

pub mod archive;
pub mod code;
pub mod document;
pub mod markdown;
pub mod network;
pub mod page;
pub mod play;
pub mod python;
pub mod sidecar;

/// Every rule, grouped by category.
pub fn all() -> Vec<&'static Rule> {
    let groups = [
        network::ALL,
        code::ALL,
        page::ALL,
        document::ALL,
        archive::ALL,
        sidecar::ALL,
        python::ALL,
        play::ALL,
    ];
    let mut rules: Vec<_> = groups.into_iter().flatten().copied().collect();
    rules.sort_by_key(|r| r.category);
    rules
}

/// The rule of that id.
pub fn find(id: &str) -> Option<&'static Rule> {
    all().into_iter().find(|r| r.id == id)
}

/// Whether the example is text that a gate can be given as it stands.
pub fn is_runnable(example: &Example) -> bool {
    example.kind != Kind::Words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;

    #[test]
    fn ids_are_unique_and_readable() {
        let mut ids: Vec<_> = all().iter().map(|r| r.id).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
        for id in ids {
            assert!(id.bytes().all(|b| b.is_ascii_lowercase() || b == b'-' || b.is_ascii_digit()), "{id}");
            assert_eq!(find(id).unwrap().id, id);
        }
    }

    #[test]
    fn what_cannot_be_explained_away_is_never_explainable() {
        for rule in all().into_iter().filter(|r| r.category.is_final()) {
            assert_ne!(rule.severity, Severity::Explainable, "{}", rule.id);
        }
    }

    #[test]
    fn every_row_says_why_and_how_in_a_sentence() {
        for rule in all() {
            for words in [rule.why, rule.fix] {
                assert!(words.len() > 20 && words.ends_with('.'), "{}: {words}", rule.id);
            }
            assert!(!rule.title.ends_with('.') && !rule.title.is_empty(), "{}", rule.id);
        }
    }
}
