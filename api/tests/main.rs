//! The server on sockets of its own: in this process, where a test can stop the clock, and as the program `api`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper of a test fails where it stands")]

#[path = "it/backup.rs"]
mod backup;
#[path = "it/client.rs"]
mod client;
#[path = "it/confinement.rs"]
mod confinement;
#[path = "it/contract.rs"]
mod contract;
#[path = "it/described.rs"]
mod described;
#[path = "it/full_disk.rs"]
mod full_disk;
#[path = "it/hostile.rs"]
mod hostile;
#[path = "it/members.rs"]
mod members;
#[path = "it/program.rs"]
mod program;
#[path = "it/python.rs"]
mod python;
#[path = "it/server.rs"]
mod server;
#[path = "it/vectors.rs"]
mod vectors;
#[path = "it/words.rs"]
mod words;
