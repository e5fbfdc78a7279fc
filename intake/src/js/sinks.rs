//! Calls and assignments that load something, navigate, or make code from text.

use std::rc::Rc;

use oxc_ast::ast::{AssignmentExpression, CallExpression, Expression, MemberExpression, NewExpression};
use oxc_span::Span;
use policy::Capability;

use super::Form;
use super::judge::{Judge, range};
use super::names;
use super::values::Val;
use crate::address::{Address, classify, normalise};
use crate::html;
use crate::rules::code::{COMPUTED, FUNCTION, HANDLER, REFLECT, SCRIPT_ELEMENT, SCRIPT_URL, TIMER, WRITE};
use crate::rules::network::{FRAME, HINT, LOAD};
use crate::rules::page::{LINK, LOCATION, NUISANCE, SECRET, SEND, SUBMIT, WINDOW};
use crate::source::{Map, Piece};

/// Judges a call.
pub(super) fn call<'a>(judge: &mut Judge<'_, '_, 'a, '_, '_>, call: &'a CallExpression<'a>) {
    let callee = call.callee.get_inner_expression();
    if let Some(member) = callee.as_member_expression()
        && let Some(name) = judge.values.member_name(member)
    {
        method(judge, call, member, &name);
    }
    let paths = judge.values.things(callee);
    if paths.is_empty() {
        return;
    }
    let arguments = judge.values.arguments(&call.arguments);
    for path in paths {
        let (path, arguments) = match path.strip_suffix(".call") {
            Some(function) => (Rc::from(function), arguments.get(1..).unwrap_or_default()),
            None => (path, arguments.as_slice()),
        };
        called(judge, call, &path, arguments);
    }
}

/// Judges a call of the thing at `path`.
fn called<'a>(
    judge: &mut Judge<'_, '_, 'a, '_, '_>,
    call: &'a CallExpression<'a>,
    path: &Rc<str>,
    arguments: &[Val],
) {
    let first = arguments.first();
    let span = call.span;
    match &**path {
        "setTimeout" | "setInterval" | "setImmediate"
            if matches!(first, Some(Val::Text(_) | Val::Start(_))) =>
        {
            judge.add(&TIMER, span, format!("{path} is given text to run"));
        }
        "document.write" | "document.writeln"
            if !arguments.iter().all(|a| matches!(a, Val::Text(_))) || arguments.is_empty() =>
        {
            judge.add(&WRITE, span, format!("{path} with text that is not constant"));
        }
        "Object.getOwnPropertyNames"
        | "Object.getOwnPropertyDescriptors"
        | "Object.keys"
        | "Object.entries"
        | "Object.values"
        | "Object.getOwnPropertySymbols"
        | "Reflect.ownKeys"
            if is_window(first) =>
        {
            judge.add(&REFLECT, span, format!("{path} of the window"));
        }
        "Reflect.get" | "Object.getOwnPropertyDescriptor" => looked_up(judge, call, arguments),
        "Object.assign" | "Reflect.set" | "Object.defineProperty" | "Object.defineProperties" => {
            let is_location = matches!(first, Some(Val::Thing(p)) if &**p == "location");
            let names_location = matches!(arguments.get(1), Some(Val::Text(t)) if &**t == "location");
            if is_location || (is_window(first) && names_location) {
                judge.add(&LOCATION, span, "the address of the page is written to");
            }
        }
        path if path.ends_with(".constructor") && arguments.iter().any(is_code) => {
            judge.add(&FUNCTION, span, "a constructor that is given code as text");
        }
        "document.createElement" | "document.createElementNS" => {
            if let Some(Val::Text(tag)) = arguments.get(usize::from(path.ends_with("NS"))) {
                element(judge, span, tag);
            }
        }
        "addEventListener" if matches!(first, Some(Val::Text(t)) if &**t == "beforeunload") => {
            judge.add(&NUISANCE, span, "asks before the page is left");
        }
        "Reflect.apply" | "Reflect.construct" => {
            if let Some(Val::Thing(function)) = first {
                let rest = match arguments.get(if path.ends_with("apply") { 2 } else { 1 }) {
                    Some(Val::List(items)) => items.to_vec(),
                    _ => Vec::new(),
                };
                called(judge, call, function, &rest);
            }
        }
        other => {
            let is_submit = other.ends_with(".submit") || other.ends_with(".requestSubmit");
            if is_submit && (other.starts_with("document.") || other.starts_with("HTMLFormElement.")) {
                judge.add(&SUBMIT, span, "a form is submitted by the script");
            }
        }
    }
}

