//! Exceptions across the pipes (PROTOCOL.md §7.4).
//!
//! `turn` asks for the frame that tells the parent of an escaped exception, and for the exception that a RAISE means.
//! Text about an exception is made by engine code (`__str__`) and can be anything, or fail.

use std::collections::VecDeque;
use std::sync::Arc;

use pyo3::exceptions::{PyBaseException, PyRuntimeError, PySyntaxError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString, PyTuple, PyType};

use super::codec::{DecodeError, Decoder, Encoder, utf8};
use super::fields::Violation;
use super::message::{ERROR, NAMES_MAX, TOKENS_MAX};
use super::{Worker, lock, memory};

const NAME_BYTES_MAX: usize = 128;
const FILENAME_BYTES_MAX: usize = 256;
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// What the other fields take at most.
const REST_BYTES_MAX: usize = 640;

/// Exceptions that came from the parent in this top-level request, with their tokens; the oldest go first.
#[derive(Debug, Default)]
pub(super) struct Raised(VecDeque<(Py<PyAny>, u64)>);

impl Worker {
    /// ERROR for an exception that left the engine. Whatever cannot be told is left out.
    pub(super) fn error_frame(&self, py: Python<'_>, error: &PyErr) -> Vec<u8> {
        // This also hangs the traceback onto the exception, which the parent may come to hold.
        let exception = error.clone_ref(py).into_value(py).into_bound(py).into_any();
        let message = memory::limited(|| exception.str()).ok();
        let place = place(&exception, error);
        let whole = self.try_error(&exception, message.as_ref(), place.as_ref(), true);
        whole.or_else(|_| self.try_error(&exception, None, None, false)).unwrap_or_else(|_| {
            lock(&self.channel).fatal("an exception of the engine cannot be told");
        })
    }

    fn try_error<'py>(
        &self,
        exception: &Bound<'py, PyAny>,
        message: Option<&Bound<'py, PyString>>,
        place: Option<&(Bound<'py, PyString>, u32)>,
        held: bool,
    ) -> PyResult<Vec<u8>> {
        let py = exception.py();
        let mut encoder = Encoder::new(py, self, ERROR);
        let kind = exception.get_type();
        encoder.bytes(&clipped(&kind.name()?, NAME_BYTES_MAX)?)?;
        let message_max = MESSAGE_BYTES_MAX.min(self.message_max().saturating_sub(REST_BYTES_MAX));
        encoder.bytes(&message.map(|m| clipped(m, message_max)).transpose()?.unwrap_or_default())?;
        encoder.bytes(&clipped(&self.nearest_builtin(&kind)?.name()?, NAME_BYTES_MAX)?)?;
        if held {
            encoder.object(exception)?;
        } else {
            encoder.value(&py.None().into_bound(py))?;
        }
        match place {
            Some((filename, line)) => {
                encoder.tagged_bytes(b's', &clipped(filename, FILENAME_BYTES_MAX)?)?;
                encoder.value(PyInt::new(py, *line).as_any())?;
            }
            None => {
                encoder.value(&py.None().into_bound(py))?;
                encoder.value(&py.None().into_bound(py))?;
            }
        }
        encoder.number(self.token_of(exception))?;
        Ok(encoder.finish())
    }

