//! Turns (PROTOCOL.md §6): a request of the parent is answered, and a request of the worker's waits for its answer while
//! the parent may ask again.
//!
//! [`serve`] is the life of the worker. Engine code runs only below [`Worker::carry_out`] and, for `__del__`, where
//! objects are dropped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use pyo3::exceptions::{PyMemoryError, PyPermissionError, PyRecursionError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString, PyTuple};

use super::channel::Channel;
use super::codec::{DecodeError, Decoder, Encoder, from_utf8, utf8};
use super::engine::Engine;
use super::fields::{Fields, Frame, Violation};
use super::files::{Mount, normal};
use super::message::{self, CALLOUTS_MAX, Operation};
use super::start::Settings;
use super::{EXIT_ENGINE, EXIT_UNCONFINED, VERSION, Worker, confine, errors, lock, memory, steps};

/// Where the worker is in its life.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Callouts that wait for their answer.
    callouts: u32,
    /// Has code run, and before that the layers closed?
    confined: bool,
}

/// A request of the parent, complete and checked.
pub(super) enum Request<'py> {
    Eval { source: Bound<'py, PyString>, filename: Bound<'py, PyString> },
    Exec { source: Bound<'py, PyString>, filename: Bound<'py, PyString> },
    Call { callee: Bound<'py, PyAny>, arguments: Bound<'py, PyTuple>, named: Bound<'py, PyDict> },
    Get { name: Bound<'py, PyString> },
    Set { name: Bound<'py, PyString>, value: Bound<'py, PyAny> },
    Del { name: Bound<'py, PyString> },
    Module { name: String, members: Bound<'py, PyDict>, source: Option<Bound<'py, PyString>> },
    Mount(Mount),
    Op { operation: Operation, object: Bound<'py, PyAny>, operands: Vec<Bound<'py, PyAny>> },
    Collect,
}

impl Request<'_> {
    fn runs_code(&self) -> bool {
        matches!(
            self,
            Request::Eval { .. } | Request::Exec { .. } | Request::Call { .. } | Request::Op { .. }
        )
    }
}

/// Serves the parent until it is gone.
pub(super) fn serve(py: Python<'_>, channel: Channel) -> ! {
    let worker = Arc::new(Worker {
        settings: OnceLock::new(),
        engine: OnceLock::new(),
        channel: Mutex::new(channel),
        objects: Mutex::default(),
        modules: Mutex::default(),
        mounts: Mutex::default(),
        raised: Mutex::default(),
        turns: Mutex::default(),
    });
    match Engine::prepare(py, &worker) {
        Ok(engine) => drop(worker.engine.set(engine)),
        Err(e) => lock(&worker.channel).end(EXIT_ENGINE, &format!("the engine could not be prepared: {e}")),
    }
    worker.begin(py);
    loop {
        if !lock(&worker.turns).confined {
            worker.settings().watch.wait_for_input();
        }
        let message = lock(&worker.channel).read();
        worker.forget_raised();
        steps::start_over();
        worker.answer(py, &message, true);
    }
}

impl Worker {
    pub(super) fn settings(&self) -> &'static Settings {
        self.settings
            .get()
            .copied()
            .unwrap_or_else(|| lock(&self.channel).fatal("a request came before INIT"))
    }

    pub(super) fn engine(&self) -> &Engine {
        self.engine.get().unwrap_or_else(|| lock(&self.channel).fatal("the engine is not ready"))
    }

    pub(super) fn message_max(&self) -> usize {
        lock(&self.channel).message_max()
    }

    fn violated(&self, violation: &Violation) -> ! {
        lock(&self.channel).fatal(&violation.0)
    }

    /// Reads INIT and answers READY.
    fn begin(&self, py: Python<'_>) {
        let message = lock(&self.channel).read();
        let mut fields = Fields::new(&message);
        let settings = fields.byte().and_then(|kind| match kind {
            message::INIT if fields.u32()? == 0 => Settings::parse(&mut fields),
            message::INIT => Err(Violation::new("INIT releases handles")),
            other => Err(Violation(format!("a message of kind {other:#04x} before INIT"))),
        });
        let settings = settings.unwrap_or_else(|violation| self.violated(&violation));
        lock(&self.channel).set_message_max(settings.message_limit);
        let (memory_limit, step_limit) = (settings.memory_limit, settings.step_limit);
        // For the life of the process: the thread that watches the parent borrows it.
        let _ = self.settings.set(Box::leak(Box::new(settings)));
        let ready = self.ready(py).unwrap_or_else(|e| lock(&self.channel).fatal(&e.to_string()));
        lock(&self.channel).write(&ready);
        memory::limit(usize::try_from(memory_limit).unwrap_or(usize::MAX));
        steps::limit(py, step_limit);
    }

    fn ready(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        let mut encoder = Encoder::new(py, self, message::READY);
        encoder.bytes(VERSION.as_bytes())?;
        let version = py.version_info();
        encoder.bytes(format!("{}.{}.{}", version.major, version.minor, version.patch).as_bytes())?;
        let layers = PyDict::new(py);
        if !self.settings().unconfined {
            for (name, level) in confine::layers() {
                layers.set_item(name, level)?;
            }
        }
        encoder.value(layers.as_any())?;
        Ok(encoder.finish())
    }

    /// Does what a message of the parent asks for, and answers it.
    fn answer(self: &Arc<Self>, py: Python<'_>, message: &[u8], top: bool) {
        let held = memory::held();
        let parsed = memory::unlimited(|| {
            let mut decoder = Decoder::new(py, self, message);
            let kind = decoder.fields.byte()?;
            let released = released(&mut decoder.fields)?;
            let request = match self.parse(kind, &mut decoder, top) {
                Ok(request) => Ok(request),
                Err(DecodeError::Raised(e)) => Err(errors::ready(py, e)),
                Err(DecodeError::Violation(violation)) => return Err(violation),
            };
            Ok((released, request))
        });
        let (released, request) = parsed.unwrap_or_else(|violation| self.violated(&violation));
        self.drop_released(&released);
        let request = request.and_then(|request| {
            if memory::is_over(held) { Err(PyMemoryError::new_err(())) } else { Ok(request) }
        });
        let result = request.and_then(|request| {
            if request.runs_code() {
                self.confine();
            }
            memory::limited(|| self.carry_out(py, request))
        });
        let frame = memory::unlimited(|| {
            let encoded = result.and_then(|value| {
                let mut encoder = Encoder::new(py, self, message::VALUE);
                encoder.value(&value)?;
                let frame = encoder.finish();
                Ok((frame, value))
            });
            match encoded {
                Ok((frame, value)) => (frame, Some(value)),
                Err(e) => (self.error_frame(py, &e), None),
            }
        });
        let (frame, value) = frame;
        // What is dropped may be the last of an object of the engine: before the answer, while it is this side's turn.
        memory::limited(|| drop(value));
        lock(&self.channel).write(&frame);
    }

    fn drop_released(&self, handles: &[u64]) {
        let objects = self.release(handles);
        if objects.len() != handles.len() {
            self.violated(&Violation::new("a handle is released that is not held"));
        }
        memory::limited(|| drop(objects));
    }

    pub(super) fn parse<'py>(
        self: &Arc<Self>,
        kind: u8,
        decoder: &mut Decoder<'_, 'py>,
        top: bool,
    ) -> Result<Request<'py>, DecodeError> {
        let request = match kind {
            message::EVAL if top => Request::Eval { source: decoder.text()?, filename: decoder.text()? },
            message::EXEC if top => Request::Exec { source: decoder.text()?, filename: decoder.text()? },
            message::CALL => Request::Call {
                callee: decoder.value()?,
                arguments: decoder.typed::<PyTuple>("arguments")?,
                named: decoder.typed::<PyDict>("named arguments")?,
            },
            message::GET => Request::Get { name: decoder.text()? },
            message::SET => Request::Set { name: decoder.text()?, value: decoder.value()? },
            message::DEL => Request::Del { name: decoder.text()? },
            message::MODULE => Request::Module {
                name: decoder.text()?.extract()?,
                members: decoder.typed::<PyDict>("members")?,
                source: source(decoder.value()?)?,
            },
            message::MOUNT => Request::Mount(mount(&mut decoder.fields)?),
            message::OP => {
                let number = decoder.fields.byte()?;
                let (operation, operands) = Operation::parse(number)
                    .ok_or_else(|| Violation(format!("unknown operation {number}")))?;
                let object = self.object(decoder.py(), decoder.fields.u64()?)?;
                let operands: Result<Vec<_>, _> = (0..operands).map(|_| decoder.value()).collect();
                Request::Op { operation, object, operands: operands? }
            }
            message::COLLECT => Request::Collect,
            other => return Err(Violation(format!("a message of kind {other:#04x} out of turn")).into()),
        };
        decoder.fields.end()?;
        Ok(request)
    }

    /// The layers close before code first runs, and stay.
    fn confine(&self) {
        if std::mem::replace(&mut lock(&self.turns).confined, true) {
            return;
        }
        let settings = self.settings();
        if settings.unconfined {
            return;
        }
        let mounts = lock(&self.mounts).all().to_vec();
        if let Err(refused) = confine::enter(settings, &mounts) {
            lock(&self.channel).end(EXIT_UNCONFINED, &refused.to_string());
        }
    }

    fn carry_out<'py>(
        self: &Arc<Self>,
        py: Python<'py>,
        request: Request<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let done = catch_unwind(AssertUnwindSafe(|| self.perform(py, request)));
        done.unwrap_or_else(|_| {
            // The bindings panic where CPython has no memory for an object of theirs.
            drop(PyErr::take(py));
            Err(PyMemoryError::new_err(()))
        })
    }

    fn perform<'py>(self: &Arc<Self>, py: Python<'py>, request: Request<'py>) -> PyResult<Bound<'py, PyAny>> {
        let engine = self.engine();
        let nothing = || py.None().into_bound(py);
        match request {
            Request::Eval { source, filename } => engine.eval(&source, &filename),
            Request::Exec { source, filename } => engine.exec(&source, &filename).map(|()| nothing()),
            Request::Call { callee, arguments, named } => {
                let callee = match callee.cast::<PyString>() {
                    Ok(name) => engine.callee(name)?,
                    Err(_) => callee,
                };
                Engine::call(&callee, &arguments, &named)
            }
            Request::Get { name } => engine.get(&name),
            Request::Set { name, value } => engine.set(&name, &value).map(|()| nothing()),
            Request::Del { name } => engine.del(&name).map(|()| nothing()),
            Request::Module { name, members, source } => {
                self.register(name, members.unbind(), source.map(Bound::unbind));
                Ok(nothing())
            }
            Request::Mount(mount) => {
                if lock(&self.turns).confined {
                    return Err(PyPermissionError::new_err("mounts are fixed since code has run"));
                }
                lock(&self.mounts).add(mount);
                Ok(nothing())
            }
            Request::Op { operation, object, operands } => operate(engine, operation, &object, &operands),
            Request::Collect => engine.genuine_module(py, "gc").call_method0("collect"),
        }
    }

    /// Sends a request of the worker and waits for its answer; meanwhile the parent may ask in turn.
    fn callout<'py>(self: &Arc<Self>, py: Python<'py>, frame: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let depth = lock(&self.turns).callouts;
        if depth >= CALLOUTS_MAX {
            return Err(PyRecursionError::new_err("calls between host and engine nest too deeply"));
        }
        lock(&self.turns).callouts = depth + 1;
        lock(&self.channel).write(frame);
        let answer = loop {
            let message = lock(&self.channel).read();
            match message.first() {
                Some(&message::RETURN | &message::RAISE) => break self.take_answer(py, &message),
                _ => self.answer(py, &message, false),
            }
        };
        lock(&self.turns).callouts = depth;
        answer
    }

    fn take_answer<'py>(self: &Arc<Self>, py: Python<'py>, message: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let held = memory::held();
        let taken = memory::unlimited(|| {
            let mut decoder = Decoder::new(py, self, message);
            let kind = decoder.fields.byte()?;
            let released = released(&mut decoder.fields)?;
            let answer = if kind == message::RAISE {
                self.raised(&mut decoder).map(Err)
            } else {
                decoder
                    .value()
                    .and_then(|value| decoder.fields.end().map_err(DecodeError::from).map(|()| Ok(value)))
            };
            match answer {
                Ok(answer) => Ok((released, answer)),
                Err(DecodeError::Raised(e)) => Ok((released, Err(errors::ready(py, e)))),
                Err(DecodeError::Violation(violation)) => Err(violation),
            }
        });
        let (released, answer) = taken.unwrap_or_else(|violation| self.violated(&violation));
        self.drop_released(&released);
        if memory::is_over(held) { Err(PyMemoryError::new_err(())) } else { answer }
    }

    /// Calls a function of the parent.
    pub(super) fn call_host<'py>(
        self: &Arc<Self>,
        id: u64,
        arguments: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = arguments.py();
        let frame = memory::unlimited(|| {
            let encode = || {
                let mut encoder = Encoder::new(py, self, message::CALLBACK);
                encoder.number(id)?;
                encoder.value(arguments.as_any())?;
                encoder.value(errors::named(py, named).as_any())?;
                Ok(encoder.finish())
            };
            encode().map_err(|e| errors::ready(py, e))
        })?;
        self.callout(py, &frame)
    }

    /// Asks for the source of a module.
    pub(super) fn ask_loader<'py>(
        self: &Arc<Self>,
        py: Python<'py>,
        name: &str,
    ) -> PyResult<Option<Bound<'py, PyString>>> {
        let mut frame = Frame::new(message::LOAD, self.message_max());
        if frame.put_bytes(name.as_bytes()).is_err() {
            return Ok(None);
        }
        let answer = self.callout(py, &frame.finish())?;
        source(answer).map_err(|violation| match violation {
            DecodeError::Violation(violation) => self.violated(&violation),
            DecodeError::Raised(e) => e,
        })
    }

    /// Sends printed text.
    pub(super) fn output(self: &Arc<Self>, py: Python<'_>, text: &[u8]) -> PyResult<()> {
        let mut frame = Frame::new(message::OUTPUT, self.message_max());
        frame.put_bytes(text).map_err(|_| {
            pyo3::exceptions::PyValueError::new_err("what is printed at once is longer than message_limit")
        })?;
        self.callout(py, &frame.finish()).map(|_| ())
    }
}

