//! Every check a submission passes, the same on the creator's machine as on the server.
//!
//! A submission is opened ([`submission`]) and goes through the gates in their order; each says what it finds as a
//! [`finding::Finding`] of a rule in THE table ([`rules`]). Nothing here stops at the first problem, runs anything that
//! was submitted, or trusts a size that a file claims.
//!
//! | module | what it is |
//! |---|---|
//! | [`submission`] | a file, a folder or a zip; the gates in order; the report |
//! | [`archive`] | the gate for zips |
//! | [`sidecar`], [`json`], [`cover`] | the gate for `work.json`, places in JSON, pictures |
//! | [`document`] | the gate for one page: bytes, encoding, then its content |
//! | [`html`], [`css`], [`js`] | what a page is made of |
//! | [`data`], [`address`] | text inside text, and where an address leads |
//! | [`python`] | the gate for Python functions, with bandit |
//! | [`pack`], [`tf`] | files put into a page; the canonical `tf.js` |
//! | [`play`] | the smoke run in a headless browser |
//! | `runner` | a request to a running `runner serve` |
//! | [`finding`], [`rules`], [`scan`], [`source`] | what is found, why, how far, and where |
//!
//! Invariants: the same bytes give the same report, on every machine; the work of a check is bounded by policy; a
//! place in a finding is a place in the file that the creator has open.

pub mod address;
pub mod archive;
pub mod cover;
pub mod css;
pub mod data;
pub mod document;
pub mod finding;
pub mod html;
pub mod js;
pub mod json;
pub mod pack;
pub mod play;
pub mod python;
pub mod rules;
mod runner;
pub mod scan;
pub mod sidecar;
pub mod source;
pub mod submission;
pub mod tf;
