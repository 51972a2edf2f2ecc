//! Names, places and types of allocations of programs that are compiled for the purpose.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use ccscope::capture_format::{self, layout};
use ccscope::profile::Profile;

use crate::building::{Capture, zero};
use crate::programs::{compile, succeed, text};

/// Runs a command that must succeed, and returns what it prints.
/// The profile of what `program` prints, and its sites by label.
fn profile(program: &Path) -> (Profile, HashMap<String, Vec<usize>>) {
    let printed = text(&succeed(&mut Command::new(program)).stdout);
    let mut lines = printed.lines();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let start = number(lines.next().unwrap());
    let mut capture = Capture::new();
    let mut path = [0; 488];
    let name = program.to_str().unwrap().as_bytes();
    path[..name.len()].copy_from_slice(name);
    let module = capture_format::Module {
        start,
        end: start + (1 << 30),
        bias: start,
        path,
    };
    capture.entry(layout::MODULES, 0, module);
    let (mut node, mut site) = (0, 0);
    let mut labels: HashMap<String, Vec<usize>> = HashMap::new();
    for line in lines {
        let (label, rest) = line.split_once(' ').unwrap();
        let (size, stack) = rest.split_once(' ').unwrap();
        let stack: Vec<u64> = stack
            .split(' ')
            .map(number)
            .take_while(|pc| *pc != 0)
            .collect();
        let mut parent = 0;
        for pc in stack.into_iter().rev() {
            node += 1;
            capture.entry(
                layout::NODES,
                u64::from(node),
                capture_format::Node {
                    pc,
                    parent,
                    site: 0,
                },
            );
            parent = node;
        }
        site += 1;
        let bytes = size.parse().unwrap();
        let node = u64::from(node);
        let entry = capture_format::Site {
            node,
            allocations: 1,
            bytes,
            ..zero()
        };
        capture.entry(layout::SITES, site, entry);
        labels
            .entry(label.to_owned())
            .or_default()
            .push(usize::try_from(site - 1).unwrap());
    }
    capture.header.modules = 1;
    capture.header.nodes = u64::from(node);
    capture.header.sites = site;
    (capture.profile().unwrap(), labels)
}

const RUST: [&str; 4] = [
    "--edition=2024",
    "-Copt-level=3",
    "--crate-name=types",
    "-Awarnings",
];
const V0: &str = "-Csymbol-mangling-version=v0";

/// Names of the types of each label's allocations, without repetitions.
fn names(profile: &Profile, labels: &HashMap<String, Vec<usize>>, label: &str) -> Vec<String> {
    let types = labels[label]
        .iter()
        .map(|&site| &profile.sites[site].type_id);
    let mut names: Vec<String> = types
        .map(|index| profile.types[index.unwrap() as usize].name.clone())
        .collect();
    names.dedup();
    names
}

#[test]
#[ignore = "takes long: CI runs it"]
fn rust_types_are_named_as_their_user_writes_them() {
    let folder = tempfile::tempdir().unwrap();
    for flags in [
        &["-g", V0][..],
        &["-Cdebuginfo=line-tables-only", V0],
        &["-g", "-Copt-level=0", V0],
        // Symbols have no generic arguments, unless the compiler is a later one.
        &["-g"],
        &["-Cdebuginfo=line-tables-only"],
        &["-g", "-Copt-level=0"],
    ] {
        let program = compile(
            folder.path(),
            &["rustc"],
            "types.rs",
            &[&RUST[..], flags].concat(),
        );
        let (profile, labels) = profile(&program);
        let expected = [
            ("box", "Box<Node>"),
            ("dyn", "Box<Node>"),
            ("enum", "Box<Shape>"),
            ("vec", "Vec<u32>"),
            ("capacity", "Vec<Node>"),
            ("macro", "Vec<Node>"),
            ("zeroed", "Vec<u16>"),
            ("collect", "Vec<(u32, u64)>"),
            ("slice", "Vec<u32>"),
            ("nested", "Vec<Vec<u8>>"),
            ("string", "String"),
            ("format", "String"),
            ("owned", "String"),
            ("rc", "Rc<Node>"),
            ("arc", "Arc<Node>"),
            ("map", "HashMap<String, u64>"),
            ("set", "HashSet<u32>"),
            ("bset", "BTreeSet<u32>"),
            ("deque", "VecDeque<u16>"),
            ("heap", "BinaryHeap<i64>"),
            ("list", "LinkedList<Pair<u8, u64>>"),
            ("clone", "Vec<f32>"),
        ];
        let wrong: Vec<_> = expected
            .iter()
            .map(|(label, name)| (*label, *name, names(&profile, &labels, label)))
            .filter(|(_, name, found)| found != &[name.to_string()])
            .collect();
        // In line tables, functions of `str` have no name that says so.
        let bytes = vec![("owned", "String", vec![String::from("Vec<u8>")])];
        let lines_only = flags[0].contains("line-tables-only");
        assert_eq!(
            wrong,
            if lines_only { bytes } else { Vec::new() },
            "{flags:?}"
        );
        assert_eq!(
            names(&profile, &labels, "btree"),
            ["Vec<(u32, u64)>", "BTreeMap<u32, u64>"]
        );
    }
}

