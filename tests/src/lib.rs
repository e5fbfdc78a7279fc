//! A whole installation in a temporary folder, for the end-to-end tests and benchmarks.
//!
//! [`Installation`] has a data folder, ports of its own, the `sitegen` program that `./dev test` built, and on demand a
//! real nginx. [`http`] speaks to it in bytes, so that a test can say what a browser never would.

pub mod browser;
pub mod http;

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

/// The folder of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A program that `cargo build --workspace --bins` made.
pub fn program(name: &str) -> PathBuf {
    let mut path = std::env::current_exe().unwrap_or_default();
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    path.join(name)
}

/// An installation of its own: configuration, data, ports.
pub struct Installation {
    folder: TempDir,
    nginx: Option<Child>,
    /// Port of the first-party origin.
    pub site_port: u16,
    /// Port of the content origin.
    pub content_port: u16,
}

impl Installation {
    /// One that publishes the repository's own content and theme.
    pub fn new() -> Result<Self> {
        Self::with_source(&repository())
    }

    /// One with a copy of content, theme and nginx folder that a test may change: see [`Installation::source`].
    pub fn with_own_source() -> Result<Self> {
        let here = Self::with_source(Path::new("source"))?;
        for folder in ["content", "theme", "nginx"] {
            copy(&repository().join(folder), &here.source().join(folder))?;
        }
        Ok(here)
    }

    /// One with a copy of the theme, no content of its own yet, and the public host names over TLS.
    pub fn with_public_names() -> Result<Self> {
        let here =
            Self::with_origins(Path::new("source"), "https://tinyfiles.tv", "https://content-sandbox.com")?;
        for folder in ["content/pages", "theme", "nginx"] {
            copy(&repository().join(folder), &here.source().join(folder))?;
        }
        let mut config = fs::read_to_string(here.config())?;
        config.push_str("[tls]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n");
        fs::write(here.config(), config)?;
        let ran = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
                "-days",
                "2",
            ])
            .args([
                "-subj",
                "/CN=tinyfiles.tv",
                "-addext",
                "subjectAltName=DNS:tinyfiles.tv,DNS:content-sandbox.com",
            ])
            .args(["-keyout", "key.pem", "-out", "cert.pem"])
            .current_dir(here.folder.path())
            .output()
            .context("cannot run openssl")?;
        ensure!(ran.status.success(), "{:?}", Ran::of(&ran));
        Ok(here)
    }

    fn with_source(source: &Path) -> Result<Self> {
        Self::with_origins(source, "http://localhost", "http://127.0.0.1")
    }

    fn with_origins(source: &Path, site: &str, content: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let here = Self { folder, nginx: None, site_port: free_port()?, content_port: free_port()? };
        let text = format!(
            "site = \"{site}:{}\"\ncontent = \"{content}:{}\"\ndata = \"data\"\nsource = {source:?}\n\
             contact = \"mailto:security@tinyfiles.example\"\nsecurity_txt_expires = \"2027-11-30\"\n",
            here.site_port, here.content_port
        );
        fs::write(here.config(), text)?;
        Ok(here)
    }

    /// The folder that everything is in.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The configuration file.
    pub fn config(&self) -> PathBuf {
        self.folder.path().join("tinyfiles.toml")
    }

    /// A path in the data folder.
    pub fn data(&self, name: &str) -> PathBuf {
        self.folder.path().join("data").join(name)
    }

    /// The copied source folder of [`Installation::with_own_source`].
    pub fn source(&self) -> PathBuf {
        self.folder.path().join("source")
    }

    /// `sitegen` with these arguments, to be run.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program("sitegen"));
        command.arg("--config").arg(self.config()).args(arguments).stdin(Stdio::null());
        command
    }

    /// Runs `sitegen`.
    pub fn sitegen(&self, arguments: &[&str]) -> Result<Ran> {
        let output =
            self.command(arguments).output().context("cannot run sitegen; run `cargo build --workspace`")?;
        Ok(Ran::of(&output))
    }

    /// Publishes and expects it to work.
    pub fn publish(&self) -> Result<()> {
        let ran = self.sitegen(&["publish"])?;
        ensure!(ran.code == 0, "publish failed: {ran:?}");
        Ok(())
    }

    /// Starts nginx and waits until it answers.
    pub fn serve(&mut self) -> Result<()> {
        let conf = self.data("nginx");
        let ran = self.sitegen(&["nginx", &conf.to_string_lossy()])?;
        ensure!(ran.code == 0, "{ran:?}");
        fs::create_dir_all(conf.join("tmp"))?;
        let mut nginx = Command::new("nginx");
        nginx
            .arg("-e")
            .arg(conf.join("error.log"))
            .arg("-p")
            .arg(&conf)
            .arg("-c")
            .arg(conf.join("nginx.conf"));
        let root = fs::metadata("/proc/self").map(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0)?;
        nginx.args(["-g", if root { "user root; daemon off;" } else { "daemon off;" }]);
        let mut child = nginx.spawn().context("cannot run nginx")?;
        while TcpStream::connect(("127.0.0.1", self.site_port)).is_err() {
            if let Some(status) = child.try_wait()? {
                anyhow::bail!("nginx ended: {status}: {}", fs::read_to_string(conf.join("error.log"))?);
            }
            std::thread::yield_now();
        }
        self.nginx = Some(child);
        Ok(())
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        if let Some(mut nginx) = self.nginx.take() {
            let _ = Command::new("kill").arg(nginx.id().to_string()).status();
            let _ = nginx.wait();
        }
    }
}

/// How a program ended.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; -1 for a signal.
    pub code: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Ran {
    /// Reads the output of a program.
    pub fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }
}

/// A port that was free a moment ago.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Copies a folder and everything in it.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let new = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &new)?
        } else {
            _ = fs::copy(entry.path(), new)?
        }
    }
    Ok(())
}
