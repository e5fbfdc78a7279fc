//! The word of a plaintext save: four letters that open it beside its code.
//!
//! Four letters are fewer than half a million words, so what protects a save is the number of tries. A try is paid on
//! disk before the word is looked at, and given back when it was right; so a hundred guesses at once, or a client that
//! hangs up, gain nothing. Past the free tries each wrong word begins a wait twice as long as the last. The count is
//! in the record, the deadline in memory. One word of a record is checked at a time, off the threads that serve.
//!
//! Before bcrypt the word is keyed with a secret that is kept outside the database: a stolen database alone does not
//! even tell which of half a million words it was.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use hmac::{Hmac, KeyInit as _, Mac as _};
use policy::limits;
use sha2::Sha256;
use tokio::sync::Semaphore;

use super::store::{Change, Head};
use super::{Key, Refusal, Store};

/// Four letters, a to z.
#[derive(Clone)]
pub struct Word(String);

impl FromStr for Word {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let letters = limits().save.word_letters as usize;
        if text.len() == letters && text.bytes().all(|b| b.is_ascii_lowercase()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Refusal::BadWord)
        }
    }
}

/// What keys words before they are hashed.
#[derive(Clone)]
pub struct Secret([u8; Secret::BYTES]);

impl Secret {
    /// One block of SHA-256.
    pub const BYTES: usize = 64;

    /// Reads the secret at `path`, or makes one, unless a word was keyed with the one that should be there.
    pub fn open(path: &Path, has_words: bool) -> Result<Self, SecretError> {
        let at = |source| SecretError::Io { path: path.to_owned(), source };
        match fs::read(path) {
            Ok(bytes) => {
                bytes.try_into().map(Self).map_err(|_| SecretError::Damaged { path: path.to_owned() })
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(error)),
            Err(_) if has_words => Err(SecretError::Missing { path: path.to_owned() }),
            Err(_) => {
                let mut bytes = [0; Self::BYTES];
                getrandom::fill(&mut bytes).map_err(|e| at(io::Error::other(e)))?;
                let mut file =
                    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(at)?;
                file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(at)?;
                Ok(Self(bytes))
            }
        }
    }
}

/// Why there is no secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// It cannot be read or written.
    #[error("cannot read or write {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It has another length.
    #[error("{path} is not a secret of {} bytes; put the file back from where it is kept", Secret::BYTES)]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// It is gone, and saves depend on it.
    #[error(
        "{path} is missing, and without it no word of a save can be checked; put the file back from where it is kept"
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
}

/// Checks words.
pub struct Words {
    secret: Secret,
    cost: u32,
    at_once: Arc<Semaphore>,
    watched: Arc<Mutex<HashMap<Key, Watch>>>,
}

#[derive(Clone, Copy)]
enum Watch {
    /// A word of this record is being checked.
    Checking,
    /// The next may be tried then.
    Until(Instant),
}

/// The right to check a word of a record, until it is dropped.
struct Turn {
    key: Key,
    watched: Arc<Mutex<HashMap<Key, Watch>>>,
    until: Option<Instant>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        match self.until {
            Some(until) => watched.insert(self.key, Watch::Until(until)),
            None => watched.remove(&self.key),
        };
    }
}

impl Words {
    /// A checker with this secret, that hashes with two to the power of `cost` rounds.
    pub fn new(secret: Secret, cost: u32) -> Self {
        let at_once = Arc::new(Semaphore::new(limits().api.words_checked_max));
        Self { secret, cost, at_once, watched: Arc::default() }
    }

    /// The hash of a new word.
    pub async fn hash(&self, key: Key, word: Word) -> Result<String, Refusal> {
        let (keyed, cost) = (self.keyed(&key, &word), self.cost);
        self.apart(move || bcrypt::hash(keyed, cost)).await
    }

    /// Whether the record lets this word through.
    pub async fn check(
        &self,
        store: &Store,
        key: Key,
        head: &Head,
        word: Option<Word>,
    ) -> Result<(), Refusal> {
        let Some(hash) = head.word.clone() else { return Ok(()) };
        let Some(word) = word else { return Err(self.missing(&key, head)) };
        let mut turn = self.turn(key)?;
        let paid = store.change(key, Change::SpendTry { expected: head.revision }).await?;
        let wait = wait_after(paid.tries_left);
        // From here on a client that hangs up leaves the wait behind.
        turn.until = (wait > 0).then(|| Instant::now() + Duration::from_secs(wait));
        let keyed = self.keyed(&key, &word);
        if self.apart(move || bcrypt::verify(keyed, &hash)).await? {
            turn.until = None;
            store.change_later(key, Change::GiveTriesBack);
            return Ok(());
        }
        Err(Refusal::WrongWord { tries_left: free(paid.tries_left), wait_seconds: wait })
    }

