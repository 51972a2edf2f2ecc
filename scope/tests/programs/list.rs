//! Builds a linked list of 1,000 nodes, adds them up five times, and reverses it.

#[path = "common/mod.rs"]
mod common;

struct Node {
    value: u64,
    next: Option<Box<Node>>,
}

fn sum(mut list: &Option<Box<Node>>) -> u64 {
    let mut sum = 0;
    while let Some(node) = list {
        sum += node.value;
        list = &node.next;
    }
    sum
}

fn main() {
    let mut random = common::Random::new();
    let mut list = None;
    for _ in 0..1000 {
        list = Some(Box::new(Node {
            value: random.next(),
            next: list,
        }));
    }
    println!("{}", (0..5).map(|_| sum(&list)).sum::<u64>());
    let mut reversed = None;
    while let Some(mut node) = list {
        list = node.next.take();
        node.next = reversed;
        reversed = Some(node);
    }
    let mut at = &reversed;
    while let Some(node) = at {
        common::print_chunk(&raw const **node, 1);
        at = &node.next;
    }
    common::end();
    std::mem::forget(reversed);
}
