//! What an expression can be, as far as constants go.
//!
//! A [`Val`] is a text, a number, a list, a function, or a *thing* of the browser, named by its path from the window:
//! `window.document["coo" + "kie"]` is the thing `document.cookie`, and so is `d.cookie` after `const d = document`.
//! An expression may be several of them (both branches of a condition, each call of a function), so the answer is a
//! list. Work is bounded by fuel; what costs more is unknown.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use oxc_ast::AstKind;
use oxc_ast::ast::{
    Argument, AssignmentExpression, AssignmentOperator, BinaryOperator, BindingPattern, CallExpression,
    ChainElement, Expression, IdentifierReference, MemberExpression, ObjectExpression, ObjectPropertyKind,
    PropertyKey, UnaryOperator,
};
use oxc_semantic::{NodeId, Semantic};
use oxc_span::GetSpan;

use super::Form;
use super::names;

mod binding;
mod fold;

/// One thing that an expression can be.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Val {
    Unknown,
    Text(Rc<str>),
    /// A text of which only the start is known.
    Start(Rc<str>),
    Number(f64),
    List(Rc<[Val]>),
    /// An object with constant names.
    Record(Rc<[(Rc<str>, Val)]>),
    /// A function; its `constructor` makes code.
    Code,
    /// A thing of the browser; the empty path is the window itself.
    Thing(Rc<str>),
}

const FUEL: u32 = 400;
const DEPTH: u32 = 48;
const ALTERNATIVES: usize = 12;
const TEXT_BYTES: usize = 1 << 20;
const FIELDS: usize = 64;

/// Answers what expressions of one script can be.
pub(super) struct Values<'s, 'a> {
    pub(super) semantic: &'s Semantic<'a>,
    form: Form,
    declared: &'s BTreeSet<String>,
    has_with: bool,
    /// What each variable can be, once that was asked.
    symbols: RefCell<Vec<Option<Rc<[Val]>>>>,
    unknown: Rc<[Val]>,
    fuel: Cell<u32>,
    depth: Cell<u32>,
    text_bytes: Cell<usize>,
}

impl<'s, 'a> Values<'s, 'a> {
    /// `declared` are the names that other scripts of the page made their own.
    pub(super) fn new(semantic: &'s Semantic<'a>, form: Form, declared: &'s BTreeSet<String>) -> Self {
        let has_with = semantic.nodes().iter().any(|n| matches!(n.kind(), AstKind::WithStatement(_)));
        Self {
            semantic,
            form,
            declared,
            has_with,
            symbols: RefCell::new(vec![None; semantic.scoping().symbols_len()]),
            unknown: [Val::Unknown].into(),
            fuel: Cell::new(FUEL),
            depth: Cell::new(0),
            text_bytes: Cell::new(TEXT_BYTES),
        }
    }

    /// What `expression` can be.
    pub(super) fn of(&self, expression: &'a Expression<'a>) -> Vec<Val> {
        if self.depth.get() == 0 {
            self.fuel.set(FUEL);
        }
        let fuel = self.fuel.get();
        if fuel == 0 || self.depth.get() >= DEPTH {
            return vec![Val::Unknown];
        }
        self.fuel.set(fuel - 1);
        self.depth.set(self.depth.get() + 1);
        let mut values = self.evaluate(expression);
        self.depth.set(self.depth.get() - 1);
        values.dedup();
        values.truncate(ALTERNATIVES);
        values
    }

    /// The paths of the things that `expression` can be.
    pub(super) fn things(&self, expression: &'a Expression<'a>) -> Vec<Rc<str>> {
        self.of(expression)
            .into_iter()
            .filter_map(|v| if let Val::Thing(path) = v { Some(path) } else { None })
            .collect()
    }

    /// The texts that `expression` can be.
    pub(super) fn texts(&self, expression: &'a Expression<'a>) -> Vec<Rc<str>> {
        self.of(expression)
            .into_iter()
            .filter_map(|v| if let Val::Text(text) = v { Some(text) } else { None })
            .collect()
    }

