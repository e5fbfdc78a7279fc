//! Strict JSON, both ways across the boundary.
//!
//! One parser with bounds, used by the supervisor to check what callers and children send ([`check`]) and by the child
//! to make Python values of its inputs ([`parse`] with its own [`Build`]). Refused, beside what the grammar refuses:
//! duplicate keys, lone surrogates, numbers that become infinite, integers longer than CPython converts, and nesting
//! past a limit. Errors name the way to the culprit from `$`.

use std::collections::HashSet;
use std::fmt;

/// CPython's limit on the digits of an integer in a text.
pub const INTEGER_DIGITS_MAX: usize = 4_300;

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    /// Steps from the root, in reverse: they are added on the way out.
    steps: Vec<String>,
    /// What is wrong there.
    pub why: String,
}

impl JsonError {
    /// At the value itself.
    pub fn here(why: impl Into<String>) -> JsonError {
        JsonError { steps: Vec::new(), why: why.into() }
    }

    /// The same, seen from the list around it.
    #[must_use]
    pub fn in_list(mut self, index: usize) -> JsonError {
        self.steps.push(format!("[{index}]"));
        self
    }

    /// The same, seen from the object around it.
    #[must_use]
    pub fn in_object(mut self, key: &str) -> JsonError {
        let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let short: String = key.chars().take(40).collect();
        self.steps.push(if plain { format!(".{short}") } else { format!("[{short:?}]") });
        self
    }

    /// The way to the culprit, as in `$.items[3]`.
    pub fn path(&self) -> String {
        let way: String = self.steps.iter().rev().map(String::as_str).collect();
        format!("${way}")
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path(), self.why)
    }
}

impl std::error::Error for JsonError {}

/// Makes values of what the parser finds.
pub trait Build {
    /// A value.
    type Value;
    /// `null`.
    fn null(&mut self) -> Self::Value;
    /// `true` and `false`.
    fn boolean(&mut self, value: bool) -> Self::Value;
    /// An integer, as written.
    fn integer(&mut self, digits: &str) -> Result<Self::Value, JsonError>;
    /// Any other number.
    fn float(&mut self, value: f64) -> Self::Value;
    /// A string.
    fn string(&mut self, text: &str) -> Self::Value;
    /// A list.
    fn list(&mut self, items: Vec<Self::Value>) -> Result<Self::Value, JsonError>;
    /// An object, in the order written.
    fn object(&mut self, members: Vec<(String, Self::Value)>) -> Result<Self::Value, JsonError>;
}

struct Nothing;

impl Build for Nothing {
    type Value = ();
    fn null(&mut self) {}
    fn boolean(&mut self, _: bool) {}
    fn integer(&mut self, _: &str) -> Result<(), JsonError> {
        Ok(())
    }
    fn float(&mut self, _: f64) {}
    fn string(&mut self, _: &str) {}
    fn list(&mut self, _: Vec<()>) -> Result<(), JsonError> {
        Ok(())
    }
    fn object(&mut self, _: Vec<(String, ())>) -> Result<(), JsonError> {
        Ok(())
    }
}

/// Is `bytes` one JSON value within `depth_max` levels? Returns it as text.
pub fn check(bytes: &[u8], depth_max: u32) -> Result<&str, JsonError> {
    parse(bytes, depth_max, &mut Nothing)?;
    std::str::from_utf8(bytes).map_err(|_| JsonError::here("not UTF-8"))
}

/// Parses one JSON value.
pub fn parse<B: Build>(bytes: &[u8], depth_max: u32, build: &mut B) -> Result<B::Value, JsonError> {
    let text = std::str::from_utf8(bytes).map_err(|_| JsonError::here("not UTF-8"))?;
    let mut parser = Parser { text, at: 0, build };
    let value = parser.value(depth_max)?;
    parser.space();
    if parser.at == text.len() { Ok(value) } else { Err(JsonError::here("more follows the value")) }
}

struct Parser<'a, B> {
    text: &'a str,
    at: usize,
    build: &'a mut B,
}

