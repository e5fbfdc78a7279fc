//! The canonical `tf.js`: recognised by its digest, so one byte changed makes it ordinary code.

use catalog::Digest;

/// The digests of every `tf.js` that was ever canonical, newest first.
const DIGESTS: [&str; 0] = [];

/// Whether the content of a script element is the canonical `tf.js`, white space around it aside.
pub fn is_canonical(script: &str) -> bool {
    let digest = Digest::of(script.trim().as_bytes()).to_string();
    DIGESTS.contains(&digest.as_str())
}
