//! Regions of all threads, merged by call path.

use std::collections::{BTreeMap, HashMap};

use super::{Source, Stacks, damaged, entry, index_32};
use crate::Error;
use crate::capture_format::{self, Header, Open, Track, layout, region};
use crate::profile::{Footprint, Region, RegionKind};

/// Reads the regions; those that are open end now.
pub(super) fn read(
    capture: Source<'_>,
    header: &Header,
    stacks: &mut Stacks<'_>,
) -> Result<Vec<Region>, Error> {
    let count = header.regions.min(layout::MAX_REGIONS - 1);
    let there = capture.present::<capture_format::Region>(layout::REGIONS, 1, count);
    let mut raw: BTreeMap<u64, capture_format::Region> = there
        .map(|number| Ok((number, entry(capture, layout::REGIONS, number)?)))
        // One of level 0 was being made when the process was killed, and leads nowhere. A damaged
        // count makes millions of these.
        .filter(|it| !matches!(it, Ok((_, capture_format::Region { level: 0, .. }))))
        .collect::<Result<_, Error>>()?;
    for track in 0..header.tracks.min(layout::MAX_TRACKS) {
        end_open(capture, track, header.events, &mut raw)?;
    }
    let mut merged: Vec<Region> = Vec::new();
    let mut index_of: HashMap<(Option<u32>, u32, String, u32), u32> = HashMap::new();
    let mut index_of_raw: HashMap<u64, u32> = HashMap::new();
    for (number, raw) in &raw {
        let parent = match (raw.parent, index_of_raw.get(&raw.parent.into())) {
            (0, _) => None,
            (_, Some(&index)) => Some(index),
            (_, None) => return Err(damaged("a region lies within one that is not there")),
        };
        let place = place(capture, header, raw, stacks)?;
        let key = (parent, raw.kind, place.name.clone(), raw.level);
        let index = *index_of.entry(key).or_insert_with(|| {
            merged.push(Region {
                parent,
                footprints: vec![0; raw.footprints.len()],
                growth: vec![0; region::STEPS],
                step: 1 << raw.shift.min(63),
                level: raw.level,
                ..place
            });
            index_32(merged.len() - 1)
        });
        index_of_raw.insert(*number, index);
        add(&mut merged[index as usize], raw);
    }
    Ok(without_empty(merged))
}

/// Without regions that have not ended and did nothing, such as those of spans that are open; but
/// with those that lead to others.
fn without_empty(regions: Vec<Region>) -> Vec<Region> {
    let mut kept = vec![false; regions.len()];
    for (index, region) in regions.iter().enumerate().rev() {
        kept[index] |= region.invocations > 0;
        if let (true, Some(parent)) = (kept[index], region.parent) {
            kept[parent as usize] = true;
        }
    }
    let mut new = vec![0; regions.len()];
    let mut left: Vec<Region> = Vec::new();
    for (index, mut region) in regions.into_iter().enumerate() {
        if kept[index] {
            new[index] = index_32(left.len());
            region.parent = region.parent.map(|parent| new[parent as usize]);
            left.push(region);
        }
    }
    left
}

/// Ends the invocations that a track has open, as the runtime does.
fn end_open(
    capture: Source<'_>,
    number: u64,
    now: u64,
    regions: &mut BTreeMap<u64, capture_format::Region>,
) -> Result<(), Error> {
    let start = layout::TRACKS + number * layout::TRACK_ROOM;
    let track: Track = entry(capture, start, 0)?;
    let most = (layout::OPENS_END - layout::OPENS) / size_of::<Open>() as u64;
    if track.depth > most {
        return Err(damaged("more regions are open than there is room for"));
    }
    let mut touched = [0_i64; 3];
    for index in (0..track.depth).rev() {
        let open: Open = entry(capture, start + layout::OPENS, index)?;
        for (sum, count) in touched.iter_mut().zip(open.touched) {
            *sum = sum.saturating_add(count);
        }
        let Some(region) = regions.get_mut(&open.region.into()) else {
            return Err(damaged("an open region is not there"));
        };
        if open.span != 0 {
            continue;
        }
        region.invocations = region.invocations.saturating_add(1);
        let sizes = touched.map(|count| count.max(0).cast_unsigned());
        for (sum, size) in region.touched.iter_mut().zip(sizes) {
            sum.total = sum.total.saturating_add(size);
            sum.max = sum.max.max(size);
        }
        let bits = 64 - sizes[0].leading_zeros() as usize;
        let bucket = bits.min(region.footprints.len() - 1);
        region.footprints[bucket] = region.footprints[bucket].saturating_add(1);
        let before = &open.before;
        for (sum, now, before) in [
            (&mut region.reads, track.reads, before.reads),
            (&mut region.writes, track.writes, before.writes),
            (&mut region.fresh, track.fresh, before.fresh),
            (
                &mut region.allocations,
                track.allocations,
                before.allocations,
            ),
            (&mut region.allocated, track.allocated, before.allocated),
        ] {
            *sum = sum.saturating_add(now.saturating_sub(before));
        }
        region.reused = region.reused.saturating_add(open.reused);
        let last = now.checked_shr(u32::try_from(region.shift).unwrap_or(u32::MAX));
        let last = usize::try_from(last.unwrap_or(0)).unwrap_or(usize::MAX);
        let last = &mut region.growth[last.min(region::STEPS - 1)];
        *last = last.saturating_add(sizes[0].saturating_sub(open.grown));
    }
    Ok(())
}

