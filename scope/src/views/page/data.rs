//! What a page knows of a profile.
//!
//! The header is JSON: what there is once, and what there are few of. Frames, stacks, sites, curves
//! and chunks are columns. Stacks are one tree: a node is a frame below its caller's node. Strings
//! are escaped as the terminal's are. Times are in events, and `clock` turns them into
//! nanoseconds.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;
use std::path::Path;

use serde_json::{Value, json};

use super::columns::Columns;
use super::leaks::leaks;
use super::pages::pages;
use super::sample::{ChunkSample, Quotas, thin};
use super::source::Snippets;
use crate::analyses::curves::gap_at_peak;
use crate::analyses::diff::{Diff, SiteChange};
use crate::analyses::findings::{Amount, Finding, seconds_per_event};
use crate::analyses::misses::{Interval, SiteMisses};
use crate::analyses::numbers::NUMBERS;
use crate::analyses::regions::{Tree, caches, findings};
use crate::analyses::scores::{Pattern, global};
use crate::analyses::structures::{element_offset, structures};
use crate::analyses::units::{count, rounded};
use crate::profile::{Chunk, Frame, Group, Histogram, Point, Profile, Site};
use crate::symbols::{is_library, library_frame};
use crate::views::terminal::{self, range};
use crate::views::text::{escape, short_function, short_path};
use crate::views::{Options, Results, diff, stack};

/// Points of the curve of the process.
const PROCESS_POINTS: usize = 1500;
/// Points of the curve of a thread, and threads that have one.
const THREAD_POINTS: usize = 300;
const THREAD_CURVES: usize = 16;
/// Sites that wait longest, and edges, which the page has.
const WAITS: usize = 100;
const EDGES: usize = 2000;
/// Regions that the page has, and findings about them.
const REGIONS: usize = 2000;
const REGION_FINDINGS: usize = 10;
/// Rows of each table of changed sites.
const CHANGES: usize = 200;
/// Waits that take less of the time are not named among findings.
const MIN_WAIT_SHARE: f64 = 0.01;
/// Sites of which the source is shown.
const WITH_SOURCE: usize = 200;
/// Scores are stored as 1 and a thousand steps; 0 is unknown.
const SCORE_STEPS: f64 = 1000.0;

pub(super) struct Data<'a> {
    profile: &'a Profile,
    options: &'a Options,
    results: Results,
    quotas: Quotas,
    columns: Columns,
}

/// Indices of what occurs often.
struct Index<T> {
    ids: HashMap<T, u64>,
    items: Vec<T>,
}

impl<T: Eq + Hash + Clone> Index<T> {
    fn new() -> Index<T> {
        Index {
            ids: HashMap::new(),
            items: Vec::new(),
        }
    }

    fn id(&mut self, item: T) -> u64 {
        let items = &mut self.items;
        *self.ids.entry(item).or_insert_with_key(|item| {
            items.push(item.clone());
            items.len() as u64 - 1
        })
    }
}

