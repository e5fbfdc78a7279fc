//! One call in CPython: code, inputs and answer on its side of the boundary.
//!
//! The zygote calls [`Engine::start`] once; after its fork a child calls [`Engine::after_fork`] and then
//! [`Engine::serve`], once. Inputs become Python values and the answer becomes JSON here, in Rust, without running a
//! line of user code on the way; what needs Python to say is in `prelude.py`.
//! It confines nothing and trusts nothing: user code shares this process and its answer is a claim.
//!
//! This folder is the CPython boundary, the one place beside `sys` with unsafe code: `interpreter` starts CPython for the
//! zygote and for `worker`, whose limits inside it are `memory` and `steps`.

#![expect(unsafe_code, reason = "one look into an int has no safe form")]

pub mod interpreter;
pub(crate) mod memory;
pub(crate) mod steps;

use std::ffi::CString;

use policy::python::Python as Lists;
use pyo3::exceptions::PyException;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::json::{self, Build, JsonError};
use crate::wire::{Raised, Reply, Request};
use interpreter::Library;

const PRELUDE: &str = include_str!("../prelude.py");
const LINTER: &str = include_str!("../linter.py");

/// What is loaded before the first call, and whether imports are guarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// As a work meets it: the safe list, and a guard that names the rule.
    Guarded,
    /// The researcher's door: the whole standard library and no guard.
    Bare,
    /// bandit, and nothing that is submitted is ever run.
    Lint,
}

impl Mode {
    /// The longest answer, in bytes.
    pub fn answer_bytes_max(self) -> usize {
        let bytes = match self {
            Mode::Guarded | Mode::Bare => policy::limits().python.output_bytes_max,
            Mode::Lint => policy::lint().bandit.answer_bytes_max,
        };
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// The longest time that a child may live, in seconds.
    pub fn wall_seconds_max(self) -> u32 {
        match self {
            Mode::Guarded | Mode::Bare => policy::limits().python.wall_seconds_max,
            Mode::Lint => policy::lint().bandit.seconds_max,
        }
    }
}

/// Why the interpreter did not start.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// CPython said so.
    #[error("CPython did not start: {0}")]
    Start(String),
    /// The prelude failed.
    #[error("the prelude failed: {0}")]
    Prelude(#[from] PyErr),
    /// bandit is not there, or is another release.
    #[error("bandit was not loaded: {0}")]
    Linter(PyErr),
    /// A module of the safe list is not there.
    #[error("modules of the safe list are missing: {0}")]
    Missing(String),
}

/// A started interpreter, in a process with one thread.
#[derive(Debug)]
pub struct Engine {
    mode: Mode,
    prelude: Py<PyModule>,
    reseed: Py<PyAny>,
    builtins: Py<PyDict>,
    linter: Option<Linter>,
}

/// bandit, loaded.
#[derive(Debug)]
struct Linter {
    module: Py<PyModule>,
    main: Py<PyAny>,
}

/// The bounds of an answer.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Bytes of its JSON.
    pub output_bytes_max: usize,
    /// Levels of nesting.
    pub depth_max: u32,
}

impl Engine {
    /// Starts CPython, isolated from environment and user files, and loads the modules of `mode`.
    pub fn start(mode: Mode, lists: &Lists) -> Result<Engine, EngineError> {
        interpreter::start(Library::Installed).map_err(EngineError::Start)?;
        Python::attach(|py| {
            let code = CString::new(PRELUDE).map_err(|e| EngineError::Start(e.to_string()))?;
            let prelude = PyModule::from_code(py, &code, c"prelude.py", c"_prelude")?;
            py.import("sys")?.getattr("modules")?.del_item("_prelude").or_else(|e| {
                if e.is_instance_of::<pyo3::exceptions::PyKeyError>(py) { Ok(()) } else { Err(e) }
            })?;
            let names: Vec<&str> =
                lists.safe.modules.iter().chain(&lists.safe.inner).map(String::as_str).collect();
            let missing: Vec<String> = prelude.call_method1("warm", (names,))?.extract()?;
            if !missing.is_empty() {
                return Err(EngineError::Missing(missing.join(", ")));
            }
            let builtins = match mode {
                Mode::Guarded => prelude.call_method1("guard", guard_arguments(py, lists)?)?,
                Mode::Bare => {
                    prelude.call_method0("everything")?;
                    py.import("builtins")?.dict().into_any()
                }
                Mode::Lint => py.import("builtins")?.dict().into_any(),
            };
            let builtins = builtins.cast_into::<PyDict>().map_err(|e| EngineError::Start(e.to_string()))?;
            let reseed = py.import("random")?.getattr("seed")?.unbind();
            Ok(Engine { mode, prelude: prelude.unbind(), reseed, builtins: builtins.unbind(), linter: None })
        })
    }