impl<B: Build> Parser<'_, B> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn unexpected(&self) -> JsonError {
        match self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            Some(c) => JsonError::here(format!("unexpected {c:?} at byte {}", self.at)),
            None => JsonError::here("unexpected end"),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), JsonError> {
        if self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            self.at += word.len();
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    fn value(&mut self, depth: u32) -> Result<B::Value, JsonError> {
        self.space();
        match self.peek() {
            Some(b'n') => self.word("null").map(|()| self.build.null()),
            Some(b't') => self.word("true").map(|()| self.build.boolean(true)),
            Some(b'f') => self.word("false").map(|()| self.build.boolean(false)),
            Some(b'"') => {
                let text = self.string()?;
                Ok(self.build.string(&text))
            }
            Some(b'[') => self.list(depth),
            Some(b'{') => self.object(depth),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.unexpected()),
        }
    }

    fn deeper(depth: u32) -> Result<u32, JsonError> {
        depth.checked_sub(1).ok_or_else(|| JsonError::here("nested too deeply"))
    }

    fn list(&mut self, depth: u32) -> Result<B::Value, JsonError> {
        let depth = Self::deeper(depth)?;
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        if !self.eat(b']') {
            loop {
                let index = items.len();
                items.push(self.value(depth).map_err(|e| e.in_list(index))?);
                self.space();
                if self.eat(b']') {
                    break;
                }
                if !self.eat(b',') {
                    return Err(self.unexpected());
                }
            }
        }
        self.build.list(items)
    }

    fn object(&mut self, depth: u32) -> Result<B::Value, JsonError> {
        let depth = Self::deeper(depth)?;
        self.at += 1;
        let (mut members, mut seen) = (Vec::new(), HashSet::new());
        self.space();
        if !self.eat(b'}') {
            loop {
                self.space();
                if self.peek() != Some(b'"') {
                    return Err(self.unexpected());
                }
                let key = self.string()?;
                if !seen.insert(key.clone()) {
                    return Err(JsonError::here("the key appears twice").in_object(&key));
                }
                self.space();
                if !self.eat(b':') {
                    return Err(self.unexpected());
                }
                let value = self.value(depth).map_err(|e| e.in_object(&key))?;
                members.push((key, value));
                self.space();
                if self.eat(b'}') {
                    break;
                }
                if !self.eat(b',') {
                    return Err(self.unexpected());
                }
            }
        }
        self.build.object(members)
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Result<B::Value, JsonError> {
        let start = self.at;
        self.eat(b'-');
        let leading_zero = self.peek() == Some(b'0');
        let count = self.digits();
        if count == 0 || (leading_zero && count > 1) {
            return Err(JsonError::here("not a number"));
        }
        let mut whole = true;
        if self.eat(b'.') {
            whole = false;
            if self.digits() == 0 {
                return Err(JsonError::here("not a number"));
            }
        }
        if self.eat(b'e') || self.eat(b'E') {
            whole = false;
            if !self.eat(b'+') {
                self.eat(b'-');
            }
            if self.digits() == 0 {
                return Err(JsonError::here("not a number"));
            }
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        if whole {
            if count > INTEGER_DIGITS_MAX {
                return Err(JsonError::here(format!("an integer of more than {INTEGER_DIGITS_MAX} digits")));
            }
            return self.build.integer(text);
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(self.build.float(value)),
            _ => Err(JsonError::here("a number out of range")),
        }
    }

    fn string(&mut self) -> Result<String, JsonError> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let plain = rest
                .find(|c: char| c == '"' || c == '\\' || c < ' ')
                .ok_or_else(|| JsonError::here("a string without an end"))?;
            let (before, after) = rest.split_at(plain);
            out.push_str(before);
            self.at += plain;
            match after.as_bytes().first() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                _ => return Err(JsonError::here("a control character in a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        self.at += 1;
        let c = match self.peek() {
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(JsonError::here("an unknown escape in a string")),
        };
        self.at += 1;
        Ok(c)
    }

    fn hex4(&mut self) -> Result<u32, JsonError> {
        let digits = self.text.get(self.at + 1..self.at + 5).unwrap_or_default();
        if digits.len() != 4 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(JsonError::here("an unknown escape in a string"));
        }
        self.at += 5;
        u32::from_str_radix(digits, 16).map_err(|_| JsonError::here("an unknown escape in a string"))
    }

    fn unicode(&mut self) -> Result<char, JsonError> {
        let lone = || JsonError::here("a lone surrogate in a string");
        let first = self.hex4()?;
        if !(0xd800..0xe000).contains(&first) {
            return char::from_u32(first).ok_or_else(lone);
        }
        if first >= 0xdc00 || !self.text.get(self.at..).is_some_and(|rest| rest.starts_with("\\u")) {
            return Err(lone());
        }
        self.at += 1;
        let second = self.hex4()?;
        if !(0xdc00..0xe000).contains(&second) {
            return Err(lone());
        }
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)).ok_or_else(lone)
    }
}

