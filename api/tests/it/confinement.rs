//! What a confined process can still do: each probe in a process of its own, once free and once confined.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use api::app::Prepared;
use api::confine::confine;

/// Probes by name, and whether a confined process is killed for them; else they fail.
const PROBES: &[(&str, bool)] = &[
    ("read a file of the system", false),
    ("read the secret of the words", false),
    ("list the data folder", false),
    ("write beside the databases", false),
    ("write an object", false),
    ("open a network socket", true),
    ("start a program", true),
];

fn probe(name: &str, data: &Path) -> std::io::Result<()> {
    match name {
        "read a file of the system" => std::fs::read("/etc/hostname").map(drop),
        "read the secret of the words" => std::fs::read(data.join("word.secret")).map(drop),
        "list the data folder" => std::fs::read_dir(data).map(drop),
        "write beside the databases" => std::fs::write(data.join("new"), "x"),
        "write an object" => std::fs::write(data.join("objects/new"), "x"),
        "open a network socket" => std::net::UdpSocket::bind("127.0.0.1:0").map(drop),
        "start a program" => Command::new("/bin/true").status().map(drop),
        other => panic!("{other}"),
    }
}

/// Not a test of its own: what [`each_probe_succeeds_free_and_fails_confined`] starts.
#[test]
fn probing() {
    let Ok(name) = std::env::var("API_PROBE") else { return };
    let data = PathBuf::from(std::env::var("API_PROBE_DATA").unwrap());
    let prepared = Prepared::open(&data, "http://localhost", 1).unwrap();
    if std::env::var_os("API_PROBE_CONFINED").is_some() {
        confine(&data).unwrap();
    }
    let outcome = probe(&name, &data);
    drop(prepared);
    // Past the harness, which would start threads and write its report.
    std::process::exit(if outcome.is_ok() { 40 } else { 41 });
}

fn run(name: &str, data: &Path, confined: bool) -> ExitStatus {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "confinement::probing", "--nocapture", "--test-threads=1"]);
    command.env("API_PROBE", name).env("API_PROBE_DATA", data);
    if confined {
        command.env("API_PROBE_CONFINED", "1");
    }
    command.output().unwrap().status
}

#[test]
fn each_probe_succeeds_free_and_fails_confined() {
    for (name, killed) in PROBES {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(run(name, folder.path(), false).code(), Some(40), "{name}, free");
        let confined = run(name, folder.path(), true);
        if *killed {
            // SIGSYS
            assert_eq!(confined.signal(), Some(31), "{name}: {confined:?}");
        } else {
            assert_eq!(confined.code(), Some(41), "{name}: {confined:?}");
        }
    }
}
