//! A Perfetto trace: curves as counters, threads as slices, and sites as a native heap profile.
//!
//! The messages are those of the published `perfetto_trace.proto`, as far as they are used.

use std::io::{self, Write};

use prost::Message;

use super::{Interner, frames, name, program};
use crate::analyses::curves::{StepFunction, end_ns};
use crate::analyses::units::rounded;
use crate::profile::{Profile, Thread};

#[derive(Clone, PartialEq, Message)]
struct Packet {
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    sequence: Option<u32>,
    #[prost(message, optional, tag = "11")]
    event: Option<Event>,
    #[prost(message, optional, tag = "12")]
    interned: Option<Interned>,
    #[prost(uint32, optional, tag = "13")]
    flags: Option<u32>,
    #[prost(message, optional, tag = "37")]
    heap: Option<Heap>,
    #[prost(message, optional, tag = "60")]
    track: Option<Track>,
}

#[derive(Clone, PartialEq, Message)]
struct Track {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(message, optional, tag = "3")]
    process: Option<ProcessOf>,
    #[prost(message, optional, tag = "4")]
    thread: Option<ThreadOf>,
    #[prost(uint64, optional, tag = "5")]
    parent: Option<u64>,
    #[prost(message, optional, tag = "8")]
    counter: Option<Counter>,
}

