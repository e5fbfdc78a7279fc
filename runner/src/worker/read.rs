//! The reader of the parent's messages by itself, for those who try it with hostile bytes.
//!
//! Called by tests and by the fuzz target `worker`. What a message says is read and thrown away: nothing runs, nothing is
//! answered, and a broken rule is an error here, where it ends the worker.

use std::sync::{Arc, Mutex, OnceLock};

use pyo3::prelude::*;

use super::channel::Channel;
use super::codec::{DecodeError, Decoder};
use super::engine::Engine;
use super::fields::Violation;
use super::objects::Objects;
use super::start::Settings;
use super::turn::released;
use super::{Worker, lock, message};

/// Reads one message, kind and fields. The error is the rule that it breaks. CPython has been started, and handle 1 is held.
pub fn message(bytes: &[u8]) -> Result<(), String> {
    static WORKER: OnceLock<Arc<Worker>> = OnceLock::new();
    let worker = WORKER.get_or_init(|| {
        Arc::new(Worker {
            settings: OnceLock::new(),
            engine: OnceLock::new(),
            channel: Mutex::new(Channel::new(message::MESSAGE_MIN)),
            objects: Mutex::default(),
            modules: Mutex::default(),
            mounts: Mutex::default(),
            raised: Mutex::default(),
            turns: Mutex::default(),
        })
    });
    Python::attach(|py| {
        // Nothing is left of the message before. What it made is dropped once the lock is open.
        let before = std::mem::take::<Objects>(&mut *lock(&worker.objects));
        drop(before);
        if worker.engine.get().is_none() {
            let engine = Engine::prepare(py, worker).map_err(|e| e.to_string())?;
            drop(worker.engine.set(engine));
        }
        worker.keep(&py.None().into_bound(py));
        match fields(py, worker, bytes) {
            // CPython could not make a value that the protocol allows, such as a dict with equal keys.
            Ok(()) | Err(DecodeError::Raised(_)) => Ok(()),
            Err(DecodeError::Violation(Violation(why))) => Err(why),
        }
    })
}

fn fields(py: Python<'_>, worker: &Arc<Worker>, bytes: &[u8]) -> Result<(), DecodeError> {
    let mut decoder = Decoder::new(py, worker, bytes);
    let kind = decoder.fields.byte()?;
    released(&mut decoder.fields)?;
    match kind {
        message::INIT => Settings::parse(&mut decoder.fields).map(drop)?,
        message::RETURN => {
            decoder.value()?;
            decoder.fields.end()?;
        }
        message::RAISE => worker.raised(&mut decoder).map(drop)?,
        other => worker.parse(other, &mut decoder, true).map(drop)?,
    }
    Ok(())
}
