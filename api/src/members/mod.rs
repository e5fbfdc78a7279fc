//! Members: whoever holds a key that claimed a pseudonym.
//!
//! | module | what it is |
//! |---|---|
//! | [`token`] | proof that a request was made with a key |
//! | [`pace`] | how often a key may ask |
//! | [`http`] | claiming a pseudonym, and asking who one is |

pub mod http;
pub mod pace;
pub mod token;
