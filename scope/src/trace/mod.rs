//! Every load and store of a program, with names: what `ccscope trace` writes.
//!
//! [`server`] answers the questions of the tracer in the traced process, by [`instructions`] and,
//! for patches, `bodies` and `branches`; their language is [`wire`]. [`reader`] reads what it
//! wrote, [`names`] knows what addresses are, [`text`], `tables` and [`pages`] are forms of output,
//! and [`import`] reads traces of other tools.

mod bodies;
mod branches;
pub mod import;
pub mod instructions;
pub mod names;
pub mod pages;
pub mod reader;
pub mod server;
#[cfg(feature = "parquet")]
pub mod tables;
pub mod text;
#[path = "../../tracer/wire.rs"]
pub mod wire;
