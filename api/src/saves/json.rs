//! Whether a plaintext save is JSON, and how deep it is nested. Nothing is kept of it but its bytes.

use serde::de::IgnoredAny;

use super::Refusal;

/// Checks a plaintext save.
pub fn check(bytes: &[u8], levels_max: u32) -> Result<(), Refusal> {
    let text = std::str::from_utf8(bytes)
        .map_err(|e| Refusal::NotJson(format!("Byte {} is not UTF-8.", e.valid_up_to() + 1)))?;
    if depth(bytes) > levels_max {
        return Err(Refusal::TooDeep { levels_max });
    }
    // Reads on without a stack of its own, and keeps nothing.
    serde_json::from_str::<IgnoredAny>(text)
        .map_err(|e| Refusal::NotJson(format!("Line {}, column {}.", e.line(), e.column())))?;
    Ok(())
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
            assert_eq!(check(good.as_bytes(), 3), Ok(()), "{good}");
        }
        for bad in ["", "{", "{}x", "{'a': 1}", "NaN", "01", "[1,]", "\u{feff}{}", "\"\n\"", "// x"] {
            assert!(matches!(check(bad.as_bytes(), 3), Err(Refusal::NotJson(_))), "{bad}");
        }
        assert!(matches!(check(b"\"\xff\"", 3), Err(Refusal::NotJson(_))));
    }

    #[test]
    fn depth_is_counted_without_recursion() {
        assert_eq!(check(b"[[[]], {\"a\": [1]}]", 3), Ok(()));
        assert_eq!(check(b"[[[[]]]]", 3), Err(Refusal::TooDeep { levels_max: 3 }));
        let deep = "[".repeat(1 << 18);
        assert_eq!(check(deep.as_bytes(), 64), Err(Refusal::TooDeep { levels_max: 64 }));
    }
}
