//! What a Python function names: modules, functions and attributes, by every spelling.
//!
//! Python compares identifiers after NFKC, so every name is normalised first: `ｅｖａｌ` is `eval`. A name that a module
//! was bound to is followed through plain assignments; a forbidden function counts wherever it is named, since a name
//! can be passed on.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Alias, Expr, ExprContext, InterpolatedStringElement, Operator, Stmt};
use ruff_text_size::Ranged;
use unicode_normalization::UnicodeNormalization;

use super::Source;
use crate::finding::Rule;
use crate::rules::python::{CALL, DYNAMIC, MODULE, REACH};

/// Functions that find an attribute by a name that is a value.
const BY_NAME: [&str; 6] = ["getattr", "setattr", "delattr", "hasattr", "attrgetter", "methodcaller"];

/// Checks every name of a file.
pub(super) fn check(source: &mut Source<'_>, body: &[Stmt]) {
    let mut names = Names::default();
    names.visit_body(body);
    // An alias of an alias takes one more look at the assignments.
    for _ in 0..4 {
        names.visit_body(body);
    }
    Reach { source, names: &names }.visit_body(body);
}

fn nfkc(name: &str) -> String {
    if name.is_ascii() { name.to_owned() } else { name.nfkc().collect() }
}

/// What the file binds: modules, and underscore attributes of its own.
#[derive(Default)]
struct Names {
    modules: BTreeSet<String>,
    own: BTreeSet<String>,
    bound: BTreeSet<String>,
}

impl<'a> Visitor<'a> for Names {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => self.modules.extend(import.names.iter().map(bound_name)),
            Stmt::ImportFrom(import) => self.modules.extend(import.names.iter().map(bound_name)),
            Stmt::Assign(assign) if self.is_module(&assign.value) => {
                let targets = assign.targets.iter();
                self.modules.extend(targets.filter_map(|t| t.as_name_expr()).map(|n| nfkc(n.id.as_str())));
            }
            Stmt::FunctionDef(def) => {
                self.own.insert(nfkc(&def.name));
                self.bound.insert(nfkc(&def.name));
                self.bound.extend(def.parameters.iter().map(|p| nfkc(p.name())));
            }
            Stmt::AnnAssign(assign) => {
                if let Expr::Name(name) = &*assign.target {
                    self.own.insert(nfkc(name.id.as_str()));
                }
            }
            _ => {}
        }
        walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Attribute(a) if a.ctx == ExprContext::Store => {
                self.own.insert(nfkc(&a.attr));
            }
            Expr::Name(n) if n.ctx == ExprContext::Store => {
                self.bound.insert(nfkc(n.id.as_str()));
                self.own.insert(nfkc(n.id.as_str()));
            }
            Expr::Named(named) if self.is_module(&named.value) => {
                self.modules.extend(named.target.as_name_expr().map(|n| nfkc(n.id.as_str())));
            }
            _ => {}
        }
        walk_expr(self, expression);
    }
}

impl Names {
    fn is_module(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Name(name) => self.modules.contains(&nfkc(name.id.as_str())),
            Expr::Attribute(attribute) => self.is_module(&attribute.value),
            _ => false,
        }
    }
}

fn bound_name(alias: &Alias) -> String {
    let name = alias.asname.as_ref().map_or_else(|| alias.name.as_str(), |n| n.as_str());
    nfkc(name.split('.').next().unwrap_or(name))
}

struct Reach<'r, 's> {
    source: &'r mut Source<'s>,
    names: &'r Names,
}

impl<'a> Visitor<'a> for Reach<'_, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => import.names.iter().for_each(|alias| self.import(&alias.name, alias)),
            Stmt::ImportFrom(import) => {
                let module = import.module.as_ref().map_or("", |m| m.as_str());
                if import.level > 0 {
                    self.source.add_at(&MODULE, statement, "there is no package around the function");
                } else {
                    self.import(module, statement);
                }
                for alias in &import.names {
                    let name = nfkc(&alias.name);
                    if let Some((rule, words)) = forbidden(&name) {
                        self.source.add_at(rule, alias, format!("{name}, taken out of {module}, {words}"));
                    } else if name.starts_with('_') {
                        self.source.add_at(&REACH, alias, format!("{name}, a private name of {module}"));
                    }
                }
            }
            _ => {}
        }
        walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(name) => self.name(&nfkc(name.id.as_str()), expression),
            Expr::Attribute(attribute) => {
                self.attribute(&nfkc(&attribute.attr), &attribute.value, expression)
            }
            Expr::Call(call) => self.call(call),
            Expr::StringLiteral(text) => self.text(text.value.to_str(), expression),
            _ => {}
        }
        walk_expr(self, expression);
    }
}