impl<'a> Data<'a> {
    pub(super) fn new(profile: &'a Profile, options: &'a Options) -> Data<'a> {
        // Filters are the reader's.
        let all = Options {
            filters: Vec::new(),
            ..options.clone()
        };
        let results = Results::new(profile, &all);
        let quotas = Quotas::new(profile, &results.findings, results.misses.as_ref());
        Data {
            profile,
            options,
            results,
            quotas,
            columns: Columns::default(),
        }
    }

    pub(super) fn sample(&self) -> ChunkSample {
        ChunkSample::new(&self.quotas, self.profile.sites.len())
    }

    /// The text for the page.
    pub(super) fn finish(
        mut self,
        since: Option<(&Profile, &Diff)>,
        chunks: &[Vec<Chunk>],
    ) -> std::io::Result<String> {
        let frames = self.frames();
        self.sites();
        self.distributions();
        self.curves();
        self.chunks(chunks);
        self.histograms();
        let old = since.map(|(old, diff)| self.since(old, diff));
        let mut head = self.head();
        head["old"] = json!(old);
        head["strings"] = json!(frames.strings);
        head["snippets"] = frames.snippets;
        head["pages"] = pages(self.profile, &mut self.columns);
        self.columns.to_text(head)
    }

    fn root(&self) -> Option<&Path> {
        self.options.root.as_deref()
    }

    /// Frames, and the tree of stacks. Frames that look alike are one.
    fn frames(&mut self) -> Frames {
        let profile = self.profile;
        let mut strings: Index<String> = Index::new();
        let mut frames: Index<[u64; 6]> = Index::new();
        let mut frame_ids: Vec<u64> = Vec::with_capacity(profile.frames.len());
        for frame in &profile.frames {
            let function = match &*frame.function {
                "" => format!("{:#x}", frame.address),
                name => escape(name),
            };
            let short = match &*frame.function {
                "" => function.clone(),
                name => escape(&short_function(name)),
            };
            let key = [
                strings.id(function),
                strings.id(short),
                strings.id(short_path(&frame.file, self.options.root.as_deref())),
                frame.line.into(),
                strings.id(escape(&frame.module)),
                frame.inlined.into(),
            ];
            frame_ids.push(frames.id(key));
        }
        let parts = ["function", "short", "file", "line", "module", "inlined"];
        for (i, part) in parts.into_iter().enumerate() {
            let column = frames.items.iter().map(|frame| frame[i]);
            self.columns.numbers(&format!("frame.{part}"), column);
        }
        let frame_id = |frame: u32| {
            let index = usize::try_from(frame).ok()?;
            frame_ids.get(index).copied()
        };
        // Node 0 is the process.
        let mut nodes: Index<(u64, u64)> = Index::new();
        nodes.id((0, 0));
        let mut leaf = |site: &Site| {
            let inner = site.stack.len() - runtime_frames(profile, site);
            let outermost_first = site.stack[..inner].iter().rev();
            let outermost_first = outermost_first.filter_map(|&frame| frame_id(frame));
            outermost_first.fold(0, |node, frame| nodes.id((node, frame + 1)))
        };
        let leaves: Vec<u64> = profile.sites.iter().map(&mut leaf).collect();
        let up = (0..).zip(&nodes.items).map(|(node, it)| node - it.0);
        self.columns.numbers("node.up", up);
        let frames_of_nodes = nodes.items.iter().map(|it| it.1);
        self.columns.numbers("node.frame", frames_of_nodes);
        self.columns.numbers("site.node", leaves);
        let place = |site: &Site| site.place.and_then(frame_id).map_or(0, |it| it + 1);
        self.columns
            .numbers("site.place", profile.sites.iter().map(place));
        let library = |site: &Site| {
            let frame = library_frame(&site.stack, site.place, &profile.frames)?;
            let index = site
                .stack
                .iter()
                .find(|&&it| profile.frames.get(it as usize) == Some(frame))?;
            frame_id(*index)
        };
        let library = profile
            .sites
            .iter()
            .map(|it| library(it).map_or(0, |it| it + 1));
        self.columns.numbers("site.library", library);
        Frames {
            strings: strings.items,
            snippets: self.snippets(&frame_id),
        }
    }

    /// Lines of source around the frames of the first sites.
    fn snippets(&self, frame_id: &dyn Fn(u32) -> Option<u64>) -> Value {
        let mut sites: Vec<usize> = (0..self.profile.sites.len()).collect();
        sites.retain(|&site| self.quotas.rank(site) < WITH_SOURCE);
        sites.sort_by_key(|&site| self.quotas.rank(site));
        let mut snippets = Snippets::new(self.root());
        for site in sites {
            let site = &self.profile.sites[site];
            for &frame in &site.stack {
                let found = usize::try_from(frame).ok();
                let found: Option<&Frame> = found.and_then(|it| self.profile.frames.get(it));
                if let (Some(frame), Some(id)) = (found, frame_id(frame)) {
                    snippets.add(id, frame);
                }
            }
        }
        snippets.finish()
    }

    fn sites(&mut self) {
        let sites = &self.profile.sites;
        let columns = &mut self.columns;
        // A number of a script has 53 bits, so that threads are two.
        for it in NUMBERS.iter().filter(|it| it.name != "threads") {
            columns.numbers(&format!("site.{}", it.name), sites.iter().map(it.of));
        }
        let low = sites.iter().map(|it| it.threads & 0xffff_ffff);
        columns.numbers("site.threadsLow", low);
        columns.numbers("site.threadsHigh", sites.iter().map(|it| it.threads >> 32));
        let types = sites
            .iter()
            .map(|it| it.type_id.map_or(0, |id| u64::from(id) + 1));
        columns.numbers("site.type", types);
        let ends = sites
            .iter()
            .map(|it| end_of(it).saturating_sub(it.first_time));
        columns.numbers("site.end", ends);
        let profile = self.profile;
        let byte_seconds = |site: &Site, of: f64| match of > 0.0 {
            true => of * seconds_per_event(profile, site),
            false => 0.0,
        };
        columns.floats(
            "site.drag",
            sites.iter().map(|it| byte_seconds(it, it.drag)),
        );
        columns.floats(
            "site.wait",
            sites.iter().map(|it| byte_seconds(it, it.wait)),
        );
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "scores lie between 0 and 1"
        )]
        let step = |score: Option<f64>| {
            score.map_or(0, |it| {
                (it.clamp(0.0, 1.0) * SCORE_STEPS).round() as u64 + 1
            })
        };
        let scores = &self.results.scores;
        columns.numbers("site.life", scores.iter().map(|it| step(it.lifetime)));
        columns.numbers("site.usage", scores.iter().map(|it| step(it.usage)));
        let useful = scores.iter().map(|it| step(it.useful_lifetime));
        columns.numbers("site.usefulLife", useful);
        let marks = self.results.inferences.iter().map(|it| {
            let has = |pattern| it.patterns.contains(&pattern);
            let marks = [
                it.most_bytes,
                it.most_chunks,
                it.is_growing,
                has(Pattern::Loop),
                has(Pattern::Growth),
                has(Pattern::ShortUse),
            ];
            let bits = marks.into_iter().enumerate();
            bits.fold(0, |bits, (i, mark)| bits | u64::from(mark) << i)
        });
        columns.numbers("site.marks", marks);
    }

    /// Chunks by size and by lifetime.
    fn distributions(&mut self) {
        let pairs = |counts: &[u32]| -> Vec<[u64; 2]> {
            let all = (0..).zip(counts).filter(|(_, count)| **count > 0);
            all.map(|(bits, &count)| [bits, count.into()]).collect()
        };
        let sites = &self.profile.sites;
        let sizes: Vec<_> = sites.iter().map(|it| pairs(&it.sizes)).collect();
        let lives: Vec<_> = sites.iter().map(|it| pairs(&it.lifetimes)).collect();
        self.columns.lists("sizes", ["bits", "count"], &sizes);
        self.columns.lists("lives", ["bits", "count"], &lives);
    }

    fn curves(&mut self) {
        let profile = self.profile;
        let process = thin(&profile.curve, PROCESS_POINTS);
        let threads = profile.threads.iter().take(THREAD_CURVES);
        let threads = threads.map(|thread| points(&thin(&thread.curve, THREAD_POINTS), 0));
        let sites = profile.sites.iter().enumerate().map(|(i, site)| {
            let most = self.quotas.points(i);
            points(&thin(&site.curve, most), site.first_time)
        });
        let parts = ["time", "usable", "peak", "touched", "allocations"];
        let (threads, sites): (Vec<_>, Vec<_>) = (threads.collect(), sites.collect());
        self.columns.lists("curve", parts, &[points(&process, 0)]);
        self.columns.lists("threads", parts, &threads);
        self.columns.lists("curves", parts, &sites);
        let mut before = 0;
        let steps = process.iter().map(|point| {
            let step = point.ns.saturating_sub(before);
            before = point.ns.max(before);
            step
        });
        self.columns.numbers("clock", steps);
        let group = profile.resident.len().div_ceil(PROCESS_POINTS).max(1);
        let resident = profile.resident.chunks(group).filter_map(|samples| {
            let largest = samples.iter().max_by_key(|it| it.bytes)?;
            Some([samples.first()?.ns, largest.bytes])
        });
        self.columns
            .lists("resident", ["ns", "bytes"], &[resident.collect()]);
    }

    /// Single chunks where the profile has them, and groups of chunks.
    fn chunks(&mut self, chunks: &[Vec<Chunk>]) {
        let of_site = |(chunks, site): (&Vec<Chunk>, &Site)| {
            let mut before = site.first_time;
            let item = |it: &Chunk| {
                let after = it.allocated.saturating_sub(before);
                before = it.allocated.max(before);
                let since = |time: u64| match time {
                    0 => 0,
                    time => time.saturating_sub(it.allocated).saturating_add(1),
                };
                let thread = match it.thread {
                    u16::MAX => 0,
                    thread => u64::from(thread) + 1,
                };
                [
                    after,
                    since(it.freed),
                    since(it.first),
                    since(it.last),
                    it.size,
                    it.reads.into(),
                    it.writes.into(),
                    thread << 1 | u64::from(it.shared),
                    it.touched,
                ]
            };
            chunks.iter().map(item).collect::<Vec<[u64; 9]>>()
        };
        let sites = &self.profile.sites;
        let lists: Vec<_> = chunks.iter().zip(sites).map(of_site).collect();
        let parts = [
            "after", "freed", "first", "last", "size", "reads", "writes", "thread", "touched",
        ];
        self.columns.lists("chunks", parts, &lists);
        let groups = sites.iter().enumerate().map(|(i, site)| {
            let mut before = site.first_time;
            let item = |it: &Group| {
                let after = it.first_allocated.saturating_sub(before);
                before = it.first_allocated.max(before);
                [
                    after,
                    it.last_allocated.saturating_sub(it.first_allocated),
                    it.last_freed.saturating_sub(it.first_allocated),
                    it.chunks,
                    it.lifetimes / it.chunks.max(1),
                ]
            };
            let most = self.quotas.chunks(i);
            // A site with all its chunks needs none.
            let most = if chunks[i].len() as u64 >= site.allocations {
                0
            } else {
                most
            };
            let groups = &site.groups[..site.groups.len().min(most)];
            groups.iter().map(item).collect::<Vec<[u64; 5]>>()
        });
        let groups: Vec<_> = groups.collect();
        self.columns.lists(
            "groups",
            ["after", "last", "freed", "chunks", "life"],
            &groups,
        );
    }

    /// Reads and writes by byte: neighbours with the same counts are one item.
    fn histograms(&mut self) {
        let runs = |histogram: &Histogram| -> Vec<[u64; 3]> {
            let counts = histogram.reads.iter().zip(&histogram.writes);
            let counts: Vec<(&u64, &u64)> = counts.collect();
            let runs = counts.chunk_by(|a, b| a == b);
            runs.map(|run| [run.len() as u64, *run[0].0, *run[0].1])
                .collect()
        };
        let lists = self.profile.sites.iter().enumerate().map(|(i, site)| {
            let runs = site.histogram.as_ref().map(runs);
            let most = self.quotas.points(i);
            runs.filter(|runs| runs.len() <= most).unwrap_or_default()
        });
        let lists: Vec<_> = lists.collect();
        self.columns
            .lists("bytes", ["len", "reads", "writes"], &lists);
    }

    /// Curves of an older profile, and what has changed since.
    fn since(&mut self, old: &Profile, diff: &Diff) -> Value {
        let curve = |curve: &[Point], most| -> Vec<[u64; 2]> {
            let ns = |point: &Point| rounded(old.seconds(point.time) * 1e9);
            let points = thin(curve, most);
            points.iter().map(|it| [ns(it), it.peak]).collect()
        };
        let process = curve(&old.curve, PROCESS_POINTS);
        let mut sites = vec![Vec::new(); self.profile.sites.len()];
        for site in &diff.sites {
            if let (Some(before), Some(now)) = (site.old, site.new) {
                sites[now] = curve(&old.sites[before].curve, self.quotas.points(now));
            }
        }
        self.columns.lists("before", ["ns", "peak"], &[process]);
        self.columns.lists("befores", ["ns", "peak"], &sites);
        let lists = diff::by_verdict(diff).map(|(title, sites)| {
            let row = |it: &&SiteChange| {
                let row = diff::row(old, self.profile, it, self.options);
                json!([it.new, row])
            };
            let rows: Vec<Value> = sites.iter().take(CHANGES).map(row).collect();
            json!([title, sites.len(), rows])
        });
        json!({
            "command": old.run.command.iter().map(|it| escape(it)).collect::<Vec<String>>(),
            "started": old.run.started_ns / 1_000_000,
            "seconds": old.run.seconds,
            "totals": diff::totals(diff),
            "lists": lists,
            "same": diff::as_before(diff),
        })
    }

    fn head(&self) -> Value {
        let profile = self.profile;
        let field = |it: &crate::profile::Field| {
            json!([escape(&it.name), escape(&it.type_name), it.offset, it.size])
        };
        let types = profile.types.iter().map(|it| {
            let fields: Vec<Value> = it.fields.iter().map(field).collect();
            json!([escape(&it.name), it.size, fields])
        });
        let threads = profile.threads.iter().map(|it| {
            json!([
                it.id,
                it.started,
                it.ended,
                it.allocations,
                it.peak,
                it.end_live,
                it.events
            ])
        });
        let gaps = gap_at_peak(profile);
        let gaps = gaps.iter().take(8);
        let text = |text: &String| escape(text);
        let run = &profile.run;
        json!({
            "command": run.command.iter().map(text).collect::<Vec<String>>(),
            "caveats": run.caveats.iter().map(text).collect::<Vec<String>>(),
            "compiler": escape(&run.compiler),
            "machine": escape(&run.machine),
            "tool": escape(&run.tool),
            "pid": run.pid,
            "started": run.started_ns / 1_000_000,
            "seconds": run.seconds,
            "end": run.end,
            "exit": run.exit,
            "accesses": run.accesses,
            "total": profile.total,
            "scores": global(&self.results.scores),
            "types": types.collect::<Vec<Value>>(),
            "threads": threads.collect::<Vec<Value>>(),
            "gaps": gaps.map(|it| json!([it.site, it.allocated - it.touched])).collect::<Vec<_>>(),
            "findings": self.results.findings.iter().map(finding).collect::<Vec<Value>>(),
            "misses": self.misses(),
            "edges": self.edges(),
            "leaks": leaks(profile),
            "structures": structures(profile),
            "rules": self.options.rules.iter().map(|(site, rule)| (site, escape(rule)))
                .collect::<HashMap<_, _>>(),
            "regions": self.regions(),
        })
    }

    /// The largest regions with those that call them; `null` without.
    fn regions(&self) -> Value {
        let profile = self.profile;
        if profile.regions.is_empty() {
            return Value::Null;
        }
        let mut order: Vec<usize> = (0..profile.regions.len()).collect();
        order.sort_by_key(|&index| (Reverse(profile.regions[index].blocks.max), index));
        order.truncate(REGIONS);
        // A caller touches at least as much, but may have been cut off among its equals.
        order.sort_unstable();
        let place = |index: u32| order.binary_search(&usize::try_from(index).ok()?).ok();
        let list = order.iter().map(|&index| {
            let it = &profile.regions[index];
            let bits = (0..).zip(&it.footprints).filter(|(_, count)| **count > 0);
            let parent = it
                .parent
                .and_then(place)
                .and_then(|at| i64::try_from(at).ok());
            json!({
                "parent": parent.unwrap_or(-1),
                "name": terminal::region_name(it),
                "place": match &*it.file {
                    "" => String::new(),
                    file => format!("{}:{}", short_path(file, self.root()), it.line),
                },
                "invocations": it.invocations,
                "recursive": it.recursive,
                "reads": it.reads,
                "writes": it.writes,
                "allocations": it.allocations,
                "allocated": it.allocated,
                "bytes": it.bytes.total,
                "most": it.bytes.max,
                "blocks": it.blocks.total,
                "pages": it.pages.total,
                "reused": it.reused,
                "fresh": it.fresh,
                "footprints": bits.map(|it: (u32, &u32)| json!(it)).collect::<Vec<Value>>(),
                "growth": it.growth,
                "step": it.step,
            })
        });
        let list: Vec<Value> = list.collect();
        let machine = self.options.machine();
        let caches = caches(machine);
        let findings = findings(profile, &Tree::new(profile), &caches);
        let sentence = |it| json!(terminal::region_finding(profile, it));
        let sizes = caches.iter().map(|it| json!([escape(&it.name), it.bytes]));
        json!({
            "list": list,
            "findings": findings.iter().take(REGION_FINDINGS).map(sentence).collect::<Vec<_>>(),
            "caches": sizes.collect::<Vec<_>>(),
        })
    }

    /// What is simulated; `null` without windows.
    fn misses(&self) -> Value {
        let Some(misses) = &self.results.misses else {
            return Value::Null;
        };
        let site = |it: &SiteMisses| {
            let names = misses.levels.iter().zip(&it.per_1000);
            let caches = names.filter(|(name, _)| !name.to_uppercase().contains("TLB"));
            let caches: Vec<(&String, &Interval)> = caches.collect();
            let ends = [caches.first(), caches.last()].into_iter().flatten();
            let rates: Vec<String> = ends
                .map(|(name, it)| format!("{} miss {name}", range(it)))
                .collect();
            let sentence = format!("of 1,000 accesses, {}", rates.join(" and "));
            let fields = it.fields.iter().map(|it| {
                json!([
                    it.offset,
                    it.field.as_deref().map(escape),
                    it.recorded,
                    it.possible
                ])
            });
            json!({
                "site": it.site,
                "sentence": sentence,
                "share": it.wait_share,
                "ns": it.wait_ns,
                "misses": it.misses,
                "per1000": it.per_1000,
                "fields": fields.collect::<Vec<Value>>(),
            })
        };
        json!({
            "machine": escape(&misses.machine),
            "levels": misses.levels.iter().map(|it| escape(it)).collect::<Vec<String>>(),
            "windows": misses.windows,
            "recorded": count(misses.recorded),
            "complete": misses.is_complete,
            "minShare": MIN_WAIT_SHARE,
            "waits": misses.sites.iter().take(WAITS).map(site).collect::<Vec<Value>>(),
            "sites": misses.sites.iter().map(|it| it.site).collect::<Vec<usize>>(),
            "ns": misses.sites.iter().map(|it| it.wait_ns.round()).collect::<Vec<f64>>(),
        })
    }

    /// Pointers: site, offset in the element, site, loads, followed, and possible misses by level.
    fn edges(&self) -> Value {
        let mut sums: HashMap<(u32, u32, u32), EdgeSum> = HashMap::new();
        let key = |from, offset, to| (from, element_offset(self.profile, from, offset), to);
        for edge in &self.profile.edges {
            let sum = sums
                .entry(key(edge.from, edge.offset, edge.to))
                .or_default();
            sum.loads = sum.loads.saturating_add(edge.loads);
            sum.followed = sum.followed.saturating_add(edge.followed);
        }
        for edge in self.results.misses.iter().flat_map(|it| &it.edges) {
            let sum = sums
                .entry(key(edge.from, edge.offset, edge.to))
                .or_default();
            sum.misses.resize(edge.possible.len(), 0);
            for (all, more) in sum.misses.iter_mut().zip(&edge.possible) {
                *all += more;
            }
        }
        let mut edges: Vec<((u32, u32, u32), EdgeSum)> = sums.into_iter().collect();
        edges.sort_unstable_by_key(|(key, sum)| (Reverse((sum.loads, sum.followed)), *key));
        let edge = |((from, offset, to), sum): &((u32, u32, u32), EdgeSum)| {
            json!([from, offset, to, sum.loads, sum.followed, sum.misses])
        };
        edges.iter().take(EDGES).map(edge).collect()
    }
}

