//! Integration tests, in one binary: each module is of one part.

mod capture;
mod cli;
mod dhat;
mod lackey;
mod programs;
mod store;
