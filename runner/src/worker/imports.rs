//! `import` in the engine: `sys` and `gc` in a safe form, modules that the parent registered, and its loader.
//!
//! Put into the builtins by `engine` as `__import__`. CPython's own import machinery is not asked and its modules are not
//! found: a name that nobody granted is not there (PROTOCOL.md §7.2 has the order in which a loader is asked).

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::exceptions::{PyImportError, PyModuleNotFoundError, PySystemExit, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyList, PyModule, PyString, PyTuple};

use super::{Worker, builtins, lock, memory};

/// What the parent registered.
#[derive(Debug, Default)]
pub(super) struct Modules(HashMap<String, Registered>);

#[derive(Debug)]
struct Registered {
    members: Py<PyDict>,
    source: Option<Py<PyString>>,
}

/// What a name turned out to be.
enum Found<'py> {
    /// One of the worker's own, complete.
    Made(Bound<'py, PyModule>),
    /// Members and a source to run in it; a package or not.
    Source { members: Option<Py<PyDict>>, source: Option<Bound<'py, PyString>>, package: bool },
}

/// What `sys` shows: nothing that reaches into the interpreter or tells of the machine.
const SYS: [&str; 16] = [
    "api_version",
    "byteorder",
    "copyright",
    "exc_info",
    "float_info",
    "float_repr_style",
    "getrecursionlimit",
    "getrefcount",
    "getsizeof",
    "hash_info",
    "hexversion",
    "int_info",
    "intern",
    "maxsize",
    "maxunicode",
    "version_info",
];
/// What `gc` shows: not the objects of others.
const GC: [&str; 8] =
    ["collect", "disable", "enable", "get_count", "get_stats", "get_threshold", "isenabled", "set_threshold"];

/// The features of `__future__`.
const FEATURES: [&str; 10] = [
    "absolute_import",
    "annotations",
    "barry_as_FLUFL",
    "division",
    "generator_stop",
    "generators",
    "nested_scopes",
    "print_function",
    "unicode_literals",
    "with_statement",
];

/// Puts `__import__` in place.
pub(super) fn put(py: Python<'_>, worker: &Arc<Worker>, builtins: &Bound<'_, PyDict>) -> PyResult<()> {
    let shared = Arc::clone(worker);
    let import = PyCFunction::new_closure(py, Some(c"__import__"), None, move |values, options| {
        let call = Call::parse(values, options)?;
        shared.import(&call).map(Bound::unbind)
    })?;
    builtins.set_item("__import__", import)
}

/// The arguments of `__import__`.
struct Call<'py> {
    name: Bound<'py, PyString>,
    globals: Option<Bound<'py, PyAny>>,
    from: Option<Bound<'py, PyAny>>,
    level: usize,
}

impl<'py> Call<'py> {
    fn parse(values: &Bound<'py, PyTuple>, options: Option<&Bound<'py, PyDict>>) -> PyResult<Call<'py>> {
        let argument = |at: usize, name: &str| -> PyResult<Option<Bound<'py, PyAny>>> {
            let named = options.map_or(Ok(None), |o| o.get_item(name))?;
            Ok(values.get_item(at).ok().or(named).filter(|value| !value.is_none()))
        };
        let name = argument(0, "name")?.ok_or_else(|| PyImportError::new_err("__import__() needs a name"))?;
        Ok(Call {
            name: name.cast_into()?,
            globals: argument(1, "globals")?,
            from: argument(3, "fromlist")?,
            level: argument(4, "level")?.map_or(Ok(0), |level| level.extract())?,
        })
    }

    /// The absolute name: `level` packages up from the one that imports, then `name`.
    fn absolute(&self) -> PyResult<String> {
        let name = self.name.extract::<String>()?;
        if self.level == 0 {
            return Ok(name);
        }
        let no_package = || PyImportError::new_err("attempted relative import with no known parent package");
        let package = self.globals.as_ref().and_then(|globals| globals.get_item("__package__").ok());
        let package = package.and_then(|p| p.extract::<String>().ok()).filter(|p| !p.is_empty());
        let mut package = package.ok_or_else(no_package)?;
        for _ in 1..self.level {
            let beyond = || PyImportError::new_err("attempted relative import beyond top-level package");
            let up = package.rfind('.').ok_or_else(beyond)?;
            package.truncate(up);
        }
        Ok(if name.is_empty() { package } else { format!("{package}.{name}") })
    }
}

