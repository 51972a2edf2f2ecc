//! Reads histograms, maps, groups and curves, which lie where offsets in other entries say.

use super::{Clock, Source, damaged};
use crate::Error;
use crate::capture_format::{self, BLOCK, Header, MAX_MAPPED_BYTES, layout};
use crate::profile::{Group, Histogram, Point};

/// The capture's heap.
pub(super) struct Heap<'c> {
    capture: Source<'c>,
    end: u64,
    /// Bytes that may still be read. No two parts share bytes, so a capture that asks for more
    /// than it has is damaged; without this, many sites could name one large part.
    left: u64,
    /// Bytes of each shard of histograms that may still be read.
    lane_left: u64,
    shards: u64,
}

impl<'c> Heap<'c> {
    pub(super) fn new(capture: Source<'c>, header: &Header) -> Result<Heap<'c>, Error> {
        let used = header.heap_used;
        if used > layout::HEAP_END - layout::HEAP || header.hists_used > layout::SHARD {
            return Err(damaged("its heap is too large"));
        }
        Ok(Heap {
            capture,
            end: layout::HEAP + used,
            left: used,
            lane_left: header.hists_used,
            // Anybody may count in the first.
            shards: header.shards | 1,
        })
    }

    /// The part of `len` bytes at `start`; `None` if it is a hole.
    fn bytes(&mut self, start: u64, len: u64) -> Result<Option<&'c [u8]>, Error> {
        let left = self.left.checked_sub(len);
        self.left = left.ok_or_else(|| damaged("a part of the heap is too large"))?;
        let outside = || damaged("an offset leads out of the heap");
        let end = start
            .checked_add(len)
            .filter(|&end| start >= layout::HEAP && end <= self.end);
        let at = start;
        let range = usize::try_from(start)
            .ok()
            .zip(end.and_then(|end| usize::try_from(end).ok()));
        range
            .and_then(|(start, end)| self.capture.bytes.get(start..end))
            .map(|bytes| self.capture.has_data(at, len).then_some(bytes))
            .ok_or_else(outside)
    }

    /// `count` entries from `start` on.
    fn entries<T: capture_format::Plain>(
        &mut self,
        start: u64,
        count: u64,
    ) -> Result<Vec<T>, Error> {
        let each = size_of::<T>() as u64;
        let bytes = self.bytes(start, count.saturating_mul(each))?;
        let Some(bytes) = bytes.filter(|_| count > 0) else {
            return Ok(Vec::new());
        };
        let there = self.capture.present::<T>(start, 0, count - 1);
        Ok(there
            .filter_map(|index| capture_format::read(bytes, index * each))
            .collect())
    }

    /// The last point stands for what is `now`: usable, requested and touched bytes, and all
    /// allocations so far.
    pub(super) fn curve(
        &mut self,
        tail: capture_format::CurveTail,
        clock: Clock,
        [usable, requested, touched, allocations]: [u64; 4],
    ) -> Result<Vec<Point>, Error> {
        let offset = tail.offset;
        if offset == 0 {
            return Ok(Vec::new());
        }
        let Some(&curve) = self.entries::<capture_format::Curve>(offset, 1)?.first() else {
            return Ok(Vec::new());
        };
        let first = offset.saturating_add(size_of::<capture_format::Curve>() as u64);
        let points = self.entries::<capture_format::Point>(first, u64::from(curve.len))?;
        // The point that was being written when the process was killed may be any; the counters
        // of two cores may differ a little.
        let (mut last, mut ns) = (0, 0);
        let mut curve = Vec::with_capacity(points.len());
        for point in points.iter().filter(|point| {
            let later = point.time > last;
            last = last.max(point.time);
            later
        }) {
            ns = clock.ns(point.tsc).max(ns);
            curve.push(Point {
                time: point.time,
                ns,
                usable: point.usable,
                peak: point.peak,
                requested: point.requested,
                touched: point.touched,
                allocations: point.allocations,
            });
        }
        if let Some((last, others)) = curve.split_last_mut() {
            let before = others.iter().map(|point| point.allocations);
            let before = before.fold(0, u64::saturating_add);
            (last.usable, last.requested, last.touched) = (usable, requested, touched);
            last.peak = tail.peak.max(usable);
            last.allocations = allocations.saturating_sub(before);
        }
        Ok(curve)
    }

