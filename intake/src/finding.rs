//! What a gate says about a work: one [`Finding`] for every problem, wherever it was found.
//!
//! Every gate makes them, the command line and the server print them, the site's rules page lists what they can be.
//! A finding never stops a gate: all of a stage are reported together. It borrows its words from the rules table and
//! adds what only this place can say: where, which text, and what exactly is wrong with it.

use std::fmt;

use serde::{Serialize, Serializer};

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// For the moderator's eyes; nothing to mend.
    Note,
    /// Rejects the work unless its sidecar says why it is there.
    Explainable,
    /// Rejects the work.
    Reject,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Explainable => "explain or mend",
            Self::Reject => "reject",
        })
    }
}

/// What a rule protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each variant is the category that `title` puts into words")]
pub enum Category {
    Network,
    DynamicEval,
    EncodedPayload,
    Obfuscation,
    ParentDom,
    Storage,
    Forms,
    Navigation,
    SelfContained,
    Document,
    Capability,
    Archive,
    Sidecar,
    Python,
    Play,
}

impl Category {
    /// Every category, in the order in which pages list them.
    pub const ALL: [Self; 15] = [
        Self::Network,
        Self::DynamicEval,
        Self::EncodedPayload,
        Self::Obfuscation,
        Self::ParentDom,
        Self::Storage,
        Self::Forms,
        Self::Navigation,
        Self::SelfContained,
        Self::Document,
        Self::Capability,
        Self::Archive,
        Self::Sidecar,
        Self::Python,
        Self::Play,
    ];

    /// The heading of the category.
    pub fn title(self) -> &'static str {
        match self {
            Self::Network => "Network egress",
            Self::DynamicEval => "Dynamic evaluation",
            Self::EncodedPayload => "Encoded payloads",
            Self::Obfuscation => "Obfuscation",
            Self::ParentDom => "The page around the work",
            Self::Storage => "Browser storage",
            Self::Forms => "Forms",
            Self::Navigation => "Navigation",
            Self::SelfContained => "Not self-contained",
            Self::Document => "The file itself",
            Self::Capability => "Capabilities",
            Self::Archive => "The zip",
            Self::Sidecar => "The sidecar",
            Self::Python => "The Python function",
            Self::Play => "The smoke run",
        }
    }

    /// Whether no explanation in a sidecar can turn a finding of this category into a note.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Network | Self::DynamicEval | Self::ParentDom | Self::Navigation)
    }
}

/// One row of the rules table.
#[derive(Debug, Serialize)]
pub struct Rule {
    /// The name that findings, explanations and links use; it never changes its meaning.
    pub id: &'static str,
    /// What it protects.
    pub category: Category,
    /// How much a finding of it weighs.
    pub severity: Severity,
    /// What it looks for, in one line.
    pub title: &'static str,
    /// Why that matters here.
    pub why: &'static str,
    /// What to do about it.
    pub fix: &'static str,
    /// The smallest thing that it finds.
    pub fails: Example,
    /// The nearest thing that it leaves alone.
    pub passes: Example,
}

/// A sample of input: what a rules page shows and the tests run.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Example {
    /// What the text is.
    pub kind: Kind,
    /// The text.
    pub text: &'static str,
}

/// What an [`Example`] is a sample of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A whole HTML file.
    Html,
    /// A script inside one.
    Script,
    /// A sidecar, beside a work that does nothing.
    Sidecar,
    /// A sidecar, a line of dashes, and the HTML beside it.
    Pair,
    /// A Python function.
    Python,
    /// The entries of a zip, one a line; what stands in brackets after a name says how the entry is made.
    Zip,
    /// In words: what the rule is about cannot be shown as text. Its own test makes the bytes.
    Words,
}

/// A problem of the input.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// The rule that found it.
    #[serde(flatten, serialize_with = "rule_fields")]
    pub rule: &'static Rule,
    /// How much it weighs here: an explanation makes a note of an explainable one.
    pub severity: Severity,
    /// The file as the creator named it.
    pub file: String,
    /// 1 for the first line; 0 when the finding is about the file as a whole.
    pub line: usize,
    /// 1 for the first character of the line.
    pub column: usize,
    /// What stands there, shortened.
    pub excerpt: String,
    /// What is wrong in this very place.
    pub what: String,
    /// What the sidecar says about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
}

#[derive(Serialize)]
struct RuleFields {
    rule: &'static str,
    category: Category,
    why: &'static str,
    fix: &'static str,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn rule_fields<S: Serializer>(rule: &&'static Rule, serializer: S) -> Result<S::Ok, S::Error> {
    RuleFields { rule: rule.id, category: rule.category, why: rule.why, fix: rule.fix }.serialize(serializer)
}

impl Finding {
    /// A finding about a file as a whole.
    pub fn whole(rule: &'static Rule, file: &str, what: impl Into<String>) -> Self {
        Self::at(rule, file, (0, 0), String::new(), what)
    }

    /// A finding about one place of a file, given as line and column.
    pub fn at(
        rule: &'static Rule,
        file: &str,
        (line, column): (usize, usize),
        excerpt: String,
        what: impl Into<String>,
    ) -> Self {
        Self {
            rule,
            severity: rule.severity,
            file: file.to_owned(),
            line,
            column,
            excerpt,
            what: what.into(),
            explanation: None,
        }
    }

    /// `file:line:column`, or the file alone.
    pub fn place(&self) -> String {
        if self.line == 0 {
            self.file.clone()
        } else {
            format!("{}:{}:{}", self.file, self.line, self.column)
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} [{}]: {}", self.place(), self.severity, self.rule.id, self.what)?;
        if !self.excerpt.is_empty() {
            writeln!(f, "    | {}", self.excerpt)?;
        }
        if let Some(explanation) = &self.explanation {
            return writeln!(f, "    explained: {explanation}");
        }
        if self.severity > Severity::Note {
            writeln!(f, "    why: {}", self.rule.why)?;
            writeln!(f, "    fix: {}", self.rule.fix)?;
        }
        if self.severity == Severity::Explainable {
            writeln!(f, "    or say why in the sidecar: \"explain\": {{ \"{}\": \"…\" }}", self.rule.id)?;
        }
        Ok(())
    }
}
