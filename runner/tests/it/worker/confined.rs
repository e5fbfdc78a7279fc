//! The layers around a live worker, as the kernel tells them, and what they hold back.

use std::fs;
use std::os::unix::process::CommandExt as _;

use super::client::*;

/// Native code in the engine, for attacks: the module that CPython's own files use, got at the way an attacker would.
const POSIX: &str = "importer = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == 'BuiltinImporter'][0]\n\
                     posix = importer.load_module('posix')";

fn mount(directory: &std::path::Path, path: &str, read_only: bool) -> Vec<u8> {
    [text(directory.to_str().unwrap()), text(path), vec![u8::from(read_only)]].concat()
}

#[test]
fn a_worker_sheds_its_caller_and_confines_itself_at_the_first_code() {
    let mut worker = Worker::new();
    let pid = worker.child.id();
    let link = |name: &str| fs::read_link(format!("/proc/{pid}/{name}")).unwrap();
    assert_eq!(link("cwd").to_str(), Some("/"));
    assert_eq!(fs::read(format!("/proc/{pid}/environ")).unwrap().iter().filter(|b| **b != 0).count(), 0);
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let group = stat.rsplit_once(") ").unwrap().1.split(' ').nth(2).unwrap().to_owned();
    assert_eq!(group, pid.to_string());
    // The control: nothing that is looked for below is there from the start.
    worker.ask(SET, &[text("x"), int(1)].concat()).fields(VALUE);
    assert_eq!((worker.status("Seccomp").as_str(), worker.status("NoNewPrivs").as_str()), ("0", "0"));
    worker.check("1 == 1");
    assert_eq!((worker.status("Seccomp").as_str(), worker.status("NoNewPrivs").as_str()), ("2", "1"));
    assert_eq!(worker.status("CapEff").trim_start_matches('0'), "");
    for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        assert!(status.contains("Seccomp:\t2"), "{status}");
    }
    // The two pipes, the null device, and the descriptor by which the parent is watched.
    let mut open: Vec<_> =
        fs::read_dir(format!("/proc/{pid}/fd")).unwrap().map(|e| e.unwrap().file_name()).collect();
    open.sort();
    assert_eq!(open, ["0", "1", "2", "3"]);
}

#[test]
fn ready_names_the_layers_that_will_hold() {
    let mut worker = Worker::bare();
    let ready = worker.ask(INIT, &Init::default().fields());
    for layer in ["no_new_privs", "landlock", "seccomp"] {
        assert!(ready.readable().contains(layer), "{}", ready.readable());
    }
    let said = Worker::bare().ask(INIT, &Init { flags: 5, ..Init::default() }.fields());
    assert!(!said.readable().contains("seccomp"), "{}", said.readable());
}

/// What native code in a worker can do, with the layers and without.
#[test]
fn layers_hold_native_code_back() {
    let attacks = [
        ("posix.open('/etc/passwd', 0)", "PermissionError"),
        ("posix.stat('/')", "PermissionError"),
        ("posix.listdir('/')", "PermissionError"),
        ("posix.mkdir('/tmp/spy-worker-test-folder')", "PermissionError"),
        ("posix.fork()", "PermissionError"),
        ("posix.pipe()", "PermissionError"),
        ("posix.getuid() and posix.uname()", "PermissionError"),
        ("posix.kill(posix.getppid(), 0)", "PermissionError"),
        ("posix.kill(-1, 0)", "PermissionError"),
        ("posix.execv('/bin/true', ['true'])", "PermissionError"),
        ("posix.setsid()", "PermissionError"),
        ("posix.memfd_create('x')", "PermissionError"),
        ("posix.chdir('/tmp')", "PermissionError"),
    ];
    for (attack, expected) in attacks {
        let mut worker = Worker::new();
        worker.exec(POSIX).fields(VALUE);
        let said = worker.eval(attack);
        // getppid and getuid themselves are refused: their errno is all that comes back.
        let refused =
            said.readable().contains(expected) || matches!(said, Said::Message(VALUE, ref v) if *v == int(0));
        assert!(refused, "{attack}: {}", said.readable());
        assert!(!std::path::Path::new("/tmp/spy-worker-test-folder").exists());
    }
    for attack in [
        "posix.open('/etc/passwd', 0)",
        "posix.listdir('/')",
        "posix.pipe()",
        "posix.memfd_create('x')",
        "posix.uname()",
    ] {
        let mut worker = Worker::with(&Init { flags: 5, ..Init::default() });
        worker.exec(POSIX).fields(VALUE);
        let said = worker.eval(attack);
        assert!(matches!(said, Said::Message(VALUE, _)), "without layers {attack}: {}", said.readable());
    }
}

