//! Profile files: what is written is read, and whatever else is read is an error or a true part.

use std::io::Cursor;

use ccscope::profile::{
    Access, Chunk, Edge, Exceeded, Exit, Field, Frame, Group, Histogram, Leaks, Link, Mapping,
    PageUse, Point, Profile, Region, RegionKind, Resident, Run, SharedLine, Site, SiteCount,
    Thread, Totals, Type, Window,
};
use ccscope::store::{self, Reader};
use quickcheck::{Arbitrary, Gen, QuickCheck};

#[derive(Clone, Debug)]
struct AnyProfile(Profile);

/// A list with up to `most` entries.
fn some<T>(g: &mut Gen, most: usize, mut one: impl FnMut(&mut Gen) -> T) -> Vec<T> {
    let len = usize::arbitrary(g) % (most + 1);
    (0..len).map(|_| one(g)).collect()
}

fn number(g: &mut Gen) -> u64 {
    u64::arbitrary(g) >> (u32::arbitrary(g) % 64)
}

fn float(g: &mut Gen) -> f64 {
    number(g) as f64 / 3.0
}

fn text(g: &mut Gen) -> String {
    String::arbitrary(g)
}

/// An index of `count` entries.
fn index(g: &mut Gen, count: usize) -> u32 {
    u32::arbitrary(g) % u32::try_from(count).unwrap()
}

fn curve(g: &mut Gen) -> Vec<Point> {
    let (mut time, mut ns) = (0, 0);
    some(g, 5, |g| {
        time += 1 + u64::from(u32::arbitrary(g));
        ns += u64::from(u32::arbitrary(g));
        Point {
            time,
            ns,
            usable: number(g),
            peak: number(g),
            requested: number(g),
            touched: number(g),
            allocations: number(g),
        }
    })
}

fn site(g: &mut Gen, frames: usize, types: usize) -> Site {
    let len = usize::arbitrary(g) % 9;
    Site {
        stack: if frames == 0 {
            Vec::new()
        } else {
            some(g, 5, |g| index(g, frames))
        },
        place: (frames > 0).then(|| index(g, frames)),
        type_id: (types > 0).then(|| index(g, types)),
        allocations: number(g),
        frees: number(g),
        peak_time: number(g),
        lifetime: number(g),
        active_ratio: float(g),
        drag: float(g),
        wait: float(g),
        sizes: (0..48).map(|_| u32::arbitrary(g)).collect(),
        lifetimes: (0..48).map(|_| u32::arbitrary(g)).collect(),
        histogram: bool::arbitrary(g).then(|| Histogram {
            reads: (0..len).map(|_| number(g)).collect(),
            writes: (0..len).map(|_| number(g)).collect(),
        }),
        groups: some(g, 3, |g| Group {
            first_allocated: number(g),
            last_allocated: number(g),
            chunks: number(g),
            lifetimes: number(g),
            last_freed: number(g),
        }),
        curve: curve(g),
        ..Site::default()
    }
}

fn access(g: &mut Gen, sites: usize) -> Access {
    let outside = sites == 0 || bool::arbitrary(g);
    Access {
        address: number(g),
        size: u8::arbitrary(g),
        write: bool::arbitrary(g),
        site: if outside { u32::MAX } else { index(g, sites) },
        offset: u32::arbitrary(g),
        pointer: number(g),
        target: u32::MAX,
    }
}

/// Mappings and their pages, by address.
fn memory(g: &mut Gen) -> (Vec<Mapping>, Vec<PageUse>) {
    let (mut end, mut pages) = (0, Vec::new());
    let mappings = some(g, 4, |g| {
        let first = end + (number(g) >> 16);
        let mut page = first;
        let uses = some(g, 5, |g| {
            page += 1 + number(g) % 999;
            PageUse {
                page: page - 1,
                part: u8::arbitrary(g) % 64,
                loads: number(g),
                stores: number(g),
                blocks: number(g),
            }
        });
        pages.extend(uses);
        end = page + 1;
        Mapping {
            start: first << 12,
            end: end << 12,
            name: text(g),
            rights: text(g),
            is_traced: bool::arbitrary(g),
        }
    });
    (mappings, pages)
}

