//! The allocator: with hints, against allocators without; and without hints, in whole programs.
//!
//! - [`hinted`]: trees and chains, all allocators in one process.
//! - [`whole_programs`]: programs under one allocator, each in a process of its own.

pub mod hinted;
pub mod whole_programs;

pub use hinted::{
    BST_HINTED_INSERT_2M, BST_HINTED_SEARCH_2M, CHAIN_HINTED_WALK_2M, HINTED_ALLOC_COST,
};
pub use whole_programs::{
    BUILD_ONCE_TREE, HINTED_MEMORY_BST, NULL_HINT_CONTROL, SMALL_RSS, UNHINTED,
};
