//! Values of Python as bytes and back (PROTOCOL.md §4).
//!
//! Used by `turn` for every value in a message. What crosses by content is decided here, by exact type: no method of a
//! value is called, so no engine code runs, except the hash of an engine object that the parent uses as a key.

use std::borrow::Cow;
use std::sync::Arc;

use pyo3::exceptions::{PyRecursionError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyComplex, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString,
    PyTuple,
};

use super::Worker;
use super::fields::{Fields, Frame, TooLong, Violation};
use super::memory;
use super::message::DEPTH_MAX;

/// Why received bytes became no value.
#[derive(Debug)]
pub(super) enum DecodeError {
    /// The parent broke a rule.
    Violation(Violation),
    /// The engine could not make the value.
    Raised(PyErr),
}

impl From<Violation> for DecodeError {
    fn from(violation: Violation) -> DecodeError {
        DecodeError::Violation(violation)
    }
}

impl From<PyErr> for DecodeError {
    fn from(error: PyErr) -> DecodeError {
        DecodeError::Raised(error)
    }
}

/// Reads the values of one message.
pub(super) struct Decoder<'a, 'py> {
    /// Fields that are not values are read directly.
    pub(super) fields: Fields<'a>,
    py: Python<'py>,
    worker: &'a Arc<Worker>,
    /// An engine object was met in a key: from here on, hashing may run engine code.
    foreign_keys: bool,
}

type Decoded<'py> = Result<Bound<'py, PyAny>, DecodeError>;

impl<'a, 'py> Decoder<'a, 'py> {
    pub(super) fn new(py: Python<'py>, worker: &'a Arc<Worker>, message: &'a [u8]) -> Decoder<'a, 'py> {
        Decoder { fields: Fields::new(message), py, worker, foreign_keys: false }
    }

