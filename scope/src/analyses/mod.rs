//! What follows from a [`Profile`](crate::Profile): scores, findings, curves, misses, structures.
//!
//! An analysis reads a profile and nothing else; how the profile was captured does not matter. The
//! results are numbers and sentences, without layout: [`views`](crate::views) print them.

pub mod affinity;
pub mod curves;
pub mod diff;
pub mod fields;
pub mod findings;
pub mod growth;
pub mod leaks;
pub(crate) mod linked;
pub mod misses;
pub mod numbers;
pub mod pages;
pub mod regions;
pub mod replay;
pub mod retained;
pub mod sampled;
pub mod scores;
pub mod splitting;
pub mod structures;
#[cfg(test)]
pub(crate) mod test_profile;
pub mod types;
pub(crate) mod units;
pub mod waits;
