//! What one check of one file carries along: the findings so far, what the work uses, and how much was decoded.
//!
//! Every gate of the HTML side gets it as `&mut`. It bounds the work: a text that was read once is not read again, and
//! decoding stops at the depth and the bytes that policy allows.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use policy::Capability;

use crate::finding::{Finding, Rule};
use crate::rules::document::NESTING;
use crate::source::{Lines, Piece};

/// One check of one file.
#[derive(Debug)]
pub struct Scan<'t> {
    file: &'t str,
    lines: Lines<'t>,
    findings: Vec<Finding>,
    offsets: Vec<usize>,
    counts: BTreeMap<&'static str, usize>,
    places: HashSet<(&'static str, usize)>,
    uses: BTreeMap<Capability, usize>,
    seen: HashSet<u64>,
    decoded_bytes: usize,
    depth: usize,
    /// Whether the canonical `tf.js` stands before the place that is being read.
    pub shim: bool,
    /// Names that the scripts read so far made their own.
    pub declared: BTreeSet<String>,
    /// A range of the file whose texts were read one by one: what was found in it is not repeated for the whole.
    pub already: Option<Range<usize>>,
    /// Files beside the work that it names, in the order in which it names them.
    pub missing: BTreeSet<String>,
}

/// What a check of one file comes to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// In the order of their places.
    pub findings: Vec<Finding>,
    /// The capabilities that the work uses, each with the offset of its first use.
    pub uses: BTreeMap<Capability, (usize, usize)>,
    /// Files beside the work that it names.
    pub missing: BTreeSet<String>,
}

impl<'t> Scan<'t> {
    /// A check of `text`, which the creator knows as `file`.
    pub fn new(file: &'t str, text: &'t str) -> Self {
        Self {
            file,
            lines: Lines::of(text),
            findings: Vec::new(),
            offsets: Vec::new(),
            counts: BTreeMap::new(),
            places: HashSet::new(),
            uses: BTreeMap::new(),
            seen: HashSet::new(),
            decoded_bytes: 0,
            depth: 0,
            shim: false,
            declared: BTreeSet::new(),
            already: None,
            missing: BTreeSet::new(),
        }
    }

    /// Adds a finding about `range` of `piece`.
    pub fn add(
        &mut self,
        rule: &'static Rule,
        piece: &Piece<'_>,
        range: Range<usize>,
        what: impl Into<String>,
    ) {
        let offset = piece.root_offset(range.start);
        let is_repeat = self.already.as_ref().is_some_and(|range| {
            self.findings.iter().zip(&self.offsets).any(|(f, o)| f.rule.id == rule.id && range.contains(o))
        });
        if is_repeat || !self.places.insert((rule.id, offset)) {
            return;
        }
        let count = self.counts.entry(rule.id).or_default();
        *count += 1;
        if *count > policy::limits().check.findings_per_rule_max {
            return;
        }
        let mut what = what.into();
        let decodings = piece.decodings();
        if !decodings.is_empty() {
            what = format!("{what} (in text {})", decodings.join(", then "));
        }
        let place = self.lines.place(offset);
        self.findings.push(Finding::at(rule, self.file, place, piece.excerpt(range), what));
        self.offsets.push(offset);
    }

    /// Notes that the work uses `capability`.
    pub fn uses(&mut self, capability: Capability, piece: &Piece<'_>, offset: usize) {
        self.uses.entry(capability).or_insert_with(|| piece.root_offset(offset));
    }

    /// Whether `text` may be read as another layer: not read before, and within the bounds of policy. The caller reads
    /// it between this and [`Scan::leave`].
    pub fn enter(&mut self, piece: &Piece<'_>, at: usize, text: &str, reader: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        (reader, self.shim).hash(&mut hasher);
        text.hash(&mut hasher);
        if !self.seen.insert(hasher.finish()) {
            return false;
        }
        let limits = &policy::limits().check;
        let spent = self.decoded_bytes.saturating_add(text.len());
        if self.depth >= limits.decode_depth_max || spent > limits.decoded_bytes_max {
            self.add(&NESTING, piece, at..at, "text inside text inside text, deeper than the check reads");
            return false;
        }
        self.decoded_bytes = spent;
        self.depth += 1;
        true
    }

    /// Whether the text that is being read is the file itself and no text inside it.
    pub fn is_outermost(&self) -> bool {
        self.depth == 0
    }

    /// Ends what [`Scan::enter`] began.
    pub fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// The result, sorted by place.
    pub fn finish(mut self) -> Outcome {
        let max = policy::limits().check.findings_per_rule_max;
        for (rule, count) in &self.counts {
            if *count > max
                && let Some(last) = self.findings.iter_mut().rfind(|f| f.rule.id == *rule)
            {
                last.what = format!("{}; and {} more of this kind", last.what, count - max);
            }
        }
        self.findings.sort_by(|a, b| (a.line, a.column, a.rule.id).cmp(&(b.line, b.column, b.rule.id)));
        let uses = self.uses.iter().map(|(c, offset)| (*c, self.lines.place(*offset))).collect();
        Outcome { findings: self.findings, uses, missing: self.missing }
    }
}