impl Arbitrary for AnyProfile {
    fn arbitrary(g: &mut Gen) -> AnyProfile {
        let frames = some(g, 9, |g| Frame {
            function: text(g),
            file: text(g),
            line: u32::arbitrary(g),
            module: text(g),
            address: number(g),
            inlined: bool::arbitrary(g),
        });
        let types = some(g, 4, |g| Type {
            name: text(g),
            size: Option::arbitrary(g),
            fields: some(g, 3, |g| Field {
                name: text(g),
                type_name: text(g),
                offset: number(g),
                size: number(g),
            }),
        });
        let sites = some(g, 9, |g| site(g, frames.len(), types.len()));
        let threads = some(g, 3, |g| Thread {
            id: number(g),
            started: number(g),
            ended: number(g),
            curve: curve(g),
            ..Thread::default()
        });
        let chunk = |g: &mut Gen| Chunk {
            site: index(g, sites.len()),
            address: number(g),
            size: number(g),
            thread: if threads.is_empty() {
                u16::MAX
            } else {
                u16::try_from(index(g, threads.len())).unwrap()
            },
            shared: bool::arbitrary(g),
            allocated: number(g),
            first: number(g),
            last: number(g),
            freed: number(g),
            reads: u32::arbitrary(g),
            writes: u32::arbitrary(g),
            touched: number(g),
        };
        let edge = |g: &mut Gen| Edge {
            from: index(g, sites.len()),
            offset: u32::arbitrary(g),
            to: index(g, sites.len()),
            loads: number(g),
            followed: number(g),
        };
        let (mappings, pages) = memory(g);
        let line = |g: &mut Gen| SharedLine {
            address: number(g),
            turns: number(g),
            same: number(g),
            threads: number(g),
            places: [(); 2].map(|()| (index(g, sites.len()), u32::arbitrary(g))),
            apart: bool::arbitrary(g),
        };
        let lines = match sites.is_empty() {
            true => Vec::new(),
            false => some(g, 3, line),
        };
        AnyProfile(Profile {
            mappings,
            pages,
            lines,
            exceeded: some(g, 3, |g| Exceeded {
                place: text(g),
                sites: Vec::new(),
            }),
            leaks: some(g, 3, |g| Leaks {
                bytes: number(g),
                chunks: number(g),
                ..Leaks::default()
            }),
            links: Vec::new(),
            run: Run {
                tool: text(g),
                command: Vec::arbitrary(g),
                pid: u32::arbitrary(g),
                started_ns: number(g),
                seconds: float(g),
                end: number(g),
                exit: Exit::Code(i32::arbitrary(g)),
                accesses: bool::arbitrary(g),
                window_rate: number(g),
                caveats: Vec::arbitrary(g),
                ..Run::default()
            },
            total: Totals {
                allocations: number(g),
                peak_time: number(g),
                ..Totals::default()
            },
            curve: curve(g),
            resident: some(g, 3, |g| Resident {
                time: number(g),
                ns: number(g),
                bytes: number(g),
            }),
            regions: some(g, 4, |g| Region {
                kind: RegionKind::Span,
                name: text(g),
                invocations: number(g),
                reused: number(g),
                footprints: vec![u32::arbitrary(g); 48],
                growth: some(g, 64, number),
                ..Region::default()
            }),
            edges: if sites.is_empty() {
                Vec::new()
            } else {
                some(g, 5, edge)
            },
            chunks: if sites.is_empty() {
                Vec::new()
            } else {
                some(g, 9, chunk)
            },
            windows: some(g, 3, |g| Window {
                time: number(g),
                from_start: bool::arbitrary(g),
                thread: u32::MAX,
                accesses: some(g, 20_000, |g| access(g, sites.len())),
            }),
            frames,
            types,
            sites,
            threads,
        })
    }
}

fn bytes_of(profile: &Profile) -> Vec<u8> {
    let mut bytes = Vec::new();
    store::write(profile, &mut bytes).unwrap();
    bytes
}

fn read(bytes: &[u8]) -> Result<Profile, ccscope::Error> {
    let mut reader = Reader::new(Cursor::new(bytes))?;
    let mut profile = reader.profile()?;
    profile.windows = reader.windows().collect::<Result<_, _>>()?;
    for block in reader.chunks() {
        profile.chunks.extend(block?);
    }
    Ok(profile)
}

