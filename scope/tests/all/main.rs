//! Integration tests of `ccscope`.

mod cli;
