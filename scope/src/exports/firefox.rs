//! The Firefox Profiler's JSON: curves as memory tracks, and allocations with their stacks.
//!
//! A site's curve becomes allocations and frees of its bytes, so that the viewer's "retained
//! memory" of a span of time is what the site's bytes grew by.

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
    for (index, site) in profile.sites.iter().enumerate() {
        samples.extend(of_site(profile, index, site));
    }
    samples.sort_unstable_by_key(|sample| (sample.ns, sample.site));
    for it in &samples {
        let address = it.site as u64 + 1;
        file.add_allocation_sample(thread, time(it.ns), stacks[it.site], address, it.bytes);
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

/// A change of a site's bytes.
struct Sample {
    ns: u64,
    site: usize,
    bytes: i64,
}

fn of_site(profile: &Profile, site: usize, it: &Site) -> Vec<Sample> {
    if it.curve.is_empty() {
        let at = |time: u64| rounded(profile.seconds(time.max(1)) * 1e9);
        let freed = signed(it.usable.saturating_sub(it.end_usable));
        return [(it.first_time, signed(it.usable)), (it.last_time, -freed)]
            .into_iter()
            .filter(|&(_, bytes)| bytes != 0)
            .map(|(time, bytes)| Sample {
                ns: at(time),
                site,
                bytes,
            })
            .collect();
    }
    let mut last = 0;
    let changes = it.curve.iter().map(|point| {
        let bytes = signed(point.usable) - last;
        last = signed(point.usable);
        Sample {
            ns: point.ns,
            site,
            bytes,
        }
    });
    changes.filter(|it| it.bytes != 0).collect()
}
