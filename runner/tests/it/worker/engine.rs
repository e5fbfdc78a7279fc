//! What code finds in the engine: values, errors, imports, output, limits.

use super::client::*;

#[test]
fn the_last_expression_is_the_value() {
    let mut worker = Worker::new();
    for (source, value) in [
        ("1", int(1)),
        ("x = 2", b"N".to_vec()),
        ("x = 3\nx + 1", int(4)),
        ("", b"N".to_vec()),
        ("# nothing", b"N".to_vec()),
        ("for i in range(3): pass\ni", int(2)),
        ("x\n\n\n", int(3)),
        ("'a'; 'b'", str_value("b")),
        ("def f(): return 7\nf()", int(7)),
    ] {
        let said = worker.eval(source);
        assert_eq!(said, Said::Message(VALUE, value), "{source}: {}", said.readable());
    }
    worker.check(
        "from __future__ import annotations\n'\\N{BULLET}' == '\\u2022' and 'é'.encode('cp1252') == b'\\xe9'",
    );
    worker.refuse(" 1", "IndentationError");
    worker.refuse("1 +", "SyntaxError");
    worker.refuse("x = 9; 1 +", "SyntaxError");
    worker.check("x == 3");
}

#[test]
fn errors_tell_type_message_and_place() {
    let mut worker = Worker::new();
    worker.exec("def f():\n    return 1 / 0\nclass Own(KeyError):\n    pass\nclass Mute(Exception):\n    def __str__(self):\n        raise ValueError").fields(VALUE);
    let fields = worker.ask(EVAL, &[text("f()"), text("here.py")].concat()).fields(ERROR);
    let place = [str_value("<string>"), int(2)].concat();
    assert!(fields.windows(place.len()).any(|w| w == place), "{}", String::from_utf8_lossy(&fields));
    let fields = worker.eval("raise Own('k')").fields(ERROR);
    assert!(fields.starts_with(&[text("Own"), text("'k'"), text("KeyError")].concat()));
    let fields = worker.eval("raise Mute()").fields(ERROR);
    assert!(fields.starts_with(&[text("Mute"), text(""), text("Exception")].concat()));
    let fields = worker.ask(EVAL, &[text("a b"), text("there.py")].concat()).fields(ERROR);
    let place = [str_value("there.py"), int(1)].concat();
    assert!(fields.windows(place.len()).any(|w| w == place));
    // A class that calls itself a builtin is none.
    let fields = worker.eval("type('KeyError', (ValueError,), {'__module__': 'builtins'})").fields(VALUE);
    assert_eq!(fields[0], b'O');
    let fields =
        worker.eval("raise type('KeyError', (ValueError,), {'__module__': 'builtins'})('x')").fields(ERROR);
    assert!(fields.starts_with(&[text("KeyError"), text("x"), text("ValueError")].concat()));
}

#[test]
fn a_long_message_is_cut_to_fit() {
    let mut worker = Worker::with(&Init { message: 1024, ..Init::default() });
    for source in ["raise ValueError('é' * 100000)", "raise type('X' * 5000, (Exception,), {})('m' * 5000)"]
    {
        let said = worker.eval(source);
        let Said::Message(ERROR, fields) = said else { panic!("{}", said.readable()) };
        assert!(fields.len() < 1024);
    }
    // Kind, tag and length take six bytes of the longest message.
    assert_eq!(worker.eval("'x' * 1018").fields(VALUE).len(), 1023);
    worker.refuse("'x' * 1019", "message_limit");
    worker.refuse("print('x' * 1019)", "message_limit");
    worker.refuse("print('x' * 2000, 'y' * 2000)", "message_limit");
    worker.check("1 == 1");
}

