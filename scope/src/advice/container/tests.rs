//! A map of three levels, looked up by hand.

use ccmodel::Machine;

use super::*;
use crate::advice::chunks::Chunks;
use crate::advice::code::{Language, tests::assert_compiled};
use crate::analyses::replay::processor::CpuModel;
use crate::analyses::replay::trace::{NONE, Trace};
use crate::analyses::replay::{Replay, unchanged};
use crate::analyses::test_profile::{profile, window};
use crate::profile::{Access, Field, Profile, Type};

const ROOT: u64 = 1 << 32;
/// From node to node: more than any cache.
const APART: u64 = 4096 + 64;
const LEAF: u32 = 1;
const INNER: u32 = 0;
const TEXT: u32 = 2;
const FAN: u64 = 8;

pub(super) fn read(base: u64, site: u32, offset: u32) -> Access {
    Access {
        address: base + u64::from(offset),
        size: 8,
        write: false,
        site,
        offset,
        pointer: 0,
        target: NONE,
    }
}

/// Address of a child of the node of a level.
fn child(level: u64, number: u64) -> u64 {
    ROOT + (level << 30) + number * APART
}

/// The accesses of a lookup that ends in leaf `leaf`, behind `slot` keys.
fn lookup(leaf: u64, slot: u32) -> Vec<Access> {
    let mut found = Vec::new();
    let path = [(ROOT, leaf / FAN), (child(1, leaf / FAN), leaf % FAN)];
    let children = [child(1, leaf / FAN), child(2, leaf)];
    for ((node, link), (next, site)) in path
        .into_iter()
        .zip(children.into_iter().zip([INNER, LEAF]))
    {
        let link = u32::try_from(link).unwrap();
        found.push(read(node, INNER, 186));
        found.extend((0..=link).map(|key| read(node, INNER, 8 + 8 * key)));
        found.push(Access {
            pointer: next,
            target: site,
            ..read(node, INNER, 192 + 8 * link)
        });
    }
    let leaf = child(2, leaf);
    found.push(read(leaf, LEAF, 186));
    found.extend((0..=slot).map(|key| read(leaf, LEAF, 8 + 8 * key)));
    found.push(read(leaf, LEAF, 96 + 8 * slot));
    found
}

/// A run with these windows. Its map has many more nodes than the windows show.
pub(super) fn run(windows: Vec<Vec<Access>>) -> Profile {
    let mut run = profile();
    run.types.truncate(1);
    let field = |name: &str, offset, size| Field {
        name: name.to_owned(),
        type_name: String::new(),
        offset,
        size,
    };
    run.types[0] = Type {
        name: "BTreeMap<u64, u64>".to_owned(),
        size: Some(192),
        fields: vec![field("keys", 8, 88), field("vals", 96, 88)],
    };
    for (site, (size, chunks)) in run.sites.iter_mut().zip([(288, 9), (192, 64)]) {
        site.type_id = Some(0);
        (site.smallest, site.largest, site.peak_chunks) = (size, size, chunks);
    }
    run.sites.truncate(2);
    run.edges.clear();
    run.windows = windows.into_iter().map(|it| window(1, 0, it)).collect();
    run
}

fn machine() -> Machine {
    let text = Machine::thesis().to_json();
    Machine::from_json(&text).unwrap()
}

/// Passes candidates of a run on.
pub(super) fn with_candidates(run: &Profile, judge: impl FnOnce(&Context<'_>, Vec<Candidate<'_>>)) {
    let (trace, machine) = (Trace::new(run), machine());
    let replay = Replay::new(&machine).unwrap();
    let before = replay.run(&trace, &mut unchanged);
    let context = Context {
        profile: run,
        machine: &machine,
        trace: &trace,
        replay: &replay,
        before: &before,
        models: [CpuModel::usual(&replay); 2],
        run_ns: 1e9,
        waits: [(INNER, 0.3), (LEAF, 0.5)].into(),
        chunks: Chunks::new(run, &trace),
        with_allocator: None,
    };
    judge(&context, candidates(&context));
}

fn leaves() -> impl Iterator<Item = u64> {
    (0..64).map(|number| number * 37 % 64)
}

fn layout() -> Layout {
    Layout {
        keys: 8..96,
        key: 8,
        values: 96..184,
        links: Links::Behind(192),
    }
}

fn descents(run: &Profile) -> Descents {
    Descents::find(&Trace::new(run), &layout(), [&[INNER, LEAF], &[INNER]], 8.0)
}

#[test]
fn lookups_are_found_with_their_ranks() {
    let run = run(vec![leaves().flat_map(|leaf| lookup(leaf, 3)).collect()]);
    let found = descents(&run);
    assert_eq!((found.list.len(), found.roots.len()), (64, 1));
    assert_eq!(found.last_write, None);
    assert!(found.consecutive() > 0.9);
    for (lookup, leaf) in found.list.iter().zip(leaves()) {
        // The middle of the fourth of seven keys.
        let rank = (leaf as f64 + 0.5) / 64.0;
        assert!((lookup.rank - rank).abs() < 1e-6, "{lookup:?}, {leaf}");
        assert_eq!((lookup.slot, lookup.is_changing), (3, false));
    }
    let first = usize::try_from(found.list[0].steps.end).unwrap();
    let parts = &found.parts[..first];
    assert_eq!(parts[0], Part::Search);
    assert_eq!(parts[first - 1], Part::End(0));
    let arrival = parts.iter().position(|&part| part == Part::Arrival(0));
    assert_eq!(arrival, Some(first - 6));
}

