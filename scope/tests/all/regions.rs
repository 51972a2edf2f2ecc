//! Footprints of functions and spans, against sets of bytes for each open region.

mod reference;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::OnceLock;

use ccscope::Profile;
use ccscope::profile::{Region, RegionKind};
use tempfile::TempDir;

use crate::programs::{CCSCOPE, Instrumented, SCRATCH, cargo_run_with, command, succeed, text};
use reference::{Sums, regions};

/// The program, built once.
fn program() -> &'static Instrumented {
    static PROGRAM: OnceLock<Instrumented> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        cargo_run_with("regions", |command| {
            command.arg("--regions");
        })
    })
}

/// Runs one of the programs; its profile and the log of its events.
fn run(name: &str, options: &[&str]) -> (Profile, Vec<u8>) {
    let folder = TempDir::new().unwrap();
    let [profile, events] = ["main.ccscope", "events"].map(|name| folder.path().join(name));
    let mut command = command(CCSCOPE);
    command
        .args(["run", "--quiet", "--regions", "--output"])
        .arg(&profile);
    command.env("CCSCOPE_EVENTS", &events);
    command.args(options).arg(&program().executable).arg(name);
    let output = succeed(&mut command);
    assert!(text(&output.stdout).starts_with(name));
    (
        Profile::open(&profile).unwrap(),
        std::fs::read(&events).unwrap(),
    )
}

/// A region with those that it calls, in an order that does not depend on names.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    sums: Sums,
    is_span: bool,
    children: Vec<Node>,
}

fn sums(region: &Region) -> Sums {
    let all = [region.bytes, region.blocks, region.pages];
    let footprints = region
        .footprints
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0);
    Sums {
        invocations: region.invocations,
        recursive: region.recursive,
        reads: region.reads,
        writes: region.writes,
        allocations: region.allocations,
        allocated: region.allocated,
        total: all.map(|it| it.total),
        max: all.map(|it| it.max),
        reused: region.reused,
        fresh: region.fresh,
        footprints: footprints
            .map(|(bits, count)| (bits, u64::from(*count)))
            .collect(),
    }
}

fn of_profile(profile: &Profile) -> Vec<Node> {
    let mut children: HashMap<Option<u32>, Vec<Node>> = HashMap::new();
    for (index, region) in (0..)
        .zip(&profile.regions)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
    {
        let mut own = children.remove(&Some(index)).unwrap_or_default();
        own.sort();
        let node = Node {
            sums: sums(region),
            is_span: region.kind == RegionKind::Span,
            children: own,
        };
        children.entry(region.parent).or_default().push(node);
    }
    children.remove(&None).unwrap_or_default()
}

fn of_reference(found: &BTreeMap<reference::Path, Sums>) -> Vec<Node> {
    let mut found = found.clone();
    // Spans that were visited from here and are counted elsewhere.
    let paths: Vec<_> = found.keys().cloned().collect();
    for path in &paths {
        for len in 0..path.len() {
            found.entry(path[..len].to_vec()).or_default();
        }
    }
    let mut children: HashMap<reference::Path, Vec<Node>> = HashMap::new();
    let mut paths: Vec<&reference::Path> = found.keys().collect();
    paths.sort_by_key(|path| std::cmp::Reverse(path.len()));
    let mut roots = Vec::new();
    for path in paths {
        let mut own = children.remove(path).unwrap_or_default();
        own.sort();
        let node = Node {
            sums: found[path].clone(),
            is_span: path.last().is_some_and(|last| last.0 == 2),
            children: own,
        };
        match path.split_last() {
            Some((_, caller)) => children.entry(caller.to_vec()).or_default().push(node),
            None => roots.push(node),
        }
    }
    roots
}

/// Whether all figures of both are the same; says where the first difference is.
fn compare(ours: &[Node], theirs: &[Node], depth: usize) {
    assert_eq!(
        ours.len(),
        theirs.len(),
        "{depth} deep: {ours:#?} {theirs:#?}"
    );
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert_eq!(ours.sums, theirs.sums, "{depth} deep");
        assert_eq!(ours.is_span, theirs.is_span);
        compare(&ours.children, &theirs.children, depth + 1);
    }
}