#[test]
fn objects_are_operated_on_by_handle() {
    let mut worker = Worker::new();
    worker.exec("class L(list):\n    pass\na = L([3, 4])").fields(VALUE);
    assert_eq!(worker.ask(GET, &text("a")).fields(VALUE), object(1));
    let op = |number: u8, operands: &[u8]| [&[number][..], &1u64.to_le_bytes(), operands].concat();
    for (number, operands, value) in [
        (2, [str_value("name"), int(5)].concat(), b"N".to_vec()),
        (1, str_value("name"), int(5)),
        (3, int(0), int(3)),
        (4, [int(0), int(9)].concat(), b"N".to_vec()),
        (5, vec![], int(2)),
        (6, int(9), b"T".to_vec()),
        (9, vec![], b"T".to_vec()),
        (13, [&b"l\x02\0\0\0"[..], &int(9), &int(4)].concat(), b"T".to_vec()),
        (14, b"N".to_vec(), b"T".to_vec()),
        (17, vec![], str_value("[9, 4]")),
        (18, vec![], str_value("[9, 4]")),
        (7, vec![], object(2)),
    ] {
        let said = worker.ask(OP, &op(number, &operands));
        assert_eq!(said, Said::Message(VALUE, value), "operation {number}: {}", said.readable());
    }
    let next = [&[8][..], &2u64.to_le_bytes()].concat();
    assert_eq!(worker.ask(OP, &next).fields(VALUE), int(9));
    assert_eq!(worker.ask(OP, &next).fields(VALUE), int(4));
    assert!(worker.ask(OP, &next).fields(ERROR).starts_with(&text("StopIteration")));
    assert!(worker.ask(OP, &op(10, &[])).fields(ERROR).starts_with(&text("TypeError")));
    assert!(worker.ask(OP, &op(3, &int(7))).fields(ERROR).starts_with(&text("IndexError")));
    let names = worker.ask(OP, &op(19, &[])).fields(VALUE);
    assert_eq!(names[0], b'l');
    // A list of anything but names, and a repr of a subclass, still have the type that the parent is promised.
    worker.exec("class S(str):\n    pass\nclass D:\n    def __dir__(self):\n        return ['b', 1, S('a')]\n    def __repr__(self):\n        return S('r')").fields(VALUE);
    let handle = worker.eval("D()").fields(VALUE);
    let of = |number: u8| [&[number][..], &handle[1..]].concat();
    let names = [&b"l\x02\0\0\0"[..], &str_value("a"), &str_value("b")].concat();
    let said = worker.ask(OP, &of(19));
    assert!(
        said == Said::Message(VALUE, names) || said.readable().contains("TypeError"),
        "{}",
        said.readable()
    );
    assert_eq!(worker.ask(OP, &of(17)).fields(VALUE), str_value("r"));
}

#[test]
fn released_objects_are_gone_and_may_speak_as_they_go() {
    let mut worker = Worker::new();
    worker.exec("class D:\n    def __del__(self):\n        print('gone')").fields(VALUE);
    assert_eq!(worker.eval("D()").fields(VALUE), object(1));
    worker.send(&frame(EVAL, &[1], &[text("'after'"), text("<string>")].concat()));
    assert_eq!(worker.read().fields(OUTPUT), text("gone\n"));
    assert_eq!(worker.ask(RETURN, b"N").fields(VALUE), str_value("after"));
    worker.send(&frame(COLLECT, &[1], &[]));
    assert!(matches!(worker.read(), Said::Message(FATAL, _)));
    assert_eq!(worker.read(), Said::Ended(65));
}

#[test]
fn nothing_but_the_granted_imports() {
    let mut worker = Worker::new();
    for name in
        ["os", "io", "posix", "_io", "builtins", "_thread", "time", "encodings", "importlib", "marshal"]
    {
        worker.refuse(&format!("import {name}"), "ModuleNotFoundError");
    }
    worker.check(
        "import sys; sys.maxsize > 0 and not hasattr(sys, 'setprofile') and not hasattr(sys, '_getframe')",
    );
    worker.check("import gc; gc.collect() >= 0 and not hasattr(gc, 'get_objects')");
    worker.check("import sys; sys.modules['sys'] is sys");
    worker.refuse("import sys; sys.exit(3)", "SystemExit");
    worker.refuse("import sys.x", "'sys' is not a package");
    for name in ["input", "breakpoint", "exit", "help"] {
        worker.refuse(name, "NameError");
    }
    let mut bare = Worker::with(&Init { flags: 0, ..Init::default() });
    bare.refuse("import sys", "ModuleNotFoundError");
}

