use super::*;
use crate::analyses::test_profile::{group, point, profile};
use crate::profile::{Exit, Histogram, Leaks, Point, Run};

fn found(profile: &Profile) -> Vec<(usize, Kind, String)> {
    let found = findings(profile, &Options::default()).into_iter();
    found.map(|it| (it.site, it.kind, it.sentence)).collect()
}

/// Sentences about the first site, all touched, changed as the test says.
fn at_first(change: impl FnOnce(&mut Site)) -> Vec<String> {
    let mut run = profile();
    run.sites.truncate(1);
    run.sites[0].touched_bytes = 400_000;
    change(&mut run.sites[0]);
    sentences(&run)
}

fn sentences(profile: &Profile) -> Vec<String> {
    found(profile).into_iter().map(|it| it.2).collect()
}

/// The wastes of the hand-made profile, by what they save:
/// * records: 1,000 chunks of 400 B could have 104, of 1 MB;
/// * temporary strings: 20,000 * 20 of 1,000,000 + 21,016 * 20 + 37,500 events = 27.4 %;
/// * table: 300,000 B * 810,000 events of 1 MB * 1,000,000 = 24.3 %. That is 243 kB on average;
/// * vector: 14 * 20 + 600,000 / 16 = 37,780 events of 1,457,820 = 2.6 %.
#[test]
fn each_waste_is_found_and_ordered_by_what_it_saves() {
    let all = found(&profile());
    let rows: Vec<(usize, Kind, &str)> = all.iter().map(|(s, k, text)| (*s, *k, &**text)).collect();
    assert_eq!(
        rows,
        [
            (
                0,
                Kind::PartlyUsed,
                "100 of 400 bytes touched: leave other fields out, 296 kB at the peak"
            ),
            (
                2,
                Kind::Temporary,
                "20,000 temporary allocations: reuse one buffer"
            ),
            (
                3,
                Kind::LateFree,
                "never freed, unused for its last 1.62 s: 243 kB on average"
            ),
            (
                1,
                Kind::Growth,
                "grown 14 times, 600 kB moved: `with_capacity`, up to 300 kB"
            ),
        ]
    );
    let findings = findings(&profile(), &Options::default());
    let time = 1_457_820.0;
    let expected = [0.296, 400_000.0 / time, 0.243, 37_780.0 / time];
    for (finding, expected) in findings.iter().zip(expected) {
        let is_near = (finding.share - expected).abs() < 1e-4;
        assert!(is_near, "{finding:?} != {expected}");
    }
}

/// 20,000 * 20 ns of 20 ms are 2 %, and 37,780 ns are less than 1 %.
#[test]
fn without_accesses_only_calls_are_judged() {
    let mut run = profile();
    run.run.accesses = false;
    run.run.seconds = 0.02;
    let found = findings(&run, &Options::default());
    let kinds: Vec<Kind> = found.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [Kind::Temporary]);
    assert!((found[0].share - 0.02).abs() < 1e-9);
}

/// In a process of 100 MB, or ten times as fast, the same heap is not worth a word.
#[test]
fn small_wastes_are_not_told() {
    let mut run = profile();
    run.resident[0].bytes = 100_000_000;
    for site in &mut run.sites {
        (site.temporary, site.moved_bytes) = (site.temporary / 100, site.moved_bytes / 10);
    }
    assert_eq!(found(&run), []);
}

#[test]
fn useless_chunks_are_told() {
    let never = at_first(|site| site.untouched_chunks = 1000);
    let told = "never touched: allocate on first use, 400 kB at the peak";
    assert_eq!(never, [told]);
    let write_only = at_first(|site| {
        site.unread_chunks = 750;
        site.histogram = None;
    });
    assert_eq!(
        write_only,
        [
            "written, never read in 750 of 1,000 chunks: drop it, unless the system reads it, \
             300 kB at the peak"
        ]
    );
    let read_only = at_first(|site| {
        site.unwritten_chunks = 1000;
        site.histogram = None;
    });
    let told = "read, never written: share it, unless the system writes it, 400 kB at the peak";
    assert_eq!(read_only, [told]);
}

