//! The server behind `/api/`: it keeps saves that it cannot read, and hands calls of Python functions to the runner.
//!
//! ```text
//! main -> server -> route -> saves::http -> saves::words, saves::store -> db
//!                         -> python::http -> works, python::runner
//!                         -> openapi, health
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
//! | [`metrics`] | counters, read through a socket of their own |
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
pub mod json;
pub mod metrics;
pub mod openapi;
pub mod problem;
pub mod python;
pub mod route;
pub mod saves;
pub mod server;
pub mod works;

pub use app::App;
