//! What runs: the API, the worker, the runner with its gate and linter, the browser of the smoke runs, nginx, the units.
//!
//! Called by the doctor. Each is asked where its users ask it; nginx over the network, with the names of the two origins.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use catalog::Digest;
use intake::play::{self, Backend, Work};
use intake::python::bandit::{Bandit, Lint};
use policy::headers::{self, Header};
use policy::{Config, config::Origin};

use super::{Seen, note, ok, wrong};
use crate::{gate, work};

type Found = (&'static str, Seen, &'static str);

const PATIENCE: Duration = Duration::from_secs(5);
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// Any page does: what is asked is whether it can be played at all.
const PAGE: &str = "<!doctype html><html lang=en><title>doctor</title><p>A page to play.</html>";
const UNITS: [&str; 4] = ["tinyfiles-api", "tinyfiles-work", "tinyfiles-runner", "nginx"];
const SERVER: &str = "render with `sitegen nginx`, reload nginx; for https, look at the certificate";

/// Looks at all of it.
pub(super) fn look(config: &Config, file: &Path) -> Vec<Found> {
    let data = &config.data;
    vec![
        ("api serve", api(data).into(), "start it: systemctl start tinyfiles-api, or ./dev up"),
        ("api work", worker(data).into(), "start it: systemctl start tinyfiles-work, or ./dev up"),
        (
            "runner's gate",
            python(data).into(),
            "start tinyfiles-runner and wait for its suite; then `runner doctor`",
        ),
        (
            "bandit",
            bandit(data).into(),
            "install runner/bandit.txt into the folder that `runner serve --bandit` names",
        ),
        (
            "chromium",
            chromium(gate::CHROMIUM).into(),
            "install chromium, and allow user namespaces; submissions wait without it",
        ),
        ("nginx files", rendered(config, file).into(), "render them with `sitegen nginx` and reload nginx"),
        ("site", served(config, "site").into(), SERVER),
        ("content site", served(config, "content").into(), SERVER),
        (
            "site to API",
            passed_on(&config.site).into(),
            "nginx must be able to write to api.sock: look at its group",
        ),
        ("units", units(), "systemctl enable --now UNIT; journalctl -u UNIT says why it ended"),
    ]
}

fn api(data: &Path) -> Result<String, String> {
    let socket = data.join("api.sock");
    let answer = ask(&socket, "/api/health").map_err(|e| format!("{}: {e}", socket.display()))?;
    match answer.lines().next() {
        Some(status) if status.contains(" 200 ") => Ok(format!("{} answers", socket.display())),
        status => Err(format!("{} answers {:?}", socket.display(), status.unwrap_or_default())),
    }
}

fn ask(socket: &Path, path: &str) -> std::io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: api\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
    Ok(answer)
}

fn worker(data: &Path) -> Result<String, String> {
    let socket = data.join(work::WAKE_SOCKET);
    let heard = UnixDatagram::unbound().and_then(|mine| mine.connect(&socket));
    heard.map(|()| format!("{} is heard", socket.display())).map_err(|e| format!("{}: {e}", socket.display()))
}

fn python(data: &Path) -> Result<String, String> {
    let asked = format!("GET /gate on {}", data.join("runner.sock").display());
    work::python_closed(data)
        .map_or_else(|| Ok(format!("{asked}: open")), |why| Err(format!("{asked}: {why}")))
}

fn bandit(data: &Path) -> Result<String, String> {
    match Bandit::of_runner(data.join("runner.sock"))
        .lint("doctor.py", b"def run(inputs):\n    return inputs\n")
    {
        Lint::Findings(_) => Ok("the runner's linter read a function".to_owned()),
        Lint::Held(why) => Err(why),
    }
}

fn chromium(program: &str) -> Result<String, String> {
    let report = play::start(&Work::alone("doctor.html", PAGE), program).play(&Backend::Closed);
    report.held.map_or_else(|| Ok("it played a page in its sandbox".to_owned()), Err)
}

/// Whether the configuration of nginx is the one that this program's `sitegen` renders now.
fn rendered(config: &Config, file: &Path) -> Result<String, String> {
    let beside = file.parent().unwrap_or(Path::new("")).join("nginx");
    let places = [config.data.join("nginx"), beside].map(|p| std::path::absolute(&p).unwrap_or(p));
    let Some(place) = places.iter().find(|p| p.join("headers.conf").is_file()) else {
        return Err(format!("none in {} or {}", places[0].display(), places[1].display()));
    };
    let fresh = tempfile::tempdir().map_err(|e| format!("no folder for a fresh one: {e}"))?;
    compare(place, fresh.path(), file)
}

fn compare(place: &Path, fresh: &Path, file: &Path) -> Result<String, String> {
    let command = work::sitegen(file, &["nginx"]).map_err(|e| format!("{e:#}"))?;
    run({ command }.arg(fresh))?;
    let names = fs::read_dir(fresh).map_err(|e| format!("{}: {e}", fresh.display()))?;
    let (mut count, from, to) = (0, fresh.to_string_lossy(), place.to_string_lossy());
    for name in names.flatten().map(|entry| entry.file_name()) {
        let expected = fs::read_to_string(fresh.join(&name)).unwrap_or_default().replace(&*from, &to);
        let path = place.join(&name);
        let found = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        if found != expected {
            return Err(format!("{} is not what `sitegen nginx` renders now", path.display()));
        }
        count += 1;
    }
    Ok(format!("the {count} files in {to} are what `sitegen nginx` renders"))
}

