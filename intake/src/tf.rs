//! The canonical `tf.js`: recognised byte by byte, so one byte changed makes it ordinary code.
//!
//! The file is pasted into works, by hand or by `intake pack`; the site offers it as `/src/tf.js`. It speaks to the window around
//! the work, which no other code may.

/// The text of the canonical `tf.js`.
pub const SOURCE: &str = include_str!("../../theme/tf.js");

/// Whether the content of a script element is the canonical `tf.js`, white space around it aside.
pub fn is_canonical(script: &str) -> bool {
    script.trim() == SOURCE.trim()
}

/// The element that is pasted into works.
pub fn element() -> String {
    format!("<script data-tf>\n{}\n</script>", SOURCE.trim())
}
