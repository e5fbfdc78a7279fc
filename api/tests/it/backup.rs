//! Backups: made beside a running server, killed anywhere, damaged, and put back.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::client::{BYTES, JSON, NEW, save};
use crate::program::{Program, command, installation};

fn run(folder: &Path, verb: &str, backup: &Path) -> Output {
    command(folder, &[verb, &backup.to_string_lossy()]).output().unwrap()
}

#[test]
fn a_backup_holds_what_was_acknowledged_before_it_began() {
    let program = Program::start(installation());
    let object = program.data("objects/ab/cd");
    fs::create_dir_all(object.parent().unwrap()).unwrap();
    fs::write(object, "an object that no work needs is left out").unwrap();
    program.client().unwrap().request("PUT", &save(0), &[NEW, JSON, ("Save-Word", "moth")], b"1");
    let (next, done) = (AtomicU64::new(1), AtomicBool::new(false));
    let acknowledged = Mutex::new(Vec::new());
    let backup = program.folder.path().join("backup");
    let before = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = program.client().unwrap();
            while !done.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                assert_eq!(client.request("PUT", &save(number), &[NEW, BYTES], &[7; 2048]).status, 201);
                acknowledged.lock().unwrap().push(number);
            }
        });
        while acknowledged.lock().unwrap().len() < 200 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let before = acknowledged.lock().unwrap().clone();
        let ran = run(program.folder.path(), "backup", &backup);
        done.store(true, Ordering::Relaxed);
        assert!(ran.status.success(), "{ran:?}");
        before
    });
    let check =
        Command::new("sha256sum").args(["-c", "--quiet", "checksums.txt"]).current_dir(&backup).status();
    assert!(check.unwrap().success());
    assert!(!backup.join("word.secret").exists() && !backup.join("objects/ab/cd").exists());
    let again = run(program.folder.path(), "backup", &backup);
    assert!(String::from_utf8_lossy(&again.stderr).contains("is there already"), "{again:?}");
    let over = run(program.folder.path(), "restore", &backup);
    assert!(String::from_utf8_lossy(&over.stderr).contains("catalog.db is there already"), "{over:?}");

    let other = installation();
    let ran = run(other.path(), "restore", &backup);
    assert!(ran.status.success(), "{ran:?}");
    let data = other.path().join("data");
    let ran = command(other.path(), &["serve"]).output().unwrap();
    assert!(String::from_utf8_lossy(&ran.stderr).contains("word.secret is missing"), "{ran:?}");
    fs::copy(program.data("word.secret"), data.join("word.secret")).unwrap();
    let restored = Program::start(other);
    let mut client = restored.client().unwrap();
    for number in before {
        assert_eq!(client.request("GET", &save(number), &[], b"").body, [7; 2048], "{number}");
    }
    assert_eq!(client.request("GET", &save(0), &[("Save-Word", "moth")], b"").body, b"1");
}

#[test]
fn a_backup_that_was_killed_has_no_name_and_a_restore_can_be_run_again() {
    let program = Program::start(installation());
    for number in 0..400 {
        program.client().unwrap().request("PUT", &save(number), &[NEW, BYTES], &[7; 20_000]);
    }
    let folder = program.folder.path();
    let backup = folder.join("backup");
    // Killed later each time, up to the first that finishes.
    for late in (0..).map(|i| 1 << i) {
        let mut child = command(folder, &["backup", &backup.to_string_lossy()]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(late));
        child.kill().unwrap();
        let status = child.wait().unwrap();
        if backup.exists() {
            break;
        }
        assert!(!status.success(), "{status:?}");
    }
    for late in (0..).map(|i| 1 << i) {
        let other = installation();
        for later in [late, late / 2] {
            let mut child = command(other.path(), &["restore", &backup.to_string_lossy()]).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(later));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let whole = other.path().join("data/saves/saves.db").exists();
        let ran = run(other.path(), "restore", &backup);
        assert!(ran.status.success(), "{ran:?}");
        let restored = Program::start(other);
        assert_eq!(restored.client().unwrap().request("GET", &save(399), &[], b"").body, [7; 20_000]);
        if whole {
            break;
        }
    }
}

#[test]
fn a_damaged_backup_is_not_restored() {
    let program = Program::start(installation());
    program.client().unwrap().request("PUT", &save(1), &[NEW, BYTES], b"x");
    let backup = program.folder.path().join("backup");
    assert!(run(program.folder.path(), "backup", &backup).status.success());
    let refuses = |what: &str| {
        let other = installation();
        let ran = run(other.path(), "restore", &backup);
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(!ran.status.success() && said.contains(what), "{what}: {said}");
        assert!(!other.path().join("data/saves").exists());
    };
    let path = backup.join("saves.db");
    let bytes = fs::read(&path).unwrap();
    let mut bent = bytes.clone();
    bent[9000] ^= 1;
    fs::write(&path, bent).unwrap();
    refuses("saves.db is damaged");
    fs::write(&path, &bytes).unwrap();
    let list = backup.join("checksums.txt");
    let text = fs::read_to_string(&list).unwrap();
    fs::write(&list, text.replace("  saves.db", "  ../saves.db")).unwrap();
    refuses("checksums.txt: ");
    fs::write(&list, text.lines().take(1).map(|l| format!("{l}\n")).collect::<String>()).unwrap();
    refuses("does not name saves.db");
    fs::remove_file(&list).unwrap();
    refuses("a whole backup has it");
}