    /// Loads bandit from `folder`, where its environment keeps packages.
    pub fn load_linter(&mut self, folder: &str) -> Result<(), EngineError> {
        self.linter = Some(Python::attach(|py| {
            let code = CString::new(LINTER).map_err(|e| EngineError::Start(e.to_string()))?;
            let module = PyModule::from_code(py, &code, c"linter.py", c"_linter")?;
            let version = &policy::lint().bandit.version;
            let main = module.call_method1("load", (folder, version)).map_err(EngineError::Linter)?;
            Ok::<_, EngineError>(Linter { module: module.unbind(), main: main.unbind() })
        })?);
        Ok(())
    }

    /// Forgets the machine's paths and freezes what is loaded. The last thing before the first fork.
    pub fn seal(&self) -> Result<(), EngineError> {
        Python::attach(|py| self.prelude.bind(py).call_method0("seal").map(|_| ()).map_err(EngineError::from))
    }

    /// Lives through calls of our own, so that caches are full, code is specialised and the heap is sorted *before* the
    /// fork: what a child then only reads it shares with the zygote and need not copy.
    pub fn rehearse(&self, bounds: Bounds) -> Result<(), EngineError> {
        const ROUNDS: usize = 24;
        const SOURCE: &[u8] = include_bytes!("../rehearsal.py");
        for _ in 0..ROUNDS {
            self.after_fork();
            let Reply::Compiled(code) = self.serve(Request::Compile { source: SOURCE }, bounds) else {
                return Err(EngineError::Start("the rehearsal does not compile".to_owned()));
            };
            let inputs = br#"{"a": [1, 2.5, "x", null, true], "fail": false}"#;
            let answered = self.serve(Request::Run { code: &code, inputs }, bounds);
            let raised = self.serve(Request::Run { code: &code, inputs: br#"{"fail": true}"# }, bounds);
            if !matches!((answered, raised), (Reply::Answer(_), Reply::Raised(_))) {
                return Err(EngineError::Start("the rehearsal does not run".to_owned()));
            }
            if self.linter.is_some()
                && !matches!(self.serve(Request::Lint { source: SOURCE }, bounds), Reply::Answer(_))
            {
                return Err(EngineError::Start("bandit does not lint the rehearsal".to_owned()));
            }
        }
        Ok(())
    }

    /// What a child must do to be another process than its siblings: seed `random` afresh from the kernel.
    ///
    /// This is *instead of* `PyOS_AfterFork_Child`, whose work is to make locks anew that another thread may have held
    /// and to forget that thread: the zygote has one thread and holds none, and its hooks are `random`'s and
    /// `threading`'s, of which the second mends the same. Leaving it out saves a hundred copied pages a call.
    pub fn after_fork(&self) {
        Python::attach(|py| {
            // Seeding from the kernel has no way to fail but a kernel without getrandom.
            let _ = self.reseed.call0(py);
        });
    }

    /// Does what `request` says. Everything that can go wrong is part of the reply.
    pub fn serve(&self, request: Request<'_>, bounds: Bounds) -> Reply {
        Python::attach(|py| {
            let reply = match request {
                Request::Compile { source } => self.compile(py, source).map(Reply::Compiled),
                Request::Run { code, inputs } => self.run(py, code, inputs, bounds),
                Request::Lint { source } => self.lint(py, source).map(Reply::Answer),
            };
            let reply = reply.unwrap_or_else(|e| self.describe(py, &e));
            // What cannot be flushed is lost with the process; the reply stands.
            let _ = self.prelude.bind(py).call_method0("flush");
            reply
        })
    }

    fn compile(&self, py: Python<'_>, source: &[u8]) -> PyResult<Vec<u8>> {
        let source = std::str::from_utf8(source).unwrap_or_default();
        let code = self.prelude.bind(py).call_method1("compiled", (source, self.mode == Mode::Bare))?;
        Ok(code.cast_into::<PyBytes>()?.as_bytes().to_vec())
    }

    fn lint(&self, py: Python<'_>, source: &[u8]) -> PyResult<Vec<u8>> {
        let linter = self.linter.as_ref().ok_or_else(|| PyException::new_err("bandit is not loaded"))?;
        let asked = (linter.main.bind(py), policy::lint().bandit.arguments(), PyBytes::new(py, source));
        let answer = linter.module.bind(py).call_method1("lint", asked)?;
        Ok(answer.cast_into::<PyBytes>()?.as_bytes().to_vec())
    }

    fn run(&self, py: Python<'_>, code: &[u8], inputs: &[u8], bounds: Bounds) -> PyResult<Reply> {
        let inputs = json::parse(inputs, bounds.depth_max, &mut Values { py })
            .map_err(|e| PyException::new_err(e.to_string()))?;
        let code = PyBytes::new(py, code);
        let answer = self.prelude.bind(py).call_method1("call", (code, self.builtins.bind(py), inputs))?;
        let mut writer = Writer { out: String::with_capacity(256), bounds, open: Vec::new() };
        Ok(match writer.value(&answer) {
            Ok(()) => Reply::Answer(writer.out.into_bytes()),
            Err(e) => Reply::BadAnswer { path: e.path(), why: e.why },
        })
    }

    fn describe(&self, py: Python<'_>, error: &PyErr) -> Reply {
        let described = self
            .prelude
            .bind(py)
            .call_method1("describe", (error.clone_ref(py).into_value(py),))
            .and_then(|d| d.extract::<(String, String, u32, Vec<(u32, String)>)>());
        Reply::Raised(match described {
            Ok((kind, message, line, frames)) => Raised { kind, message, line, frames },
            // Names and messages with lone surrogates, or a prelude that the function has broken.
            Err(_) => Raised { kind: "Exception".to_owned(), ..Raised::default() },
        })
    }
}

type GuardArguments<'py> = (Vec<String>, Bound<'py, PyDict>, Bound<'py, PyDict>);

fn guard_arguments<'py>(py: Python<'py>, lists: &Lists) -> PyResult<GuardArguments<'py>> {
    let (modules, calls) = (PyDict::new(py), PyDict::new(py));
    for group in lists.forbidden.values() {
        for module in &group.modules {
            modules.set_item(module, (&group.rule, &group.words))?;
        }
        for call in &group.calls {
            calls.set_item(call, (&group.rule, &group.words))?;
        }
    }
    Ok((lists.safe.modules.clone(), modules, calls))
}

