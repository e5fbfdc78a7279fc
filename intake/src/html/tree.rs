//! The least tree that html5ever's tree builder can work on: names and depths, no children.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;

use html5ever::tendril::StrTendril;
use html5ever::tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::{Attribute, ExpandedName, QualName, local_name, ns};

/// A node: its name and how deep it lies.
#[derive(Debug, Clone)]
pub(super) struct Node(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    name: QualName,
    depth: Cell<u32>,
    is_integration_point: bool,
}

/// The tree, as far as it is kept.
#[derive(Debug)]
pub(super) struct Tree {
    document: Node,
    /// The depth of the deepest element so far.
    pub(super) depth: Cell<u32>,
}

impl Default for Tree {
    fn default() -> Self {
        Self { document: Node::nameless(0), depth: Cell::new(0) }
    }
}

impl Node {
    fn nameless(depth: u32) -> Self {
        let name = QualName::new(None, ns!(), local_name!(""));
        Self(Rc::new(Inner { name, depth: Cell::new(depth), is_integration_point: false }))
    }
}

impl Tree {
    fn place(&self, child: NodeOrText<Node>, depth: u32) {
        if let NodeOrText::AppendNode(node) = child {
            node.0.depth.set(depth);
            self.depth.set(self.depth.get().max(depth));
        }
    }
}

impl TreeSink for Tree {
    type Handle = Node;
    type Output = ();
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) {}

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Node {
        self.document.clone()
    }

    fn elem_name<'a>(&'a self, target: &'a Node) -> ExpandedName<'a> {
        target.0.name.expanded()
    }

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, _: ElementFlags) -> Node {
        let is_integration_point = *name.local == *"annotation-xml"
            && attrs.iter().any(|a| {
                a.name.local == local_name!("encoding")
                    && ["text/html", "application/xhtml+xml"].iter().any(|t| a.value.eq_ignore_ascii_case(t))
            });
        Node(Rc::new(Inner { name, depth: Cell::new(0), is_integration_point }))
    }

    fn create_comment(&self, _: StrTendril) -> Node {
        Node::nameless(0)
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Node {
        Node::nameless(0)
    }

    fn append(&self, parent: &Node, child: NodeOrText<Node>) {
        self.place(child, parent.0.depth.get() + 1);
    }

    fn append_based_on_parent_node(&self, element: &Node, _: &Node, child: NodeOrText<Node>) {
        self.place(child, element.0.depth.get() + 1);
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    fn get_template_contents(&self, target: &Node) -> Node {
        Node::nameless(target.0.depth.get())
    }

    fn same_node(&self, x: &Node, y: &Node) -> bool {
        Rc::ptr_eq(&x.0, &y.0)
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &Node, child: NodeOrText<Node>) {
        self.place(child, sibling.0.depth.get());
    }

    fn add_attrs_if_missing(&self, _: &Node, _: Vec<Attribute>) {}

    fn remove_from_parent(&self, _: &Node) {}

    fn reparent_children(&self, _: &Node, _: &Node) {}

    fn is_mathml_annotation_xml_integration_point(&self, target: &Node) -> bool {
        target.0.is_integration_point
    }
}