#[test]
fn registered_modules_are_imported_once() {
    let mut worker = Worker::new();
    let module = |name: &str, source: &str| {
        let members = [&b"d\x01\0\0\0"[..], &str_value("n"), &int(5)].concat();
        [text(name), members, if source.is_empty() { b"N".to_vec() } else { str_value(source) }].concat()
    };
    worker.ask(MODULE, &module("m", "n += 1\ndef double(): return n * 2")).fields(VALUE);
    worker.ask(MODULE, &module("a.b", "")).fields(VALUE);
    worker.check("import m; m.double() == 12 and m.__name__ == 'm'");
    worker.check("from m import n as k; import m; m.n = 0; import m as again; k == 6 and again.n == 0");
    worker.check("import a.b; a.b.n == 5 and a.__path__ == []");
    worker.check("from a import b; b.n == 5");
    worker.refuse("from m import none", "ImportError");
    worker.refuse("import m.x", "'m' is not a package");
    worker.ask(MODULE, &module("bad", "1 / 0")).fields(VALUE);
    worker.refuse("import bad", "ZeroDivisionError");
    worker.refuse("import bad", "ZeroDivisionError");
}

/// Answers LOAD from `sources`; returns the names that were asked for and what came last.
fn loading(worker: &mut Worker, source: &str, sources: &[(&str, &str)]) -> (Vec<String>, Said) {
    let mut asked = Vec::new();
    let mut said = worker.eval(source);
    while let Said::Message(LOAD, fields) = &said {
        let name = String::from_utf8(fields[4..].to_vec()).unwrap();
        let found = sources.iter().find(|(n, _)| *n == name).map_or(b"N".to_vec(), |(_, s)| str_value(s));
        asked.push(name);
        said = worker.ask(RETURN, &found);
    }
    (asked, said)
}

#[test]
fn a_loader_is_asked_in_order() {
    let mut worker = Worker::with(&Init { flags: 3, ..Init::default() });
    let sources = [
        ("pkg.__init__", "from .mod import x\nfrom . import other"),
        ("pkg.mod", "x = 1"),
        ("pkg.other", "from .mod import x as y"),
        ("plain", "z = 2"),
        ("space.__namespace__", "not run: ("),
        ("space.inner", "from . import none"),
    ];
    let (asked, said) = loading(&mut worker, "import pkg.mod; pkg.other.y", &sources);
    assert_eq!(said, Said::Message(VALUE, int(1)), "{}", said.readable());
    assert_eq!(asked, ["pkg.__init__", "pkg.mod.__init__", "pkg.mod", "pkg.other.__init__", "pkg.other"]);
    let (asked, said) = loading(&mut worker, "import plain; import plain; plain.z", &sources);
    assert_eq!((asked.len(), said), (2, Said::Message(VALUE, int(2))));
    let (asked, said) = loading(&mut worker, "import none", &sources);
    assert_eq!(asked, ["none.__init__", "none", "none.__namespace__"]);
    assert!(said.readable().contains("No module named 'none'"));
    let (asked, said) = loading(&mut worker, "import space; space.__path__ == []", &sources);
    assert_eq!(asked, ["space.__init__", "space", "space.__namespace__"]);
    assert_eq!(said, Said::Message(VALUE, b"T".to_vec()), "{}", said.readable());
    let (_, said) = loading(&mut worker, "import space.inner", &sources);
    assert!(said.readable().contains("cannot import name 'none'"), "{}", said.readable());
    worker.refuse("from . import x", "relative import");
    // What the engine has is not asked for.
    let (asked, _) = loading(&mut worker, "import sys", &sources);
    assert_eq!(asked, Vec::<String>::new());
}