/// Makes Python values of JSON.
struct Values<'py> {
    py: Python<'py>,
}

fn no_memory(_: PyErr) -> JsonError {
    JsonError::here("not enough memory")
}

impl<'py> Build for Values<'py> {
    type Value = Bound<'py, PyAny>;

    fn null(&mut self) -> Self::Value {
        self.py.None().into_bound(self.py)
    }

    fn boolean(&mut self, value: bool) -> Self::Value {
        PyBool::new(self.py, value).to_owned().into_any()
    }

    fn integer(&mut self, digits: &str) -> Result<Self::Value, JsonError> {
        if let Ok(small) = digits.parse::<i64>() {
            return Ok(PyInt::new(self.py, small).into_any());
        }
        self.py.get_type::<PyInt>().call1((digits,)).map_err(no_memory)
    }

    fn float(&mut self, value: f64) -> Self::Value {
        PyFloat::new(self.py, value).into_any()
    }

    fn string(&mut self, text: &str) -> Self::Value {
        PyString::new(self.py, text).into_any()
    }

    fn list(&mut self, items: Vec<Self::Value>) -> Result<Self::Value, JsonError> {
        Ok(PyList::new(self.py, items).map_err(no_memory)?.into_any())
    }

    fn object(&mut self, members: Vec<(String, Self::Value)>) -> Result<Self::Value, JsonError> {
        let dict = PyDict::new(self.py);
        for (key, value) in members {
            dict.set_item(key, value).map_err(no_memory)?;
        }
        Ok(dict.into_any())
    }
}