    /// The first class in the method resolution order that is an exception of CPython's own.
    fn nearest_builtin<'py>(&self, kind: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyType>> {
        for class in kind.mro() {
            let class = class.cast_into::<PyType>()?;
            let named = self.builtin_exception(&class.name()?)?;
            if named.is_some_and(|named| named.is(&class)) {
                return Ok(class);
            }
        }
        Ok(kind.py().get_type::<PyBaseException>())
    }

    /// CPython's exception class of this name.
    fn builtin_exception<'py>(&self, name: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyType>>> {
        let Some(found) = self.engine().genuine(name.py()).get_item(name)? else { return Ok(None) };
        let Ok(class) = found.cast_into::<PyType>() else { return Ok(None) };
        Ok(class.is_subclass_of::<PyBaseException>()?.then_some(class))
    }

    fn token_of(&self, exception: &Bound<'_, PyAny>) -> u64 {
        let raised = lock(&self.raised);
        raised.0.iter().find(|(known, _)| known.is(exception)).map_or(0, |(_, token)| *token)
    }

    /// Forgets the exceptions of a top-level request that is over.
    pub(super) fn forget_raised(&self) {
        let past = std::mem::take(&mut lock(&self.raised).0);
        drop(past);
    }

    /// The exception that a RAISE means.
    pub(super) fn raised<'py>(
        self: &Arc<Self>,
        decoder: &mut Decoder<'_, 'py>,
    ) -> Result<PyErr, DecodeError> {
        let py = decoder.py();
        match decoder.fields.byte()? {
            0 => {
                let object = self.object(py, decoder.fields.u64()?)?;
                if !object.is_instance_of::<PyBaseException>() {
                    return Err(Violation::new("the handle of a RAISE is not of an exception").into());
                }
                decoder.fields.end()?;
                Ok(PyErr::from_value(object))
            }
            1 => {
                let token = decoder.fields.u64()?;
                let count = decoder.fields.count(4)?;
                if count > NAMES_MAX {
                    return Err(Violation(format!("{count} class names in a RAISE")).into());
                }
                let names: Result<Vec<_>, _> = (0..count).map(|_| decoder.text()).collect();
                let arguments = decoder.typed::<PyTuple>("the arguments of a RAISE")?;
                decoder.fields.end()?;
                let error = PyErr::from_value(self.construct(&names?, &arguments)?);
                self.remember(error.value(py).as_any(), token);
                Ok(error)
            }
            other => Err(Violation(format!("a RAISE of form {other}")).into()),
        }
    }

    fn construct<'py>(
        &self,
        names: &[Bound<'py, PyString>],
        arguments: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = arguments.py();
        let mut class = py.get_type::<PyRuntimeError>();
        for name in names {
            if let Some(found) = self.builtin_exception(name)? {
                class = found;
                break;
            }
        }
        memory::limited(|| {
            class.call1(arguments).or_else(|_| {
                let first = arguments.get_item(0).and_then(|a| a.str())?;
                class.call1((&first,)).or_else(|_| py.get_type::<PyRuntimeError>().call1((&first,)))
            })
        })
        .or_else(|_| py.get_type::<PyRuntimeError>().call0())
    }

    fn remember(&self, exception: &Bound<'_, PyAny>, token: u64) {
        let mut raised = lock(&self.raised);
        raised.0.push_back((exception.clone().unbind(), token));
        let oldest = if raised.0.len() > TOKENS_MAX { raised.0.pop_front() } else { None };
        drop(raised);
        drop(oldest);
    }
}

/// Cut to `bytes_max`, between characters.
fn clipped(text: &Bound<'_, PyString>, bytes_max: usize) -> PyResult<Vec<u8>> {
    let bytes = utf8(text)?;
    let mut end = bytes.len().min(bytes_max);
    while end > 0 && bytes.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
        end -= 1;
    }
    Ok(bytes.get(..end).unwrap_or_default().to_vec())
}

/// File and line of an exception: what a SyntaxError names, otherwise the innermost line that ran.
fn place<'py>(exception: &Bound<'py, PyAny>, error: &PyErr) -> Option<(Bound<'py, PyString>, u32)> {
    let py = exception.py();
    if exception.is_instance_of::<PySyntaxError>() {
        let place = |name: &str| exception.getattr(name).ok();
        let filename = place("filename").and_then(|f| f.cast_into::<PyString>().ok());
        let line = place("lineno").and_then(|l| l.extract::<u32>().ok());
        if let (Some(filename), Some(line)) = (filename, line) {
            return Some((filename, line));
        }
    }
    let mut innermost = error.traceback(py)?;
    while let Some(next) = innermost.getattr("tb_next").ok().and_then(|n| n.cast_into().ok()) {
        innermost = next;
    }
    let line = innermost.getattr("tb_lineno").ok()?.extract().ok()?;
    let code = innermost.getattr("tb_frame").ok()?.getattr("f_code").ok()?;
    Some((code.getattr("co_filename").ok()?.cast_into().ok()?, line))
}

/// Puts an exception into the engine's hands: made now, while nothing is refused, not when it is first looked at.
pub(super) fn ready(py: Python<'_>, error: PyErr) -> PyErr {
    let _ = error.value(py);
    error
}

/// An empty dict stands for no named arguments.
pub(super) fn named<'py>(py: Python<'py>, named: Option<&Bound<'py, PyDict>>) -> Bound<'py, PyDict> {
    named.cloned().unwrap_or_else(|| PyDict::new(py))
}
