//! Profiles of captures that are built by hand.

use std::collections::HashMap;

use ccscope::capture_format::accesses::{Access, Coder, MAX_BYTES};
use ccscope::capture_format::{self, WINDOW_ROOM, flags, layout};
use ccscope::profile::{Edge, Group, Histogram, Point, Run};
use ccscope::symbols::Symbols;

use quickcheck::{Arbitrary, Gen};

use crate::building::{Capture, zero};

fn chunk(start: u64, size: u64, site: u32) -> capture_format::Chunk {
    capture_format::Chunk {
        start,
        size_and_thread: size | 1 << 48,
        site,
        last_accessor: capture_format::NO_THREAD,
        ..zero()
    }
}

/// Numbers of a distribution: its index and count where that is not 0.
fn counted(counts: &[u32]) -> HashMap<usize, u32> {
    counts
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// Two sites, of which one has no debug information to tell more than where it is.
fn two_sites() -> Capture {
    let mut capture = Capture::new();
    let mut path = [0; 488];
    path[..17].copy_from_slice(b"/nonexistent/prog");
    capture.entry(
        layout::MODULES,
        0,
        capture_format::Module {
            start: 0x1000,
            end: 0x2000,
            bias: 0x1000,
            path,
        },
    );
    let nodes = [(0x1101, 0), (0x1201, 1), (0x5001, 1)];
    for (index, (pc, parent)) in (1..).zip(nodes) {
        capture.entry(
            layout::NODES,
            index,
            capture_format::Node {
                pc,
                parent,
                site: 0,
            },
        );
    }
    let point = capture_format::Point {
        time: 20,
        tsc: 600,
        usable: 24,
        peak: 32,
        requested: 20,
        touched: 8,
        allocations: 1,
    };
    // The last was being written when the process was killed.
    let points = [
        point,
        capture_format::Point {
            time: 40,
            tsc: 700,
            ..point
        },
        zero(),
    ];
    let curve = capture.heap(&[capture_format::Curve {
        len: 3,
        room: 3,
        shift: 0,
    }]);
    capture.heap(&points);

    // Reads, then writes, of each byte; in two shards of three.
    let hist = 400;
    let differences = [
        (0, 0, 3),
        (2, 0, 5),
        (2, 16, 8_u64.wrapping_neg()),
        (0, 17, 3),
    ];
    for (shard, place, difference) in differences {
        let shard = layout::HISTS + shard * layout::SHARD + hist;
        capture.put(shard + place * 8, difference);
    }
    capture.put(layout::HISTS + hist + 49 * 8, 3_u64.wrapping_neg());
    capture.put(layout::HISTS + layout::SHARD + hist, 100_u64);
    (capture.header.hists_used, capture.header.shards) = (800, 0b101);
    let first = capture_format::Group {
        first_allocated: 5,
        last_allocated: 5,
        chunks: 1,
        lifetimes: 10,
        last_freed: 15,
    };
    let second = capture_format::Group {
        first_allocated: 20,
        last_allocated: 40,
        chunks: 2,
        ..zero()
    };
    let groups = capture.heap(&[first, second]);
    let (mut sizes, mut lifetimes) = ([0; 48], [0; 48]);
    (sizes[5], lifetimes[4]) = (1, 1);
    let one = capture_format::Site {
        node: 2,
        allocations: 3,
        frees: 1,
        bytes: 72,
        usable: 96,
        live_chunks: 2,
        live_bytes: 48,
        live_usable: 64,
        peak_usable: 70,
        peak_time: 41,
        peak_chunks: 3,
        at_peak_usable: 33,
        at_peak_bytes: 25,
        at_peak_chunks: 1,
        peak_seen: 75,
        smallest: 24,
        largest: 24,
        first_time: 5,
        last_time: 40,
        reallocs: 7,
        moved_bytes: 8,
        longest_chain: 9,
        temporary: 10,
        longest_run: 11,
        live_touched: 8,
        hist,
        hist_size: 24,
        groups,
        groups_len: 2,
        groups_room: 2,
        curve: capture_format::CurveTail {
            offset: curve,
            until: 0,
            peak: 65,
        },
        reads: 5,
        writes: 1,
        touched_bytes: 16,
        useful_bytes: 16,
        lifetime: 10,
        shortest_life: 10,
        longest_life: 10,
        active_ratio: 0.25_f64.to_bits(),
        drag: 48_f64.to_bits(),
        wait: 24_f64.to_bits(),
        sizes,
        lifetimes,
        ..zero()
    };
    capture.entry(layout::SITES, 1, one);
    let other = capture_format::Site {
        node: 3,
        allocations: 2,
        bytes: 2100,
        live_chunks: 2,
        live_bytes: 2100,
        live_usable: 2112,
        // Not changed since the peak of the process.
        peak_seen: 10,
        hist_size: capture_format::SIZES_DIFFER,
        ..zero()
    };
    capture.entry(layout::SITES, 3, other);

    let a = capture_format::Chunk {
        reads: 1,
        writes: 2,
        touched: 0xff,
        allocated: 20,
        first: 30,
        last: 90,
        flags: flags::SHARED | flags::HISTOGRAM | flags::NON_OWNER,
        ..chunk(0x7000, 24, 1)
    };
    let b = capture_format::Chunk {
        allocated: 40,
        ..chunk(0x7100, 24, 1)
    };
    // Blocks 0 and 31, of which the last has 2000 - 31 * 64 = 16 bytes, and a bit beyond.
    let blocks = capture.heap(&[1_u64 | 1 << 31 | 1 << 32]);
    let c = capture_format::Chunk {
        writes: 4,
        touched: blocks,
        allocated: 50,
        first: 60,
        last: 60,
        ..chunk(0x9000, 2000, 3)
    };
    // Bytes 0 to 3 and 99, and a bit beyond.
    let bytes = capture.heap(&[0b1111_u64, 1 << 35 | 1 << 36]);
    let d = capture_format::Chunk {
        reads: 6,
        touched: bytes,
        allocated: 70,
        first: 80,
        last: 100,
        ..chunk(0xa000, 100, 3)
    };
    // Reads by threads that do not own the first.
    capture.put(layout::NON_OWNER_COUNTS + 8, 2_u64);
    // Entry 3 is free; the site of the last was not yet written.
    for (index, chunk) in [(1, a), (2, b), (4, c), (5, d), (6, chunk(0xb000, 8, 2))] {
        capture.entry(layout::CHUNKS, index, chunk);
    }
    let thread = capture_format::Thread {
        id: 77,
        started: 1,
        ended: 0,
        allocations: 5,
        live: 2176,
        peak: 2180,
        events: 50,
        curve: zero(),
    };
    capture.entry(layout::THREADS, 1, thread);
    capture.header.modules = 1;
    capture.header.nodes = 4;
    capture.header.sites = 4;
    capture.header.chunks = 7;
    capture.header.threads = 2;
    capture.header.total = capture_format::Site {
        allocations: 5,
        frees: 1,
        bytes: 2172,
        usable: 2208,
        live_usable: 2176,
        live_chunks: 4,
        peak_usable: 2145,
        peak_chunks: 3,
        peak_time: 75,
        ..zero()
    };
    capture.header.other_reads = 11;
    capture.header.other_writes = 12;
    capture.header.block_bytes = 13;
    capture.header.mapped_peak = 14;
    capture.header.unknown_frees = 15;
    capture.header.lost_chunks = 16;
    capture
}

#[test]
#[expect(clippy::float_cmp, reason = "all these sums are exact")]
fn live_chunks_are_folded_into_their_sites() {
    let profile = two_sites().profile().unwrap();
    let [one, other] = &profile.sites[..] else {
        panic!("{:?}", profile.sites)
    };
    assert_eq!(
        (one.allocations, one.frees, one.requested, one.usable),
        (3, 1, 72, 96)
    );
    assert_eq!((one.end_usable, one.end_chunks), (64, 2));
    assert_eq!(
        (one.peak_usable, one.peak_time, one.peak_chunks),
        (70, 41, 3)
    );
    assert_eq!(
        (
            one.at_peak_usable,
            one.at_peak_requested,
            one.at_peak_chunks
        ),
        (33, 25, 1)
    );
    assert_eq!(
        (one.smallest, one.largest, one.first_time, one.last_time),
        (24, 24, 5, 40)
    );
    assert_eq!(
        (one.reallocs, one.moved_bytes, one.longest_chain),
        (7, 8, 9)
    );
    assert_eq!((one.temporary, one.longest_run), (10, 11));
    // The freed one and `a`; nobody accessed `b`.
    assert_eq!((one.reads, one.writes), (5 + 3, 1 + 2));
    assert_eq!((one.touched_bytes, one.useful_bytes), (16 + 8, 16 + 8));
    assert_eq!(
        (
            one.untouched_chunks,
            one.unread_chunks,
            one.unwritten_chunks
        ),
        (1, 0, 0)
    );
    assert_eq!(one.shared_chunks, 1);
    // `a` lives from 20 and `b` from 40 until 100.
    assert_eq!(
        (one.lifetime, one.shortest_life, one.longest_life),
        (10 + 80 + 60, 10, 80)
    );
    assert_eq!(one.active_ratio, 0.25 + (90.0 - 30.0) / 80.0);
    assert_eq!(one.drag, 48.0 + 24.0 * (100.0 - 90.0) + 24.0 * 60.0);
    assert_eq!(one.wait, 24.0 + 24.0 * (30.0 - 20.0));
    assert_eq!(counted(&one.sizes), HashMap::from([(5, 3)]));
    assert_eq!(
        counted(&one.lifetimes),
        HashMap::from([(4, 1), (6, 1), (7, 1)])
    );
    let reads = [[8_u64; 8].as_slice(), &[0; 16]].concat();
    let writes = [[0_u64; 8].as_slice(), &[3; 16]].concat();
    assert_eq!(one.histogram, Some(Histogram { reads, writes }));
    let first = Group {
        first_allocated: 5,
        last_allocated: 5,
        chunks: 1,
        lifetimes: 10,
        last_freed: 15,
    };
    let second = Group {
        first_allocated: 20,
        last_allocated: 40,
        chunks: 2,
        lifetimes: 80 + 60,
        last_freed: 100,
    };
    assert_eq!(one.groups, [first, second]);
    // Two nanoseconds a tick, from 500 on.
    let point = Point {
        time: 20,
        ns: 200,
        usable: 24,
        peak: 32,
        requested: 20,
        touched: 8,
        allocations: 1,
    };
    assert_eq!(
        one.curve,
        [
            point,
            // As it is now.
            Point {
                time: 40,
                ns: 400,
                usable: 64,
                peak: 65,
                requested: 48,
                touched: 8,
                allocations: 2,
            }
        ]
    );

    assert_eq!(
        (
            other.at_peak_usable,
            other.at_peak_requested,
            other.at_peak_chunks
        ),
        (2112, 2100, 2)
    );
    assert_eq!((other.reads, other.writes), (6, 4));
    assert_eq!((other.touched_bytes, other.useful_bytes), (64 + 16 + 5, 0));
    assert_eq!(
        (
            other.untouched_chunks,
            other.unread_chunks,
            other.unwritten_chunks
        ),
        (0, 1, 1)
    );
    assert_eq!(
        (other.lifetime, other.shortest_life, other.longest_life),
        (50 + 30, 30, 50)
    );
    assert_eq!(other.active_ratio, 0.0 + 20.0 / 30.0);
    assert_eq!(other.drag, 2000.0 * 40.0);
    assert_eq!(other.wait, 2000.0 * 10.0 + 100.0 * 10.0);
    assert_eq!(counted(&other.sizes), HashMap::from([(11, 1), (7, 1)]));
    assert_eq!(
        (&other.histogram, other.groups.len(), other.curve.len()),
        (&None, 0, 0)
    );
}

#[test]
fn totals_stacks_threads_and_chunks_are_read() {
    let profile = two_sites().profile().unwrap();
    let run = &profile.run;
    assert_eq!(
        (run.pid, run.parent, run.started_ns, run.end),
        (42, 41, 1_000_000, 100)
    );
    assert_eq!((run.seconds, run.window_rate), (2e-6, 0));
    assert_eq!(run.caveats, ["Allocations not recorded: 17."]);
    let total = &profile.total;
    assert_eq!((total.allocations, total.frees), (5, 1));
    assert_eq!((total.requested, total.usable), (2172, 2208));
    assert_eq!(
        (total.peak_usable, total.peak_chunks, total.peak_time),
        (2145, 3, 75)
    );
    assert_eq!(total.peak_requested, 25 + 2100);
    assert_eq!((total.end_usable, total.end_chunks), (2176, 4));
    assert_eq!((total.heap_reads, total.heap_writes), (8 + 6, 3 + 4));
    assert_eq!(
        (total.other_reads, total.other_writes, total.block_bytes),
        (11, 12, 13)
    );
    assert_eq!(
        (total.mapped_peak, total.unknown_frees, total.lost_chunks),
        (14, 15, 17)
    );
    // Without debug information, a frame is a module and the call's address in its file.
    let names: Vec<Vec<&str>> = profile
        .sites
        .iter()
        .map(|site| {
            site.stack
                .iter()
                .map(|&i| &*profile.frames[i as usize].function)
                .collect()
        })
        .collect();
    assert_eq!(
        names,
        [["prog+0x200", "prog+0x100"], ["0x5001", "prog+0x100"]]
    );
    assert_eq!(profile.frames.len(), 3);
    let [thread] = &profile.threads[..] else {
        panic!("{:?}", profile.threads)
    };
    assert_eq!((thread.id, thread.started, thread.ended), (77, 1, 100));
    assert_eq!(
        (thread.allocations, thread.peak, thread.end_live),
        (5, 2180, 2176)
    );
    let addresses: Vec<u64> = profile.chunks.iter().map(|chunk| chunk.address).collect();
    assert_eq!(addresses, [0x7000, 0x7100, 0x9000, 0xa000]);
    let c = &profile.chunks[2];
    assert_eq!((c.site, c.size, c.thread, c.touched), (1, 2000, 0, 80));
    assert_eq!((c.allocated, c.first, c.last, c.freed), (50, 60, 60, 0));
    assert_eq!((c.reads, c.writes, c.shared), (0, 4, false));
    assert!(profile.chunks[0].shared);
}

/// A load from a chunk of `site` of a pointer and the site that it leads to, 0 if there is none.
fn access(site: u32, start: u64, offset: u32, (pointer, target): (u64, u32)) -> Access {
    Access {
        address: start + u64::from(offset),
        size: 8,
        write: false,
        pointer,
        target,
        site,
        offset,
    }
}

#[test]
fn packed_accesses_are_what_was_recorded() {
    fn random(g: &mut Gen) -> Access {
        // Near each other, far away, and in few chunks.
        let (far, any, site) = (u64::arbitrary(g), u32::arbitrary(g), u32::arbitrary(g) % 3);
        let start = *g.choose(&[0x7000, 0x7100, far]).unwrap();
        let offset = *g.choose(&[0, 8, any]).unwrap();
        let target = *g.choose(&[0, 0, 1, any]).unwrap();
        Access {
            address: start.wrapping_add(u64::from(offset)),
            size: u8::arbitrary(g),
            write: bool::arbitrary(g),
            pointer: if target == 0 { 0 } else { u64::arbitrary(g) },
            target,
            site,
            offset: if site == 0 { 0 } else { offset },
        }
    }
    let mut g = Gen::new(50);
    for _ in 0..100 {
        let accesses: Vec<Access> = (0..50).map(|_| random(&mut g)).collect();
        let (mut coder, mut packed) = (Coder::default(), Vec::new());
        for access in &accesses {
            let mut bytes = [0; MAX_BYTES];
            let len = coder.put(access, &mut bytes);
            packed.extend_from_slice(&bytes[..len]);
        }
        let (mut coder, mut rest) = (Coder::default(), &packed[..]);
        let read: Vec<Access> = std::iter::from_fn(|| coder.take(&mut rest)).collect();
        assert_eq!(read, accesses);
        let (mut coder, mut part) = (Coder::default(), &packed[..packed.len() - 1]);
        assert_eq!(std::iter::from_fn(|| coder.take(&mut part)).count(), 49);
    }
}

#[test]
fn edges_are_told_by_what_is_accessed_next() {
    let mut capture = two_sites();
    let mut recorded = Vec::new();
    let none = (0, 0);
    // To `c`, accessed next; to `c` from outside of the heap.
    recorded.extend([
        access(1, 0x7000, 8, (0x9000, 3)),
        access(3, 0x9000, 0, none),
    ]);
    recorded.push(access(0, 0x10, 0, (0x9000, 3)));
    // To `d`, which nobody accesses; to a site that is left out.
    recorded.extend([
        access(1, 0x7000, 8, (0xa000, 3)),
        access(1, 0x7000, 8, (0xdead_0000, 2)),
    ]);
    // Accessed 17 accesses later, and at the end of the window.
    recorded.push(access(3, 0x9000, 16, (0xc000, 1)));
    recorded.extend([access(0, 0x10, 0, none); 16]);
    recorded.extend([
        access(1, 0xc000, 8, none),
        access(3, 0x9000, 16, (0xc000, 1)),
    ]);
    recorded.push(Access {
        write: true,
        ..access(1, 0x7000, 0, none)
    });
    for (index, thread, accesses) in [
        (0, 9, &[access(0, 0x20, 0, none)][..]),
        (2, 1, &recorded[..]),
    ] {
        let (mut coder, mut packed) = (Coder::default(), Vec::new());
        for access in accesses {
            let mut bytes = [0; MAX_BYTES];
            let len = coder.put(access, &mut bytes);
            packed.extend_from_slice(&bytes[..len]);
        }
        let window = capture_format::Window {
            time: 32 - index,
            thread,
            bytes: packed.len() as u64,
            ..zero()
        };
        let place = layout::WINDOWS + index * WINDOW_ROOM;
        capture.entry(place, 0, window);
        let place = place + size_of::<capture_format::Window>() as u64;
        capture.map[usize::try_from(place).unwrap()..][..packed.len()].copy_from_slice(&packed);
    }
    capture.header.windows = 3;
    capture.header.other_reads = 26_000;
    let profile = capture.profile().unwrap();
    let [first, second] = &profile.windows[..] else {
        panic!("{:?}", profile.windows)
    };
    assert_eq!(
        (first.time, first.thread, first.accesses.len()),
        (30, 0, 25)
    );
    assert_eq!(
        (second.time, second.thread, second.accesses.len()),
        (32, u32::MAX, 1)
    );
    // 26 of all accesses were recorded.
    let total = &profile.total;
    let all = total.other_reads + total.other_writes + total.heap_reads + total.heap_writes;
    assert_eq!(
        (profile.run.window_rate, total.other_reads),
        (all / 26, 26_000)
    );
    let [load, .., store] = &first.accesses[..] else {
        panic!()
    };
    assert_eq!((load.address, load.size, load.write), (0x7008, 8, false));
    assert_eq!((load.site, load.offset, load.pointer), (0, 8, 0x9000));
    assert_eq!((store.address, store.size, store.write), (0x7000, 8, true));
    assert_eq!(first.accesses[2].site, u32::MAX);
    let edges = [
        Edge {
            from: 0,
            offset: 8,
            to: 1,
            loads: 2,
            followed: 1,
        },
        Edge {
            from: 1,
            offset: 16,
            to: 0,
            loads: 2,
            followed: 0,
        },
    ];
    assert_eq!(profile.edges, edges);
}

#[test]
fn damaged_captures_are_errors() {
    type Change = fn(&mut Capture);
    let changes: [(Change, &str); 14] = [
        (|c| c.header.magic = 0, "no capture"),
        (|c| c.header.version = 7, "of version 7, not"),
        (
            |c| c.header.modules = layout::MAX_MODULES + 1,
            "claims 4097 modules",
        ),
        (|c| c.header.nodes = u64::MAX, "frames"),
        (|c| c.header.sites = u64::MAX, "sites"),
        (|c| c.header.chunks = u64::MAX, "chunks"),
        (|c| c.header.windows = 66, "claims 66 windows"),
        (|c| c.used = u64::MAX, "its heap is too large"),
        (|c| c.used = 8, "heap is too large"),
        (|c| c.header.nodes = 1, "out of the table of frames"),
        (
            |c| {
                c.entry(
                    layout::NODES,
                    1,
                    capture_format::Node {
                        pc: 1,
                        parent: 2,
                        site: 0,
                    },
                );
            },
            "a stack leads in a circle",
        ),
        (
            |c| {
                let touched = layout::HEAP + c.used - 8;
                let chunk = capture_format::Chunk {
                    touched,
                    ..chunk(0xd000, 100, 1)
                };
                c.entry(layout::CHUNKS, 3, chunk);
            },
            "leads out of the heap",
        ),
        (
            |c| {
                let window = capture_format::Window {
                    bytes: WINDOW_ROOM,
                    ..zero()
                };
                c.entry(layout::WINDOWS, 0, window);
                c.header.windows = 1;
            },
            "claims 16777216 bytes",
        ),
        (
            |c| {
                let window = capture_format::Window { bytes: 1, ..zero() };
                c.entry(layout::WINDOWS, 0, window);
                c.header.windows = 1;
            },
            "ends within an access",
        ),
    ];
    for (change, what) in changes {
        let mut capture = two_sites();
        change(&mut capture);
        let error = capture.profile().unwrap_err();
        assert!(error.contains(what), "{what}: {error}");
    }
    // Threads beyond the table share an entry.
    let mut capture = two_sites();
    let threads = capture.profile().unwrap().threads;
    capture.header.threads = layout::MAX_THREADS + 1;
    assert_eq!(capture.profile().unwrap().threads, threads);
    let short = |len: usize| {
        let capture = &two_sites().map[..len];
        ccscope::capture::profile(capture, Run::default(), Vec::new(), &mut Symbols::default())
    };
    assert!(short(0).is_err() && short(100).is_err());
}

/// Sites that all name the same histogram would take more memory than the capture has.
#[test]
fn parts_that_overlap_are_errors() {
    let mut capture = two_sites();
    let site: capture_format::Site = capture_format::read(
        &capture.map,
        layout::SITES + size_of::<capture_format::Site>() as u64,
    )
    .unwrap();
    for index in 4..40 {
        capture.entry(layout::SITES, index, site);
    }
    capture.header.sites = 40;
    let error = capture.profile().unwrap_err();
    assert!(error.contains("a part of the heap is too large"), "{error}");
}
