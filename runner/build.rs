//! Asks the Python that is being linked where its standard library lies, so that the engine never searches PATH.

use std::process::Command;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = pyo3_build_config::get();
    let python = config.executable.as_deref().ok_or("no Python found; set PYO3_PYTHON")?;
    let asked =
        Command::new(python).args(["-I", "-c", "import sys; print(sys.base_prefix, end='')"]).output()?;
    if !asked.status.success() {
        return Err(format!("{python} cannot say where its library is").into());
    }
    println!("cargo::rustc-env=TINYFILES_PYTHON_HOME={}", String::from_utf8(asked.stdout)?);
    println!("cargo::rerun-if-env-changed=PYO3_PYTHON");
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}
