//! Each layer alone: a probe that it stops, the same probe with the layer away, and the host's view.

use runner::confine::{Step, Steps};
use runner::engine::Mode;
use runner::limits::Limits;
use runner::supervisor::{Call, Options, RunError, Supervisor};

use crate::{call, ending, options, supervisor};

fn measuring() -> Supervisor {
    Supervisor::start(Options { lenient: true, listening: true, ..options(Mode::Bare) }).unwrap()
}

fn with(s: &Supervisor, steps: Steps, body: &str) -> String {
    let source = format!("import os, ctypes, mmap, resource, socket, threading\ndef run(i):\n    {body}");
    ending(&s.call(&Call { steps, ..Call::new(source.as_bytes(), b"null") }).unwrap())
}

/// `body` returns true when the thing is possible. It must be possible without any layer that stops it, and not with
/// only `steps`.
fn stops(s: &Supervisor, steps: &[Step], body: &str) {
    let only = steps.iter().fold(Steps::NONE, |set, step| set.with(*step));
    let control = with(s, Steps::NONE, body);
    assert_eq!(control, "ok true", "the control of {steps:?} must succeed: {body}");
    let held = with(s, only, body);
    assert_ne!(held, "ok true", "{steps:?} alone does not stop: {body}");
}

const TRY: &str = "\n    except OSError:\n        return False";

#[test]
fn the_file_system_is_shut_by_landlock_alone() {
    let s = measuring();
    // The zygote's root is empty; its one directory can be listed until Landlock says no.
    stops(&s, &[Step::Landlock], &format!("try:\n        return os.listdir('/') == ['tmp']{TRY}"));
}

#[test]
fn identity_steps_leave_no_right_to_come_back() {
    let s = measuring();
    stops(&s, &[Step::Uid], &format!("try:\n        os.setuid(0)\n        return os.getuid() == 0{TRY}"));
    stops(&s, &[Step::LinuxCaps], &format!("try:\n        os.setuid(1)\n        return True{TRY}"));
    stops(&s, &[Step::Gid, Step::Uid], &format!("try:\n        os.setgid(0)\n        return True{TRY}"));
    let bounding = "libc = ctypes.CDLL(None)\n    return libc.prctl(23, 21, 0, 0, 0) == 1";
    stops(&s, &[Step::Bounding], bounding);
}

#[test]
fn tmp_is_small_and_holds_no_program() {
    let s = measuring();
    let tmp = Steps::NONE.with(Step::Namespaces).with(Step::Tmp).with(Step::Uid);
    let fill = "try:\n        f = open('/tmp/x', 'wb')\n        for n in range(40): f.write(bytes(65536))\n        f.flush()\n        return 'filled'\n    except OSError as e:\n        return e.errno";
    assert_eq!(with(&s, tmp, fill), "ok 28", "ENOSPC");
    let inodes = "n = 0\n    try:\n        while True:\n            open(f'/tmp/{n}', 'w').close()\n            n += 1\n    except OSError as e:\n        return [e.errno, n < 256]";
    assert_eq!(with(&s, tmp, inodes), "ok [28,true]");
    let without = with(
        &s,
        Steps::NONE.with(Step::Namespaces).with(Step::Uid),
        "try:\n        open('/tmp/x', 'wb')\n        return 'made'\n    except OSError as e:\n        return e.errno",
    );
    assert_eq!(without, "ok 30", "the root itself is read-only");
}

#[test]
fn limits_hold_one_by_one() {
    let s = measuring();
    stops(&s, &[Step::Cgroup], "return len(bytearray(200 << 20)) > 0");
    let threads = "for n in range(40): threading.Thread(target=threading.Event().wait, daemon=True).start()\n    return True";
    stops(&s, &[Step::Cgroup], threads);
    stops(&s, &[Step::Rlimits], "return resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 64");
}

#[test]
fn namespaces_hide_the_rest() {
    let s = measuring();
    stops(&s, &[Step::Namespaces], "return os.getpid() != 1");
}

#[test]
fn no_new_privileges_and_the_filter() {
    let s = measuring();
    stops(&s, &[Step::NoNewPrivs], "return ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) == 1");
    stops(&s, &[Step::Seccomp], "return ctypes.CDLL(None).prctl(39, 0, 0, 0, 0) >= 0");
    stops(&s, &[Step::Seccomp], "os.dup2(1, 9)\n    return True");
}

#[test]
fn the_self_check_notices_each_missing_layer() {
    let s = measuring();
    let source = b"def run(i):\n    return 1";
    // The self-check always looks for everything, so a layer left out ends the call before the request is read. What
    // the zygote has done already (no new privileges) or another step does as well (setresuid drops capabilities)
    // cannot go missing alone.
    // Namespaces come last: without its own, a child mounts its /tmp in the zygote's.
    let steps =
        [Step::Tmp, Step::Rlimits, Step::Bounding, Step::Gid, Step::Uid, Step::Landlock, Step::Namespaces];
    for step in steps {
        let refused = s.call(&Call { steps: Steps::ALL.without(step), ..Call::new(source, b"null") });
        assert!(
            matches!(refused, Err(RunError::Refused { step: found, .. }) if found == step),
            "{step:?}: {refused:?}"
        );
    }
    // What only the host can see, and what it sees as well.
    for step in [Step::Cgroup, Step::Bounding, Step::Uid, Step::Gid, Step::Seccomp] {
        let steps = Steps::ALL.without(step).without(Step::SelfCheck);
        let seen = s.call(&Call { steps, inspect: true, ..Call::new(source, b"null") });
        assert!(matches!(seen, Err(RunError::Inspection(_))), "{step:?}: {seen:?}");
    }
    let report = s.call(&Call { inspect: true, ..Call::new(source, b"null") }).unwrap();
    assert_eq!(ending(&report), "ok 1");
}

#[test]
fn a_strict_zygote_refuses_less_than_all() {
    let s = supervisor(Mode::Guarded);
    let steps = Steps::ALL.without(Step::Seccomp);
    let simple = Call::new(b"def run(i):\n    return 1", b"null");
    assert!(s.call(&Call { steps, ..simple }).is_err());
    // Nor does it mount a larger /tmp than the policy has, or one without a bound.
    for tmp_bytes in [simple.limits.tmp_bytes + 4_096, 0] {
        assert!(s.call(&Call { limits: Limits { tmp_bytes, ..simple.limits }, ..simple }).is_err());
    }
    assert_eq!(ending(&call(&s, "def run(i):\n    return 1", "null")), "ok 1");
}
