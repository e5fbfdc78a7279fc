//! Every row of "Bad input": each ends as the right outcome, and the next call is unharmed.

use std::sync::Arc;

use runner::engine::Mode;
use runner::outcome::Outcome;
use runner::supervisor::Call;

use crate::{call, check, ending, supervisor};

#[test]
fn sources_that_cannot_be_run() {
    let s = supervisor(Mode::Guarded);
    let long = format!("def run(inputs):\n    return 1\n#{}", "x".repeat(16_384));
    let rows: [(&str, &str); 16] = [
        (&long, "error: SourceError: the file has"),
        ("def run(i):\n    return '\0'", "error: SourceError: the file has a NUL at byte 24"),
        ("def go(i):\n    return 1", "error: SourceError: the file has no function run(inputs)"),
        ("run = 1", "error: SourceError: the file has no function run(inputs)"),
        ("", "error: SourceError: the file has no function run(inputs)"),
        ("print(1)\ndef run(i):\n    return 1", "error: SourceError: code at module level"),
        ("X = open('/tmp/x', 'w')\ndef run(i):\n    return 1", "error: SourceError: code at module level"),
        (
            "for n in range(9):\n    pass\ndef run(i):\n    return 1",
            "error: SourceError: code at module level",
        ),
        ("class A:\n    x = print()\ndef run(i):\n    return 1", "error: SourceError: code at module level"),
        ("def run(i, x=print()):\n    return 1", "error: SourceError: code at module level"),
        ("@print\ndef run(i):\n    return 1", "error: TypeError"),
        ("def run(i):\n    return 1 +", "error: SyntaxError: invalid syntax (line 2)"),
        ("def run():\n    return 1", "error: TypeError: run() takes 0 positional arguments but 1 was given"),
        (
            "import os\ndef run(i):\n    return 1",
            "error: ImportError: os is not allowed, because it reaches the machine",
        ),
        ("import sqlite3\ndef run(i):\n    return 1", "error: ImportError: sqlite3 is not among the modules"),
        ("from . import x\ndef run(i):\n    return 1", "error: ImportError: a function is a single file"),
    ];
    for (source, expected) in rows {
        let found = ending(&call(&s, source, "null"));
        if source.starts_with("@print") {
            // A decorator's name alone is not a call; what it does is the function's problem.
            assert!(found.starts_with("error"), "{found}");
        } else {
            assert!(found.starts_with(expected), "{source}\n  {found}\n  {expected}");
        }
    }
    let not_utf8 = s.call(&Call::new(b"def run(i):\n    return '\xff'", b"null")).unwrap();
    assert_eq!(ending(&not_utf8), "error: SourceError: the file is not UTF-8 at byte 24");
}

#[test]
fn module_level_definitions_are_welcome() {
    let s = supervisor(Mode::Guarded);
    let source = "\"\"\"Doc.\"\"\"\nimport math\nfrom dataclasses import dataclass\nLIMITS = {'a': [1, -2, (3.5, None)]}\nN: int = 4 * 2\n\
        @dataclass\nclass P:\n    x: int\n    y: int = 0\n\ndef helper(v, w=N):\n    return v + w\n\n\
        def run(inputs):\n    return [helper(P(inputs).x), LIMITS['a'][2][0], math.floor(2.5)]\n";
    assert_eq!(ending(&call(&s, source, "1")), "ok [9,3.5,2]");
}

#[test]
fn refused_calls_and_imports_name_their_rule() {
    let s = supervisor(Mode::Guarded);
    for (body, rule) in [
        ("eval('1')", "python-dynamic-code"),
        ("exec('1')", "python-dynamic-code"),
        ("compile('1', 'f', 'exec')", "python-dynamic-code"),
        ("__import__('os')", "python-import-system"),
        ("__import__('urllib.request')", "python-import-network"),
        ("__import__('pickle')", "python-import-introspection"),
        ("__import__('_ctypes')", "python-import-unlisted"),
    ] {
        let found = ending(&call(&s, &format!("def run(i):\n    return {body}"), "null"));
        assert!(found.contains(rule) && found.contains("(line 2)"), "{body}: {found}");
    }
}

