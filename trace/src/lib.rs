//! Every load and store of a program, with names: what `ccscope trace` writes.
//!
//! [`run`] is the command. [`server`] answers the questions of the tracer in the traced process, by
//! [`instructions`] and, for patches, `bodies` and `branches`; their language is [`wire`].
//! [`reader`] reads what it wrote, [`names`] knows what addresses are, [`text`], `tables` and
//! [`pages`] are forms of output, and [`import`] reads traces of other tools.

// Modules, lowest first: `wire`, `reader`, `import`, `instructions`, `branches`, `bodies`,
// `server`, `names`, `text`, `pages`, `tables`, `command`.

mod bodies;
mod branches;
mod command;
pub mod import;
pub mod instructions;
pub mod names;
pub mod pages;
pub mod reader;
pub mod server;
#[cfg(feature = "parquet")]
pub mod tables;
pub mod text;
#[cfg(test)]
#[expect(
    dead_code,
    reason = "under test nobody calls the functions that the library exports"
)]
#[path = "../tracer/lib.rs"]
mod tracer;
#[path = "../tracer/wire.rs"]
pub mod wire;

pub use command::run;
