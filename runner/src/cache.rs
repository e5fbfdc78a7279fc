//! Compiled code by the digest of its source, so that a function is compiled once.
//!
//! Used by `supervisor`. The bytes were made by a confined child from the source with that digest and are read only by
//! confined children; here they are opaque. Bounded: the oldest entry goes first.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use sha2::{Digest, Sha256};

/// Entries kept.
const ENTRIES_MAX: usize = 512;

/// See the head of this file.
#[derive(Debug)]
pub struct Cache {
    code: HashMap<[u8; 32], Arc<[u8]>>,
    order: VecDeque<[u8; 32]>,
}

impl Default for Cache {
    fn default() -> Self {
        Cache::new()
    }
}

impl Cache {
    /// An empty cache.
    pub fn new() -> Cache {
        Cache { code: HashMap::new(), order: VecDeque::new() }
    }

    /// The key of a source.
    pub fn digest(source: &[u8]) -> [u8; 32] {
        Sha256::digest(source).into()
    }

    /// The code of a source.
    pub fn get(&self, digest: &[u8; 32]) -> Option<Arc<[u8]>> {
        self.code.get(digest).cloned()
    }

    /// Keeps the code of a source.
    pub fn put(&mut self, digest: [u8; 32], code: Vec<u8>) -> Arc<[u8]> {
        let code: Arc<[u8]> = code.into();
        if self.code.insert(digest, Arc::clone(&code)).is_none() {
            self.order.push_back(digest);
        }
        while self.order.len() > ENTRIES_MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.code.remove(&oldest);
            }
        }
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entry_goes_first_and_the_size_is_bounded() {
        let mut cache = Cache::new();
        for n in 0..=ENTRIES_MAX {
            cache.put(Cache::digest(&n.to_le_bytes()), vec![1]);
        }
        assert!(cache.get(&Cache::digest(&0usize.to_le_bytes())).is_none());
        assert!(cache.get(&Cache::digest(&1usize.to_le_bytes())).is_some());
        assert_eq!(cache.code.len(), ENTRIES_MAX);
    }
}