/// The handles that a message releases.
pub(super) fn released(fields: &mut Fields<'_>) -> Result<Vec<u64>, Violation> {
    let count = fields.count(8)?;
    (0..count).map(|_| fields.u64()).collect()
}

/// A source or None.
fn source(value: Bound<'_, PyAny>) -> Result<Option<Bound<'_, PyString>>, DecodeError> {
    if value.is_none() {
        return Ok(None);
    }
    value.cast_into().map(Some).map_err(|_| Violation::new("a source is neither str nor None").into())
}

fn mount(fields: &mut Fields<'_>) -> Result<Mount, Violation> {
    use std::os::unix::ffi::OsStrExt as _;
    let directory = PathBuf::from(std::ffi::OsStr::from_bytes(fields.bytes()?));
    let path =
        std::str::from_utf8(fields.bytes()?).map_err(|_| Violation::new("an engine path is not UTF-8"))?;
    let read_only = match fields.byte()? {
        0 => false,
        1 => true,
        other => return Err(Violation(format!("a mount with flag {other}"))),
    };
    if !directory.is_absolute() || !path.starts_with('/') {
        return Err(Violation::new("a path of a mount is not absolute"));
    }
    Ok(Mount { directory, at: normal(path), read_only })
}

/// The same text as a str, where it is of a subclass, which would cross as an object.
fn exact<'py>(text: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
    if text.is_exact_instance_of::<PyString>() {
        return Ok(text.clone().into_any());
    }
    from_utf8(text.py(), &utf8(text)?).map(Bound::into_any)
}

