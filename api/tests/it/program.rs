//! The program: what it says when it cannot start, and what is left after it was killed.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use crate::client::{BYTES, Client, NEW, save};

pub(crate) struct Program {
    pub(crate) folder: TempDir,
    child: Option<Child>,
}

pub(crate) fn installation() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let config = "site = 'http://localhost:1'\ncontent = 'http://127.0.0.1:2'\ndata = 'data'\n\
                  contact = 'mailto:a@b.example'\nsecurity_txt_expires = '2027-01-01'\n";
    std::fs::write(folder.path().join("tinyfiles.toml"), config).unwrap();
    folder
}

pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_api"));
    command.arg("--config").arg(folder.join("tinyfiles.toml")).args(arguments).stdin(Stdio::null());
    command
}

fn fails(folder: &Path) -> String {
    let output = command(folder, &["serve"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

impl Program {
    pub(crate) fn start(folder: TempDir) -> Self {
        Self::run(command(folder.path(), &["serve"]), folder)
    }

    /// Starts what becomes the program.
    pub(crate) fn run(mut serve: Command, folder: TempDir) -> Self {
        let mut child = serve.stderr(Stdio::piped()).spawn().unwrap();
        // It says so when it serves.
        let mut log = child.stderr.take().unwrap();
        let mut said = Vec::new();
        while !String::from_utf8_lossy(&said).contains("serving") {
            let mut byte = [0];
            assert_eq!(log.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&said));
            said.push(byte[0]);
        }
        std::thread::spawn(move || log.read_to_end(&mut said));
        Self { folder, child: Some(child) }
    }

    pub(crate) fn data(&self, name: &str) -> PathBuf {
        self.folder.path().join("data").join(name)
    }

    pub(crate) fn client(&self) -> std::io::Result<Client> {
        Client::try_connect(&self.data("api.sock"))
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Waits for its end.
    pub(crate) fn ended(mut self) -> (TempDir, Option<i32>) {
        let status = self.child.take().unwrap().wait().unwrap();
        (std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap()), status.code())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn what_was_acknowledged_is_there_after_kill_9() {
    let mut folder = installation();
    let acknowledged = Mutex::new(Vec::new());
    let next = std::sync::atomic::AtomicU64::new(0);
    for round in 0..20_u64 {
        let program = Program::start(folder);
        let killed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let Ok(mut client) = program.client() else { return };
                    while !killed.load(Ordering::Relaxed) {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let body = number.to_le_bytes().repeat(256);
                        match client.try_request("PUT", &save(number), &[NEW, BYTES], &body) {
                            Ok(answer) if answer.status == 201 => acknowledged.lock().unwrap().push(number),
                            Ok(answer) => assert_eq!(answer.status, 503, "{answer:?}"),
                            Err(_) => return,
                        }
                    }
                });
            }
            let before = acknowledged.lock().unwrap().len();
            // Never at the same point: after some more saves each time.
            while acknowledged.lock().unwrap().len() < before + 20 + 13 * usize::try_from(round).unwrap() {
                std::thread::sleep(Duration::from_millis(1));
            }
            program.signal("-KILL");
            killed.store(true, Ordering::Relaxed);
        });
        let status;
        (folder, status) = program.ended();
        assert_eq!(status, None, "it was killed");
    }
    let program = Program::start(folder);
    let mut client = program.client().unwrap();
    let acknowledged = acknowledged.into_inner().unwrap();
    for number in &acknowledged {
        let answer = client.request("GET", &save(*number), &[], b"");
        assert_eq!((answer.status, answer.body), (200, number.to_le_bytes().repeat(256)), "{number}");
    }
    assert!(acknowledged.len() > 1_000, "{}", acknowledged.len());
}

#[test]
fn it_finishes_what_it_accepted_and_goes() {
    let program = Program::start(installation());
    let mut client = program.client().unwrap();
    let head = format!(
        "PUT {} HTTP/1.1\r\nHost: a\r\nContent-Type: application/octet-stream\r\nIf-None-Match: *\r\nContent-Length: 6\r\n\r\nabc",
        save(1)
    );
    client.send(head.as_bytes());
    // It is known to have the request when it answers the one before on another connection.
    program.client().unwrap().request("GET", "/api/health", &[], b"");
    program.signal("-TERM");
    while program.client().is_ok() {
        std::thread::sleep(Duration::from_millis(1));
    }
    client.send(b"def");
    assert_eq!(client.answer(false).unwrap().status, 201);
    let (folder, status) = program.ended();
    assert_eq!(status, Some(0));
    let program = Program::start(folder);
    assert_eq!(program.client().unwrap().request("GET", &save(1), &[], b"").body, b"abcdef");
}

#[test]
fn counters_have_a_socket_of_their_own() {
    let program = Program::start(installation());
    program.client().unwrap().request("PUT", &save(1), &[NEW, BYTES, ("Tinyfiles-Work", "no/such")], b"x");
    program.client().unwrap().request("PUT", &save(1), &[NEW, BYTES], b"x");
    assert_eq!(program.client().unwrap().request("GET", "/metrics", &[], b"").status, 404);
    let text = Client::connect(&program.data("api-admin.sock")).request("GET", "/metrics", &[], b"").body;
    let text = String::from_utf8(text).unwrap();
    for line in [
        "api_answers_total{route=\"put_save\",status=\"201\"} 1",
        "api_refusals_total{type=\"newer-save\"} 1",
        "api_saves_changes_total 1",
        "api_saves_bytes_today 1",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}: {text}");
    }
    assert!(!text.contains("no/such"), "only published works are counted");
    assert!(!text.contains(&save(1)[11..]), "no key");
}

#[test]
fn it_says_why_it_does_not_start() {
    let folder = installation();
    let data = folder.path().join("data");
    let program = Program::start(folder);
    assert!(fails(program.folder.path()).contains("api.sock: another process serves there"));
    program.signal("-KILL");
    let (folder, _) = program.ended();
    // The socket that it left is taken over.
    let program = Program::start(folder);
    program.signal("-KILL");
    let (folder, _) = program.ended();
    std::fs::write(data.join("word.secret"), "short").unwrap();
    assert!(fails(folder.path()).contains("word.secret is not a secret of 64 bytes"));
    std::fs::remove_file(data.join("word.secret")).unwrap();
    for name in ["saves.db-wal", "saves.db-shm"] {
        let _ = std::fs::remove_file(data.join("saves").join(name));
    }
    std::fs::write(data.join("saves/saves.db"), "no database".repeat(100)).unwrap();
    assert!(fails(folder.path()).contains("file is not a database"));
    std::fs::remove_dir_all(&data).unwrap();
    std::fs::write(&data, "").unwrap();
    assert!(fails(folder.path()).contains("cannot create"));
}
