//! Walks over the nodes of a script and judges each by what it means.

use std::collections::BTreeSet;
use std::rc::Rc;

use oxc_ast::AstKind;
use oxc_ast::ast::{AssignmentTarget, AssignmentTargetProperty, BindingPattern, Expression};
use oxc_semantic::{NodeId, Semantic};
use oxc_span::{GetSpan, Span};
use oxc_syntax::operator::{BinaryOperator, UnaryOperator};

use super::names::{self, Meaning};
use super::values::{Val, Values, key_name};
use super::{Form, packer, sinks, text};
use crate::address::{Address, classify, normalise};
use crate::finding::Rule;
use crate::html;
use crate::rules::code::{COMPUTED, DEBUGGER, EVAL, FUNCTION, PACKED, REFLECT, TIMER};
use crate::rules::network::{FETCH, IMPORT};
use crate::rules::page::{LOCAL, LOCAL_SHIMMED};
use crate::scan::Scan;
use crate::source::{Map, Piece};

/// One script under judgement.
pub(super) struct Judge<'j, 's, 'a, 't, 'p> {
    pub(super) scan: &'j mut Scan<'t>,
    pub(super) piece: &'j Piece<'p>,
    pub(super) values: &'j Values<'s, 'a>,
    packed: Packed,
}

/// What is known of packing.
enum Packed {
    /// A packer was recognised: its eval is not repeated.
    Known,
    /// Most of the script is one literal: an eval beside it means a packer.
    Likely,
    No,
}

/// Judges a parsed script.
pub(super) fn scan(scan: &mut Scan<'_>, piece: &Piece<'_>, semantic: &Semantic<'_>, form: Form) {
    text::direction(scan, piece);
    let nodes = semantic.nodes();
    packer::names(scan, piece, semantic.scoping().symbol_names());
    let longest = literals(scan, piece, semantic);
    let packed = match packer::judge(scan, piece) {
        true => Packed::Known,
        false if packer::is_self_extracting(&piece.text, longest) => Packed::Likely,
        false => Packed::No,
    };
    let declared = scan.declared.clone();
    let values = Values::new(semantic, form, &declared);
    let mut judge = Judge { scan, piece, values: &values, packed };
    for node in nodes.iter() {
        judge.node(node.id(), node.kind());
    }
    if form == Form::Script {
        declare(scan, semantic);
    }
}

/// Keeps the names that the script makes its own for the scripts behind it.
fn declare(scan: &mut Scan<'_>, semantic: &Semantic<'_>) {
    let scoping = semantic.scoping();
    let mut own: BTreeSet<String> = BTreeSet::new();
    for symbol in scoping.iter_bindings_in(scoping.root_scope_id()) {
        let name = scoping.symbol_name(symbol);
        let is_var_only = scoping.symbol_flags(symbol).is_function_scoped_declaration();
        let is_browsers = is_var_only
            && (names::is_unforgeable(name)
                || !matches!(semantic.nodes().kind(scoping.symbol_declaration(symbol)),
                    AstKind::VariableDeclarator(d) if d.init.is_some()));
        let is_function =
            matches!(semantic.nodes().kind(scoping.symbol_declaration(symbol)), AstKind::Function(_));
        if !is_browsers || (is_function && !names::is_unforgeable(name)) {
            own.insert(name.to_owned());
        }
    }
    scan.declared.extend(own);
}

/// Reads every literal; the answer is the length of the longest.
fn literals(scan: &mut Scan<'_>, piece: &Piece<'_>, semantic: &Semantic<'_>) -> usize {
    let mut longest = 0;
    for node in semantic.nodes().iter() {
        let (span, value, raw_at) = match node.kind() {
            AstKind::StringLiteral(s) => (s.span, s.value.as_str(), s.span.start + 1),
            AstKind::TemplateElement(t) => {
                (t.span, t.value.cooked.as_ref().map_or("", |c| c.as_str()), t.span.start)
            }
            _ => continue,
        };
        longest = longest.max((span.end - span.start) as usize);
        let parent = semantic.nodes().parent_kind(node.id());
        if matches!(parent, AstKind::ImportDeclaration(_) | AstKind::ImportExpression(_)) {
            continue;
        }
        let raw_at = raw_at as usize;
        let as_written = piece.text.get(raw_at..raw_at + value.len()) == Some(value);
        if as_written {
            text::scan(scan, &Piece::slice(piece, raw_at..raw_at + value.len()));
            continue;
        }
        let raw = piece.text.get(span.start as usize..span.end as usize).unwrap_or_default();
        text::escapes(scan, piece, span.start as usize, raw, value.chars().count());
        let map = Map::Point(span.start as usize);
        text::scan(scan, &Piece::derived(piece, value.to_owned(), map, Some("decoded from escapes")));
    }
    longest
}

