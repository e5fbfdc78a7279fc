//! A Python function is read by bandit on a creator's machine and by the runner's own on the server, with one answer.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tests::{program, repository};

/// A runner that is killed with the test.
struct Runner(Child);

impl Drop for Runner {
    fn drop(&mut self) {
        // Either may find that it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a runner and waits until its suite has passed.
fn open_runner(folder: &Path) -> Result<Runner> {
    let mut command = Command::new(program("runner"));
    command.arg("serve").arg("--socket").arg(folder.join("socket")).arg("--state").arg(folder.join("state"));
    command.arg("--bandit").arg(repository().join("target/bandit"));
    let mut runner = Runner(command.stdout(Stdio::piped()).spawn().context("cannot start the runner")?);
    let stdout = runner.0.stdout.take().context("no standard output")?;
    let line = BufReader::new(stdout).lines().next().context("the runner ended before it was open")??;
    ensure!(line.starts_with("python open"), "{line}");
    Ok(runner)
}

/// What `intake check` says about a file, and how it ended.
fn check(file: &Path, arguments: &[&str]) -> Result<(Option<i32>, Value)> {
    let path =
        std::env::join_paths([repository().join("target/bandit/bin"), "/usr/bin".into(), "/bin".into()])?;
    let output = Command::new(program("intake"))
        .arg("check")
        .arg(file)
        .arg("--json")
        .args(arguments)
        .env("PATH", path)
        .output()?;
    Ok((output.status.code(), serde_json::from_slice(&output.stdout)?))
}

#[test]
fn the_runner_and_the_program_find_the_same() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("socket").display().to_string();
    let runner = open_runner(folder.path())?;
    for (name, source, code) in [
        ("plain.py", "def run(inputs):\n    return inputs\n", 0),
        ("dice.py", "import random\n\n\ndef run(inputs):\n    return random.randint(1, 6)\n", 0),
        (
            "bad.py",
            "def run(inputs):\n    assert inputs  # nosec\n    password = 'hunter2'\n    return password\n",
            1,
        ),
        ("broken.py", "def run(:\n", 1),
    ] {
        let file = folder.path().join(name);
        std::fs::write(&file, source)?;
        let by_program = check(&file, &[])?;
        assert_eq!(check(&file, &["--runner", &socket])?, by_program, "{name}");
        assert_eq!(by_program.0, Some(code), "{name}: {}", by_program.1);
    }
    let bad = check(&folder.path().join("bad.py"), &["--runner", &socket])?.1.to_string();
    assert!(bad.contains("B101") && bad.contains("B105"), "{bad}");
    drop(runner);
    let (code, held) = check(&folder.path().join("plain.py"), &["--runner", &socket])?;
    assert_eq!((code, &held["verdict"]), (Some(4), &Value::from("held")), "{held}");
    Ok(())
}