#[test]
fn inputs_that_are_not_acceptable() {
    let s = supervisor(Mode::Guarded);
    let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
    let long = format!("\"{}\"", "x".repeat(65_536));
    for (inputs, expected) in [
        ("", "error: InputsError: the inputs are not acceptable JSON at $: unexpected end"),
        ("NaN", "error: InputsError"),
        (
            "{\"a\": 1, \"a\": 2}",
            "error: InputsError: the inputs are not acceptable JSON at $.a: the key appears twice",
        ),
        ("\"\\ud800\"", "error: InputsError"),
        (&deep, "error: InputsError"),
        (&long, "error: InputsError: the inputs have 65538 bytes; 65536 are allowed"),
    ] {
        let found = ending(&call(&s, "def run(i):\n    return i", inputs));
        assert!(found.starts_with(expected), "{found}");
    }
    let good = r#"{"a":[1,-2.5,true,null,"é😀\"\\\n"],"b":{},"n":123456789012345678901234567890}"#;
    assert_eq!(ending(&call(&s, "def run(i):\n    return i", good)), format!("ok {good}"));
}

#[test]
fn answers_that_are_not_json_name_their_culprit() {
    let s = supervisor(Mode::Guarded);
    for (body, expected) in [
        ("return {'a': [1, float('nan')]}", "at $.a[1]: NaN is not a number"),
        ("return float('inf')", "at $: inf is not a number"),
        ("return {'a': {1, 2}}", "at $.a: a value of type set"),
        ("return {1: 2}", "at $: a key of type int"),
        ("return ['\\ud800']", "at $[0]: a lone surrogate"),
        ("return {'\\udfff': 1}", "at $: a lone surrogate"),
        ("x = []\n    x.append(x)\n    return x", "at $[0]: it contains itself"),
        ("x = []\n    for n in range(70): x = [x]\n    return x", "nested too deeply"),
        ("return 10 ** 5000", "at $: an integer of more than 4300 digits"),
        ("return ['x' * 70000] * 4", "bytes"),
        ("return run", "at $: a value of type function"),
        ("return b'x'", "at $: a value of type bytes"),
    ] {
        let report = call(&s, &format!("def run(i):\n    {body}"), "null");
        assert_eq!(report.outcome.name(), "bad_answer", "{body}: {}", ending(&report));
        assert!(ending(&report).contains(expected), "{body}: {}", ending(&report));
    }
    let source = "import enum\nimport collections\nclass C(enum.IntEnum):\n    A = 3\nclass S(str):\n    def __str__(self):\n        \
        return 'no'\ndef run(i):\n    d = collections.OrderedDict(x=(1, C.A), y=S('yes'))\n    return [d, 1e300, 0.1, True]";
    assert_eq!(ending(&call(&s, source, "null")), "ok [{\"x\":[1,3],\"y\":\"yes\"},1e300,0.1,true]");
}

#[test]
fn endless_work_ends_at_the_deadline() {
    let s = supervisor(Mode::Guarded);
    std::thread::scope(|scope| {
        for body in [
            "while True: pass",
            "return 10 ** 10 ** 8",
            "import re\n    return re.match('(a+)+$', 'a' * 40 + 'b') is None",
            "import time\n    time.sleep(100)",
            "import threading\n    threading.Lock().acquire()\n    a = threading.Lock()\n    a.acquire()\n    a.acquire()",
            "try:\n        while True: pass\n    except BaseException: return 1",
        ] {
            let s = &s;
            scope.spawn(move || check(s, &format!("def run(i):\n    {body}"), "null", "timeout"));
        }
    });
}

#[test]
fn memory_is_bounded_in_one_piece_and_in_many() {
    let s = supervisor(Mode::Guarded);
    for body in [
        "return len(bytearray(1 << 40))",
        "return len(bytearray(500 << 20))",
        "return len('x' * (200 << 20))",
        "a = []\n    while True: a.append(bytearray(100_000))",
        "a = {}\n    while True: a[len(a)] = str(len(a)) * 50",
    ] {
        check(&s, &format!("def run(i):\n    {body}"), "null", "memory");
    }
    check(&s, "def run(i):\n    return len(bytearray(64 << 20))", "null", "ok 67108864");
}

