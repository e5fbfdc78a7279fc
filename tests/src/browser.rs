//! A real Chromium, driven through ChromeDriver.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::json;
use tempfile::TempDir;

/// A browser with a new profile, and the driver that it belongs to.
pub struct Browser {
    /// The session.
    pub client: Client,
    driver: Child,
    display: Option<Display>,
    folder: TempDir,
}

/// ChromeDriver's way to the DevTools protocol.
#[derive(Debug)]
struct DevTools(serde_json::Value);

impl WebDriverCompatibleCommand for DevTools {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/goog/cdp/execute", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.0.to_string()))
    }
}

/// An X server without a screen, for what a headless browser does not do.
struct Display {
    server: Child,
    name: String,
}

impl Display {
    fn open(size: (u32, u32)) -> Result<Self> {
        let screen = format!("{}x{}x24", size.0, size.1);
        let mut server = Command::new("Xvfb");
        server.args(["-displayfd", "1", "-screen", "0", &screen, "-nolisten", "tcp"]);
        let mut server =
            server.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().context("cannot run Xvfb")?;
        let mut number = String::new();
        BufReader::new(server.stdout.take().context("Xvfb has no output")?).read_line(&mut number)?;
        Ok(Self { server, name: format!(":{}", number.trim()) })
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Browser {
    /// Opens a window of that size in CSS pixels. Each of `hosts` leads to the address beside it.
    pub async fn open(hosts: &[(&str, &str)], size: (u32, u32)) -> Result<Self> {
        Self::start(hosts, size, None).await
    }

    /// The same as a real window on a display of its own, for [`Browser::xdotool`].
    pub async fn open_window(hosts: &[(&str, &str)], size: (u32, u32)) -> Result<Self> {
        Self::start(hosts, size, Some(Display::open(size)?)).await
    }

    async fn start(hosts: &[(&str, &str)], size: (u32, u32), display: Option<Display>) -> Result<Self> {
        let mut driver = Command::new("chromedriver");
        driver.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null());
        if let Some(display) = &display {
            driver.env("DISPLAY", &display.name);
        }
        let mut driver = driver.spawn().context("cannot run chromedriver")?;
        let output = BufReader::new(driver.stdout.take().context("chromedriver has no output")?);
        let mut lines = output.lines();
        let port = lines.by_ref().find_map(|line| {
            let rest = line.ok()?.split_once("started successfully on port ")?.1.to_owned();
            rest.trim_end_matches('.').parse::<u16>().ok()
        });
        let port = port.context("chromedriver did not start")?;
        // Its pipe must stay open, or it dies at its next word.
        std::thread::spawn(move || lines.count());
        let folder = tempfile::tempdir()?;
        let rules: Vec<String> =
            hosts.iter().map(|(host, address)| format!("MAP {host} {address}")).collect();
        let mut arguments = vec![
            "--disable-gpu".to_owned(),
            "--disable-quic".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            "--ignore-certificate-errors".to_owned(),
            format!("--window-size={},{}", size.0, size.1),
            format!("--user-data-dir={}", folder.path().join("profile").display()),
            format!("--host-resolver-rules={}", rules.join(", ")),
            format!("--log-net-log={}", folder.path().join("net.json").display()),
        ];
        arguments.push(if display.is_some() { "--window-position=0,0" } else { "--headless=new" }.to_owned());
        if std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self")?) == 0 {
            arguments.push("--no-sandbox".to_owned());
        }
        let capabilities = json!({
            "goog:chromeOptions": { "args": arguments }, "goog:loggingPrefs": { "browser": "ALL" },
            "unhandledPromptBehavior": "ignore",
        });
        let capabilities = capabilities.as_object().cloned().unwrap_or_default();
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .context("chromedriver did not open a browser")?;
        Ok(Self { client, driver, display, folder })
    }

    /// Moves and clicks like a hand, by `xdotool`.
    pub fn xdotool(&self, arguments: &[&str]) -> Result<()> {
        let display = self.display.as_ref().context("this browser has no window")?;
        let status = Command::new("xdotool").args(arguments).env("DISPLAY", &display.name).status();
        anyhow::ensure!(status.context("cannot run xdotool")?.success(), "xdotool {arguments:?} failed");
        Ok(())
    }

    /// Runs a script in the page and returns what it returns.
    pub async fn run(&self, script: &str) -> Result<serde_json::Value> {
        Ok(self.client.execute(script, vec![]).await?)
    }

    /// Sends a command of the DevTools protocol.
    pub async fn cdp(&self, command: &str, parameters: serde_json::Value) -> Result<()> {
        let command = DevTools(json!({"cmd": command, "params": parameters}));
        self.client.issue_cmd(command).await?;
        Ok(())
    }

    /// Presses play on the page of a work, and enters the frame once its document is there.
    pub async fn play(&self) -> Result<()> {
        self.client.wait().for_element(Locator::Css("#play")).await?.click().await?;
        let frame = self.client.wait().for_element(Locator::Css("iframe")).await?;
        frame.enter_frame().await?;
        Ok(())
    }

    /// Where the network log is, once the browser is closed.
    fn net_log(&self) -> PathBuf {
        self.folder.path().join("net.json")
    }

    /// Closes the browser and returns its network log.
    pub async fn close(mut self) -> Result<String> {
        self.client.clone().close().await?;
        let _ = self.driver.kill();
        let _ = self.driver.wait();
        let path = self.net_log();
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // After a failed test the browser is still there, and does not end with its driver.
        let lock = std::fs::read_link(self.folder.path().join("profile/SingletonLock")).unwrap_or_default();
        if let Some((_, browser)) = lock.to_string_lossy().rsplit_once('-') {
            let _ = Command::new("kill").args(["-KILL", browser]).stderr(Stdio::null()).status();
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