/// A profile with an entry of each kind, in few bytes.
fn small() -> Profile {
    let point = Point {
        time: 3,
        ns: 70,
        usable: 24,
        peak: 48,
        requested: 20,
        touched: 8,
        allocations: 2,
    };
    let access = Access {
        address: 4096,
        size: 8,
        write: false,
        site: 0,
        offset: 8,
        pointer: 8192,
        target: 0,
    };
    let page = |page, part| PageUse {
        page,
        part,
        loads: 2,
        stores: 0,
        blocks: 1,
    };
    Profile {
        run: Run {
            tool: "0.1.0".into(),
            command: vec!["./run".into()],
            ..Run::default()
        },
        total: Totals {
            allocations: 2,
            requested: 20,
            ..Totals::default()
        },
        frames: vec![Frame {
            function: "main".into(),
            line: 3,
            ..Frame::default()
        }],
        types: vec![Type {
            name: "Node".into(),
            size: Some(8),
            fields: vec![Field {
                name: "key".into(),
                type_name: "u64".into(),
                offset: 0,
                size: 8,
            }],
        }],
        sites: vec![Site {
            stack: vec![0],
            place: Some(0),
            type_id: Some(0),
            allocations: 2,
            sizes: vec![0; 48],
            lifetimes: vec![0; 48],
            ..Site::default()
        }],
        threads: vec![Thread {
            id: 7,
            started: 1,
            ended: 9,
            ..Thread::default()
        }],
        curve: vec![point],
        resident: vec![Resident {
            time: 3,
            ns: 70,
            bytes: 4096,
        }],
        regions: vec![Region {
            name: "thread".into(),
            level: 1,
            invocations: 1,
            footprints: vec![0; 48],
            ..Region::default()
        }],
        mappings: vec![Mapping {
            start: 0x1000,
            end: 0x4000,
            name: "[heap]".into(),
            rights: "rw-p".into(),
            is_traced: true,
        }],
        pages: vec![page(1, 0), page(1, 63), page(3, 2)],
        exceeded: vec![Exceeded {
            place: "tests/it.rs:3:5".into(),
            sites: vec![SiteCount {
                site: 0,
                allocations: 1,
                bytes: 16,
            }],
        }],
        leaks: vec![
            Leaks::default(),
            Leaks {
                site: Some(0),
                chunks: 1,
                bytes: 16,
                indirect_chunks: 0,
                indirect_bytes: 0,
            },
        ],
        links: vec![Link {
            from: None,
            to: 0,
            pointers: 1,
        }],
        lines: vec![SharedLine {
            address: 64,
            turns: 1,
            same: 0,
            threads: 3,
            places: [(0, 0), (0, 8)],
            apart: false,
        }],
        edges: vec![Edge {
            from: 0,
            offset: 8,
            to: 0,
            loads: 2,
            followed: 1,
        }],
        chunks: vec![Chunk {
            site: 0,
            address: 4096,
            size: 16,
            thread: 0,
            shared: false,
            allocated: 2,
            first: 3,
            last: 4,
            freed: 0,
            reads: 1,
            writes: 1,
            touched: 8,
        }],
        windows: vec![Window {
            time: 3,
            from_start: true,
            thread: 0,
            accesses: vec![access; 2],
        }],
    }
}

/// Where the section that begins at `start` ends.
fn section_end(bytes: &[u8], start: usize) -> usize {
    let stored = bytes[start + 8..start + 12].try_into().unwrap();
    start + 28 + u32::from_le_bytes(stored) as usize
}

#[test]
fn what_is_written_is_read() {
    fn same(AnyProfile(profile): AnyProfile) -> bool {
        read(&bytes_of(&profile)).unwrap() == profile
    }
    QuickCheck::new()
        .tests(200)
        .quickcheck(same as fn(AnyProfile) -> bool);
}

