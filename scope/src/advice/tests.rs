use ccmodel::{CacheGeometry, CacheLevel, Hierarchy, Inclusion, Machine};

use super::*;
use crate::analyses::misses::misses;
use crate::analyses::test_profile::{access, profile, window};
use crate::analyses::waits::{waits, waits_by_site};
use crate::profile::{Access, Chunk, Edge, Field, Frame, Site, Type};

/// A machine with caches of 32 KiB, 256 KiB and 2 MiB, and buffers for 64 and 512 pages.
fn machine() -> Machine {
    let mut machine = Machine::thesis();
    let level = |name: &str, sets, ways| {
        CacheLevel::lru(
            name,
            CacheGeometry::new(sets, 64, ways).expect("powers of two"),
        )
    };
    let pages = |name: &str, sets, ways| {
        CacheLevel::lru(
            name,
            CacheGeometry::new(sets, 4096, ways).expect("powers of two"),
        )
    };
    let caches = vec![
        level("L1", 64, 8),
        level("L2", 512, 8),
        level("L3", 2048, 16),
    ];
    let tlbs = vec![pages("dTLB", 16, 4), pages("STLB", 64, 8)];
    let hierarchy = Hierarchy::new(caches, Inclusion::NonInclusive, tlbs);
    machine.hierarchy = Some(hierarchy.expect("a hierarchy"));
    let steps = [
        ("L1", 32 << 10, 4.0),
        ("L2", 256 << 10, 10.0),
        ("L3", 2 << 20, 80.0),
    ];
    let data = |&(name, bytes, ns): &(&str, u32, f64)| {
        ccmodel::Level::new(name, ccmodel::LevelKind::Data, 64, f64::from(bytes), ns)
    };
    machine.levels = steps.iter().map(data).collect();
    machine.overlap = ccmodel::LookAhead::USUAL;
    machine
}

/// The same in each run.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^= mixed >> 31;
    mixed = mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 29
}

/// The same, without two of one place.
fn place(node: u64) -> u64 {
    let mixed = |it: u64| (it ^ it >> 9).wrapping_mul(0x9e37_79b1) % NODES;
    mixed(mixed(mixed(node)))
}

const NODES: u64 = 1 << 17;
const HEAP: u64 = 1 << 32;
/// What the allocator takes for a node.
const CHUNK: u64 = 32;
const WINDOWS: u64 = 16;

/// A site of `NODES` boxes of `size` bytes with these fields.
fn boxes(name: &str, size: u64, fields: &[(&str, u64, u64)]) -> Profile {
    let mut run = profile();
    let field = |&(name, offset, size): &(&str, u64, u64)| Field {
        name: name.to_owned(),
        type_name: "u64".to_owned(),
        offset,
        size,
    };
    run.types = vec![Type {
        name: name.to_owned(),
        size: Some(size),
        fields: fields.iter().map(field).collect(),
    }];
    run.sites = vec![Site {
        type_id: Some(0),
        allocations: NODES,
        requested: NODES * size,
        peak_chunks: NODES,
        peak_usable: NODES * CHUNK,
        smallest: size,
        largest: size,
        last_time: 1,
        ..run.sites[0].clone()
    }];
    run.sites[0].groups.clear();
    run.sites[0].histogram = None;
    (run.edges, run.resident) = (Vec::new(), Vec::new());
    run
}

fn with_windows(mut run: Profile, windows: Vec<Vec<Access>>) -> Profile {
    let all: u64 = windows.iter().map(|it| it.len() as u64).sum();
    (run.total.heap_reads, run.total.heap_writes) = (all * 1000, 0);
    (run.total.other_reads, run.total.other_writes) = (0, 0);
    run.windows = { (2..).zip(windows) }
        .map(|(time, accesses)| window(time, 0, accesses))
        .collect();
    run
}

