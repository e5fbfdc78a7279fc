//! The shape of a Python function: one `def run(inputs)`, and nothing that runs when the file is loaded.

use ruff_python_ast::{Expr, Parameters, Stmt, StmtFunctionDef};

use super::Source;
use crate::rules::python::{ENTRY, TOP_LEVEL};

/// Functions that make constants and nothing else.
const MAKERS: [&str; 34] = [
    "frozenset",
    "set",
    "dict",
    "tuple",
    "list",
    "range",
    "sorted",
    "len",
    "min",
    "max",
    "sum",
    "zip",
    "enumerate",
    "str",
    "int",
    "float",
    "bool",
    "abs",
    "round",
    "ord",
    "reversed",
    "compile",
    "namedtuple",
    "Decimal",
    "Fraction",
    "sqrt",
    "field",
    "auto",
    "date",
    "timedelta",
    "deque",
    "Counter",
    "OrderedDict",
    "defaultdict",
];

/// Methods that read and change nothing.
const METHODS: [&str; 14] = [
    "split",
    "splitlines",
    "join",
    "strip",
    "lower",
    "upper",
    "title",
    "items",
    "keys",
    "values",
    "copy",
    "union",
    "get",
    "replace",
];

/// Checks the top level of a file.
pub(super) fn check(source: &mut Source<'_>, body: &[Stmt]) {
    entry(source, body);
    for statement in body {
        top_level(source, statement);
    }
}

fn entry(source: &mut Source<'_>, body: &[Stmt]) {
    let function = &policy::lint().function;
    let mut found: Vec<&StmtFunctionDef> = Vec::new();
    for statement in body {
        match statement {
            Stmt::FunctionDef(def) if def.name.as_str() == function.entry => found.push(def),
            Stmt::Assign(assign) if assign.targets.iter().any(|t| is_name(t, &function.entry)) => {
                source.add_at(&ENTRY, statement, format!("{} must be a plain function", function.entry));
            }
            _ => {}
        }
    }
    match found.as_slice() {
        [] => source.add(
            &ENTRY,
            0..0,
            format!("there is no def {}({}) here", function.entry, function.parameter),
        ),
        [def] => signature(source, def),
        [_, second, ..] => source.add_at(&ENTRY, &second.name, format!("a second def {}", function.entry)),
    }
}

fn signature(source: &mut Source<'_>, def: &StmtFunctionDef) {
    let function = &policy::lint().function;
    let Parameters { posonlyargs, args, vararg, kwonlyargs, kwarg, .. } = &*def.parameters;
    let only = match (posonlyargs.as_slice(), args.as_slice()) {
        ([], [only]) | ([only], []) => Some(only),
        _ => None,
    };
    let is_exact =
        only.is_some_and(|p| p.parameter.name.as_str() == function.parameter && p.default.is_none());
    if !is_exact || vararg.is_some() || !kwonlyargs.is_empty() || kwarg.is_some() {
        let what = format!("{} takes exactly one parameter, {}", function.entry, function.parameter);
        source.add_at(&ENTRY, &*def.parameters, what);
    }
    if def.is_async || !def.decorator_list.is_empty() {
        source.add_at(&ENTRY, &def.name, format!("{} is neither async nor decorated", function.entry));
    }
}

fn is_name(expression: &Expr, name: &str) -> bool {
    matches!(expression, Expr::Name(n) if n.id.as_str() == name)
}

fn top_level(source: &mut Source<'_>, statement: &Stmt) {
    match statement {
        Stmt::Import(_) | Stmt::ImportFrom(_) | Stmt::Pass(_) | Stmt::TypeAlias(_) => {}
        Stmt::Expr(e) if matches!(&*e.value, Expr::StringLiteral(_) | Expr::EllipsisLiteral(_)) => {}
        Stmt::Assign(assign) if assign.targets.iter().all(is_plain_target) => constant(source, &assign.value),
        Stmt::AnnAssign(assign) if is_plain_target(&assign.target) => {
            constant(source, &assign.annotation);
            if let Some(value) = &assign.value {
                constant(source, value);
            }
        }
        Stmt::FunctionDef(def) => {
            for decorator in &def.decorator_list {
                decorated(source, &decorator.expression);
            }
            defaults(source, &def.parameters);
        }
        Stmt::ClassDef(class) => {
            for decorator in &class.decorator_list {
                decorated(source, &decorator.expression);
            }
            for argument in class.arguments.iter().flat_map(|a| a.args.iter()) {
                constant(source, argument);
            }
            for keyword in class.arguments.iter().flat_map(|a| a.keywords.iter()) {
                constant(source, &keyword.value);
            }
            for inner in &class.body {
                top_level(source, inner);
            }
        }
        other => source.add_at(&TOP_LEVEL, other, "this statement runs when the file is loaded"),
    }
}