#[test]
fn many_sections_of_a_kind_are_read_in_order() {
    let mut profile = small();
    profile.chunks = (0..100_000)
        .map(|i| Chunk {
            address: i,
            ..profile.chunks[0]
        })
        .collect();
    let frame = profile.frames[0].clone();
    profile.frames.extend((0..30_000).map(|line| Frame {
        line,
        ..frame.clone()
    }));
    let bytes = bytes_of(&profile);
    assert_eq!(read(&bytes).unwrap(), profile);
    let mut reader = Reader::new(Cursor::new(&bytes)).unwrap();
    assert!(reader.chunks().count() > 5, "chunks come in blocks");
}

#[test]
fn a_file_is_replaced_only_by_a_whole_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.ccscope");
    std::fs::write(&path, "old").unwrap();
    let mut profile = small();
    profile.run.tool = "x".repeat(5 << 20);
    let error = profile.save(&path).unwrap_err().to_string();
    assert!(error.contains("can be written"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    small().save(&path).unwrap();
    assert_eq!(Profile::open(&path).unwrap(), small());
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        1,
        "nothing else is left"
    );
}

#[test]
fn a_full_disk_is_one_line() {
    let error = small().save("/dev/full").unwrap_err().to_string();
    assert!(
        error.contains("/dev/full") && error.contains("No space left"),
        "{error}"
    );
    let error = small().save("/nonexistent/x").unwrap_err().to_string();
    assert!(
        error.contains("cannot be written to /nonexistent/x"),
        "{error}"
    );
}

/// Sections come in the order of the fields below; those beyond a cut are empty.
#[test]
fn every_truncation_is_an_error_or_a_true_part() {
    let whole = small();
    let bytes = bytes_of(&whole);
    let mut parts = 0;
    for len in 0..bytes.len() {
        let Ok(part) = read(&bytes[..len]) else {
            continue;
        };
        parts += 1;
        assert_eq!(part.run.caveats.len(), 1, "cut at {len}: not said");
        assert_eq!(
            Run {
                caveats: Vec::new(),
                ..part.run
            },
            whole.run
        );
        assert!(part.total == whole.total || part.total == Totals::default());
        let lists = [
            (part.frames.len(), part.frames == whole.frames),
            (part.types.len(), part.types == whole.types),
            (part.sites.len(), part.sites == whole.sites),
            (part.threads.len(), part.threads == whole.threads),
            (part.curve.len(), part.curve == whole.curve),
            (part.resident.len(), part.resident == whole.resident),
            (part.edges.len(), part.edges == whole.edges),
            (part.regions.len(), part.regions == whole.regions),
            (part.mappings.len(), part.mappings == whole.mappings),
            (part.pages.len(), part.pages == whole.pages),
            (part.lines.len(), part.lines == whole.lines),
            (part.windows.len(), part.windows == whole.windows),
            (part.chunks.len(), part.chunks == whole.chunks),
        ];
        assert!(
            lists.is_sorted_by_key(|(len, _)| *len == 0),
            "cut at {len}: {lists:?}"
        );
        assert!(
            lists.iter().all(|(len, same)| *len == 0 || *same),
            "cut at {len}"
        );
    }
    assert!(
        parts > bytes.len() / 2,
        "only {parts} of {} cuts can be read",
        bytes.len()
    );
}

#[test]
fn every_bit_flip_is_an_error() {
    let bytes = bytes_of(&small());
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&flipped).is_err(), "bit {bit} of {}", bytes.len() * 8);
    }
}

#[test]
fn a_section_that_is_missing_or_left_over_is_an_error() {
    let bytes = bytes_of(&small());
    let first = section_end(&bytes, 16);
    let without = [&bytes[..16], &bytes[first..]].concat();
    let twice = [&bytes[..first], &bytes[16..]].concat();
    let longer = [&bytes[..], b"."].concat();
    for (name, bytes) in [("without", without), ("twice", twice), ("longer", longer)] {
        let error = read(&bytes).unwrap_err().to_string();
        assert!(
            error.contains("sections are missing or follow"),
            "{name}: {error}"
        );
    }
}