impl Worker {
    /// Registers a module; what was imported already stays.
    pub(super) fn register(&self, name: String, members: Py<PyDict>, source: Option<Py<PyString>>) {
        let replaced = lock(&self.modules).0.insert(name, Registered { members, source });
        drop(replaced);
    }

    fn import<'py>(self: &Arc<Self>, call: &Call<'py>) -> PyResult<Bound<'py, PyAny>> {
        let py = call.name.py();
        let name = call.absolute()?;
        if name.is_empty() {
            return Err(PyValueError::new_err("Empty module name"));
        }
        let module = self.load(py, &name)?;
        let from = call.from.as_ref().filter(|from| from.is_truthy().unwrap_or(false));
        let Some(from) = from else {
            // `import a.b` binds `a`, as named in the statement.
            let rest = call.name.to_str()?.split_once('.').map_or(0, |(_, rest)| rest.len() + 1);
            return self.load(py, name.get(..name.len() - rest).unwrap_or(&name));
        };
        if module.hasattr("__path__")? {
            self.load_names(&module, &name, from)?;
        }
        Ok(module)
    }

    /// `from package import names`: those that are no attributes may be modules.
    fn load_names<'py>(
        self: &Arc<Self>,
        module: &Bound<'py, PyAny>,
        package: &str,
        names: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        for name in names.try_iter()? {
            let name = name?.cast_into::<PyString>()?;
            if name.to_str()? == "*" {
                if let Ok(all) = module.getattr("__all__") {
                    self.load_names(module, package, &all)?;
                }
            } else if !module.hasattr(&name)? {
                let full = format!("{package}.{}", name.to_str()?);
                match self.load(module.py(), &full) {
                    Err(e)
                        if e.is_instance_of::<PyModuleNotFoundError>(module.py())
                            && is_about(&e, &full, module) => {}
                    other => drop(other?),
                }
            }
        }
        Ok(())
    }

    /// The module of this absolute name, imported now if it was not yet, after its parents.
    fn load<'py>(self: &Arc<Self>, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let modules = self.engine().modules.bind(py);
        if let Some(loaded) = modules.get_item(name)? {
            return Ok(loaded);
        }
        let parent = match name.rsplit_once('.') {
            Some((parent, tail)) => Some((self.load(py, parent)?, parent, tail)),
            None => None,
        };
        if let Some((module, parent, _)) = &parent {
            // Importing the parent may have imported this one.
            if let Some(loaded) = modules.get_item(name)? {
                return Ok(loaded);
            }
            if !module.hasattr("__path__")? {
                return Err(not_found(
                    py,
                    name,
                    &format!("No module named '{name}'; '{parent}' is not a package"),
                ));
            }
        }
        let module = match self.find(py, name)? {
            None => return Err(not_found(py, name, &format!("No module named '{name}'"))),
            Some(Found::Made(module)) => {
                modules.set_item(name, &module)?;
                module.into_any()
            }
            Some(Found::Source { members, source, package }) => {
                let module = memory::unlimited(|| self.module(py, name, members.as_ref(), package))?;
                modules.set_item(name, &module)?;
                if let Some(source) = source
                    && let Err(e) = self.engine().exec_in(&source, &file_of(py, name), &module.dict())
                {
                    modules.del_item(name)?;
                    return Err(e);
                }
                // The code may have put something else in its place.
                modules.get_item(name)?.unwrap_or_else(|| module.into_any())
            }
        };
        if let Some((parent, _, tail)) = parent {
            parent.setattr(tail, &module)?;
        }
        Ok(module)
    }

    fn module<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        members: Option<&Py<PyDict>>,
        package: bool,
    ) -> PyResult<Bound<'py, PyModule>> {
        let module = PyModule::new(py, name)?;
        let own_package = if package { name } else { name.rsplit_once('.').map_or("", |(parent, _)| parent) };
        module.setattr("__package__", own_package)?;
        module.setattr("__builtins__", self.engine().builtins(py))?;
        if package {
            module.setattr("__path__", PyList::empty(py))?;
        }
        if let Some(members) = members {
            module.dict().update(members.bind(py).as_mapping())?;
        }
        Ok(module)
    }

    fn find<'py>(self: &Arc<Self>, py: Python<'py>, name: &str) -> PyResult<Option<Found<'py>>> {
        let settings = self.settings();
        if settings.standard && (name == "sys" || name == "gc") {
            return memory::unlimited(|| self.standard(py, name)).map(|module| Some(Found::Made(module)));
        }
        if name == "__future__" {
            return memory::unlimited(|| future(py)).map(|module| Some(Found::Made(module)));
        }
        let beneath = format!("{name}.");
        let modules = lock(&self.modules);
        let package = modules.0.keys().any(|other| other.starts_with(&beneath));
        let registered = modules
            .0
            .get(name)
            .map(|r| (r.members.clone_ref(py), r.source.as_ref().map(|s| s.clone_ref(py))));
        drop(modules);
        if let Some((members, source)) = registered {
            let source = source.map(|s| s.into_bound(py));
            return Ok(Some(Found::Source { members: Some(members), source, package }));
        }
        if settings.loader {
            for (probe, package, runs) in [
                (format!("{name}.__init__"), true, true),
                (name.to_owned(), false, true),
                (format!("{name}.__namespace__"), true, false),
            ] {
                if let Some(source) = self.ask_loader(py, &probe)? {
                    return Ok(Some(Found::Source {
                        members: None,
                        source: runs.then_some(source),
                        package,
                    }));
                }
            }
        }
        Ok(package.then_some(Found::Source { members: None, source: None, package }))
    }

    /// `sys` or `gc` with what is harmless of it.
    fn standard<'py>(self: &Arc<Self>, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyModule>> {
        let genuine = self.engine().genuine_module(py, name);
        let module = PyModule::new(py, name)?;
        for shown in if name == "sys" { &SYS[..] } else { &GC[..] } {
            if let Ok(value) = genuine.getattr(*shown) {
                module.setattr(*shown, value)?;
            }
        }
        if name == "sys" {
            let version = genuine.getattr("version_info")?;
            let number = |at: usize| version.get_item(at).and_then(|part| part.extract::<u32>());
            module.setattr("version", format!("{}.{}.{}", number(0)?, number(1)?, number(2)?))?;
            module.setattr("modules", self.engine().modules.bind(py))?;
            module.setattr("argv", PyList::new(py, [""])?)?;
            module.setattr("path", PyList::empty(py))?;
            module.setattr("platform", "small_python")?;
            module.setattr("stdout", builtins::stream(py, self)?)?;
            module.setattr("stderr", builtins::stream(py, self)?)?;
            module.setattr("stdin", py.None())?;
            module.setattr("exit", exit(py)?)?;
        }
        Ok(module)
    }
}

