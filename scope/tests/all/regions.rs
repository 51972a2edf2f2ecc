//! Footprints of functions and spans, against sets of bytes for each open region.

mod reference;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use ccscope::Profile;
use ccscope::capture_format::{self, layout};
use ccscope::profile::{Region, RegionKind};
use tempfile::TempDir;

use crate::building::{Capture, zero};
use crate::programs::{
    CCSCOPE, Instrumented, Run, SCRATCH, SOURCES, cargo_run_with, command, is_installed, succeed,
    text,
};
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

impl Sums {
    /// Over the invocations of both.
    fn plus(&self, other: &Self) -> Self {
        let mut footprints = self.footprints.clone();
        for (bits, count) in &other.footprints {
            *footprints.entry(*bits).or_default() += count;
        }
        Self {
            invocations: self.invocations + other.invocations,
            recursive: self.recursive + other.recursive,
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            allocations: self.allocations + other.allocations,
            allocated: self.allocated + other.allocated,
            total: std::array::from_fn(|at| self.total[at] + other.total[at]),
            max: std::array::from_fn(|at| self.max[at].max(other.max[at])),
            reused: self.reused + other.reused,
            fresh: self.fresh + other.fresh,
            footprints,
        }
    }
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
fn compare(ours: &[Node], mut theirs: Vec<Node>, depth: usize) {
    if theirs.len() > ours.len() {
        merge_instances(ours, &mut theirs);
    }
    assert_eq!(
        ours.len(),
        theirs.len(),
        "{depth} deep: {ours:#?} {theirs:#?}"
    );
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert_eq!(ours.sums, theirs.sums, "{depth} deep");
        assert_eq!(ours.is_span, theirs.is_span);
        compare(&ours.children, theirs.children, depth + 1);
    }
}

/// Merges functions of the log that are one in the profile. The log tells functions by their
/// addresses and the profile by their names, which instances of a generic one share.
fn merge_instances(ours: &[Node], theirs: &mut Vec<Node>) {
    let is_in = |nodes: &[Node], sums: &Sums| nodes.iter().any(|node| node.sums == *sums);
    let is_instance = |node: &mut Node| !node.is_span && !is_in(ours, &node.sums);
    let mut instances: Vec<Node> = theirs.extract_if(.., is_instance).collect();
    for merged in ours.iter().filter(|node| !node.is_span) {
        if is_in(theirs, &merged.sums) {
            continue;
        }
        let are_it = |set: &u32| {
            let of_set = (0..).zip(&instances).filter(|(at, _)| set >> at & 1 == 1);
            of_set.fold(Sums::default(), |sum, (_, it)| sum.plus(&it.sums)) == merged.sums
        };
        let Some(set) = (1..1_u32 << instances.len()).find(are_it) else {
            continue;
        };
        let mut children: Vec<Node> = Vec::new();
        for at in (0..instances.len()).rev().filter(|at| set >> at & 1 == 1) {
            children.extend(instances.remove(at).children);
        }
        children.sort();
        theirs.push(Node {
            sums: merged.sums.clone(),
            is_span: false,
            children,
        });
    }
    theirs.append(&mut instances);
    theirs.sort();
}

