//! Constant folding: what JavaScript's own functions make of constants, as far as people hide names with them.

use std::rc::Rc;

use super::Val;
use crate::data;
use crate::js::names;

/// The longest text that `repeat` makes here.
const TEXT_REPEATED: usize = 1 << 16;

/// The text that a value becomes as a key or in a sum.
pub(super) fn to_text(value: &Val) -> Option<String> {
    match value {
        Val::Text(text) => Some(text.to_string()),
        Val::Number(number) => Some(number_text(*number)),
        Val::List(items) => Some(items.iter().map(to_text).collect::<Option<Vec<_>>>()?.join(",")),
        Val::Unknown | Val::Start(_) | Val::Code | Val::Record(_) | Val::Thing(_) => None,
    }
}

fn number_text(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 { format!("{number:.0}") } else { number.to_string() }
}

/// A number as an index, if it is one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked first")]
fn index(number: f64) -> Option<usize> {
    ((0.0..1e9).contains(&number) && number.fract() == 0.0).then_some(number as usize)
}

/// `value.name`.
pub(super) fn member(value: &Val, name: &str) -> Val {
    match (value, name) {
        (Val::Code, "constructor") => Val::Thing("Function".into()),
        (Val::Code | Val::Unknown, "call" | "apply" | "bind") => Val::Code,
        (Val::Thing(path), "constructor") if names::is_function(path) => Val::Thing("Function".into()),
        (Val::Thing(path), name) => Val::Thing(names::join(path, name)),
        (Val::Code, "__proto__") => Val::Code,
        (Val::Record(members), name) => members
            .iter()
            .rev()
            .find(|(key, _)| **key == *name)
            .map_or(Val::Unknown, |(_, value)| value.clone()),
        (Val::Unknown, "ownerDocument") => Val::Thing("document".into()),
        (Val::Unknown, "defaultView" | "contentWindow") => Val::Thing("".into()),
        (Val::Unknown, "constructor") => Val::Thing("?.constructor".into()),
        (Val::Text(text), name) => match name.parse::<usize>() {
            Ok(at) => text.chars().nth(at).map_or(Val::Unknown, |c| Val::Text(c.to_string().into())),
            Err(_) if name == "length" => Val::Unknown,
            Err(_) => Val::Code,
        },
        (Val::List(items), name) => match name.parse::<usize>() {
            Ok(at) => items.get(at).cloned().unwrap_or(Val::Unknown),
            Err(_) if name == "length" => Val::Unknown,
            Err(_) => Val::Code,
        },
        (Val::Number(_), _) => Val::Code,
        _ => Val::Unknown,
    }
}

/// What a function of the browser makes of constants.
pub(super) fn call_thing(path: &str, arguments: &[Val]) -> Option<Val> {
    let first = arguments.first().and_then(to_text);
    match path {
        "String.fromCharCode" | "String.fromCodePoint" => {
            let codes = arguments.iter().map(|a| match a {
                Val::Number(n) => index(*n).and_then(|n| u32::try_from(n).ok()).and_then(char::from_u32),
                _ => None,
            });
            Some(Val::Text(codes.collect::<Option<String>>()?.into()))
        }
        "String.fromCharCode.apply" | "String.fromCodePoint.apply" => match arguments.get(1)? {
            Val::List(items) => call_thing("String.fromCharCode", items),
            _ => None,
        },
        "atob" => {
            let bytes = data::base64(&first?)?;
            let text = String::from_utf8(bytes)
                .unwrap_or_else(|e| e.into_bytes().iter().map(|b| char::from(*b)).collect());
            Some(Val::Text(text.into()))
        }
        "unescape" | "decodeURIComponent" | "decodeURI" => {
            let bytes = data::percent(&unescape_wide(&first?));
            Some(Val::Text(String::from_utf8_lossy(&bytes).into()))
        }
        "String" => Some(Val::Text(first?.into())),
        "parseInt" | "Number" => first?.trim().parse().ok().map(Val::Number),
        "Object.getPrototypeOf" | "Reflect.getPrototypeOf" => {
            Some(if arguments.first() == Some(&Val::Code) { Val::Code } else { Val::Unknown })
        }
        "Object" => arguments.first().filter(|a| matches!(a, Val::Thing(_) | Val::Code)).cloned(),
        _ => None,
    }
}

/// `%u0041`, which only `unescape` knows.
fn unescape_wide(text: &str) -> String {
    let mut parts = text.split("%u");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..4).and_then(|h| u32::from_str_radix(h, 16).ok()).and_then(char::from_u32);
        match code {
            Some(c) => {
                out.push(c);
                out.push_str(&part[4..]);
            }
            None => {
                out.push_str("%u");
                out.push_str(part);
            }
        }
    }
    out
}

