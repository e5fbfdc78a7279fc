//! The golden vectors (`runner/vectors/`), through a live worker: a value is set and read back, made in the engine and
//! read, or refused.

use std::path::Path;

use super::client::*;

/// The rows of a file of vectors.
fn rows(name: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let rows: Vec<Vec<String>> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect();
    assert!(rows.len() >= 4, "{name}: {}", rows.len());
    rows
}

/// `6162`, or `61*3+62`.
fn bytes(hex: &str) -> Vec<u8> {
    let plain = |hex: &str| -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    };
    match hex.split_once('*') {
        None => plain(hex),
        Some((repeated, rest)) => {
            let (count, rest) = rest.split_once('+').unwrap();
            [plain(repeated).repeat(count.parse().unwrap()), plain(rest)].concat()
        }
    }
}

/// A worker that knows the names in the expressions.
fn worker() -> Worker {
    let mut worker = Worker::new();
    // bits() is answered here: the engine has no way to look into a float.
    let bits = [text("bits"), b"H".to_vec(), 1u64.to_le_bytes().to_vec(), text("bits")].concat();
    worker.ask(SET, &bits).fields(VALUE);
    let nest = "inf = float('inf')\ndef nest(n):\n    x = None\n    for _ in range(n):\n        x = (x,)\n    return x\n";
    worker.exec(nest).fields(VALUE);
    worker
}

/// Evaluates an expression of the vectors.
fn made(worker: &mut Worker, expression: &str) -> Vec<u8> {
    let mut said = worker.eval(expression);
    while let Said::Message(CALLBACK, fields) = &said {
        // The id, a tuple of one, and in it the bits as an int; past 63 bits an `I`, whose last byte is the sign.
        let number = match fields[13] {
            b'i' => &fields[14..22],
            _ => &fields[18..26],
        };
        said = worker.ask(RETURN, &[b"f", number].concat());
    }
    said.fields(VALUE)
}

#[test]
fn values_are_these_bytes_both_ways() {
    let mut worker = worker();
    for row in rows("values.tsv") {
        let [hex, expression] = &row[..] else { panic!("{row:?}") };
        let value = bytes(hex);
        assert_eq!(made(&mut worker, expression), value, "made by {expression}");
        worker.ask(SET, &[text("x"), value.clone()].concat()).fields(VALUE);
        assert_eq!(worker.ask(GET, &text("x")).fields(VALUE), value, "through x: {expression}");
    }
}

#[test]
fn other_ways_to_write_a_value_are_taken() {
    let mut worker = worker();
    for row in rows("accepted.tsv") {
        let [hex, expression] = &row[..] else { panic!("{row:?}") };
        worker.ask(SET, &[text("x"), bytes(hex)].concat()).fields(VALUE);
        worker.check(&format!("x == {expression} and type(x) is type({expression})"));
        worker.check(&format!("repr(x) == repr({expression})"));
    }
}

#[test]
fn what_is_no_value_ends_the_worker() {
    for row in rows("refused.tsv") {
        let [hex, rule] = &row[..] else { panic!("{row:?}") };
        let mut worker = Worker::new();
        let said = worker.ask(SET, &[text("x"), bytes(hex)].concat());
        assert!(matches!(said, Said::Message(FATAL, _)), "{hex} ({rule}): {}", said.readable());
        assert_eq!(worker.read(), Said::Ended(65), "{hex} ({rule})");
    }
}

#[test]
fn equal_keys_of_the_parent_are_an_error_and_no_violation() {
    let mut worker = Worker::new();
    let set = [&b"e\x02\0\0\0"[..], &int(1), b"T"].concat();
    let dict = [&b"d\x02\0\0\0"[..], &int(1), b"N", &int(1), b"N"].concat();
    for value in [set, dict] {
        let said = worker.ask(SET, &[text("x"), value].concat());
        assert!(said.readable().contains("equal keys"), "{}", said.readable());
    }
    worker.check("1 == 1");
}

/// Every message of the worker that a scenario can make to the byte, made.
#[test]
fn messages_are_these_bytes() {
    let rows = rows("messages.tsv");
    let of = |name: &str| -> Vec<Vec<u8>> {
        let of = rows.iter().filter(|row| row[1] == name);
        of.map(|row| bytes(&row[2])[4..].to_vec()).collect()
    };
    let said = |worker: &mut Worker| match worker.read() {
        Said::Message(kind, fields) => [&[kind][..], &fields].concat(),
        Said::Ended(status) => panic!("ended with {status}"),
    };
    let mut worker = Worker::with(&Init { flags: 3, ..Init::default() });
    let function = [text("f"), b"H".to_vec(), 1u64.to_le_bytes().to_vec(), text("f")].concat();
    worker.ask(SET, &function).fields(VALUE);
    // Three handles are given, so that the next is the fourth.
    worker.ask(GET, &text("f")).fields(VALUE);
    worker.ask(GET, &text("f")).fields(VALUE);
    worker.ask(GET, &text("f")).fields(VALUE);
    let run = |source: &str| frame(EVAL, &[], &[text(source), text("<string>")].concat());

    worker.send(&run("1 + 1"));
    assert_eq!(said(&mut worker), of("VALUE")[0]);
    worker.send(&run("{}['k']"));
    assert_eq!(said(&mut worker), of("ERROR")[0]);
    worker.send(&run("f(1, k=2)"));
    assert_eq!(said(&mut worker), of("CALLBACK")[0]);
    worker.ask(RETURN, b"N").fields(VALUE);
    worker.send(&run("print('hi')"));
    assert_eq!(said(&mut worker), of("OUTPUT")[0]);
    worker.ask(RETURN, b"N").fields(VALUE);
    worker.send(&run("import pkg"));
    assert_eq!(said(&mut worker), of("LOAD")[0]);
    worker.ask(RETURN, &str_value("")).fields(VALUE);

    let mut worker = Worker::bare();
    worker.send(&frame(INIT, &[], &Init { protocol: 2, ..Init::default() }.fields()));
    assert_eq!(said(&mut worker), of("FATAL")[0]);
}

/// Every message of the parent, read by a worker that is where the message makes sense.
#[test]
fn messages_of_the_parent_are_understood() {
    let rows = rows("messages.tsv");
    for row in rows.iter().filter(|row| row[0] == "parent" && row[1] != "INIT") {
        let mut worker = Worker::new();
        // Handles 1 to 12: functions, and the last an exception.
        worker
            .exec(
                "def f(*values, **named):\n    return 3\nclass X(dict):\n    pass\nx = X()\ne = ValueError()",
            )
            .fields(VALUE);
        let (each, last) = (text("x"), text("e"));
        for handle in 1..=12 {
            worker.ask(GET, if handle == 12 { &last } else { &each }).fields(VALUE);
        }
        let frame = bytes(&row[2]);
        let answers = matches!(row[1].as_str(), "RETURN" | "RAISE");
        if answers {
            worker
                .ask(SET, &[text("h"), b"H".to_vec(), 1u64.to_le_bytes().to_vec(), text("h")].concat())
                .fields(VALUE);
            worker.eval("h()").fields(CALLBACK);
        }
        worker.send(&frame);
        let mut said = worker.read();
        if let Said::Message(CALLBACK, _) = said {
            said = worker.ask(RETURN, b"N");
        }
        assert!(matches!(said, Said::Message(VALUE | ERROR, _)), "{}: {}", row[1], said.readable());
        worker.check("f() == 3");
    }
}
