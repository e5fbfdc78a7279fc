//! The gate for scripts: oxc parses them and resolves their names, then every node is judged by what it means.
//!
//! | file | what it does |
//! |---|---|
//! | `depth` | bounds the parser's stack before it runs |
//! | `values` | what an expression can be: a text, a number, a function, or a thing of the browser |
//! | `names` | THE table of the browser's things and what each means here |
//! | `judge` | walks over the nodes |
//! | `sinks` | calls and assignments that load, navigate or make code |
//! | `text` | the texts inside scripts, read as what they look like |
//! | `packer` | the marks that packers and obfuscators leave |
//!
//! A name counts only where it means the browser's thing: a variable of that name is the work's own. Values are
//! followed as far as constants go; what no static rule can see is said on the security page.

use oxc_allocator::Allocator;
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;

use crate::rules::document::{NESTING, SYNTAX};
use crate::scan::Scan;
use crate::source::Piece;

mod depth;
mod judge;
mod names;
mod packer;
mod sinks;
pub(crate) mod text;
mod values;

/// How a script is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A classic script.
    Script,
    /// `type=module`.
    Module,
    /// The body of an event handler, or of a `javascript:` address.
    Handler,
}

impl Form {
    fn source_type(self) -> SourceType {
        match self {
            Self::Module => SourceType::mjs(),
            Self::Script | Self::Handler => SourceType::script(),
        }
    }
}

/// Reads `piece` as a script and adds what it finds.
pub fn scan(scan: &mut Scan<'_>, piece: &Piece<'_>, form: Form) {
    if piece.text.trim().is_empty() {
        return;
    }
    if !depth::fits(&piece.text, policy::limits().check.script_stack_bytes_max) {
        scan.add(&NESTING, piece, 0..0, "a script nested too deep for any parser: it was not read");
        return;
    }
    packer::lines(scan, piece);
    let allocator = Allocator::default();
    let options =
        ParseOptions { allow_return_outside_function: form == Form::Handler, ..ParseOptions::default() };
    let parsed = Parser::new(&allocator, &piece.text, form.source_type()).with_options(options).parse();
    if let Some(error) = parsed.diagnostics.iter().next().filter(|_| scan.is_outermost()) {
        let at = error.labels.iter().next().map_or(0, |l| l.offset() as usize);
        let end = at + piece.text.get(at..).map_or(0, |rest| rest.chars().take(40).map(char::len_utf8).sum());
        scan.add(&SYNTAX, piece, at..end, format!("this script cannot be parsed: {}", error.message));
    }
    if parsed.panicked {
        packer::judge(scan, piece);
        return;
    }
    let semantic = SemanticBuilder::new().with_build_nodes(true).build(&parsed.program).semantic;
    judge::scan(scan, piece, &semantic, form);
}

/// Reads `piece` as a script if it parses as one that does something.
pub fn scan_if_script(scan: &mut Scan<'_>, piece: &Piece<'_>) {
    let text = piece.text.trim();
    let looks_like_code = text.len() >= 3 && text.contains(['(', '=', '.', '`', '[']);
    if !looks_like_code || !depth::fits(text, policy::limits().check.script_stack_bytes_max) {
        return;
    }
    let allocator = Allocator::default();
    let parses = Parser::new(&allocator, text, SourceType::script()).parse().diagnostics.is_empty();
    drop(allocator);
    if parses {
        self::scan(scan, piece, Form::Script);
    }
}
