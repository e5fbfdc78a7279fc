//! `print` and `open` of the engine.
//!
//! Put into its builtins by `engine`. One `print` is one message to the parent; with `file=` it is CPython's own.

use std::sync::Arc;

use pyo3::exceptions::{PyPermissionError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyString, PyTuple};

use super::codec::utf8;
use super::{Worker, lock, memory};

/// Puts them in place of CPython's.
pub(super) fn put(py: Python<'_>, worker: &Arc<Worker>, builtins: &Bound<'_, PyDict>) -> PyResult<()> {
    let genuine = builtins.as_any().get_item("print")?.unbind();
    let shared = Arc::clone(worker);
    let print = PyCFunction::new_closure(py, Some(c"print"), None, move |values, options| {
        print(&shared, &genuine, values, options)
    })?;
    builtins.set_item("print", print)?;

    let shared = Arc::clone(worker);
    let opener = PyCFunction::new_closure(py, Some(c"opener"), None, move |arguments, _| {
        open_file(&shared, arguments)
    })?;
    let (genuine, opener) = (py.import("_io")?.getattr("open")?.unbind(), opener.into_any().unbind());
    let open = PyCFunction::new_closure(py, Some(c"open"), None, move |values, options| {
        open(&genuine, &opener, values, options)
    })?;
    builtins.set_item("open", open)
}

fn print(
    worker: &Arc<Worker>,
    genuine: &Py<PyAny>,
    values: &Bound<'_, PyTuple>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let py = values.py();
    let (mut separator, mut end) = (None, None);
    for (name, value) in options.iter().flat_map(|o| o.iter()) {
        let name = name.cast_into::<PyString>()?;
        match name.to_str()? {
            "file" if !value.is_none() => return genuine.bind(py).call(values, options).map(Bound::unbind),
            "sep" => separator = text_option("sep", value)?,
            "end" => end = text_option("end", value)?,
            "file" | "flush" => {}
            other => {
                let why = format!("print() got an unexpected keyword argument '{other}'");
                return Err(PyTypeError::new_err(why));
            }
        }
    }
    let mut text = Vec::new();
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            text.extend_from_slice(&separator.as_ref().map_or(Ok(b" ".into()), utf8)?);
        }
        text.extend_from_slice(&utf8(&value.str()?)?);
        // So that a print that could not be sent does not grow first.
        if text.len() > worker.message_max() {
            return Err(PyValueError::new_err("what is printed at once is longer than message_limit"));
        }
    }
    text.extend_from_slice(&end.as_ref().map_or(Ok(b"\n".into()), utf8)?);
    worker.output(py, &text)?;
    Ok(py.None())
}

fn text_option<'py>(name: &str, value: Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyString>>> {
    if value.is_none() {
        return Ok(None);
    }
    value.cast_into::<PyString>().map(Some).map_err(|e| {
        let kind = e.into_inner().get_type().name().map(|n| n.to_string()).unwrap_or_default();
        PyTypeError::new_err(format!("{name} must be None or a string, not {kind}"))
    })
}

/// What `sys.stdout` and `sys.stderr` are: `write` sends, `flush` has nothing to do.
pub(super) fn stream<'py>(py: Python<'py>, worker: &Arc<Worker>) -> PyResult<Bound<'py, PyAny>> {
    let shared = Arc::clone(worker);
    let write =
        PyCFunction::new_closure(py, Some(c"write"), None, move |arguments: &Bound<'_, PyTuple>, _| {
            let text = arguments.get_item(0)?.cast_into::<PyString>()?;
            shared.output(text.py(), &utf8(&text)?)?;
            text.len()
        })?;
    let nothing = |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| arguments.py().None();
    let flush = PyCFunction::new_closure(py, Some(c"flush"), None, nothing)?;
    let attributes = PyDict::new(py);
    attributes.set_item("write", write)?;
    attributes.set_item("flush", flush)?;
    attributes.set_item("encoding", "utf-8")?;
    // types.SimpleNamespace, which needs no import this way.
    worker
        .engine()
        .genuine_module(py, "sys")
        .getattr("implementation")?
        .get_type()
        .call((), Some(&attributes))
}

/// `open` of a path: CPython's own, which gets its descriptor from [`open_file`].
fn open(
    genuine: &Py<PyAny>,
    opener: &Py<PyAny>,
    values: &Bound<'_, PyTuple>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let py = values.py();
    const OPENER_AT: usize = 7;
    let options = options.map_or_else(|| Ok(PyDict::new(py)), |o| o.copy())?;
    let file = match values.get_item(0) {
        Ok(file) => file,
        Err(_) => options.get_item("file")?.ok_or_else(|| PyTypeError::new_err("open() needs a path"))?,
    };
    if !file.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("open() takes a path as str"));
    }
    if values.len() > OPENER_AT || options.contains("opener")? {
        return Err(PyTypeError::new_err("open() takes no opener"));
    }
    options.set_item(intern!(py, "opener"), opener.bind(py))?;
    genuine.bind(py).call(values, Some(&options)).map(Bound::unbind)
}

/// The opener that `open` passes on: a path of the engine and flags, answered with a descriptor.
fn open_file(worker: &Worker, arguments: &Bound<'_, PyTuple>) -> PyResult<i32> {
    let (path, flags): (Bound<'_, PyString>, i32) = arguments.extract()?;
    let mounts = lock(&worker.mounts);
    let opened = mounts.open(&path.to_string_lossy(), flags);
    drop(mounts);
    memory::unlimited(|| {
        opened.map_err(|e| match e.raw_os_error() {
            // With errno, text and path, an OSError becomes the class that the errno stands for.
            Some(errno) => match os_error(errno, &path) {
                Ok(error) | Err(error) => error,
            },
            None => PyPermissionError::new_err(e.to_string()),
        })
    })
}

fn os_error(errno: i32, path: &Bound<'_, PyString>) -> PyResult<PyErr> {
    let py = path.py();
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    let text = text.split(" (os error").next().unwrap_or_default().to_owned();
    let class = py.get_type::<pyo3::exceptions::PyOSError>();
    Ok(PyErr::from_value(class.call1((errno, text, path))?))
}
