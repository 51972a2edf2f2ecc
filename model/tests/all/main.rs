//! Integration tests of `ccmodel`: the binary as users run it, and the footprint tier against a
//! simulated cache.

mod cli;
mod lru;
