//! What is said of orders: of loops, of walks, and of fields beside pointers.

use super::*;

/// The ideas that say so, in a program that has the allocator already.
fn ideas(mut run: Profile, word: &str) -> Vec<Item> {
    run.frames[0].module = "libccmalloc.so".to_owned();
    let advice = advise(&run, &machine(), None).expect("there are windows");
    let all = advice.advice.into_iter();
    all.filter(|it| it.kind == Kind::Idea && it.what.contains(word))
        .collect()
}

fn gains(item: &Item) {
    assert!(item.worth_it && item.speedup.estimate > 1.1, "{item:?}");
    assert!(item.misses[1].after < item.misses[1].before, "{item:?}");
    let code = item.code.as_ref().expect("it has code");
    code::tests::assert_compiled(Language::Rust, code);
}

/// A table of 4,096 rows of 1 KiB, of which one after another of `cells` is accessed.
fn rows(name: &str, fields: &[(&str, u64, u64)], cell: fn(u64) -> (u64, u64)) -> Profile {
    let read = |number: u64| {
        let (row, column) = cell(number);
        let offset = u32::try_from(column % 128 * 8).expect("it is small");
        [access(
            HEAP + row % 4096 * 1040 + u64::from(offset),
            0,
            offset,
        )]
    };
    let size = if fields.is_empty() { 8 } else { 1024 };
    let mut run = with_windows(boxes(name, size, fields), windows_of(read));
    let site = &mut run.sites[0];
    (site.allocations, site.peak_chunks) = (4096, 4096);
    (site.smallest, site.largest, site.requested) = (1024, 1024, 4096 * 1024);
    run
}

#[test]
fn loops_that_go_by_columns_are_exchanged() {
    let by_columns = |number| (number, number / 4096 * 8);
    let found = ideas(rows("Vec<f64>", &[], by_columns), "exchange the loops");
    assert_eq!(found.len(), 1, "{found:?}");
    gains(&found[0]);
    assert!(found[0].what.contains("4,096 rows of 1.02 kB"), "{found:?}");
    let by_rows = |number| (number / 128, number);
    assert_eq!(ideas(rows("Vec<f64>", &[], by_rows), "exchange"), []);
    // A field of each record is no column.
    let fields = [("key", 0, 8), ("notes", 8, 1016)];
    let one_field = |number| (number, 0);
    let records = rows("Box<Record>", &fields, one_field);
    assert_eq!(ideas(records, "exchange"), []);
}

/// Walks through nodes that own vectors, two of them.
fn walked_twice(place: fn(u64) -> u64) -> Profile {
    let mut run = walked("Box");
    let mut places: HashMap<u64, u64> = HashMap::new();
    let mut moved = |base: u64| {
        let next = places.len() as u64;
        *places.entry(base).or_insert(HEAP + place(next) * 64)
    };
    for access in run.windows.iter_mut().flat_map(|it| &mut it.accesses) {
        access.address = moved(access.base()) + u64::from(access.offset);
        if access.pointer > 0 {
            access.pointer = moved(access.pointer);
        }
    }
    let again = run.windows.clone();
    let all = run.windows.into_iter().chain(again);
    let windows = all.map(|it| it.accesses).collect();
    run.windows = Vec::new();
    with_windows(run, windows)
}

#[test]
fn nodes_that_are_walked_again_go_into_one_vector() {
    let word = "one vector in the order of use";
    let found = ideas(walked_twice(place), word);
    assert_eq!(found.len(), 1, "{found:?}");
    gains(&found[0]);
    assert!(found[0].what.contains("`key`, `children`"), "{found:?}");
    // They lie in the order of the walk, there is no second walk, or searches go anywhere.
    assert_eq!(ideas(walked_twice(|next| next), word), []);
    assert_eq!(ideas(walked("Box"), word), []);
    assert_eq!(ideas(tree(), word), []);
}