/// Searches for random keys in a complete tree whose nodes lie anywhere.
fn tree() -> Profile {
    let at = |node: u64| HEAP + place(node) * CHUNK;
    let search = |key: u64, into: &mut Vec<Access>| {
        let mut node = 0;
        while node < NODES {
            into.push(access(at(node), 0, 0));
            let side = key >> (node % 61) & 1;
            let child = 2 * node + 1 + side;
            let offset = u32::try_from(8 + 8 * side).expect("it is small");
            let load = access(at(node) + u64::from(offset), 0, offset);
            into.push(match child < NODES {
                true => Access {
                    pointer: at(child),
                    target: 0,
                    ..load
                },
                false => load,
            });
            node = child;
        }
    };
    let windows = (0..WINDOWS).map(|number| {
        let mut accesses = Vec::new();
        (0..400).for_each(|key| search(mix(number << 20 | key), &mut accesses));
        accesses
    });
    let fields = [("key", 0, 8), ("left", 8, 8), ("right", 16, 8)];
    let mut run = with_windows(boxes("Box<Node>", 24, &fields), windows.collect());
    let edge = |offset| Edge {
        from: 0,
        offset,
        to: 0,
        loads: 1000,
        followed: 1000,
    };
    run.edges = [8, 16].map(edge).to_vec();
    run
}

fn item(advice: &Advice, kind: Kind) -> &Item {
    let found = advice.advice.iter().find(|item| item.kind == kind);
    found.unwrap_or_else(|| panic!("{kind:?} is missing: {:#?}", advice.advice))
}

/// Waits of the screen, of `diff` and of advice are of one replay.
#[test]
fn all_say_the_same_waits() {
    let (mut run, machine) = (tree(), machine());
    // So that nothing is said of another allocator.
    run.frames[0].module = "libccmalloc.so".to_owned();
    let advice = advise(&run, &machine, None).expect("there are windows");
    let windows = ReplayedWindows::new(&run, &machine).expect("there are windows");
    assert!((waits(&run, &windows).share - advice.waits).abs() < 1e-9);
    let by_site = waits_by_site(&run, &machine).expect("there are windows");
    let misses = misses(&run, &windows).expect("there are accesses");
    let of_misses = &misses.sites[0];
    assert!((by_site[of_misses.site] - of_misses.wait_ns).abs() < 1.0);
    assert!(by_site.iter().sum::<f64>() < advice.seconds * 1e9);
    let before = { advice.advice.iter() }.find(|item| !item.misses.is_empty());
    for (level, misses) in before.expect("a change").misses.iter().zip(&misses.total) {
        let apart = (level.before - misses.estimate).abs();
        assert!(apart <= 1e-6 * misses.estimate, "{level:?} {misses:?}");
    }
}

#[test]
fn a_scattered_tree_is_to_be_morphed() {
    let advice = advise(&tree(), &machine(), None).expect("there are windows");
    assert!(advice.worth_it && advice.waits > 0.5, "{advice:?}");
    for kind in [Kind::Morph, Kind::Hint] {
        let found = item(&advice, kind);
        assert!(found.speedup.estimate > 1.2, "{found:?}");
        assert!(found.speedup.low <= found.speedup.estimate);
        assert!(found.speedup.estimate <= found.speedup.high);
        assert!(found.misses[0].after < found.misses[0].before, "{found:?}");
        let code = found.code.as_ref().expect("it has code");
        code::tests::assert_compiled(Language::Rust, code);
    }
    assert!(item(&advice, Kind::Morph).cost_ns > 0.0);
    assert!(item(&advice, Kind::Hint).what.contains("left, right"));
    let order: Vec<f64> = { advice.advice.iter().filter(|item| item.worth_it) }
        .map(|item| item.saved_ns.estimate)
        .collect();
    assert!(order.is_sorted_by(|a, b| a >= b), "{order:?}");
}

/// Searches for a key, which read nothing else of the nodes: a set does them.
#[test]
fn a_search_tree_is_to_be_a_map() {
    let is_map = |it: &&Item| it.kind == Kind::Container;
    let advice = advise(&tree(), &machine(), None).expect("there are windows");
    let maps: Vec<&Item> = advice.advice.iter().filter(is_map).collect();
    let codes = || maps.iter().filter_map(|it| it.code.as_ref());
    let code = codes().find(|it| !it.contains("many") && !it.contains("Frozen"));
    code::tests::assert_compiled(Language::Rust, code.expect("a set"));
    let best = maps.first().expect("a map");
    assert!(best.what.contains("tree of 131,072 `Node`s"), "{best:?}");
    assert!(best.speedup.estimate > 1.5, "{best:?}");
    // Who counts on the way does not only search.
    let mut counted = tree();
    let of = &mut counted.types[0];
    of.size = Some(CHUNK);
    of.fields.push(Field {
        name: "size".to_owned(),
        offset: 24,
        ..of.fields[0].clone()
    });
    (counted.sites[0].smallest, counted.sites[0].largest) = (CHUNK, CHUNK);
    let size = |it: &Access| access(it.address + 24, 0, 24);
    for window in &mut counted.windows {
        let with_size = |it: &Access| match it.offset {
            0 => vec![*it, size(it)],
            _ => vec![*it],
        };
        window.accesses = window.accesses.iter().flat_map(with_size).collect();
    }
    let advice = advise(&counted, &machine(), None).expect("there are windows");
    assert!(!advice.advice.iter().any(|it| is_map(&it)));
}