/// A type for the first site, whose chunks have `size` bytes and use the first `used`.
fn buffers(name: &str, element: u64, size: u64, used: usize) -> Vec<String> {
    let mut run = profile();
    run.sites.truncate(1);
    (run.types[0].name, run.types[0].size) = (name.to_owned(), Some(element));
    let site = &mut run.sites[0];
    (site.smallest, site.largest) = (size, size);
    let bytes = vec![0; usize::try_from(size).expect("few bytes")];
    let mut histogram = Histogram {
        reads: bytes.clone(),
        writes: bytes,
    };
    histogram.writes[..used].fill(1);
    site.histogram = Some(histogram);
    sentences(&run)
}

/// Vectors whose tail no chunk uses; 72 and 40 bytes for 64 and 32, in 1,000 chunks of 400.
#[test]
fn capacity_beyond_the_length_is_told() {
    let told = "4 of 8 slots used: `with_capacity(4)`, 360 kB at the peak";
    assert_eq!(buffers("Vec<u64>", 8, 64, 32), [told]);
    assert_eq!(buffers("Vec<u64>", 8, 64, 49), Vec::<String>::new());
    // What is saved is what the allocator would give back: as much for 1 byte as for 8.
    let of_map = buffers("HashMap<u8, u8>", 2, 84, 20);
    let told = "20 of 84 bytes touched: allocate less, 376 kB at the peak";
    assert_eq!(of_map, [told]);
    let small = |site: &mut Site| {
        site.histogram = None;
        (site.smallest, site.largest, site.touched_bytes) = (8, 8, 50_000);
        site.at_peak_usable = 24_000;
    };
    assert_eq!(at_first(small), Vec::<String>::new());
}

#[test]
fn copies_that_nobody_reads_are_told() {
    let copies = |change: &dyn Fn(&mut Site)| {
        let mut run = profile();
        run.types[0].name = "String".to_owned();
        run.sites[2].type_id = Some(0);
        run.sites.swap(0, 2);
        run.sites.truncate(1);
        run.sites[0].unread_chunks = 19_900;
        change(&mut run.sites[0]);
        sentences(&run)
    };
    let told = "19,900 of 20,000 strings only written or compared: do not make the copy";
    assert_eq!(copies(&|_| {}), [told]);
    // Some are read; they live long, as keys do that `memcmp` reads.
    let temporary = "20,000 temporary allocations: reuse one buffer";
    assert_eq!(copies(&|site| site.unread_chunks = 18_000), [temporary]);
    assert_eq!(copies(&|site| site.lifetime = u64::MAX), [temporary]);
    assert_eq!(copies(&|site| site.unseen = true), [temporary]);
}

/// The scratch memory of a stable sort; a vector of precompiled code; a part of a package's object
/// that is used otherwise.
#[test]
fn what_a_user_cannot_change_is_not_asked_for() {
    let mut run = profile();
    run.sites.truncate(1);
    run.sites[0].untouched_chunks = 1000;
    run.frames[0].function = "alloc::slice::sort::stable_sort".to_owned();
    assert_eq!(
        found(&run)[0].2,
        "never touched: `sort_unstable` needs none, 400 kB at the peak"
    );
    let grows = |run: &Profile| found(run).iter().any(|it| it.1 == Kind::Growth);
    let mut run = profile();
    assert!(grows(&run));
    run.sites[1].unseen = true;
    assert!(!grows(&run));
    // The table and the records are of one call; the line that allocates is a package's.
    let mut run = profile();
    run.frames.push(crate::profile::Frame {
        function: "regex::Dfa::new".to_owned(),
        line: 7,
        ..run.frames[1].clone()
    });
    let package = u32::try_from(run.frames.len() - 1).expect("few frames");
    let is_told = |run: &Profile| found(run).iter().any(|it| it.1 == Kind::LateFree);
    for (index, site) in run.sites.iter_mut().enumerate() {
        (site.stack, site.place) = (vec![package, 4, 5], Some(4));
        site.groups = vec![group(1, 1, 1, 1, 1_000_000 - index as u64)];
    }
    assert!(!is_told(&run));
    run.sites.retain(|site| site.drag > 0.0);
    assert!(is_told(&run));
}

