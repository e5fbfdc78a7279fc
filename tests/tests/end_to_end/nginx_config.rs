//! The rendered server configuration: what nginx and gixy say of it, and the production shape over live TLS.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use policy::{Config, headers};
use tests::http::{self, Answer};
use tests::{Installation, Ran, free_port, repository};

/// Makes a certificate that nobody trusts, for both names.
fn certificate(folder: &Path) -> Result<()> {
    let ran = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-keyout", "key.pem", "-out", "chain.pem"])
        .current_dir(folder)
        .output()
        .context("cannot run openssl")?;
    ensure!(ran.status.success(), "{:?}", Ran::of(&ran));
    Ok(())
}

/// Renders the production shape for `here` and moves port 80 to one that a test may have.
fn render_tls(here: &Installation, plain_port: u16) -> Result<PathBuf> {
    let config = here.config();
    let text = fs::read_to_string(&config)?.replace("\"http://", "\"https://");
    fs::write(&config, format!("{text}[tls]\ncertificate = \"chain.pem\"\nkey = \"key.pem\"\n"))?;
    certificate(config.parent().context("no folder")?)?;
    let main = here.render_nginx()?.join("nginx.conf");
    let text = fs::read_to_string(&main)?;
    ensure!(text.contains("listen 80") && text.contains("listen [::]:80"), "{text}");
    let port = |before: &str| format!("{before}{plain_port}");
    fs::write(
        &main,
        text.replace("listen 80", &port("listen ")).replace("listen [::]:80", &port("listen [::]:")),
    )?;
    Ok(main)
}

fn gixy(conf: &Path) -> Result<()> {
    let gixy = repository().join("target/gixy/bin/gixy");
    let ran = Command::new(&gixy).arg("-f").arg("json").arg(conf).output();
    let ran = Ran::of(&ran.with_context(|| format!("no {}; `./dev test` installs it", gixy.display()))?);
    ensure!(ran.code == 0 && ran.stdout.trim() == "[]", "gixy on {}: {ran:?}", conf.display());
    Ok(())
}

#[test]
fn gixy_finds_nothing() -> Result<()> {
    let local = Installation::new()?;
    gixy(&local.render_nginx()?.join("nginx.conf"))?;
    let public = Installation::new()?;
    gixy(&render_tls(&public, 80)?)?;
    // It does find something where there is something.
    let bad = local.config().with_extension("conf");
    fs::write(
        &bad,
        "http { server { location /a { alias /srv/b/; } location ~ /c { return 301 http://$host$uri; } } }",
    )?;
    assert!(gixy(&bad).is_err());
    Ok(())
}

/// Asks over TLS with curl, which does not check the certificate.
fn ask(port: u16, host: &str, path: &str, extra: &[&str]) -> Result<Answer> {
    let mut curl = Command::new("curl");
    curl.args(["-ksi", "--noproxy", "*", "--connect-to", &format!("::127.0.0.1:{port}")]);
    let output = curl.args(extra).arg(format!("https://{host}:{port}{path}")).output()?;
    ensure!(output.status.success(), "curl {extra:?}: {:?}", output.status);
    http::parse(&output.stdout)
}

#[test]
fn the_production_shape_over_tls() -> Result<()> {
    let mut here = Installation::new()?;
    let plain_port = free_port()?;
    render_tls(&here, plain_port)?;
    here.publish()?;
    here.start_nginx()?;
    let config = Config::open(&here.config())?;
    for (port, host, set) in [
        (here.site_port, "localhost", headers::site(&config)),
        (here.content_port, "127.0.0.1", headers::work(&config, "/moth/hitch/")),
    ] {
        assert!(set.iter().any(|h| h.value == "max-age=63072000; includeSubDomains; preload"));
        for version in ["--http1.1", "--http2"] {
            for range in [&["-H", "A: b"], &["-H", "Range: bytes=1-2"]] {
                let answer = ask(port, host, "/moth/hitch/", &[&[version], &range[..]].concat())?;
                let status = if range[1] == "A: b" { 200 } else { 206 };
                assert_eq!(answer.status, status, "{host} {version}");
                for header in &set {
                    let found = answer.header(&header.name.to_lowercase());
                    assert_eq!(found, Some(header.value.as_str()), "{host} {version} {}", header.name);
                }
            }
        }
        let version = |extra: &[&str]| -> Result<String> {
            let mut curl = Command::new("curl");
            curl.args(["-ks", "--noproxy", "*", "-o", "/dev/null", "-w", "%{http_version} %{http_code}"]);
            Ok(Ran::of(&curl.args(extra).arg(format!("https://{host}:{port}/")).output()?).stdout)
        };
        let root = if host == "localhost" { "200" } else { "404" };
        assert_eq!(version(&["--tlsv1.2", "--tls-max", "1.2"])?, format!("2 {root}"));
        assert_eq!(version(&["--tlsv1.3"])?, format!("2 {root}"));
        assert_eq!(version(&["--http1.1"])?, format!("1.1 {root}"));
        // The client would speak 1.1; the server ends it.
        let old = Command::new("openssl")
            .args(["s_client", "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"])
            .args(["-connect", &format!("127.0.0.1:{port}")])
            .stdin(std::process::Stdio::null())
            .output()?;
        let old = Ran::of(&old);
        assert!(old.code != 0 && old.stderr.contains("alert protocol version"), "{old:?}");
        let other = ask(port, host, "/", &["-H", "Host: other.example"])?;
        assert_eq!(other.status, 421);
    }
    let moved = http::get(plain_port, "localhost", "/moth/hitch/?x=1")?;
    let to = format!("https://localhost:{}/moth/hitch/?x=1", here.site_port);
    assert_eq!((moved.status, moved.header("location")), (301, Some(to.as_str())));
    assert_eq!(moved.header("strict-transport-security"), None, "not over plain http (RFC 6797, 7.2)");
    let other = http::get(plain_port, "other.example", "/")?;
    assert_eq!((other.status, other.header("location")), (421, None));
    Ok(())
}
