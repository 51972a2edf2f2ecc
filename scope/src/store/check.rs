//! What holds in every profile, so that nothing that uses one need check it again: indices are
//! of entries that are there, sums are numbers, curves are in order of time, and pages in mappings.

use crate::capture_format;
use crate::profile::{BUCKETS, Chunk, Mapping, PAGE, PARTS, Point, Profile, Site, Window};

/// Entries of a region's growth.
const MAX_GROWTH: usize = 64;

pub(super) fn profile(profile: &Profile) -> Result<(), &'static str> {
    let sites = profile.sites.len();
    if !profile.run.seconds.is_finite() {
        return Err("a sum is not a number");
    }
    curve(&profile.curve)?;
    for site in &profile.sites {
        self::site(site, profile)?;
    }
    for thread in &profile.threads {
        curve(&thread.curve)?;
    }
    let there = |site: u32| (site as usize) < sites;
    for (index, region) in profile.regions.iter().enumerate() {
        if region.parent.is_some_and(|parent| parent as usize >= index) {
            return Err("a region is called by one that does not come before it");
        }
        if region.footprints.len() != BUCKETS || region.growth.len() > MAX_GROWTH {
            return Err("the distribution of a region has not all its parts, or too many");
        }
    }
    pages(profile)?;
    let mut edges = profile.edges.iter();
    if !edges.all(|edge| there(edge.from) && there(edge.to)) {
        return Err("an edge is of a site that is not there");
    }
    let measured = profile.exceeded.iter().flat_map(|it| &it.sites);
    let linked = profile
        .links
        .iter()
        .flat_map(|it| it.from.into_iter().chain([it.to]));
    let leaked = profile.leaks.iter().filter_map(|it| it.site);
    let mut sites = { measured.map(|it| it.site) }.chain(leaked).chain(linked);
    if !sites.all(there) {
        return Err("a measure, a leak or a link is of a site that is not there");
    }
    let mut places = profile.lines.iter().flat_map(|line| line.places);
    match places.all(|(site, _)| there(site)) {
        true => Ok(()),
        false => Err("a line is of a site that is not there"),
    }
}

fn site(site: &Site, profile: &Profile) -> Result<(), &'static str> {
    let frames = profile.frames.len();
    if site
        .stack
        .iter()
        .chain(&site.place)
        .any(|&frame| frame as usize >= frames)
    {
        return Err("a stack has a frame that is not there");
    }
    if site
        .type_id
        .is_some_and(|index| index as usize >= profile.types.len())
    {
        return Err("a site is of a type that is not there");
    }
    if ![site.active_ratio, site.drag, site.wait]
        .iter()
        .all(|sum| sum.is_finite())
    {
        return Err("a sum is not a number");
    }
    if [&site.sizes, &site.lifetimes]
        .iter()
        .any(|counts| counts.len() != BUCKETS)
    {
        return Err("a distribution has not all its parts");
    }
    if site
        .histogram
        .as_ref()
        .is_some_and(|both| both.reads.len() != both.writes.len())
    {
        return Err("a histogram has not as many reads as writes");
    }
    curve(&site.curve)
}

fn curve(points: &[Point]) -> Result<(), &'static str> {
    let in_order = points.is_sorted_by(|a, b| a.time < b.time && a.ns <= b.ns);
    if in_order {
        Ok(())
    } else {
        Err("a curve is not in order of time")
    }
}

fn pages(profile: &Profile) -> Result<(), &'static str> {
    let mappings = &profile.mappings;
    let is_whole = |it: &Mapping| {
        it.start < it.end && it.start.is_multiple_of(PAGE) && it.end.is_multiple_of(PAGE)
    };
    if !mappings.iter().all(is_whole) || !mappings.is_sorted_by(|a, b| a.end <= b.start) {
        return Err("mappings overlap, or are not of whole pages");
    }
    let in_order = (profile.pages).is_sorted_by(|a, b| (a.page, a.part) < (b.page, b.part));
    if !in_order || profile.pages.iter().any(|it| it.part >= PARTS) {
        return Err("pages are not in order of addresses and time");
    }
    let mut left = mappings.iter().peekable();
    for it in &profile.pages {
        while left.next_if(|next| next.end / PAGE <= it.page).is_some() {}
        if left.peek().is_none_or(|next| it.page < next.start / PAGE) {
            return Err("a page is in no mapping");
        }
    }
    Ok(())
}

/// How many entries chunks and windows can refer to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) sites: u64,
    pub(super) threads: u64,
}

impl Limits {
    pub(super) fn chunks(&self, chunks: &[Chunk]) -> Result<(), &'static str> {
        let there = |chunk: &Chunk| {
            u64::from(chunk.site) < self.sites
                && (chunk.thread == capture_format::NO_THREAD
                    || u64::from(chunk.thread) < self.threads)
        };
        let all = chunks.iter().all(there);
        if all {
            Ok(())
        } else {
            Err("a chunk is of a site or thread that is not there")
        }
    }

    pub(super) fn window(&self, window: &Window) -> Result<(), &'static str> {
        let there = |index: u32, count| index == u32::MAX || u64::from(index) < count;
        let all = there(window.thread, self.threads)
            && window
                .accesses
                .iter()
                .all(|access| there(access.site, self.sites) && there(access.target, self.sites));
        if all {
            Ok(())
        } else {
            Err("a window is of a site or thread that is not there")
        }
    }
}
