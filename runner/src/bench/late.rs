//! By how much bad input outlives its deadline, and how it ends.
//!
//! Used by the bench. The deadline is a short one, so that a minute is enough for all of it; what reaches another limit
//! first, memory or output, ends before it and is not late at all.

use std::io::{BufRead, BufReader, PipeReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::microseconds;
use crate::supervisor::{Call, RunError, Supervisor};

const DEADLINE: Duration = Duration::from_millis(300);
/// How often each is tried at most; the worst counts.
const ROUNDS_MAX: usize = 5;
const LOOP: &str = "while True: pass";

const INPUTS: &[(&str, &str)] = &[
    ("a loop", LOOP),
    ("a loop in C", "return 10 ** 10 ** 8"),
    ("a regular expression", "import re\n    return re.match('(a+)+$', 'a' * 40 + 'b') is None"),
    ("memory in one piece", "return len('x' * (200 << 20))"),
    ("memory in many pieces", "a = []\n    while True: a.append(bytearray(100_000))"),
    ("a flood of print", "while True: print('x' * 100)"),
    ("a flood of frames", "import random\n    while True: random._os.write(0, b' ' * 4096)"),
    ("a flood of errors", "import random\n    while True: random._os.write(2, b'x' * 99)"),
    (
        "threads that loop",
        "import threading\n    def f():\n        while True: pass\n    \
         for _ in range(31): threading.Thread(target=f).start()\n    f()",
    ),
    ("sleep", "import time\n    time.sleep(100)"),
];

/// For each input the worst lateness in microseconds, and the outcome.
pub(super) fn measure(supervisor: &Supervisor, rounds: usize) -> Result<Value, RunError> {
    let mut rows = serde_json::Map::new();
    for (name, body) in INPUTS {
        let source = format!("def run(i):\n    {body}\n");
        let call = Call::new(source.as_bytes(), b"null").within(DEADLINE);
        let (mut worst, mut ended) = (0, "");
        for _ in 0..rounds.min(ROUNDS_MAX) {
            let started = Instant::now();
            ended = supervisor.call(&call)?.outcome.name();
            worst = worst.max(microseconds(started.elapsed().saturating_sub(DEADLINE)));
        }
        rows.insert((*name).to_owned(), json!({"late_us": worst, "ended": ended}));
    }
    Ok(rows.into())
}

/// The same of a client that hangs up in the middle of an endless call, by a service of its own: until it says that
/// nothing runs. The service proves its gate first, which takes a minute or two.
pub(super) fn hung_up(program: &Path) -> Result<u64, String> {
    let folder = std::env::temp_dir().join(format!("tinyfiles-bench-{}", std::process::id()));
    // Not one that somebody else has put there.
    std::fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let measured = Served::start(program, &folder).and_then(|served| {
        (0..ROUNDS_MAX)
            .try_fold(0, |worst, _| Ok(worst.max(served.hang_up().map_err(|e| format!("its socket: {e}"))?)))
    });
    // What stays is a folder in /tmp.
    let _ = std::fs::remove_dir_all(&folder);
    measured
}

struct Served {
    process: Child,
    socket: std::path::PathBuf,
    /// Kept open: it may have more to say.
    _said: PipeReader,
}

impl Served {
    fn start(program: &Path, folder: &Path) -> Result<Served, String> {
        let socket = folder.join("socket");
        let (said, say) = std::io::pipe().map_err(|e| format!("pipe: {e}"))?;
        let also = say.try_clone().map_err(|e| format!("pipe: {e}"))?;
        let mut command = Command::new(program);
        command.arg("serve").arg("--socket").arg(&socket).arg("--state").arg(folder).stdout(say).stderr(also);
        let process = command.spawn().map_err(|e| format!("runner serve: {e}"))?;
        // It holds the writing end, and whoever reads waits for the last of those.
        drop(command);
        let decided = |line: &String| line.starts_with("python open") || line.starts_with("python closed: ");
        let first = BufReader::new(&said).lines().map_while(Result::ok).find(decided);
        let served = Served { process, socket, _said: said };
        match first {
            Some(line) if line.starts_with("python open") => Ok(served),
            Some(line) => Err(format!("runner serve: {line}")),
            None => Err("runner serve ended at its start".to_owned()),
        }
    }

    fn hang_up(&self) -> std::io::Result<u64> {
        let milliseconds = microseconds(DEADLINE) / 1_000;
        let source = format!("def run(i):\n    {LOOP}\n");
        let body = json!({"source": source, "inputs": 1, "limits": {"wall_ms": milliseconds}}).to_string();
        let started = Instant::now();
        let client = self.send("POST /call", &body)?;
        while !self.running("1")? {}
        drop(client);
        while !self.running("0")? {}
        Ok(microseconds(started.elapsed().saturating_sub(DEADLINE)))
    }

    fn running(&self, count: &str) -> std::io::Result<bool> {
        let mut answer = String::new();
        self.send("GET /metrics", "")?.read_to_string(&mut answer)?;
        if answer.contains("runner_open 0\n") {
            return Err(std::io::Error::other("the service closed Python"));
        }
        Ok(answer.contains(&format!("runner_running {count}\n")))
    }

    fn send(&self, line: &str, body: &str) -> std::io::Result<UnixStream> {
        let mut stream = UnixStream::connect(&self.socket)?;
        let length = body.len();
        let head = format!(
            "{line} HTTP/1.1\r\nHost: runner\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(format!("{head}{body}").as_bytes())?;
        Ok(stream)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Asked, not killed, so that it takes its cgroups with it.
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}
