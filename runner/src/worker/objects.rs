//! Handles of objects that the parent holds, and the functions of the parent that the engine holds (PROTOCOL.md §5).
//!
//! Filled by `codec`, emptied by `turn`. What is taken out is handed to the caller to be dropped, since dropping may run
//! engine code.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyString, PyTuple};

use super::codec::utf8;
use super::fields::Violation;
use super::{Worker, lock};

/// The two tables.
#[derive(Debug, Default)]
pub(super) struct Objects {
    held: HashMap<u64, Py<PyAny>>,
    last: u64,
    functions: HashMap<u64, Py<PyAny>>,
}

impl Worker {
    /// Gives a new handle to `object`.
    pub(super) fn keep(&self, object: &Bound<'_, PyAny>) -> u64 {
        let mut objects = lock(&self.objects);
        objects.last += 1;
        let handle = objects.last;
        objects.held.insert(handle, object.clone().unbind());
        handle
    }

    /// The object behind a handle.
    pub(super) fn object<'py>(&self, py: Python<'py>, handle: u64) -> Result<Bound<'py, PyAny>, Violation> {
        let objects = lock(&self.objects);
        let object =
            objects.held.get(&handle).ok_or_else(|| Violation(format!("handle {handle} is not held")))?;
        Ok(object.bind(py).clone())
    }

    /// Forgets handles; those that are not held are skipped. The objects are the caller's to drop.
    pub(super) fn release(&self, handles: &[u64]) -> Vec<Py<PyAny>> {
        if handles.is_empty() {
            return Vec::new();
        }
        let mut objects = lock(&self.objects);
        handles.iter().filter_map(|handle| objects.held.remove(handle)).collect()
    }

    /// The engine's function for a function of the parent: one for each id.
    pub(super) fn host_function<'py>(
        self: &Arc<Self>,
        id: u64,
        name: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = name.py();
        if let Some(function) = lock(&self.objects).functions.get(&id) {
            return Ok(function.bind(py).clone());
        }
        // CPython keeps the name for as long as the function lives, which is to the end of the process.
        let name: &'static CString =
            Box::leak(Box::new(CString::new(utf8(name)?.as_ref()).unwrap_or_default()));
        let worker = Arc::clone(self);
        let function = PyCFunction::new_closure(
            py,
            Some(name),
            None,
            move |arguments: &Bound<'_, PyTuple>, named: Option<&Bound<'_, PyDict>>| {
                worker.call_host(id, arguments, named).map(Bound::unbind)
            },
        )?
        .into_any();
        lock(&self.objects).functions.insert(id, function.clone().unbind());
        Ok(function)
    }
}
