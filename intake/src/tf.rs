//! The canonical `tf.js`: recognised by its digest, so one byte changed makes it ordinary code.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// The digests of every `tf.js` that was ever canonical, newest first.
static DIGESTS: LazyLock<Vec<String>> = LazyLock::new(Vec::new);

/// Whether the content of a script element is the canonical `tf.js`, white space around it aside.
pub fn is_canonical(script: &str) -> bool {
    let digest = Sha256::digest(script.trim().as_bytes());
    let digest: String = digest.iter().map(|b| format!("{b:02x}")).collect();
    DIGESTS.contains(&digest)
}
