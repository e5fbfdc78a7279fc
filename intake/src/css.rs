//! The gate for style sheets: everything in CSS that loads something.
//!
//! cssparser tokenizes; the meaning of a property does not matter, since an address is an address wherever it stands.

use cssparser::{ParseError, Parser, Token};

use crate::html;
use crate::rules::document::NESTING;
use crate::scan::Scan;
use crate::source::Piece;

/// Functions whose first words are addresses.
const LOADERS: [&str; 7] =
    ["url", "src", "image-set", "-webkit-image-set", "image", "cross-fade", "-webkit-cross-fade"];

/// Reads a style sheet.
pub fn scan(scan: &mut Scan<'_>, piece: &Piece<'_>) {
    let mut parser = Parser::new(&piece.text);
    block(scan, piece, &mut parser, &Place { depth: 0, loads: false });
}

/// Reads the declarations of a `style` attribute.
pub fn scan_declarations(scan: &mut Scan<'_>, piece: &Piece<'_>) {
    self::scan(scan, piece);
}

struct Place {
    depth: usize,
    loads: bool,
}

fn block(scan: &mut Scan<'_>, piece: &Piece<'_>, parser: &mut Parser<'_>, place: &Place) {
    if place.depth > policy::limits().check.css_depth_max {
        let at = parser.position().byte_index();
        scan.add(&NESTING, piece, at..at, "style rules nested too deep: what is inside was not read");
        return;
    }
    let mut rule = String::new();
    loop {
        let start = parser.position().byte_index();
        let Ok(token) = parser.next_including_whitespace_and_comments() else { break };
        let inner = match token {
            Token::UnquotedUrl(address) => {
                if rule != "namespace" {
                    let address = address.to_string();
                    loaded(scan, piece, start, parser.position().byte_index(), &address);
                }
                continue;
            }
            Token::QuotedString(address) => {
                if place.loads || rule == "import" {
                    let address = address.to_string();
                    loaded(scan, piece, start, parser.position().byte_index(), &address);
                }
                continue;
            }
            Token::AtKeyword(name) => {
                rule = name.to_ascii_lowercase();
                continue;
            }
            Token::Semicolon => {
                rule.clear();
                continue;
            }
            Token::Function(name) => {
                let loads = rule != "namespace" && LOADERS.iter().any(|l| name.eq_ignore_ascii_case(l));
                Place { depth: place.depth + 1, loads }
            }
            Token::CurlyBracketBlock => {
                rule.clear();
                Place { depth: place.depth + 1, loads: false }
            }
            Token::ParenthesisBlock | Token::SquareBracketBlock => {
                Place { depth: place.depth + 1, loads: place.loads }
            }
            _ => continue,
        };
        let _ = parser.parse_nested_block(|nested| -> Result<(), ParseError<()>> {
            block(scan, piece, nested, &inner);
            Ok(())
        });
    }
}

fn loaded(scan: &mut Scan<'_>, piece: &Piece<'_>, start: usize, end: usize, address: &str) {
    let source = piece.text.get(start..end).unwrap_or_default();
    match source.find(address) {
        Some(at) => {
            html::resource(scan, &Piece::slice(piece, start + at..start + at + address.len()), "style")
        }
        None => {
            let map = crate::source::Map::Point(start);
            html::resource(scan, &Piece::derived(piece, address.to_owned(), map, None), "style");
        }
    }
}