pub(super) fn range(span: Span) -> std::ops::Range<usize> {
    span.start as usize..span.end as usize
}

impl<'a> Judge<'_, '_, 'a, '_, '_> {
    pub(super) fn add(&mut self, rule: &'static Rule, span: Span, what: impl Into<String>) {
        let makes_code =
            std::ptr::eq(rule, &EVAL) || std::ptr::eq(rule, &FUNCTION) || std::ptr::eq(rule, &TIMER);
        match self.packed {
            Packed::Known if makes_code => {}
            Packed::Likely if makes_code => {
                self.packed = Packed::Known;
                self.scan.add(
                    &PACKED,
                    self.piece,
                    range(span),
                    "this script is one long text that is evaluated here",
                );
            }
            _ => self.scan.add(rule, self.piece, range(span), what),
        }
    }

    fn node(&mut self, id: NodeId, kind: AstKind<'a>) {
        match kind {
            AstKind::IdentifierReference(name) if names::can_matter(&name.name) => {
                for value in self.values.identifier(name) {
                    if let Val::Thing(path) = value {
                        self.mention(&path, name.span, id);
                        self.kept(&path, name.span, id);
                    }
                }
            }
            AstKind::StaticMemberExpression(member) => {
                let name = member.property.name.as_str();
                if names::can_matter(name) {
                    self.member(&member.object, name, member.span, id);
                }
            }
            AstKind::ComputedMemberExpression(member) => {
                self.computed(&member.object, &member.expression, member.span, id);
            }
            AstKind::CallExpression(call) => {
                sinks::call(self, call);
                self.joined_call(call.span, &call.callee, id);
            }
            AstKind::NewExpression(new) => sinks::construct(self, new),
            AstKind::AssignmentExpression(assignment) => {
                sinks::assign(self, assignment);
                if let AssignmentTarget::ObjectAssignmentTarget(pattern) = &assignment.left {
                    self.taken_apart_by_assignment(pattern, &assignment.right, id);
                }
            }
            AstKind::VariableDeclarator(declarator) => {
                if let (BindingPattern::ObjectPattern(_), Some(init)) = (&declarator.id, &declarator.init) {
                    for path in self.values.things(init) {
                        self.taken_apart(&declarator.id, &path, id);
                    }
                }
            }
            AstKind::BinaryExpression(sum) if sum.operator == BinaryOperator::Addition => {
                self.joined(sum.span, id)
            }
            AstKind::ImportExpression(import) => self.import(import.span, &self.values.texts(&import.source)),
            AstKind::ImportDeclaration(import) => {
                self.import(import.span, &[import.source.value.as_str().into()])
            }
            AstKind::ExportFromDeclaration(e) => self.import(e.span, &[e.source.value.as_str().into()]),
            AstKind::ExportAllDeclaration(e) => self.import(e.span, &[e.source.value.as_str().into()]),
            AstKind::ForInStatement(each) if self.values.things(&each.right).iter().any(|p| p.is_empty()) => {
                self.add(&REFLECT, each.right.span(), "a loop over the names of the window");
            }
            AstKind::DebuggerStatement(debugger) => {
                self.add(&DEBUGGER, debugger.span, "a debugger statement")
            }
            _ => {}
        }
    }

    fn member(&mut self, object: &'a Expression<'a>, name: &str, span: Span, id: NodeId) {
        for meaning in names::member_meanings(name) {
            self.means(meaning, name, span, id);
        }
        for value in self.values.get(object, name) {
            if let Val::Thing(path) = value {
                self.mention(&path, span, id);
            }
        }
    }

    fn computed(&mut self, object: &'a Expression<'a>, key: &'a Expression<'a>, span: Span, id: NodeId) {
        let keys = self.values.of(key);
        for name in keys.iter().filter_map(|k| if let Val::Text(name) = k { Some(name) } else { None }) {
            self.member(object, name, span, id);
        }
        if keys.iter().all(|k| matches!(k, Val::Text(_) | Val::Number(_))) {
            return;
        }
        if let Some(path) = self.values.things(object).iter().find(|p| names::is_sensitive(p)) {
            let thing = if path.is_empty() { "the window" } else { path };
            self.add(&COMPUTED, span, format!("a member of {thing} whose name is not known before it runs"));
        }
    }