/// Makes JSON of Python values, by what they are in memory: no method of theirs is called.
struct Writer {
    out: String,
    bounds: Bounds,
    /// The containers around the value, to see cycles.
    open: Vec<*mut ffi::PyObject>,
}

impl Writer {
    fn value(&mut self, value: &Bound<'_, PyAny>) -> Result<(), JsonError> {
        if self.out.len() > self.bounds.output_bytes_max {
            return Err(JsonError::here(format!("more than {} bytes by here", self.bounds.output_bytes_max)));
        }
        if value.is_none() {
            self.out.push_str("null");
        } else if let Ok(boolean) = value.cast::<PyBool>() {
            self.out.push_str(if boolean.is_true() { "true" } else { "false" });
        } else if let Ok(integer) = value.cast::<PyInt>() {
            self.integer(integer)?;
        } else if let Ok(float) = value.cast::<PyFloat>() {
            let float = float.value();
            if !float.is_finite() {
                return Err(JsonError::here(format!("{float} is not a number of JSON")));
            }
            self.out.push_str(&format!("{float:?}"));
        } else if let Ok(text) = value.cast::<PyString>() {
            self.string(text)?;
        } else if let Ok(list) = value.cast::<PyList>() {
            self.enter(value)?;
            self.items(list.iter())?;
        } else if let Ok(tuple) = value.cast::<PyTuple>() {
            self.enter(value)?;
            self.items(tuple.iter())?;
        } else if let Ok(dict) = value.cast::<PyDict>() {
            self.enter(value)?;
            self.members(dict)?;
        } else {
            let kind = value.get_type().name().map(|n| n.to_string()).unwrap_or_default();
            return Err(JsonError::here(format!("a value of type {kind}")));
        }
        Ok(())
    }

    fn enter(&mut self, value: &Bound<'_, PyAny>) -> Result<(), JsonError> {
        if self.open.contains(&value.as_ptr()) {
            return Err(JsonError::here("it contains itself"));
        }
        if self.open.len() >= usize::try_from(self.bounds.depth_max).unwrap_or(0) {
            return Err(JsonError::here("nested too deeply"));
        }
        self.open.push(value.as_ptr());
        Ok(())
    }

    fn integer(&mut self, value: &Bound<'_, PyInt>) -> Result<(), JsonError> {
        if let Ok(small) = value.extract::<i64>() {
            self.out.push_str(&small.to_string());
            return Ok(());
        }
        // SAFETY: PyNumber_ToBase reads an int that is alive for the call and returns a new reference or null.
        let text = unsafe { ffi::PyNumber_ToBase(value.as_ptr(), 10) };
        // SAFETY: the new reference is owned by nobody else; null means that an exception is set.
        let text = unsafe { Bound::from_owned_ptr_or_err(value.py(), text) };
        let text = text.and_then(|t| t.extract::<String>());
        match text {
            Ok(text) if text.len() <= json::INTEGER_DIGITS_MAX => self.out.push_str(&text),
            _ => {
                let most = json::INTEGER_DIGITS_MAX;
                return Err(JsonError::here(format!("an integer of more than {most} digits")));
            }
        }
        Ok(())
    }

    fn string(&mut self, text: &Bound<'_, PyString>) -> Result<(), JsonError> {
        let text = text.to_str().map_err(|_| JsonError::here("a lone surrogate in a string"))?;
        json::write_string(&mut self.out, text);
        Ok(())
    }

    fn items<'py>(&mut self, items: impl Iterator<Item = Bound<'py, PyAny>>) -> Result<(), JsonError> {
        self.out.push('[');
        for (index, item) in items.enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            self.value(&item).map_err(|e| e.in_list(index))?;
        }
        self.out.push(']');
        self.open.pop();
        Ok(())
    }

    fn members(&mut self, dict: &Bound<'_, PyDict>) -> Result<(), JsonError> {
        self.out.push('{');
        for (index, (key, value)) in dict.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            let Ok(key) = key.cast::<PyString>() else {
                let kind = key.get_type().name().map(|n| n.to_string()).unwrap_or_default();
                return Err(JsonError::here(format!("a key of type {kind}")));
            };
            self.string(key)?;
            self.out.push(':');
            self.value(&value).map_err(|e| e.in_object(key.to_str().unwrap_or("?")))?;
        }
        self.out.push('}');
        self.open.pop();
        Ok(())
    }
}
