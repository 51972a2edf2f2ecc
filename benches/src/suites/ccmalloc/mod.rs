//! The allocator: with hints against allocators that know none, and without hints against what
//! programs use today.
//!
//! | module | measures |
//! |---|---|
//! | [`hinted`] | trees and chains whose nodes lie side by side, in one process |
//! | [`whole_programs`] | programs that get everything from one allocator, each in a process of its own |

pub mod hinted;
pub mod whole_programs;

pub use hinted::{
    BST_HINTED_INSERT_2M, BST_HINTED_SEARCH_2M, CHAIN_HINTED_WALK_2M, HINTED_ALLOC_COST,
};
pub use whole_programs::{
    BUILD_ONCE_TREE, HINTED_MEMORY_BST, NULL_HINT_CONTROL, SMALL_RSS, UNHINTED,
};
