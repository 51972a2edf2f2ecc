//! The order of a type's fields: those used together are neighbours (T. Chilimbi, 1999, 6.2).
//!
//! `bbcache` counts which fields are accessed within a time of each other, for each *instance*: the
//! objects that one function allocates. Here an instance is a site, times are counts of accesses,
//! and accesses to different objects are never taken together. A [`Layout`] is judged without
//! running the program by the blocks that it keeps busy and by how much of them is used.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Bytes of a cache block.
pub const BLOCK: u64 = 64;

/// What an order has to know of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// In bytes.
    pub size: u64,
    /// In bytes, a power of two.
    pub align: u64,
}

/// An access to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldAccess {
    /// The site whose object it is.
    pub instance: u32,
    /// The object.
    pub object: u64,
    /// Index of the field.
    pub field: usize,
    /// A count of accesses.
    pub time: u64,
}

/// How often two fields are accessed together: the structure field affinity graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Affinities {
    fields: usize,
    /// By the smaller index, and then the larger one.
    edges: BTreeMap<(usize, usize), f64>,
}

impl Affinities {
    /// Fields of one object within an `interval` are used together as often as the one that is
    /// used less. An instance counts by its part of all accesses. O(accesses), times the fields
    /// that are used together.
    #[must_use]
    pub fn new(fields: usize, accesses: &[FieldAccess], interval: u64) -> Affinities {
        let mut instances: HashMap<u32, u64> = HashMap::new();
        for access in accesses {
            *instances.entry(access.instance).or_default() += 1;
        }
        let all = accesses.len().max(1) as f64;
        let mut edges: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        for (instance, counts) in intervals(&uses(accesses, interval)) {
            let weight = instances
                .get(&instance)
                .map_or(0.0, |&own| own as f64 / all);
            for (at, &(first, a)) in counts.iter().enumerate() {
                for &(second, b) in &counts[at + 1..] {
                    *edges.entry((first, second)).or_default() += weight * a.min(b) as f64;
                }
            }
        }
        Affinities { fields, edges }
    }

    /// 0 for fields that are never used together.
    #[must_use]
    pub fn of(&self, a: usize, b: usize) -> f64 {
        self.edges
            .get(&(a.min(b), a.max(b)))
            .copied()
            .unwrap_or(0.0)
    }
}

/// An instance, an object, an interval, and a field.
type Use = (u32, u64, u64, usize);

/// The accesses in the order of instances, objects, intervals and fields.
fn uses(accesses: &[FieldAccess], interval: u64) -> Vec<Use> {
    let of = |it: &FieldAccess| (it.instance, it.object, it.time / interval.max(1), it.field);
    let mut uses: Vec<Use> = accesses.iter().map(of).collect();
    uses.sort_unstable();
    uses
}

/// By instance, object and interval, accesses to each field.
fn intervals(uses: &[Use]) -> impl Iterator<Item = (u32, Vec<(usize, u64)>)> {
    let all = uses.chunk_by(|a, b| (a.0, a.1, a.2) == (b.0, b.1, b.2));
    all.map(|uses| {
        let of_field = uses.chunk_by(|a, b| a.3 == b.3);
        let counts = of_field.map(|uses| (uses[0].3, uses.len() as u64));
        (uses[0].0, counts.collect())
    })
}

/// Where fields lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Indices of the fields in the order of their addresses.
    pub order: Vec<usize>,
    /// By index of the field.
    pub offsets: Vec<u64>,
    /// With the padding at the end.
    pub size: u64,
}

impl Layout {
    /// Each field at the next offset that its alignment allows.
    #[must_use]
    pub fn new(fields: &[Extent], order: Vec<usize>) -> Layout {
        let (mut offsets, mut end) = (vec![0; fields.len()], 0u64);
        for &field in &order {
            let Extent { size, align } = fields[field];
            offsets[field] = end.next_multiple_of(align.max(1));
            end = offsets[field] + size;
        }
        let align = fields.iter().map(|field| field.align).max();
        Layout {
            order,
            offsets,
            size: end.next_multiple_of(align.unwrap_or(1).max(1)),
        }
    }

