//! Tests that cross crates stand in `all/`; here the README's examples become doctests.

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme {}
