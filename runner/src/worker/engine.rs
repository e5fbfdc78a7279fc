//! The namespace that code runs in, and running it.
//!
//! Made once at the start, used by `turn`. Sources are compiled and run by CPython's own `compile`, `eval` and `exec`, in
//! one dict of globals whose builtins are a copy of CPython's with what is left out and put in by `builtins`.

use std::sync::Arc;

use pyo3::exceptions::{PyKeyError, PyNameError, PySyntaxError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyModule, PyString, PyTuple};

use super::{Worker, builtins, imports};

/// Builtins that make no sense here: they would read a terminal, start a debugger, or are for a prompt.
const LEFT_OUT: [&str; 8] =
    ["breakpoint", "copyright", "credits", "exit", "help", "input", "license", "quit"];

/// What the worker needs of a started interpreter.
#[derive(Debug)]
pub(super) struct Engine {
    globals: Py<PyDict>,
    builtins: Py<PyDict>,
    genuine: Py<PyDict>,
    compile: Py<PyAny>,
    eval: Py<PyAny>,
    exec: Py<PyAny>,
    syntax: Syntax,
    /// CPython's `sys` and `gc`. An import while engine code runs would be the engine's own.
    sys: Py<PyModule>,
    gc: Py<PyModule>,
    next: Py<PyAny>,
    /// Modules that code has imported.
    pub(super) modules: Py<PyDict>,
}

/// What is needed to take the last expression off a source.
#[derive(Debug)]
struct Syntax {
    module: Py<PyAny>,
    expression: Py<PyAny>,
    statement: Py<PyAny>,
    only_ast: Py<PyAny>,
    no_flags: Py<PyAny>,
}

impl Engine {
    /// Prepares the interpreter that was just started.
    pub(super) fn prepare(py: Python<'_>, worker: &Arc<Worker>) -> PyResult<Engine> {
        let sys = py.import("sys")?;
        // Nothing of CPython's own is written to the pipes or read from them.
        for stream in ["stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__"] {
            sys.setattr(stream, py.None())?;
        }
        let genuine = py.import("builtins")?.dict();
        let own = genuine.copy()?;
        for name in LEFT_OUT {
            if own.contains(name)? {
                own.del_item(name)?;
            }
        }
        builtins::put(py, worker, &own)?;
        imports::put(py, worker, &own)?;
        let globals = PyDict::new(py);
        globals.set_item("__name__", "__main__")?;
        globals.set_item("__builtins__", &own)?;
        let of = |name: &str| genuine.as_any().get_item(name).map(Bound::unbind);
        // What `"\N{BULLET}"` takes is looked up once, by an import that the engine's own would not satisfy.
        let named = py
            .import("unicodedata")
            .and_then(|_| genuine.as_any().get_item("eval")?.call1(("'\\N{BULLET}'",)));
        // A library without these names leaves them out of the language.
        drop(named);
        let ast = py.import("_ast")?;
        let number = |value: i32| value.into_pyobject(py).map(|v| v.into_any().unbind()).map_err(PyErr::from);
        Ok(Engine {
            globals: globals.unbind(),
            builtins: own.unbind(),
            compile: of("compile")?,
            eval: of("eval")?,
            exec: of("exec")?,
            syntax: Syntax {
                module: ast.getattr("Module")?.unbind(),
                expression: ast.getattr("Expression")?.unbind(),
                statement: ast.getattr("Expr")?.unbind(),
                only_ast: ast.getattr("PyCF_ONLY_AST")?.unbind(),
                no_flags: number(0)?,
            },
            next: of("next")?,
            genuine: genuine.unbind(),
            gc: py.import("gc")?.unbind(),
            sys: sys.unbind(),
            modules: PyDict::new(py).unbind(),
        })
    }

