//! Inserts 1,000 random keys into a binary tree and looks 2,000 up.

#[path = "common/mod.rs"]
mod common;

struct Node {
    key: u32,
    count: u8,
    children: [Option<Box<Node>>; 2],
}

/// Stores each field by itself, which the compiler would make one `memset` or `memcpy`.
fn new(key: u32) -> Box<Node> {
    let node = Box::into_raw(Box::<Node>::new_uninit()).cast::<Node>();
    unsafe {
        (&raw mut (*node).key).write_volatile(key);
        (&raw mut (*node).count).write_volatile(0);
        (&raw mut (*node).children[0]).write_volatile(None);
        (&raw mut (*node).children[1]).write_volatile(None);
        Box::from_raw(node)
    }
}

fn insert(root: &mut Option<Box<Node>>, key: u32) {
    let mut at = root;
    while let Some(node) = at {
        if node.key == key {
            node.count += 1;
            return;
        }
        at = &mut node.children[usize::from(key > node.key)];
    }
    *at = Some(new(key));
}

fn count(mut at: &Option<Box<Node>>, key: u32) -> u8 {
    while let Some(node) = at {
        if node.key == key {
            return node.count + 1;
        }
        at = &node.children[usize::from(key > node.key)];
    }
    0
}

fn print(at: &Option<Box<Node>>) {
    if let Some(node) = at {
        common::print_chunk(&raw const **node, 1);
        node.children.iter().for_each(print);
    }
}

fn main() {
    let mut random = common::Random::new();
    let mut root = None;
    for _ in 0..1000 {
        insert(&mut root, random.next() as u32 % 2000);
    }
    println!(
        "{}",
        (0..2000)
            .map(|key| u32::from(count(&root, key)))
            .sum::<u32>()
    );
    print(&root);
    common::end();
    std::mem::forget(root);
}