    pub(super) fn py(&self) -> Python<'py> {
        self.py
    }

    /// The next value.
    pub(super) fn value(&mut self) -> Decoded<'py> {
        self.nested(0, false)
    }

    /// The next field as a str.
    pub(super) fn text(&mut self) -> Result<Bound<'py, PyString>, DecodeError> {
        let text = from_utf8(self.py, self.fields.bytes()?);
        text.map_err(|_| Violation::new("a text is not UTF-8").into())
    }

    /// The next value, which must be of this type.
    pub(super) fn typed<T: pyo3::type_object::PyTypeCheck>(
        &mut self,
        what: &str,
    ) -> Result<Bound<'py, T>, DecodeError> {
        self.value()?.cast_into::<T>().map_err(|_| Violation(format!("{what} of another type")).into())
    }

    /// A value within `levels` containers; within a key it has to be hashable.
    fn nested(&mut self, levels: u32, key: bool) -> Decoded<'py> {
        let py = self.py;
        let tag = self.fields.byte()?;
        if key && b"lqxdeB".contains(&tag) {
            return Err(Violation(format!("a value with tag `{}` is not hashable", char::from(tag))).into());
        }
        let contains = b"lqxtdez".contains(&tag);
        if contains && levels >= DEPTH_MAX {
            return Err(Violation(format!("containers nest deeper than {DEPTH_MAX}")).into());
        }
        let inner = levels + 1;
        Ok(match tag {
            b'N' => py.None().into_bound(py),
            b'T' => PyBool::new(py, true).to_owned().into_any(),
            b'F' => PyBool::new(py, false).to_owned().into_any(),
            b'i' => PyInt::new(py, self.fields.i64()?).into_any(),
            b'I' => self.integer()?,
            b'f' => PyFloat::new(py, self.fields.f64()?).into_any(),
            b'c' => {
                let real = self.fields.f64()?;
                PyComplex::from_doubles(py, real, self.fields.f64()?).into_any()
            }
            b's' => self.text()?.into_any(),
            b'b' => PyBytes::new(py, self.fields.bytes()?).into_any(),
            b'B' => PyByteArray::new(py, self.fields.bytes()?).into_any(),
            b'l' => PyList::new(py, self.items(inner, key)?)?.into_any(),
            b't' => PyTuple::new(py, self.items(inner, key)?)?.into_any(),
            b'q' => {
                let count = self.packed()?;
                let items: Result<Vec<i64>, Violation> = (0..count).map(|_| self.fields.i64()).collect();
                PyList::new(py, items?)?.into_any()
            }
            b'x' => {
                let count = self.packed()?;
                let items: Result<Vec<f64>, Violation> = (0..count).map(|_| self.fields.f64()).collect();
                PyList::new(py, items?)?.into_any()
            }
            b'd' => self.dict(inner)?.into_any(),
            b'e' => {
                let items = self.items(inner, true)?;
                let count = items.len();
                let set = self.hashing(|| PySet::new(py, items))?;
                distinct(set.len(), count)?;
                set.into_any()
            }
            b'z' => {
                let items = self.items(inner, true)?;
                let count = items.len();
                let set = self.hashing(|| PyFrozenSet::new(py, items))?;
                distinct(set.len(), count)?;
                set.into_any()
            }
            b'O' => {
                self.foreign_keys |= key;
                self.worker.object(py, self.fields.u64()?)?
            }
            b'H' => {
                let (id, name) = (self.fields.u64()?, self.text()?);
                self.worker.host_function(id, &name)?
            }
            other => return Err(Violation(format!("unknown tag {other:#04x}")).into()),
        })
    }

    fn items(&mut self, levels: u32, key: bool) -> Result<Vec<Bound<'py, PyAny>>, DecodeError> {
        let count = self.fields.count(1)?;
        (0..count).map(|_| self.nested(levels, key)).collect()
    }

    fn packed(&mut self) -> Result<usize, DecodeError> {
        match self.fields.count(8)? {
            0 => Err(Violation::new("a packed list without items").into()),
            count => Ok(count),
        }
    }

    fn dict(&mut self, levels: u32) -> Result<Bound<'py, PyDict>, DecodeError> {
        let count = self.fields.count(2)?;
        let dict = PyDict::new(self.py);
        for _ in 0..count {
            let key = self.nested(levels, true)?;
            let value = self.nested(levels, false)?;
            self.hashing(|| dict.set_item(key, value))?;
        }
        distinct(dict.len(), count)?;
        Ok(dict)
    }

    /// Puts something into a dict or set. With an engine object among the keys that runs engine code, under its limits.
    fn hashing<T>(&self, put: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        if self.foreign_keys { memory::limited(put) } else { put() }
    }

    /// An int past 64 bits, in its one canonical form.
    fn integer(&mut self) -> Decoded<'py> {
        let bytes = self.fields.bytes()?;
        let canonical = match bytes {
            [.., below, 0x00] => *below >= 0x80,
            [.., below, 0xff] => *below < 0x80,
            _ => true,
        };
        if bytes.len() < 9 || !canonical {
            return Err(Violation::new("an int of tag `I` is not in canonical form").into());
        }
        let signed = PyDict::new(self.py);
        signed.set_item("signed", true)?;
        let bytes = PyBytes::new(self.py, bytes);
        Ok(self.py.get_type::<PyInt>().call_method("from_bytes", (bytes, "little"), Some(&signed))?)
    }
}

fn distinct(found: usize, count: usize) -> PyResult<()> {
    if found == count { Ok(()) } else { Err(PyValueError::new_err("equal keys or members in a dict or set")) }
}

/// Writes the values of one message.
pub(super) struct Encoder<'w, 'py> {
    /// Fields that are not values are put here directly.
    pub(super) frame: Frame,
    py: Python<'py>,
    worker: &'w Worker,
    /// Handles that this message gives; taken back when it is not sent.
    given: Vec<u64>,
}

fn too_long(_: TooLong) -> PyErr {
    PyValueError::new_err("the message would be longer than message_limit")
}

impl<'w, 'py> Encoder<'w, 'py> {
    pub(super) fn new(py: Python<'py>, worker: &'w Worker, kind: u8) -> Encoder<'w, 'py> {
        Encoder { frame: Frame::new(kind, worker.message_max()), py, worker, given: Vec::new() }
    }

