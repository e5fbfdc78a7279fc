//! Things of the host that an attack may try to reach, and that tell when it did.
//!
//! Used by `suite`: a folder with a file, a Python module and a place to write; a listener on TCP, on a path and on an
//! abstract name. Each gives away the same token. Dropping it removes the folder and stops the listeners.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

/// How long a visitor may wait to speak first.
const PATIENCE: Duration = Duration::from_millis(100);

/// See the head of this file.
#[derive(Debug)]
pub struct Canary {
    folder: PathBuf,
    token: String,
    tcp: u16,
    abstract_name: String,
    visits: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Canary {
    /// Puts everything up, in a folder below `place`.
    pub fn new(place: &std::path::Path) -> io::Result<Canary> {
        let token = random_name()?;
        let folder = place.join(format!("tinyfiles-canary-{token}"));
        fs::create_dir(&folder)?;
        fs::create_dir(folder.join("open"))?;
        for open in [&folder, &folder.join("open")] {
            fs::set_permissions(open, fs::Permissions::from_mode(0o777))?;
        }
        fs::write(folder.join("file"), &token)?;
        fs::set_permissions(folder.join("file"), fs::Permissions::from_mode(0o666))?;
        fs::write(folder.join("canary.py"), format!("TOKEN = \"{token}\"\n"))?;
        let tcp = TcpListener::bind("127.0.0.1:0")?;
        let port = tcp.local_addr()?.port();
        let path = UnixListener::bind(folder.join("socket"))?;
        fs::set_permissions(folder.join("socket"), fs::Permissions::from_mode(0o666))?;
        let abstract_name = format!("tinyfiles-{token}");
        let hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&abstract_name)?)?;
        let mut canary = Canary {
            folder,
            token,
            tcp: port,
            abstract_name,
            visits: Arc::default(),
            stop: Arc::default(),
            threads: Vec::new(),
        };
        canary.watch(move || tcp.accept().map(|(s, _)| s));
        canary.watch(move || path.accept().map(|(s, _)| s));
        canary.watch(move || hidden.accept().map(|(s, _)| s));
        Ok(canary)
    }

    fn watch<S: Read + Write + Patient + 'static>(
        &mut self,
        accept: impl Fn() -> io::Result<S> + Send + 'static,
    ) {
        let (visits, stop, token) = (Arc::clone(&self.visits), Arc::clone(&self.stop), self.token.clone());
        self.threads.push(std::thread::spawn(move || {
            while let Ok(visitor) = accept() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                visits.fetch_add(1, Ordering::SeqCst);
                // Whatever becomes of the visitor, it came.
                let _ = greet(visitor, &token);
            }
        }));
    }

    /// What an attack is told.
    pub fn describe(&self, nonce: &str) -> Value {
        let path = |name: &str| self.folder.join(name).display().to_string();
        json!({
            "tcp": self.tcp, "abstract": self.abstract_name, "unix": path("socket"), "file": path("file"),
            "module": path("canary.py"), "folder": path("open"), "token": self.token, "nonce": nonce,
        })
    }

    /// What all of it gives away.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// How many came so far.
    pub fn visits(&self) -> u64 {
        self.visits.load(Ordering::SeqCst)
    }

    /// Is the file as it was, and has nothing appeared beside it?
    pub fn untouched(&self) -> bool {
        let empty = fs::read_dir(self.folder.join("open")).is_ok_and(|mut d| d.next().is_none());
        empty && fs::read_to_string(self.folder.join("file")).is_ok_and(|t| t == self.token)
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Each listener wakes up for one more visitor; a failure leaves a thread that ends with the process.
        let _ = TcpStream::connect(("127.0.0.1", self.tcp));
        let _ = UnixStream::connect(self.folder.join("socket"));
        if let Ok(address) = SocketAddr::from_abstract_name(&self.abstract_name) {
            let _ = UnixStream::connect_addr(&address);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A stream that can be told how long to wait.
trait Patient {
    fn patience(&self, limit: Duration) -> io::Result<()>;
}

impl Patient for TcpStream {
    fn patience(&self, limit: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(limit))
    }
}

impl Patient for UnixStream {
    fn patience(&self, limit: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(limit))
    }
}

/// Answers as HTTP to one who asks, and as FTP to one who waits.
fn greet<S: Read + Write + Patient>(mut visitor: S, token: &str) -> io::Result<()> {
    visitor.patience(PATIENCE)?;
    let asked = visitor.read(&mut [0; 1_024]).is_ok_and(|n| n > 0);
    let answer = if asked {
        format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{token}", token.len())
    } else {
        format!("220 {token}\r\n")
    };
    visitor.write_all(answer.as_bytes())
}

/// Sixteen random hexadecimal digits.
pub fn random_name() -> io::Result<String> {
    let mut bytes = [0; 8];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visitors_are_counted_and_changes_are_seen() {
        let place = tempfile::tempdir().unwrap();
        let canary = Canary::new(place.path()).unwrap();
        let host = canary.describe("n");
        assert!(canary.untouched());
        let mut text = String::new();
        let port = u16::try_from(host["tcp"].as_u64().unwrap()).unwrap();
        TcpStream::connect(("127.0.0.1", port)).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!((text, canary.visits()), (format!("220 {}\r\n", canary.token()), 1));
        let address = SocketAddr::from_abstract_name(host["abstract"].as_str().unwrap()).unwrap();
        let mut visitor = UnixStream::connect_addr(&address).unwrap();
        visitor.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut text = String::new();
        visitor.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.0 200") && canary.visits() == 2);
        fs::write(host["file"].as_str().unwrap(), "changed").unwrap();
        assert!(!canary.untouched());
        drop(canary);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