#[test]
fn mounts_are_all_that_open_reaches_and_fixed_once_code_has_run() {
    let folder = tempfile::tempdir().unwrap();
    let (data, fixed) = (folder.path().join("data"), folder.path().join("fixed"));
    for made in [&data, &fixed] {
        fs::create_dir(made).unwrap();
        fs::write(made.join("file"), "text").unwrap();
    }
    fs::write(folder.path().join("secret"), "secret").unwrap();
    std::os::unix::fs::symlink(folder.path().join("secret"), data.join("link")).unwrap();
    let mut worker = Worker::new();
    worker.ask(MOUNT, &mount(&data, "/data", false)).fields(VALUE);
    worker.ask(MOUNT, &mount(&fixed, "/fixed", true)).fields(VALUE);
    worker.check("open('/data/file').read() == 'text' and open('/fixed/file', 'rb').read() == b'text'");
    worker.check("open('/data/new', 'w').write('ä') == 1 and open('data/new').read() == 'ä' and open('/data/new').name == '/data/new'");
    assert_eq!(fs::read(data.join("new")).unwrap(), "ä".as_bytes());
    worker.refuse("open('/fixed/file', 'w')", "Read-only file system: '/fixed/file'");
    worker.refuse("open('/data/link')", "PermissionError");
    worker.refuse("open('/data/../secret')", "PermissionError");
    worker.refuse(
        "open('/data/none')",
        "FileNotFoundError[Errno 2] No such file or directory: '/data/none'".split_at(17).0,
    );
    worker.refuse(&format!("open({:?})", folder.path().join("secret")), "PermissionError");
    worker.refuse("open(0)", "TypeError");
    worker.refuse("open('/data/file', opener=print)", "TypeError");
    // Native code meets the kernel instead.
    worker.exec(POSIX).fields(VALUE);
    let raw = |path: &std::path::Path, flags: i32| format!("posix.open({path:?}, {flags})");
    worker.check(&format!("{} > 0", raw(&data.join("file"), libc::O_RDWR)));
    worker.check(&format!("{} > 0", raw(&fixed.join("file"), libc::O_RDONLY)));
    for refused in [
        raw(&fixed.join("file"), libc::O_WRONLY),
        raw(&folder.path().join("secret"), libc::O_RDONLY),
        raw(&data.join("link"), libc::O_RDONLY),
        "posix.mkdir('/tmp/x')".to_owned(),
        format!("posix.unlink({:?})", data.join("file")),
    ] {
        worker.refuse(&refused, "PermissionError");
    }
    let said = worker.ask(MOUNT, &mount(folder.path(), "/all", false));
    assert!(said.readable().contains("PermissionError"), "{}", said.readable());
}

#[test]
fn memory_has_a_limit_that_native_code_meets_too() {
    let mut worker = Worker::with(&Init { memory: 8 << 20, ..Init::default() });
    worker.check("1 == 1");
    let limits = fs::read_to_string(format!("/proc/{}/limits", worker.child.id())).unwrap();
    let space = limits.lines().find(|l| l.starts_with("Max address space")).unwrap();
    assert!(!space.contains("unlimited"), "{space}");
}

#[test]
fn a_worker_ends_with_its_parent() {
    // Standard input hangs up while code runs that never ends.
    let mut worker = Worker::new();
    worker.send(&frame(EXEC, &[], &[text("print('on')\nwhile True: pass"), text("<string>")].concat()));
    worker.read().fields(OUTPUT);
    worker.send(&frame(RETURN, &[], b"N"));
    drop(worker.input.take());
    assert_eq!(worker.ended(), Said::Ended(0));
    // The same before any message, and between two.
    for mut worker in [Worker::bare(), Worker::new()] {
        drop(worker.input.take());
        assert_eq!(worker.ended(), Said::Ended(0));
    }
    // A parent that is another process than the one that started it is none.
    let mut worker = Worker::bare();
    let said = worker.ask(INIT, &Init { parent: 1, ..Init::default() }.fields());
    assert!(said.readable().contains("not the parent") || said.readable().contains("cannot be watched"));
    assert_eq!(worker.read(), Said::Ended(65));
}

#[test]
fn faults_end_a_worker_by_their_signal() {
    for signal in [libc::SIGSEGV, libc::SIGABRT, libc::SIGBUS, libc::SIGKILL] {
        let mut worker = Worker::new();
        worker.send(&frame(EXEC, &[], &[text("print('on')\nwhile True: pass"), text("<string>")].concat()));
        worker.read().fields(OUTPUT);
        worker.send(&frame(RETURN, &[], b"N"));
        let pid = worker.child.id().to_string();
        let mut kill = std::process::Command::new("kill");
        kill.arg(format!("-{signal}")).arg(pid).arg0("kill");
        assert!(kill.status().unwrap().success());
        assert_eq!(worker.read(), Said::Ended(-signal));
    }
}