#[test]
fn what_begins_within_or_goes_up_is_no_lookup() {
    // The first one's root is cut off; then somebody tells the children of a node who it is.
    let mut accesses = lookup(9, 0)[4..].to_vec();
    accesses.extend(leaves().take(20).flat_map(|leaf| lookup(leaf, 1)));
    let parent = child(1, 3);
    for link in 0..4 {
        let next = child(2, 24 + u64::from(link));
        accesses.push(Access {
            pointer: next,
            target: LEAF,
            ..read(parent, INNER, 192 + 8 * link)
        });
        accesses.push(Access {
            write: true,
            ..read(next, LEAF, 0)
        });
    }
    let last = accesses.len() - 1;
    let run = run(vec![accesses]);
    let found = descents(&run);
    assert_eq!(found.list.len(), 20);
    assert_eq!(found.last_write, Some(last));
    assert_eq!(found.parts[0], Part::Other);
    assert_eq!(found.parts[last], Part::Other);
}

/// A range from or to a key goes down on two ways at once, of which one reads no keys.
fn range(leaf: u64, slot: u32, is_upper: bool) -> Vec<Access> {
    let search = lookup(leaf, slot);
    // Each of both nodes has a length, keys and a link.
    let first = usize::try_from(leaf / FAN + 3).unwrap();
    let second = first + usize::try_from(leaf % FAN + 3).unwrap();
    let end = if is_upper { 0 } else { FAN - 1 };
    let link = |node: u64, number: u64, pointer: u64, target: u32| Access {
        pointer,
        target,
        ..read(node, INNER, 192 + 8 * u32::try_from(number).unwrap())
    };
    let inner = child(1, end);
    let spine = [
        vec![link(ROOT, end, inner, INNER), read(inner, INNER, 186)],
        vec![
            link(inner, end, child(2, end * FAN + end), LEAF),
            read(child(2, end * FAN + end), LEAF, 186),
        ],
    ];
    let parts = [&search[..first], &search[first..second], &search[second..]];
    match is_upper {
        true => [parts[0], &spine[0], parts[1], &spine[1], parts[2]].concat(),
        false => [parts[0], parts[1], &spine[0], parts[2], &spine[1]].concat(),
    }
}

#[test]
fn a_range_is_a_lookup_of_the_end_that_has_a_key() {
    for is_upper in [false, true] {
        let inside = || leaves().filter(|leaf| (8..56).contains(leaf));
        let lookups = inside().flat_map(|leaf| range(leaf, 3, is_upper));
        let found = descents(&run(vec![lookups.collect()]));
        assert_eq!(found.list.len(), 48);
        for (lookup, leaf) in found.list.iter().zip(inside()) {
            let rank = (leaf as f64 + 0.5) / 64.0;
            assert!((lookup.rank - rank).abs() < 1e-6, "{lookup:?}, {leaf}");
            assert_eq!((lookup.slot, lookup.path.len()), (3, 2));
        }
        let other = found.parts.iter().filter(|&&part| part == Part::Other);
        assert_eq!(other.count(), 0, "{is_upper}");
    }
}

#[test]
fn larger_nodes_batches_and_frozen_maps_are_proposed() {
    let run = run(vec![leaves().flat_map(|leaf| lookup(leaf, 3)).collect()]);
    with_candidates(&run, |context, candidates| {
        let words = ["`CTreeMap`: larger", "64 keys at a time", "freeze"];
        assert_eq!(candidates.len(), words.len());
        for (candidate, words) in candidates.into_iter().zip(words) {
            assert!(candidate.what.contains(words), "{}", candidate.what);
            assert_eq!(candidate.sites, [LEAF, INNER]);
            let code = candidate.code.as_ref().expect("a map has code");
            assert_compiled(Language::Rust, code);
            let item = context.judge(candidate);
            assert_eq!(item.kind, Kind::Container);
            // 64 keys of 8 B in leaves of 512: fewer blocks, and fewer that wait for others.
            let first = &item.misses[0];
            assert!(first.after < first.before, "{words}: {first:?}");
            assert!(item.speedup.estimate > 1.0, "{words}: {:?}", item.speedup);
        }
    });
}

#[test]
fn a_map_that_changes_is_neither_frozen_nor_asked_in_batches() {
    let change = |leaf| {
        let mut accesses = lookup(leaf, 3);
        accesses.push(Access {
            write: true,
            ..read(child(2, leaf), LEAF, 8 + 32)
        });
        accesses
    };
    let run = run(vec![leaves().flat_map(change).collect()]);
    assert!(descents(&run).list.iter().all(|it| it.is_changing));
    with_candidates(&run, |_, candidates| {
        assert_eq!(candidates.len(), 1);
        assert!(candidates[0].what.contains("larger nodes"));
    });
}

