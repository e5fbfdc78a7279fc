//! What a program costs: wall clock, processor and peak memory of one run, as the kernel counts them. For `./dev bench`.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// How a program ran, with everything that it waited for.
pub struct Cost {
    /// Seconds from its start to its end.
    pub wall: f64,
    /// Seconds of processors.
    pub cpu: f64,
    /// The most memory that one process held, in MiB.
    pub peak_mb: f64,
}

/// Runs a program to its end. Python asks the kernel what it cost, which Rust's library does not.
pub fn measured(command: &Command) -> Result<Cost> {
    let script = "import os,sys,time\nnull=[(os.POSIX_SPAWN_OPEN,1,'/dev/null',os.O_WRONLY,0)]\nt=time.monotonic()\n\
                  pid=os.posix_spawnp(sys.argv[1],sys.argv[1:],os.environ,file_actions=null)\n_,s,r=os.wait4(pid,0)\n\
                  print(time.monotonic()-t,r.ru_utime+r.ru_stime,r.ru_maxrss/1024,os.waitstatus_to_exitcode(s))";
    let mut python = Command::new("python3");
    python.args(["-c", script]).arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        python.current_dir(folder);
    }
    let output = python.stderr(Stdio::inherit()).output().context("cannot run python3")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    let [wall, cpu, peak_mb, 0.0] = numbers[..] else { bail!("{command:?} failed: {text}") };
    Ok(Cost { wall, cpu, peak_mb })
}

/// The middle one of three runs, each after `before`.
pub fn median(command: &Command, mut before: impl FnMut() -> Result<()>) -> Result<Cost> {
    let mut runs = Vec::new();
    for _ in 0..3 {
        before()?;
        runs.push(measured(command)?);
    }
    runs.sort_by(|a, b| a.wall.total_cmp(&b.wall));
    Ok(runs.swap_remove(1))
}