#[test]
fn other_files_are_refused_in_a_line() {
    let text = read(b"#!/bin/sh\necho not a profile\n")
        .unwrap_err()
        .to_string();
    assert_eq!(text, "this is no profile of ccscope");
    assert_eq!(read(b"").unwrap_err().to_string(), text);
    let mut header = bytes_of(&small())[..16].to_vec();
    header[8] = 9;
    let checksum = crc32fast::hash(&header[..12]);
    header[12..].copy_from_slice(&checksum.to_le_bytes());
    let error = read(&header).unwrap_err().to_string();
    assert_eq!(
        error,
        "the profile is of version 9; this ccscope reads version 3"
    );
    let error = Profile::open("/").unwrap_err().to_string();
    assert_eq!(error, "/: is a folder");
}

/// A section with right checksums and the given numbers.
fn section(kind: u32, packing: u32, content: u32, items: u32, stored: &[u8]) -> Vec<u8> {
    let len = u32::try_from(stored.len()).unwrap();
    let words = [kind, packing, len, content, items, crc32fast::hash(stored)];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes.extend(stored);
    bytes
}

#[test]
fn a_kilobyte_cannot_ask_for_a_gigabyte() {
    let header = bytes_of(&small())[..16].to_vec();
    let huge = |packing, content, items, stored: &[u8]| {
        let section = section(3, packing, content, items, stored);
        read(&[&header[..], &section].concat())
            .unwrap_err()
            .to_string()
    };
    let stored = [0; 900];
    let error = huge(1, 1 << 30, 1, &stored);
    assert!(
        error.contains("900 bytes claim to hold 1073741824"),
        "{error}"
    );
    let error = huge(1, 16 * 900 + 1, 1, &stored);
    assert!(error.contains("900 bytes claim to hold 14401"), "{error}");
    let error = huge(0, 901, 1, &stored);
    assert!(error.contains("900 bytes claim to hold 901"), "{error}");
    // A run comes first; then a list that claims to be long, and more items than bytes.
    let run = section(1, 0, 1, 1, &[0]);
    let error = read(&[&header[..], &run].concat()).unwrap_err().to_string();
    assert!(error.contains("an item cannot be read"), "{error}");
    let whole = bytes_of(&small());
    let totals_end = section_end(&whole, section_end(&whole, 16));
    let list = section(4, 0, 6, u32::MAX, &[0xff, 0xff, 0xff, 0xff, 0x0f, 0]);
    let long = [&whole[..totals_end], &list].concat();
    let error = read(&long).unwrap_err().to_string();
    assert!(error.contains("an item cannot be read"), "{error}");
}

#[test]
fn references_to_nothing_are_errors() {
    type Change = fn(&mut Profile);
    let changes: [(Change, &str); 22] = [
        (|p| p.sites[0].stack[0] = 1, "a stack has a frame"),
        (|p| p.sites[0].place = Some(1), "a stack has a frame"),
        (|p| p.sites[0].type_id = Some(1), "of a type"),
        (|p| p.sites[0].drag = f64::NAN, "not a number"),
        (|p| p.sites[0].sizes.truncate(47), "a distribution"),
        (|p| p.run.seconds = f64::INFINITY, "not a number"),
        (|p| p.edges[0].to = 1, "an edge"),
        (|p| p.regions[0].parent = Some(0), "a region"),
        (|p| p.regions[0].footprints.clear(), "a region"),
        (|p| p.chunks[0].site = 1, "a chunk"),
        (|p| p.chunks[0].thread = 1, "a chunk"),
        (|p| p.windows[0].thread = 1, "a window"),
        (|p| p.windows[0].accesses[1].site = 1, "a window"),
        (|p| p.curve.push(p.curve[0]), "a curve"),
        (|p| p.mappings[0].end = 0x1000, "mappings"),
        (|p| p.mappings[0].start = 0xfff, "mappings"),
        (|p| p.mappings.push(p.mappings[0].clone()), "mappings"),
        (|p| p.pages[0].part = 64, "in order"),
        (|p| p.pages[1].part = 0, "in order"),
        (|p| p.pages[2].page = 4, "in no mapping"),
        (|p| p.lines[0].places[1].0 = 9, "a line is of a site"),
        (|p| p.pages[0].page = 2, "beyond all memory"),
    ];
    for (change, what) in changes {
        let mut profile = small();
        change(&mut profile);
        let error = read(&bytes_of(&profile)).unwrap_err().to_string();
        assert!(error.contains(what), "{what}: {error}");
    }
}
