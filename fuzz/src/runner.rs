//! What must hold of the readers of frames and messages: no panic, and what is accepted is written as it was read.
//!
//! Called by the fuzz targets and by `runner/tests/it/seeds.rs`.

use std::sync::Once;

use ::runner::engine::interpreter::{self, Library};
use ::runner::wire::{Hello, Reply, Request, split};
use ::runner::worker::read;

/// What a child sends, and what it is sent.
pub fn frames(bytes: &[u8]) {
    if let Ok(reply) = Reply::parse(bytes) {
        assert_eq!(reply.to_frame(), bytes, "{reply:?}");
    }
    let Some((kind, payload, rest)) = split(bytes) else { return };
    let frame = bytes.strip_suffix(rest).unwrap_or_default();
    if let Ok(request) = Request::parse(kind, payload) {
        assert_eq!(request.to_frame(), frame, "{request:?}");
    }
    if let Ok(hello) = Hello::parse(kind, payload) {
        let again = hello.to_frame();
        let (kind, payload, _) = split(&again).unwrap_or_default();
        assert_eq!(Hello::parse(kind, payload), Ok(hello));
    }
}

/// A message of the parent to a worker.
pub fn worker(bytes: &[u8]) {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| assert_eq!(interpreter::start(Library::Embedded), Ok(())));
    let first = read::message(bytes);
    assert_eq!(first, read::message(bytes), "the same bytes, the same judgement");
}