/// What a method of a text, a number or a list makes of constants.
pub(super) fn call_method(object: &Val, name: &str, arguments: &[Val]) -> Option<Val> {
    match object {
        Val::Text(text) => call_text(text, name, arguments),
        Val::List(items) => call_list(items, name, arguments),
        Val::Number(number) if name == "toString" => {
            let Some(Val::Number(radix)) = arguments.first() else {
                return Some(Val::Text(number_text(*number).into()));
            };
            radix_text(index(*number)?, index(*radix)?)
        }
        Val::Start(text) if matches!(name, "trim" | "trimStart" | "toString" | "concat") => {
            Some(Val::Start(text.clone()))
        }
        _ => None,
    }
}

fn radix_text(mut number: usize, radix: usize) -> Option<Val> {
    if !(2..=36).contains(&radix) {
        return None;
    }
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(u32::try_from(number % radix).ok()?, u32::try_from(radix).ok()?)?);
        number /= radix;
        if number == 0 {
            break;
        }
    }
    Some(Val::Text(digits.into_iter().rev().collect::<String>().into()))
}

fn call_text(text: &Rc<str>, name: &str, arguments: &[Val]) -> Option<Val> {
    let first = arguments.first();
    let word = first.and_then(to_text);
    let made = |text: String| Some(Val::Text(text.into()));
    match name {
        "toString" | "valueOf" => Some(Val::Text(text.clone())),
        "trim" => made(text.trim().to_owned()),
        "toLowerCase" => made(text.to_lowercase()),
        "toUpperCase" => made(text.to_uppercase()),
        "concat" => {
            let rest: Option<Vec<_>> = arguments.iter().map(to_text).collect();
            made(format!("{text}{}", rest?.concat()))
        }
        "split" => {
            let items: Vec<Val> = match word?.as_str() {
                "" => text.chars().map(|c| Val::Text(c.to_string().into())).collect(),
                by => text.split(by).map(|s| Val::Text(s.into())).collect(),
            };
            (items.len() <= 4_096).then(|| Val::List(items.into()))
        }
        "replace" | "replaceAll" => {
            let with = arguments.get(1).and_then(to_text)?;
            let count = if name == "replace" { 1 } else { usize::MAX };
            made(text.replacen(&word?, &with, count))
        }
        "charAt" | "at" => {
            let at = match first {
                Some(Val::Number(n)) => index(*n)?,
                _ => 0,
            };
            made(text.chars().nth(at).map(String::from).unwrap_or_default())
        }
        "slice" | "substring" | "substr" => {
            let chars: Vec<char> = text.chars().collect();
            let (start, end) = bounds(name, arguments, chars.len())?;
            made(chars.get(start..end.max(start))?.iter().collect())
        }
        "repeat" => match first {
            Some(Val::Number(n)) if index(*n)? * text.len() < TEXT_REPEATED => made(text.repeat(index(*n)?)),
            _ => None,
        },
        _ => None,
    }
}

fn bounds(name: &str, arguments: &[Val], length: usize) -> Option<(usize, usize)> {
    let at = |position: usize, default: usize| match arguments.get(position) {
        Some(Val::Number(n)) if *n < 0.0 => Some(length.saturating_sub(index(-*n)?)),
        Some(Val::Number(n)) => Some(index(*n)?.min(length)),
        Some(_) => None,
        None => Some(default),
    };
    let start = at(0, 0)?;
    let end = match (name, arguments.get(1)) {
        ("substr", Some(Val::Number(n))) => start.saturating_add(index(*n)?).min(length),
        _ => at(1, length)?,
    };
    Some((start, end))
}

fn call_list(items: &Rc<[Val]>, name: &str, arguments: &[Val]) -> Option<Val> {
    match name {
        "join" => {
            let by = arguments.first().map_or(Some(",".to_owned()), to_text)?;
            let texts: Option<Vec<_>> = items.iter().map(to_text).collect();
            Some(Val::Text(texts?.join(&by).into()))
        }
        "reverse" => Some(Val::List(items.iter().rev().cloned().collect())),
        "toString" => to_text(&Val::List(items.clone())).map(|t| Val::Text(t.into())),
        "concat" => {
            let mut all = items.to_vec();
            for argument in arguments {
                match argument {
                    Val::List(more) => all.extend(more.iter().cloned()),
                    other => all.push(other.clone()),
                }
            }
            (all.len() <= 4_096).then(|| Val::List(all.into()))
        }
        "slice" => {
            let (start, end) = bounds("slice", arguments, items.len())?;
            Some(Val::List(items.get(start..end.max(start))?.into()))
        }
        _ => None,
    }
}
