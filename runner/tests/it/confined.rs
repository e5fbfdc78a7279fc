//! `runner serve` as it runs for the api: under its own filter it still does everything that it is for.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use runner::gate::Gate;
use runner::suite::Finished;
use serde_json::{Value, json};

use crate::program;
use crate::service::exchange;
use crate::survival::{children, kill, until};

struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        // It has ended already where the test came to its end.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A service whose gate has been opened by hand.
fn serve(folder: &Path) -> Serving {
    let gate = Gate::open_in(&folder.join("state"), &program()).unwrap();
    gate.keep(&Finished { report: Value::Null, attacks: 1, failures: Vec::new() }).unwrap();
    let mut command = Command::new(program());
    command.arg("serve").arg("--socket").arg(folder.join("socket")).arg("--state").arg(folder.join("state"));
    command.arg("--bandit").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bandit"));
    let mut serving = Serving(command.stdout(Stdio::piped()).spawn().unwrap());
    let said = BufReader::new(serving.0.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    assert!(said.starts_with("python open"), "{said}");
    serving
}

/// A row of /proc/PID/status of each thread.
fn rows(pid: u32, key: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let status = tasks.map(|t| fs::read_to_string(t.unwrap().path().join("status")).unwrap());
    status.map(|s| s.lines().find_map(|l| l.strip_prefix(key)).unwrap().trim().to_owned()).collect()
}

#[test]
fn a_confined_service_calls_lints_survives_and_stops() {
    let folder = tempfile::tempdir().unwrap();
    let (mut serving, socket) = (serve(folder.path()), folder.path().join("socket"));
    let pid = serving.0.id();
    let lowered = |source: &str, limits: Value| {
        let body = json!({"source": source, "inputs": 1, "limits": limits});
        exchange(&socket, "POST /call", &body.to_string())
    };
    let call = |source: &str, wall_ms: u32| lowered(source, json!({"wall_ms": wall_ms}));
    // The first call is one of those that are looked at from outside.
    assert_eq!(call("def run(i):\n    return i + 1", 3_000).1["result"], 2);
    let answers: Vec<(u16, Value, String)> = std::thread::scope(|scope| {
        let source = "import time\ndef run(i):\n    time.sleep(0.2)\n    return 7";
        let threads: Vec<_> = (0..12).map(|_| scope.spawn(move || call(source, 3_000))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|a| a.1["result"] == 7), "{answers:?}");
    for (key, expected) in [("Seccomp:", "2"), ("NoNewPrivs:", "1")] {
        let found = rows(pid, key);
        assert!(found.len() > 1 && found.iter().all(|r| r == expected), "{key} {found:?}");
    }
    if rows(pid, "Uid:")[0].starts_with('0') {
        // CAP_DAC_OVERRIDE, CAP_KILL, CAP_SYS_PTRACE.
        assert!(rows(pid, "CapEff:").iter().all(|r| r == "0000000000080022"));
    }
    // What it starts from is not under that filter, which shows that this test can tell.
    let family = children(pid);
    assert!(family.iter().any(|child| rows(*child, "Seccomp:") == ["0"]), "{family:?}");
    assert_eq!(call("def run(i):\n    while True: pass", 200).1["outcome"], "timeout");
    assert_eq!(call("def run(i):\n    return len(bytearray(500 << 20))", 3_000).1["outcome"], "memory");
    // Setting a slot's limits is among what is left to it.
    let fill = "def run(i):\n    return len(bytearray(40 << 20))";
    assert_eq!(lowered(fill, json!({"memory_bytes": 33_554_432, "cpus": 0.4})).1["outcome"], "memory");
    assert_eq!(lowered(fill, json!({})).1["outcome"], "ok");
    let linted = exchange(&socket, "POST /lint", "def run(i):\n    return eval(i)\n");
    assert_eq!((linted.0, &linted.1["results"][0]["test_id"]), (200, &json!("B307")));
    let zygotes: Vec<u32> = family.into_iter().filter(|child| rows(*child, "Seccomp:") == ["2"]).collect();
    assert_eq!(zygotes.len(), 2, "one for calls, one for lints");
    zygotes.iter().for_each(|zygote| kill(*zygote));
    assert_eq!(call("def run(i):\n    return i + 2", 3_000).1["result"], 3);
    assert_eq!(exchange(&socket, "POST /lint", "def run(i):\n    return 1\n").1["results"], json!([]));
    let metrics = exchange(&socket, "GET /metrics", "").1.to_string();
    assert!(metrics.contains("runner_zygote_restarts_total 2"), "{metrics}");
    let family = children(pid);
    assert!(Command::new("kill").arg(pid.to_string()).status().unwrap().success());
    assert_eq!(serving.0.wait().unwrap().code(), Some(0));
    assert!(!socket.exists());
    assert!(
        until(|| family.iter().all(|child| !Path::new(&format!("/proc/{child}")).exists())),
        "{family:?}"
    );
}
