//! Programs as users wrote them, one for each finding of the first trials, against the public
//! interface. `CcMalloc` serves everything.

mod hints;

#[global_allocator]
static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();

mod arena_indices;
mod ast_walk;
mod graph_indices;
mod hash_chains;
mod lru_list;
mod morphed_again;
mod several_types;
mod shared_tree;
mod trait_objects;
mod vectors_of_nodes;
mod walks;
