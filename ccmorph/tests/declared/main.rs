//! ccmorph in a program that has declared its global allocator: places and frees that do not go
//! through it. A process of its own, as the declaration holds for all of it.

#[global_allocator]
static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();

/// What each test of the shared modules calls first.
fn begin() {
    // SAFETY: the global allocator is a `CcMalloc`, as is declared above.
    unsafe { ccmalloc::declare_global() };
}

#[path = "../all/kinds.rs"]
mod kinds;
#[path = "../all/pointers.rs"]
mod pointers;
#[path = "../all/sizes.rs"]
mod sizes;
#[path = "../all/tree.rs"]
mod tree;