/// What `from __future__ import` looks for once the compiler has done what it asks: part of the language, not a grant.
fn future(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    let module = PyModule::new(py, "__future__")?;
    for feature in FEATURES {
        module.setattr(feature, true)?;
    }
    Ok(module)
}

fn exit(py: Python<'_>) -> PyResult<Bound<'_, PyCFunction>> {
    PyCFunction::new_closure(
        py,
        Some(c"exit"),
        None,
        |values: &Bound<'_, PyTuple>, _| -> PyResult<Py<PyAny>> {
            let class = values.py().get_type::<PySystemExit>();
            Err(PyErr::from_value(class.call1(values)?))
        },
    )
}

fn file_of<'py>(py: Python<'py>, name: &str) -> Bound<'py, PyString> {
    PyString::new(py, &format!("<module {name}>"))
}

/// The error with the attribute by which `import` statements tell which name was missing.
fn not_found(py: Python<'_>, name: &str, text: &str) -> PyErr {
    memory::unlimited(|| {
        let error = PyModuleNotFoundError::new_err(text.to_owned());
        let _ = error.value(py).setattr("name", name);
        error
    })
}

fn is_about(error: &PyErr, name: &str, module: &Bound<'_, PyAny>) -> bool {
    let about = error.value(module.py()).getattr("name").and_then(|n| n.extract::<String>());
    about.is_ok_and(|about| about == name)
}