    /// In order of time. Lifetimes are those of freed chunks.
    pub(super) fn groups(&mut self, offset: u64, count: u64) -> Result<Vec<Group>, Error> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut groups = self.entries::<capture_format::Group>(offset, count)?;
        groups.sort_by_key(|group| group.first_allocated);
        Ok(groups
            .into_iter()
            .map(|group| Group {
                first_allocated: group.first_allocated,
                last_allocated: group.last_allocated,
                chunks: group.chunks,
                lifetimes: group.lifetimes,
                last_freed: group.last_freed,
            })
            .collect())
    }

    pub(super) fn histogram(&mut self, offset: u64, size: u64) -> Result<Option<Histogram>, Error> {
        if size == 0 || size > MAX_MAPPED_BYTES {
            return Ok(None);
        }
        let left = self.lane_left.checked_sub((size + 1) * 16);
        self.lane_left = left.ok_or_else(|| damaged("its histograms are too large"))?;
        if offset > layout::SHARD - (size + 1) * 16 {
            return Err(damaged("an offset leads out of a shard"));
        }
        let shards = (0..layout::SHARDS).filter(|shard| self.shards >> shard & 1 == 1);
        let starts = shards.map(|shard| layout::HISTS + shard * layout::SHARD + offset);
        let starts: Vec<u64> = starts.collect();
        let counts = |first: u64| {
            let sums = (0..size).scan(0_u64, |sum, byte| {
                for start in &starts {
                    let at = start + (2 * byte + first) * 8;
                    let difference = self.capture.read(at).unwrap_or(0);
                    *sum = sum.wrapping_add(difference);
                }
                // The process may have been killed between the two counts of an access.
                Some(if sum.cast_signed() < 0 { 0 } else { *sum })
            });
            sums.collect()
        };
        Ok(Some(Histogram {
            reads: counts(0),
            writes: counts(1),
        }))
    }

    /// What threads that do not own a chunk have counted: reads and writes.
    pub(super) fn non_owner_counts(&self, index: u64) -> [u32; 2] {
        let counts: u64 = self
            .capture
            .read(layout::NON_OWNER_COUNTS + index * 8)
            .unwrap_or(0);
        [counts & u64::from(u32::MAX), counts >> 32]
            .map(|count| u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// How many bytes of `chunk` were accessed.
    pub(super) fn touched(&mut self, chunk: &capture_format::Chunk) -> Result<u64, Error> {
        let size = chunk.size();
        if size <= 64 {
            let within = if size == 64 {
                u64::MAX
            } else {
                (1 << size) - 1
            };
            return Ok(u64::from((chunk.touched & within).count_ones()));
        }
        if chunk.touched == 0 {
            return Ok(0);
        }
        let block = if size <= MAX_MAPPED_BYTES { 1 } else { BLOCK };
        let blocks = size.div_ceil(block);
        let Some(map) = self.bytes(chunk.touched, blocks.div_ceil(8))? else {
            return Ok(0);
        };
        let (last, before) = map.split_last().ok_or_else(|| damaged("a map is empty"))?;
        // Bits beyond the last block count nothing, and that block may end early.
        let bits = (blocks - 1) % 8;
        let (last_block, others) = (last >> bits & 1, last & ((1 << bits) - 1));
        let end = before.len() as u64;
        let there = (self.capture).present::<u8>(chunk.touched, 0, end.saturating_sub(1));
        let before = there.filter_map(|at| before.get(usize::try_from(at).ok()?));
        let whole: u64 = before.map(|byte| u64::from(byte.count_ones())).sum();
        let full = whole + u64::from(others.count_ones());
        Ok(full * block + u64::from(last_block) * (size - (blocks - 1) * block))
    }
}