#[test]
fn output_is_bounded_on_every_stream() {
    let s = supervisor(Mode::Bare);
    check(&s, "def run(i):\n    while True: print('x' * 100)", "null", "output_limit: The function printed");
    check(
        &s,
        "import sys\ndef run(i):\n    while True: sys.stderr.write('x' * 99)",
        "null",
        "output_limit: The function printed",
    );
    check(
        &s,
        "import os\ndef run(i):\n    while True: os.write(0, b' ' * 4096)",
        "null",
        "output_limit: The function wrote",
    );
    let report = call(
        &s,
        "import sys\ndef run(i):\n    print('out')\n    print('err', file=sys.stderr)\n    return 1",
        "null",
    );
    assert_eq!((&report.printed[..], &report.errors[..]), (&b"out\n"[..], &b"err\n"[..]));
    let exact = call(&s, "def run(i):\n    print('x' * 16383)\n    return 1", "null");
    assert_eq!((ending(&exact).as_str(), exact.printed.len()), ("ok 1", 16_384));
}

#[test]
fn forged_frames_are_claims_at_most() {
    let s = supervisor(Mode::Bare);
    // A whole answer, then a clean exit: user code may answer for itself, and only as JSON.
    let forge = |frames: &str, end: &str| {
        format!(
            "import os, struct\ndef f(k, b):\n    return struct.pack('<BI', k, len(b)) + b\ndef run(i):\n    os.write(0, {frames})\n    {end}"
        )
    };
    for (frames, end, expected) in [
        ("f(32, b'7')", "os._exit(0)", "ok 7"),
        ("f(32, b'7')", "return 8", "bad_answer"),
        ("f(32, b'7') + f(32, b'8')", "os._exit(0)", "bad_answer"),
        ("f(32, b'7')", "os._exit(1)", "crash: The process left with status 1"),
        ("f(32, b'7')", "os.abort()", "crash"),
        ("f(32, b'NaN')", "os._exit(0)", "bad_answer"),
        ("f(32, b'[' * 100000)", "os._exit(0)", "bad_answer"),
        ("f(16, b'\\xff\\x3f\\xff\\xff\\xff\\xff')", "os._exit(0)", "bad_answer"),
        ("f(33, b'\\xff' * 9)", "os._exit(0)", "bad_answer"),
        ("struct.pack('<BI', 32, 4000000000)", "os._exit(0)", "output_limit"),
        ("f(35, b'code')", "os._exit(0)", "bad_answer"),
        ("b'x'", "os._exit(0)", "bad_answer"),
        ("f(32, b'7')", "raise ValueError", "bad_answer"),
        ("f(32, b'7')", "while True: pass", "timeout"),
    ] {
        check(&s, &forge(frames, end), "null", expected);
    }
    // One that comes while or after the process crashes counts no more than one before it.
    for end in ["ctypes.string_at(0)", "os.abort()"] {
        let source = format!(
            "import ctypes, os, signal, threading\nF = b'\\x20\\x01\\0\\0\\x007'\ndef late(*_):\n    os.write(0, F)\n    \
             os._exit(0)\ndef run(i):\n    signal.signal(signal.SIGABRT, late)\n    \
             threading.Thread(target=lambda: [os.write(0, F) for _ in range(99)]).start()\n    {end}"
        );
        check(&s, &source, "null", "crash");
    }
    // On the other open descriptors frames are just print.
    let report = call(
        &s,
        "import os\ndef run(i):\n    for n in (1, 2): os.write(n, b'\\x20\\x01\\0\\0\\x007')\n    return 1",
        "null",
    );
    assert_eq!(ending(&report), "ok 1");
    let opened = call(
        &s,
        "import os\ndef run(i):\n    return [n for n in range(64) if can(n)]\ndef can(n):\n    try:\n        os.fstat(n)\n        return True\n    except OSError:\n        return False",
        "null",
    );
    assert_eq!(ending(&opened), "ok [0,1,2]");
}