    fn evaluate(&self, expression: &'a Expression<'a>) -> Vec<Val> {
        match expression {
            Expression::StringLiteral(s) => vec![self.text(s.value.as_str())],
            Expression::NumericLiteral(n) => vec![Val::Number(n.value)],
            Expression::ObjectExpression(object) => vec![self.record(object)],
            Expression::FunctionExpression(_)
            | Expression::ArrowFunctionExpression(_)
            | Expression::ClassExpression(_) => vec![Val::Code],
            Expression::TemplateLiteral(t) => self.template(&t.quasis, &t.expressions),
            Expression::Identifier(id) => self.identifier(id),
            Expression::ThisExpression(this) => self.this(this.node_id.get()),
            Expression::ParenthesizedExpression(p) => self.of(&p.expression),
            Expression::SequenceExpression(s) => {
                s.expressions.last().map_or(vec![Val::Unknown], |e| self.of(e))
            }
            Expression::AssignmentExpression(a) => self.of(&a.right),
            Expression::AwaitExpression(a) => self.of(&a.argument),
            Expression::ConditionalExpression(c) => [self.of(&c.consequent), self.of(&c.alternate)].concat(),
            Expression::LogicalExpression(l) => [self.of(&l.left), self.of(&l.right)].concat(),
            Expression::BinaryExpression(_) => self.sum(expression),
            Expression::UnaryExpression(u) => self.unary(u.operator, &u.argument),
            Expression::ArrayExpression(list) => {
                let items =
                    list.elements.iter().map(|e| e.as_expression().map_or(Val::Unknown, |e| self.single(e)));
                vec![Val::List(items.collect())]
            }
            Expression::CallExpression(call) => self.call(call),
            Expression::NewExpression(new) => {
                let made =
                    self.things(&new.callee).into_iter().map(|p| Val::Thing(format!("new {p}").into()));
                let made: Vec<_> = made.collect();
                if made.is_empty() { vec![Val::Unknown] } else { made }
            }
            Expression::ChainExpression(chain) => match &chain.expression {
                ChainElement::CallExpression(call) => self.call(call),
                element => element.as_member_expression().map_or(vec![Val::Unknown], |m| self.member(m)),
            },
            other => other.as_member_expression().map_or(vec![Val::Unknown], |m| self.member(m)),
        }
    }

    /// The constant text that a sum or a call of a known function comes to.
    pub(super) fn node_text(&self, id: NodeId) -> Option<Rc<str>> {
        let mut values = match self.semantic.nodes().kind(id) {
            AstKind::CallExpression(call) => self.call(call),
            AstKind::BinaryExpression(sum) => {
                vec![self.plus(&self.single(&sum.left), &self.single(&sum.right))]
            }
            _ => return None,
        };
        match (values.pop(), values.is_empty()) {
            (Some(Val::Text(text)), true) => Some(text),
            _ => None,
        }
    }

    fn record(&self, object: &'a ObjectExpression<'a>) -> Val {
        let mut members = Vec::new();
        for property in object.properties.iter().take(FIELDS) {
            if let ObjectPropertyKind::ObjectProperty(property) = property
                && let Some(name) = key_name(self, &property.key)
            {
                members.push((name, self.single(&property.value)));
            }
        }
        Val::Record(members.into())
    }

    /// The one thing that an expression is, or unknown.
    fn single(&self, expression: &'a Expression<'a>) -> Val {
        let mut values = self.of(expression);
        if values.len() == 1 { values.pop().unwrap_or(Val::Unknown) } else { Val::Unknown }
    }

    /// A text, as long as not too many were made.
    fn text(&self, text: &str) -> Val {
        if text.len() > TEXT_BYTES / 4 {
            let end = crate::source::floor(text, 256);
            return Val::Start(text[..end].into());
        }
        Val::Text(text.into())
    }

    /// A text that was put together; all of them are bounded together.
    fn made(&self, text: String) -> Val {
        let Some(left) = self.text_bytes.get().checked_sub(text.len()) else { return Val::Unknown };
        self.text_bytes.set(left);
        Val::Text(text.into())
    }

