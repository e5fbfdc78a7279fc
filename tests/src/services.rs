//! The programs behind nginx, for tests that need more than files: `api serve` and `runner serve` on the sockets of an
//! [`Installation`].

use std::io::{BufRead as _, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::{Installation, program, repository};

/// A program that serves on a socket, killed when it goes out of scope.
pub struct Service(Child);

impl Service {
    /// Starts a program and waits until it listens.
    fn start(mut command: Command, socket: &Path) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut here = Self(
            command
                .stdin(Stdio::null())
                .spawn()
                .with_context(|| format!("cannot run {name}; run `cargo build --workspace --bins`"))?,
        );
        while UnixStream::connect(socket).is_err() {
            if let Some(status) = here.0.try_wait()? {
                bail!("{name} ended: {status}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(here)
    }

    /// Its memory, as the kernel counts it.
    pub fn resident_mb(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim_end_matches("kB").trim().parse::<f64>()? / 1024.0)
    }

    /// Asks it to stop and waits until it has.
    pub fn stop(mut self) -> Result<()> {
        Command::new("kill").arg(self.0.id().to_string()).status()?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Installation {
    /// Starts `api serve` and waits until it listens.
    pub fn api(&self) -> Result<Service> {
        let mut command = Command::new(program("api"));
        command.arg("--config").arg(self.config()).arg("serve").stderr(Stdio::null());
        Service::start(command, &self.data("api.sock"))
    }

    /// Starts `runner serve` and waits until its gate is open. What the suite proved is kept for the tests after this one: it
    /// holds for one build, one policy and one kernel.
    pub fn runner(&self) -> Result<Service> {
        self.runner_with(&[])
    }

    /// The same with bandit, for submissions with a function.
    pub fn linting_runner(&self) -> Result<Service> {
        self.runner_with(&["--bandit", &repository().join("target/bandit").to_string_lossy()])
    }

    fn runner_with(&self, options: &[&str]) -> Result<Service> {
        let mut command = Command::new(program("runner"));
        command.arg("serve").args(options).arg("--socket").arg(self.data("runner.sock"));
        let (said, saying) = std::io::pipe()?;
        command.arg("--state").arg(repository().join("target/proved-gate"));
        command.stdout(saying.try_clone()?).stderr(saying);
        let service = Service::start(command, &self.data("runner.sock"))?;
        let mut said = BufReader::new(said);
        let mut line = String::new();
        while !line.starts_with("python open") {
            line.clear();
            ensure!(said.read_line(&mut line)? > 0, "runner ended");
            ensure!(!line.starts_with("python closed:"), "{line}");
        }
        // What else it says is not for this test, but must be taken from the pipe.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Ok(service)
    }
}
