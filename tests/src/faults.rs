//! Faults on demand: a system call that kills or fails, a disk that is full, a process that holds still.
//!
//! strace does the first two: it counts the calls of each thread and tampers with the one it was told to.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::{Installation, Ran};

/// The calls by which a publish changes anything.
pub const CHANGES: &[&str] = &[
    "openat",
    "write",
    "pwrite64",
    "mkdir",
    "linkat",
    "symlink",
    "rename",
    "unlink",
    "unlinkat",
    "rmdir",
    "ftruncate",
    "fchmod",
    "utimensat",
    "fsync",
    "fdatasync",
    "syncfs",
];

/// One call of one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// The system call.
    pub call: &'static str,
    /// Which one of that name in its thread, from 1.
    pub nth: usize,
}

/// A program under strace, on one worker thread so that calls come in the same order each time.
fn strace(plain: &Command, options: &[String]) -> Command {
    let mut command = Command::new("strace");
    command.arg("-qq").args(options).arg("--").arg(plain.get_program()).args(plain.get_args());
    command.env("RAYON_NUM_THREADS", "1").stdin(std::process::Stdio::null());
    command
}

/// What makes strace tamper with a call.
pub fn tampering(Point { call, nth }: &Point, how: &str) -> [String; 3] {
    ["-o/dev/null".to_owned(), format!("-etrace={call}"), format!("-einject={call}:{how}:when={nth}")]
}

/// A program, to be killed as its first thread is about to make that call. What it starts is let be.
pub fn doomed(plain: &Command, point: &Point) -> Command {
    strace(plain, &tampering(point, KILL))
}

const KILL: &str = "signal=SIGKILL";

/// Runs `sitegen` to the end and returns the calls that were made: all of a rare one, `most` of a frequent one, evenly
/// chosen with the first and the last among them.
pub fn points(
    here: &Installation,
    arguments: &[&str],
    calls: &[&'static str],
    most: usize,
) -> Result<Vec<Point>> {
    points_of(here, &here.command(arguments), &["-f"], calls, most)
}

/// The same of any program; `-f` among the options follows what it starts.
pub fn points_of(
    here: &Installation,
    plain: &Command,
    options: &[&str],
    calls: &[&'static str],
    most: usize,
) -> Result<Vec<Point>> {
    let log = here.data("").with_file_name("strace.log");
    let mut all: Vec<String> = options.iter().map(ToString::to_string).collect();
    all.extend(["-o".to_owned(), log.display().to_string(), format!("-etrace={}", calls.join(","))]);
    let ran = Ran::of(&strace(plain, &all).output().context("cannot run strace")?);
    ensure!(ran.code == 0, "{ran:?}");
    let mut counts: HashMap<(String, &'static str), usize> = HashMap::new();
    for line in fs::read_to_string(&log)?.lines() {
        // A line is a thread, if several are followed, then a call, or the rest of one that was interrupted.
        let (thread, rest) = line.split_once(' ').filter(|_| options.contains(&"-f")).unwrap_or(("", line));
        if let Some(call) = calls.iter().find(|c| rest.trim_start().starts_with(&format!("{c}("))) {
            *counts.entry((thread.to_owned(), call)).or_default() += 1;
        }
    }
    let mut deepest: BTreeMap<&'static str, usize> = BTreeMap::new();
    for ((_, call), count) in counts {
        let most = deepest.entry(call).or_default();
        *most = count.max(*most);
    }
    let chosen = |(call, count): (&'static str, usize)| {
        let steps = most.min(count);
        (0..steps)
            .map(move |i| Point { call, nth: if steps < 2 { 1 } else { 1 + i * (count - 1) / (steps - 1) } })
    };
    Ok(deepest.into_iter().flat_map(chosen).collect())
}

/// Runs `sitegen` and kills it as it is about to make that call.
pub fn killed_at(here: &Installation, point: &Point, arguments: &[&str]) -> Result<Ran> {
    tampered(here, point, KILL, arguments)
}

/// Runs `sitegen`; the call fails with that error and does nothing.
pub fn failed_at(here: &Installation, point: &Point, error: &str, arguments: &[&str]) -> Result<Ran> {
    tampered(here, point, &format!("error={error}"), arguments)
}

fn tampered(here: &Installation, point: &Point, how: &str, arguments: &[&str]) -> Result<Ran> {
    let mut options = tampering(point, how).to_vec();
    options.push("-f".to_owned());
    Ok(Ran::of(&strace(&here.command(arguments), &options).output().context("cannot run strace")?))
}