    fn template(
        &self,
        quasis: &'a [oxc_ast::ast::TemplateElement<'a>],
        expressions: &'a [Expression<'a>],
    ) -> Vec<Val> {
        let mut sum = Val::Text("".into());
        for (index, quasi) in quasis.iter().enumerate() {
            let text = quasi.value.cooked.as_ref().map_or("", |c| c.as_str());
            sum = self.plus(&sum, &self.text(text));
            if let Some(expression) = expressions.get(index) {
                sum = self.plus(&sum, &self.single(expression));
            }
        }
        vec![sum]
    }

    /// A chain of `+`, which may be long: its left spine is walked, not descended.
    fn sum(&self, expression: &'a Expression<'a>) -> Vec<Val> {
        let mut operands = Vec::new();
        let mut at = expression;
        while let Expression::BinaryExpression(binary) = at {
            if binary.operator != BinaryOperator::Addition || operands.len() > 4_096 {
                return vec![Val::Unknown];
            }
            operands.push(&binary.right);
            at = binary.left.get_inner_expression();
        }
        let mut sum = self.single(at);
        for operand in operands.into_iter().rev() {
            sum = self.plus(&sum, &self.single(operand));
        }
        vec![sum]
    }

    fn plus(&self, left: &Val, right: &Val) -> Val {
        match (left, right) {
            (Val::Number(a), Val::Number(b)) => Val::Number(a + b),
            (Val::Text(a), right) => match fold::to_text(right) {
                Some(b) if b.is_empty() => Val::Text(a.clone()),
                Some(b) => self.made(format!("{a}{b}")),
                None => match right {
                    Val::Start(b) => Val::Start(format!("{a}{b}").into()),
                    _ => Val::Start(a.clone()),
                },
            },
            (Val::Start(a), _) => Val::Start(a.clone()),
            (left, Val::Text(b)) => match fold::to_text(left) {
                Some(a) => self.made(format!("{a}{b}")),
                None => Val::Unknown,
            },
            (left, right) => match (fold::to_text(left), fold::to_text(right)) {
                (Some(a), Some(b)) => self.made(format!("{a}{b}")),
                _ => Val::Unknown,
            },
        }
    }

    fn unary(&self, operator: UnaryOperator, argument: &'a Expression<'a>) -> Vec<Val> {
        let value = self.single(argument);
        vec![match (operator, value) {
            (UnaryOperator::UnaryNegation, Val::Number(n)) => Val::Number(-n),
            (UnaryOperator::UnaryPlus, Val::Number(n)) => Val::Number(n),
            (UnaryOperator::BitwiseNot, Val::Number(n)) => Val::Number(-n - 1.0),
            (UnaryOperator::LogicalNot, Val::List(_) | Val::Code) => Val::Text("false".into()),
            _ => Val::Unknown,
        }]
    }

    /// What a name can be.
    pub(super) fn identifier(&self, id: &'a IdentifierReference<'a>) -> Vec<Val> {
        let name = id.name.as_str();
        let symbol = id.reference_id.get().and_then(|r| self.semantic.scoping().get_reference(r).symbol_id());
        if let Some(symbol) = symbol {
            let mut values = self.symbol(symbol).to_vec();
            if self.is_still_the_browsers(symbol, name) {
                values.push(Val::Thing(names::join("", name)));
            }
            return values;
        }
        let mut values = Vec::new();
        if self.has_with {
            values.extend(self.inside_with(id.node_id.get(), name));
        }
        if !self.declared.contains(name) {
            values.push(Val::Thing(names::join("", name)));
        } else {
            values.push(Val::Unknown);
        }
        values
    }

    /// Inside `with (x)`, a name may mean a member of `x`.
    fn inside_with(&self, node: NodeId, name: &str) -> Vec<Val> {
        let mut found = Vec::new();
        for kind in self.semantic.nodes().ancestor_kinds(node) {
            if let AstKind::WithStatement(with) = kind
                && !with.object.span().contains_inclusive(self.semantic.nodes().kind(node).span())
            {
                found.extend(self.things(&with.object).iter().map(|p| Val::Thing(names::join(p, name))));
            }
        }
        found
    }

    /// The window, where `this` is it.
    fn this(&self, node: NodeId) -> Vec<Val> {
        let window = vec![Val::Thing("".into())];
        let nodes = self.semantic.nodes();
        for (id, kind) in nodes.ancestor_ids(node).map(|id| (id, nodes.kind(id))) {
            match kind {
                AstKind::Function(_) if self.form != Form::Module && self.is_called_plainly(id) => {
                    return window;
                }
                AstKind::Function(_) | AstKind::ClassBody(_) => return vec![Val::Unknown],
                _ => {}
            }
        }
        if self.form == Form::Script { window } else { vec![Val::Unknown] }
    }

    /// A member of something.
    pub(super) fn member(&self, member: &'a MemberExpression<'a>) -> Vec<Val> {
        match member {
            MemberExpression::StaticMemberExpression(m) => self.get(&m.object, m.property.name.as_str()),
            MemberExpression::ComputedMemberExpression(m) => self.get_computed(&m.object, &m.expression),
            MemberExpression::PrivateFieldExpression(_) => vec![Val::Unknown],
        }
    }

    /// `object[key]`.
    pub(super) fn get_computed(&self, object: &'a Expression<'a>, key: &'a Expression<'a>) -> Vec<Val> {
        let mut values = Vec::new();
        for key in self.of(key) {
            match fold::to_text(&key) {
                Some(name) => values.extend(self.get(object, &name)),
                None => values.push(Val::Unknown),
            }
        }
        values
    }

    /// `object.name`.
    pub(super) fn get(&self, object: &'a Expression<'a>, name: &str) -> Vec<Val> {
        self.of(object).into_iter().map(|value| fold::member(&value, name)).collect()
    }

    fn call(&self, call: &'a CallExpression<'a>) -> Vec<Val> {
        if let Some(member) = call.callee.get_inner_expression().as_member_expression()
            && let Some(name) = self.member_name(member)
        {
            let values = self.of(member.object());
            let arguments = self.arguments(&call.arguments);
            return values.iter().map(|value| self.call_member(value, &name, &arguments)).collect();
        }
        if let Some(returned) = self.returned(&call.callee) {
            return self.of(returned);
        }
        let arguments = self.arguments(&call.arguments);
        let callees = self.of(&call.callee);
        callees.iter().map(|callee| self.call_value(callee, &arguments)).collect()
    }

    /// The name of a member, if it is one constant.
    pub(super) fn member_name(&self, member: &'a MemberExpression<'a>) -> Option<Rc<str>> {
        match member {
            MemberExpression::StaticMemberExpression(m) => Some(m.property.name.as_str().into()),
            MemberExpression::ComputedMemberExpression(m) => {
                fold::to_text(&self.single(&m.expression)).map(Into::into)
            }
            MemberExpression::PrivateFieldExpression(_) => None,
        }
    }

    /// The values of arguments; the list ends before a spread that is no constant list.
    pub(super) fn arguments(&self, arguments: &'a [Argument<'a>]) -> Vec<Val> {
        let mut values = Vec::new();
        for argument in arguments.iter().take(4_096) {
            match argument {
                Argument::SpreadElement(spread) => match self.single(&spread.argument) {
                    Val::List(items) => values.extend(items.iter().cloned()),
                    _ => break,
                },
                other => values.push(other.as_expression().map_or(Val::Unknown, |e| self.single(e))),
            }
        }
        values
    }

    fn call_value(&self, callee: &Val, arguments: &[Val]) -> Val {
        match callee {
            Val::Thing(path) => match fold::call_thing(path, arguments) {
                Some(Val::Text(text)) => self.made(text.to_string()),
                Some(value) => value,
                None => Val::Thing(format!("{path}()").into()),
            },
            _ => Val::Unknown,
        }
    }

    fn call_member(&self, object: &Val, name: &str, arguments: &[Val]) -> Val {
        if name == "bind" && matches!(object, Val::Thing(_) | Val::Code) {
            return object.clone();
        }
        if let Val::Thing(path) = object {
            if let Some(value) = fold::call_thing(&names::join(path, name), arguments) {
                return value;
            }
            if matches!((&**path, name), ("Reflect", "get") | ("Object", "getOwnPropertyDescriptor")) {
                let key = arguments.get(1).and_then(fold::to_text);
                return match (arguments.first(), key) {
                    (Some(object), Some(key)) => fold::member(object, &key),
                    _ => Val::Unknown,
                };
            }
            return self.call_value(&Val::Thing(names::join(path, name)), arguments);
        }
        match fold::call_method(object, name, arguments) {
            Some(Val::Text(text)) => self.made(text.to_string()),
            Some(value) => value,
            None => Val::Unknown,
        }
    }
}

