//! Submissions: an upload becomes a job, and its creator sees how far it has come.
//!
//! | module | what it is |
//! |---|---|
//! | [`multipart`] | the body, in parts as it arrives |
//! | [`upload`] | the parts, streamed into the staging folder of a new job |
//! | [`http`] | `/api/submissions`, `/api/jobs/{id}`, and taking a work back |

pub mod http;
pub mod multipart;
pub mod upload;
