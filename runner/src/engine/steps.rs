//! `step_limit`: instructions of the interpreter and lines begun, counted by CPython's trace hook.
//!
//! Instructions, because in CPython 3.11 a loop that is one jump onto itself (`while True: pass`) begins no line; lines,
//! because later versions tell of instructions only to who asks in time.
//!
//! Set only when a limit is asked for, since tracing slows everything down. It stops code that runs too long by mistake;
//! code that means harm has ways around it (one call of a built-in function can take for ever) and is stopped by the
//! parent's clock.

#![expect(unsafe_code, reason = "the trace hook is a C function")]

use std::ffi::{CStr, c_int};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The attribute by which a frame asks for an event at each instruction.
static EACH: OnceLock<Py<PyString>> = OnceLock::new();
static LIMIT: AtomicU64 = AtomicU64::new(0);
static LEFT: AtomicU64 = AtomicU64::new(0);

/// What the engine is told.
const EXCEEDED: &CStr = c"step limit exceeded";

/// Counts from now on; 0 is no limit.
pub(crate) fn limit(py: Python<'_>, steps: u64) {
    LIMIT.store(steps, Relaxed);
    if steps > 0 {
        let _ = EACH.set(PyString::intern(py, "f_trace_opcodes").unbind());
        // SAFETY: this thread holds the interpreter; a null argument is allowed.
        unsafe { ffi::PyEval_SetTrace(Some(step), std::ptr::null_mut()) };
    }
}

/// A top-level request begins.
pub(crate) fn start_over() {
    LEFT.store(LIMIT.load(Relaxed), Relaxed);
}

extern "C" fn step(
    _: *mut ffi::PyObject,
    frame: *mut ffi::PyFrameObject,
    what: c_int,
    _: *mut ffi::PyObject,
) -> c_int {
    if what == ffi::PyTrace_CALL
        && let Some(each) = EACH.get()
    {
        // SAFETY: the hook is called with the interpreter held; `True` lives as long as it.
        let yes = unsafe { ffi::Py_True() };
        // SAFETY: as above; the frame is the one that begins.
        return unsafe { ffi::PyObject_SetAttr(frame.cast(), each.as_ptr(), yes) };
    }
    if what != ffi::PyTrace_OPCODE && what != ffi::PyTrace_LINE {
        return 0;
    }
    let left = LEFT.load(Relaxed);
    if left == 0 {
        // SAFETY: the hook is called with the interpreter held; the text is NUL-terminated.
        let kind = unsafe { ffi::PyExc_RuntimeError };
        // SAFETY: as above; the class lives as long as the interpreter.
        unsafe { ffi::PyErr_SetString(kind, EXCEEDED.as_ptr()) };
        return -1;
    }
    LEFT.store(left - 1, Relaxed);
    0
}
