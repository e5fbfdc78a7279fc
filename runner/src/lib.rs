//! Runs one small untrusted Python function at a time, in a process that can reach nothing and lives for one call.
//!
//! # Theory of operation
//!
//! Four kinds of processes, all from this one program:
//!
//! - The *supervisor* (`call`, `serve`, `suite`, `bench`) runs with its caller's rights. It owns the cgroup slots, the
//!   clock, and the far end of every pipe. It never runs Python. As a service and as a dry run it gives up what it does
//!   not need once everything is open, programs included.
//! - The *spawner* was started before that, and starts a zygote whenever the supervisor asks: nothing else, ever.
//! - The *zygote* is the same program started anew with an empty environment, its standard input the control socket.
//!   It starts CPython, loads the safe modules, moves into namespaces of its own (network, mount, ipc, uts, cgroup;
//!   a user namespace first if it is not root), pivots into an empty read-only root, drops all capabilities but four,
//!   and takes a Landlock domain and a seccomp filter. From then on it does one thing: fork on order. It has one
//!   thread and runs no user code, ever.
//! - A *child* is one call. It is forked from the zygote into fresh namespaces but is a child of the *supervisor*
//!   (`CLONE_PARENT`), which holds its pidfd, kills it at the deadline and reaps it. It is process 1 of its pid
//!   namespace, so its death ends whatever it started.
//!
//! Between them run four things. The control socket (`SOCK_SEQPACKET`, supervisor to zygote) carries orders of twelve
//! bytes with three descriptors, answered with a pid and a pidfd. The frames (a socket pair, the child's number 0)
//! carry the request one way and `Hello` and a reply the other. Two pipes (numbers 1 and 2) carry what user code
//! prints. The files through which a child joins its cgroups were given to the zygote at its start.
//!
//! The service has a second supervisor, whose zygote has loaded bandit: a child of that one takes the same steps and
//! then reads a function's file instead of running it.
//!
//! The life of one call:
//!
//! 1. The supervisor checks source and inputs, takes a free slot, makes the pairs, and sends an order.
//! 2. The zygote forks. The child takes the steps of [`confine::Step`] in order, looks at itself, loads its filter,
//!    and says `Hello`. A step that fails ends the call, and no request is read.
//! 3. The child reads the request. A source is compiled in a child of its own and the code kept by digest; running
//!    unmarshals that code, calls `run(inputs)` once, and writes the answer as a frame.
//! 4. The child leaves with `_exit`. The supervisor reaps it, reads the slot's counters, decides the [`outcome`] from
//!    what it saw itself first and from what the child claims last, empties the slot and puts it back in the queue.
//!
//! # Files
//!
//! | file | what it is |
//! |---|---|
//! | [`supervisor`] | slots, clock, pipes, and the judgement of each call |
//! | [`spawner`] | starts zygotes for a supervisor that may start nothing |
//! | [`zygote`] | the warm process that forks |
//! | [`child`] | the life of one call, as a numbered list |
//! | [`confine`] | the layers, one file each |
//! | [`engine`] | the boundary to CPython; `prelude.py` and `linter.py` are its other side |
//! | [`engine::interpreter`] | how CPython is started |
//! | [`wire`] | frames |
//! | [`json`] | strict JSON, both ways |
//! | [`limits`] | what a call may use |
//! | [`outcome`] | how a call ended |
//! | [`cache`] | compiled code by digest |
//! | [`mod@bench`] | what a call costs |
//! | [`soak`] | many calls, and what the machine holds before and after |
//! | [`inspect`] | a child as the host sees it |
//! | [`suite`] | runs `python-test-suite.py` in both modes |
//! | [`control`] | an attack outside the sandbox, which must succeed |
//! | [`canary`] | what an attack may try to reach, and what tells |
//! | [`gate`] | whether Python is open |
//! | [`serve`] | HTTP over a Unix socket |
//! | [`queue`] | who is called next |
//! | [`doctor`] | one line for each layer |
//! | [`worker`] | `spy-worker`, the other program of this crate: see `PROTOCOL.md` |
//! | [`sys`] | the only unsafe code beside the CPython boundary, [`engine`] |

pub mod bench;
pub mod cache;
pub mod canary;
pub mod child;
pub mod confine;
pub mod control;
pub mod doctor;
pub mod engine;
pub mod gate;
pub mod inspect;
pub mod json;
pub mod limits;
pub mod outcome;
pub mod queue;
pub mod serve;
pub mod soak;
pub mod spawner;
pub mod suite;
pub mod supervisor;
pub mod sys;
pub mod wire;
pub mod worker;
pub mod zygote;