/// Edges of all elements of a site.
#[derive(Default)]
struct EdgeSum {
    loads: u64,
    followed: u64,
    misses: Vec<u64>,
}

/// The frames of a page.
struct Frames {
    strings: Vec<String>,
    snippets: Value,
}

fn finding(it: &Finding) -> Value {
    let (unit, amount) = match it.amount {
        Amount::Bytes(bytes) => ("bytes", bytes as f64),
        Amount::ByteSeconds(product) => ("byte-seconds", product),
        Amount::Allocations(calls) => ("allocations", calls as f64),
        Amount::Accesses(accesses) => ("accesses", accesses as f64),
        Amount::Sites(sites) => ("sites", sites as f64),
    };
    json!([
        it.site,
        it.kind,
        it.sentence,
        unit,
        amount,
        it.share,
        it.part()
    ])
}

/// How many of the outermost frames are of what runs before `main` or a thread's function.
fn runtime_frames(profile: &Profile, site: &Site) -> usize {
    let is_start = |frame: &Frame| {
        is_library(frame)
            || ["_start", "__libc_start_main", "clone", "start_thread"].contains(&&*frame.function)
    };
    let frames: Vec<&Frame> = stack(profile, site).collect();
    // The `main` of C that calls Rust's.
    let is_main = |at: usize| {
        let inner = at.checked_sub(1).map(|at| &*frames[at].function);
        frames[at].function == "main" && inner.is_some_and(|it| it.starts_with("std::rt::"))
    };
    let outermost = (0..frames.len()).rev();
    let runtime = outermost
        .take_while(|&at| is_start(frames[at]) || is_main(at))
        .count();
    // Where all is of libraries, the allocation itself stays.
    if runtime < frames.len() { runtime } else { 0 }
}

/// When the last chunk of a site was freed.
fn end_of(site: &Site) -> u64 {
    let freed = site.groups.iter().map(|group| group.last_freed).max();
    freed.unwrap_or(0).max(site.last_time)
}

fn points(curve: &[Point], start: u64) -> Vec<[u64; 5]> {
    let mut before = start;
    let item = |point: &Point| {
        let after = point.time.saturating_sub(before);
        before = point.time.max(before);
        [
            after,
            point.usable,
            point.peak.saturating_sub(point.usable),
            point.touched,
            point.allocations,
        ]
    };
    curve.iter().map(item).collect()
}