#[test]
fn steps_of_a_lookup_go_to_the_new_nodes() {
    let run = run(vec![leaves().flat_map(|leaf| lookup(leaf, 3)).collect()]);
    with_candidates(&run, |context, mut candidates| {
        let steps = &context.trace.steps;
        let places = |candidate: &mut Candidate<'_>| -> Vec<PlacedAccess> {
            let mut into = Vec::new();
            for (index, step) in steps.iter().enumerate().take(10_000) {
                candidate.rewrite.places(index, step, &mut into);
            }
            into.retain(|place| place.work != Work::Rest);
            into
        };
        let [single, batch] = [0, 1].map(|which| places(&mut candidates[which]));
        assert!(single.iter().all(|place| place.address >= NEW_MEMORY));
        let waiting = |places: &[PlacedAccess]| places.iter().filter(|place| place.after).count();
        // 504 entries are 21 leaves and a root: a wait for the leaf, and one for the value.
        assert_eq!([waiting(&single), waiting(&batch)], [2 * 64, 64]);
        assert_eq!(
            [single.len(), batch.len()],
            [(8 + 8 + 1) * 64, (5 + 5 + 1) * 64]
        );
    });
}

#[test]
fn keys_are_compared_as_ctree_does() {
    for (name, keys) in [
        ("u64", Keys::Integers),
        ("char", Keys::Integers),
        ("alloc::string::String", Keys::Heads),
        ("(u32, u64)", Keys::Heads),
        ("(u32, demo::Id)", Keys::Others),
        ("demo::Id", Keys::Others),
    ] {
        assert_eq!(keys_of(name), keys, "{name}");
    }
}

/// Lookups in one leaf: the processor guesses where the search ends by where it ended last.
#[test]
fn searches_that_end_elsewhere_are_mispredicted() {
    let mispredicted = |slots: [u32; 2]| {
        let lookups = slots.into_iter().cycle().take(40);
        let run = run(vec![lookups.flat_map(|slot| lookup(9, slot)).collect()]);
        let steps = Trace::new(&run).steps;
        let values = steps.iter().filter(|step| (96..184).contains(&step.offset));
        values.filter(|step| step.mispredicted).count()
    };
    assert!(mispredicted([3, 3]) <= 3);
    assert!(mispredicted([3, 5]) >= 37);
}

/// A key that is a pointer is compared by `memcmp`, which leaves no accesses.
#[test]
fn comparisons_of_texts_are_added() {
    let text = ROOT + (1 << 40);
    let with_text = |it: Access| match (it.site, it.offset) {
        (LEAF, 8..96) => Access {
            pointer: text + it.address,
            target: TEXT,
            ..it
        },
        _ => it,
    };
    let accesses: Vec<Access> = leaves()
        .flat_map(|leaf| lookup(leaf, 3))
        .map(with_text)
        .collect();
    let mut run = run(vec![accesses.clone()]);
    let mut site = run.sites[0].clone();
    site.type_id = None;
    run.sites.push(site);
    let trace = Trace::new(&run);
    // Four keys of each leaf.
    assert_eq!(trace.steps.len(), accesses.len() + 4 * 64);
    let compared = trace.steps.iter().filter(|step| trace.site(step) == TEXT);
    assert!(
        compared
            .clone()
            .all(|step| step.address > text && step.via != NONE)
    );
    assert_eq!(compared.count(), 4 * 64);
    let found = Descents::find(&trace, &layout(), [&[INNER, LEAF], &[INNER]], 8.0);
    assert!(found.parts.contains(&Part::Key));
}

#[test]
fn small_tables_and_queues_are_seen() {
    let named = |name: &str, windows: Vec<Vec<Access>>| {
        let mut run = run(windows);
        run.types[0].name = name.to_owned();
        run
    };
    let said = |run: &Profile, words: &str| {
        let mut found = Vec::new();
        with_candidates(run, |context, _| found = ideas(context));
        let [idea] = &found[..] else {
            panic!("{words}: {found:?}");
        };
        assert!(idea.what.contains(words), "{}", idea.what);
        assert_compiled(Language::Rust, idea.code.as_ref().expect("it has code"));
    };
    let lookups = || {
        leaves()
            .flat_map(|leaf| lookup(leaf, 3))
            .collect::<Vec<_>>()
    };
    let mut tables = named("HashMap<char, demo::Child>", vec![lookups()]);
    for site in &mut tables.sites {
        (site.peak_chunks, site.peak_usable) = (10_000, 1_000_000);
    }
    said(&tables, "sorted vector");
    let pop = || {
        let mut accesses = lookup(0, 0);
        accesses.push(Access {
            write: true,
            ..read(child(2, 0), LEAF, 8)
        });
        accesses
    };
    let queue = leaves().flat_map(|leaf| [lookup(leaf, 3), pop()].concat());
    said(
        &named("BTreeMap<u64, u64>", vec![queue.collect()]),
        "taken again and again",
    );
}
