//! Integration tests, in one binary: each module is of one part.

mod building;
mod capture;
mod cli;
mod dhat;
mod ends;
mod family;
mod hostile;
mod lackey;
mod programs;
mod store;
mod types;
mod unmodified;