#[test]
fn known_seconds_limit_the_gain() {
    let run = tree();
    let accesses = run.total.heap_reads as f64;
    // The accesses alone would take a hundredth of that: the program does something else.
    let busy = advise(&run, &machine(), Some(accesses * 1e-6)).expect("there are windows");
    assert!(busy.seconds_given && !busy.worth_it, "{busy:?}");
    assert!(busy.waits < 0.2, "{}", busy.waits);
    // The machine's misses would take longer than the run.
    let fast = advise(&run, &machine(), Some(accesses * 1e-9)).expect("there are windows");
    assert!((fast.seconds - accesses * 1e-9).abs() < 1e-9);
    let is_more = |item: &Item| item.saved_ns.high > accesses;
    assert!(!fast.advice.iter().any(is_more));
}

#[test]
fn a_tree_in_the_cache_is_left() {
    let mut run = tree();
    for window in &mut run.windows {
        let small = |node: &Access| node.base() < HEAP + 1024 * CHUNK;
        window.accesses.retain(small);
    }
    let advice = advise(&run, &machine(), None).expect("there are windows");
    assert!(!advice.worth_it, "{advice:?}");
}

/// Independent reads of records of 128 bytes, of which the first and the last word are used.
fn records(cold_reads: u64) -> Profile {
    let read = |number: u64| {
        let start = HEAP + mix(number) % NODES * 144;
        let cold = (cold_reads > 0 && number.is_multiple_of(cold_reads))
            .then(|| access(start + 64, 0, 64));
        [access(start, 0, 0), access(start + 120, 0, 120)]
            .into_iter()
            .chain(cold)
    };
    let fields = [("key", 0, 8), ("notes", 8, 112), ("value", 120, 8)];
    with_windows(boxes("Box<Record>", 128, &fields), windows_of(read))
}

#[test]
fn hot_fields_move_together_and_cold_ones_away() {
    let advice = advise(&records(50), &machine(), None).expect("there are windows");
    let order = item(&advice, Kind::FieldOrder);
    let code = order.code.as_ref().expect("a struct");
    let [key, value, notes] = ["key", "value", "notes"].map(|name| code.find(name));
    assert!(key < notes && value < notes, "{code}");
    assert!(
        order.misses[0].after < 0.7 * order.misses[0].before,
        "{order:?}"
    );
    let split = item(&advice, Kind::Split);
    assert!(
        split
            .code
            .as_ref()
            .is_some_and(|code| code.contains("split(cold(notes), cold = \"table\")")),
        "{split:?}"
    );
    assert!(
        split.misses[0].after < 0.7 * split.misses[0].before,
        "{split:?}"
    );
    assert!(split.cost_ns > 0.0);
}

/// A vector of 4 MiB, of whose elements the hot parts take 768 KiB: less than the last cache.
#[test]
fn elements_of_vectors_are_split_too() {
    const ELEMENTS: u64 = NODES / 4;
    let start = |number: u64| mix(number) % ELEMENTS * 128;
    let read = |number: u64| {
        [0, 120].map(|field| {
            let offset = start(number) + field;
            access(
                HEAP + offset,
                0,
                u32::try_from(offset).expect("it is small"),
            )
        })
    };
    let fields = [("key", 0, 8), ("notes", 8, 112), ("value", 120, 8)];
    let mut run = with_windows(boxes("Vec<Record>", 128, &fields), windows_of(read));
    let bytes = ELEMENTS * 128;
    let site = &mut run.sites[0];
    (site.allocations, site.peak_chunks) = (1, 1);
    (site.smallest, site.largest, site.requested) = (bytes, bytes, bytes);
    let advice = advise(&run, &machine(), None).expect("there are windows");
    let split = item(&advice, Kind::Split);
    assert!(
        split.what.contains("24 bytes instead of 128") && split.what.contains("Record"),
        "{split:?}"
    );
    assert!(
        split.misses[2].after < 0.5 * split.misses[2].before,
        "{split:?}"
    );
}

