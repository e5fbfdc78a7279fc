//! What a person could not read: encoded strings, shifted bytes, minified lines.

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_interpolated_string_element, walk_stmt};
use ruff_python_ast::{Expr, InterpolatedStringElement, Operator, Stmt};
use ruff_text_size::Ranged;

use super::Source;
use crate::rules::python::UNREADABLE;

/// Attributes and functions that decode.
const DECODERS: [&str; 12] = [
    "fromhex",
    "b64decode",
    "b64encode",
    "b32decode",
    "b85decode",
    "a85decode",
    "unhexlify",
    "hexlify",
    "maketrans",
    "decompress",
    "from_bytes",
    "decode",
];
const LINE_CHARS: usize = 300;
const STATEMENTS: usize = 8;
const CODES: usize = 8;
/// Statements and expressions inside each other; programs behind this gate give up at a few hundred.
const DEPTH: usize = 64;

/// Checks that a person can read the file.
pub(super) fn check(source: &mut Source<'_>, body: &[Stmt]) {
    lines(source);
    let mut readable = Readable { source, codes: 0, has_sum: false, depth: 0 };
    readable.visit_body(body);
}

fn lines(source: &mut Source<'_>) {
    let text = source.text;
    let mut at = 0;
    let mut crowded = 0;
    for line in text.split_inclusive('\n') {
        let code = line.split('#').next().unwrap_or(line);
        let is_text = code.contains('"') || code.contains('\'');
        if line.chars().count() > LINE_CHARS && !is_text {
            source.add(
                &UNREADABLE,
                at..at + line.len(),
                format!("a line of {} characters", line.chars().count()),
            );
        }
        crowded += usize::from(!is_text && code.trim_end().trim_end_matches(';').contains(';'));
        if crowded == STATEMENTS {
            source.add(&UNREADABLE, at..at + line.len(), "several statements on one line, again and again");
            crowded += 1;
        }
        at += line.len();
    }
}

struct Readable<'r, 's> {
    source: &'r mut Source<'s>,
    codes: usize,
    has_sum: bool,
    depth: usize,
}

impl<'a> Visitor<'a> for Readable<'_, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        self.deeper(statement, |this| walk_stmt(this, statement));
    }

    fn visit_interpolated_string_element(&mut self, element: &'a InterpolatedStringElement) {
        if let InterpolatedStringElement::Literal(text) = element {
            self.literal(&text.value, element);
        }
        walk_interpolated_string_element(self, element);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::StringLiteral(text) => self.literal(text.value.to_str(), expression),
            Expr::BytesLiteral(bytes) => {
                let text: String = bytes.value.bytes().map(char::from).collect();
                self.literal(&text, expression);
            }
            Expr::Attribute(attribute) if DECODERS.contains(&attribute.attr.as_str()) => {
                self.source.add_at(
                    &UNREADABLE,
                    expression,
                    format!("{} decodes what is not readable", attribute.attr),
                );
            }
            Expr::BinOp(sum) if matches!(sum.op, Operator::BitXor | Operator::Add | Operator::Sub) => {
                self.has_sum = self.has_sum || sum.op == Operator::BitXor;
            }
            Expr::Call(call) => self.call(call),
            _ => {}
        }
        self.deeper(expression, |this| walk_expr(this, expression));
    }
}

impl Readable<'_, '_> {
    fn deeper(&mut self, place: &impl Ranged, walk: impl FnOnce(&mut Self)) {
        self.depth += 1;
        if self.depth == DEPTH {
            let what = format!("more than {DEPTH} statements and expressions inside each other");
            self.source.add_at(&UNREADABLE, place, what);
        }
        walk(self);
        self.depth -= 1;
    }