#[test]
fn fields_and_places_are_told_by_debug_information() {
    for mangling in [&[V0][..], &[]] {
        let folder = tempfile::tempdir().unwrap();
        let flags = [&RUST[..], &["-g"], mangling].concat();
        let program = compile(folder.path(), &["rustc"], "types.rs", &flags);
        let (profile, labels) = profile(&program);
        let layout = |label: &str| {
            let site = &profile.sites[*labels[label].last().unwrap()];
            let kind = &profile.types[site.type_id.unwrap() as usize];
            let fields = kind.fields.iter();
            let fields =
                fields.map(|field| (&*field.name, &*field.type_name, field.offset, field.size));
            (kind.size, fields.collect::<Vec<_>>())
        };
        let (size, fields) = layout("box");
        assert_eq!(size, Some(24));
        for expected in [
            ("key", "u64"),
            ("next", "Option<Box<Node>>"),
            ("weight", "f32"),
        ] {
            assert!(
                fields.iter().any(|field| (field.0, field.1) == expected),
                "{fields:?}"
            );
        }
        // Behind both counts.
        let (size, mut counted) = layout("rc");
        assert_eq!(size, Some(16 + 24));
        let counts: Vec<_> = counted.drain(..2).map(|field| (field.0, field.2)).collect();
        assert_eq!(counts, [("strong", 0), ("weak", 8)]);
        let moved = fields
            .iter()
            .map(|field| (field.0, field.1, field.2 + 16, field.3));
        assert_eq!(counted, moved.collect::<Vec<_>>());
        // All variants of an enum, one over another.
        let (size, mut fields) = layout("enum");
        assert_eq!(size, Some(32));
        fields.sort_unstable();
        let names: Vec<_> = fields
            .iter()
            .map(|field| (field.0, field.1, field.3))
            .collect();
        let variants = [
            ("Circle.radius", "f64", 8),
            ("Named.0", "String", 24),
            ("Named.1", "u8", 1),
        ];
        assert_eq!(names, variants);
        let (size, fields) = layout("map");
        let fields: Vec<_> = fields
            .iter()
            .map(|field| (field.0, field.1, field.3))
            .collect();
        assert_eq!(
            (size, fields),
            (Some(32), vec![("0", "String", 24), ("1", "u64", 8)])
        );
        assert_eq!(layout("vec"), (Some(4), Vec::new()));
    }
}

#[test]
fn line_tables_suffice_for_places() {
    for flags in ["-g", "-Cdebuginfo=line-tables-only"] {
        let folder = tempfile::tempdir().unwrap();
        let flags = [&RUST[..], &[flags, V0]].concat();
        let program = compile(folder.path(), &["rustc"], "types.rs", &flags);
        let (profile, labels) = profile(&program);
        let place = |label: &str| {
            let site = &profile.sites[labels[label][0]];
            &profile.frames[site.place.unwrap() as usize]
        };
        // Line tables have no paths of modules.
        for (label, function) in [("box", "boxed"), ("vec", "grown")] {
            let found = &*place(label).function;
            assert_eq!(found.strip_prefix("types::").unwrap_or(found), function);
        }
        let source = include_str!("../programs/types.rs");
        let line = source.lines().nth(place("map").line as usize - 1).unwrap();
        assert_eq!(line.trim(), "map.insert(String::new(), u64::from(n));");
        assert!(place("map").inlined, "{:?}", place("map"));
        assert!(place("map").file.ends_with("types.rs"));
    }
}

#[test]
fn without_debug_information_the_symbol_table_names_functions() {
    let folder = tempfile::tempdir().unwrap();
    let flags = [&RUST[..], &["-Cdebuginfo=0", V0, "-Cstrip=debuginfo"]].concat();
    let (profile, labels) = profile(&compile(folder.path(), &["rustc"], "types.rs", &flags));
    let site = &profile.sites[labels["vec"][0]];
    let place = &profile.frames[site.place.unwrap() as usize];
    assert_eq!(
        (&*place.function, &*place.file, place.line),
        ("types::grown", "", 0)
    );
    assert_eq!(names(&profile, &labels, "vec"), ["Vec<u32>"]);

    let flags = [&RUST[..], &["-Cdebuginfo=0", V0, "-Cstrip=symbols"]].concat();
    let (profile, labels) = self::profile(&compile(folder.path(), &["rustc"], "types.rs", &flags));
    let site = &profile.sites[labels["vec"][0]];
    let place = &profile.frames[site.place.unwrap() as usize];
    assert!(place.function.starts_with("types-rs+0x"), "{place:?}");
    assert_eq!(names(&profile, &labels, "vec"), ["bytes"]);
}

#[test]
fn c_types_are_those_of_the_variables_assigned() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), &["gcc"], "types.c", &["-g", "-O1"]);
    let (profile, labels) = profile(&program);
    assert_eq!(names(&profile, &labels, "declared"), ["struct node"]);
    assert_eq!(names(&profile, &labels, "assigned"), ["point"]);
    assert_eq!(names(&profile, &labels, "member"), ["struct node"]);
    let kind =
        |label: &str| &profile.types[profile.sites[labels[label][0]].type_id.unwrap() as usize];
    assert_eq!(
        (kind("declared").size, kind("assigned").size),
        (Some(16), Some(8))
    );
    let fields = kind("declared").fields.iter();
    let fields: Vec<_> = fields
        .map(|field| (&*field.name, &*field.type_name, field.offset))
        .collect();
    assert_eq!(
        fields,
        [("key", "long int", 0), ("next", "struct node *", 8)]
    );
    assert_eq!(kind("assigned").fields.len(), 2);
}
