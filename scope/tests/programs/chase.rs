//! Follows a list of 4,096 nodes in random order, and reads an array of 4 KiB four times, as often
//! as the first argument says.

#[path = "common/mod.rs"]
mod common;

struct Node {
    next: *const Node,
    _rest: [u64; 5],
}

#[inline(never)]
fn site_nodes(count: usize) -> Vec<*mut Node> {
    let node = || Box::into_raw(Box::<Node>::new_uninit()).cast();
    (0..count).map(|_| node()).collect()
}

fn main() {
    let rounds: u32 = std::env::args()
        .nth(1)
        .map_or(1, |word| word.parse().unwrap());
    let mut random = common::Random::new();
    let nodes = site_nodes(4096);
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, random.next() as usize % (at + 1));
    }
    for pair in order.windows(2) {
        let node = nodes[pair[0]];
        unsafe { (*node).next = nodes[pair[1]] };
    }
    let last = nodes[*order.last().unwrap()];
    unsafe { (*last).next = std::ptr::null() };
    let array = vec![1_u64; 512];
    for _ in 0..rounds {
        let mut at: *const Node = nodes[order[0]];
        while !at.is_null() {
            at = unsafe { (&raw const (*at).next).read_volatile() };
        }
        for _ in 0..4 {
            for number in &array {
                unsafe { (&raw const *number).read_volatile() };
            }
        }
    }
    nodes.iter().for_each(|&node| common::print_chunk(node, 1));
    common::end();
}