fn check(name: &str) -> Profile {
    let (profile, log) = run(name, &[]);
    let found = regions(&log);
    assert!(found.len() > 3, "{name} has {} regions", found.len());
    compare(&of_profile(&profile), &of_reference(&found), 0);
    profile
}

macro_rules! programs {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            check(stringify!($name));
        }
    )*};
}

programs! { mutual threads panics sort maps tree strings futures }

fn named<'p>(profile: &'p Profile, end: &str) -> Vec<&'p Region> {
    let has = |region: &&Region| region.name.ends_with(end);
    profile.regions.iter().filter(has).collect()
}

#[test]
fn recursion() {
    let profile = check("recursion");
    let [walk] = named(&profile, "::walk")[..] else {
        panic!()
    };
    assert_eq!((walk.invocations, walk.recursive), (2, 1000 + 500));
    assert_eq!((walk.bytes.total, walk.bytes.max), (12_000, 8000));
    assert_eq!(walk.reused, 12_000, "its caller has written them");
    assert!(
        walk.file.ends_with("regions.rs") && walk.line > 0,
        "{walk:?}"
    );
}

#[test]
fn matrix() {
    let profile = check("matrix");
    let [row] = named(&profile, "row")[..] else {
        panic!()
    };
    assert_eq!((row.kind, row.invocations), (RegionKind::Span, 24 + 4 * 24));
    // A row of each of two matrices and the third whole; in blocks, a quarter of that.
    assert_eq!(row.bytes.max, 8 * (24 + 24 + 24 * 24));
    assert_eq!(row.footprints.iter().sum::<u32>(), 120);
}

#[test]
fn levels_are_told_apart_on_request() {
    let (profile, _) = run("recursion", &["--levels"]);
    let walks = named(&profile, "::walk");
    let levels: Vec<u32> = walks.iter().map(|it| it.level).collect();
    assert_eq!(levels, (1..=64).collect::<Vec<u32>>());
    assert_eq!(walks[1].bytes.max, 8000 - 8);
    assert_eq!(walks[63].invocations, 2);
    assert_eq!(walks[0].recursive, 1000 - 63 + 500 - 63);
}

/// Requests of an async server are spans, which several threads poll in turns.
#[test]
fn requests_of_a_server() {
    let folder = TempDir::new().unwrap();
    let [profile, events] = ["main.ccscope", "events"].map(|name| folder.path().join(name));
    let mut cargo = command(env!("CARGO_BIN_EXE_cargo-ccscope"));
    cargo.args(["ccscope", "run", "--regions", "--quiet", "--output"]);
    cargo
        .arg(&profile)
        .args(["--release", "--locked", "--offline"]);
    cargo.args(["-p", "region-programs", "--bin", "server", "--target-dir"]);
    cargo.arg(Path::new(SCRATCH).join("server"));
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    cargo.env("CCSCOPE_EVENTS", &events).args(["--", "20"]);
    assert_eq!(text(&succeed(&mut cargo).stdout), "124500 25471840\n");
    let profile = Profile::open(&profile).unwrap();
    let found = regions(&std::fs::read(&events).unwrap());
    compare(&of_profile(&profile), &of_reference(&found), 0);
    for (name, bytes) in [("small", 1000), ("large", 200_000)] {
        let spans = named(&profile, name);
        let spans: Vec<_> = spans
            .iter()
            .filter(|span| span.kind == RegionKind::Span)
            .collect();
        assert_eq!(spans.iter().map(|span| span.invocations).sum::<u64>(), 21);
        for span in spans.iter().filter(|span| span.invocations > 0) {
            let mean = span.bytes.total / span.invocations;
            assert!((bytes..bytes + 4000).contains(&mean), "{name}: {mean}");
            assert!((bytes..bytes + 8000).contains(&span.bytes.max), "{span:?}");
        }
    }
}
