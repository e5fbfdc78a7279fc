//! What saving costs over HTTP, beside the same rows written in a raw loop and a file that nginx serves, both asked for in the
//! same way. For `./dev bench`.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rusqlite::{Connection, params};

use crate::Installation;

/// Connections at once.
const CONNECTIONS: u32 = 64;
/// Bytes of a save.
const BYTES: u32 = 2_048;
/// How long a row is measured.
const TIME: Duration = Duration::from_secs(8);
/// Where the numbers of the raw loop start, so that no key comes twice.
const RAW: u32 = 1 << 30;

/// Requests that were answered as expected.
struct Load {
    /// What each took, sorted.
    times: Vec<Duration>,
    rate: f64,
}

impl Load {
    fn row(&self, what: &str, beside: f64) -> String {
        let at = |percent: usize| self.times[(self.times.len() - 1) * percent / 100].as_secs_f64() * 1000.0;
        format!("| {what} | {:.0} | {:.2} | {:.1} | {:.1} |\n", self.rate, self.rate / beside, at(50), at(99))
    }
}

/// Sends what `request` makes for a running number, on all connections at once, until the time is up.
fn load<S: Read + Write>(
    connect: impl Fn() -> std::io::Result<S> + Sync,
    status: &str,
    request: impl Fn(u32) -> Vec<u8> + Sync,
) -> Result<Load> {
    let start = Instant::now();
    let one = |connection: u32| -> Result<Vec<Duration>> {
        let (mut stream, mut buffer, mut times) = (connect()?, vec![0; 16_384], Vec::new());
        for number in (connection..).step_by(CONNECTIONS as usize).take_while(|_| start.elapsed() < TIME) {
            // nginx ends a connection after its thousandth request.
            if times.len() % 500 == 499 {
                stream = connect()?;
            }
            let request = request(number);
            let asked = Instant::now();
            stream.write_all(&request)?;
            let mut read = 0;
            while !is_whole(&buffer[..read]) {
                let more = stream.read(&mut buffer[read..])?;
                ensure!(more > 0, "the server hung up");
                read += more;
            }
            times.push(asked.elapsed());
            let text = || String::from_utf8_lossy(&buffer[..read]).into_owned();
            ensure!(buffer[9..].starts_with(status.as_bytes()), "not {status}: {}", text());
        }
        Ok(times)
    };
    let mut times = thread::scope(|scope| {
        let all: Vec<_> = (0..CONNECTIONS).map(|c| scope.spawn(move || one(c))).collect();
        let join =
            |one: thread::ScopedJoinHandle<'_, Result<Vec<Duration>>>| one.join().expect("a connection");
        all.into_iter().map(join).collect::<Result<Vec<_>>>()
    })?
    .concat();
    let rate = times.len() as f64 / start.elapsed().as_secs_f64();
    times.sort_unstable();
    Ok(Load { times, rate })
}

/// Whether an answer has all of its body.
fn is_whole(bytes: &[u8]) -> bool {
    let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let length =
        head.lines().find_map(|l| l.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0_usize);
    bytes.len() >= end + 4 + length
}

/// A body that does not compress, another one for each number: its first 32 bytes are the key.
fn body(number: u32) -> Vec<u8> {
    let mut state = u64::from(number).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let word = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(word).take(BYTES as usize / 8).flatten().collect()
}

fn path(number: u32) -> String {
    format!("/api/saves/{}", data_encoding::HEXLOWER.encode(&body(number)[..32]))
}

fn put(number: u32) -> Vec<u8> {
    let head = format!(
        "PUT {} HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\nContent-Type: application/octet-stream\r\nContent-Length: {BYTES}\r\n\r\n",
        path(number)
    );
    [head.into_bytes(), body(number)].concat()
}

fn get(path: &str, host: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes()
}

/// Rows a second of a loop that commits the same rows in batches into a database that `api` made.
fn raw(database: &Path) -> Result<f64> {
    let mut db = Connection::open(database)?;
    db.pragma_update(None, "synchronous", "full")?;
    db.pragma_update(None, "secure_delete", true)?;
    let (start, mut rows) = (Instant::now(), 0);
    while start.elapsed() < TIME {
        let mut batch: Vec<_> = (rows..rows + CONNECTIONS).map(|n| body(RAW + n)).collect();
        batch.sort_unstable();
        let all = db.transaction()?;
        for bytes in &batch {
            let sql = "INSERT INTO save_codes (key, position, attempts_left, revision, day, body)
                       VALUES (?1, 'encrypted', 5, 1, 1, ?2)";
            all.prepare_cached(sql)?.execute(params![&bytes[..32], bytes])?;
        }
        all.commit()?;
        rows += CONNECTIONS;
    }
    Ok(f64::from(rows) / start.elapsed().as_secs_f64())
}

/// The table, as README.md quotes it.
pub fn table(folder: &Path) -> Result<String> {
    let mut here = Installation::in_folder(folder)?;
    fs::create_dir_all(here.source().join("theme/image"))?;
    fs::write(here.source().join("theme/image/bench.png"), body(0))?;
    here.publish()?;
    here.serve()?;
    here.api()?.stop()?;
    let raw = raw(&here.data("saves/saves.db"))?;
    fs::remove_dir_all(here.data("saves"))?;
    let api = here.api()?;
    let before = api.resident_mb()?;
    let socket = here.data("api.sock");
    let puts = load(|| UnixStream::connect(&socket), "201", put)?;
    let stored = u32::try_from(puts.times.len())?;
    // A connection stops at its own time: only what all of them reached is there for certain.
    let asked = stored / 2;
    let gets = load(|| UnixStream::connect(&socket), "200", |n| get(&path(n % asked), "a"))?;
    let after = api.resident_mb()?;
    api.stop()?;
    let size = fs::metadata(here.data("saves/saves.db"))?.len();
    let asset = fs::read_dir(here.data("assets"))?
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .find(|n| n.starts_with("bench."))
        .context("no asset")?;
    let file = get(&format!("/assets/{asset}"), &format!("localhost:{}", here.site_port));
    let files = load(|| TcpStream::connect(("127.0.0.1", here.site_port)), "200", |_| file.clone())?;
    let mut text = format!(
        "Saves of {BYTES} bytes over HTTP, {CONNECTIONS} connections, client and server on the same cores, {} s a row\n\n\
         | what | a second | beside | p50 ms | p99 ms |\n|---|---|---|---|---|\n\
         | raw loop into SQLite, {CONNECTIONS} rows a commit, durable | {raw:.0} | 1 | | |\n",
        TIME.as_secs()
    );
    text += &puts.row("PUT of new saves, durable, beside the loop", raw);
    text += &files.row("nginx, a file of the same size", files.rate);
    text += &gets.row("GET of saves, beside nginx", files.rate);
    let _ = write!(
        text,
        "\nThe database is {:.2} of its payload; `api serve` had {before:.0} MB resident before, {after:.0} MB after.\n",
        size as f64 / f64::from(stored) / f64::from(BYTES)
    );
    Ok(text)
}