/// Runs a program and returns what it says.
fn run(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let Output { status, stdout, stderr } =
        command.output().map_err(|e| format!("cannot run {name}: {e}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    if status.success() { Ok(text(&stdout)) } else { Err(text(&stderr)) }
}

/// Asks the server of this machine, with curl, which knows the certificates that a browser would trust.
fn curl(origin: &Origin, path: &str) -> Result<String, String> {
    let seconds = PATIENCE.as_secs().to_string();
    let address = format!("{origin}{path}");
    let arguments = ["-sS", "--noproxy", "*", "--connect-to", "::127.0.0.1:", "-i", "-m", &seconds, &address];
    run(Command::new("curl").args(arguments)).map_err(|why| format!("{address}: {why}"))
}

/// Whether an origin sends the headers of the policy, and the list of the tree that is live.
fn served(config: &Config, folder: &str) -> Result<String, String> {
    let (origin, set): (_, Vec<Header>) = match folder {
        "site" => (&config.site, headers::site(config)),
        _ => (&config.content, headers::work(config, "/-/")),
    };
    let answer = curl(origin, "/checksums.txt")?;
    let (head, list) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    for Header { name, value } in &set {
        let fields = head.lines().filter_map(|line| line.split_once(": "));
        let sent: Vec<&str> =
            fields.filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.trim_end()).collect();
        if sent != [value.as_str()] {
            return Err(format!("{origin} sends {sent:?} as {name}; the policy says {value:?}"));
        }
    }
    let live = fs::read_to_string(config.data.join("live").join(folder).join("checksums.txt"));
    let live = live.map_err(|e| format!("no {folder} in the tree that is live: {e}"))?;
    if list.trim_end() != live.trim_end() {
        return Err(format!(
            "{origin} does not serve the {folder} of {}",
            config.data.join("live").display()
        ));
    }
    let digest = Digest::of(live.as_bytes()).to_string();
    Ok(format!("{origin} sends the {} headers of the policy, and tree {}…", set.len(), &digest[..12]))
}

fn passed_on(site: &Origin) -> Result<String, String> {
    let answer = curl(site, "/api/health")?;
    match answer.lines().next() {
        Some(status) if status.split(' ').nth(1) == Some("200") => Ok(format!("{site}/api/health: 200")),
        status => Err(format!("{site}/api/health: {}", status.unwrap_or_default().trim_end())),
    }
}

fn units() -> Seen {
    if !Path::new("/run/systemd/system").is_dir() {
        return note("no systemd runs here: whoever starts the programs must start them again");
    }
    for unit in UNITS {
        for question in ["is-enabled", "is-active"] {
            let asked = Command::new("systemctl").args([question, unit]).output();
            let Ok(asked) = asked else { return wrong("cannot run systemctl") };
            if !asked.status.success() {
                return wrong(format!(
                    "{unit}: {question}: {}",
                    String::from_utf8_lossy(&asked.stdout).trim()
                ));
            }
        }
    }
    ok(format!("systemctl: {} are enabled and active", UNITS.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_does_not_answer_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path();
        assert!(api(data).unwrap_err().contains("api.sock"));
        assert!(worker(data).unwrap_err().contains("work.sock"));
        assert!(python(data).unwrap_err().contains("runner.sock"));
        assert!(bandit(data).is_err());
        assert!(chromium("no-such-browser").unwrap_err().contains("no-such-browser"));
        let _bound = UnixDatagram::bind(data.join(work::WAKE_SOCKET)).unwrap();
        assert!(worker(data).is_ok());
    }

    /// A configuration whose site is that port of this machine.
    fn config(folder: &Path, port: u16) -> Config {
        let file = folder.join("tinyfiles.toml");
        let text = format!(
            "site = \"http://localhost:{port}\"\ncontent = \"http://127.0.0.1:1\"\ndata = \"data\"\n\
             contact = \"mailto:a@b.example\"\nsecurity_txt_expires = \"2000-01-01\"\n"
        );
        fs::write(&file, text).unwrap();
        Config::open(&file).unwrap()
    }

    /// Answers one request with these bytes.
    fn answers(listener: TcpListener, answer: String) -> std::thread::JoinHandle<()> {
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        })
    }

    #[test]
    fn an_origin_is_held_to_its_headers_and_its_tree() {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let config = config(folder.path(), listener.local_addr().unwrap().port());
        let live = config.data.join("live/site");
        fs::create_dir_all(&live).unwrap();
        fs::write(live.join("checksums.txt"), "the list\n").unwrap();
        let fields: String =
            headers::site(&config).iter().map(|h| format!("{}: {}\r\n", h.name, h.value)).collect();
        let answer = |fields: &str, body: &str| {
            format!(
                "HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            )
        };
        for (text, seen) in [
            (answer(&fields, "the list\n"), Ok("and tree")),
            (answer(&fields, "another\n"), Err("does not serve the site of")),
            (answer(&fields.replace("nosniff", "sniff"), "the list\n"), Err("X-Content-Type-Options")),
        ] {
            let asked = answers(listener.try_clone().unwrap(), text);
            let found = served(&config, "site");
            asked.join().unwrap();
            match seen {
                Ok(part) => assert!(found.unwrap().contains(part)),
                Err(part) => assert!(found.unwrap_err().contains(part)),
            }
        }
        let asked = answers(
            listener.try_clone().unwrap(),
            "HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\n\r\n".into(),
        );
        assert!(passed_on(&config.site).unwrap_err().contains("502"));
        asked.join().unwrap();
        drop(listener);
        assert!(served(&config, "site").is_err() && passed_on(&config.site).is_err());
        assert!(rendered(&config, &folder.path().join("tinyfiles.toml")).unwrap_err().contains("none in"));
    }
}