    fn call(&mut self, call: &ruff_python_ast::ExprCall) {
        let Expr::Name(function) = &*call.func else { return };
        let first = call.arguments.args.first();
        match function.id.as_str() {
            "chr" => {
                let shifted = matches!(first, Some(Expr::BinOp(sum)) if shifts(sum));
                self.codes += usize::from(matches!(first, Some(Expr::NumberLiteral(_))));
                if shifted || self.codes == CODES {
                    self.source.add_at(&UNREADABLE, call, "letters computed from numbers");
                }
            }
            "bytes" | "bytearray" if matches!(first, Some(Expr::List(_) | Expr::Tuple(_))) => {
                self.source.add_at(&UNREADABLE, call, "bytes written as numbers");
            }
            _ => {}
        }
    }

    fn literal(&mut self, text: &str, place: &impl Ranged) {
        let range = place.range();
        let raw = self.source.text.get(range.start().to_usize()..range.end().to_usize()).unwrap_or_default();
        let escapes = raw.matches("\\x").count() + raw.matches("\\u").count() + raw.matches("\\N{").count();
        if has_surrogate(raw) {
            self.source.add_at(
                &UNREADABLE,
                place,
                "half a character (\\ud800 to \\udfff), which no text can hold",
            );
        } else if escapes >= 8 && escapes * 3 > text.chars().count() {
            self.source.add_at(&UNREADABLE, place, format!("{escapes} letters written as escapes"));
        } else if text.split_whitespace().any(is_encoded) {
            self.source.add_at(&UNREADABLE, place, "a text that looks encoded");
        }
    }
}

/// Whether a text as it is written has an escape for one half of a character.
fn has_surrogate(raw: &str) -> bool {
    let mut rest = raw;
    while let Some((_, escape)) = rest.split_once('\\') {
        let digits = escape.strip_prefix('u').or_else(|| escape.strip_prefix("U0000")).unwrap_or_default();
        let code = digits.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        if code.is_some_and(|code| (0xD800..0xE000).contains(&code)) {
            return true;
        }
        // What is escaped by this backslash, which may be another one.
        rest = escape.get(escape.chars().next().map_or(0, char::len_utf8)..).unwrap_or_default();
    }
    false
}

/// `x ^ 42`, and `ord(c) + 3`.
fn shifts(sum: &ruff_python_ast::ExprBinOp) -> bool {
    let is_ord =
        |e: &Expr| matches!(e, Expr::Call(c) if matches!(&*c.func, Expr::Name(n) if n.id.as_str() == "ord"));
    let is_number = |e: &Expr| matches!(e, Expr::NumberLiteral(_));
    let mixes = is_number(&sum.left) || is_number(&sum.right);
    // ord("a") + n is how people count through the alphabet: there the ord has a constant letter.
    let has_plain_ord = |e: &Expr| matches!(e, Expr::Call(c) if matches!(c.arguments.args.first(), Some(Expr::StringLiteral(_))));
    sum.op == Operator::BitXor
        || (mixes
            && (is_ord(&sum.left) || is_ord(&sum.right))
            && !has_plain_ord(&sum.left)
            && !has_plain_ord(&sum.right))
}

/// A long word of letters in both cases and digits, like base64; or of hex digits.
fn is_encoded(word: &str) -> bool {
    if word.len() < 48 {
        return false;
    }
    let is_hex = word.bytes().all(|b| b.is_ascii_hexdigit());
    let is_base64 =
        word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'-' | b'_'));
    let has = |test: fn(&u8) -> bool| word.bytes().filter(test).count() >= 4;
    let distinct = word.bytes().collect::<std::collections::BTreeSet<_>>().len();
    (is_hex && distinct > 8)
        || (is_base64
            && distinct > 20
            && has(u8::is_ascii_lowercase)
            && has(u8::is_ascii_uppercase)
            && has(u8::is_ascii_digit)
            && !is_alphabet(word))
}

/// An alphabet in its order is a table that people write.
fn is_alphabet(word: &str) -> bool {
    let steps =
        word.as_bytes().windows(2).filter(|w| matches!(w, [a, b] if a.checked_add(1) == Some(*b))).count();
    steps * 2 > word.len()
}
