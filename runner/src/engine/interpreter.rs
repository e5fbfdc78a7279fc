//! How CPython is started: with the library of the machine for the zygote, with nothing but what is compiled in for the
//! worker.
//!
//! Called once in a process, by `engine` and by `worker`. It only starts; what runs in it is its callers' business.

#![expect(unsafe_code, reason = "starting CPython has no safe form")]

use std::ffi::CStr;

use pyo3::ffi;

/// Where the linked Python keeps its library.
const HOME: &str = env!("TINYFILES_PYTHON_HOME");

/// Codecs as compiled code: name, whether it is a package, code. `build.rs` makes the list.
const CODECS: &[(&CStr, bool, &[u8])] = include!(concat!(env!("OUT_DIR"), "/codecs.rs"));

/// What an interpreter can import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// The standard library of the machine.
    Installed,
    /// What CPython needs to start, from this program's own memory. No file is read.
    Embedded,
}

/// Modules written in C that CPython needs to start or that the worker's engine is made with. The others that the
/// linked library holds are taken off its list, so that a name is not enough to get at them.
const BUILT_IN: &[&CStr] = &[
    c"_abc",
    c"_ast",
    c"_codecs",
    c"_imp",
    c"_io",
    c"_signal",
    c"_thread",
    c"_warnings",
    c"_weakref",
    c"builtins",
    c"gc",
    c"marshal",
    c"posix",
    c"sys",
    c"time",
    c"unicodedata",
];

/// Starts CPython, isolated from environment and user files. The error is CPython's own words.
pub fn start(library: Library) -> Result<(), String> {
    if library == Library::Embedded {
        preconfigure()?;
        embed();
    }
    let mut config = std::mem::MaybeUninit::<ffi::PyConfig>::zeroed();
    // SAFETY: PyConfig_InitIsolatedConfig fills the whole struct behind the pointer.
    unsafe { ffi::PyConfig_InitIsolatedConfig(config.as_mut_ptr()) };
    // SAFETY: filled by the line above.
    let mut config = unsafe { config.assume_init() };
    config.site_import = 0;
    config.install_signal_handlers = 0;
    config.write_bytecode = 0;
    config.configure_c_stdio = 0;
    if library == Library::Installed {
        set_text(&mut config, |c| &raw mut c.home, HOME)?;
    } else {
        // With every path given, CPython looks for none.
        config.module_search_paths_set = 1;
        let fields: [fn(&mut ffi::PyConfig) -> *mut *mut libc::wchar_t; 8] = [
            |c| &raw mut c.home,
            |c| &raw mut c.program_name,
            |c| &raw mut c.executable,
            |c| &raw mut c.base_executable,
            |c| &raw mut c.prefix,
            |c| &raw mut c.base_prefix,
            |c| &raw mut c.exec_prefix,
            |c| &raw mut c.base_exec_prefix,
        ];
        for field in fields {
            set_text(&mut config, field, "")?;
        }
    }
    set_text(&mut config, |c| &raw mut c.stdio_encoding, "utf-8")?;
    set_text(&mut config, |c| &raw mut c.stdio_errors, "backslashreplace")?;
    // SAFETY: the configuration is complete, and no interpreter runs in this process yet.
    let status = unsafe { ffi::Py_InitializeFromConfig(&raw const config) };
    finish(status)?;
    // SAFETY: the configuration was initialised above and is not used again.
    unsafe { ffi::PyConfig_Clear(&raw mut config) };
    // SAFETY: this thread holds the interpreter that was just initialised; `Python::attach` takes it from here on.
    let _ = unsafe { ffi::PyEval_SaveThread() };
    Ok(())
}

/// UTF-8 everywhere, so that no locale is looked at.
fn preconfigure() -> Result<(), String> {
    let mut config = std::mem::MaybeUninit::<ffi::PyPreConfig>::zeroed();
    // SAFETY: PyPreConfig_InitIsolatedConfig fills the whole struct behind the pointer.
    unsafe { ffi::PyPreConfig_InitIsolatedConfig(config.as_mut_ptr()) };
    // SAFETY: filled by the line above.
    let mut config = unsafe { config.assume_init() };
    config.utf8_mode = 1;
    // SAFETY: the configuration is complete, and no interpreter runs in this process yet.
    finish(unsafe { ffi::Py_PreInitialize(&raw const config) })
}

/// Puts the codecs on CPython's list of frozen modules and shortens its list of built-in ones.
fn embed() {
    let mut frozen: Vec<ffi::_frozen> = CODECS
        .iter()
        .map(|(name, package, code)| {
            // SAFETY: every field is a number or a pointer that may be null.
            let mut row: ffi::_frozen = unsafe { std::mem::zeroed() };
            let size = i32::try_from(code.len()).unwrap_or(0);
            row.name = name.as_ptr();
            row.code = code.as_ptr();
            row.size = size;
            row.is_package = i32::from(*package);
            row
        })
        .collect();
    // SAFETY: a row of zeroes ends the list.
    frozen.push(unsafe { std::mem::zeroed() });
    // SAFETY: no interpreter runs yet, so nobody reads the list; the new one is never freed.
    unsafe { ffi::PyImport_FrozenModules = frozen.leak().as_ptr() };

    let mut kept: Vec<ffi::_inittab> = Vec::new();
    // SAFETY: the list of the linked library, read before any interpreter runs.
    let mut row = unsafe { ffi::PyImport_Inittab };
    loop {
        // SAFETY: the list ends with a row without a name, where this loop ends too.
        let found = unsafe { row.read() };
        if found.name.is_null() {
            kept.push(found);
            break;
        }
        // SAFETY: names of the list are NUL-terminated and static.
        let name = unsafe { CStr::from_ptr(found.name) };
        if BUILT_IN.contains(&name) {
            kept.push(found);
        }
        // SAFETY: the row before was not the last.
        row = unsafe { row.add(1) };
    }
    // SAFETY: as above; the new list is never freed.
    unsafe { ffi::PyImport_Inittab = kept.leak().as_mut_ptr() };
}

fn set_text(
    config: &mut ffi::PyConfig,
    field: impl Fn(&mut ffi::PyConfig) -> *mut *mut libc::wchar_t,
    text: &str,
) -> Result<(), String> {
    let wide: Vec<libc::wchar_t> =
        text.chars().map(|c| libc::wchar_t::try_from(u32::from(c)).unwrap_or(0)).chain([0]).collect();
    let target = field(config);
    // SAFETY: `target` is a field of the initialised `config`; `wide` ends in zero and is copied by the call.
    finish(unsafe { ffi::PyConfig_SetString(std::ptr::from_mut(config), target, wide.as_ptr()) })
}

fn finish(status: ffi::PyStatus) -> Result<(), String> {
    // SAFETY: PyStatus_Exception reads the value that CPython returned.
    if unsafe { ffi::PyStatus_Exception(status) } == 0 {
        return Ok(());
    }
    if status.err_msg.is_null() {
        return Err("no reason given".to_owned());
    }
    // SAFETY: a message of CPython is a static, NUL-terminated string.
    Err(unsafe { CStr::from_ptr(status.err_msg) }.to_string_lossy().into_owned())
}
