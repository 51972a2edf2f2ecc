//! A profile of any size, with stacks, curves and chunks as programs have them.

use ccscope::profile::{
    Chunk, Edge, Field, Frame, Group, Histogram, Point, Profile, Resident, Run, Site, Thread,
    Totals, Type,
};

/// Events of the run, which lasts ten seconds.
const END: u64 = 1_000_000_000;

/// Knuth's MMIX generator, of which the upper half is used.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = (self.0.wrapping_mul(6_364_136_223_846_793_005))
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 32
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// Small numbers often, large ones seldom.
    fn skewed(&mut self, most: u64) -> u64 {
        let bits = self.below(u64::from(most.max(2).ilog2()) + 1);
        (1 << bits) + self.below(1 << bits)
    }
}

/// A profile of `sites` sites, four functions of each ten having names of their own.
pub(crate) fn profile(sites: usize) -> Profile {
    let mut random = Random(7);
    let functions = (sites / 4).max(8) as u64;
    let frame = |index: u64| Frame {
        function: format!(
            "<program::module_{}::Type{index}>::method_{}",
            index % 97,
            index % 31
        ),
        file: format!("/home/user/program/src/module_{}.rs", index % 97),
        line: u32::try_from(index % 4001).unwrap() + 1,
        module: "program".to_owned(),
        address: 0x1000 + index * 16,
        inlined: index.is_multiple_of(3),
    };
    let type_of = |index: u64| Type {
        name: format!("Vec<program::Element{index}>"),
        size: Some(32),
        fields: (0..4)
            .map(|field| Field {
                name: format!("field_{field}"),
                type_name: "u64".to_owned(),
                offset: field * 8,
                size: 8,
            })
            .collect(),
    };
    let mut stacks: Vec<Vec<u32>> = Vec::with_capacity(sites);
    for site in 0..sites {
        // Most stacks share all but their innermost frames with another.
        let mut stack: Vec<u32> = match site {
            0 => vec![0],
            _ => stacks[usize::try_from(random.below(site as u64)).unwrap()].clone(),
        };
        stack.truncate(24);
        let keep = random.below(stack.len() as u64 + 1);
        stack.drain(..stack.len() - usize::try_from(keep).unwrap());
        for _ in 0..=random.below(3) {
            stack.insert(0, u32::try_from(random.below(functions)).unwrap());
        }
        stacks.push(stack);
    }
    let sites: Vec<Site> = stacks
        .into_iter()
        .map(|stack| site(stack, &mut random))
        .collect();
    let point = |i: u64| Point {
        time: 1 + i * (END / 1000),
        ns: i * 10_000_000,
        usable: 1_000_000 + i * 1000,
        peak: 1_000_000 + i * 1200,
        requested: 900_000 + i * 1000,
        touched: 800_000 + i * 900,
        allocations: 1000,
    };
    Profile {
        run: Run {
            tool: "0.1.0".to_owned(),
            command: vec!["program".to_owned(), "argument".to_owned()],
            compiler: "rustc 1.91.0".to_owned(),
            machine: "a machine".to_owned(),
            seconds: 10.0,
            end: END,
            accesses: true,
            ..Run::default()
        },
        total: Totals {
            allocations: sites.iter().map(|site| site.allocations).sum(),
            peak_usable: 2_200_000,
            peak_time: END / 2,
            heap_reads: END / 2,
            heap_writes: END / 4,
            ..Totals::default()
        },
        frames: (0..functions).map(frame).collect(),
        types: (0..300).map(type_of).collect(),
        edges: (0..100)
            .map(|i| Edge {
                from: i,
                offset: 8 * (i % 4),
                to: (i * 7) % 100,
                loads: 1000 - u64::from(i),
                followed: 500,
            })
            .filter(|edge| (edge.from.max(edge.to) as usize) < sites.len())
            .collect(),
        sites,
        threads: (1..=4)
            .map(|id| Thread {
                id,
                started: 1,
                ended: END,
                curve: (0..50).map(point).collect(),
                ..Thread::default()
            })
            .collect(),
        curve: (0..1000).map(point).collect(),
        resident: (0..500)
            .map(|i| Resident {
                time: 1 + i * (END / 500),
                ns: i * 20_000_000,
                bytes: 3_000_000,
            })
            .collect(),
        ..Profile::default()
    }
}

