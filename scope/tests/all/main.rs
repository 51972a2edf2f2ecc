//! Integration tests, in one binary: each module is of one part.

mod capture;
mod cli;
mod lackey;
mod programs;
mod store;
