//! Whether bytes from outside are JSON, and how deep they are nested. Nothing is kept of them.
//!
//! Called for plaintext saves and for the inputs of Python functions.

use serde::de::IgnoredAny;

/// Why bytes are not taken as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonError {
    /// They are something else: where that shows.
    Not(String),
    /// They are nested deeper than this.
    TooDeep {
        /// The levels that are taken.
        levels_max: u32,
    },
}

/// The bytes as text, if they are JSON.
pub fn check(bytes: &[u8], levels_max: u32) -> Result<&str, JsonError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|e| JsonError::Not(format!("Byte {} is not UTF-8.", e.valid_up_to() + 1)))?;
    if depth(bytes) > levels_max {
        return Err(JsonError::TooDeep { levels_max });
    }
    // Reads on without a stack of its own, and keeps nothing.
    serde_json::from_str::<IgnoredAny>(text)
        .map_err(|e| JsonError::Not(format!("Line {}, column {}.", e.line(), e.column())))?;
    Ok(text)
}

/// The levels of nesting; of text that is not JSON, something.
fn depth(bytes: &[u8]) -> u32 {
    let (mut now, mut most, mut in_string, mut escaped) = (0_u32, 0, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                now = now.saturating_add(1);
                most = most.max(now);
            }
            b']' | b'}' => now = now.saturating_sub(1),
            _ => {}
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_json() {
        for good in ["{}", "null", " [1, 2e9, \"\\ud800\", {\"[[[[\": \"\\\"[[[[\"}] ", "0", "\"ä\""] {
            assert_eq!(check(good.as_bytes(), 3), Ok(good), "{good}");
        }
        for bad in ["", "{", "{}x", "{'a': 1}", "NaN", "01", "[1,]", "\u{feff}{}", "\"\n\"", "// x"] {
            assert!(matches!(check(bad.as_bytes(), 3), Err(JsonError::Not(_))), "{bad}");
        }
        assert!(matches!(check(b"\"\xff\"", 3), Err(JsonError::Not(_))));
    }

    #[test]
    fn depth_is_counted_without_recursion() {
        assert!(check(b"[[[]], {\"a\": [1]}]", 3).is_ok());
        assert_eq!(check(b"[[[[]]]]", 3), Err(JsonError::TooDeep { levels_max: 3 }));
        let deep = "[".repeat(1 << 18);
        assert_eq!(check(deep.as_bytes(), 64), Err(JsonError::TooDeep { levels_max: 64 }));
    }
}