    /// The whole frame.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.given.clear();
        std::mem::replace(&mut self.frame, Frame::new(0, 0)).finish()
    }

    /// Adds a value.
    pub(super) fn value(&mut self, value: &Bound<'py, PyAny>) -> PyResult<()> {
        self.nested(value, 0)
    }

    /// Adds a field of bytes.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> PyResult<()> {
        self.frame.put_bytes(bytes).map_err(too_long)
    }

    /// Adds bytes as a value with this tag.
    pub(super) fn tagged_bytes(&mut self, tag: u8, bytes: &[u8]) -> PyResult<()> {
        self.put(&[tag])?;
        self.bytes(bytes)
    }

    /// Adds a number.
    pub(super) fn number(&mut self, number: u64) -> PyResult<()> {
        self.put(&number.to_le_bytes())
    }

    /// Adds a text.
    pub(super) fn text(&mut self, text: &Bound<'py, PyString>) -> PyResult<()> {
        self.bytes(&utf8(text)?)
    }

    /// Adds an object by handle, whatever its type.
    pub(super) fn object(&mut self, object: &Bound<'py, PyAny>) -> PyResult<()> {
        self.put(b"O")?;
        let handle = self.worker.keep(object);
        self.given.push(handle);
        self.number(handle)
    }

    fn put(&mut self, bytes: &[u8]) -> PyResult<()> {
        self.frame.put(bytes).map_err(too_long)
    }

    fn count(&mut self, tag: u8, count: usize) -> PyResult<()> {
        self.put(&[tag])?;
        self.frame.put_count(count).map_err(too_long)
    }

    fn nested(&mut self, value: &Bound<'py, PyAny>, levels: u32) -> PyResult<()> {
        if value.is_none() {
            self.put(b"N")
        } else if value.is_exact_instance_of::<PyBool>() {
            self.put(if value.is_truthy()? { b"T" } else { b"F" })
        } else if value.is_exact_instance_of::<PyInt>() {
            self.integer(value)
        } else if let Ok(float) = value.cast_exact::<PyFloat>() {
            self.put(b"f")?;
            self.put(&float.value().to_le_bytes())
        } else if let Ok(text) = value.cast_exact::<PyString>() {
            self.put(b"s")?;
            self.text(text)
        } else if let Ok(bytes) = value.cast_exact::<PyBytes>() {
            self.put(b"b")?;
            self.bytes(bytes.as_bytes())
        } else if let Ok(bytes) = value.cast_exact::<PyByteArray>() {
            self.put(b"B")?;
            self.bytes(&bytes.to_vec())
        } else if let Ok(complex) = value.cast_exact::<PyComplex>() {
            self.put(b"c")?;
            self.put(&complex.real().to_le_bytes())?;
            self.put(&complex.imag().to_le_bytes())
        } else {
            self.container(value, levels)
        }
    }

    fn container(&mut self, value: &Bound<'py, PyAny>, levels: u32) -> PyResult<()> {
        let inner = levels + 1;
        let (list, tuple) = (value.cast_exact::<PyList>(), value.cast_exact::<PyTuple>());
        let (dict, set) = (value.cast_exact::<PyDict>(), value.cast_exact::<PySet>());
        let frozen = value.cast_exact::<PyFrozenSet>();
        let by_content = list.is_ok()
            || tuple.is_ok()
            || dict.as_ref().is_ok_and(|d| d.iter().all(|(key, _)| plain(&key, inner)))
            || set.as_ref().is_ok_and(|s| s.iter().all(|member| plain(&member, inner)))
            || frozen.as_ref().is_ok_and(|s| s.iter().all(|member| plain(&member, inner)));
        if !by_content {
            return self.object(value);
        }
        if levels >= DEPTH_MAX {
            return Err(PyRecursionError::new_err(format!("containers nest deeper than {DEPTH_MAX}")));
        }
        if let Ok(list) = list {
            if let Some((tag, packed)) = packed(list) {
                self.count(tag, list.len())?;
                return self.put(&packed);
            }
            self.count(b'l', list.len())?;
            return list.iter().try_for_each(|item| self.nested(&item, inner));
        }
        if let Ok(tuple) = tuple {
            self.count(b't', tuple.len())?;
            return tuple.iter().try_for_each(|item| self.nested(&item, inner));
        }
        if let Ok(dict) = dict {
            self.count(b'd', dict.len())?;
            return dict.iter().try_for_each(|(key, value)| {
                self.nested(&key, inner)?;
                self.nested(&value, inner)
            });
        }
        if let Ok(set) = set {
            self.count(b'e', set.len())?;
            return set.iter().try_for_each(|member| self.nested(&member, inner));
        }
        let set = frozen?;
        self.count(b'z', set.len())?;
        set.iter().try_for_each(|member| self.nested(&member, inner))
    }

    fn integer(&mut self, value: &Bound<'py, PyAny>) -> PyResult<()> {
        if let Ok(small) = value.extract::<i64>() {
            self.put(b"i")?;
            return self.put(&small.to_le_bytes());
        }
        let bits = value.call_method0("bit_length")?.extract::<usize>()?;
        let signed = PyDict::new(self.py);
        signed.set_item("signed", true)?;
        // One bit more for the sign; -2^(8n-1) alone would need none, and is found one byte too long.
        let bytes =
            value.call_method("to_bytes", (bits / 8 + 1, "little"), Some(&signed))?.cast_into::<PyBytes>()?;
        let bytes = match bytes.as_bytes() {
            [all @ .., 0xff] if all.last().is_some_and(|below| *below >= 0x80) => all,
            all => all,
        };
        self.put(b"I")?;
        self.bytes(bytes)
    }
}

