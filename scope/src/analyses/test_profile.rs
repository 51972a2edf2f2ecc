//! A small profile, made by hand, with one waste at each site.

use crate::profile::{
    Access, BUCKETS, Edge, Exit, Field, Footprint, Frame, Group, Histogram, Mapping, PageUse,
    Point, Profile, Region, RegionKind, Resident, Run, Site, Thread, Totals, Type, Window,
};

pub(crate) fn group(first: u64, last: u64, chunks: u64, lifetimes: u64, freed: u64) -> Group {
    Group {
        first_allocated: first,
        last_allocated: last,
        chunks,
        lifetimes,
        last_freed: freed,
    }
}

/// Two microseconds an event.
pub(crate) fn point(time: u64, usable: u64, touched: u64) -> Point {
    Point {
        time,
        ns: time * 2000,
        usable,
        peak: usable,
        requested: usable,
        touched,
        allocations: 100,
    }
}

fn frame(function: &str, file: &str, line: u32) -> Frame {
    Frame {
        function: function.to_owned(),
        file: file.to_owned(),
        line,
        module: "demo".to_owned(),
        address: 0x1000 + u64::from(line),
        inlined: false,
    }
}

/// A million events in two seconds; the peak is 1,000,000 bytes at half of the time.
///
/// | site | what | waste |
/// |--:|---|---|
/// | 0 | 1,000 records of 400 bytes | 4 bytes of each are read |
/// | 1 | a vector that grows to 300 kB | grown 14 times |
/// | 2 | 20,000 strings | temporary |
/// | 3 | a table of 300 kB | last used after a tenth of its life |
pub(crate) fn profile() -> Profile {
    let mut reads = vec![0; 400];
    reads[..4].fill(1000);
    let mut writes = vec![0; 400];
    writes[..100].fill(1000);
    let record = Site {
        stack: vec![0, 1, 5],
        place: Some(1),
        type_id: Some(0),
        allocations: 1000,
        frees: 1000,
        requested: 400_000,
        usable: 400_000,
        peak_usable: 400_000,
        peak_chunks: 1000,
        peak_time: 500_000,
        at_peak_usable: 400_000,
        at_peak_touched: 100_000,
        at_peak_requested: 400_000,
        at_peak_chunks: 1000,
        smallest: 400,
        largest: 400,
        first_time: 1,
        last_time: 10_000,
        reads: 1000,
        writes: 100_000,
        touched_bytes: 100_000,
        useful_bytes: 100_000,
        lifetime: 500_000_000,
        shortest_life: 400_000,
        longest_life: 600_000,
        active_ratio: 900.0,
        histogram: Some(Histogram { reads, writes }),
        groups: vec![group(1, 10_000, 1000, 500_000_000, 600_000)],
        curve: vec![point(10_000, 400_000, 0), point(600_000, 0, 0)],
        ..Site::default()
    };
    let vector = Site {
        stack: vec![0, 2, 5],
        place: Some(2),
        type_id: Some(1),
        allocations: 15,
        frees: 15,
        requested: 600_000,
        usable: 600_000,
        peak_usable: 300_000,
        peak_chunks: 1,
        at_peak_usable: 300_000,
        at_peak_touched: 300_000,
        at_peak_requested: 300_000,
        at_peak_chunks: 1,
        smallest: 32,
        largest: 300_000,
        first_time: 20_000,
        last_time: 200_000,
        reallocs: 14,
        moved_bytes: 600_000,
        longest_chain: 14,
        reads: 200_000,
        writes: 80_000,
        touched_bytes: 600_000,
        useful_bytes: 590_000,
        lifetime: 900_000,
        active_ratio: 14.0,
        groups: vec![group(20_000, 200_000, 15, 900_000, 920_000)],
        ..Site::default()
    };
    let string = Site {
        stack: vec![0, 3, 5],
        place: Some(3),
        allocations: 20_000,
        frees: 20_000,
        requested: 480_000,
        usable: 480_000,
        peak_usable: 24,
        peak_chunks: 1,
        smallest: 24,
        largest: 24,
        first_time: 300_000,
        last_time: 900_000,
        temporary: 20_000,
        reads: 60_000,
        writes: 60_000,
        touched_bytes: 480_000,
        useful_bytes: 480_000,
        lifetime: 400_000,
        active_ratio: 16_000.0,
        groups: vec![group(300_000, 900_000, 20_000, 400_000, 900_020)],
        ..Site::default()
    };
    let table = Site {
        stack: vec![4, 5],
        place: Some(4),
        type_id: Some(2),
        allocations: 1,
        requested: 300_000,
        usable: 300_000,
        peak_usable: 300_000,
        peak_chunks: 1,
        at_peak_usable: 300_000,
        at_peak_touched: 290_000,
        at_peak_requested: 300_000,
        at_peak_chunks: 1,
        end_usable: 300_000,
        end_chunks: 1,
        smallest: 300_000,
        largest: 300_000,
        first_time: 100_000,
        last_time: 100_000,
        reads: 30_000,
        writes: 30_000,
        touched_bytes: 290_000,
        useful_bytes: 290_000,
        lifetime: 900_000,
        active_ratio: 0.1,
        drag: 300_000.0 * 810_000.0,
        groups: vec![group(100_000, 100_000, 1, 900_000, 1_000_000)],
        ..Site::default()
    };
    let field = |name: &str, type_name: &str, offset, size| Field {
        name: name.to_owned(),
        type_name: type_name.to_owned(),
        offset,
        size,
    };
    let named = |name: &str, size, fields| Type {
        name: name.to_owned(),
        size,
        fields,
    };
    Profile {
        run: Run {
            tool: "0.1.0".to_owned(),
            command: vec!["demo".to_owned(), "--all".to_owned()],
            pid: 42,
            parent: 42,
            compiler: "rustc 1.95.0".to_owned(),
            machine: "a processor".to_owned(),
            seconds: 2.0,
            end: 1_000_000,
            exit: Exit::Code(0),
            accesses: true,
            window_rate: 1000,
            ..Run::default()
        },
        total: Totals {
            allocations: 21_016,
            frees: 21_015,
            requested: 1_780_000,
            usable: 1_780_000,
            peak_usable: 1_000_000,
            peak_requested: 1_000_000,
            peak_chunks: 1002,
            peak_time: 500_000,
            end_usable: 300_000,
            end_chunks: 1,
            heap_reads: 291_000,
            heap_writes: 270_000,
            other_reads: 100_000,
            other_writes: 50_000,
            ..Totals::default()
        },
        frames: vec![
            frame(
                "alloc::alloc::alloc",
                "/rustc/0123abcd/library/alloc/src/alloc.rs",
                95,
            ),
            frame("demo::record::Record::new", "src/record.rs", 12),
            frame("demo::collect", "src/main.rs", 31),
            frame("demo::label", "src/main.rs", 47),
            frame("demo::table::Table::load", "src/table.rs", 8),
            frame("demo::main", "src/main.rs", 60),
        ],
        types: vec![
            named(
                "Box<Record>",
                Some(400),
                vec![field("id", "u32", 0, 4), field("text", "[u8; 396]", 4, 396)],
            ),
            named("Vec<u64>", Some(8), Vec::new()),
            named("Box<[u8]>", Some(1), Vec::new()),
        ],
        sites: vec![record, vector, string, table],
        threads: vec![Thread {
            id: 42,
            started: 1,
            ended: 1_000_000,
            allocations: 21_016,
            peak: 1_000_000,
            end_live: 300_000,
            events: 1_000_000,
            curve: vec![point(1, 400, 0), point(250_000, 0, 0)],
        }],
        curve: vec![
            point(1, 400, 100),
            point(10_000, 400_000, 100_000),
            point(200_000, 1_000_000, 690_000),
            point(600_000, 600_000, 590_000),
            point(920_000, 300_000, 290_000),
        ],
        resident: vec![
            Resident {
                time: 1,
                ns: 2000,
                bytes: 500_000,
            },
            Resident {
                time: 400_000,
                ns: 800_000_000,
                bytes: 1_000_000,
            },
        ],
        edges: vec![Edge {
            from: 3,
            offset: 8,
            to: 0,
            loads: 500,
            followed: 450,
        }],
        ..Profile::default()
    }
}

