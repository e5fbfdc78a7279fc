//! Asks the Python that is being linked where its standard library lies, so that the engine never searches PATH, and
//! for the compiled codecs that the worker carries with it, so that it reads no file at all.

use std::env;
use std::error::Error;
use std::path::Path;
use std::process::Command;

/// The modules that CPython cannot start without and does not freeze itself, and the codecs that cost little.
const CODECS: &str = "aliases ascii latin_1 utf_8 utf_8_sig utf_16 utf_16_be utf_16_le utf_32 utf_32_be utf_32_le \
                      raw_unicode_escape unicode_escape cp1252";

/// Writes one file of compiled code for each module into the folder that it is given.
const FREEZE: &str = "\
import encodings, marshal, pathlib, sys
folder, library = pathlib.Path(sys.argv[1]), pathlib.Path(encodings.__file__).parent
for name in ['__init__', *sys.argv[2:]]:
    module = 'encodings' if name == '__init__' else f'encodings.{name}'
    source = (library / f'{name}.py').read_text('utf-8')
    code = compile(source, f'<frozen {module}>', 'exec', dont_inherit=True, optimize=2)
    (folder / module).write_bytes(marshal.dumps(code))
";

fn main() -> Result<(), Box<dyn Error>> {
    let config = pyo3_build_config::get();
    let python = config.executable.as_deref().ok_or("no Python found; set PYO3_PYTHON")?;
    let home = asked(python, "import sys; print(sys.base_prefix, end='')", &[])?;
    println!("cargo::rustc-env=TINYFILES_PYTHON_HOME={home}");

    let folder = env::var("OUT_DIR")?;
    let codecs: Vec<&str> = CODECS.split_whitespace().collect();
    asked(python, FREEZE, &[&[folder.as_str()], &codecs[..]].concat())?;
    let row = |module: &str| {
        let package = module == "encodings";
        format!("(c\"{module}\", {package}, include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{module}\"))),\n")
    };
    let rows: String = codecs.iter().map(|name| row(&format!("encodings.{name}"))).collect();
    std::fs::write(Path::new(&folder).join("codecs.rs"), format!("&[{}{rows}]", row("encodings")))?;

    println!("cargo::rerun-if-env-changed=PYO3_PYTHON");
    println!("cargo::rerun-if-env-changed=PYO3_CONFIG_FILE");
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}

/// What a script prints.
fn asked(python: &str, script: &str, arguments: &[&str]) -> Result<String, Box<dyn Error>> {
    let ran = Command::new(python).args(["-I", "-c", script]).args(arguments).output()?;
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr);
        return Err(format!("{python} cannot tell about its library: {said}").into());
    }
    Ok(String::from_utf8(ran.stdout)?)
}
