//! Input that is meant to break a checker, and the places that findings tell.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use intake::document;
use intake::finding::Finding;
use intake::python::check_source;

fn check(bytes: impl AsRef<[u8]>) -> Vec<Finding> {
    document::check("index.html", bytes.as_ref(), policy::limits().work.html_bytes_max).findings
}

fn ids(bytes: impl AsRef<[u8]>) -> Vec<&'static str> {
    let mut ids: Vec<_> = check(bytes).iter().map(|f| f.rule.id).collect();
    ids.dedup();
    ids
}

#[test]
fn places_are_those_of_the_file() {
    for (text, line, column, excerpt) in [
        ("<p>\n<script>\n  let x;\n  eval(x)</script>", 4, 3, "eval"),
        ("<script>é; eval(1)</script>", 1, 12, "eval"),
        ("<body\n onload='x();\n  eval(1)'>", 3, 3, "eval"),
        ("<p onclick=\"a &amp;&amp; eval(1)\">", 1, 26, "eval"),
        ("<p onclick=&#101;val(1)>", 1, 12, "eval"),
        ("\r\n\r\n<script>\r\neval(1)</script>", 4, 1, "eval"),
        ("<svg><script>a &lt; eval(1)</script></svg>", 1, 21, "eval"),
        ("<script>document.body.innerHTML = '<p onclick=eval(1)>'</script>", 1, 47, "eval"),
        ("<style>\np { color: red }\n q { background: url(x.png) }</style>", 3, 22, "x.png"),
        ("<a href='#'\n href=x style='background: url( \"y.png\" )'>", 2, 34, "y.png"),
        ("<img src=a.png>", 1, 10, "a.png"),
        ("<script>{\nlet x = }</script>", 2, 9, "}"),
    ] {
        let findings = check(text);
        let found = findings.iter().find(|f| f.severity > intake::finding::Severity::Note);
        let found = found.unwrap_or_else(|| panic!("nothing in {text}"));
        assert_eq!((found.line, found.column, found.excerpt.as_str()), (line, column, excerpt), "{text}");
    }
}

#[test]
fn bytes_that_are_no_utf8_text() {
    let place = |bytes: &[u8]| check(bytes).first().map(|f| (f.rule.id, f.line, f.column)).unwrap();
    assert_eq!(place(b"<p>\n ab\xFFc"), ("not-utf8", 2, 4));
    assert_eq!(place(b"\xED\xA0\x80"), ("not-utf8", 1, 1), "a lone surrogate");
    assert_eq!(place(b"\xFF\xFE<\0p\0"), ("not-utf8", 0, 0));
    assert_eq!(place(b"\xFE\xFF\0<\0p"), ("not-utf8", 0, 0));
    assert_eq!(place(b"<\0p\0>\0"), ("not-utf8", 0, 0));
    assert_eq!(place(b"<meta charset=windows-1252><p>a"), ("not-utf8", 1, 15));
    assert_eq!(place(b"<p>a\0b"), ("control-characters", 1, 5));
    assert_eq!(ids(b"\xEF\xBB\xBF<!doctype html><p>a"), Vec::<&str>::new(), "a byte order mark is fine");
    assert_eq!(ids("<script>const s = '\\uD800'</script>"), Vec::<&str>::new());
    assert_eq!(ids("<style>p::before { content: '\\D800' }</style>"), Vec::<&str>::new());
    assert_eq!(ids("<p>&#xD800;&#0;&#x110000;</p>"), Vec::<&str>::new());
    for wide in ["<p>a", "<!doctype html>\n<p>é"] {
        let bytes = |order: fn(u16) -> [u8; 2]| wide.encode_utf16().flat_map(order).collect::<Vec<_>>();
        assert_eq!(place(&bytes(u16::to_le_bytes)), ("not-utf8", 0, 0), "without a mark");
        assert_eq!(place(&bytes(u16::to_be_bytes)), ("not-utf8", 0, 0), "without a mark");
    }
}

#[test]
fn files_that_are_also_something_else() {
    for start in
        ["GIF89a", "%PDF-1.4", "MZ", "\u{7F}ELF", "#!/bin/sh", "PK\u{3}\u{4}", "OggS", "RIFF0000WEBP"]
    {
        assert_eq!(ids(format!("{start}<script>1</script>")), ["other-format"], "{start:?}");
    }
}

#[test]
fn sizes_at_their_limits() {
    let max = usize::try_from(policy::limits().work.html_bytes_max).unwrap();
    let page = format!("<p>{}", " ".repeat(max - 3));
    assert_eq!(ids(&page), Vec::<&str>::new());
    assert_eq!(ids(format!("{page} ")), ["too-large"]);
    let python = |length: usize| {
        let code = "def run(inputs):\n    return {}\n";
        let rules = check_source("a.py", format!("{code}{:\n<1$}", "", length - code.len()).as_bytes());
        rules.iter().map(|f| f.rule.id).collect::<Vec<_>>()
    };
    assert_eq!(python(16_384), Vec::<&str>::new());
    assert_eq!(python(16_385), ["python-size"]);
}

#[test]
fn depth_in_every_language() {
    assert_eq!(ids("<div>".repeat(100_000)), ["too-deep"]);
    assert_eq!(ids("<b><div>".repeat(100_000)), ["too-deep"]);
    assert_eq!(ids(format!("<style>{}", "@media{".repeat(100_000))), ["too-deep"]);
    assert_eq!(ids(format!("<style>{}", "(".repeat(1_000_000))), ["too-deep"]);
    let python =
        |text: String| check_source("a.py", text.as_bytes()).iter().map(|f| f.rule.id).collect::<Vec<_>>();
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{", "}"),
        ("not ", ""),
        ("-", ""),
        ("lambda:", ""),
        ("f'{", "}'"),
        ("a.", "a"),
    ] {
        let count = 16_000 / (open.len() + close.len());
        python(format!("{}1{}\ndef run(inputs):\n    return 1\n", open.repeat(count), close.repeat(count)));
        python(open.repeat(count));
    }
    python((0..180).map(|i| format!("{}if 1:\n", " ".repeat(i))).collect());
}

