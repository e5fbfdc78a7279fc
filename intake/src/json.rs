//! Where the value of a JSON pointer stands in a text.
//!
//! serde tells the place of the first error only; findings about values need the place of each.

use std::ops::Range;

/// The range of the value at `pointer` (RFC 6901) in the JSON `text`.
pub fn locate(text: &str, pointer: &str) -> Option<Range<usize>> {
    let mut reader = Reader { bytes: text.as_bytes(), at: 0 };
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        reader.enter(&step)?;
    }
    reader.space();
    let start = reader.at;
    reader.value(0)?;
    Some(start..reader.at)
}

struct Reader<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|b| b.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.space();
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Moves to the member or the item of that name.
    fn enter(&mut self, step: &str) -> Option<()> {
        self.space();
        let is_list = self.peek()? == b'[';
        self.at += 1;
        let mut index = 0;
        loop {
            self.space();
            if is_list {
                if step.parse() == Ok(index) {
                    return Some(());
                }
                index += 1;
            } else {
                let start = self.at;
                self.string()?;
                let key: String = serde_json::from_slice(self.bytes.get(start..self.at)?).ok()?;
                self.take(b':')?;
                if key == step {
                    return Some(());
                }
            }
            self.value(0)?;
            self.take(b',')?;
        }
    }

    fn string(&mut self) -> Option<()> {
        self.take(b'"')?;
        loop {
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b'"' => return Some(()),
                b'\\' => self.at += 1,
                _ => {}
            }
        }
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        self.space();
        let close = match self.peek()? {
            b'"' => return self.string(),
            b'{' => b'}',
            b'[' => b']',
            _ => {
                while self
                    .peek()
                    .is_some_and(|b| !matches!(b, b',' | b'}' | b']') && !b.is_ascii_whitespace())
                {
                    self.at += 1;
                }
                return Some(());
            }
        };
        if depth > 64 {
            return None;
        }
        self.at += 1;
        loop {
            self.space();
            match self.peek()? {
                b if b == close => {
                    self.at += 1;
                    return Some(());
                }
                b',' | b':' => self.at += 1,
                _ => self.value(depth + 1)?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_lead_to_their_values() {
        let text = r#"{ "a": {"b": [1, {"c/d": "x\"y"}]}, "e": -2 }"#;
        for (pointer, expected) in [
            ("/a/b/0", "1"),
            ("/a/b/1/c~1d", r#""x\"y""#),
            ("/e", "-2"),
            ("/a/b/1", r#"{"c/d": "x\"y"}"#),
            ("", text),
        ] {
            assert_eq!(&text[locate(text, pointer).unwrap()], expected, "{pointer}");
        }
        for pointer in ["/x", "/a/x", "/a/b/7", "/e/1"] {
            assert_eq!(locate(text, pointer), None, "{pointer}");
        }
        for broken in ["", "{", "{\"a\"", "[[", "{\"a\":[", &"[".repeat(100_000)] {
            assert_eq!(locate(broken, "/a/0"), None);
        }
    }
}
