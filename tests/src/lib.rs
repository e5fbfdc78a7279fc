//! A whole installation in a temporary folder, for the end-to-end tests and benchmarks.
//!
//! [`Installation`] has a data folder, ports of its own, the `sitegen` program that `./dev test` built, and on demand a
//! real nginx. [`http`] speaks to it in bytes, so that a test can say what a browser never would.

pub mod api_bench;
pub mod browser;
pub mod check_bench;
pub mod cost;
pub mod desk;
pub mod faults;
pub mod http;
pub mod player;
pub mod review_bench;
pub mod save_bench;
pub mod services;
pub mod small_disk;
pub mod synthetic;

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use catalog::{Data, Digest};
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
    /// One below `folder`, with a copy of the sources.
    pub fn in_folder(folder: &Path) -> Result<Self> {
        Self::build(tempfile::tempdir_in(folder)?, Path::new("source"))?.with_copied_source()
    }

    /// One that publishes the repository's own content and theme.
    pub fn new() -> Result<Self> {
        Self::with_source(&repository())
    }

    /// One with a copy of content, theme and nginx folder that a test may change: see [`Installation::source`].
    pub fn with_own_source() -> Result<Self> {
        Self::with_source(Path::new("source"))?.with_copied_source()
    }

    fn with_copied_source(self) -> Result<Self> {
        self.copy_source(&["content", "theme", "nginx", "runner/src"])?;
        Ok(self)
    }

    fn copy_source(&self, folders: &[&str]) -> Result<()> {
        folders.iter().try_for_each(|folder| copy(&repository().join(folder), &self.source().join(folder)))
    }

    /// The same with the works of one creator only, for tests that publish often.
    pub fn small() -> Result<Self> {
        let here = Self::with_own_source()?;
        for entry in fs::read_dir(here.source().join("content/works"))? {
            let path = entry?.path();
            if !path.ends_with("moth") {
                fs::remove_dir_all(path)?;
            }
        }
        Ok(here)
    }

    /// Replaces a text in a file of [`Installation::source`]; it must be there.
    pub fn edit(&self, file: &str, from: &str, to: &str) -> Result<()> {
        let path = self.source().join(file);
        let text = fs::read_to_string(&path)?;
        ensure!(text.contains(from), "{file} does not contain {from:?}");
        Ok(fs::write(&path, text.replace(from, to))?)
    }

    /// One with a copy of the theme, no content of its own yet, and the public host names over TLS.
    pub fn with_public_names() -> Result<Self> {
        let here = Self::with_origins(
            tempfile::tempdir()?,
            Path::new("source"),
            "https://tinyfiles.tv",
            "https://content-sandbox.com",
        )?;
        here.copy_source(&["content/pages", "theme", "nginx", "runner/src"])?;
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
        // Folders of people have spaces and worse in their names.
        Self::build(tempfile::Builder::new().prefix("tiny files; {x} ").tempdir()?, source)
    }

    fn build(folder: TempDir, source: &Path) -> Result<Self> {
        Self::with_origins(folder, source, "http://localhost", "http://127.0.0.1")
    }

    fn with_origins(folder: TempDir, source: &Path, site: &str, content: &str) -> Result<Self> {
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

    /// The same installation, origins and source, with a data folder of its own.
    pub fn second_data(&self, name: &str) -> Result<SecondData> {
        let config = self.config().with_file_name(format!("{name}.toml"));
        fs::write(
            &config,
            fs::read_to_string(self.config())?.replace("data = \"data\"", &format!("data = {name:?}")),
        )?;
        Ok(SecondData { data: config.with_file_name(name), config })
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

    /// The digest of the tree that is served.
    pub fn live(&self) -> Result<Digest> {
        Data::open(&self.data(""))?.live()?.context("nothing is served")
    }

    /// Writes the nginx configuration and returns its folder.
    pub fn render_nginx(&self) -> Result<PathBuf> {
        let conf = self.data("nginx");
        let ran = self.sitegen(&["nginx", &conf.to_string_lossy()])?;
        ensure!(ran.code == 0, "{ran:?}");
        fs::create_dir_all(conf.join("tmp"))?;
        Ok(conf)
    }

    /// Starts nginx with a fresh configuration and waits until it answers.
    pub fn serve(&mut self) -> Result<()> {
        self.render_nginx()?;
        self.start_nginx()
    }

    /// Starts nginx with the configuration that is there and waits until it answers.
    pub fn start_nginx(&mut self) -> Result<()> {
        let conf = self.data("nginx");
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
            std::thread::sleep(Duration::from_millis(5));
        }
        self.nginx = Some(child);
        Ok(())
    }

    /// Lets nginx finish what it is doing and waits for its end.
    pub fn stop(&mut self) -> Result<()> {
        if let Some(mut nginx) = self.nginx.take() {
            Command::new("kill").args(["-QUIT", &nginx.id().to_string()]).status()?;
            nginx.wait()?;
        }
        Ok(())
    }
}

/// See [`Installation::second_data`].
pub struct SecondData {
    /// The data folder.
    pub data: PathBuf,
    config: PathBuf,
}

impl SecondData {
    /// Runs `sitegen`.
    pub fn sitegen(&self, arguments: &[&str]) -> Result<Ran> {
        let mut command = Command::new(program("sitegen"));
        Ok(Ran::of(&command.arg("--config").arg(&self.config).args(arguments).output()?))
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

/// What a visitor gets: the name of the tree and two of its pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// The tree.
    pub tree: Digest,
    /// The front page and a work.
    pub bytes: [Vec<u8>; 2],
}

impl Served {
    /// Looks at the tree that is served.
    pub fn by(here: &Installation) -> Result<Self> {
        let read = |path: &str| fs::read(here.data("live").join(path)).with_context(|| path.to_owned());
        Ok(Self {
            tree: here.live()?,
            bytes: [read("site/index.html")?, read("content/moth/hitch/index.html")?],
        })
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

/// A port that is free and below those that the kernel gives to outgoing connections, of which tests have many.
pub fn free_port() -> Result<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(97);
    loop {
        let step = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000;
        let port = 10_000 + u16::try_from(step)?;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
}

/// Copies a folder as it is: links, times and modes too.
pub fn copy_exactly(from: &Path, to: &Path) -> Result<()> {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    ensure!(status.success(), "cp: {status}");
    Ok(())
}

/// Copies a folder and everything in it but installed packages.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name() == "node_modules" {
            continue;
        }
        let new = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &new)?
        } else {
            _ = fs::copy(entry.path(), new)?
        }
    }
    Ok(())
}
