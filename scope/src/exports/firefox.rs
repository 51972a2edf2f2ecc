//! The Firefox Profiler's JSON: curves as memory tracks, and allocations with their stacks.
//!
//! A site's curve becomes allocations and frees of its bytes. The viewer takes a free to be that of
//! a whole allocation, by its address: each rise of the curve is cut into parts that fall together.

use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

use fxprof_processed_profile::{
    self as fxprof, CategoryColor, CounterHandle, Frame as FxFrame, FrameFlags, FrameInfo,
    ReferenceTimestamp, SamplingInterval, StackHandle, ThreadHandle, Timestamp,
};

use super::{frames, lines, name, program, signed};
use crate::analyses::curves::{StepFunction, end_ns};
use crate::analyses::units::rounded;
use crate::profile::{Profile, Site};

/// Writes the file.
///
/// # Errors
///
/// If `out` cannot take it.
pub fn write(profile: &Profile, out: impl Write) -> serde_json::Result<()> {
    let start = UNIX_EPOCH + Duration::from_nanos(profile.run.started_ns);
    let mut file = fxprof::Profile::new(
        &format!("{} (ccscope)", program(profile)),
        ReferenceTimestamp::from_system_time(start),
        SamplingInterval::from_millis(1),
    );
    file.set_symbolicated(true);
    let process = file.add_process(program(profile), profile.run.pid, time(0));
    file.set_process_end_time(process, time(end_ns(profile)));
    let thread = file.add_thread(process, profile.run.pid, time(0), true);
    file.set_thread_name(thread, "allocations");
    file.set_thread_end_time(thread, time(end_ns(profile)));
    let curves = [
        ("allocated", StepFunction::allocated(&profile.curve)),
        ("touched", StepFunction::touched(&profile.curve)),
        ("resident", StepFunction::resident(&profile.resident)),
    ];
    for (name, curve) in curves {
        if curve.max(0, u64::MAX) > 0 {
            let counter = file.add_counter(process, name, "Memory", "Bytes of the process");
            steps(&mut file, counter, &curve, end_ns(profile));
        }
    }
    let stacks = stacks(&mut file, profile, thread);
    let mut samples: Vec<Sample> = Vec::new();
    let mut address = 0;
    for (site, it) in profile.sites.iter().enumerate() {
        for Part { bytes, from, to } in parts(profile, it) {
            address += 1;
            for (ns, bytes) in [(Some(from), signed(bytes)), (to, -signed(bytes))] {
                samples.extend(ns.map(|ns| Sample {
                    ns,
                    bytes,
                    address,
                    site,
                }));
            }
        }
    }
    samples.sort_unstable_by_key(|it| (it.ns, it.bytes < 0, it.address));
    for it in &samples {
        file.add_allocation_sample(thread, time(it.ns), stacks[it.site], it.address, it.bytes);
    }
    serde_json::to_writer(out, &file)
}

fn time(ns: u64) -> Timestamp {
    Timestamp::from_nanos_since_reference(ns)
}

/// The viewer joins values by lines, so that each step needs a value before it.
fn steps(file: &mut fxprof::Profile, counter: CounterHandle, curve: &StepFunction, end: u64) {
    let mut last = 0;
    let mut add = |ns: u64, value: u64| {
        let change = value as f64 - last as f64;
        file.add_counter_sample(counter, time(ns), change, 0);
        last = value;
    };
    let mut before = 0;
    for step in curve.steps() {
        add(step.ns.saturating_sub(1), before);
        add(step.ns, step.value);
        before = step.value;
    }
    add(end, before);
}

fn stacks(
    file: &mut fxprof::Profile,
    profile: &Profile,
    thread: ThreadHandle,
) -> Vec<Option<StackHandle>> {
    let category = file.add_category("Native", CategoryColor::Blue);
    let (lines, line_of) = lines(profile);
    let infos: Vec<FrameInfo> = { lines.iter() }
        .map(|line| {
            let text = match &*line.file {
                "" => name(line).into_owned(),
                path => format!("{} ({path}:{})", name(line), line.line),
            };
            FrameInfo {
                frame: FxFrame::Label(file.intern_string(&text)),
                category_pair: category.into(),
                flags: FrameFlags::empty(),
            }
        })
        .collect();
    let of_site = |site: &Site| {
        let stack = frames(site)
            .rev()
            .map(|frame| infos[line_of[frame]].clone());
        file.intern_stack_frames(thread, stack)
    };
    profile.sites.iter().map(of_site).collect()
}

/// An allocation, or a free of as many bytes.
struct Sample {
    ns: u64,
    bytes: i64,
    address: u64,
    site: usize,
}

/// Bytes of a site that come and go together.
struct Part {
    bytes: u64,
    from: u64,
    to: Option<u64>,
}

/// What comes last goes first.
fn parts(profile: &Profile, site: &Site) -> Vec<Part> {
    let at = |time: u64| rounded(profile.seconds(time.max(1)) * 1e9);
    let steps = match &*site.curve {
        [] => vec![
            (at(site.first_time), site.usable),
            (at(site.last_time), site.end_usable),
        ],
        curve => curve.iter().map(|point| (point.ns, point.usable)).collect(),
    };
    let (mut gone, mut there, mut before) = (Vec::new(), Vec::<Part>::new(), 0u64);
    for (ns, usable) in steps {
        let mut fall = before.saturating_sub(usable);
        while let Some(mut part) = there.pop_if(|_| fall > 0) {
            let bytes = part.bytes.min(fall);
            fall -= bytes;
            part.bytes -= bytes;
            gone.push(Part {
                bytes,
                from: part.from,
                to: Some(ns),
            });
            there.extend(Some(part).filter(|part| part.bytes > 0));
        }
        let bytes = usable.saturating_sub(before);
        there.extend((bytes > 0).then_some(Part {
            bytes,
            from: ns,
            to: None,
        }));
        before = usable;
    }
    gone.append(&mut there);
    gone
}