#[test]
fn ends_that_are_not_answers() {
    let s = supervisor(Mode::Bare);
    for (source, expected) in [
        ("import os\ndef run(i):\n    os._exit(0)", "crash: The process left with status 0"),
        ("import os\ndef run(i):\n    os._exit(3)", "crash: The process left with status 3"),
        ("import sys\ndef run(i):\n    sys.exit(0)", "error: SystemExit: 0 (line 3)"),
        ("import ctypes\ndef run(i):\n    ctypes.string_at(0)", "crash: The process died of signal 11"),
        ("import os\ndef run(i):\n    os.abort()", "crash: The process died of signal"),
        (
            "import sys\nclass C:\n    def __eq__(self, o): return [self] == [o]\ndef run(i):\n    sys.setrecursionlimit(10 ** 9)\n    return C() == C()",
            "crash: The process died of signal 11",
        ),
        ("def run(i):\n    return run(i)", "error: RecursionError"),
        ("import os\ndef run(i):\n    os.close(0)\n    return 1", "crash"),
        ("def run(i):\n    raise KeyboardInterrupt", "error: KeyboardInterrupt"),
        ("def run(i):\n    class E(Exception):\n        def __str__(self): raise E\n    raise E", "error: E"),
        ("import atexit\ndef run(i):\n    atexit.register(print, 'late')\n    return 1", "ok 1"),
        (
            "class D:\n    def __del__(self):\n        while True: pass\ndef run(i):\n    global d\n    d = D()\n    return 1",
            "ok 1",
        ),
        (
            "import signal\ndef run(i):\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    return 1",
            "ok 1",
        ),
        ("import signal\ndef run(i):\n    signal.alarm(1)\n    return 1", "denied"),
        (
            "import threading\ndef f():\n    while True: pass\ndef run(i):\n    threading.Thread(target=f).start()\n    return 1",
            "ok 1",
        ),
        ("import os\ndef run(i):\n    return os.fork()", "denied"),
        ("import socket\ndef run(i):\n    return socket.socket()", "denied"),
        ("import os\ndef run(i):\n    return os.uname()", "denied"),
    ] {
        check(&s, source, "null", expected);
    }
    let late =
        call(&s, "import atexit\ndef run(i):\n    atexit.register(print, 'late')\n    return 1", "null");
    assert!(late.printed.is_empty());
}

#[test]
fn threads_are_counted_per_call() {
    let s = Arc::new(supervisor(Mode::Guarded));
    let many = "import threading, time\ndef run(n):\n    for k in range(n): threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n    return n";
    check(&s, many, "31", "ok 31");
    check(&s, many, "32", "processes");
    // Forty calls at once, each with its own count.
    std::thread::scope(|scope| {
        for _ in 0..40 {
            let s = Arc::clone(&s);
            scope.spawn(move || assert_eq!(ending(&call(&s, many, "20")), "ok 20"));
        }
    });
}

#[test]
fn an_error_shows_the_creators_own_frames_only() {
    let s = supervisor(Mode::Guarded);
    let source = "import json\n\ndef inner(text):\n    return json.loads(text)\n\ndef run(inputs):\n    return inner('{')\n";
    let report = call(&s, source, "null");
    let Outcome::Error(raised) = &report.outcome else { panic!("{report:?}") };
    assert_eq!((raised.kind.as_str(), raised.line), ("JSONDecodeError", 4));
    assert_eq!(raised.frames, [(7, "run".to_owned()), (4, "inner".to_owned())]);
}

#[test]
fn nothing_is_shared_between_two_calls() {
    let s = supervisor(Mode::Guarded);
    let draw = "import random\ndef run(i):\n    return [random.random() for _ in range(4)]";
    let drawn: std::collections::HashSet<String> = (0..16).map(|_| ending(&call(&s, draw, "null"))).collect();
    assert_eq!(drawn.len(), 16, "two calls drew the same numbers");
    let keep = "import math\ndef run(i):\n    before = [hasattr(math, 'kept')]\n    try:\n        before.append(open('/tmp/kept').read())\n    \
        except OSError: before.append(None)\n    math.kept = 1\n    open('/tmp/kept', 'w').write('kept')\n    return before";
    for _ in 0..6 {
        assert_eq!(ending(&call(&s, keep, "null")), "ok [false,null]");
    }
}