/// 100 kB of 400 kB touched.
#[test]
fn reserved_bytes_are_told() {
    let reserved = at_first(|site| {
        site.histogram = None;
        site.touched_bytes = 100_000;
        site.smallest = 16;
    });
    let told = "reserved 400 kB, touched 100 kB: reserve less, or shrink it";
    assert_eq!(reserved, [told]);
}

/// 1,000 chunks of 400 bytes, each idle for 400,000 of its 500,000 events, which take 2 us:
/// 400 kB * 400,000 of 1,000,000 events = 160 kB on average.
#[test]
fn late_frees_and_early_allocations_are_told() {
    let late = at_first(|site| {
        site.histogram = None;
        site.drag = 400_000.0 * 400_000.0;
    });
    let told = "unused for its last 800 ms: free it then, 160 kB on average";
    assert_eq!(late, [told]);
    let early = at_first(|site| {
        site.histogram = None;
        site.wait = 400_000.0 * 400_000.0;
    });
    let told = "unused for its first 800 ms: allocate later, 160 kB on average";
    assert_eq!(early, [told]);
    let short = at_first(|site| {
        site.histogram = None;
        site.drag = 400_000.0 * 249_999.0;
    });
    assert_eq!(short, Vec::<String>::new());
}

#[test]
fn moves_are_told_in_the_words_of_the_language() {
    let moved = at_first(|site| {
        site.histogram = None;
        site.moved_bytes = 3_100_000_000;
    });
    let told = "3.10 GB moved by `realloc`: ask for the final size first";
    assert_eq!(moved, [told]);
    let mut run = profile();
    run.run.compiler = "gcc 12".to_owned();
    let growth = found(&run).pop().expect("the vector");
    assert_eq!(
        growth.2,
        "grown 14 times, 600 kB moved: ask for the final size first, up to 300 kB"
    );
}

#[test]
fn chunks_that_come_and_go_by_the_million_stand_out() {
    let churn = |frees| {
        at_first(|site| {
            site.histogram = None;
            (site.allocations, site.frees, site.peak_chunks) = (2_000_000, frees, 1000);
        })
    };
    let told = "2,000,000 allocations, 1,000 alive at most: reuse what is freed, or take them from \
                an arena";
    assert_eq!(churn(2_000_000), [told]);
    // A structure that is built once.
    assert_eq!(churn(3000), Vec::<String>::new());
}

#[test]
fn options_change_what_is_reported() {
    let options = Options {
        min_share: 0.25,
        ..Options::default()
    };
    assert_eq!(findings(&profile(), &options).len(), 2);
    let options = Options {
        used_part: 0.01,
        min_calls: 30_000,
        ..Options::default()
    };
    let kinds = findings(&profile(), &options).into_iter();
    assert_eq!(
        kinds.map(|it| it.kind).collect::<Vec<_>>(),
        [Kind::LateFree]
    );
}

#[test]
fn lines_that_threads_write_in_turn_are_false_sharing() {
    let line = SharedLine {
        address: 0x1000,
        turns: 1 << 20,
        same: 0,
        threads: 0b110,
        places: [(2, 0), (2, 8)],
        apart: false,
    };
    let said = |lines: Vec<SharedLine>| {
        let mut run = profile();
        run.sites.iter_mut().for_each(|it| *it = Site::default());
        run.total.heap_writes = 1 << 30;
        run.lines = lines;
        let found = found(&run).into_iter();
        found
            .map(|(site, _, text)| format!("{site}: {text}"))
            .collect::<Vec<_>>()
    };
    let sentence = "3 threads write one cache line in turn, some 8,388,608 times \
                    (bytes 0 and 8): give each thread 64 bytes of its own";
    assert_eq!(
        said(vec![line]),
        [format!("2: {}", sentence.replacen('3', "2", 1))]
    );
    // Two objects.
    for (places, text) in [
        ([(1, 0), (2, 8)], "(byte 0, and byte 8 of #2): align each"),
        (
            [(2, 0), (2, 0)],
            "(byte 0 of a chunk, and byte 0 of another): align",
        ),
    ] {
        let two = said(vec![SharedLine {
            places,
            apart: true,
            ..line
        }]);
        assert!(two[0].contains(text), "{two:?}");
    }
    // The same word, too; and a line that was handed over now and then.
    let same = SharedLine {
        same: 1 << 18,
        ..line
    };
    let few = SharedLine { turns: 100, ..line };
    assert_eq!(said(vec![same, few]), Vec::<String>::new());
}

