//! What is published, and the bytes it is made of.
//!
//! | module | what it is |
//! |---|---|
//! | [`slug`], [`day`], [`manifest`] | the names, dates and sidecar of a work, parsed at the edge |
//! | [`work`] | a work as a row: status, files, roles |
//! | [`db`] | the catalogue database: works and their files |
//! | [`member`], [`submission`], [`review`] | who submits, what was submitted, what was decided |
//! | [`rating`] | what members think of works |
//! | [`job`] | what is still to be done, leased to one worker at a time |
//! | [`audit`] | every decision, chained |
//! | [`health`] | how it stands with all that, read without changing it |
//! | [`digest`], [`store`] | SHA-256 names, and the objects they name |
//! | [`directory`] | directories named by the digest of their own `checksums.txt` |
//! | [`live`] | trees: the one that is served, the ones kept, the swap between them |
//!
//! Invariants: a stored object or directory never changes; the name of a thing is the digest of its bytes; the tree
//! that is served is complete and on disk before it is swapped in. The crate knows nothing of pages, headers or
//! limits: what may be published is decided elsewhere, before a row is written.

pub mod audit;
pub mod day;
pub mod db;
pub mod digest;
pub mod directory;
pub mod health;
pub mod job;
pub mod live;
pub mod manifest;
pub mod member;
pub mod rating;
pub mod review;
pub mod slug;
pub mod store;
pub mod submission;
pub mod work;

pub use day::Day;
pub use db::{Catalog, CatalogError};
pub use digest::Digest;
pub use directory::Directory;
pub use live::Data;
pub use manifest::Manifest;
pub use rating::Rating;
pub use slug::Slug;
pub use store::Store;
pub use work::{Role, Status, Work, WorkFile};