    /// The window, put where no constant leads: into a field of a class, or a member of something.
    fn kept(&mut self, path: &str, span: Span, id: NodeId) {
        let is_kept = match self.values.semantic.nodes().parent_kind(id) {
            AstKind::PropertyDefinition(_) | AstKind::AccessorProperty(_) => true,
            AstKind::AssignmentExpression(a) => {
                a.right.span() == span && a.left.as_member_expression().is_some()
            }
            _ => false,
        };
        if path.is_empty() && is_kept {
            self.add(
                &COMPUTED,
                span,
                "the window is kept where the check cannot follow what is called on it",
            );
        }
    }

    /// Judges the thing at `path`, which is named at `span`.
    pub(super) fn mention(&mut self, path: &Rc<str>, span: Span, id: NodeId) {
        for meaning in names::meanings(path) {
            self.means(meaning, path, span, id);
        }
    }

    fn means(&mut self, meaning: Meaning, path: &str, span: Span, id: NodeId) {
        let nodes = self.values.semantic.nodes();
        let parent = nodes.parent_kind(id);
        if matches!(parent, AstKind::UnaryExpression(u) if u.operator == UnaryOperator::Typeof) {
            return;
        }
        match meaning {
            Meaning::Uses(capability) => self.scan.uses(capability, self.piece, span.start as usize),
            Meaning::Called(rule) if is_callee(parent, span) => {
                self.add(rule, span, format!("{path} is called"))
            }
            Meaning::Written(rule) if is_written(parent, span) => {
                self.add(rule, span, format!("{path} is written to"));
            }
            Meaning::Called(_) | Meaning::Written(_) => {}
            Meaning::Named(rule) if std::ptr::eq(rule, &FUNCTION) => {
                let only_named = match parent {
                    AstKind::StaticMemberExpression(m) => {
                        m.object.span() == span
                            && !matches!(m.property.name.as_str(), "call" | "apply" | "bind" | "constructor")
                    }
                    AstKind::BinaryExpression(b) => b.right.span() == span,
                    _ => false,
                };
                if !only_named {
                    self.add(rule, span, "Function, which makes code from text");
                }
            }
            Meaning::Named(rule) if std::ptr::eq(rule, &LOCAL) => self.storage(path, span),
            Meaning::Named(rule) if std::ptr::eq(rule, &FETCH) => self.fetch(path, parent, span),
            Meaning::Named(rule) => self.add(rule, span, format!("{path} is used")),
        }
    }

    fn storage(&mut self, path: &str, span: Span) {
        if self.scan.shim {
            self.add(&LOCAL_SHIMMED, span, format!("{path}, which the shim of tf.js answers"));
        } else {
            self.add(&LOCAL, span, format!("{path} is used, and no tf.js stands before it"));
        }
    }

    /// A request for a file beside the work is about that file.
    fn fetch(&mut self, path: &str, parent: AstKind<'a>, span: Span) {
        let address = match parent {
            AstKind::CallExpression(call) if call.callee.span() == span => call
                .arguments
                .first()
                .and_then(|a| a.as_expression())
                .and_then(|e| self.values.texts(e).pop()),
            _ => None,
        };
        match address.as_deref().map(normalise) {
            Some(address) if matches!(classify(&address), Address::File(_)) => {
                html::missing(self.scan, self.piece, range(span), &address, path);
            }
            _ => self.add(&FETCH, span, format!("{path} is used")),
        }
    }

    fn import(&mut self, span: Span, sources: &[Rc<str>]) {
        let file = sources.first().map(|s| normalise(s)).filter(|s| matches!(classify(s), Address::File(_)));
        match file {
            Some(file) if file.starts_with(['.', '/']) || file.contains(".js") => {
                html::missing(self.scan, self.piece, range(span), &file, "an import");
            }
            _ => self.add(&IMPORT, span, "a module is imported"),
        }
    }