fn check(name: &str) -> Profile {
    let (profile, log) = run(name, &[]);
    let found = regions(&log);
    assert!(found.len() > 3, "{name} has {} regions", found.len());
    compare(&of_profile(&profile), of_reference(&found), 0);
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
    let is_ours = |region: &&Region| region.name.contains("ccscope::");
    assert_eq!(profile.regions.iter().find(is_ours), None);
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

#[test]
fn variables_of_threads_and_programs_are_not_of_the_heap() {
    let profile = check("variables");
    let counts = named(&profile, "::count");
    let calls: u64 = counts.iter().map(|it| it.invocations).sum();
    assert_eq!(calls, 2, "{:?}", profile.regions);
    assert!(counts.iter().all(|it| it.bytes.max == 0), "{counts:?}");
}

/// LLVM proves all accesses of the array to be safe, and instruments them only on request.
#[test]
fn arrays_on_the_stack_belong_to_all_memory() {
    let program = cargo_run_with("regions", |command| {
        command.args(["--regions", "--all-memory"]);
    });
    let mut run = command(CCSCOPE);
    let folder = TempDir::new().unwrap();
    run.args(["run", "--quiet", "--regions", "--all-memory", "--output"]);
    run.arg(folder.path().join("main.ccscope"));
    succeed(run.arg(&program.executable).arg("local"));
    let profile = Profile::open(folder.path().join("main.ccscope")).unwrap();
    let [array] = named(&profile, "::array")[..] else {
        panic!("{:?}", profile.regions)
    };
    assert!((4096..5000).contains(&array.bytes.max), "{array:?}");
    assert!(array.writes >= 256, "{array:?}");
}

/// Profiles a program of `tests/regions`, which is built without what only another of them needs.
fn region_program(name: &str, profile: &Path) -> Command {
    let mut cargo = command(env!("CARGO_BIN_EXE_cargo-ccscope"));
    cargo.args(["ccscope", "run", "--regions", "--quiet", "--output"]);
    cargo.arg(profile);
    cargo.args(["--release", "--locked", "--offline"]);
    cargo.args([
        "-p",
        "region-programs",
        "--no-default-features",
        "--bin",
        name,
    ]);
    cargo
        .arg("--target-dir")
        .arg(Path::new(SCRATCH).join("server"));
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    cargo
}

/// Requests of an async server are spans, which several threads poll in turns.
#[test]
#[ignore = "takes long: CI runs it"]
fn requests_of_a_server() {
    let folder = TempDir::new().unwrap();
    let [profile, events] = ["main.ccscope", "events"].map(|name| folder.path().join(name));
    let mut cargo = region_program("server", &profile);
    cargo.env("CCSCOPE_EVENTS", &events).args(["--", "6"]);
    assert_eq!(text(&succeed(&mut cargo).stdout), "124500 25471840\n");
    let profile = Profile::open(&profile).unwrap();
    let found = regions(&std::fs::read(&events).unwrap());
    compare(&of_profile(&profile), of_reference(&found), 0);
    for (name, bytes) in [("small", 1000), ("large", 200_000)] {
        let spans = named(&profile, name);
        let spans: Vec<_> = spans
            .iter()
            .filter(|span| span.kind == RegionKind::Span)
            .collect();
        assert_eq!(spans.iter().map(|span| span.invocations).sum::<u64>(), 7);
        for span in spans.iter().filter(|span| span.invocations > 0) {
            let mean = span.bytes.total / span.invocations;
            assert!((bytes..bytes + 4000).contains(&mean), "{name}: {mean}");
            assert!((bytes..bytes + 8000).contains(&span.bytes.max), "{span:?}");
        }
    }
}

/// How often spans of a name were closed in a profile.
fn closed(profile: &Profile, name: &str) -> u64 {
    let spans = named(profile, name);
    let spans = spans.iter().filter(|it| it.kind == RegionKind::Span);
    spans.map(|it| it.invocations).sum()
}

/// Spans that a child of `fork` has of its parent are of no region there, and do no harm.
#[test]
fn spans_of_a_parent_process_are_ignored() {
    let folder = TempDir::new().unwrap();
    let program = folder.path().join("forked");
    let mut compile = command(CCSCOPE);
    compile.args(["cc", "-O1", "-o"]).arg(&program);
    compile.arg(Path::new(SOURCES).join("forked-spans.c"));
    succeed(compile.env("CCSCOPE_REGIONS", "1"));
    for generations in ["1", "3"] {
        let run = Run::of(&["--regions", program.to_str().unwrap(), generations]);
        assert!(run.output.status.success(), "{}", run.err());
        assert!(run.out().contains("child status 0\n"), "{}", run.err());
        let parent = run.profile();
        assert_eq!([closed(&parent, "span"), closed(&parent, "work")], [1, 0]);
        let others = run.others();
        assert_eq!(others.len().to_string(), generations);
        for child in others {
            assert_eq!([closed(&child, "span"), closed(&child, "work")], [0, 2]);
        }
    }
}

/// The same by `ccscope::Regions`.
#[test]
#[ignore = "takes long: CI runs it"]
fn a_server_may_fork_while_spans_are_open() {
    let folder = TempDir::new().unwrap();
    let output = succeed(&mut region_program(
        "prefork",
        &folder.path().join("main.ccscope"),
    ));
    assert_eq!(text(&output.stdout), "child status 0\n");
    let run = Run { output, folder };
    let (parent, others) = (run.profile(), run.others());
    let [child] = &others[..] else {
        panic!("one child: {}", run.err())
    };
    let spans = ["held", "entered", "work"];
    assert_eq!(spans.map(|name| closed(&parent, name)), [0, 1, 0]);
    assert_eq!(spans.map(|name| closed(child, name)), [0, 0, 20]);
}

/// Units of work, and the longest chain of them in which each reads what one before has written.
/// The first over the second is the self-parallelism of a loop (Kremlin's, in D. Jeon et al. 2013),
/// as far as memory tells.
fn parallelism(name: &str) -> (u32, u32) {
    let (_, log) = run(name, &[]);
    let (mut units, mut longest, mut own, mut is_in) = (0_u32, 0_u32, 0_u32, false);
    let mut written: HashMap<u64, u32> = HashMap::new();
    let mut writes = Vec::new();
    let mut rest = &log[..];
    while let Some((record, after)) = rest.split_first_chunk::<32>() {
        let word = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap());
        rest = after;
        match record[0] {
            12 => rest = &rest[usize::try_from(word(16)).unwrap().next_multiple_of(32)..],
            5 => (is_in, own) = (true, 0),
            1 if is_in => own = own.max(written.get(&(word(8) / 8)).copied().unwrap_or(0)),
            2 if is_in => writes.push(word(8) / 8),
            6 => {
                written.extend(writes.drain(..).map(|place| (place, own + 1)));
                (units, longest, is_in) = (units + 1, longest.max(own + 1), false);
            }
            _ => {}
        }
    }
    (units, longest)
}