/// The right side of a plain assignment.
fn assigned<'a>(assignment: &'a AssignmentExpression<'a>) -> Option<&'a Expression<'a>> {
    let plain = matches!(
        assignment.operator,
        AssignmentOperator::Assign
            | AssignmentOperator::LogicalOr
            | AssignmentOperator::LogicalAnd
            | AssignmentOperator::LogicalNullish
    );
    plain.then_some(&assignment.right)
}

/// The name of a property in a pattern or an object, if it is constant.
pub(super) fn key_name<'a>(values: &Values<'_, 'a>, key: &'a PropertyKey<'a>) -> Option<Rc<str>> {
    match key {
        PropertyKey::StaticIdentifier(id) => Some(id.name.as_str().into()),
        PropertyKey::PrivateIdentifier(_) => None,
        key => fold::to_text(&values.single(key.as_expression()?)).map(Into::into),
    }
}

/// The names that a pattern takes out of a thing, as paths from it.
fn pattern_paths<'a>(
    values: &Values<'_, 'a>,
    pattern: &'a BindingPattern<'a>,
    path: &Rc<str>,
    found: &mut dyn FnMut(&'a BindingPattern<'a>, Rc<str>),
) {
    match pattern {
        BindingPattern::ObjectPattern(object) => {
            for property in &object.properties {
                if let Some(name) = key_name(values, &property.key) {
                    pattern_paths(values, &property.value, &names::join(path, &name), found);
                }
            }
        }
        BindingPattern::AssignmentPattern(with_default) => {
            pattern_paths(values, &with_default.left, path, found)
        }
        other => found(other, path.clone()),
    }
}