    fn taken_apart(&mut self, pattern: &'a BindingPattern<'a>, path: &Rc<str>, id: NodeId) {
        let BindingPattern::ObjectPattern(object) = pattern else { return };
        for property in &object.properties {
            match key_name(self.values, &property.key) {
                Some(name) => {
                    let inner = names::join(path, &name);
                    self.mention(&inner, property.span, id);
                    let target = match &property.value {
                        BindingPattern::AssignmentPattern(p) => &p.left,
                        other => other,
                    };
                    self.taken_apart(target, &inner, id);
                }
                None if names::is_sensitive(path) => {
                    self.add(&COMPUTED, property.span, "a member whose name is not known before it runs");
                }
                None => {}
            }
        }
    }

    fn taken_apart_by_assignment(
        &mut self,
        pattern: &'a oxc_ast::ast::ObjectAssignmentTarget<'a>,
        right: &'a Expression<'a>,
        id: NodeId,
    ) {
        for path in self.values.things(right) {
            for property in &pattern.properties {
                let (name, span) = match property {
                    AssignmentTargetProperty::AssignmentTargetPropertyIdentifier(p) => {
                        (Some(Rc::from(p.binding.name.as_str())), p.span)
                    }
                    AssignmentTargetProperty::AssignmentTargetPropertyProperty(p) => {
                        (key_name(self.values, &p.name), p.span)
                    }
                };
                if let Some(name) = name {
                    self.mention(&names::join(&path, &name), span, id);
                }
            }
        }
    }

    /// Reads a text that is put together from constants, once, at the whole of it.
    fn joined(&mut self, span: Span, id: NodeId) {
        let nodes = self.values.semantic.nodes();
        if matches!(nodes.parent_kind(id), AstKind::BinaryExpression(b) if b.operator == BinaryOperator::Addition)
        {
            return;
        }
        let AstKind::BinaryExpression(_) = nodes.kind(id) else { return };
        if let Some(text) = self.values.node_text(id) {
            self.read(span, text, text::scan);
        }
    }

    /// Reads what a function of the browser makes of constants: `atob("…")`, `[…].join("")`.
    fn joined_call(&mut self, span: Span, callee: &'a Expression<'a>, id: NodeId) {
        let name = match callee.get_inner_expression() {
            Expression::Identifier(name) => name.name.as_str(),
            other => match other.as_member_expression() {
                Some(member) => member.static_property_name().map_or("?", |n| n),
                None => "?",
            },
        };
        let decodes = matches!(
            name,
            "atob"
                | "unescape"
                | "decodeURIComponent"
                | "decodeURI"
                | "fromCharCode"
                | "fromCodePoint"
                | "join"
                | "apply"
                | "replace"
                | "?"
        );
        let nodes = self.values.semantic.nodes();
        if !decodes || matches!(nodes.parent_kind(id), AstKind::StaticMemberExpression(_)) {
            return;
        }
        if let Some(text) = self.values.node_text(id) {
            self.read(span, text, crate::data::unknown);
        }
    }

    fn read(&mut self, span: Span, text: Rc<str>, reader: impl FnOnce(&mut Scan<'_>, &Piece<'_>)) {
        let map = Map::Point(span.start as usize);
        let how = Some("put together from constants");
        let made = Piece::derived(self.piece, text.to_string(), map, how);
        let here = self.piece.root_offset(span.start as usize)..self.piece.root_offset(span.end as usize);
        let outer = self.scan.already.replace(here);
        reader(self.scan, &made);
        self.scan.already = outer;
    }
}

fn is_callee(parent: AstKind<'_>, span: Span) -> bool {
    match parent {
        AstKind::CallExpression(call) => call.callee.span() == span,
        AstKind::NewExpression(new) => new.callee.span() == span,
        AstKind::StaticMemberExpression(m) => {
            m.object.span() == span && matches!(m.property.name.as_str(), "call" | "apply" | "bind")
        }
        AstKind::ChainExpression(_) => true,
        _ => false,
    }
}

fn is_written(parent: AstKind<'_>, span: Span) -> bool {
    match parent {
        AstKind::AssignmentExpression(a) => a.left.span() == span,
        AstKind::AssignmentTargetWithDefault(t) => t.binding.span() == span,
        AstKind::ForInStatement(f) => f.left.span() == span,
        AstKind::ForOfStatement(f) => f.left.span() == span,
        AstKind::ArrayAssignmentTarget(_)
        | AstKind::AssignmentTargetPropertyProperty(_)
        | AstKind::AssignmentTargetPropertyIdentifier(_)
        | AstKind::AssignmentTargetRest(_)
        | AstKind::UpdateExpression(_) => true,
        _ => false,
    }
}