fn site(stack: Vec<u32>, random: &mut Random) -> Site {
    let allocations = random.skewed(4096);
    let size = 8 * random.skewed(256);
    let first = random.below(END - 1000) + 1;
    let life = 100 + random.below(END - first);
    let at_peak = if random.below(4) == 0 {
        size * (1 + allocations / 8)
    } else {
        0
    };
    let part = 1 + random.below(4);
    let mut histogram = Histogram::default();
    for byte in 0..size.min(64) {
        histogram.reads.push(if byte % 32 < part * 8 {
            allocations * (byte / 8 % 3)
        } else {
            0
        });
        histogram.writes.push(allocations);
    }
    let mut sizes = vec![0; 48];
    sizes[(size.ilog2() + 1) as usize] = u32::try_from(allocations).unwrap();
    let mut lifetimes = vec![0; 48];
    let bits = (life / allocations).max(1).ilog2() as usize + 1;
    lifetimes[bits.min(47)] = u32::try_from(allocations).unwrap();
    let points = allocations.min(2 + random.below(12));
    let point = |i: u64| Point {
        time: first + i * life / points,
        ns: (first + i * life / points) * 10,
        usable: size * (1 + i % 5),
        peak: size * (2 + i % 5),
        requested: size * (1 + i % 5),
        touched: size * (1 + i % 4),
        allocations: allocations / points,
    };
    Site {
        place: stack.get(1).or(stack.first()).copied(),
        type_id: Some(u32::try_from(random.below(300)).unwrap()),
        allocations,
        frees: allocations,
        requested: allocations * size,
        usable: allocations * (size + 8),
        peak_usable: size * 7,
        peak_chunks: 7.min(allocations),
        peak_time: first + life / 2,
        at_peak_usable: at_peak,
        at_peak_requested: at_peak,
        at_peak_chunks: at_peak / size,
        at_peak_touched: at_peak * part / 4,
        threads: 2 << random.below(4),
        smallest: size,
        largest: size,
        first_time: first,
        last_time: first + life / 2,
        reads: allocations * random.skewed(64),
        writes: allocations * random.skewed(16),
        touched_bytes: allocations * size * part / 4,
        useful_bytes: allocations * size * part / 5,
        lifetime: life / 2 * allocations / 3,
        shortest_life: life / 10,
        longest_life: life / 2,
        active_ratio: allocations as f64 / part as f64,
        drag: (allocations * size) as f64 * life as f64 / 50.0,
        wait: (allocations * size) as f64 * 100.0,
        sizes,
        lifetimes,
        histogram: (size <= 64).then_some(histogram),
        groups: vec![Group {
            first_allocated: first,
            last_allocated: first + life / 2,
            chunks: allocations,
            lifetimes: life / 3 * allocations,
            last_freed: first + life,
        }],
        curve: (0..points).map(point).collect(),
        stack,
        ..Site::default()
    }
}

/// Chunks of all sites in turn, in blocks.
pub(crate) fn chunks(profile: &Profile, number: u64) -> impl Iterator<Item = Vec<Chunk>> {
    const BLOCK: u64 = 50_000;
    let sites: Vec<(u64, u64)> = { profile.sites.iter() }
        .map(|site| (site.first_time, site.largest))
        .collect();
    let chunk = move |index: u64| {
        let site = index % sites.len() as u64;
        let (first, size) = sites[usize::try_from(site).unwrap()];
        let allocated = first + index / sites.len() as u64 * 100;
        Chunk {
            site: u32::try_from(site).unwrap(),
            address: 0x10000 + index * 64,
            size,
            thread: 0,
            shared: false,
            allocated,
            first: allocated + 3,
            last: allocated + 40 + index % 50,
            freed: allocated + 100 + index % 1000,
            reads: 5,
            writes: 2,
            touched: size / 2,
        }
    };
    (0..number.div_ceil(BLOCK)).map(move |block| {
        let end = number.min((block + 1) * BLOCK);
        (block * BLOCK..end).map(&chunk).collect()
    })
}
