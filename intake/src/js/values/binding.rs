//! What a variable can be: everything that is written to it, and what a parameter is called with.

use std::rc::Rc;

use oxc_ast::AstKind;
use oxc_ast::ast::{
    ArrowFunctionBody, ArrowFunctionExpression, BindingPattern, CallExpression, Expression, FormalParameters,
    FunctionBody, Statement,
};
use oxc_semantic::{AstNodes, NodeId, SymbolId};
use oxc_span::{GetSpan, Span};

use super::{Form, Val, Values, assigned, pattern_paths};
use crate::js::names;

/// Assignments and calls that are looked at, at most.
const SITES: usize = 16;

impl<'a> Values<'_, 'a> {
    /// What the variable can be.
    pub(super) fn symbol(&self, symbol: SymbolId) -> Rc<[Val]> {
        if let Some(Some(known)) = self.symbols.borrow().get(symbol.index()) {
            return known.clone();
        }
        self.know(symbol, &self.unknown);
        let mut values = self.declared_value(symbol);
        values.extend(self.written(symbol));
        if values.is_empty() {
            values.push(Val::Unknown);
        }
        values.truncate(super::ALTERNATIVES);
        let values = if values == [Val::Unknown] { self.unknown.clone() } else { values.into() };
        self.know(symbol, &values);
        values
    }

    fn know(&self, symbol: SymbolId, values: &Rc<[Val]>) {
        if let Some(known) = self.symbols.borrow_mut().get_mut(symbol.index()) {
            *known = Some(values.clone());
        }
    }

    fn declared_value(&self, symbol: SymbolId) -> Vec<Val> {
        let nodes = self.semantic.nodes();
        let declaration = self.semantic.scoping().symbol_declaration(symbol);
        match nodes.kind(declaration) {
            AstKind::VariableDeclarator(declarator) => match &declarator.init {
                Some(init) => self.bound(symbol, &declarator.id, init),
                None => self.looped(declaration),
            },
            AstKind::Function(_) | AstKind::Class(_) => vec![Val::Code],
            AstKind::FormalParameter(parameter) => {
                let mut values = Vec::new();
                if let Some(default) = &parameter.initializer {
                    values.extend(self.bound(symbol, &parameter.pattern, default));
                }
                let (arguments, are_all) = self.passed(declaration, parameter.span);
                for argument in arguments {
                    values.extend(self.bound(symbol, &parameter.pattern, argument));
                }
                values.extend(self.iterated(declaration, parameter.span));
                if !are_all {
                    values.push(Val::Unknown);
                }
                values
            }
            _ => vec![Val::Unknown],
        }
    }

    /// What a variable without a value of its own gets from the loop around it.
    fn looped(&self, declaration: NodeId) -> Vec<Val> {
        let nodes = self.semantic.nodes();
        match nodes.parent_kind(nodes.parent_id(declaration)) {
            AstKind::ForOfStatement(each) => self.items(&each.right),
            AstKind::ForInStatement(_) => vec![Val::Unknown],
            _ => Vec::new(),
        }
    }

    /// The items of a constant list.
    fn items(&self, list: &'a Expression<'a>) -> Vec<Val> {
        match self.single(list) {
            Val::List(items) => items.to_vec(),
            _ => vec![Val::Unknown],
        }
    }

    /// What the first parameter of a callback gets from `[…].forEach` and its like.
    fn iterated(&self, parameter: NodeId, span: Span) -> Vec<Val> {
        const WALKS: [&str; 7] = ["forEach", "map", "filter", "some", "every", "find", "flatMap"];
        let nodes = self.semantic.nodes();
        let list = nodes.parent_id(parameter);
        let AstKind::FormalParameters(parameters) = nodes.kind(list) else { return Vec::new() };
        let AstKind::CallExpression(call) = nodes.parent_kind(nodes.parent_id(list)) else {
            return Vec::new();
        };
        match call.callee.get_inner_expression() {
            Expression::StaticMemberExpression(member)
                if position(parameters, span) == Some(0)
                    && WALKS.contains(&member.property.name.as_str()) =>
            {
                self.items(&member.object)
            }
            _ => Vec::new(),
        }
    }

    /// Whether a function is called without an object somewhere: then its `this` is the window.
    pub(super) fn is_called_plainly(&self, function: NodeId) -> bool {
        let nodes = self.semantic.nodes();
        let is_plain = |node: NodeId| direct_call(nodes, node).is_some_and(|(_, shift)| shift == 0);
        is_plain(function)
            || self.names_of(function).into_iter().any(|symbol| {
                self.semantic
                    .symbol_references(symbol)
                    .take(SITES)
                    .any(|reference| is_plain(reference.node_id()))
            })
    }

    /// What a pattern gives the variable when `init` is taken apart by it.
    fn bound(&self, symbol: SymbolId, pattern: &'a BindingPattern<'a>, init: &'a Expression<'a>) -> Vec<Val> {
        if let BindingPattern::BindingIdentifier(_) = pattern {
            return self.of(init);
        }
        let mut values = Vec::new();
        for path in self.things(init) {
            pattern_paths(self, pattern, &path, &mut |target, path| {
                if let BindingPattern::BindingIdentifier(id) = target
                    && id.symbol_id.get() == Some(symbol)
                {
                    values.push(Val::Thing(path));
                }
            });
        }
        if let (BindingPattern::ArrayPattern(array), Val::List(items)) = (pattern, self.single(init)) {
            for (element, item) in array.elements.iter().zip(items.iter()) {
                if let Some(BindingPattern::BindingIdentifier(id)) = element
                    && id.symbol_id.get() == Some(symbol)
                {
                    values.push(item.clone());
                }
            }
        }
        if values.is_empty() { vec![Val::Unknown] } else { values }
    }

    fn written(&self, symbol: SymbolId) -> Vec<Val> {
        let nodes = self.semantic.nodes();
        let writes = self.semantic.symbol_references(symbol).filter(|r| r.is_write()).take(SITES);
        let mut values = Vec::new();
        for reference in writes {
            match nodes.parent_kind(reference.node_id()) {
                AstKind::AssignmentExpression(a)
                    if a.left.span() == nodes.kind(reference.node_id()).span() =>
                {
                    values.extend(assigned(a).map_or(vec![Val::Unknown], |right| self.of(right)));
                }
                _ => values.push(Val::Unknown),
            }
        }
        values
    }

    /// What a parameter is called with, and whether that is all it can be: the function has no name and is called where
    /// it stands.
    fn passed(&self, parameter: NodeId, span: Span) -> (Vec<&'a Expression<'a>>, bool) {
        let nodes = self.semantic.nodes();
        let list = nodes.parent_id(parameter);
        let AstKind::FormalParameters(parameters) = nodes.kind(list) else { return (Vec::new(), false) };
        let Some(index) = position(parameters, span) else { return (Vec::new(), false) };
        let function = nodes.parent_id(list);
        let mut found: Vec<&'a Expression<'a>> = Vec::new();
        if let Some((call, shift)) = direct_call(nodes, function) {
            found.extend(call.arguments.get(index + shift).and_then(|a| a.as_expression()));
        }
        let names = self.names_of(function);
        let are_all = names.is_empty() && !found.is_empty();
        for symbol in names {
            for reference in self.semantic.symbol_references(symbol).take(SITES) {
                if let Some((call, shift)) = direct_call(nodes, reference.node_id()) {
                    found.extend(call.arguments.get(index + shift).and_then(|a| a.as_expression()));
                }
            }
        }
        (found, are_all)
    }

    /// What a call of `callee` gives back, if that is one expression that can be seen.
    pub(super) fn returned(&self, callee: &'a Expression<'a>) -> Option<&'a Expression<'a>> {
        let nodes = self.semantic.nodes();
        match callee.get_inner_expression() {
            Expression::ArrowFunctionExpression(arrow) => arrow_value(arrow),
            Expression::FunctionExpression(function) => last_return(function.body.as_deref()?),
            Expression::Identifier(name) => {
                let symbol = self.semantic.scoping().get_reference(name.reference_id.get()?).symbol_id()?;
                match nodes.kind(self.semantic.scoping().symbol_declaration(symbol)) {
                    AstKind::Function(function) => last_return(function.body.as_deref()?),
                    AstKind::VariableDeclarator(declarator) => {
                        match declarator.init.as_ref()?.get_inner_expression() {
                            Expression::ArrowFunctionExpression(arrow) => arrow_value(arrow),
                            Expression::FunctionExpression(function) => {
                                last_return(function.body.as_deref()?)
                            }
                            _ => None,
                        }
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The variables that hold the function: its own name, or the constant it is assigned to.
    fn names_of(&self, function: NodeId) -> Vec<SymbolId> {
        let nodes = self.semantic.nodes();
        let own = match nodes.kind(function) {
            AstKind::Function(f) => f.id.as_ref().and_then(|id| id.symbol_id.get()),
            _ => None,
        };
        let held = match nodes.parent_kind(function) {
            AstKind::VariableDeclarator(d) => d.id.get_binding_identifier().and_then(|id| id.symbol_id.get()),
            _ => None,
        };
        own.into_iter().chain(held).collect()
    }

    /// Whether a variable declared at the top is still what the browser put there: `var fetch;` changes nothing, and
    /// `var top = 1` cannot change it.
    pub(super) fn is_still_the_browsers(&self, symbol: SymbolId, name: &str) -> bool {
        let scoping = self.semantic.scoping();
        let at_top = scoping.symbol_scope_id(symbol) == scoping.root_scope_id();
        let flags = scoping.symbol_flags(symbol);
        if self.form != Form::Script
            || !at_top
            || !flags.is_function_scoped_declaration()
            || !names::is_known(name)
        {
            return false;
        }
        if names::is_unforgeable(name) {
            return true;
        }
        let nodes = self.semantic.nodes();
        let declares_value = scoping.symbol_declarations(symbol).any(|node| match nodes.kind(node) {
            AstKind::VariableDeclarator(d) => d.init.is_some(),
            AstKind::Function(_) | AstKind::Class(_) => true,
            _ => false,
        });
        !declares_value
    }
}

fn arrow_value<'a>(arrow: &'a ArrowFunctionExpression<'a>) -> Option<&'a Expression<'a>> {
    match &arrow.body {
        ArrowFunctionBody::FunctionBody(body) => last_return(body),
        other => other.as_expression(),
    }
}

fn last_return<'a>(body: &'a FunctionBody<'a>) -> Option<&'a Expression<'a>> {
    match body.statements.last()? {
        Statement::ReturnStatement(statement) => statement.argument.as_ref(),
        _ => None,
    }
}

fn position(parameters: &FormalParameters<'_>, span: Span) -> Option<usize> {
    parameters.items.iter().position(|p| p.span == span)
}

/// The call whose callee this node is, through parentheses, and by how many the arguments are shifted (`.call(this, …)`).
fn direct_call<'a>(nodes: &AstNodes<'a>, node: NodeId) -> Option<(&'a CallExpression<'a>, usize)> {
    let mut span = nodes.kind(node).span();
    let mut shift = 0;
    for kind in nodes.ancestor_kinds(node) {
        match kind {
            AstKind::ParenthesizedExpression(_) => span = kind.span(),
            AstKind::StaticMemberExpression(m) if m.object.span() == span && m.property.name == "call" => {
                span = kind.span();
                shift = 1;
            }
            AstKind::UnaryExpression(_) => {}
            AstKind::CallExpression(call) if call.callee.span() == span => return Some((call, shift)),
            _ => return None,
        }
    }
    None
}
