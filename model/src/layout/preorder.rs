//! A forest in depth-first order: the form in which layouts are computed.
//!
//! Every subtree is a range, and one array is the whole forest: the subtree of `i` is `i..i +
//! size[i]`, and its children are found by skipping from sibling to sibling. The heaviest child
//! comes first, so the numbers are the order of [`Layout::DepthFirst`](crate::Layout::DepthFirst).

use crate::Shape;

/// A forest whose nodes are numbered depth-first, heavier children first; equally heavy ones stay
/// in link order.
pub(super) struct Preorder {
    /// By node of the shape: its depth-first number.
    number: Vec<u32>,
    /// By depth-first number: the nodes of the subtree.
    size: Vec<u32>,
    /// By depth-first number: the weight of the subtree; `None` where its size is its weight.
    weight: Option<Vec<f32>>,
}

impl Preorder {
    /// Renumbers a shape. `weight` has for each node the weight of its subtree, never less than
    /// that of a child; without it the size is the weight. O(n log d) for nodes of up to d
    /// children, and two to four sequential passes.
    pub(super) fn new(shape: &Shape, weight: Option<&[f32]>) -> Preorder {
        let sizes = shape.subtree_nodes();
        let mut number = vec![0u32; shape.len()];
        let mut next_root = 0;
        for root in shape.roots() {
            number[root as usize] = next_root;
            next_root += sizes[root as usize];
        }
        let mut sorted: Vec<u32> = Vec::new();
        for v in 0..shape.nodes() {
            let mut next = number[v as usize] + 1;
            let heavier = |a: u32, b: u32| match weight {
                None => sizes[a as usize] > sizes[b as usize],
                Some(weight) => weight[a as usize] > weight[b as usize],
            };
            match *shape.children(v) {
                [] => {}
                [only] => number[only as usize] = next,
                [a, b] => {
                    let (first, second) = if heavier(b, a) { (b, a) } else { (a, b) };
                    number[first as usize] = next;
                    number[second as usize] = next + sizes[first as usize];
                }
                ref children => {
                    sorted.clear();
                    sorted.extend_from_slice(children);
                    sorted.sort_by(|&a, &b| match weight {
                        None => sizes[b as usize].cmp(&sizes[a as usize]),
                        Some(weight) => weight[b as usize].total_cmp(&weight[a as usize]),
                    });
                    for &child in &sorted {
                        number[child as usize] = next;
                        next += sizes[child as usize];
                    }
                }
            }
        }
        Preorder {
            size: renumbered(&number, &sizes),
            weight: weight.map(|weight| renumbered(&number, weight)),
            number,
        }
    }

    pub(super) fn tree(&self) -> Tree<'_> {
        Tree {
            size: &self.size,
            weight: self.weight.as_deref(),
        }
    }

    /// By node of the shape: its depth-first number.
    pub(super) fn numbers(&self) -> &[u32] {
        &self.number
    }
}

/// `by_node` in the order of the numbers.
fn renumbered<T: Copy + Default>(number: &[u32], by_node: &[T]) -> Vec<T> {
    let mut renumbered = vec![T::default(); number.len()];
    for (&at, &value) in number.iter().zip(by_node) {
        renumbered[at as usize] = value;
    }
    renumbered
}

/// A forest given by its subtree sizes in depth-first order, with weights that no child exceeds its
/// parent in.
#[derive(Clone, Copy)]
pub(super) struct Tree<'a> {
    size: &'a [u32],
    weight: Option<&'a [f32]>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(size: &'a [u32], weight: Option<&'a [f32]>) -> Tree<'a> {
        Tree { size, weight }
    }

    pub(super) fn len(self) -> usize {
        self.size.len()
    }

    pub(super) fn sizes(self) -> &'a [u32] {
        self.size
    }

    pub(super) fn size(self, v: u32) -> u32 {
        self.size[v as usize]
    }

    /// The weight of the subtree of `v`: its size where no weights were given.
    #[expect(
        clippy::cast_precision_loss,
        reason = "seven digits are enough to choose the heavier"
    )]
    pub(super) fn weight(self, v: u32) -> f32 {
        match self.weight {
            None => self.size[v as usize] as f32,
            Some(weight) => weight[v as usize],
        }
    }

    /// `v` as something to choose: the greater is heavier, or as heavy and has the smaller number.
    pub(super) fn candidate(self, v: u32) -> Candidate {
        // Numbers that are not negative compare as their bits do.
        Candidate(u64::from(self.weight(v).to_bits()) << 32 | u64::from(!v))
    }

    pub(super) fn roots(self) -> Siblings<'a> {
        Siblings {
            size: self.size,
            next: 0,
            end: count_u32(self.size.len()),
        }
    }

    pub(super) fn roots_by_weight(self) -> impl DoubleEndedIterator<Item = u32> {
        let mut roots: Vec<Candidate> = self.roots().map(|root| self.candidate(root)).collect();
        roots.sort_unstable();
        roots.into_iter().rev().map(Candidate::node)
    }

    pub(super) fn children(self, v: u32) -> Siblings<'a> {
        Siblings {
            size: self.size,
            next: v + 1,
            end: v + self.size[v as usize],
        }
    }
}

/// Nodes with one parent; see [`Tree::children`].
pub(super) struct Siblings<'a> {
    size: &'a [u32],
    next: u32,
    end: u32,
}

impl Iterator for Siblings<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.next >= self.end {
            return None;
        }
        let v = self.next;
        self.next += self.size[v as usize];
        Some(v)
    }
}

/// A node with its weight, in one word, ordered by the weight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate(u64);

impl Candidate {
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
    pub(super) fn node(self) -> u32 {
        !(self.0 as u32)
    }

    pub(super) fn weight(self) -> f32 {
        f32::from_bits((self.0 >> 32) as u32)
    }
}

/// Appends the sizes that subtrees have within a part of a tree; `nodes` names the part in
/// depth-first order. O(n).
pub(super) fn local_sizes(nodes: &[u32], whole: Tree<'_>, sizes: &mut Vec<u32>) {
    let from = sizes.len();
    sizes.resize(from + nodes.len(), 0);
    // Walking backwards, the nodes of a subtree are those since its end: skip from sibling to
    // sibling.
    let sizes = &mut sizes[from..];
    for at in (0..nodes.len()).rev() {
        let end = nodes[at] + whole.size(nodes[at]);
        let mut next = at + 1;
        while next < nodes.len() && nodes[next] < end {
            next += sizes[next] as usize;
        }
        sizes[at] = count_u32(next - at);
    }
}

/// For counts that are bounded by the number of nodes, hence by 32 bits.
pub(super) fn count_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
