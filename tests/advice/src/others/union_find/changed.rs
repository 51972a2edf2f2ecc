//! Parents and sizes in vectors, with four bytes each.

use super::before::touching;

pub fn smaller(size: usize) -> u64 {
    let mut parents: Vec<u32> = (0..size as u32).collect();
    let mut sizes = vec![1_u32; size];
    let mut joins = vec![0_u32; size];
    let sum = touching(size, |a, b| {
        let (mut a, mut b) = (find(&mut parents, a), find(&mut parents, b));
        if a == b {
            return false;
        }
        if sizes[a] < sizes[b] {
            std::mem::swap(&mut a, &mut b);
        }
        parents[b] = a as u32;
        sizes[a] += sizes[b];
        joins[a] += 1;
        true
    });
    joins.iter().enumerate().fold(sum, |sum, (number, &joins)| {
        sum ^ (number as f32 as u64 + u64::from(joins))
    })
}

fn find(parents: &mut [u32], mut at: usize) -> usize {
    while parents[at] as usize != at {
        let parent = parents[at] as usize;
        parents[at] = parents[parent];
        at = parent;
    }
    at
}
