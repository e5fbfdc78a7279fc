//! The whole platform from outside: the real `sitegen`, the real nginx, a real file system, a real browser. One binary,
//! because linking costs more than running.

mod api;
mod api_described;
mod architecture;
mod bad_input;
mod bad_submissions;
mod bridge;
mod doctor;
mod egress;
mod feeds;
mod full_disk;
mod gates;
mod hostile_frame;
mod killed;
mod lint;
mod live_headers;
mod nginx_config;
mod operation;
mod pages;
mod playing;
mod publish_faults;
mod python_status;
mod sandbox;
mod saves;
mod saves_python;
mod snippet;
mod story;
mod submit_review;
mod tree_verify;