    /// CPython's builtins, as they were.
    pub(super) fn genuine<'py>(&self, py: Python<'py>) -> &Bound<'py, PyDict> {
        self.genuine.bind(py)
    }

    /// CPython's `sys` or `gc`.
    pub(super) fn genuine_module<'py>(&self, py: Python<'py>, name: &str) -> &Bound<'py, PyModule> {
        if name == "sys" { self.sys.bind(py) } else { self.gc.bind(py) }
    }

    /// The next item of an iterator, or StopIteration.
    pub(super) fn next<'py>(&self, iterator: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.next.bind(iterator.py()).call1((iterator,))
    }

    /// The builtins of code in the engine.
    pub(super) fn builtins<'py>(&self, py: Python<'py>) -> &Bound<'py, PyDict> {
        self.builtins.bind(py)
    }

    /// Runs a source.
    pub(super) fn exec<'py>(
        &self,
        source: &Bound<'py, PyString>,
        filename: &Bound<'py, PyString>,
    ) -> PyResult<()> {
        let py = source.py();
        self.exec_in(source, filename, self.globals.bind(py))
    }

    /// Runs a source in another namespace.
    pub(super) fn exec_in<'py>(
        &self,
        source: &Bound<'py, PyString>,
        filename: &Bound<'py, PyString>,
        namespace: &Bound<'py, PyDict>,
    ) -> PyResult<()> {
        let py = source.py();
        let code = self.compiled(source.as_any(), filename, intern!(py, "exec"), &self.syntax.no_flags)?;
        self.exec.bind(py).call1((code, namespace)).map(|_| ())
    }

    /// Runs a source. The value of its last statement, if that is an expression.
    pub(super) fn eval<'py>(
        &self,
        source: &Bound<'py, PyString>,
        filename: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = source.py();
        let eval = |code| self.eval.bind(py).call1((code, self.globals.bind(py)));
        // Most sources are one expression. One that begins with a blank would be an error as a file.
        if !source.to_str().is_ok_and(|text| text.starts_with([' ', '\t', '\x0c'])) {
            match self.compiled(source.as_any(), filename, intern!(py, "eval"), &self.syntax.no_flags) {
                Ok(code) => return eval(code),
                Err(e) if e.is_instance_of::<PySyntaxError>(py) => {}
                Err(e) => return Err(e),
            }
        }
        let tree = self.compiled(source.as_any(), filename, intern!(py, "exec"), &self.syntax.only_ast)?;
        let statements = tree.getattr(intern!(py, "body"))?.cast_into::<PyList>()?;
        let last = match statements.len().checked_sub(1) {
            Some(last) => statements.get_item(last)?,
            None => return Ok(py.None().into_bound(py)),
        };
        let is_expression = last.is_instance(self.syntax.statement.bind(py))?;
        if is_expression {
            statements.del_item(statements.len() - 1)?;
        }
        let module = self.syntax.module.bind(py).call1((statements, PyList::empty(py)))?;
        let code = self.compiled(&module, filename, intern!(py, "exec"), &self.syntax.no_flags)?;
        // Both are compiled before either runs.
        let value = if is_expression {
            let expression = self.syntax.expression.bind(py).call1((last.getattr(intern!(py, "value"))?,))?;
            Some(self.compiled(&expression, filename, intern!(py, "eval"), &self.syntax.no_flags)?)
        } else {
            None
        };
        self.exec.bind(py).call1((code, self.globals.bind(py)))?;
        value.map_or_else(|| Ok(py.None().into_bound(py)), eval)
    }

    fn compiled<'py>(
        &self,
        source: &Bound<'py, PyAny>,
        filename: &Bound<'py, PyString>,
        mode: &Bound<'py, PyString>,
        flags: &Py<PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = source.py();
        self.compile.bind(py).call1((source, filename, mode, flags, true))
    }

    /// A global, or a builtin.
    pub(super) fn get<'py>(&self, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        let py = name.py();
        let found = self.globals.bind(py).get_item(name)?;
        let found = found.map_or_else(|| self.builtins.bind(py).get_item(name), |f| Ok(Some(f)))?;
        found.ok_or_else(|| PyKeyError::new_err((name.clone().unbind(),)))
    }

    /// The same for a call, which fails as a call in the engine would.
    pub(super) fn callee<'py>(&self, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        self.get(name).map_err(|e| {
            if e.is_instance_of::<PyKeyError>(name.py()) {
                PyNameError::new_err(format!("name '{name}' is not defined"))
            } else {
                e
            }
        })
    }

    /// Sets a global.
    pub(super) fn set<'py>(&self, name: &Bound<'py, PyString>, value: &Bound<'py, PyAny>) -> PyResult<()> {
        self.globals.bind(name.py()).set_item(name, value)
    }

    /// Deletes a global.
    pub(super) fn del(&self, name: &Bound<'_, PyString>) -> PyResult<()> {
        self.globals.bind(name.py()).del_item(name)
    }

    /// Calls with arguments that the parent sent.
    pub(super) fn call<'py>(
        callee: &Bound<'py, PyAny>,
        arguments: &Bound<'py, PyTuple>,
        named: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        callee.call(arguments, if named.is_empty() { None } else { Some(named) })
    }
}
