//! Prints how long a check takes and how much memory the process held at most.
//!
//! `cargo run --release -p intake --example measure` makes the two works of the published numbers and checks them.

use std::error::Error;
use std::io::Write;
use std::time::Instant;

use data_encoding::BASE64;
use intake::document;

/// A game of about `bytes`: a tenth is code, minified to one line, the rest pictures and sounds as data.
fn game(bytes: usize, code_part: usize) -> String {
    let line = "function f$(a,b){const c=document.getElementById('x$'),d=[1,2,3].map(e=>e*a+b);for(let g=0;g<d.length;g++)\
                if(d[g]>3&&c){c.style.left=d[g]+'px';c.textContent='score '+d[g]}return{a,b,c,d,k:`${a}-${b}`}};f$(1,$);";
    let mut code = String::new();
    let mut number = 0;
    while code.len() < bytes / code_part {
        code.push_str(&line.replace('$', &number.to_string()).replace("`{", "`${").replace("-{", "-${"));
        number += 1;
    }
    let noise: Vec<u8> = (0..bytes).map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    let picture = BASE64.encode(&noise[..(bytes - code.len()) * 3 / 8 - 200]);
    format!(
        "<!doctype html><title>game</title><img src=\"data:image/png;base64,{picture}\"><script>{code}\
         const sound=\"data:audio/ogg;base64,{picture}\"</script>"
    )
}

fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn main() -> Result<(), Box<dyn Error>> {
    let max = policy::limits().work.html_bytes_max;
    let mut out = std::io::stdout();
    for (name, bytes, part) in [
        ("64 KiB, all code", 65_536, 1),
        ("5 MiB, a tenth code", 5_200_000, 10),
        ("5 MiB, half code", 5_200_000, 2),
        ("5 MiB, all code", 5_000_000, 1),
    ] {
        let page = game(if part == 1 { bytes * 2 } else { bytes }, part.max(2));
        let page = if part == 1 { code_only(&page) } else { page };
        let mut best = f64::MAX;
        let mut findings = 0;
        for _ in 0..5 {
            let start = Instant::now();
            let outcome = document::check("game.html", page.as_bytes(), max);
            best = best.min(start.elapsed().as_secs_f64() * 1_000.0);
            findings =
                outcome.findings.iter().filter(|f| f.severity > intake::finding::Severity::Note).count();
        }
        let peak = peak_kib().unwrap_or(0) / 1_024;
        writeln!(
            out,
            "{name:22} {:9} bytes {best:8.1} ms  {peak:4} MiB at most  {findings} findings",
            page.len()
        )?;
    }
    Ok(())
}

/// The page without its pictures.
fn code_only(page: &str) -> String {
    let script = page.find("<script>").unwrap_or(0);
    let sound = page.find("const sound=").unwrap_or(page.len());
    format!("<!doctype html>{}</script>", &page[script..sound])
}
