//! The two examples of every row of the rules table: one must be found, the other must not.

use intake::finding::{Example, Finding, Kind, Rule};
use intake::{document, rules};

fn findings(example: &Example) -> Option<Vec<Finding>> {
    let html = match example.kind {
        Kind::Html => example.text.to_owned(),
        Kind::Script => format!("<script>{}</script>", example.text),
        _ => return None,
    };
    Some(document::check("index.html", html.as_bytes(), policy::limits().work.html_bytes_max).findings)
}

fn has(findings: &[Finding], rule: &Rule) -> bool {
    findings.iter().any(|f| f.rule.id == rule.id)
}

#[test]
fn every_example_is_judged_as_the_table_says() {
    let mut wrong = Vec::new();
    for rule in rules::all() {
        if let Some(found) = findings(&rule.fails)
            && !has(&found, rule)
        {
            wrong.push(format!("{}: not found in {}\n{found:?}", rule.id, rule.fails.text));
        }
        if let Some(found) = findings(&rule.passes) {
            for finding in found {
                wrong.push(format!("{}: the passing example gives\n{finding}", rule.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