    /// No word was sent: that costs nothing, and tells no more than that one is needed.
    fn missing(&self, key: &Key, head: &Head) -> Refusal {
        match self.watch(key) {
            Some(Watch::Until(until)) if until > Instant::now() => {
                Refusal::WordWait { seconds: seconds_until(until) }
            }
            _ => Refusal::WrongWord { tries_left: free(head.tries_left), wait_seconds: 0 },
        }
    }

    fn watch(&self, key: &Key) -> Option<Watch> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied()
    }

    /// Takes the turn of a record, unless it is taken or a wait is under way.
    fn turn(&self, key: Key) -> Result<Turn, Refusal> {
        let now = Instant::now();
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if watched.len() >= limits().api.words_watched_max {
            watched.retain(|_, w| matches!(w, Watch::Checking) || matches!(w, Watch::Until(t) if *t > now));
            if watched.len() >= limits().api.words_watched_max {
                return Err(Refusal::Busy);
            }
        }
        match watched.entry(key) {
            Entry::Occupied(entry) => match *entry.get() {
                Watch::Checking => return Err(Refusal::WordWait { seconds: 1 }),
                Watch::Until(t) if t > now => return Err(Refusal::WordWait { seconds: seconds_until(t) }),
                Watch::Until(_) => *entry.into_mut() = Watch::Checking,
            },
            Entry::Vacant(entry) => _ = entry.insert(Watch::Checking),
        }
        Ok(Turn { key, watched: Arc::clone(&self.watched), until: None })
    }

    /// The word under the secret, as letters: bcrypt stops at a zero byte and after 72.
    fn keyed(&self, key: &Key, word: &Word) -> String {
        let mut mac = Hmac::<Sha256>::new(&self.secret.0.into());
        mac.update(key.as_bytes());
        mac.update(word.0.as_bytes());
        BASE64.encode(&mac.finalize().into_bytes())
    }

    /// Runs bcrypt on a thread that may wait, few at once.
    async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, bcrypt::BcryptError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let place = Arc::clone(&self.at_once).acquire_owned().await.map_err(|_| Refusal::Failed)?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            // A client that hangs up makes no room before its hash is done.
            drop(place);
            done
        });
        match done.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                tracing::error!("bcrypt: {error}");
                Err(Refusal::Failed)
            }
            Err(error) => {
                tracing::error!("bcrypt: {error}");
                Err(Refusal::Failed)
            }
        }
    }
}

/// The tries of a count that cost no wait.
fn free(tries_left: i64) -> u32 {
    u32::try_from(tries_left.max(0)).unwrap_or(u32::MAX)
}

/// The wait that a wrong word begins when it leaves so many tries: none while some are left, then doubling.
fn wait_after(tries_left: i64) -> u64 {
    let save = &limits().save;
    if tries_left > 0 {
        return 0;
    }
    let doublings = u32::try_from(-tries_left).unwrap_or(u32::MAX);
    let first = u64::from(save.word_wait_seconds_min);
    let wait = 2_u64.checked_pow(doublings).and_then(|n| n.checked_mul(first)).unwrap_or(u64::MAX);
    wait.min(save.word_wait_seconds_max.into())
}

/// Whole seconds, rounded up, at least one.
fn seconds_until(until: Instant) -> u64 {
    until
        .saturating_duration_since(Instant::now())
        .as_millis()
        .div_ceil(1000)
        .max(1)
        .try_into()
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_word_has_four_letters() {
        assert!("abcd".parse::<Word>().is_ok());
        for bad in ["", "abc", "abcde", "ABCD", "ab d", "abc1", "äbc", "abc\n"] {
            assert!(bad.parse::<Word>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_secret_is_made_once_and_never_in_the_place_of_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("word.secret");
        let missing = Secret::open(&path, true).err().unwrap().to_string();
        assert!(missing.contains("is missing, and without it no word"), "{missing}");
        let made = Secret::open(&path, false).unwrap();
        assert_eq!(Secret::open(&path, true).unwrap().0, made.0);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&path, "short").unwrap();
        assert!(
            Secret::open(&path, false).err().unwrap().to_string().contains("is not a secret of 64 bytes")
        );
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        let save = &limits().save;
        let first = u64::from(save.word_wait_seconds_min);
        let waits: Vec<u64> = [3, 1, 0, -1, -2, -3].map(wait_after).into();
        assert_eq!(waits, [0, 0, first, 2 * first, 4 * first, 8 * first]);
        for late in [-40, -70, -5_000, i64::MIN + 1] {
            assert_eq!(wait_after(late), u64::from(save.word_wait_seconds_max));
        }
    }

    #[test]
    fn a_guess_of_every_word_takes_longer_than_anybody_waits() {
        let save = &limits().save;
        let words = 26_u64.pow(save.word_letters);
        let years = words * u64::from(save.word_wait_seconds_max) / (365 * 24 * 3600);
        assert!(years > 50, "{years}");
    }
}