    /// Starts with the two fields of the largest affinity, and adds the field by which the
    /// configuration locality grows most, again and again (section 6.2.4). Where it does not grow,
    /// the next pair starts anew. Then come fields that are used with no other, the largest
    /// alignment first; they fill gaps before other fields where they fit.
    #[must_use]
    pub fn greedy(fields: &[Extent], affinities: &Affinities) -> Layout {
        let mut order: Vec<usize> = Vec::new();
        let mut left: BTreeSet<usize> = (0..fields.len().min(affinities.fields)).collect();
        loop {
            let gain = |&field: &usize| {
                let mut longer = order.clone();
                longer.push(field);
                Layout::new(fields, longer).affinity(affinities, field)
            };
            let best = { left.iter().copied() }
                .map(|field| (gain(&field), field))
                .filter(|&(gain, _)| gain > 0.0)
                .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
            let pairs = affinities.edges.iter();
            let heaviest = { pairs.filter(|((a, b), _)| left.contains(a) || left.contains(b)) }
                .max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
            let next = match (best, heaviest) {
                (Some((_, field)), _) => vec![field],
                (None, Some((&(a, b), _))) => vec![a, b],
                (None, None) => break,
            };
            order.extend(next.into_iter().filter(|field| left.remove(field)));
        }
        let mut rest: Vec<usize> = left.into_iter().collect();
        rest.sort_by_key(|&field| std::cmp::Reverse(fields[field].align));
        for field in rest {
            let size = |at: usize| {
                let mut longer = order.clone();
                longer.insert(at, field);
                Layout::new(fields, longer).size
            };
            // In the first gap that holds it, or at the end.
            let whole = Layout::new(fields, order.clone()).size;
            let gap = (1..order.len()).find(|&at| size(at) == whole);
            order.insert(gap.unwrap_or(order.len()), field);
        }
        Layout::new(fields, order)
    }

    /// Equation 4: the affinities of a field to all others, each as a part of the block that is
    /// left beyond their distance.
    #[must_use]
    pub fn affinity(&self, affinities: &Affinities, field: usize) -> f64 {
        let weight = |other: usize| {
            let distance = self.offsets[field].abs_diff(self.offsets[other]);
            BLOCK.saturating_sub(distance) as f64 / BLOCK as f64
        };
        let others = self.order.iter().filter(|&&other| other != field);
        others
            .map(|&other| weight(other) * affinities.of(field, other))
            .sum()
    }

    /// The sum of all fields' layout affinities.
    #[must_use]
    pub fn locality(&self, affinities: &Affinities) -> f64 {
        self.order
            .iter()
            .map(|&field| self.affinity(affinities, field))
            .sum()
    }

    /// What the accesses make of it, as if objects began at a block.
    #[must_use]
    pub fn metrics(&self, fields: &[Extent], accesses: &[FieldAccess], interval: u64) -> Metrics {
        let (mut blocks, mut used, mut intervals_) = (0u64, 0u64, 0u64);
        let mut active: Vec<u64> = Vec::new();
        for (_, counts) in intervals(&uses(accesses, interval)) {
            intervals_ += 1;
            active.clear();
            for (field, _) in counts {
                let (start, size) = (self.offsets[field], fields[field].size.max(1));
                active.extend(start / BLOCK..=(start + size - 1) / BLOCK);
                used += size;
            }
            active.sort_unstable();
            active.dedup();
            blocks += active.len() as u64;
        }
        Metrics {
            pressure: blocks as f64 / intervals_.max(1) as f64,
            utilisation: used as f64 / (blocks * BLOCK).max(1) as f64,
        }
    }
}

