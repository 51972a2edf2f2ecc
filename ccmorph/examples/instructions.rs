//! Morphs a complete tree, for callgrind to count the instructions that a morph takes.
//!
//! ```text
//! cargo build --release -p ccmorph --example instructions
//! for morphs in 1 3; do
//!     valgrind --tool=callgrind --callgrind-out-file=/dev/null \
//!         target/release/examples/instructions $morphs declared depth-first
//! done
//! ```
//!
//! The difference of the two counts, divided by 2 * 65,535, is the instructions a node: 394. It is
//! 500 without `declared`, the call of `declare_global`. Without `depth-first`, in the layout that
//! the model chooses, it is 1006 and 1112.

use ccmorph::{Layout, Machine, Morph, TreeNode};

#[global_allocator]
static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();

/// 24 bytes.
#[derive(TreeNode)]
struct Node {
    key: u64,
    #[child]
    kids: [Option<Box<Node>>; 2],
}

fn tree(levels: u32, key: u64) -> Option<Box<Node>> {
    let below = levels.checked_sub(1)?;
    let kids = [tree(below, 2 * key), tree(below, 2 * key + 1)];
    Some(Box::new(Node { key, kids }))
}

fn main() -> Result<(), ccmorph::MorphError> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|other| other == word);
    if has("declared") {
        // SAFETY: the global allocator is a `CcMalloc`, as is declared above.
        unsafe { ccmalloc::declare_global() };
    }
    let machine = Machine::thesis();
    let mut morph = Morph::new().machine(&machine);
    if has("depth-first") {
        morph = morph.layout(Layout::DepthFirst);
    }
    let mut root = tree(16, 1);
    let morphs = words.first().and_then(|word| word.parse().ok());
    for _ in 0..morphs.unwrap_or(1) {
        morph.run(&mut root, Node::children)?;
    }
    println!("the root is {}", root.map_or(0, |node| node.key));
    Ok(())
}
