//! `sitegen preview`: the wrapper page and the files of a pending work, for the moderator who asked for them.
//!
//! It is the page that would be published, with `/preview/{token}/` for its path, so that what it saves and calls is not
//! the work's own. It lies outside every tree: in `data/preview/site` and `data/preview/content`, which nginx serves only
//! where `api` has said yes to the token. Rendering again replaces it; `api work` removes it when its time is over.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use catalog::{Catalog, Data, Role, Slug, Work};
use minijinja::context;
use minijinja::value::{Serde, Value};
use policy::Config;

use crate::diagnostic::Failure;
use crate::publish::add_globals;
use crate::site::{Card, Entry};
use crate::theme::Theme;
use crate::works;

/// The first segment of the path of every preview, which no creator can have.
const CREATOR: &str = "preview";

/// Renders the pending work of the preview `token`.
pub(crate) fn render(config: &Config, token: &Slug) -> Result<(), Failure> {
    let data = Data::open(&config.data)?;
    let catalog = Catalog::open(&data.path("catalog.db"))?;
    // Whether its time is over is for the one who serves it to say.
    let pending = catalog
        .preview(token.as_str(), i64::MIN)?
        .ok_or_else(|| anyhow!("no preview {token}, or its work is not pending any more; open a new one"))?;
    let (_, damage) = works::intact(&data, vec![pending.work.clone()])?;
    if !damage.is_empty() {
        return Err(Failure::Input(damage));
    }
    let mut problems = Vec::new();
    let mut theme = Theme::load(config, &mut problems)?;
    if !problems.is_empty() {
        return Err(Failure::Input(problems));
    }
    add_globals(&mut theme, config);
    let creator = Value::from_safe_string(pending.work.creator.to_string());
    let mut entry =
        Entry::new(Work { creator: CREATOR.parse().context(CREATOR)?, slug: token.clone(), ..pending.work });
    entry.card.creator = creator;
    let shown = works::shown(&entry, &config.content.to_string());
    let none: [&Card; 0] = [];
    let page = theme.render("work.html", context! { work => Serde(&shown), related => Serde(&none) })?;
    folder(&data, "content", token, |folder| {
        entry.work.files.iter().try_for_each(|f| Ok(data.objects.link(&f.digest, &folder.join(&f.name))?))
    })?;
    folder(&data, "site", token, |folder| {
        fs::write(folder.join("index.html"), &page)?;
        let covers = entry.work.files.iter().filter(|f| f.role == Role::Cover);
        covers.into_iter().try_for_each(|f| Ok(data.objects.link(&f.digest, &folder.join(&f.name))?))
    })?;
    Ok(())
}

/// Fills a new folder and puts it in the place of the old one.
fn folder(
    data: &Data,
    side: &str,
    token: &Slug,
    fill: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let all = data.path("preview").join(side);
    let (new, target) = (all.join(format!(".{token}")), all.join(token.as_str()));
    for old in [&new, &target] {
        match fs::remove_dir_all(old) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(e).with_context(|| format!("cannot remove {}", old.display()));
            }
            _ => {}
        }
    }
    fs::create_dir_all(&new).with_context(|| format!("cannot create {}", new.display()))?;
    fill(&new).with_context(|| format!("cannot fill {}", new.display()))?;
    fs::rename(&new, &target).with_context(|| format!("cannot replace {}", target.display()))
}
