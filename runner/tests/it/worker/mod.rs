//! `spy-worker` through its pipes: the protocol, the engine, the layers.

pub(crate) mod client;
mod confined;
mod engine;
mod hostile;
mod vectors;
