//! The table as the site's page `/rules.html`: `intake rules --markdown` prints it, `content/pages/rules.md` holds it, and
//! a test keeps the two equal. sitegen renders that file like any other page and knows nothing of rules.

use super::all;
use crate::finding::{Category, Example, Kind, Rule, Severity};

/// The day on which the table last changed, as the page shows it.
const UPDATED: &str = "2026-11-30";
/// What the public recipe is, beside the command that is run.
const RECIPE: &str = "bandit -r submission.py -lll -f json";

/// The whole page, front matter first.
pub fn page() -> String {
    let mut text = format!(
        "+++\ntitle = \"The rules\"\nsummary = \"What the checks look for in a submission, why, how to mend it, and an example \
         each way.\"\nupdated = \"{UPDATED}\"\n+++\n\n{{% raw -%}}\n{}",
        intro()
    );
    for category in Category::ALL {
        let rules: Vec<&Rule> = all().into_iter().filter(|r| r.category == category).collect();
        if rules.is_empty() {
            continue;
        }
        text.push_str(&format!("\n## {}\n", plain(category.title())));
        if category == Category::Python {
            text.push_str(&bandit());
        }
        for rule in rules {
            text.push_str(&row(rule));
        }
    }
    text.push_str("\n{%- endraw %}\n");
    text
}

fn intro() -> String {
    format!(
        "The server reads every submission with these {} rules before a person does, and `intake check` is the same program on \
         your own machine: same bytes, same findings. What you read here is printed by it (`intake rules --markdown`).\n\n\
         - **reject**: has to be mended.\n\
         - **explainable**: mend it, or say in the sidecar why it has to be so: `\"explain\": {{\"the-rule\": \"the reason\"}}`. \
         A moderator then decides.\n\
         - **note**: nothing to do; it is told to the moderator.\n",
        all().len()
    )
}

/// The command that counts, beside the one that is published everywhere.
fn bandit() -> String {
    let asked = &policy::lint().bandit;
    let skipped = asked.skip.join(", ");
    format!(
        "\nAfter the rules of this section bandit {} reads the file, once, with exactly this command:\n\n\
         ```sh\nbandit {} < submission.py\n```\n\n\
         The public recipe is milder, so a file can pass it and still be rejected:\n\n\
         ```sh\n{RECIPE}\n```\n\n\
         - `-lll` shows findings of high severity only. The server counts every severity.\n\
         - `--ignore-nosec`: a comment `# nosec` silences the recipe, and not the server.\n\
         - `-s {skipped}`: the server leaves out {skipped}, the warning about `random`, because dice are not cryptography. Here \
         it is the server that is milder.\n\
         - `-r` and the file's name, or `-` and the file on standard input: both read the same text.\n\
         - Only release {} counts. If it is missing, crashes or takes longer than {} seconds, the work waits; it never passes \
         that way.\n",
        asked.version,
        asked.arguments().join(" "),
        asked.version,
        asked.seconds_max,
    )
}

fn row(rule: &Rule) -> String {
    let meaning = match rule.severity {
        Severity::Reject => "reject",
        Severity::Explainable => "explainable",
        Severity::Note => "note",
    };
    format!(
        "\n### {}\n\n`{}`, {meaning}\n\n{} **To mend it:** {}\n\nFound in:\n\n{}\nLeft alone:\n\n{}",
        plain(rule.title),
        rule.id,
        plain(rule.why),
        plain(rule.fix),
        example(&rule.fails),
        example(&rule.passes)
    )
}

/// An example as a block of code, or as words where it is none.
fn example(example: &Example) -> String {
    let language = match example.kind {
        Kind::Words => return format!("{}.\n", plain(example.text)),
        Kind::Html => "html",
        Kind::Script => "js",
        Kind::Python => "python",
        Kind::Sidecar => "json",
        Kind::Pair | Kind::Zip => "text",
    };
    let fence = if example.text.contains("```") { "````" } else { "```" };
    // What nobody could see on a page is written as its number.
    let visible: String = example
        .text
        .chars()
        .map(|c| if shows(c) { c.to_string() } else { format!("<U+{:04X}>", u32::from(c)) })
        .collect();
    format!("{fence}{language}\n{}\n{fence}\n", visible.trim_end_matches('\n'))
}

fn shows(c: char) -> bool {
    c == '\n' || c == '\t' || !(c.is_control() || crate::source::is_invisible(c))
}

/// Words in which nothing means anything to Markdown.
fn plain(text: &str) -> String {
    let special = |c: char| "\\`*_{}[]<>#&|~".contains(c);
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `UPDATE=1 cargo test -p intake rules` writes the file.
    #[test]
    fn the_committed_page_is_the_table() {
        let place = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../content/pages/rules.md");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&place, page()).unwrap();
        }
        let committed = std::fs::read_to_string(&place).unwrap_or_default();
        assert!(committed == page(), "{} is not the table; UPDATE=1 writes it", place.display());
    }

    #[test]
    fn the_page_has_every_rule_and_the_command_that_is_run() {
        let page = page();
        for rule in all() {
            assert!(page.contains(&format!("\n`{}`, ", rule.id)), "{}", rule.id);
        }
        let command = format!("\nbandit {} < submission.py\n", policy::lint().bandit.arguments().join(" "));
        assert!(page.contains(&command) && page.contains(RECIPE));
        assert_eq!(page.matches("{% raw").count(), 1);
        assert!(!page.trim_end_matches("{%- endraw %}\n").contains("endraw"));
    }

    #[test]
    fn words_stay_words() {
        assert_eq!(plain("a <b> `c` *d*"), "a \\<b\\> \\`c\\` \\*d\\*");
    }
}
