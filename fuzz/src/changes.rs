//! Changes of a seed: the same ones on every machine, made by a small xorshift.
//!
//! Called by the tests that hold seeds against what must be true without a fuzzer. No coverage guides it.

use std::path::Path;

/// Numbers that look random.
struct Xorshift(u64);

impl Xorshift {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A place in `length` bytes or right behind them.
    fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.next() >> 1).unwrap_or_default() % (length + 1)
    }
}

/// Bytes that readers of lengths, of text and of programs trip over.
const PIECES: [&[u8]; 16] = [
    b"\xff\xff\xff\xff",
    b"\0\0\0\0",
    b"\x80",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\r\n",
    b"\0",
    b"\x7f",
    b"\"",
    b"<",
    b"{",
    b"(",
    b"\\u",
    b"`${",
    b"'''",
    b"&#x",
];

/// Holds every seed in `folder`, and `changes` changes of each, against `holds`. Fails when there is no seed.
pub fn replay(folder: &Path, changes: usize, holds: impl Fn(&[u8])) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut seeds: Vec<_> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().unwrap();
    seeds.sort();
    assert!(!seeds.is_empty(), "no seed in {}", folder.display());
    for (number, path) in (1..).zip(seeds) {
        let seed = std::fs::read(&path).unwrap();
        holds(&seed);
        let mut random = Xorshift(number);
        for _ in 0..changes {
            holds(&changed(&seed, &mut random));
        }
    }
}

/// The seed with one to four changes.
fn changed(seed: &[u8], random: &mut Xorshift) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.next() % 4 {
        let (a, b) = (random.place(bytes.len()), random.place(bytes.len()));
        let (from, to) = (a.min(b), a.max(b));
        match random.next() % 5 {
            0 if from < bytes.len() => bytes[from] ^= 1 << (random.next() % 8),
            1 => drop(bytes.drain(from..to)),
            2 => {
                let copy = bytes[from..to].to_vec();
                bytes.splice(a..a, copy).for_each(drop);
            }
            3 => bytes.truncate(to),
            _ => {
                let piece = PIECES[random.place(PIECES.len() - 1)];
                bytes.splice(from..from, piece.iter().copied()).for_each(drop);
            }
        }
    }
    bytes
}