/// The name, file and line of a region.
fn place(
    capture: Source<'_>,
    header: &Header,
    raw: &capture_format::Region,
    stacks: &mut Stacks<'_>,
) -> Result<Region, Error> {
    let mut place = Region::default();
    match raw.kind {
        region::THREAD => "thread".clone_into(&mut place.name),
        region::FUNCTION => {
            place.kind = RegionKind::Function;
            // The last is the function itself; what is inlined at its entry comes before.
            let function = stacks.of_address(raw.key).last().copied();
            if let Some(frame) = function.map(|index| &stacks.frames[index as usize]) {
                place.name.clone_from(&frame.function);
                place.file.clone_from(&frame.file);
                place.line = frame.line;
            }
            if place.name.is_empty() {
                place.name = format!("{:#x}", raw.key);
            }
        }
        region::SPAN => {
            place.kind = RegionKind::Span;
            // Its number is one more than where its length stands.
            let number = raw.key & u64::from(u32::MAX);
            let offset = number
                .checked_sub(1)
                .filter(|offset| *offset < header.names_used);
            let name = offset.and_then(|offset| {
                let at = usize::try_from(layout::NAMES + offset).ok()?;
                let len = usize::from(*capture.bytes.get(at)?);
                capture.bytes.get(at + 1..at + 1 + len)
            });
            let Some(name) = name else {
                return Err(damaged("a span has no name"));
            };
            place.name = String::from_utf8_lossy(name).into_owned();
        }
        _ => return Err(damaged("a region is of no kind")),
    }
    Ok(place)
}

/// Adds the sums of the same path in another thread.
fn add(to: &mut Region, raw: &capture_format::Region) {
    for (sum, more) in [
        (&mut to.invocations, raw.invocations),
        (&mut to.recursive, raw.recursive),
        (&mut to.reads, raw.reads),
        (&mut to.writes, raw.writes),
        (&mut to.allocations, raw.allocations),
        (&mut to.allocated, raw.allocated),
        (&mut to.reused, raw.reused),
        (&mut to.fresh, raw.fresh),
    ] {
        *sum = sum.saturating_add(more);
    }
    let sums = [&mut to.bytes, &mut to.blocks, &mut to.pages];
    for (Footprint { total, max }, more) in sums.into_iter().zip(raw.touched) {
        *total = total.saturating_add(more.total);
        *max = (*max).max(more.max);
    }
    for (sum, more) in to.footprints.iter_mut().zip(raw.footprints) {
        *sum = sum.saturating_add(more);
    }
    let step = 1 << raw.shift.min(63);
    while to.step < step {
        halve(&mut to.growth);
        to.step *= 2;
    }
    let mut growth = raw.growth.to_vec();
    for _ in 0..(to.step / step).trailing_zeros() {
        halve(&mut growth);
    }
    for (sum, more) in to.growth.iter_mut().zip(growth) {
        *sum = sum.saturating_add(more);
    }
}

/// Merges pairs.
fn halve(growth: &mut [u64]) {
    for index in 0..growth.len() {
        let pair = growth.get(2 * index..2 * index + 2);
        growth[index] = pair.map_or(0, |pair| pair[0].saturating_add(pair[1]));
    }
}