#[test]
fn scripts_that_descend() {
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{", "}"),
        ("`${", "}`"),
        ("!", "1"),
        ("-+", "1"),
        ("a=>", "1"),
        ("a=", "1"),
        ("a?b:", "1"),
        ("new ", "a"),
        ("1**", "1"),
        ("1+", "1"),
        ("a.", "a"),
        ("if(a);else ", ";"),
        ("function f(){", "}"),
        ("class A{static{", "}}"),
        ("async(", ")"),
        ("{a:", "}"),
        ("(a,", ")"),
        ("typeof ", "1"),
        ("a:", ";"),
        ("do ", "while(1)"),
        ("for(;;)", ";"),
        ("x[", "]"),
        ("a&&", "1"),
        ("a??", "1"),
        ("yield ", ""),
        ("await ", ""),
        ("'a'+", "'b'"),
        ("/*", "*/"),
        ("\"", "\""),
    ] {
        for count in [1_000, 1_000_000 / open.len()] {
            // What counts is that there is an answer: a script that fits is read, another is a finding.
            let script = format!("x={}1{}", open.repeat(count), close.repeat(count));
            check(format!("<script>{script}</script>"));
            check(format!("<script>{}</script>", open.repeat(count)));
        }
    }
}

#[test]
fn long_tokens() {
    let mebibyte = 1 << 20;
    for (open, close) in
        [("a", ""), ("(", ")"), ("(?=", ")"), ("[", "]"), ("a|", ""), ("(a*)*", ""), ("\\\\u{61}", "")]
    {
        let count = mebibyte / (open.len() + close.len());
        let regex = format!("<script>/{}{}/u.test('')</script>", open.repeat(count), close.repeat(count));
        let found = check(&regex);
        // It is read, or it is a finding with its place.
        assert!(found.iter().all(|f| f.line == 1 && f.column > 1), "{open}: {found:?}");
    }
    let script = format!("<script>{}</script>", "a=b+c;".repeat(5 * mebibyte / 6 - 10));
    assert_eq!(ids(script), ["long-line"], "one line of five mebibytes");
    assert_eq!(ids(format!("<script>const a='{}'</script>", "a b".repeat(mebibyte))), ["long-line"]);
    assert_eq!(ids(format!("<p {}>", "a=b ".repeat(mebibyte / 4))), Vec::<&str>::new());
    assert_eq!(ids(format!("<p title={}>", "&amp;".repeat(mebibyte / 5))), Vec::<&str>::new());
    assert_eq!(ids("<".repeat(mebibyte)), Vec::<&str>::new());
    assert_eq!(ids("<a ".repeat(mebibyte / 3)), Vec::<&str>::new());
    assert_eq!(ids("<!--".repeat(mebibyte / 4)), Vec::<&str>::new());
    ids("</".repeat(mebibyte / 2));
    ids("<svg><script>".repeat(200));
    ids(format!("<script>{}</script>", "a();\n".repeat(mebibyte / 5)));
    ids(format!("<img srcset=\"{}\">", "a.png 1x,".repeat(mebibyte / 9)));
}

#[test]
fn a_broken_script_is_a_finding_with_a_place_and_hides_nothing_else() {
    let findings = check("<script>if (</script><script>\nlet = =</script><img src=//x.example/a.png>");
    let found: Vec<_> = findings.iter().map(|f| (f.rule.id, f.line)).collect();
    assert!(found.contains(&("script-syntax", 1)) && found.contains(&("script-syntax", 2)), "{found:?}");
    assert!(found.contains(&("net-load", 2)), "{found:?}");
}

#[test]
fn text_inside_text_ends() {
    let mut page = "<img src=https://x.example/a.png>".to_owned();
    for _ in 0..12 {
        page = format!(
            "<a download href='data:text/html;base64,{}'>a</a>",
            data_encoding::BASE64.encode(page.as_bytes())
        );
    }
    assert!(ids(&page).contains(&"too-deep"));
    let twice = "<iframe srcdoc='<iframe srcdoc=&quot;<img src=https://x.example/a.png>&quot;>'>";
    assert_eq!(ids(twice), ["net-frame", "net-load"]);
}

#[test]
fn many_findings_are_counted_and_not_listed() {
    let findings = check("<a href=//x.example>a</a>".repeat(1_000));
    assert_eq!(findings.len(), policy::limits().check.findings_per_rule_max);
    assert!(findings.last().unwrap().what.contains("980 more"));
}

#[test]
fn the_canonical_tf_js_is_known_and_one_byte_changed_is_not() {
    let game = "<script>localStorage.a = 1</script>";
    let element = intake::tf::element();
    assert_eq!(ids(format!("{element}{game}")), ["storage-shimmed"]);
    assert_eq!(ids(game), ["storage-local"]);
    assert_eq!(ids(format!("{game}{element}")), ["storage-local"], "too late for the first access");
    let changed = element.replacen("3000", "3001", 1);
    assert_ne!(changed, element);
    let found = ids(format!("{changed}{game}"));
    assert!(found.contains(&"parent-window") && found.contains(&"storage-local"), "{found:?}");
}