fn is_window(value: Option<&Val>) -> bool {
    matches!(value, Some(Val::Thing(path)) if path.is_empty())
}

fn is_code(value: &Val) -> bool {
    matches!(value, Val::Text(t) if t.contains(['(', '=', ';', '.']) || t.starts_with("return"))
}

fn looked_up<'a>(judge: &mut Judge<'_, '_, 'a, '_, '_>, call: &'a CallExpression<'a>, arguments: &[Val]) {
    let Some(Val::Thing(path)) = arguments.first() else { return };
    match arguments.get(1) {
        Some(Val::Text(name)) => judge.mention(&names::join(path, name), call.span, call.node_id.get()),
        Some(Val::Number(_)) => {}
        _ if names::is_sensitive(path) => {
            judge.add(&COMPUTED, call.span, "a member whose name is not known before it runs");
        }
        _ => {}
    }
}

/// Judges a method by its name, whatever it is called on.
fn method<'a>(
    judge: &mut Judge<'_, '_, 'a, '_, '_>,
    call: &'a CallExpression<'a>,
    _: &'a MemberExpression<'a>,
    name: &str,
) {
    let argument = |index: usize| call.arguments.get(index).and_then(|a| a.as_expression());
    match name {
        "createElement" | "createElementNS" => {
            let Some(tag) = argument(usize::from(name.ends_with("NS"))) else { return };
            for tag in judge.values.texts(tag) {
                element(judge, call.span, &tag);
            }
        }
        "setAttribute" | "setAttributeNS" => {
            let shift = usize::from(name.ends_with("NS"));
            let (Some(key), Some(value)) = (argument(shift), argument(shift + 1)) else { return };
            for key in judge.values.texts(key) {
                attribute(judge, &key.to_ascii_lowercase(), value, call.span);
            }
        }
        _ => {}
    }
}

fn element(judge: &mut Judge<'_, '_, '_, '_, '_>, span: Span, tag: &str) {
    let tag = tag.to_ascii_lowercase();
    match tag.rsplit(':').next().unwrap_or(&tag) {
        "script" => judge.add(&SCRIPT_ELEMENT, span, "a script element is made"),
        "iframe" | "frame" | "object" | "embed" | "portal" | "fencedframe" | "applet" => {
            judge.add(&FRAME, span, format!("an element <{tag}> is made"));
        }
        "audio" => judge.scan.uses(Capability::Audio, judge.piece, span.start as usize),
        _ => {}
    }
}

/// `setAttribute(key, value)`.
fn attribute<'a>(judge: &mut Judge<'_, '_, 'a, '_, '_>, key: &str, value: &'a Expression<'a>, span: Span) {
    if !key.starts_with("on") {
        written(judge, key, value, span);
        return;
    }
    for value in judge.values.of(value) {
        match value {
            Val::Text(code) => {
                let map = Map::Point(span.start as usize);
                let piece =
                    Piece::derived(judge.piece, code.to_string(), map, Some("set as an event handler"));
                if judge.scan.enter(&piece, 0, &code, "handler") {
                    super::scan(judge.scan, &piece, Form::Handler);
                    judge.scan.leave();
                }
            }
            Val::Code => {}
            _ => judge.add(&HANDLER, span, format!("{key} is set to text that is not constant")),
        }
    }
}