fn operate<'py>(
    engine: &Engine,
    operation: Operation,
    object: &Bound<'py, PyAny>,
    operands: &[Bound<'py, PyAny>],
) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let none = || py.None().into_bound(py);
    let truth = |value: bool| PyBool::new(py, value).to_owned().into_any();
    match (operation, operands) {
        (Operation::GetAttr, [name]) => object.getattr(name.cast::<PyString>()?),
        (Operation::SetAttr, [name, value]) => {
            object.setattr(name.cast::<PyString>()?, value).map(|()| none())
        }
        (Operation::GetItem, [key]) => object.get_item(key),
        (Operation::SetItem, [key, value]) => object.set_item(key, value).map(|()| none()),
        (Operation::Len, []) => Ok(PyInt::new(py, object.len()?).into_any()),
        (Operation::Contains, [item]) => object.contains(item).map(truth),
        (Operation::Iter, []) => object.try_iter().map(Bound::into_any),
        (Operation::Next, []) => engine.next(object),
        (Operation::Bool, []) => object.is_truthy().map(truth),
        (Operation::Hash, []) => Ok(PyInt::new(py, object.hash()?).into_any()),
        (Operation::Compare(how), [other]) => object.rich_compare(other, how),
        (Operation::Repr, []) => exact(&object.repr()?),
        (Operation::Str, []) => exact(&object.str()?),
        (Operation::Dir, []) => {
            // A `__dir__` may hold anything; the names in it are told.
            let names = object.dir()?.iter().filter_map(|name| name.cast_into::<PyString>().ok());
            let names: PyResult<Vec<_>> = names.map(|name| exact(&name)).collect();
            Ok(PyList::new(py, names?)?.into_any())
        }
        _ => Err(pyo3::exceptions::PySystemError::new_err("an operation with the wrong operands")),
    }
}
