//! No input brings a gate down: random bytes, and random mixtures of what hostile input is made of.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use intake::submission::{File, Submission};
use intake::{archive, document, python, sidecar};
use proptest::prelude::*;

/// Pieces of HTML, CSS and JavaScript that mean something to a parser.
const PAGE: &[&str] = &[
    "<script>",
    "</script>",
    "<svg>",
    "</svg>",
    "<style>",
    "</style>",
    "<![CDATA[",
    "]]>",
    "<!--",
    "-->",
    "<a href=",
    "'",
    "\"",
    ">",
    "=",
    "&amp;",
    "&#",
    "javascript:",
    "data:text/html,",
    "data:image/svg+xml;base64,",
    "PHN2Zz4=",
    "`",
    "${",
    "}",
    "{",
    "(",
    ")",
    "[",
    "]",
    "window",
    "[\"ev\"+\"al\"]",
    "eval",
    "atob(",
    "fetch",
    "/",
    "//",
    "/*",
    "*/",
    "\\u0065",
    "\\x",
    ".constructor",
    "with(",
    "=>",
    "function",
    "class",
    "async ",
    "await ",
    "yield ",
    ";",
    "\n",
    "\r\n",
    "\0",
    "é",
    "\u{202E}",
    "🙂",
    "url(",
    "@import ",
    "@media{",
    "srcset=",
    "onclick=",
    "<noscript>",
    "<template>",
    "<textarea>",
    "<plaintext>",
    "<math><annotation-xml encoding=text/html>",
    "<table>",
    "<b>",
    "<p>",
    "location",
    ".href=",
    "import ",
    "var top",
    "0",
];

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(PAGE);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// Pieces of Python.
const FUNCTION: &[&str] = &[
    "def run(inputs):",
    "\n",
    "    ",
    "\t",
    "import ",
    "from ",
    "os",
    "math",
    " as ",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ":",
    ",",
    ".",
    "__class__",
    "_x",
    "eval",
    "ｅｖａｌ",
    "f'",
    "'",
    "\"",
    "\"\"\"",
    "\\",
    "\\x41",
    "\u{C}",
    "\u{FEFF}",
    "# coding: utf-7",
    "lambda",
    "=",
    ":=",
    "**",
    "class A",
    "@",
    "async ",
    "match x",
    "case _",
    "if 1",
    "else",
    "getattr",
    "chr",
    "^",
    "1",
    "é",
    "return",
    "\r",
];

fn python_pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(FUNCTION);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pages(text in pieces()) {
        let max = policy::limits().work.html_bytes_max;
        let first = document::check("a.html", text.as_bytes(), max);
        let again = document::check("a.html", text.as_bytes(), max);
        prop_assert_eq!(format!("{:?}", first.findings), format!("{:?}", again.findings), "the same bytes, the same report");
        let lines = text.split('\n').count();
        prop_assert!(first.findings.iter().all(|f| f.line <= lines));
    }

    #[test]
    fn bytes_as_pages(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        document::check("a.html", &bytes, policy::limits().work.html_bytes_max);
    }

    #[test]
    fn packing(text in pieces()) {
        let folder = tempfile::tempdir().unwrap();
        let once = intake::pack::pack(&text, folder.path());
        let twice = intake::pack::pack(&once.html, folder.path());
        prop_assert_eq!(once.html, twice.html);
    }

    #[test]
    fn functions(text in python_pieces()) {
        python::check_source("a.py", text.as_bytes());
        python::check_source("a.py", format!("def run(inputs):\n    {text}\n").as_bytes());
    }

    #[test]
    fn sidecars(text in "[\\[\\]{}\":,a-z0-9 ~/\\\\]{0,80}") {
        let file = File { name: "work.json".to_owned(), bytes: text.into_bytes() };
        let _ = sidecar::read(&file);
    }

    #[test]
    fn damaged_zips(at in 0_usize..400, value in any::<u8>(), cut in 0_usize..400) {
        let whole = support::described("index.html\nwork.json\na/b.txt\na/c.txt");
        let mut damaged = whole.clone();
        if let Some(byte) = damaged.get_mut(at) {
            *byte = value;
        }
        archive::unpack("a.zip", &damaged);
        damaged.truncate(cut);
        archive::unpack("a.zip", &damaged);
        Submission::from_zip("a.zip", &damaged);
    }

    #[test]
    fn bytes_as_zips(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        archive::unpack("a.zip", &bytes);
        archive::unpack("a.zip", &[b"PK\x05\x06".to_vec(), bytes].concat());
    }
}
