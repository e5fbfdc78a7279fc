//! A player in a real browser: plays a work, speaks inside its frame, and uses the save drawer around it.

use std::fs;

use anyhow::{Context as _, Result};
use fantoccini::Locator;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::services::Service;
use crate::{Installation, repository};

/// A work that a test makes.
pub struct Probe<'a> {
    /// Its slug.
    pub name: &'a str,
    /// What runs in its frame, besides what the test says there.
    pub script: &'a str,
    /// What it declares.
    pub capabilities: Value,
    /// Its Python function, for a declared one.
    pub python: &'a str,
}

impl<'a> Probe<'a> {
    /// One without a function.
    pub fn new(name: &'a str, script: &'a str, capabilities: Value) -> Self {
        Self { name, script, capabilities, python: "" }
    }
}

/// Serves works of `probe`, each a script after `tf.js` with these capabilities and, if it declares one, a Python function
/// of that text; `api` runs behind nginx.
pub fn installation(works: &[Probe<'_>]) -> Result<(Installation, Service)> {
    let mut here = Installation::with_own_source()?;
    let tf = fs::read_to_string(repository().join("theme/tf.js"))?;
    for Probe { name, script, capabilities, python } in works {
        let folder = here.source().join("content/works/probe").join(name);
        fs::create_dir_all(&folder)?;
        let html = format!(
            "<!DOCTYPE html><html lang=en><script data-tf>\n{tf}</script><title>probe</title><body><script>{script}</script>"
        );
        fs::write(folder.join("index.html"), html)?;
        let sidecar = json!({"id": name, "released": "2026-11-30", "capabilities": capabilities});
        fs::write(folder.join("work.json"), sidecar.to_string())?;
        if let Some(file) = capabilities["python_backend"].as_str() {
            fs::write(folder.join(file), python)?;
        }
    }
    here.publish()?;
    here.serve()?;
    let api = here.api()?;
    Ok((here, api))
}

/// A browser on the page of a work, playing.
pub struct Player {
    /// The browser.
    pub browser: Browser,
}

impl Player {
    /// Opens a browser on a work's page and starts the work.
    pub async fn at(here: &Installation, work: &str) -> Result<Self> {
        let player = Self { browser: Browser::open(&[], (1280, 900)).await? };
        player.browser.client.goto(&format!("http://localhost:{}/{work}/", here.site_port)).await?;
        player.play().await?;
        Ok(player)
    }

    /// Presses play.
    pub async fn play(&self) -> Result<()> {
        self.browser.client.wait().for_element(Locator::Css("#play")).await?.click().await?;
        Ok(())
    }

    /// What a promise in the work's frame came to: its value, or `type: message` of its problem.
    pub async fn work(&self, promise: &str) -> Result<Value> {
        self.browser.client.wait().for_element(Locator::Css("#stage iframe")).await?.enter_frame().await?;
        self.until("return globalThis.TF ? true : null").await?;
        let script = format!(
            "const done = arguments[0]; (async () => ({promise}))().then(done, e => done(`${{e.type}}: ${{e.message}}`))"
        );
        let answer = self.browser.client.execute_async(&script, vec![]).await?;
        self.browser.client.enter_parent_frame().await?;
        Ok(answer)
    }

    /// Saves a state from the work and returns the code.
    pub async fn save(&self, state: &str) -> Result<String> {
        let answer = self.work(&format!("TF.save({state})")).await?;
        Ok(answer["code"].as_str().with_context(|| format!("not saved: {answer}"))?.to_owned())
    }

    /// Waits until a script of the page returns something other than null.
    pub async fn until(&self, script: &str) -> Result<Value> {
        loop {
            let found = self.browser.run(script).await?;
            if !found.is_null() {
                return Ok(found);
            }
            tokio::task::yield_now().await;
        }
    }

    /// Opens the save drawer, if it is not open, and all its parts.
    pub async fn drawer(&self) -> Result<()> {
        self.browser
            .run("if (document.getElementById('drawer').hidden) document.getElementById('saves').click()")
            .await?;
        self.until("return document.getElementById('save-state').textContent || null").await?;
        self.browser
            .run("for (const part of document.querySelectorAll('#drawer details')) part.open = true")
            .await?;
        Ok(())
    }

    /// Clicks what has that id.
    pub async fn click(&self, id: &str) -> Result<()> {
        let button = self.browser.client.find(Locator::Css(&format!("#{id}"))).await?;
        Ok(button.click().await?)
    }

    /// Writes into what has that id.
    pub async fn write(&self, id: &str, text: &str) -> Result<()> {
        let field = self.browser.client.find(Locator::Css(&format!("#{id}"))).await?;
        // A work that has just started may be given the keyboard once more while this begins to type.
        let there = format!("return document.getElementById('{id}').value");
        while self.browser.run(&there).await? != json!(text) {
            field.clear().await?;
            field.send_keys(text).await?;
        }
        Ok(())
    }

    /// Presses a button and waits for what the drawer then says at a place.
    pub async fn press(&self, button: &str, place: &str) -> Result<String> {
        self.browser.run(&format!("document.getElementById('{place}').textContent = 'One moment…'")).await?;
        self.click(button).await?;
        let said = format!(
            "const t = document.getElementById('{place}').textContent; return t === 'One moment…' ? null : t"
        );
        Ok(self.until(&said).await?.as_str().unwrap_or_default().to_owned())
    }

    /// Loads a code in the drawer, with a word if one is asked for, and returns what is said.
    pub async fn load(&self, code: &str, word: Option<&str>) -> Result<String> {
        self.drawer().await?;
        self.write("load-code", code).await?;
        if let Some(word) = word {
            self.write("load-word", word).await?;
        }
        self.press("load button", "load-said").await
    }

    /// Chooses a position and, where there is a save already, moves it there.
    pub async fn choose(&self, position: &str) -> Result<()> {
        self.drawer().await?;
        self.browser
            .run(&format!("document.querySelector('[name=position][value={position}]').click()"))
            .await?;
        if self.browser.run("return document.getElementById('move-part').hidden").await? == json!(false) {
            self.click("move").await?;
            self.until("return document.getElementById('move-part').hidden || null").await?;
        }
        Ok(())
    }

    /// The text of what has that id.
    pub async fn text(&self, id: &str) -> Result<String> {
        let text = self.browser.run(&format!("return document.getElementById('{id}').textContent")).await?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Closes the browser and returns its network log.
    pub async fn close(self) -> Result<String> {
        self.browser.close().await
    }
    /// Cuts the browser off from every network, or lets it back.
    pub async fn offline(&self, offline: bool) -> Result<()> {
        self.browser.cdp("Network.enable", json!({})).await?;
        let conditions =
            json!({"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1});
        self.browser.cdp("Network.emulateNetworkConditions", conditions).await
    }
}
