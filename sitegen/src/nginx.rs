//! The nginx configuration of an installation, rendered from `nginx/*.conf` and the policy.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use minijinja::context;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use policy::{Config, headers, limits};

use crate::theme::block_syntax;

/// The variable that holds the path of the requested work in the configuration.
const WORK_PATH: &str = "$work_path";

/// Writes the configuration of `config` into `out` and returns the paths of the files.
pub(crate) fn write(config: &Config, out: &Path) -> anyhow::Result<Vec<String>> {
    let absolute = |path: &Path| {
        std::path::absolute(path).with_context(|| format!("no absolute path for {}", path.display()))
    };
    let (out, data) = (absolute(out)?, absolute(&config.data)?);
    std::fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    for path in [&out, &data] {
        if path.to_string_lossy().contains(['"', '$', '\\', '\n']) {
            bail!(
                "{} cannot stand in an nginx configuration: it has one of \" $ \\; move it",
                path.display()
            );
        }
    }
    let mut written = Vec::new();
    for (name, text) in render(config, &data, &out)? {
        let path = out.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        written.push(path.display().to_string());
    }
    Ok(written)
}

/// The files of the configuration: the server's, the values of all headers, and an include for each header set.
fn render(config: &Config, data: &Path, out: &Path) -> anyhow::Result<Vec<(&'static str, String)>> {
    let mut env = Environment::new();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_syntax(block_syntax()?);
    let source: PathBuf = config.source.join("nginx/nginx.conf");
    let template =
        std::fs::read_to_string(&source).with_context(|| format!("cannot read {}", source.display()))?;
    let tls = config.tls.as_ref().map(|tls| {
        let path = |p: &Path| std::path::absolute(p).unwrap_or_else(|_| p.to_owned()).display().to_string();
        context! { certificate => path(&tls.certificate), key => path(&tls.key) }
    });
    let origin =
        |o: &policy::config::Origin| context! { host => o.host(), port => o.port(), url => o.to_string() };
    let context = context! {
        site => origin(&config.site), content => origin(&config.content), tls, data => data.display().to_string(),
        out => out.display().to_string(), limits => Serde(limits()),
    };
    let main = env.render_named_str(&source.display().to_string(), &template, context)?;
    let (site, work) = (headers::site(config), headers::work(config, WORK_PATH));
    Ok(vec![
        ("nginx.conf", main),
        ("headers.conf", headers::nginx_maps("site", &site) + &headers::nginx_maps("work", &work)),
        ("headers-site.conf", headers::nginx_include("site", &site)),
        ("headers-work.conf", headers::nginx_include("work", &work)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The configuration of the public installation is committed, so that a change of policy shows what nginx will
    /// send. `UPDATE=1 cargo test -p sitegen` writes it anew.
    #[test]
    fn the_committed_production_configuration_is_the_rendered_one() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let config = Config::open(&root.join("nginx/production.toml")).unwrap();
        let config = Config { source: root.clone(), ..config };
        let files =
            render(&config, Path::new("/var/lib/tinyfiles"), Path::new("/etc/tinyfiles/nginx")).unwrap();
        for (name, text) in files {
            let path = root.join("nginx/production").join(name);
            if std::env::var_os("UPDATE").is_some() {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, &text).unwrap();
            }
            let committed = std::fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(committed, text, "{} differs; run UPDATE=1 cargo test -p sitegen", path.display());
        }
    }

    /// The API hangs up on who says nothing for `headers_seconds_max`; a request on its way there meanwhile is lost.
    #[test]
    fn nginx_lets_go_of_a_connection_to_the_api_before_the_api_does() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let text = std::fs::read_to_string(root.join("nginx/production/nginx.conf")).unwrap();
        let upstream = text.split_once("upstream api {").unwrap().1.split_once('}').unwrap().0;
        let kept = upstream.split_once("keepalive_timeout ").unwrap().1.split_once("s;").unwrap().0;
        let kept: u32 = kept.parse().unwrap();
        assert!(kept > 0 && kept < limits().api.headers_seconds_max, "{kept} s");
    }
}