/// Judges `new x(…)`.
pub(super) fn construct<'a>(judge: &mut Judge<'_, '_, 'a, '_, '_>, new: &'a NewExpression<'a>) {
    let first = new.arguments.first().and_then(|a| a.as_expression());
    for path in judge.values.things(&new.callee) {
        match (&*path, first) {
            ("Audio", Some(first)) => written(judge, "src", first, new.span),
            ("Proxy", Some(first)) if judge.values.things(first).iter().any(|p| p.is_empty()) => {
                judge.add(&REFLECT, new.span, "a proxy over the window");
            }
            ("?.constructor", Some(first)) if judge.values.of(first).iter().any(is_code) => {
                judge.add(&FUNCTION, new.span, "a constructor that is given code as text");
            }
            _ => {}
        }
    }
}

/// Judges an assignment to a member.
pub(super) fn assign<'a>(judge: &mut Judge<'_, '_, 'a, '_, '_>, assignment: &'a AssignmentExpression<'a>) {
    let Some(member) = assignment.left.as_member_expression() else { return };
    let Some(name) = judge.values.member_name(member) else { return };
    if judge.values.things(member.object()).iter().any(|p| &**p == "location") {
        return;
    }
    written(judge, &name.to_ascii_lowercase(), &assignment.right, assignment.span);
}

/// Judges a value that an attribute or a property of that name is set to.
fn written<'a>(judge: &mut Judge<'_, '_, 'a, '_, '_>, name: &str, value: &'a Expression<'a>, span: Span) {
    let interesting = [
        "src",
        "srcset",
        "href",
        "xlink:href",
        "poster",
        "background",
        "action",
        "formaction",
        "rel",
        "type",
        "target",
        "srcdoc",
        "ping",
        "data",
    ];
    if !interesting.contains(&name) {
        return;
    }
    for value in judge.values.of(value) {
        let (Val::Text(text) | Val::Start(text)) = &value else { continue };
        let word = text.trim().to_ascii_lowercase();
        match name {
            "rel"
                if ["preconnect", "dns-prefetch", "prefetch", "preload", "prerender", "modulepreload"]
                    .contains(&&*word) =>
            {
                judge.add(&HINT, span, format!("a link element of rel={word}"));
            }
            "type" if word == "password" => judge.add(&SECRET, span, "a field for a password"),
            "target" if ["_blank", "_top", "_parent"].contains(&&*word) => {
                judge.add(&WINDOW, span, format!("a target outside the frame: {word}"));
            }
            "rel" | "type" | "target" => {}
            "srcdoc" => judge.add(&FRAME, span, "the content of a frame"),
            _ => address(judge, name, &normalise(text), span, matches!(value, Val::Start(_))),
        }
    }
}

fn address(judge: &mut Judge<'_, '_, '_, '_, '_>, name: &str, text: &str, span: Span, is_start: bool) {
    match classify(text) {
        Address::Remote => {
            let shown = html::shown(text);
            match name {
                "href" | "xlink:href" => judge.add(&LINK, span, format!("a link to {shown}")),
                "action" | "formaction" => judge.add(&SEND, span, format!("a form that goes to {shown}")),
                _ => judge.add(&LOAD, span, format!("{name} is set to {shown}")),
            }
        }
        Address::Script(_) => judge.add(&SCRIPT_URL, span, format!("{name} is set to a javascript: address")),
        Address::File(file) if !is_start && names_a_file(file) && !matches!(name, "action" | "data") => {
            html::missing(judge.scan, judge.piece, range(span), file, &format!("a script that sets {name}"));
        }
        _ => {}
    }
}

/// Whether the text ends like the name of a file.
fn names_a_file(text: &str) -> bool {
    let name = text.split(['?', '#']).next().unwrap_or_default();
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    !stem.is_empty()
        && !name.contains(char::is_whitespace)
        && (2..=5).contains(&ending.len())
        && ending.bytes().all(|b| b.is_ascii_alphanumeric())
        && ending.bytes().any(|b| b.is_ascii_alphabetic())
}
