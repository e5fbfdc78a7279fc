//! Every check a submission passes, the same on the creator's machine as on the server.

pub mod address;
pub mod archive;
pub mod cover;
pub mod css;
pub mod data;
pub mod document;
pub mod finding;
pub mod html;
pub mod js;
pub mod json;
pub mod python;
pub mod rules;
pub mod scan;
pub mod sidecar;
pub mod source;
pub mod submission;
pub mod tf;
