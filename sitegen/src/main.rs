//! `sitegen`: renders content, theme and catalogue into the two static trees, and swaps them in.
//!
//! | module | what it does |
//! |---|---|
//! | [`publish`] | the order of a publish; what a problem stops |
//! | [`import`] | works from `content/works` into an empty catalogue |
//! | [`site`], [`mark`] | the works as pages need them |
//! | [`theme`], [`markdown`], [`pages`], [`works`], [`feeds`] | from data to text |
//! | [`render`], [`cache`] | from text to objects, reused where nothing changed |
//! | [`output`], [`html`] | the trees under construction, and whether their links lead somewhere |
//! | [`preview`] | one pending work, for its moderator |
//! | [`trees`] | `list`, `verify`, `rollback`, `gc` |
//! | [`nginx`] | the server configuration for an installation |
//!
//! Invariant: the output is a function of catalogue, content, theme, policy and origins. No clock, no environment.

mod cache;
mod diagnostic;
mod feeds;
mod html;
mod import;
mod mark;
mod markdown;
mod nginx;
mod output;
mod pages;
mod preview;
mod progress;
mod publish;
mod render;
mod site;
mod theme;
mod trees;
mod works;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use catalog::{Digest, Slug};
use clap::{Parser, Subcommand};
use policy::Config;

use crate::diagnostic::Failure;
use crate::progress::Progress;

/// Renders content, theme and catalogue into the two static trees, and swaps them in.
///
/// Exit codes: 0 done; 1 the machine failed (disk, permission, another publish running); 2 the arguments are wrong;
/// 3 the input has problems, each printed with file, line and column, and the served tree was not touched;
/// 4 done, but something stored is damaged and was named.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The installation's configuration.
    #[arg(long, global = true, env = "TINYFILES_CONFIG", default_value = policy::config::DEFAULT_FILE, value_name = "FILE")]
    config: PathBuf,
    /// Print one JSON object on standard output instead of words.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Render what changed and serve it (the default).
    Publish {
        /// If another publish is running, wait for it to end.
        #[arg(long)]
        wait: bool,
    },
    /// Re-hash every byte of a tree.
    Verify {
        /// The tree: its digest or the first digits of it. Default: the one that is served.
        tree: Option<String>,
    },
    /// Serve an older tree again.
    Rollback {
        /// The tree: its digest or the first digits of it. Default: the one before the one that is served.
        tree: Option<String>,
    },
    /// Render the pending work of an open preview, beside the trees.
    Preview {
        /// The preview's token, as the catalogue has it.
        token: Slug,
    },
    /// List the trees that are kept.
    List,
    /// Remove everything that no kept tree and no row of the catalogue needs.
    Gc,
    /// Write the nginx configuration of this installation into a folder.
    Nginx {
        /// The folder, such as data/nginx.
        out: PathBuf,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome =
        Config::open(&arguments.config).map_err(Failure::from).and_then(|config| run(&arguments, &config));
    match outcome {
        Ok(Done::Well(text)) => say(&text, ExitCode::SUCCESS),
        Ok(Done::Damaged(text)) => say(&text, ExitCode::from(4)),
        Err(Failure::Input(problems)) => {
            let text = if arguments.json {
                serde_json::json!({ "problems": problems }).to_string()
            } else {
                format!("{}\n{}, nothing was published", lines(&problems), count(problems.len(), "problem"))
            };
            complain(&text, ExitCode::from(3))
        }
        Err(Failure::Machine(error)) => complain(&format!("sitegen: {}", causes(&error)), ExitCode::FAILURE),
    }
}

/// What a command has to say, and how the stored bytes were found.
enum Done {
    Well(String),
    Damaged(String),
}

fn run(arguments: &Arguments, config: &Config) -> Result<Done, Failure> {
    let json = arguments.json;
    let progress = Progress::new(json);
    match arguments.command.as_ref().unwrap_or(&Command::Publish { wait: false }) {
        Command::Publish { wait } => {
            let report = publish::publish(config, *wait, &progress)?;
            let text = if json { serde_json::to_string(&report)? } else { published(&report) };
            Ok(if report.left_out.is_empty() { Done::Well(text) } else { Done::Damaged(text) })
        }
        Command::Verify { tree } => trees::verify(config, tree.as_deref(), json, &progress),
        Command::Rollback { tree } => trees::rollback(config, tree.as_deref(), json),
        Command::Preview { token } => {
            preview::render(config, token)?;
            Ok(Done::Well(if json { "{}".to_owned() } else { format!("rendered /preview/{token}/") }))
        }
        Command::List => trees::list(config, json),
        Command::Gc => trees::gc(config, json),
        Command::Nginx { out } => {
            let written = nginx::write(config, out)?;
            Ok(Done::Well(if json { serde_json::to_string(&written)? } else { lines(&written) }))
        }
    }
}

fn published(report: &publish::Report) -> String {
    let mut text = String::new();
    if report.imported > 0 {
        text.push_str(&format!("imported {} from content/works\n", count(report.imported, "work")));
    }
    if !report.left_out.is_empty() {
        text.push_str(&format!(
            "{}\nleft out {}\n",
            lines(&report.left_out),
            count(report.left_out.len(), "file")
        ));
    }
    let works = count(report.works, "work");
    match report.changed {
        true => text.push_str(&format!("published {works}, tree {}", short(&report.tree))),
        false => text.push_str(&format!("nothing changed, tree {} with {works} stays", short(&report.tree))),
    }
    text
}

/// The digits by which people name a tree.
fn short(digest: &Digest) -> String {
    digest.to_string()[..12].to_owned()
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn lines<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join("\n")
}

/// An error with its causes, less what an earlier one says already.
fn causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

fn say(text: &str, code: ExitCode) -> ExitCode {
    // A reader who has gone has read enough.
    let _ = writeln!(std::io::stdout(), "{text}");
    code
}

fn complain(text: &str, code: ExitCode) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "{text}");
    code
}