#[test]
fn objects_among_others_get_a_heap() {
    // One in eight places of 32 bytes is theirs.
    let start = |number: u64| HEAP + mix(number) % (1 << 14) * 256;
    let read = |number| [access(start(number), 0, 0)];
    let mut run = with_windows(boxes("Box<u64>", 8, &[]), windows_of(read));
    run.sites[0].peak_chunks = 1 << 14;
    // Size classes separate them already.
    let advice = advise(&run, &machine(), None).expect("there are windows");
    let group = item(&advice, Kind::Group);
    assert!(group.beyond_allocator && !group.worth_it, "{group:?}");
    // A program that has the allocator, and has them so.
    run.frames.push(Frame {
        function: "<ccmalloc::CcMalloc as GlobalAlloc>::alloc".to_owned(),
        ..Frame::default()
    });
    let advice = advise(&run, &machine(), None).expect("there are windows");
    let group = item(&advice, Kind::Group);
    assert!(
        group.misses[1].after < 0.5 * group.misses[1].before,
        "{group:?}"
    );
}

#[test]
fn the_allocator_is_to_be_measured_first() {
    let first = |run: &Profile| {
        let advice = advise(run, &machine(), None).expect("there are windows");
        advice.advice.into_iter().next().expect("advice")
    };
    let (mut run, kind) = (tree(), Kind::Allocator);
    let item = first(&run);
    assert!(item.kind == kind && !item.worth_it && item.speedup.estimate.is_nan());
    assert!(item.what.contains("131,072 allocations"), "{item:?}");
    let code = item.code.expect("lines");
    code::tests::assert_compiled(Language::Rust, &code);
    // C has no global allocator to declare.
    run.frames
        .iter_mut()
        .for_each(|it| it.file = "a.c".to_owned());
    assert!(
        first(&run)
            .code
            .is_some_and(|it| it.starts_with("LD_PRELOAD="))
    );
    // Few objects, or those of `CcMalloc` already.
    run.sites[0].allocations = 100;
    assert_ne!(first(&run).kind, kind);
    let mut run = tree();
    run.frames[0].module = "libccmalloc.so".to_owned();
    assert_ne!(first(&run).kind, kind);
}

/// A vector of 4 MiB, read anywhere, and in jumps of a row.
#[test]
fn large_chunks_are_described_and_not_called_right() {
    let bytes = NODES * 32;
    let said = |place: fn(u64) -> u64| {
        let read = |number: u64| {
            let offset = place(number) % (NODES * 32);
            [access(
                HEAP + offset,
                0,
                u32::try_from(offset).expect("it is small"),
            )]
        };
        let mut run = with_windows(boxes("Vec<Slot>", 16, &[("next", 0, 8)]), windows_of(read));
        let site = &mut run.sites[0];
        (site.allocations, site.peak_chunks) = (1, 1);
        (site.smallest, site.largest, site.requested) = (bytes, bytes, bytes);
        let advice = advise(&run, &machine(), None).expect("there are windows");
        item(&advice, Kind::Idea).clone()
    };
    let anywhere = said(|number| mix(number) & !7);
    assert!(
        anywhere.what.contains("chunks of up to 4.19 MB, 0.00 % of"),
        "{anywhere:?}"
    );
    code::tests::assert_compiled(Language::Rust, &anywhere.code.expect("numbers"));
    let rows = said(|number| number * 24_016);
    assert!(
        rows.what.contains("174 rows of 24.0 kB each: exchange"),
        "{rows:?}"
    );
}