/// A read of eight bytes.
pub(crate) fn access(address: u64, site: u32, offset: u32) -> Access {
    Access {
        address,
        size: 8,
        write: false,
        site,
        offset,
        pointer: 0,
        target: u32::MAX,
    }
}

pub(crate) fn window(time: u64, thread: u32, accesses: Vec<Access>) -> Window {
    Window {
        time,
        from_start: false,
        thread,
        accesses,
    }
}

/// The memory of a small program, of which data and heap were accessed.
pub(crate) fn pages() -> (Vec<Mapping>, Vec<PageUse>) {
    let mapping = |name: &str, rights: &str, first: u64, pages: u64| Mapping {
        start: first << 12,
        end: (first + pages) << 12,
        name: name.to_owned(),
        rights: rights.to_owned(),
        is_traced: rights == "rw-p" && name != "[stack]",
    };
    let mappings = vec![
        mapping("demo", "r-xp", 0x400, 2),
        mapping("demo", "r--p", 0x402, 1),
        mapping("demo", "rw-p", 0x403, 1),
        mapping("demo (bss)", "rw-p", 0x404, 2),
        mapping("[heap]", "rw-p", 0x500, 33),
        mapping("lib\u{1b}[31mc.so.6", "r-xp", 0x7_f000_0000, 256),
        mapping("[stack]", "rw-p", 0x7_fff0_0000, 33),
    ];
    let used = |page, part, [loads, stores, blocks]: [u64; 3]| PageUse {
        page,
        part,
        loads,
        stores,
        blocks,
    };
    let pages = vec![
        used(0x403, 0, [7, 0, 0]),
        used(0x500, 0, [100, 20, 1]),
        used(0x500, 1, [30, 0, 0]),
        used(0x501, 5, [1000, 0, 0]),
        used(0x520, 63, [0, 1, 1]),
    ];
    (mappings, pages)
}