/// A minute of a program that still runs, of which the first site has `alive` bytes at so many
/// seconds.
fn server(alive: impl Fn(u64) -> u64) -> Profile {
    let mut run = profile();
    run.sites.truncate(1);
    run.run = Run {
        seconds: 60.0,
        end: 60_000,
        ..Run::default()
    };
    let site = &mut run.sites[0];
    let at = |second: u64| Point {
        ns: second * 1_000_000_000,
        usable: alive(second),
        ..point(second * 1000, 0, 0)
    };
    site.curve = (1..=60).map(at).collect();
    (site.frees, site.end_chunks) = (0, 1000);
    run
}

#[test]
fn what_grows_all_the_time_is_told() {
    let leak = || server(|second| 10_000 * second);
    let told =
        "570 kB more in 56.2 s, evenly, and nothing freed: a leak, or a cache far from its limit";
    assert_eq!(found(&leak()), [(0, Kind::SteadyGrowth, told.to_owned())]);
    let changed = |change: fn(&mut Profile)| {
        let mut run = leak();
        change(&mut run);
        sentences(&run)
    };
    let none = Vec::<String>::new();
    // A program that has ended has built what it was to build.
    assert_eq!(changed(|run| run.run.exit = Exit::Code(0)), none);
    assert_eq!(changed(|run| run.run.exit = Exit::Signal(15)).len(), 1);
    assert_eq!(changed(|run| run.run.exit = Exit::Ended), none);
    assert_eq!(changed(|run| run.run.seconds = 9.0), none);
    // Few chunks; some that are freed; some that replace older ones; a scan knows better.
    assert_eq!(changed(|run| run.sites[0].end_chunks = 99), none);
    assert_eq!(changed(|run| run.sites[0].frees = 11), none);
    assert_eq!(changed(|run| run.total.unknown_frees = 251), none);
    assert_eq!(changed(|run| run.leaks = vec![Leaks::default()]), none);
    assert_eq!(changed(|run| run.sites[0].curve.clear()), none);
}

#[test]
fn caches_interners_and_tables_do_not_grow_all_the_time() {
    let told = |alive: fn(u64) -> u64| sentences(&server(alive)).len();
    // A table of the start; a cache with a limit; one that is emptied; a buffer that doubles.
    assert_eq!(told(|_| 1_000_000), 0);
    assert_eq!(told(|second| 20_000 * second.min(50)), 0);
    assert_eq!(told(|second| 20_000 * (second % 20)), 0);
    assert_eq!(told(|second| second.next_power_of_two() * 10_000), 0);
    // Names that are new ever more rarely; twice as many requests in the first half.
    assert_eq!(told(|second| (second * 1_000_000).isqrt() * 200), 0);
    assert_eq!(told(|second| 10_000 * (second + second.min(30))), 0);
    // A leak after a start that builds much, and with pauses.
    assert_eq!(told(|second| 1_000_000 + 10_000 * second), 1);
    assert_eq!(told(|second| 30_000 * (second / 3)), 1);
}

/// Numbers that no run has must not stop the tool.
#[test]
fn damaged_profiles_have_findings_or_none() {
    let mut run = profile();
    for site in &mut run.sites {
        site.allocations = u64::MAX;
        site.requested = 0;
        site.temporary = u64::MAX;
        site.drag = f64::INFINITY;
        site.wait = f64::NAN;
        site.first_time = u64::MAX;
        site.histogram = Some(Histogram::default());
    }
    run.run.end = 0;
    run.curve.clear();
    for finding in findings(&run, &Options::default()) {
        assert!(finding.share <= 1.0);
    }
}