/// Why there is no analysis of parallelism: dependences through memory give the known answers, and
/// those through registers, which no callback tells, are missing.
#[test]
fn dependences_through_registers_are_not_seen() {
    let known = [
        ("independent", (64, 1)),
        ("pipeline", (60, 22)),
        ("divide", (63, 6)),
        ("wavefront", (64, 15)),
    ];
    for (name, expected) in known {
        assert_eq!(parallelism(name), expected, "{name}");
    }
    // Each unit needs the one before: the chain has 64.
    for name in ["list", "reduction"] {
        assert_eq!(parallelism(name), (64, 1), "{name}");
    }
}

/// Builds the program in C.
fn compile(compiler: &str, regions: &str, folder: &TempDir) -> PathBuf {
    let program = folder.path().join("regions");
    let mut compile = command(CCSCOPE);
    compile.args(["cc", "-O1", "-o"]).arg(&program);
    compile.arg(Path::new(SOURCES).join("regions.c"));
    compile
        .env("CCSCOPE_CC", compiler)
        .env("CCSCOPE_REGIONS", regions);
    succeed(&mut compile);
    program
}

/// As `arrays_on_the_stack_belong_to_all_memory`, of C.
#[test]
fn arrays_of_c_belong_to_all_memory() {
    if !is_installed("clang") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let program = compile("clang", "all", &folder);
    let run = Run::of(&["--regions", "--all-memory", program.to_str().unwrap()]);
    let profile = run.profile();
    let [local] = named(&profile, "local")[..] else {
        panic!("{:?}", profile.regions)
    };
    assert!((4096..5000).contains(&local.bytes.max), "{local:?}");
}

