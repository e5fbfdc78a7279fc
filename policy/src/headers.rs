//! `headers.toml` as types, rendered for one deployment.
//!
//! nginx includes these sets and the end-to-end tests compare live answers with them. The work set depends on the
//! path it is sent for, through one placeholder that nginx fills from its own variable.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::{Config, grants, limits};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sets {
    site: Vec<Template>,
    work: Vec<Template>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Template {
    name: String,
    value: Vec<String>,
    #[serde(default)]
    tls: bool,
}

/// One response header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

fn sets() -> &'static Sets {
    static SETS: LazyLock<Sets> =
        LazyLock::new(|| crate::embedded("headers.toml", include_str!("../data/headers.toml")));
    &SETS
}

/// The headers of every first-party answer.
pub fn site(config: &Config) -> Vec<Header> {
    render(&sets().site, config, &grants().permissions_policy_site(), "")
}

/// The headers of every answer of the content origin, for the work at `work_path` (`/creator/work/`).
pub fn work(config: &Config, work_path: &str) -> Vec<Header> {
    render(&sets().work, config, &grants().permissions_policy_work(), work_path)
}

fn render(set: &[Template], config: &Config, denied: &str, work_path: &str) -> Vec<Header> {
    let fill = |text: &str| {
        text.replace("{site}", &config.site.to_string())
            .replace("{content}", &config.content.to_string())
            .replace("{work_path}", work_path)
            .replace("{sandbox}", &grants().sandbox())
            .replace("{denied}", denied)
            .replace("{hsts_seconds}", &limits().http.hsts_seconds.to_string())
    };
    set.iter()
        .filter(|t| !t.tls || config.tls.is_some())
        .map(|t| Header { name: t.name.clone(), value: fill(&t.value.join("; ")) })
        .collect()
}

/// The `add_header` lines of an nginx include, sent with every status. The values are those of [`nginx_maps`].
pub fn nginx_include(set: &str, headers: &[Header]) -> String {
    headers.iter().map(|h| format!("add_header {} {} always;\n", h.name, variable(set, h))).collect()
}

/// The variables of such an include. nginx adds headers twice to a 416, whose first headers are those of the answer
/// it would have been: the second time the variables are empty, and so not sent.
pub fn nginx_maps(set: &str, headers: &[Header]) -> String {
    let map = |h: &Header| {
        format!(
            "map $status {} {{\n    volatile;\n    416 '';\n    default {};\n}}\n",
            variable(set, h),
            nginx_quoted(&h.value)
        )
    };
    headers.iter().map(map).collect()
}

fn variable(set: &str, header: &Header) -> String {
    format!("${set}_{}", header.name.to_lowercase().replace('-', "_"))
}

/// Quotes a value for an nginx configuration. A dollar stays a dollar: the only one is that of `$work_path`.
fn nginx_quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Origin, Tls};

    fn production() -> Config {
        Config {
            site: Origin::parse("https://tinyfiles.tv").unwrap(),
            content: Origin::parse("https://content-sandbox.com").unwrap(),
            data: "data".into(),
            source: "".into(),
            contact: "mailto:a@b.example".into(),
            security_txt_expires: "2027-01-01".into(),
            tls: Some(Tls { certificate: "c".into(), key: "k".into() }),
        }
    }

    fn value(set: &[Header], name: &str) -> String {
        let found: Vec<_> = set.iter().filter(|h| h.name == name).collect();
        assert_eq!(found.len(), 1, "{name}");
        found[0].value.clone()
    }

    #[test]
    fn the_first_eight_directives_of_a_work_are_the_published_promise() {
        let csp = value(&work(&production(), "/a/b/"), "Content-Security-Policy");
        assert_eq!(
            csp,
            "sandbox allow-scripts allow-forms allow-modals allow-downloads; default-src 'none'; \
             script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; media-src data: blob:; \
             connect-src 'none'; frame-ancestors https://tinyfiles.tv; form-action 'none'; base-uri 'none'"
        );
        assert!(!csp.contains("allow-same-origin") && !csp.contains("allow-top-navigation"));
        assert_eq!(
            value(&work(&production(), "/a/b/"), "Connection-Allowlist"),
            "(\"https://content-sandbox.com/a/b/*\")"
        );
    }

    #[test]
    fn first_party_pages_allow_nothing_inline_and_frame_only_the_content_origin() {
        let csp = value(&site(&production()), "Content-Security-Policy");
        assert!(!csp.contains("unsafe"), "{csp}");
        assert!(csp.contains("frame-src https://content-sandbox.com;"), "{csp}");
        assert!(csp.contains("frame-ancestors 'none'"), "{csp}");
    }

    #[test]
    fn no_placeholder_survives_and_hsts_needs_tls() {
        let mut config = production();
        for header in site(&config).iter().chain(&work(&config, "/a/b/")) {
            assert!(!header.value.contains('{'), "{header:?}");
        }
        assert!(value(&site(&config), "Strict-Transport-Security").starts_with("max-age=63072000; "));
        config.tls = None;
        assert!(!site(&config).iter().any(|h| h.name == "Strict-Transport-Security"));
    }

    #[test]
    fn an_include_quotes_its_values() {
        let set = [Header { name: "A-B".into(), value: "x 'y' \"z\"".into() }];
        assert_eq!(nginx_include("site", &set), "add_header A-B $site_a_b always;\n");
        let maps = nginx_maps("site", &set);
        assert_eq!(
            maps,
            "map $status $site_a_b {\n    volatile;\n    416 '';\n    default 'x \\'y\\' \"z\"';\n}\n"
        );
    }
}