/// A thread, `main`, a matrix product of 3 MB, its rows, and a small sibling with a span.
pub(crate) fn regions() -> Vec<Region> {
    let region = |parent, name: &str, invocations: u64, bytes: u64, reused| {
        let footprint = |unit| Footprint {
            total: invocations * bytes / unit,
            max: bytes / unit,
        };
        let bits = (u64::BITS - bytes.leading_zeros()) as usize;
        let mut footprints = vec![0; BUCKETS];
        footprints[bits] = u32::try_from(invocations).unwrap_or(u32::MAX);
        Region {
            parent,
            kind: RegionKind::Function,
            name: name.to_owned(),
            file: "/work/demo/src/main.rs".to_owned(),
            line: 30,
            level: 1,
            invocations,
            reads: invocations * bytes / 8,
            bytes: footprint(1),
            blocks: footprint(64),
            pages: footprint(4096),
            reused,
            footprints,
            growth: vec![bytes / 2, 0, bytes / 2, 0],
            step: 1 << 16,
            ..Region::default()
        }
    };
    let thread = Region {
        kind: RegionKind::Thread,
        ..region(None, "thread", 1, 3_200_000, 0)
    };
    let span = Region {
        kind: RegionKind::Span,
        recursive: 3,
        ..region(Some(4), "re\u{1b}[31mquest", 10, 640, 0)
    };
    vec![
        thread,
        region(Some(0), "demo::main", 1, 3_200_000, 0),
        region(Some(1), "demo::product", 1, 3_000_000, 0),
        region(Some(2), "demo::row", 1000, 100_000, 98_000_000),
        region(Some(1), "demo::serve", 10, 6400, 0),
        span,
    ]
}
