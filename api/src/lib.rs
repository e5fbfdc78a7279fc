//! The server behind `/api/`: it keeps saves that it cannot read, and hands calls of Python functions to the runner.
//!
//! ```text
//! main -> server -> route -> saves::http -> saves::words, saves::store -> db
//!                         -> python::http -> works, python::runner
//!                         -> openapi, health
//!                         -> members, submissions, review -> desk -> catalog
//!         problem: every refusal by name, and the only place that knows statuses of refusals
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`server`] | connections of one socket: accepted, bounded, finished |
//! | [`route`] | the table of addresses and methods |
//! | [`problem`], [`answer`], [`body`] | what is answered, and how a body is read |
//! | [`saves`] | the save endpoints, the words, the store with its one writer |
//! | [`python`], [`works`] | calls of the functions of published works |
//! | [`json`], [`openapi`] | whether bytes are JSON; the API's own description |
//! | [`members`] | keys, pseudonyms, roles |
//! | [`submissions`] | uploads, and how far they have come |
//! | [`review`] | the queue, previews, decisions, the audit |
//! | [`desk`] | the door to the catalogue, and whose a token is |
//! | [`work`], [`gate`] | the worker that does the jobs, and its process for hostile bytes |
//! | [`operator`] | members, waiting submissions and the audit on the command line |
//! | [`metrics`] | counters, read through a socket of their own |
//! | [`doctor`] | what an installation needs, and what is missing of it |
//! | [`confine`] | what is left to the process once everything is open |
//! | [`backup`] | the databases and objects as a folder, and back |
//! | [`db`] | how a database is opened |
//!
//! Invariants: it listens on Unix sockets only and is told no peer's address; a save that was acknowledged is on
//! disk; nothing user-made is executed here; no key, code, word or body is logged.

pub mod answer;
pub mod app;
pub mod backup;
pub mod body;
pub mod confine;
pub mod db;
pub mod desk;
pub mod doctor;
pub mod gate;
pub mod json;
pub mod members;
pub mod metrics;
pub mod openapi;
pub mod operator;
pub mod problem;
pub mod python;
pub mod review;
pub mod route;
pub mod saves;
pub mod server;
pub mod submissions;
pub mod work;
pub mod works;

pub use app::App;