impl Drop for Encoder<'_, '_> {
    fn drop(&mut self) {
        let handles = std::mem::take(&mut self.given);
        drop(self.worker.release(&handles));
    }
}

/// A text as UTF-8, surrogates as in §2.
pub(super) fn utf8<'a>(text: &'a Bound<'_, PyString>) -> PyResult<Cow<'a, [u8]>> {
    // By way of the type, since a subclass may call anything by these names. CPython would keep the UTF-8 of a text that is
    // not ASCII beside it, for as long as it lives and at the engine's expense, if it were asked for a reference.
    let kind = text.py().get_type::<PyString>();
    if kind.call_method1(intern!(text.py(), "isascii"), (text,))?.is_truthy()? {
        return Ok(Cow::Borrowed(text.to_str()?.as_bytes()));
    }
    let bytes = kind.call_method1(intern!(text.py(), "encode"), (text, "utf-8", "surrogatepass"))?;
    Ok(Cow::Owned(bytes.cast_into::<PyBytes>()?.as_bytes().to_vec()))
}

/// The opposite: always a str itself, never a subclass.
pub(super) fn from_utf8<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyString>> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(PyString::new(py, text));
    }
    let text = PyBytes::new(py, bytes).call_method1("decode", ("utf-8", "surrogatepass"))?;
    Ok(text.cast_into::<PyString>()?)
}

/// Does this key cross by content, all the way down?
fn plain(key: &Bound<'_, PyAny>, levels: u32) -> bool {
    // Too deep: what is said about that is said by the one who writes it.
    if levels > DEPTH_MAX {
        return true;
    }
    if let Ok(tuple) = key.cast_exact::<PyTuple>() {
        return tuple.iter().all(|item| plain(&item, levels + 1));
    }
    if let Ok(set) = key.cast_exact::<PyFrozenSet>() {
        return set.iter().all(|item| plain(&item, levels + 1));
    }
    key.is_none()
        || key.is_exact_instance_of::<PyString>()
        || key.is_exact_instance_of::<PyInt>()
        || key.is_exact_instance_of::<PyBool>()
        || key.is_exact_instance_of::<PyFloat>()
        || key.is_exact_instance_of::<PyBytes>()
        || key.is_exact_instance_of::<PyComplex>()
}

/// A list of nothing but 64-bit ints, or of nothing but floats, as the bytes of its items.
fn packed(list: &Bound<'_, PyList>) -> Option<(u8, Vec<u8>)> {
    let first = list.get_item(0).ok()?;
    let mut bytes = Vec::with_capacity(list.len().saturating_mul(8));
    if first.is_exact_instance_of::<PyInt>() {
        for item in list.iter() {
            let small = item.is_exact_instance_of::<PyInt>().then(|| item.extract::<i64>().ok()).flatten()?;
            bytes.extend_from_slice(&small.to_le_bytes());
        }
        return Some((b'q', bytes));
    }
    for item in list.iter() {
        bytes.extend_from_slice(&item.cast_exact::<PyFloat>().ok()?.value().to_le_bytes());
    }
    Some((b'x', bytes))
}