/// Functions of C, by each compiler: those that are not inlined.
#[test]
fn functions_of_c() {
    for compiler in ["gcc", "clang"]
        .into_iter()
        .filter(|name| is_installed(name))
    {
        let folder = TempDir::new().unwrap();
        let program = compile(compiler, "1", &folder);
        let run = Run::of(&["--regions", program.to_str().unwrap()]);
        assert_eq!(run.out(), "8386605\n", "{compiler}: {}", run.err());
        let profile = run.profile();
        let [halves] = named(&profile, "halves")[..] else {
            panic!("{compiler}: {:?}", profile.regions)
        };
        assert_eq!(
            (halves.invocations, halves.recursive),
            (1, 14),
            "{compiler}"
        );
        assert_eq!(halves.bytes.max, 8 * 4096, "{compiler}");
        let sums = named(&profile, "sum");
        let sums: Vec<_> = sums
            .iter()
            .map(|it| (it.invocations, it.bytes.max))
            .collect();
        assert_eq!(sums, [(8, 8 * 512), (1, 80)], "{compiler}");
        // Without the option, the same program is profiled as any other.
        let run = Run::of(&[program.to_str().unwrap()]);
        assert_eq!(run.profile().total.heap_reads, 4096 + 10, "{compiler}");
    }
    // One that is not built for regions is refused in a line.
    let run = Run::of(&["--regions", "/bin/true"]);
    assert!(!run.output.status.success());
    assert!(
        run.err()
            .contains("is not built for regions: use `cargo ccscope run --regions`")
    );
}

#[test]
fn regions_that_cannot_be_are_errors() {
    let region = |parent, kind, level| capture_format::Region {
        parent,
        kind,
        level,
        invocations: 1,
        ..zero()
    };
    let thread = region(0, capture_format::region::THREAD, 1);
    let with = |regions: &[capture_format::Region], open: Option<capture_format::Open>, depth| {
        let mut capture = Capture::new();
        for (number, region) in (1..).zip(regions) {
            capture.entry(layout::REGIONS, number, *region);
        }
        capture.header.regions = regions.len() as u64;
        capture.header.tracks = 1;
        let track = capture_format::Track { depth, ..zero() };
        capture.put(layout::TRACKS, track);
        if let Some(open) = open {
            capture.put(layout::TRACKS + layout::OPENS, open);
        }
        capture.profile()
    };
    let open = |region| capture_format::Open { region, ..zero() };
    let whole = with(&[thread], Some(open(1)), 1).unwrap();
    assert_eq!((whole.regions.len(), whole.regions[0].invocations), (1, 2));
    let span = region(1, capture_format::region::SPAN, 1);
    for (regions, open, depth, what) in [
        (vec![thread], None, u64::MAX, "more regions are open"),
        (
            vec![thread],
            Some(open(2)),
            1,
            "an open region is not there",
        ),
        (
            vec![region(1, 0, 1)],
            None,
            0,
            "within one that is not there",
        ),
        (vec![thread, region(1, 9, 1)], None, 0, "of no kind"),
        (vec![thread, span], None, 0, "a span has no name"),
    ] {
        let error = with(&regions, open, depth).unwrap_err();
        assert!(error.contains(what), "{what}: {error}");
    }
    // Numbers of any size are summed without overflow.
    let huge = capture_format::Region {
        invocations: u64::MAX,
        reads: u64::MAX,
        shift: u64::MAX,
        footprints: [u32::MAX; 48],
        growth: [u64::MAX; 32],
        touched: [capture_format::Touched {
            total: u64::MAX,
            max: u64::MAX,
        }; 3],
        ..thread
    };
    let profile = with(&[huge, huge], Some(open(1)), 1).unwrap();
    assert_eq!(profile.regions[0].invocations, u64::MAX);
    // One that was being made when the process ended is left out.
    assert_eq!(with(&[thread, zero()], None, 0).unwrap().regions.len(), 1);
}
