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

/// Renders the production shape for `here` and moves it from the ports 443 and 80 to others.
fn render_tls(here: &Installation, port: u16, plain_port: u16) -> Result<PathBuf> {
    let config = here.config();
    let text = fs::read_to_string(&config)?
        .replace(&format!("\"http://localhost:{}\"", here.site_port), "\"https://localhost\"")
        .replace(&format!("\"http://127.0.0.1:{}\"", here.content_port), "\"https://127.0.0.1\"");
    fs::write(&config, format!("{text}[tls]\ncertificate = \"chain.pem\"\nkey = \"key.pem\"\n"))?;
    certificate(config.parent().context("no folder")?)?;
    let main = here.render_nginx()?.join("nginx.conf");
    let mut text = fs::read_to_string(&main)?;
    for (public, own) in [(443, port), (80, plain_port)] {
        for address in ["", "[::]:"] {
            let listen = format!("listen {address}{public}");
            ensure!(text.contains(&listen), "no {listen} in {text}");
            text = text.replace(&listen, &format!("listen {address}{own}"));
        }
    }
    fs::write(&main, text)?;
    Ok(main)
}

fn gixy(conf: &Path) -> Result<()> {
    let gixy = repository().join("target/checkers/bin/gixy");
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
    gixy(&render_tls(&public, 443, 80)?)?;
    // It does find something where there is something.
    let bad = local.config().with_extension("conf");
    fs::write(
        &bad,
        "http { server { location /a { alias /srv/b/; } location ~ /c { return 301 http://$host$uri; } } }",
    )?;
    assert!(gixy(&bad).is_err());
    Ok(())
}

/// curl to that port, whatever the address says; it does not check the certificate.
fn curl(port: u16, extra: &[&str], url: &str) -> Result<Ran> {
    let mut curl = Command::new("curl");
    curl.args(["-ks", "--noproxy", "*", "--connect-to", &format!("::127.0.0.1:{port}")]);
    Ok(Ran::of(&curl.args(extra).arg(url).output().context("cannot run curl")?))
}

/// Asks over TLS.
fn ask(port: u16, url: &str, extra: &[&str]) -> Result<Answer> {
    http::parse(curl(port, &[&["-i"], extra].concat(), url)?.stdout.as_bytes())
}

#[test]
fn the_production_shape_over_tls() -> Result<()> {
    let mut here = Installation::new()?;
    let (port, plain_port) = (free_port()?, free_port()?);
    render_tls(&here, port, plain_port)?;
    here.publish()?;
    here.site_port = port;
    here.start_nginx()?;
    let config = Config::open(&here.config())?;
    let moth = "/moth/hitch/";
    for (host, set) in [("localhost", headers::site(&config)), ("127.0.0.1", headers::work(&config, moth))] {
        assert!(set.iter().any(|h| h.value == "max-age=63072000; includeSubDomains; preload"));
        for version in ["--http1.1", "--http2"] {
            for (status, field) in [(200, "A: b"), (206, "Range: bytes=1-2"), (416, "Range: bytes=99999999-")]
            {
                let answer = ask(port, &format!("https://{host}{moth}"), &[version, "-H", field])?;
                assert_eq!(answer.status, status, "{host} {version}");
                for header in &set {
                    let found = answer.header(&header.name.to_lowercase());
                    assert_eq!(
                        found,
                        Some(header.value.as_str()),
                        "{host} {version} {status} {}",
                        header.name
                    );
                }
            }
        }
        let version = |extra: &[&str]| -> Result<String> {
            let asked = ["-o", "/dev/null", "-w", "%{http_version} %{http_code}"];
            Ok(curl(port, &[&asked, extra].concat(), &format!("https://{host}{moth}"))?.stdout)
        };
        assert_eq!(version(&["--tlsv1.2", "--tls-max", "1.2"])?, "2 200");
        assert_eq!(version(&["--tlsv1.3"])?, "2 200");
        assert_eq!(version(&["--http1.1"])?, "1.1 200");
        // The client would speak 1.1; the server ends it.
        let old = Command::new("openssl")
            .args(["s_client", "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"])
            .args(["-connect", &format!("127.0.0.1:{port}")])
            .stdin(std::process::Stdio::null())
            .output()?;
        let old = Ran::of(&old);
        assert!(old.code != 0 && old.stderr.contains("alert protocol version"), "{old:?}");
        assert_eq!(ask(port, &format!("https://{host}/"), &["-H", "Host: other.example"])?.status, 421);
    }
    let plain = |host: &str| -> Result<Answer> {
        let head = format!("GET {moth}?x=1 HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        http::raw(plain_port, head.as_bytes())
    };
    let moved = plain("localhost")?;
    assert_eq!((moved.status, moved.header("location")), (301, Some("https://localhost/moth/hitch/?x=1")));
    assert_eq!(moved.header("strict-transport-security"), None, "not over plain http (RFC 6797, 7.2)");
    let other = plain("other.example")?;
    assert_eq!((other.status, other.header("location")), (421, None));
    Ok(())
}
