//! A parent that breaks the protocol: the worker says so and ends, whatever it is sent, and never by a signal.

use proptest::prelude::*;

use super::client::*;

/// Sends bytes to a worker that has had INIT, closes its input, and returns how it ended. Callouts are answered.
fn ending(bytes: &[u8]) -> (Vec<Said>, i32) {
    let mut worker = Worker::with(&Init { steps: 100_000, message: 4096, ..Init::default() });
    worker.send(bytes);
    drop(worker.input.take());
    let mut said = Vec::new();
    loop {
        match worker.read() {
            Said::Ended(status) => return (said, status),
            message => said.push(message),
        }
    }
}

#[test]
fn broken_rules_are_named() {
    let empty = |kind: u8| frame(kind, &[], &[]);
    let run = [text("1"), text("f")].concat();
    let rows: Vec<(Vec<u8>, &str)> = vec![
        (vec![0, 0, 0, 0], "a message of 0 bytes"),
        (vec![1, 16, 0, 0, 9], "a message of 4097 bytes"),
        (vec![255, 255, 255, 255], "a message of 4294967295 bytes"),
        (vec![9, 0, 0], "within a frame"),
        (vec![9, 0, 0, 0, 2], "within a frame"),
        (empty(0), "kind 0x00 out of turn"),
        (empty(0x0c), "kind 0x0c out of turn"),
        (frame(RETURN, &[], b"N"), "kind 0x20 out of turn"),
        (frame(INIT, &[], &Init::default().fields()), "kind 0x01 out of turn"),
        (empty(EVAL), "ends within a field"),
        (frame(EVAL, &[], &[run.clone(), vec![0]].concat()), "1 bytes follow"),
        (frame(EVAL, &[], &[text("1"), vec![1, 0, 0, 0, 0xff]].concat()), "not UTF-8"),
        (frame(GET, &[1], &text("x")), "released that is not held"),
        (vec![5, 0, 0, 0, GET, 255, 255, 255, 255], "a count of 4294967295"),
        (frame(OP, &[], &[&[5][..], &1u64.to_le_bytes()].concat()), "handle 1 is not held"),
        (frame(OP, &[], &[&[20][..], &1u64.to_le_bytes()].concat()), "unknown operation 20"),
        (
            frame(CALL, &[], &[str_value("f"), b"N".to_vec(), b"d\0\0\0\0".to_vec()].concat()),
            "arguments of another type",
        ),
        (frame(MODULE, &[], &[text("m"), b"d\0\0\0\0".to_vec(), int(1)].concat()), "neither str nor None"),
        (frame(MOUNT, &[], &[text("tmp"), text("/x"), vec![0]].concat()), "not absolute"),
        (frame(MOUNT, &[], &[text("/tmp"), text("/x"), vec![2]].concat()), "flag 2"),
        (frame(SET, &[], &[text("x"), object(9)].concat()), "handle 9 is not held"),
    ];
    for (bytes, expected) in rows {
        let (said, status) = ending(&bytes);
        let last = said.last().map(Said::readable).unwrap_or_default();
        assert!(
            last.starts_with("0x9f") && last.contains(expected),
            "{bytes:?}: {last}, expected {expected}"
        );
        assert_eq!(status, 65, "{bytes:?}");
    }
}

#[test]
fn init_is_first_and_exact() {
    let init = Init::default();
    for (bytes, expected) in [
        (frame(GET, &[], &text("x")), "before INIT"),
        (frame(INIT, &[1], &init.fields()), "INIT releases"),
        (frame(INIT, &[], &Init { protocol: 0, ..init }.fields()), "protocol 0, this worker speaks 1"),
        (frame(INIT, &[], &Init { flags: 8, ..init }.fields()), "unknown flags"),
        (frame(INIT, &[], &Init { message: 1023, ..init }.fields()), "message_limit of 1023"),
        (frame(INIT, &[], &Init { message: 1 << 31, ..init }.fields()), "message_limit of 2147483648"),
        (frame(INIT, &[], &init.fields()[..27]), "ends within a field"),
        (frame(INIT, &[], &[init.fields(), vec![0]].concat()), "1 bytes follow"),
        (frame(INIT, &[], &vec![0; 1100]), "1 to 1024 are allowed"),
    ] {
        let mut worker = Worker::bare();
        worker.send(&bytes);
        let said = worker.read();
        assert!(said.readable().contains(expected), "{}, expected {expected}", said.readable());
        assert_eq!(worker.read(), Said::Ended(65));
    }
}

#[test]
fn eval_within_a_callout_is_out_of_turn() {
    let mut worker = Worker::new();
    worker.eval("print(1)").fields(OUTPUT);
    let said = worker.eval("2");
    assert!(said.readable().contains("out of turn"), "{}", said.readable());
    assert_eq!(worker.read(), Said::Ended(65));
    let mut worker = Worker::new();
    worker.eval("print(1)").fields(OUTPUT);
    let said = worker.ask(RAISE, &[&b"\0"[..], &5u64.to_le_bytes()].concat());
    assert!(said.readable().contains("not held"), "{}", said.readable());
}

/// Well-formed messages to begin with.
fn seeds() -> Vec<Vec<u8>> {
    let values = [
        int(1),
        b"f\0\0\0\0\0\0\xf0\x3f".to_vec(),
        str_value("é"),
        b"q\x02\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0".to_vec(),
        [&b"d\x01\0\0\0"[..], &str_value("k"), b"l\x01\0\0\0N"].concat(),
        b"I\x09\0\0\0\0\0\0\0\0\0\0\0\x01".to_vec(),
        b"z\x01\0\0\0t\x01\0\0\0b\x01\0\0\0x".to_vec(),
        [&b"H"[..], &1u64.to_le_bytes(), &text("h")].concat(),
    ];
    let mut seeds: Vec<Vec<u8>> =
        values.iter().map(|v| frame(SET, &[], &[text("x"), v.clone()].concat())).collect();
    for source in ["x", "1 / 0", "print(x)", "[x] * 3\nx", "import sys\nsys"] {
        seeds.push(frame(EVAL, &[], &[text(source), text("f")].concat()));
    }
    seeds.push(frame(
        CALL,
        &[],
        &[str_value("len"), b"t\x01\0\0\0s\x01\0\0\0a".to_vec(), b"d\0\0\0\0".to_vec()].concat(),
    ));
    seeds.push(frame(GET, &[], &text("print")));
    seeds.push(frame(OP, &[], &[&[17][..], &1u64.to_le_bytes()].concat()));
    seeds.push(frame(MODULE, &[], &[text("m"), b"d\0\0\0\0".to_vec(), str_value("y = 1")].concat()));
    seeds.push(frame(COLLECT, &[], &[]));
    seeds.push(frame(RETURN, &[], b"N"));
    seeds
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_messages_never_crash_a_worker(
        picks in prop::collection::vec((0usize..64, any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 1..6),
    ) {
        let seeds = seeds();
        let mut bytes = Vec::new();
        for (pick, at, byte, how) in picks {
            let mut one = seeds[pick % seeds.len()].clone();
            let at = at.index(one.len());
            match how {
                0 => one[at] = byte,
                1 => one.truncate(at),
                2 => one.insert(at, byte),
                _ => {}
            }
            bytes.extend(one);
        }
        let (_, status) = ending(&bytes);
        prop_assert!(status == 0 || status == 65, "status {status} after {bytes:?}");
    }
}
