//! Integration tests, in one binary: each module is of one part.

mod allocators;
mod analyses;
mod browser;
mod building;
mod capture;
mod cli;
mod dhat;
mod ends;
mod family;
mod full;
mod hostile;
mod lackey;
mod memory;
mod misses;
mod page;
mod page_profile;
mod page_views;
mod programs;
mod regions;
mod store;
mod trace;
mod trace_pages;
mod types;
mod unmodified;
mod vectors;
mod views;