/// A name, or names in a tuple; an attribute or an item would change something that is there.
fn is_plain_target(target: &Expr) -> bool {
    match target {
        Expr::Name(_) => true,
        Expr::Tuple(tuple) => tuple.elts.iter().all(is_plain_target),
        Expr::Starred(starred) => is_plain_target(&starred.value),
        _ => false,
    }
}

fn defaults(source: &mut Source<'_>, parameters: &Parameters) {
    let all = parameters.posonlyargs.iter().chain(&parameters.args).chain(&parameters.kwonlyargs);
    for parameter in all {
        if let Some(default) = &parameter.default {
            constant(source, default);
        }
    }
}

/// A decorator by name, or called with constants.
fn decorated(source: &mut Source<'_>, decorator: &Expr) {
    match decorator {
        Expr::Name(_) => {}
        Expr::Attribute(attribute) => decorated(source, &attribute.value),
        Expr::Call(call) => {
            decorated(source, &call.func);
            call.arguments.args.iter().for_each(|a| constant(source, a));
            call.arguments.keywords.iter().for_each(|k| constant(source, &k.value));
        }
        other => source.add_at(&TOP_LEVEL, other, "this decorator runs when the file is loaded"),
    }
}

/// Says so when an expression does more than name or make a constant.
fn constant(source: &mut Source<'_>, expression: &Expr) {
    match expression {
        Expr::StringLiteral(_)
        | Expr::BytesLiteral(_)
        | Expr::NumberLiteral(_)
        | Expr::BooleanLiteral(_)
        | Expr::NoneLiteral(_)
        | Expr::EllipsisLiteral(_)
        | Expr::Name(_)
        | Expr::Lambda(_)
        | Expr::FString(_) => {}
        Expr::Attribute(attribute) => constant(source, &attribute.value),
        Expr::UnaryOp(unary) => constant(source, &unary.operand),
        Expr::Starred(starred) => constant(source, &starred.value),
        Expr::BinOp(binary) => {
            constant(source, &binary.left);
            constant(source, &binary.right);
        }
        Expr::BoolOp(all) => all.values.iter().for_each(|e| constant(source, e)),
        Expr::Compare(compare) => {
            constant(source, &compare.left);
            compare.comparators.iter().for_each(|e| constant(source, e));
        }
        Expr::If(choice) => {
            [&choice.test, &choice.body, &choice.orelse].into_iter().for_each(|e| constant(source, e))
        }
        Expr::Tuple(tuple) => tuple.elts.iter().for_each(|e| constant(source, e)),
        Expr::List(list) => list.elts.iter().for_each(|e| constant(source, e)),
        Expr::Set(set) => set.elts.iter().for_each(|e| constant(source, e)),
        Expr::Subscript(subscript) => {
            constant(source, &subscript.value);
            constant(source, &subscript.slice);
        }
        Expr::Slice(slice) => {
            [&slice.lower, &slice.upper, &slice.step].into_iter().flatten().for_each(|e| constant(source, e));
        }
        Expr::Dict(dict) => {
            for item in &dict.items {
                item.key.iter().for_each(|e| constant(source, e));
                constant(source, &item.value);
            }
        }
        Expr::ListComp(c) => comprehension(source, &[&c.elt], &c.generators),
        Expr::SetComp(c) => comprehension(source, &[&c.elt], &c.generators),
        Expr::Generator(c) => comprehension(source, &[&c.elt], &c.generators),
        Expr::DictComp(c) => {
            let parts: Vec<&Expr> = c.key.as_deref().into_iter().chain([&*c.value]).collect();
            comprehension(source, &parts, &c.generators);
        }
        Expr::Call(call) if makes_constant(&call.func) => {
            call.arguments.args.iter().for_each(|a| constant(source, a));
            call.arguments.keywords.iter().for_each(|k| constant(source, &k.value));
        }
        other => source.add_at(&TOP_LEVEL, other, "this runs when the file is loaded, and is no constant"),
    }
}

fn comprehension(source: &mut Source<'_>, parts: &[&Expr], generators: &[ruff_python_ast::Comprehension]) {
    parts.iter().for_each(|e| constant(source, e));
    for generator in generators {
        constant(source, &generator.iter);
        generator.ifs.iter().for_each(|e| constant(source, e));
    }
}

/// A function of the list by its last name, or a method of texts and tables that changes nothing.
fn makes_constant(function: &Expr) -> bool {
    match function {
        Expr::Name(name) => MAKERS.contains(&name.id.as_str()) && name.id.as_str() != "compile",
        Expr::Attribute(attribute) => {
            let name = attribute.attr.as_str();
            METHODS.contains(&name) || (MAKERS.contains(&name) && matches!(&*attribute.value, Expr::Name(_)))
        }
        _ => false,
    }
}
