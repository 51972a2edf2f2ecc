//! Integration tests, in one binary: each module is of one part.

mod building;
mod capture;
mod cli;
mod store;
mod types;
