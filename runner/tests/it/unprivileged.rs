//! The same without root: a user namespace and a delegated cgroup. As root these tests become another user first.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::process::{Command, Output};

use runner::confine::cgroup::find_bases;

use crate::program;

/// A uid that owns nothing on the host.
const NOBODY_IN_PARTICULAR: u32 = 61_234;

/// A cgroup that somebody else owns, in every hierarchy.
struct Delegated {
    name: String,
    dirs: Vec<PathBuf>,
}

impl Delegated {
    fn new(name: &str) -> Delegated {
        let name = format!("/tinyfiles-test-{name}-{}", std::process::id());
        let read = |path: &str| fs::read_to_string(path).unwrap();
        let bases =
            find_bases(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"), Some(&name)).unwrap();
        let dirs: Vec<PathBuf> = bases.into_iter().map(|b| b.path).collect();
        for dir in &dirs {
            fs::create_dir(dir).unwrap();
            chown(dir, Some(NOBODY_IN_PARTICULAR), Some(NOBODY_IN_PARTICULAR)).unwrap();
        }
        Delegated { name, dirs }
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        for dir in &self.dirs {
            let inner = fs::read_dir(dir).into_iter().flatten().flatten().filter(|e| e.path().is_dir());
            for entry in inner {
                fs::remove_dir(entry.path()).unwrap();
            }
            fs::remove_dir(dir).unwrap();
        }
    }
}

fn run(args: &[&str]) -> Output {
    // The program is copied to where anybody may read it: a build folder may lie below a private home.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("runner");
    fs::copy(program(), &copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    let work = folder.path().join("work.py");
    fs::write(&work, SOURCE).unwrap();
    let id = NOBODY_IN_PARTICULAR.to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]).arg(&copy);
    command.args(args.iter().map(|a| a.replace("WORK", work.to_str().unwrap())));
    command.current_dir("/").output().unwrap()
}

const SOURCE: &str = "import threading\n\n\ndef run(inputs):\n    import random\n    os = random._os\n    \
    ids = [os.getuid(), os.getpid()]\n    threading.Thread(target=len, args=('',)).start()\n    \
    if inputs == 1:\n        return len(bytearray(200 << 20))\n    if inputs == 2:\n        os.fork()\n    return ids\n";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_call_without_root_has_every_layer() {
    let cgroup = Delegated::new("call");
    let output = run(&["call", "WORK", "--cgroup", &cgroup.name]);
    assert_eq!(
        (text(&output.stdout).as_str(), output.status.code()),
        ("[65534,1]\n", Some(0)),
        "{}",
        text(&output.stderr)
    );
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for (inputs, code) in [("1", 12), ("2", 16)] {
        let file = folder.path().join(inputs);
        fs::write(&file, inputs).unwrap();
        let output = run(&["call", "WORK", "--cgroup", &cgroup.name, "--inputs", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    }
    let doctor = run(&["doctor", "--cgroup", &cgroup.name]);
    assert_eq!(doctor.status.code(), Some(0), "{}", text(&doctor.stdout));
}

#[test]
fn without_a_cgroup_it_is_closed_and_says_what_to_do() {
    let output = run(&["call", "WORK"]);
    assert_eq!(output.status.code(), Some(18), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("--cgroup"), "{}", text(&output.stderr));
    let unproved = run(&["call", "WORK", "--unproved"]);
    assert_eq!(unproved.status.code(), Some(3), "{}", text(&unproved.stderr));
    assert_eq!(text(&unproved.stdout), "[65534,1]\n");
}

#[test]
fn the_suite_passes_without_root() {
    let cgroup = Delegated::new("suite");
    // One of each kind: the whole suite has run as root already.
    for attack in [
        "read_etc_passwd",
        "connect_to_an_abstract_socket",
        "os_fork",
        "new_user_namespace",
        "allocate_at_once",
    ] {
        let output = run(&["suite", "--only", attack, "--cgroup", &cgroup.name]);
        assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    }
}
