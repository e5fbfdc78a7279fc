//! What a check costs a creator: `intake check` on games of two sizes and on the whole corpus. For `./dev bench`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use data_encoding::BASE64;

use crate::cost::{Cost, median};
use crate::{program, repository};

const SMALL: usize = 64 << 10;
/// A little below the most that a page may have.
const LARGE: usize = (5 << 20) - 1024;

/// The table, as README.md quotes it.
pub fn table() -> Result<String> {
    let folder = tempfile::tempdir()?;
    let mut text = "`intake check`, the whole program from start to end, without bandit (median of 3)\n\n\
                    | what | wall ms | CPU ms | peak MB |\n|---|---|---|---|\n"
        .to_owned();
    let mut row = |what: &str, cost: &Cost| {
        let (wall, cpu) = (cost.wall * 1000.0, cost.cpu * 1000.0);
        writeln!(text, "| {what} | {wall:.0} | {cpu:.0} | {:.0} |", cost.peak_mb)
    };
    for (what, bytes, share) in [
        ("a game of 64 KiB, all code", SMALL, 1),
        ("a game of 5 MiB, a tenth of it code", LARGE, 10),
        ("a game of 5 MiB, all code", LARGE, 1),
    ] {
        let page = folder.path().join("game.html");
        fs::write(&page, game(bytes, share))?;
        let mut command = Command::new(program("intake"));
        command.arg("check").arg(&page);
        row(what, &median(&command, || Ok(()))?)?;
    }
    let corpus = folder.path().join("corpus");
    let works = spread(&corpus)?;
    // Most of them are bad on purpose, so only a check that breaks down stops the loop; no bandit is on this PATH.
    let script = "PATH=/nowhere; for f in *; do \"$0\" check \"$f\"; s=$?; [ $s -le 1 ] || [ $s -eq 4 ] || exit $s; done";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(program("intake")).current_dir(&corpus);
    row(&format!("the corpus: {works} files, one program each"), &median(&command, || Ok(()))?)?;
    Ok(text)
}

/// A clean game of about `bytes`, one part in `share` of it code on one line, the rest a picture and a sound as data.
fn game(bytes: usize, share: usize) -> String {
    let line = "function f$(a,b){const c=document.getElementById('x$'),d=[1,2,3].map(e=>e*a+b);for(let g=0;g<d.length;g++)\
                if(d[g]>3&&c){c.style.left=d[g]+'px';c.textContent='score '+d[g]}return{a,b,c,d}}f$(1,$);";
    let room = bytes - 200;
    let mut code = String::new();
    for number in 0.. {
        let next = line.replace('$', &number.to_string());
        if code.len() + next.len() > room / share {
            break;
        }
        code.push_str(&next);
    }
    let noise: Vec<u8> =
        (0..(room - code.len()) * 3 / 8).map(|i| (i.wrapping_mul(i) >> 5).to_le_bytes()[0]).collect();
    let data = BASE64.encode(&noise);
    format!(
        "<!doctype html><title>game</title><img alt=\"\" src=\"data:image/png;base64,{data}\"><script>{code}\
         const sound=\"data:audio/ogg;base64,{data}\"</script>"
    )
}

/// Writes every case and every game of the corpus as a file of its own, and says how many.
fn spread(folder: &Path) -> Result<usize> {
    fs::create_dir(folder)?;
    let corpus = repository().join("intake/tests/corpus");
    let mut count = 0;
    for entry in fs::read_dir(&corpus)? {
        let path = entry?.path();
        if path.extension().is_none_or(|e| e != "cases") {
            continue;
        }
        for case in fs::read_to_string(&path)?.split("### ").skip(1) {
            let (head, body) = case.split_once('\n').context("a case without a text")?;
            let (ending, body) = match head.split(' ').next() {
                Some("python") => ("py", body.to_owned()),
                Some("script") => ("html", format!("<script>\n{body}</script>")),
                _ => ("html", body.to_owned()),
            };
            fs::write(folder.join(format!("{count}.{ending}")), body)?;
            count += 1;
        }
    }
    ensure!(count > 0, "no cases in {}", corpus.display());
    for entry in fs::read_dir(corpus.join("games"))? {
        let entry = entry?;
        fs::copy(entry.path(), folder.join(entry.file_name()))?;
        count += 1;
    }
    Ok(count)
}
