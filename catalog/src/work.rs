//! A work as the catalogue holds it.

use crate::{Day, Digest, Manifest, Slug};

/// One version of a work.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// Who made it.
    pub creator: Slug,
    /// Its name in the path.
    pub slug: Slug,
    /// What its sidecar says.
    pub manifest: Manifest,
    /// The day of its first version.
    pub released: Day,
    /// The day of this version.
    pub updated: Day,
    /// Its files, sorted by name.
    pub files: Vec<WorkFile>,
}

impl Work {
    /// Its path on both origins: `/creator/work/`.
    pub fn path(&self) -> String {
        format!("/{}/{}/", self.creator, self.slug)
    }

    /// The file in that role. Every work has a payload and a sidecar.
    pub fn file(&self, role: Role) -> Option<&WorkFile> {
        self.files.iter().find(|f| f.role == role)
    }
}

/// One file of a work.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkFile {
    /// Its name in the directory of the work and in `checksums.txt`.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// Its object.
    pub digest: Digest,
    /// Its size.
    pub bytes: u64,
}

/// Declares an enum whose variants are stored and shown as words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$vdoc])* $variant),* }

        impl $name {
            /// The word that is stored.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
        impl std::str::FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(format!("{text:?} is none of {:?}", [$($word),*])),
                }
            }
        }
    };
}
pub(crate) use words;

words! {
    /// Where a version of a work stands.
    Status {
        /// Waiting for a moderator.
        PendingReview = "pending_review",
        /// Served.
        Published = "published",
        /// An older version of a published work.
        Replaced = "replaced",
        /// Taken down: its address answers 410.
        Withdrawn = "withdrawn",
        /// Refused.
        Rejected = "rejected",
    }
}

words! {
    /// What a file of a work is for.
    Role {
        /// The HTML file.
        Payload = "payload",
        /// The Python function.
        Python = "python",
        /// The manifest.
        Sidecar = "sidecar",
        /// A picture.
        Cover = "cover",
    }
}