/// Searches from node to node of a graph, each of which owns a vector of four links.
#[test]
fn the_links_of_a_graph_go_into_one_vector() {
    const COUNT: u64 = NODES / 4;
    let node = |it: u64| HEAP + place(it) * 160;
    let vector = |it: u64| HEAP * 2 + place(it) * 96;
    let mut run = walked("Rc");
    (run.sites[0].smallest, run.sites[0].largest) = (136, 136);
    let load = |address: u64, site: u32, offset: u32, (target, pointer): (u32, u64)| Access {
        target,
        pointer,
        ..access(address + u64::from(offset), site, offset)
    };
    // All links of a random node, and a word of each node that they lead to.
    let read = |number: u64| {
        let at = mix(number) % COUNT;
        let links = (0..4).flat_map(move |slot| {
            let to = node(mix(at * 4 + u64::from(slot)) % COUNT);
            [load(vector(at), 1, slot * 8, (0, to)), access(to, 0, 0)]
        });
        std::iter::once(load(node(at), 0, 16, (1, vector(at)))).chain(links)
    };
    run.windows = Vec::new();
    let found = ideas(
        with_windows(run, windows_of(read)),
        "links of all into a second",
    );
    assert_eq!(found.len(), 1, "{found:?}");
    gains(&found[0]);
    assert!(found[0].what.contains("12 bytes each"), "{found:?}");
}

/// Slots of a vector that lead to tasks, of which these words are read.
fn tasks(words: fn(u64) -> &'static [u32]) -> Profile {
    let fields = [("key", 0, 8), ("machine", 8, 8), ("load", 16, 64)];
    let mut run = boxes("Box<Node>", 80, &fields);
    let read = |number: u64| {
        let slot = mix(number) % NODES;
        let offset = u32::try_from(slot * 8).expect("it is small");
        let task = HEAP * 2 + place(slot) * 96;
        let load = Access {
            pointer: task,
            target: 0,
            ..access(HEAP + slot * 8, 1, offset)
        };
        let words = words(number).iter();
        let words = words.map(move |&word| access(task + u64::from(word), 0, word));
        std::iter::once(load).chain(words)
    };
    run.types.push(Type {
        name: "Vec<Box<Node>>".to_owned(),
        size: Some(8),
        fields: Vec::new(),
    });
    let bytes = NODES * 8;
    run.sites.push(Site {
        type_id: Some(1),
        allocations: 1,
        peak_chunks: 1,
        smallest: bytes,
        largest: bytes,
        ..run.sites[0].clone()
    });
    with_windows(run, windows_of(read))
}

#[test]
fn keys_go_beside_the_pointers_that_lead_to_them() {
    let found = ideas(tasks(|_| &[0]), "beside the pointer");
    assert_eq!(found.len(), 1, "{found:?}");
    gains(&found[0]);
    assert!(found[0].what.contains("read `key` alone"), "{found:?}");
    // Most visits read on.
    assert_eq!(ideas(tasks(|_| &[0, 40]), "beside the pointer"), []);
}

#[test]
fn nothing_is_said_of_places_that_were_not_replayed() {
    // Independent reads of all of a record, each of two lines.
    let read = |number: u64| {
        let start = HEAP + mix(number) % NODES * 160;
        [0, 64, 120].map(|at| access(start + u64::from(at), 0, at))
    };
    let said = |fast: bool| {
        let mut run = with_windows(boxes("bytes", 128, &[]), windows_of(read));
        run.frames[0].module = "libccmalloc.so".to_owned();
        let seconds = run.total.heap_reads as f64 * if fast { 1e-8 } else { 1e-6 };
        let advice = advise(&run, &machine(), Some(seconds)).expect("there are windows");
        advice.advice.into_iter().map(|it| (it.kind, it.what))
    };
    let is_left = |(kind, what): &(Kind, String)| {
        *kind == Kind::None && what.contains("even if all its accesses hit")
    };
    assert!(!said(true).any(|it| is_left(&it)));
    assert!(said(true).any(|(_, what)| what.contains("were not tried; in the first cache")));
    assert!(said(false).all(|it| is_left(&it)));
}