#[test]
fn print_is_one_message() {
    let mut worker = Worker::new();
    for (source, expected) in [
        ("print()", "\n"),
        ("print(1, 'a', sep='-', end='!')", "1-a!"),
        ("print('x', sep=None, end=None, file=None, flush=True)", "x\n"),
        ("import sys; sys.stdout.write('w') and None", "w"),
        ("import sys; print('e', file=sys.stderr, end='') or None", "e"),
    ] {
        let said = worker.eval(source);
        assert_eq!(said, Said::Message(OUTPUT, text(expected)), "{source}: {}", said.readable());
        let mut said = worker.ask(RETURN, b"N");
        while let Said::Message(OUTPUT, _) = said {
            said = worker.ask(RETURN, b"N");
        }
        assert_eq!(said, Said::Message(VALUE, b"N".to_vec()), "{source}");
    }
    worker.refuse("print(1, sep=2)", "sep must be None or a string, not int");
    worker.refuse("print(1, other=2)", "unexpected keyword argument 'other'");
    worker.eval("print(1)").fields(OUTPUT);
    let raised =
        [&b"\x01"[..], &1u64.to_le_bytes(), &1u32.to_le_bytes(), &text("OSError"), b"t\0\0\0\0"].concat();
    assert!(worker.ask(RAISE, &raised).fields(ERROR).starts_with(&text("OSError")));
}

#[test]
fn exceptions_of_the_parent_become_the_engines() {
    let mut worker = Worker::new();
    worker
        .ask(SET, &[text("h"), b"H".to_vec(), 1u64.to_le_bytes().to_vec(), text("host")].concat())
        .fields(VALUE);
    worker.check("h.__name__ == 'host' and h is h");
    let raise = |token: u64, names: &[&str], arguments: &[u8]| {
        let count = u32::try_from(names.len()).unwrap().to_le_bytes();
        let names: Vec<u8> = names.iter().flat_map(|name| text(name)).collect();
        [&b"\x01"[..], &token.to_le_bytes(), &count, &names, arguments].concat()
    };
    let one = |value: &[u8]| [&b"t\x01\0\0\0"[..], value].concat();
    for (names, arguments, caught) in [
        (&["Mine", "KeyError", "LookupError"][..], one(&str_value("k")), "KeyError('k')"),
        (&["Mine"], one(&str_value("k")), "RuntimeError('k')"),
        (&["int", "print", "Exception"], one(&int(2)), "Exception(2)"),
        (&["UnicodeDecodeError"], one(&str_value("short")), "RuntimeError('short')"),
        (&["KeyboardInterrupt", "BaseException"], b"t\0\0\0\0".to_vec(), "KeyboardInterrupt()"),
    ] {
        worker.eval("try:\n    h()\nexcept BaseException as e:\n    r = repr(e)\nr").fields(CALLBACK);
        let said = worker.ask(RAISE, &raise(7, names, &arguments));
        assert_eq!(said, Said::Message(VALUE, str_value(caught)), "{}", said.readable());
        // Escaping, it still says where it came from.
        worker.eval("h()").fields(CALLBACK);
        let fields = worker.ask(RAISE, &raise(8, names, &arguments)).fields(ERROR);
        assert!(fields.ends_with(&8u64.to_le_bytes()));
        // Raised anew it is another exception, and in the next request nothing is remembered.
        worker.refuse("raise ValueError", "ValueError");
    }
    worker.eval("try:\n    h()\nexcept Exception as e:\n    raise OSError from e").fields(CALLBACK);
    let fields = worker.ask(RAISE, &raise(9, &["ValueError"], b"t\0\0\0\0")).fields(ERROR);
    assert!(fields.ends_with(&0u64.to_le_bytes()));
    // The engine's own, by handle.
    worker.exec("e = ValueError('own')").fields(VALUE);
    let handle = worker.ask(GET, &text("e")).fields(VALUE);
    worker.eval("try:\n    h()\nexcept ValueError as x:\n    r = x is e\nr").fields(CALLBACK);
    assert_eq!(worker.ask(RAISE, &[&b"\0"[..], &handle[1..]].concat()).fields(VALUE), b"T");
}

