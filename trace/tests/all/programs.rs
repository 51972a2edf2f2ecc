//! The command under test.

pub(crate) use crate::tools::{SOURCES, command, compile, is_installed, numbers, succeed, text};

pub(crate) const TRACE: &str = env!("CARGO_BIN_EXE_ccscope-trace");
