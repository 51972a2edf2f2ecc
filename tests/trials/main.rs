//! Programs as users wrote them in the first trials, one for each finding.
//!
//! Each module is one small program against the public interface. It asserts what the user was
//! promised, and failed before the finding was mended. `CcMalloc` serves everything, as in a
//! user's program.

mod hints;

#[global_allocator]
static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();

mod arena_indices;
mod ast_walk;
mod hash_chains;
mod lru_list;
mod morphed_again;
mod several_types;
mod trait_objects;
mod vectors_of_nodes;
mod walks;
