//! bandit as a program of this machine: a creator's own check.
//!
//! Started in the temporary folder with an empty environment, fed and read within the bounds of policy, and killed when
//! it takes too long.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Lint, read};

/// Asks the program about a file.
pub(super) fn lint(program: &Path, seconds: u64, name: &str, source: &[u8]) -> Lint {
    let asked = &policy::lint().bandit;
    let install = format!("pip install bandit=={}", asked.version);
    let version = match run(program, seconds, &["--version".to_owned()], b"") {
        Ok((_, output)) => String::from_utf8_lossy(&output).into_owned(),
        Err(why) => return Lint::Held(format!("{why} ({install})")),
    };
    let found =
        version.lines().next().and_then(|l| l.strip_prefix("bandit ")).unwrap_or("of an unknown release");
    if found.trim() != asked.version {
        return Lint::Held(format!(
            "bandit {found} is installed, and only {} counts ({install})",
            asked.version
        ));
    }
    match run(program, seconds, &asked.arguments(), source) {
        Ok((0 | 1, output)) => read(name, &output),
        Ok((code, _)) => Lint::Held(format!("bandit ended with exit code {code}")),
        Err(why) => Lint::Held(why),
    }
}

/// Runs the program with `input` and reads its output, both bounded by policy.
fn run(program: &Path, seconds: u64, arguments: &[String], input: &[u8]) -> Result<(i32, Vec<u8>), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", path)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("bandit cannot be started: {error}"))?;
    let stdin = child.stdin.take();
    let stdout = child.stdout.take();
    let input = input.to_vec();
    // The threads end with the pipes; one that something else still holds open is left behind, not waited for.
    std::thread::spawn(move || stdin.map(|mut pipe| pipe.write_all(&input)));
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut output = Vec::new();
        let is_read = stdout.is_some_and(|pipe| {
            pipe.take(policy::lint().bandit.answer_bytes_max).read_to_end(&mut output).is_ok()
        });
        send.send(is_read.then_some(output))
    });
    let code = wait(&mut child, seconds)?;
    match receive.recv_timeout(Duration::from_secs(1)) {
        Ok(Some(output)) => Ok((code, output)),
        _ => Err("bandit's answer could not be read".to_owned()),
    }
}

/// Waits for the program, but not longer than that.
fn wait(child: &mut Child, seconds: u64) -> Result<i32, String> {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.code().ok_or_else(|| "bandit was killed".to_owned()),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(10)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("bandit took longer than {seconds} seconds"));
            }
            Err(error) => return Err(format!("bandit cannot be waited for: {error}")),
        }
    }
}
