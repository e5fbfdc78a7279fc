//! The gate for style sheets: everything in CSS that loads something.
//!
//! cssparser tokenizes; the meaning of a property does not matter, since an address is an address wherever it stands.
//! `intake pack` walks over the same addresses to put files in their places.

use std::ops::Range;

use cssparser::{ParseError, Parser, Token};

use crate::html;
use crate::rules::document::NESTING;
use crate::scan::Scan;
use crate::source::{Map, Piece};

/// Functions whose first words are addresses.
const LOADERS: [&str; 7] =
    ["url", "src", "image-set", "-webkit-image-set", "image", "cross-fade", "-webkit-cross-fade"];

/// Something that a walk comes by.
#[derive(Debug)]
pub(crate) enum Found {
    /// An address: where its token stands, what it says, and where the `@import` begins that it belongs to.
    Address { token: Range<usize>, address: String, import_at: Option<usize> },
    /// A block nested too deep; what is inside is not walked over.
    TooDeep(usize),
}

/// Reads a style sheet.
pub fn scan(scan: &mut Scan<'_>, piece: &Piece<'_>) {
    walk(&piece.text, &mut |found| match found {
        Found::Address { token, address, .. } => loaded(scan, piece, token, &address),
        Found::TooDeep(at) => {
            scan.add(&NESTING, piece, at..at, "style rules nested too deep: what is inside was not read");
        }
    });
}

/// Reads the declarations of a `style` attribute.
pub fn scan_declarations(scan: &mut Scan<'_>, piece: &Piece<'_>) {
    self::scan(scan, piece);
}

/// Tells `found` everything that is loaded, in its order.
pub(crate) fn walk(text: &str, found: &mut dyn FnMut(Found)) {
    block(&mut Parser::new(text), Place { depth: 0, loads: false }, found);
}

#[derive(Clone, Copy)]
struct Place {
    depth: usize,
    loads: bool,
}

fn block(parser: &mut Parser<'_>, place: Place, found: &mut dyn FnMut(Found)) {
    if place.depth > policy::limits().check.css_depth_max {
        return found(Found::TooDeep(parser.position().byte_index()));
    }
    let mut rule = String::new();
    let mut rule_at = 0;
    loop {
        let start = parser.position().byte_index();
        let Ok(token) = parser.next_including_whitespace_and_comments() else { break };
        let address = match token {
            Token::UnquotedUrl(address) if rule != "namespace" => Some(address.to_string()),
            Token::QuotedString(address) if place.loads || rule == "import" => Some(address.to_string()),
            _ => None,
        };
        let inner = match token {
            Token::AtKeyword(name) => {
                rule = name.to_ascii_lowercase();
                rule_at = start;
                None
            }
            Token::Semicolon => {
                rule.clear();
                None
            }
            Token::Function(name) => {
                let loads = rule != "namespace" && LOADERS.iter().any(|l| name.eq_ignore_ascii_case(l));
                Some(Place { depth: place.depth + 1, loads })
            }
            Token::CurlyBracketBlock => {
                rule.clear();
                Some(Place { depth: place.depth + 1, loads: false })
            }
            Token::ParenthesisBlock | Token::SquareBracketBlock => {
                Some(Place { depth: place.depth + 1, loads: place.loads })
            }
            _ => None,
        };
        let import_at = (rule == "import").then_some(rule_at);
        if let Some(address) = address {
            found(Found::Address { token: start..parser.position().byte_index(), address, import_at });
        }
        if let Some(inner) = inner {
            let _ = parser.parse_nested_block(|nested| -> Result<(), ParseError<()>> {
                block(nested, inner, &mut |inside| {
                    found(match inside {
                        Found::Address { token, address, import_at: None } => {
                            Found::Address { token, address, import_at }
                        }
                        other => other,
                    });
                });
                Ok(())
            });
        }
    }
}

fn loaded(scan: &mut Scan<'_>, piece: &Piece<'_>, token: Range<usize>, address: &str) {
    let source = piece.text.get(token.clone()).unwrap_or_default();
    match source.find(address) {
        Some(at) => {
            let at = token.start + at;
            html::resource(scan, &Piece::slice(piece, at..at + address.len()), "style");
        }
        None => {
            let map = Map::Point(token.start);
            html::resource(scan, &Piece::derived(piece, address.to_owned(), map, None), "style");
        }
    }
}