#[derive(Clone, PartialEq, Message)]
struct ProcessOf {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(string, repeated, tag = "2")]
    cmdline: Vec<String>,
    #[prost(string, optional, tag = "6")]
    name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct ThreadOf {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    tid: Option<i32>,
    #[prost(string, optional, tag = "5")]
    name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Counter {
    /// 3: bytes.
    #[prost(int32, optional, tag = "3")]
    unit: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    /// 1: a slice begins; 2: it ends; 4: a counter has a value.
    #[prost(int32, optional, tag = "9")]
    kind: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    track: Option<u64>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
    #[prost(int64, optional, tag = "30")]
    value: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Interned {
    #[prost(message, repeated, tag = "5")]
    functions: Vec<Text>,
    #[prost(message, repeated, tag = "6")]
    frames: Vec<FrameOf>,
    #[prost(message, repeated, tag = "7")]
    stacks: Vec<Stack>,
    #[prost(message, repeated, tag = "17")]
    paths: Vec<Text>,
    #[prost(message, repeated, tag = "18")]
    sources: Vec<Text>,
    #[prost(message, repeated, tag = "19")]
    mappings: Vec<Mapping>,
}

#[derive(Clone, PartialEq, Message)]
struct Text {
    #[prost(uint64, optional, tag = "1")]
    id: Option<u64>,
    #[prost(bytes = "vec", optional, tag = "2")]
    text: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct Mapping {
    #[prost(uint64, optional, tag = "1")]
    id: Option<u64>,
    #[prost(uint64, repeated, packed = "false", tag = "7")]
    path: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct FrameOf {
    #[prost(uint64, optional, tag = "1")]
    id: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    function: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    mapping: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    address: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    source: Option<u64>,
    #[prost(uint32, optional, tag = "6")]
    line: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
struct Stack {
    #[prost(uint64, optional, tag = "1")]
    id: Option<u64>,
    /// Outermost first.
    #[prost(uint64, repeated, packed = "false", tag = "2")]
    frames: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct Heap {
    #[prost(message, repeated, tag = "5")]
    dumps: Vec<Dump>,
}

#[derive(Clone, PartialEq, Message)]
struct Dump {
    #[prost(uint64, optional, tag = "1")]
    pid: Option<u64>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
    #[prost(uint64, optional, tag = "9")]
    timestamp: Option<u64>,
    #[prost(string, optional, tag = "11")]
    heap: Option<String>,
    #[prost(uint64, optional, tag = "12")]
    interval: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, optional, tag = "1")]
    stack: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    allocated: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    freed: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    allocations: Option<u64>,
    #[prost(uint64, optional, tag = "6")]
    frees: Option<u64>,
}

/// Packet sequences: of the tracks of events, and of the heap profile.
const SEQUENCES: [u32; 2] = [1, 2];
/// Its state begins here; it needs the state.
const FIRST_FLAGS: u32 = 1 | 2;
/// The process's; others follow.
const PROCESS_TRACK: u64 = 1;

/// Writes the trace.
///
/// # Errors
///
/// If `out` cannot take it.
pub fn write(profile: &Profile, out: impl Write) -> io::Result<()> {
    let mut trace = Trace { out };
    let pid = small(profile.run.pid.into());
    trace.track(Track {
        uuid: Some(PROCESS_TRACK),
        process: Some(ProcessOf {
            pid,
            cmdline: profile.run.command.clone(),
            name: Some(program(profile).to_owned()),
        }),
        ..Track::default()
    })?;
    let curves = [
        ("allocated", StepFunction::allocated(&profile.curve)),
        ("touched", StepFunction::touched(&profile.curve)),
        ("resident", StepFunction::resident(&profile.resident)),
    ];
    let mut uuid = PROCESS_TRACK;
    for (name, curve) in curves {
        uuid += 1;
        trace.counter(uuid, PROCESS_TRACK, name, &curve)?;
    }
    for thread in &profile.threads {
        uuid += 2;
        trace.thread(profile, thread, [uuid - 1, uuid])?;
    }
    trace.heap(profile)
}

/// As processes and threads are numbered.
fn small(id: u64) -> Option<i32> {
    i32::try_from(id).ok()
}

struct Trace<W> {
    out: W,
}

impl<W: Write> Trace<W> {
    fn put(&mut self, sequence: usize, packet: Packet) -> io::Result<()> {
        let packet = Packet {
            sequence: Some(SEQUENCES[sequence]),
            ..packet
        };
        // A trace is a message with packets in its field 1.
        let mut bytes = vec![1 << 3 | 2];
        prost::encoding::encode_varint(packet.encoded_len() as u64, &mut bytes);
        bytes.extend(packet.encode_to_vec());
        self.out.write_all(&bytes)
    }

    fn track(&mut self, track: Track) -> io::Result<()> {
        let is_first = track.uuid == Some(PROCESS_TRACK);
        let packet = Packet {
            flags: is_first.then_some(FIRST_FLAGS),
            track: Some(track),
            ..Packet::default()
        };
        self.put(0, packet)
    }

    fn event(&mut self, ns: u64, event: Event) -> io::Result<()> {
        let packet = Packet {
            timestamp: Some(ns),
            event: Some(event),
            ..Packet::default()
        };
        self.put(0, packet)
    }

    fn counter(
        &mut self,
        uuid: u64,
        parent: u64,
        name: &str,
        curve: &StepFunction,
    ) -> io::Result<()> {
        if curve.steps().is_empty() {
            return Ok(());
        }
        self.track(Track {
            uuid: Some(uuid),
            name: Some(name.to_owned()),
            parent: Some(parent),
            counter: Some(Counter { unit: Some(3) }),
            ..Track::default()
        })?;
        for step in curve.steps() {
            let event = Event {
                kind: Some(4),
                track: Some(uuid),
                value: Some(super::signed(step.value)),
                ..Event::default()
            };
            self.event(step.ns, event)?;
        }
        Ok(())
    }

    /// A slice from its start to its end, and below it what it has allocated.
    fn thread(&mut self, profile: &Profile, thread: &Thread, tracks: [u64; 2]) -> io::Result<()> {
        self.track(Track {
            uuid: Some(tracks[0]),
            thread: Some(ThreadOf {
                pid: small(profile.run.pid.into()),
                tid: small(thread.id),
                name: Some(format!("thread {}", thread.id)),
            }),
            ..Track::default()
        })?;
        for (kind, time) in [(1, thread.started), (2, thread.ended)] {
            let ns = rounded(profile.seconds(time.max(1)) * 1e9);
            let event = Event {
                kind: Some(kind),
                track: Some(tracks[0]),
                name: Some("alive".to_owned()).filter(|_| kind == 1),
                value: None,
            };
            self.event(ns, event)?;
        }
        let curve = StepFunction::allocated(&thread.curve);
        self.counter(tracks[1], tracks[0], "allocated", &curve)
    }

    fn heap(&mut self, profile: &Profile) -> io::Result<()> {
        let mut interned = Interned::default();
        let [mut functions, mut sources, mut modules] = [(); 3].map(|()| Interner::new());
        for (index, frame) in profile.frames.iter().enumerate() {
            let function = id_of(&mut functions, name(frame), &mut interned.functions);
            let source = id_of(&mut sources, (&*frame.file).into(), &mut interned.sources);
            let known = interned.paths.len();
            let module = id_of(&mut modules, (&*frame.module).into(), &mut interned.paths);
            if interned.paths.len() > known {
                interned.mappings.push(Mapping {
                    id: Some(module),
                    path: vec![module],
                });
            }
            interned.frames.push(FrameOf {
                id: Some(index as u64 + 1),
                function: Some(function),
                mapping: Some(module),
                address: Some(frame.address),
                source: Some(source).filter(|_| !frame.file.is_empty()),
                line: Some(frame.line).filter(|&line| line > 0),
            });
        }
        let stacks = profile.sites.iter().zip(1..).map(|(site, id)| Stack {
            id: Some(id),
            frames: frames(site).rev().map(|frame| frame as u64 + 1).collect(),
        });
        interned.stacks = stacks.collect();
        let samples = profile.sites.iter().zip(1..).map(|(site, id)| Sample {
            stack: Some(id),
            allocated: Some(site.usable),
            freed: Some(site.usable.saturating_sub(site.end_usable)),
            allocations: Some(site.allocations),
            frees: Some(site.allocations.saturating_sub(site.end_chunks)),
        });
        let end = end_ns(profile);
        let packet = Packet {
            timestamp: Some(end),
            flags: Some(FIRST_FLAGS),
            interned: Some(interned),
            heap: Some(Heap {
                dumps: vec![Dump {
                    pid: Some(profile.run.pid.into()),
                    samples: samples.collect(),
                    timestamp: Some(end),
                    heap: Some("malloc".to_owned()),
                    // All allocations are seen.
                    interval: Some(1),
                }],
            }),
            ..Packet::default()
        };
        self.put(1, packet)
    }
}

/// The number of a text, from 1 on.
fn id_of<'p>(
    table: &mut Interner<std::borrow::Cow<'p, str>>,
    text: std::borrow::Cow<'p, str>,
    texts: &mut Vec<Text>,
) -> u64 {
    let bytes = text.as_bytes().to_vec();
    let (index, is_new) = table.add(text);
    let id = index as u64 + 1;
    if is_new {
        texts.push(Text {
            id: Some(id),
            text: Some(bytes),
        });
    }
    id
}