/// Writes `text` as a JSON string.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(text: &str) -> String {
        check(text.as_bytes(), 4).map_or_else(|e| e.to_string(), |_| "ok".to_owned())
    }

    #[test]
    fn valid_texts_pass() {
        for text in [
            "null",
            " true ",
            "-0",
            "1.5e+3",
            "[]",
            "{}",
            "[1,\"a\",{\"b\":[null]}]",
            r#""\u00e9\ud83d\ude00\n""#,
            "\"é\u{2028}\"",
            "[[[[]]]]",
            "123456789012345678901234567890",
        ] {
            assert_eq!(verdict(text), "ok", "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused_with_its_place() {
        let long = "9".repeat(INTEGER_DIGITS_MAX + 1);
        let rows = [
            ("", "$: unexpected end"),
            ("NaN", "$: unexpected 'N' at byte 0"),
            ("-Infinity", "$: not a number"),
            ("01", "$: not a number"),
            ("1.", "$: not a number"),
            ("1e999", "$: a number out of range"),
            (&long, "$: an integer of more than 4300 digits"),
            ("[1,]", "$[1]: unexpected ']' at byte 3"),
            ("[1 2]", "$: unexpected '2' at byte 3"),
            ("{\"a\":{\"b\":[0,nul]}}", "$.a.b[1]: unexpected 'n' at byte 13"),
            ("{\"a\":1,\"a\":2}", "$.a: the key appears twice"),
            ("{\"x y\":tru}", "$[\"x y\"]: unexpected 't' at byte 7"),
            ("{1:2}", "$: unexpected '1' at byte 1"),
            ("[[[[[]]]]]", "$[0][0][0][0]: nested too deeply"),
            (r#"["\ud800"]"#, "$[0]: a lone surrogate in a string"),
            (r#"["\udc00\ud800"]"#, "$[0]: a lone surrogate in a string"),
            (r#""\ud83dx""#, "$: a lone surrogate in a string"),
            (r#""\x41""#, "$: an unknown escape in a string"),
            (r#""\u12"#, "$: an unknown escape in a string"),
            ("\"a\nb\"", "$: a control character in a string"),
            ("\"a", "$: a string without an end"),
            ("1 1", "$: more follows the value"),
        ];
        for (text, expected) in rows {
            assert_eq!(verdict(text), expected, "{text}");
        }
        assert_eq!(check(b"\"\xff\"", 4).unwrap_err().to_string(), "$: not UTF-8");
    }

    #[test]
    fn deep_nesting_ends_early_and_cheaply() {
        let deep = "[".repeat(1_000_000);
        assert!(verdict(&deep).ends_with("nested too deeply"));
    }

    #[test]
    fn a_written_string_is_read_back() {
        let text = "a\"\\\u{1}\n\té😀";
        let mut out = String::new();
        write_string(&mut out, text);
        assert_eq!(out, "\"a\\\"\\\\\\u0001\\n\\té😀\"");
        assert_eq!(verdict(&out), "ok");
    }
}
