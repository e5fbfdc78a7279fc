//! The kinds of messages (PROTOCOL.md §7) and the numbers of operations (§7.3).
//!
//! Used by `turn`, which reads the parent's messages and sends the worker's.

use pyo3::pyclass::CompareOp;

/// INIT, once and first.
pub(super) const INIT: u8 = 0x01;
/// Runs a source for the value of its last expression.
pub(super) const EVAL: u8 = 0x02;
/// Runs a source.
pub(super) const EXEC: u8 = 0x03;
/// Calls something.
pub(super) const CALL: u8 = 0x04;
/// Reads a global.
pub(super) const GET: u8 = 0x05;
/// Sets a global.
pub(super) const SET: u8 = 0x06;
/// Deletes a global.
pub(super) const DEL: u8 = 0x07;
/// Registers a module.
pub(super) const MODULE: u8 = 0x08;
/// Lets `open()` reach a directory.
pub(super) const MOUNT: u8 = 0x09;
/// An operation on an object.
pub(super) const OP: u8 = 0x0a;
/// Collects cycles.
pub(super) const COLLECT: u8 = 0x0b;
/// What a callout is answered with.
pub(super) const RETURN: u8 = 0x20;
/// A callout ended with an exception.
pub(super) const RAISE: u8 = 0x21;

/// The answer to INIT.
pub(super) const READY: u8 = 0x81;
/// The answer to any other request.
pub(super) const VALUE: u8 = 0x82;
/// The same, when an exception left the engine.
pub(super) const ERROR: u8 = 0x83;
/// Calls a function of the parent.
pub(super) const CALLBACK: u8 = 0x90;
/// Asks for the source of a module.
pub(super) const LOAD: u8 = 0x91;
/// Printed text.
pub(super) const OUTPUT: u8 = 0x92;
/// Why the worker ends.
pub(super) const FATAL: u8 = 0x9f;

/// The version of the protocol.
pub(super) const PROTOCOL: u32 = 1;
/// The longest message before INIT, and the least that INIT may set.
pub(super) const MESSAGE_MIN: usize = 1 << 10;
/// The most that INIT may set.
pub(super) const MESSAGE_MAX: usize = (1 << 31) - 1;
/// Levels of containers in a value.
pub(super) const DEPTH_MAX: u32 = 200;
/// Callouts within callouts.
pub(super) const CALLOUTS_MAX: u32 = 64;
/// Exceptions of the parent that are remembered in one top-level request.
pub(super) const TOKENS_MAX: usize = 256;
/// Class names in one RAISE.
pub(super) const NAMES_MAX: usize = 64;

/// An operation on an object.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operation {
    GetAttr,
    SetAttr,
    GetItem,
    SetItem,
    Len,
    Contains,
    Iter,
    Next,
    Bool,
    Hash,
    Compare(CompareOp),
    Repr,
    Str,
    Dir,
}

impl Operation {
    /// The operation with this number, and how many operands it takes.
    pub(super) fn parse(number: u8) -> Option<(Operation, usize)> {
        Some(match number {
            1 => (Operation::GetAttr, 1),
            2 => (Operation::SetAttr, 2),
            3 => (Operation::GetItem, 1),
            4 => (Operation::SetItem, 2),
            5 => (Operation::Len, 0),
            6 => (Operation::Contains, 1),
            7 => (Operation::Iter, 0),
            8 => (Operation::Next, 0),
            9 => (Operation::Bool, 0),
            10 => (Operation::Hash, 0),
            11 => (Operation::Compare(CompareOp::Lt), 1),
            12 => (Operation::Compare(CompareOp::Le), 1),
            13 => (Operation::Compare(CompareOp::Eq), 1),
            14 => (Operation::Compare(CompareOp::Ne), 1),
            15 => (Operation::Compare(CompareOp::Gt), 1),
            16 => (Operation::Compare(CompareOp::Ge), 1),
            17 => (Operation::Repr, 0),
            18 => (Operation::Str, 0),
            19 => (Operation::Dir, 0),
            _ => return None,
        })
    }
}
