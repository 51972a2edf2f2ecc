//! The work of `sites` under dhat-rs.

#[expect(dead_code, reason = "its `main`")]
#[path = "sites.rs"]
mod sites;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

fn main() {
    let _profiler = dhat::Profiler::new_heap();
    assert!(sites::work());
}