/// What a layout costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metrics {
    /// Equation 5: blocks that are accessed in an interval in which the object is (the block
    /// working set).
    pub pressure: f64,
    /// Equation 6: the part of them that is accessed.
    pub utilisation: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(count: usize) -> Vec<Extent> {
        vec![Extent { size: 8, align: 8 }; count]
    }

    fn accesses(of: &[(u32, u64, usize, u64)]) -> Vec<FieldAccess> {
        let access = |&(instance, object, field, time): &(u32, u64, usize, u64)| FieldAccess {
            instance,
            object,
            field,
            time,
        };
        of.iter().map(access).collect()
    }

    /// Object 7 of site 0: fields 0 and 2 in one interval of 10, twice and once; then 0 alone.
    /// Object 8 of site 1: 1 and 2. Site 0 has 4 of the 6 accesses: the edge 0-2 weighs 4/6, and
    /// 1-2 weighs 2/6.
    #[test]
    fn affinities_are_weighted_by_instance() {
        let accesses = accesses(&[
            (0, 7, 0, 1),
            (0, 7, 2, 2),
            (0, 7, 0, 9),
            (0, 7, 0, 10),
            (1, 8, 1, 11),
            (1, 8, 2, 12),
        ]);
        let affinities = Affinities::new(3, &accesses, 10);
        for (a, b, expected) in [(0, 2, 4.0 / 6.0), (2, 1, 2.0 / 6.0), (0, 1, 0.0)] {
            assert!((affinities.of(a, b) - expected).abs() < 1e-12, "{a} {b}");
        }
    }

    /// Words 0 to 9, of which 0 and 9 are used together: apart by 72 bytes, nothing of a block is
    /// left (monus); next to each other, 56 of 64 bytes are, for either one.
    #[test]
    fn distance_takes_from_affinity() {
        let accesses = accesses(&[(0, 1, 0, 0), (0, 1, 9, 1)]);
        let affinities = Affinities::new(10, &accesses, 10);
        let baseline = Layout::new(&words(10), (0..10).collect());
        assert!(baseline.locality(&affinities).abs() < 1e-12);
        let greedy = Layout::greedy(&words(10), &affinities);
        assert_eq!(greedy.order[..2], [0, 9]);
        assert!((greedy.affinity(&affinities, 9) - 56.0 / 64.0).abs() < 1e-12);
        assert!((greedy.locality(&affinities) - 112.0 / 64.0).abs() < 1e-12);
        // Two blocks with 8 bytes each; then one with 16.
        let [before, after] = [&baseline, &greedy].map(|it| it.metrics(&words(10), &accesses, 10));
        assert_eq!((before.pressure, after.pressure), (2.0, 1.0));
        assert_eq!((before.utilisation, after.utilisation), (0.125, 0.25));
    }

    /// Affinities 0-1: 3, 1-2: 2, 0-3: 2. After 0 and 1, field 2 would be 8 bytes from 1 and add
    /// 2 * 56/64; field 3 would be 16 bytes from 0 and add 2 * 48/64. So 2 comes first.
    #[test]
    fn the_nearest_gain_comes_first() {
        let edges = [((0, 1), 3.0), ((1, 2), 2.0), ((0, 3), 2.0)];
        let affinities = Affinities {
            fields: 4,
            edges: edges.into_iter().collect(),
        };
        assert_eq!(Layout::greedy(&words(4), &affinities).order, [0, 1, 2, 3]);
    }

    /// 0 and 3 are used together, and at other times 1 and 4. After the first pair no field adds
    /// anything, and the second pair starts anew.
    #[test]
    fn what_is_used_at_other_times_stays_together_too() {
        let mut fields = words(6);
        (fields[2].size, fields[5].size) = (56, 56);
        let affinities = Affinities {
            fields: 6,
            edges: [((0, 3), 5.0), ((1, 4), 2.0)].into_iter().collect(),
        };
        let order = Layout::greedy(&fields, &affinities).order;
        assert_eq!(order, [0, 3, 1, 4, 2, 5]);
    }

    /// A byte that nobody uses goes into the gap before a word.
    #[test]
    fn unused_fields_fill_gaps() {
        let mut fields = words(3);
        fields[0] = Extent { size: 4, align: 4 };
        fields[2] = Extent { size: 1, align: 1 };
        let accesses = accesses(&[(0, 1, 0, 0), (0, 1, 1, 1)]);
        let layout = Layout::greedy(&fields, &Affinities::new(3, &accesses, 10));
        assert_eq!((&*layout.order, layout.size), (&[0, 2, 1][..], 16));
    }

    /// `ParamsOxide` of `miniz_oxide` 0.9.1 (`deflate/core.rs`), as C would lay it out: 80 bytes.
    /// `flush_block` goes through its flags, the index of the block, what remains to be flushed,
    /// the buffer of bits and the buffer for output, which lie in two blocks of 64 bytes; sorted,
    /// in one.
    #[test]
    fn fields_of_a_published_struct_move_together() {
        let [byte, int, word] = [1, 4, 8].map(|size| Extent { size, align: size });
        let fields = [
            ("flags", int),
            ("greedy_parsing", byte),
            ("window_bits_max", byte),
            ("block_index", int),
            ("saved_match_dist", int),
            ("saved_match_len", int),
            ("saved_lit", byte),
            ("flush", byte),
            ("flush_ofs", int),
            ("flush_remaining", int),
            ("finished", byte),
            ("adler32", int),
            ("src_pos", word),
            ("out_buf_ofs", word),
            ("prev_return_status", int),
            ("saved_bit_buffer", int),
            ("saved_bits_in", int),
            ("local_buf", word),
        ];
        let extents: Vec<Extent> = fields.iter().map(|it| it.1).collect();
        let baseline = Layout::new(&extents, (0..fields.len()).collect());
        assert_eq!((baseline.offsets[17], baseline.size), (72, 80));
        let flushed = [
            "flags",
            "block_index",
            "flush_remaining",
            "saved_bit_buffer",
            "saved_bits_in",
            "local_buf",
        ];
        let used = (0..fields.len()).filter(|&at| flushed.contains(&fields[at].0));
        let used: Vec<usize> = used.collect();
        let access = |(time, &field): (u64, &usize)| FieldAccess {
            instance: 0,
            object: 1,
            field,
            time,
        };
        let accesses: Vec<FieldAccess> = (0..)
            .zip(used.iter().cycle().take(60))
            .map(access)
            .collect();
        let better = Layout::greedy(&extents, &Affinities::new(fields.len(), &accesses, 6));
        let [before, after] = [&baseline, &better].map(|it| it.metrics(&extents, &accesses, 6));
        assert_eq!((before.pressure, after.pressure), (2.0, 1.0));
        // 28 bytes of one or two blocks.
        assert_eq!(
            (before.utilisation, after.utilisation),
            (28.0 / 128.0, 28.0 / 64.0)
        );
        assert!(used.iter().all(|&field| better.offsets[field] < 32));
        assert!(better.size <= baseline.size);
    }
}