/// A walk through a tree whose nodes, held by `pointer`, own vectors of four; all lie anywhere.
fn walked(pointer: &str) -> Profile {
    const FAN: u64 = 4;
    let [node, vector] = [0, HEAP].map(|at| move |it: u64| HEAP + at + mix(it) % NODES * 64);
    let load = |address: u64, site: u32, offset: u32, (target, pointer): (u32, u64)| Access {
        target,
        pointer,
        ..access(address + u64::from(offset), site, offset)
    };
    let (mut accesses, mut todo) = (Vec::new(), vec![0]);
    while let Some(at) = todo.pop() {
        accesses.push(access(node(at), 0, 0));
        let children = FAN * at + 1..(FAN * at + FAN + 1).min(NODES / 4);
        if children.is_empty() {
            continue;
        }
        accesses.push(load(node(at), 0, 16, (1, vector(at))));
        for (slot, child) in (0..).zip(children.clone()) {
            accesses.push(load(vector(at), 1, 8 * slot, (0, node(child))));
        }
        todo.extend(children.rev());
    }
    let fields = [("key", 0, 8), ("children", 8, 24)];
    let mut run = boxes(&format!("{pointer}<Node>"), 40, &fields);
    run.sites[0].peak_chunks = NODES / 4;
    run.types.push(Type {
        name: format!("Vec<{pointer}<Node>>"),
        size: Some(8),
        fields: Vec::new(),
    });
    run.sites.push(Site {
        type_id: Some(1),
        allocations: NODES / 16,
        requested: NODES / 16 * 32,
        peak_chunks: NODES / 16,
        smallest: 32,
        largest: 32,
        ..run.sites[0].clone()
    });
    let windows = accesses.chunks(4096).map(<[Access]>::to_vec).collect();
    let mut run = with_windows(run, windows);
    let edge = |from, offset, to| Edge {
        from,
        offset,
        to,
        loads: 1000,
        followed: 1000,
    };
    run.edges = vec![edge(0, 16, 1), edge(1, 0, 0), edge(1, 8, 0)];
    run
}

#[test]
fn nodes_that_own_vectors_are_laid_out_with_them() {
    let advice = advise(&walked("Box"), &machine(), None).expect("there are windows");
    let morph = item(&advice, Kind::Morph);
    assert!(morph.worth_it && morph.beyond_allocator, "{morph:?}");
    assert!(
        morph.what.contains("nodes and buffers of Node"),
        "{morph:?}"
    );
    assert!(morph.misses[0].after < 0.7 * morph.misses[0].before);
    let code = morph.code.as_ref().expect("it has code");
    assert!(code.contains("run_any(&mut root)"), "{code}");
    code::tests::assert_compiled(Language::Rust, code);
    let gain = |kind: Kind| item(&advice, kind).speedup.estimate;
    assert!(gain(Kind::Hint) < 0.8 * gain(Kind::Morph), "buffers stay");
}

/// Others may point to them.
#[test]
fn shared_nodes_are_rebuilt() {
    let advice = advise(&walked("Rc"), &machine(), None).expect("there are windows");
    let morph = item(&advice, Kind::Morph);
    assert!(
        morph.worth_it && morph.what.starts_with("rebuild the"),
        "{morph:?}"
    );
    assert_eq!(morph.code, None);
}

#[test]
fn no_hint_leads_to_what_is_allocated_later() {
    let hints = |is_down: bool| {
        let mut run = tree();
        let chunk = |node: u64| Chunk {
            site: 0,
            address: HEAP + place(node) * CHUNK,
            size: 24,
            thread: 0,
            shared: false,
            allocated: 1 + if is_down { node } else { NODES - node },
            first: 0,
            last: 0,
            freed: 0,
            reads: 0,
            writes: 0,
            touched: 24,
        };
        run.chunks = (0..NODES).map(chunk).collect();
        let advice = advise(&run, &machine(), None).expect("there are windows");
        let is_hint = |item: &&Item| item.kind == Kind::Hint;
        advice.advice.iter().filter(is_hint).count()
    };
    assert_eq!([true, false].map(hints), [1, 0]);
}

