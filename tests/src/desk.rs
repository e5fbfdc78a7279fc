//! Members, the server behind `/api/` and its worker, for tests: started beside an [`Installation`], killed at will.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use data_encoding::BASE64URL_NOPAD;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use serde_json::{Value, json};

use crate::http::{self, Answer};
use crate::{Installation, Ran, program};

/// How long anything may take that a test waits for.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program that is killed with its test.
pub struct Running(Child);

impl From<Child> for Running {
    fn from(child: Child) -> Self {
        Self(child)
    }
}

impl Running {
    /// A line of its memory as the kernel counts it, in MiB: VmRSS now, VmHWM at most.
    pub fn status_mb(&self, line: &str) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()))?;
        let value = status.lines().find_map(|l| l.strip_prefix(line)?.strip_prefix(':'));
        Ok(value.context("no such line")?.trim_end_matches("kB").trim().parse::<f64>()? / 1024.0)
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Whether it is gone.
    pub fn has_ended(&mut self) -> Result<bool> {
        Ok(self.0.try_wait()?.is_some())
    }

    /// Ends it as a power failure would.
    pub fn kill(&mut self) -> Result<()> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// `api` with these arguments, to be run.
pub fn command(here: &Installation, arguments: &[&str]) -> Command {
    let mut command = Command::new(program("api"));
    command.arg("--config").arg(here.config()).args(arguments).stdin(Stdio::null());
    command
}

/// Runs `api` to its end.
pub fn api(here: &Installation, arguments: &[&str]) -> Result<Ran> {
    Ok(Ran::of(&command(here, arguments).output().context("cannot run api; run `cargo build --workspace`")?))
}

/// Starts the server and waits until it answers.
pub fn serve(here: &Installation) -> Result<Running> {
    let running = Running(command(here, &["serve"]).spawn().context("cannot run api")?);
    until(|| Ok(UnixStream::connect(here.data("api.sock")).ok()))?;
    Ok(running)
}

/// Starts a worker.
pub fn work(here: &Installation) -> Result<Running> {
    Ok(Running(command(here, &["work"]).spawn().context("cannot run api")?))
}

/// Lets the time pass that jobs are put off by.
pub fn all_due(here: &Installation) -> Result<()> {
    let db = rusqlite::Connection::open(here.data("catalog.db"))?;
    db.execute("UPDATE jobs SET due = 0 WHERE state = 'queued' AND kind <> 'verify'", [])?;
    Ok(())
}

/// Asks again and again until there is an answer.
pub fn until<T>(mut ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        ensure!(Instant::now() < end, "what was waited for did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A member with a key, outside a browser.
pub struct Key {
    key: SigningKey,
    site: String,
    port: u16,
}

impl Key {
    /// The key made of that byte.
    pub fn new(here: &Installation, seed: u8) -> Result<Self> {
        let key = SigningKey::from_slice(&[seed; 32]).map_err(|e| anyhow::anyhow!("{e}"))?;
        Ok(Self { key, site: format!("http://localhost:{}", here.site_port), port: here.site_port })
    }

    fn jwk(&self) -> String {
        let point = self.key.verifying_key().to_sec1_point(false);
        let (x, y) = point.as_bytes()[1..].split_at(32);
        let (x, y) = (BASE64URL_NOPAD.encode(x), BASE64URL_NOPAD.encode(y));
        format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#)
    }

    /// A token for the site.
    pub fn token(&self) -> Result<String> {
        self.token_from(0)
    }

    /// A token that was made so many seconds from now.
    pub fn token_from(&self, seconds: i64) -> Result<String> {
        let (header, claims) = self.words(seconds)?;
        Ok(self.signed(&header, &claims))
    }

    /// What a token made so many seconds from now says: header and claims.
    pub fn words(&self, seconds: i64) -> Result<(String, String)> {
        let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())? + seconds;
        let kid = BASE64URL_NOPAD.encode(catalog::Digest::of(self.jwk().as_bytes()).as_bytes());
        let header = format!(r#"{{"alg":"ES256","typ":"JWT","kid":"{kid}"}}"#);
        Ok((header, format!(r#"{{"aud":"{}","iat":{now},"exp":{}}}"#, self.site, now + 300)))
    }

    /// These words, signed.
    pub fn signed(&self, header: &str, claims: &str) -> String {
        let words = [header, claims].map(|part| BASE64URL_NOPAD.encode(part.as_bytes())).join(".");
        let signature: Signature = self.key.sign(words.as_bytes());
        format!("{words}.{}", BASE64URL_NOPAD.encode(&signature.normalize_s().to_bytes()))
    }

    /// A request with this key.
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Answer> {
        let text = body.map(ToString::to_string).unwrap_or_default();
        self.send(method, path, "application/json", text.as_bytes())
    }

    /// A request with these bytes.
    pub fn send(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> Result<Answer> {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
             Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            self.port,
            self.token()?,
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        http::raw(self.port, &request)
    }

    /// Claims a name.
    pub fn claim(self, name: &str) -> Result<Self> {
        let answer = self.claim_as(name)?;
        ensure!(answer.status == 201, "{}", answer.text());
        Ok(self)
    }

    /// The answer to claiming a name.
    pub fn claim_as(&self, name: &str) -> Result<Answer> {
        let key: Value = serde_json::from_str(&self.jwk())?;
        self.ask("POST", "/api/members", Some(&json!({ "pseudonym": name, "key": key })))
    }

    /// Submits files, each with its field, and returns the job.
    pub fn submit(&self, files: &[(&str, &str, &[u8])]) -> Result<String> {
        let answer = self.send("POST", "/api/submissions", MULTIPART, &multipart(files))?;
        ensure!(answer.status == 202, "{} {}", answer.status, answer.text());
        let body: Value = serde_json::from_slice(&answer.body)?;
        Ok(body["jobId"].as_str().context("no job")?.to_owned())
    }

    /// What is known of a job.
    pub fn job(&self, job: &str) -> Result<Value> {
        Ok(serde_json::from_slice(&self.ask("GET", &format!("/api/jobs/{job}"), None)?.body)?)
    }

    /// Waits until a job is in that state.
    pub fn wait(&self, job: &str, state: &str) -> Result<Value> {
        until(|| Ok(Some(self.job(job)?).filter(|j| j["state"] == state)))
            .with_context(|| format!("{:?} is not {state}", self.job(job)))
    }
}

/// The type of [`multipart`].
pub const MULTIPART: &str = "multipart/form-data; boundary=tests";

/// Files as the body of an upload: field, file name, bytes.
pub fn multipart(files: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (field, name, bytes) in files {
        let head = format!(
            "--tests\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--tests--\r\n");
    body
}

/// Writes files below a folder of the installation and returns it.
pub fn folder(here: &Installation, name: &str, files: &[(&str, &str)]) -> Result<std::path::PathBuf> {
    let folder = here.folder().join(name);
    std::fs::create_dir_all(&folder)?;
    for (file, text) in files {
        std::fs::write(folder.join(file), text)?;
    }
    Ok(folder)
}

/// The names in a folder; none where there is no folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
}