#[test]
fn requests_nest_in_callouts_to_a_depth() {
    let mut worker = Worker::new();
    worker
        .ask(SET, &[text("h"), b"H".to_vec(), 1u64.to_le_bytes().to_vec(), text("h")].concat())
        .fields(VALUE);
    worker.exec("def down(): return h()").fields(VALUE);
    let call = [str_value("down"), NO_ARGUMENTS.to_vec()].concat();
    let mut said = worker.ask(CALL, &call);
    let mut depth = 0;
    while let Said::Message(CALLBACK, _) = said {
        depth += 1;
        said = worker.ask(CALL, &call);
    }
    assert_eq!(depth, 64);
    assert!(said.fields(ERROR).starts_with(&text("RecursionError")));
    for _ in 0..depth - 1 {
        worker.ask(RETURN, &int(3)).fields(VALUE);
    }
    assert_eq!(worker.ask(RETURN, &int(4)).fields(VALUE), int(4));
}

#[test]
fn memory_runs_out_for_the_code_and_not_for_the_worker() {
    let mut worker = Worker::with(&Init { memory: 8 << 20, ..Init::default() });
    worker.refuse("'x' * (9 << 20)", "MemoryError");
    worker.check("len('x' * (7 << 20)) > 0");
    let fill = "kept = []\ntry:\n    while True:\n        kept.append('x' * (1000 + len(kept) % 2))\nexcept MemoryError:\n    handled = ['y' * (700 + i) for i in range(90)]\n    n = len(kept)\n    message = f'{n} kept'\nmessage.endswith('kept') and 5000 < n < 9000";
    worker.check(fill);
    // At its limit it can still be told to let go, and then works as before.
    assert_eq!(worker.ask(DEL, &text("kept")).fields(VALUE), b"N");
    worker.check("len([0] * 800000) == 800000");
    for source in [
        "x = []\nwhile True: x.append([])",
        "x = {}\nfor i in range(10**9): x[i] = i",
        "x = 1\nwhile True: x <<= 100000",
        "x = b''\nwhile True: x += b'y' * 10000",
        "def f(): return [f() for _ in range(10000)]\nx = set()\nwhile True: x.add(object())",
    ] {
        worker.refuse(source, "MemoryError");
        worker.exec("x = None").fields(VALUE);
        worker.check("sum(range(1000)) == 499500");
    }
    // Returning a text costs the engine nothing, so that at its limit it does not end up past it.
    worker.exec("x = ['\u{20ac}' * 100000 for _ in range(20)]").fields(VALUE);
    for _ in 0..2 {
        let texts = worker.eval("x[:3]").fields(VALUE);
        assert!(texts.len() > 900_000);
        worker.check("len('x' * 700000) == 700000");
    }
    // The parent's own values count too.
    let said =
        worker.ask(SET, &[text("x"), b"l\x40\x0d\x03\0".to_vec(), b"d\0\0\0\0".repeat(200_000)].concat());
    assert!(said.fields(ERROR).starts_with(&text("MemoryError")));
    worker.check("1 == 1");
}

#[test]
fn steps_run_out_for_good() {
    let mut worker = Worker::with(&Init { steps: 1000, ..Init::default() });
    let loops =
        "n = 0\nwhile True:\n    try:\n        while True: n += 1\n    except RuntimeError:\n        pass";
    for source in [
        "while True: pass",
        loops,
        "def f(): f()\nimport sys\nfor i in range(10**6): i",
        "[i for i in range(10**6)]",
    ] {
        worker.refuse(source, "step limit exceeded");
        worker.check("sum(range(10)) == 45");
    }
}