/// The rule that forbids the module, and what such a module does.
fn forbidden(module: &str) -> Option<(&'static Rule, &'static str)> {
    let group = policy::python().refuses(module.trim_start_matches('_'))?;
    let rule = crate::rules::find(&group.rule)?;
    Some((rule, &group.words))
}

impl Reach<'_, '_> {
    fn import(&mut self, module: &str, place: &impl Ranged) {
        let module = nfkc(module);
        let safe = &policy::python().safe.modules;
        if let Some((rule, words)) = forbidden(&module) {
            self.source.add_at(rule, place, format!("the module {module} {words}"));
        } else if !safe.contains(&module) {
            self.source.add_at(
                &MODULE,
                place,
                format!("the module {module} is not one of: {}", safe.join(", ")),
            );
        }
    }

    fn name(&mut self, name: &str, place: &Expr) {
        let makes_code = policy::python().forbidden.values().any(|f| f.calls.iter().any(|c| c == name));
        let names = &policy::lint().names;
        // A variable of one's own may be called `input`, but not `eval`: the name alone makes a reader stop.
        if makes_code {
            self.source.add_at(&DYNAMIC, place, format!("the function {name} makes code out of text"));
        } else if names.calls.iter().any(|n| n == name) && !self.names.bound.contains(name) {
            self.source.add_at(
                &CALL,
                place,
                format!("{name} reaches for a file, the keyboard or the interpreter, and there is none here"),
            );
        } else if is_dunder(name) && !names.dunder.iter().any(|n| n == name) {
            self.source.add_at(&REACH, place, format!("the name {name}"));
        }
    }

    fn attribute(&mut self, name: &str, object: &Expr, place: &Expr) {
        let of_module = self.names.is_module(object);
        let allowed = policy::lint().names.dunder.iter().any(|n| n == name);
        if is_dunder(name) && (!allowed || of_module) {
            self.source.add_at(&REACH, place, format!("the attribute {name}"));
        } else if of_module && (name.starts_with('_') || forbidden(name).is_some()) {
            self.source.add_at(&REACH, place, format!("the attribute {name} of a module"));
        } else if name.starts_with('_') && !is_dunder(name) && !self.names.own.contains(name) {
            self.source.add_at(
                &REACH,
                place,
                format!("the attribute {name}, which this file does not define"),
            );
        }
    }

    /// `getattr` and its like find attributes whose names no reader sees.
    fn call(&mut self, call: &ruff_python_ast::ExprCall) {
        let function = match &*call.func {
            Expr::Name(name) => nfkc(name.id.as_str()),
            Expr::Attribute(attribute) => nfkc(&attribute.attr),
            _ => return,
        };
        if !BY_NAME.contains(&function.as_str()) {
            return;
        }
        let position = usize::from(function.ends_with("attr"));
        let of_module =
            position == 1 && call.arguments.args.first().is_some_and(|object| self.names.is_module(object));
        let is_plain = match call.arguments.args.get(position) {
            Some(Expr::StringLiteral(text)) => {
                !nfkc(text.value.to_str()).split('.').any(|part| part.starts_with('_'))
            }
            // `f"do_{verb}"` can name nothing but what begins with do_.
            Some(name) if position == 1 && !of_module => {
                start(name).is_some_and(|s| s.starts_with(char::is_alphabetic))
            }
            _ => false,
        };
        if !is_plain {
            self.source.add_at(&REACH, call, format!("{function} with a name that is not plain"));
        }
    }

    /// A text that names a dunder serves `getattr` or `format`, hardly a reader.
    fn text(&mut self, text: &str, place: &Expr) {
        let text = nfkc(text);
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        let dunder = words.find(|w| is_dunder(w) && !matches!(*w, "__main__" | "__init__" | "__future__"));
        if let Some(word) = dunder.filter(|w| w.chars().any(char::is_alphabetic)) {
            self.source.add_at(&REACH, place, format!("a text that names {word}"));
        }
    }
}

/// The constant start of a text that is put together.
fn start(text: &Expr) -> Option<String> {
    match text {
        Expr::StringLiteral(text) => Some(nfkc(text.value.to_str())),
        Expr::BinOp(sum) if sum.op == Operator::Add => start(&sum.left),
        Expr::FString(text) => match text.value.elements().next()? {
            InterpolatedStringElement::Literal(text) => Some(nfkc(&text.value)),
            InterpolatedStringElement::Interpolation(_) => None,
        },
        _ => None,
    }
}

fn is_dunder(name: &str) -> bool {
    name.len() > 4 && name.starts_with("__") && name.ends_with("__")
}
