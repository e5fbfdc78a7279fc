//! Review: what waits for a moderator, what it looks like, and what was decided.
//!
//! | module | what it is |
//! |---|---|
//! | [`http`] | `/api/review`: the queue, one version, decisions, takedowns, the audit |
//! | [`rating`] | `/api/ratings` |
//! | [`preview`] | opening a preview, and nginx's question whether a token may see it |

pub mod http;
pub mod preview;
pub mod rating;