/// Hints and morphs are compared with the allocator that they need.
#[test]
fn gains_are_those_beyond_the_allocator() {
    // Four lines for each node: the allocator alone lets more of them fit.
    let mut run = tree();
    for access in run.windows.iter_mut().flat_map(|it| &mut it.accesses) {
        let moved = |address: u64| HEAP + (address - HEAP) * 8;
        let offset = u64::from(access.offset);
        access.address = moved(access.address - offset) + offset;
        access.pointer = if access.pointer > 0 {
            moved(access.pointer)
        } else {
            0
        };
    }
    let morph = |run: &Profile| {
        let advice = advise(run, &machine(), None).expect("there are windows");
        item(&advice, Kind::Morph).clone()
    };
    let beyond = morph(&run);
    run.frames[0].module = "libccmalloc.so".to_owned();
    let alone = morph(&run);
    assert!(beyond.beyond_allocator && !alone.beyond_allocator);
    assert!(
        beyond.speedup.estimate < 0.9 * alone.speedup.estimate,
        "{beyond:?} {alone:?}"
    );
    let [first, second] = [&beyond, &alone].map(|item| item.misses[1].after);
    assert!((first / second - 1.0).abs() < 0.05, "{first} {second}");
}

/// Windows of what `read` does, 5000 times in each.
fn windows_of<T: IntoIterator<Item = Access>>(read: impl Fn(u64) -> T) -> Vec<Vec<Access>> {
    let of = |number| {
        (number * 5000..(number + 1) * 5000)
            .flat_map(&read)
            .collect()
    };
    (0..WINDOWS).map(of).collect()
}

/// Adds a site of a second type, `Value` of 24 bytes.
fn add_values(run: &mut Profile) {
    run.types.push(Type {
        name: "Box<Value>".to_owned(),
        size: Some(24),
        fields: Vec::new(),
    });
    run.sites.push(Site {
        type_id: Some(1),
        smallest: 24,
        largest: 24,
        ..run.sites[0].clone()
    });
}

#[test]
fn what_one_field_leads_to_lies_near() {
    let mut run = boxes("Box<Entry>", 16, &[("next", 0, 8), ("value", 8, 8)]);
    add_values(&mut run);
    let read = |number: u64| {
        let index = mix(number) % NODES;
        let entry = HEAP + index * CHUNK;
        // Each entry has its own, elsewhere.
        let value = HEAP * 2 + index * 12_345 % NODES * CHUNK;
        let load = Access {
            pointer: value,
            target: 1,
            ..access(entry + 8, 0, 8)
        };
        [load, access(value, 1, 0)]
    };
    let run = with_windows(run, windows_of(read));
    let advice = advise(&run, &machine(), None).expect("there are windows");
    let hint = item(&advice, Kind::Hint);
    assert!(
        hint.what.contains("near the Entry whose `value`"),
        "{hint:?}"
    );
    assert!(
        hint.misses[0].after < 0.8 * hint.misses[0].before,
        "{hint:?}"
    );
}

#[test]
fn what_is_used_together_lies_near() {
    let mut run = boxes("Box<Key>", 16, &[]);
    add_values(&mut run);
    // By indices, so that no pointer says so.
    let read = |number: u64| {
        // Each several times.
        let index = mix(number) % (NODES / 8);
        let value = HEAP * 2 + index * 12_345 % NODES * CHUNK;
        [access(HEAP + index * CHUNK, 0, 0), access(value, 1, 0)]
    };
    let advice = advise(&with_windows(run, windows_of(read)), &machine(), None);
    let advice = advice.expect("there are windows");
    let group = item(&advice, Kind::Hint);
    assert!(
        group
            .what
            .contains("Value near the Key that is used together"),
        "{group:?}"
    );
    assert!(
        group.misses[0].after < 0.8 * group.misses[0].before,
        "{group:?}"
    );
}

#[test]
fn damaged_profiles_give_no_panic() {
    let mut run = tree();
    run.sites.truncate(0);
    drop(advise(&run, &machine(), None));
    let mut run = tree();
    run.types[0].size = Some(0);
    run.sites[0].peak_chunks = u64::MAX;
    run.sites[0].allocations = u64::MAX;
    drop(advise(&run, &machine(), Some(1e-300)));
    let mut run = records(1);
    run.types[0].fields[1].offset = u64::MAX;
    run.windows[0].accesses[0].address = u64::MAX;
    run.windows[0].accesses[1].offset = u32::MAX;
    run.windows[0].accesses[2].address = 3;
    drop(advise(&run, &machine(), Some(1e300)));
    drop(advise(&run, &machine(), None));
    // Fields that are fine, at places that are not.
    run.types[0].fields[1].offset = 8;
    drop(advise(&run, &machine(), None));
    run.windows.clear();
    assert_eq!(advise(&run, &machine(), None), None);
}

mod order;
