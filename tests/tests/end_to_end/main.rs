//! The whole spine from outside: the real `sitegen`, the real nginx, a real file system. One binary, because linking
//! costs more than running.

mod bad_input;
mod feeds;
mod live_headers;
mod nginx_config;
mod publish_faults;
mod tree_verify;
