//! `tinyfiles.toml`: what one installation calls itself and where it keeps its data.
//!
//! Read by every program through `--config FILE` (default `tinyfiles.toml`, or the variable `TINYFILES_CONFIG`).
//! Relative paths in the file are relative to the file. Nothing here is policy: two installations with different
//! configurations enforce the same limits and headers.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Where the programs look when no `--config` is given.
pub const DEFAULT_FILE: &str = "tinyfiles.toml";

/// One installation.
#[derive(Debug, Clone)]
pub struct Config {
    /// The origin of the first-party pages.
    pub site: Origin,
    /// The origin of the works: another *site* to a browser.
    pub content: Origin,
    /// The folder of the catalogue, the objects and the trees.
    pub data: PathBuf,
    /// The folder with `content/`, `theme/` and `nginx/`: that of the configuration unless it says otherwise.
    pub source: PathBuf,
    /// Where people write to: a `mailto:` or `https:` address.
    pub contact: String,
    /// The last day on which `security.txt` is valid, as `YYYY-MM-DD`.
    pub security_txt_expires: String,
    /// Certificate and key; `None` where the origins are plain http.
    pub tls: Option<Tls>,
}

/// The certificate of a production installation, for both host names.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// PEM file of the certificate chain.
    pub certificate: PathBuf,
    /// PEM file of the private key.
    pub key: PathBuf,
}

/// A scheme, a host and a port: `https://tinyfiles.tv` or `http://localhost:8080`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    text: String,
    host_start: usize,
    host_end: usize,
    port: u16,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {path}: {source}; name another with --config FILE")]
    Read {
        /// The file asked for.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not TOML of the expected shape.
    #[error("{path}: {message}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// Line, column and what was expected there.
        message: String,
    },
    /// A value makes no sense.
    #[error("{path}: {key}: {message}")]
    Value {
        /// The file.
        path: PathBuf,
        /// The key with the value.
        key: &'static str,
        /// The value and what is allowed.
        message: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    site: String,
    content: String,
    data: PathBuf,
    #[serde(default)]
    source: PathBuf,
    contact: String,
    security_txt_expires: String,
    tls: Option<Tls>,
}

impl Config {
    /// Reads the configuration at `path`.
    pub fn open(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let here = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, path, here)
    }

    fn parse(text: &str, path: &Path, here: &Path) -> Result<Self, ConfigError> {
        let file: File = toml::from_str(text)
            .map_err(|e| ConfigError::Parse { path: path.to_owned(), message: e.to_string() })?;
        let value = |key, message| ConfigError::Value { path: path.to_owned(), key, message };
        let site = Origin::parse(&file.site).map_err(|m| value("site", m))?;
        let content = Origin::parse(&file.content).map_err(|m| value("content", m))?;
        if site.host() == content.host() {
            let m = format!("{content} has the host of `site`; works must be served from another host");
            return Err(value("content", m));
        }
        if (site.is_tls(), content.is_tls()) != (file.tls.is_some(), file.tls.is_some()) {
            let m = "both origins are https and [tls] names a certificate, or neither".to_owned();
            return Err(value("tls", m));
        }
        if !(file.contact.starts_with("mailto:") || file.contact.starts_with("https:")) {
            return Err(value("contact", format!("{:?} must start with mailto: or https:", file.contact)));
        }
        let tls = file.tls.map(|t| Tls { certificate: here.join(t.certificate), key: here.join(t.key) });
        Ok(Self {
            site,
            content,
            data: here.join(file.data),
            source: here.join(file.source),
            contact: file.contact,
            security_txt_expires: file.security_txt_expires,
            tls,
        })
    }
}

impl Origin {
    /// Reads `http://host[:port]` or `https://host[:port]`, without a path.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (rest, default_port) = if let Some(rest) = text.strip_prefix("https://") {
            (rest, 443)
        } else if let Some(rest) = text.strip_prefix("http://") {
            (rest, 80)
        } else {
            return Err(format!("{text:?} is not an origin; write it as https://example.org"));
        };
        let (host, port) = match rest.split_once(':') {
            Some((host, port)) => {
                (host, port.parse().map_err(|_| format!("{text:?}: {port:?} is not a port (1 to 65535)"))?)
            }
            None => (rest, default_port),
        };
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '-';
        if host.is_empty() || !host.chars().all(plain) || port == 0 {
            return Err(format!("{text:?} is not an origin: a lower-case host name and no path"));
        }
        let host_start = text.len() - rest.len();
        Ok(Self { text: text.to_owned(), host_start, host_end: host_start + host.len(), port })
    }

    /// The host name.
    pub fn host(&self) -> &str {
        &self.text[self.host_start..self.host_end]
    }

    /// The port, 80 or 443 when none is written.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether it is https.
    pub fn is_tls(&self) -> bool {
        self.text.starts_with("https:")
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins() {
        for (text, host, port) in [
            ("https://tinyfiles.tv", "tinyfiles.tv", 443),
            ("http://localhost:8080", "localhost", 8080),
            ("http://127.0.0.1:8081", "127.0.0.1", 8081),
        ] {
            let origin = Origin::parse(text).unwrap();
            assert_eq!((origin.host(), origin.port(), origin.to_string().as_str()), (host, port, text));
        }
        for text in
            ["tinyfiles.tv", "https://", "https://a/b", "http://A", "http://a:99999", "http://a:0", "ftp://a"]
        {
            assert!(Origin::parse(text).is_err(), "{text}");
        }
    }

    fn message(text: &str) -> String {
        Config::parse(text, Path::new("t.toml"), Path::new("/srv")).unwrap_err().to_string()
    }

    #[test]
    fn a_configuration_names_what_is_wrong_with_it() {
        let good = "site = 'http://localhost:1'\ncontent = 'http://127.0.0.1:2'\ndata = 'd'\n\
                    contact = 'mailto:a@b.example'\nsecurity_txt_expires = '2027-01-01'\n";
        let config = Config::parse(good, Path::new("t.toml"), Path::new("/srv")).unwrap();
        assert_eq!(config.data, Path::new("/srv/d"));
        assert!(
            message(&good.replace("127.0.0.1", "localhost"))
                .contains("content: http://localhost:2 has the host")
        );
        assert!(
            message(&good.replace("'http://localhost:1'", "'https://localhost:1'"))
                .contains("tls: both origins")
        );
        assert!(message(&good.replace("mailto:", "")).contains("contact: \"a@b.example\""));
        assert!(message(&format!("{good}colour = 'red'")).contains("colour"));
        assert!(message("site = 3").contains("t.toml"));
    }
}
