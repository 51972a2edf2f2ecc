//! What `predict`, `advise` and `simulate` are asked, from words to what operations read.
//!
//! Everything that can be refused is refused here, in one line: structures and operations that do
//! not fit together, files that are not what they should be, questions that need too much memory.

use std::path::Path;

use serde_json::{Value, json};

use super::args::{FrameChoice, QuestionArgs, SEED};
use super::arrangement::Arrangement;
use super::machine::read;
use super::output::{human_bytes, human_count};
use super::{CliError, refuse};
use crate::layout::{did_you_mean, nearest_of};
use crate::machine::Origin;
use crate::structure::read_edges;
use crate::topology::Topology;
use crate::{
    Accesses, Built, CacheLevel, Colouring, Frames, Growth, KeyDistribution, Layout, Lengths,
    Links, Machine, NO_NODE, NodeExtent, Operation, Placement, Sizes, Structure, Tier,
};

/// Bytes of a link, on the machines that are asked about.
const LINK_BYTES: u32 = 8;
const STRUCTURES: &str = "bst, nary, quadtree, octree, btree, list, dlist, hash, array, eytzinger, \
                          edges";
/// Analyses that would take more than this share of the free memory are refused.
const MEMORY_SHARE: f64 = 0.8;

/// A structure, an operation on it, its keys, and a machine.
#[derive(Clone, Debug)]
pub(super) struct Question<'a> {
    pub(super) args: &'a QuestionArgs,
    pub(super) machine: &'a Machine,
    /// `None` for a file's.
    pub(super) structure: Option<Structure>,
    /// Where the nodes of a file lie.
    given: Option<Placement>,
    sizes: Sizes,
    pub(super) built: Built,
    /// How many nodes and keys the structure has; `built` has one node where formulas need none.
    pub(super) nodes: u64,
    pub(super) key_count: u64,
    pub(super) keys: KeyDistribution,
    pub(super) colour_share: f64,
}

impl<'a> Question<'a> {
    /// The question, with the structure built. O(nodes), O(nodes log nodes) for some structures;
    /// O(1) for a `tier` of formulas, which need no nodes.
    pub(super) fn new(
        args: &'a QuestionArgs,
        machine: &'a Machine,
        tier: Tier,
    ) -> Result<Question<'a>, CliError> {
        let Ok(node) = node_extent(args.node_bytes) else {
            return refuse("--node-bytes is more than can be predicted");
        };
        let sizes = Sizes {
            key_bytes: args.key_bytes,
            value_bytes: args.value_bytes,
            ..Sizes::of(node)
        };
        let (mut given, mut stands_for) = (None, None);
        let (structure, built) = if let Some(path) = args.structure.strip_prefix("edges:") {
            let (built, placement) = read_file(Path::new(path), args, &sizes)?;
            check_memory(built.points() as f64, args, false)?;
            given = placement;
            (None, built)
        } else {
            let structure = structure(args)?;
            let Some(mut keys) = args.nodes else {
                return refuse("--nodes is missing: how large is the structure?");
            };
            if tier == Tier::Closed && complete_arity(structure).is_some() {
                stands_for = Some(u64::from(std::mem::replace(&mut keys, 1)));
            }
            (Some(structure), build(structure, keys, &sizes, args)?)
        };
        Ok(Question {
            args,
            machine,
            structure,
            given,
            sizes,
            nodes: stands_for.unwrap_or(built.shape().len() as u64),
            key_count: stands_for.unwrap_or(built.keys() as u64),
            keys: keys(&args.keys, &built)?,
            built,
            colour_share: args.colour_share,
        })
    }

    /// How many layouts this machine can answer for at once.
    pub(super) fn answers_at_once(&self) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let each = analysis_bytes(self.built.points() as f64, self.args);
        let fit = MEMORY_SHARE * available_bytes() / each.max(1.0);
        let fits = |&threads: &usize| threads as f64 <= fit;
        (1..=processors).rev().find(fits).unwrap_or(1)
    }

    /// Whether all keys are asked for equally often.
    pub(super) fn is_uniform(&self) -> bool {
        self.keys == KeyDistribution::Uniform
    }

    /// Puts the nodes where the arrangement says. Returns what operations read, and the bytes from
    /// the first node to the last.
    pub(super) fn arrange(&self, arrangement: Arrangement) -> Result<(Accesses, u64), CliError> {
        let (built, operation) = (&self.built, self.args.operation);
        let placement = match arrangement {
            Arrangement::Plain(Layout::Weighted) => {
                built.place_weighted(Layout::Weighted, operation, &self.keys)?
            }
            Arrangement::Plain(layout) => built.place(layout),
            Arrangement::Coloured(layout) => {
                let weights = match self.is_uniform() {
                    true => None,
                    false => Some(built.node_ends(operation, &self.keys)?),
                };
                let colouring = Colouring::new(self.colour_cache()?.geometry, self.colour_share)?;
                let (shape, extent, weights) = (built.shape(), built.extent(), weights.as_deref());
                colouring.place(shape, extent, layout, weights)?.placement
            }
            Arrangement::Given => {
                let why = "--layout given: addresses come from the third column of edges:FILE";
                self.given.clone().ok_or(why)?
            }
            Arrangement::Eliminated => {
                let (structure, sizes) = self.without_links()?;
                let keys = u32::try_from(built.keys()).unwrap_or(NO_NODE);
                let other = structure.build(keys, &sizes)?;
                let placement = other.place(Layout::BreadthFirst);
                return self.read(&other, &placement);
            }
        };
        self.read(built, &placement)
    }

    fn read(&self, built: &Built, placement: &Placement) -> Result<(Accesses, u64), CliError> {
        let accesses = built.accesses(placement, self.args.operation, &self.keys)?;
        Ok((accesses, built.span_bytes(placement)))
    }

    /// The same structure without links: a complete tree whose children's places are computed, a
    /// list whose nodes follow each other.
    pub(super) fn without_links(&self) -> Result<(Structure, Sizes), CliError> {
        let kind = &self.args.structure;
        let cannot = |why: &str| refuse(format!("--layout eliminated: {kind} {why}"));
        let growth = Growth::Complete;
        let (structure, links) = match self.structure {
            Some(Structure::SearchTree { .. }) => (Structure::SearchTree { growth }, 2),
            Some(Structure::Tree { arity, .. }) => (Structure::Tree { arity, growth }, arity),
            Some(Structure::PointTree { dimensions, .. }) => {
                (Structure::PointTree { dimensions, growth }, 1 << dimensions)
            }
            Some(list @ Structure::List { links }) => (list, 1 + u32::from(links == Links::Double)),
            Some(Structure::SortedArray | Structure::Eytzinger) => return cannot("has no links"),
            Some(_) => return cannot("cannot do without its links"),
            None => return cannot("has a shape of its own, which links have to say"),
        };
        let bytes = self.sizes.node.bytes;
        match node_extent(bytes.saturating_sub(links.saturating_mul(LINK_BYTES))) {
            Ok(node) => Ok((structure, Sizes::of(node))),
            Err(_) => cannot(&format!(
                "has {links} links of {LINK_BYTES} B, more than its nodes of {bytes} B hold"
            )),
        }
    }

    /// The cache that colours are of.
    pub(super) fn colour_cache(&self) -> Result<&'a CacheLevel, CliError> {
        let Some(hierarchy) = &self.machine.hierarchy else {
            return refuse(
                "coloured layouts need a machine whose sets and ways are known (presets have them)",
            );
        };
        let (named, frames) = (self.args.colour_cache.as_ref(), self.frames(0));
        let mut caches = hierarchy.caches().iter().rev();
        let largest = caches.find(|cache| match named {
            Some(name) => cache.name == *name,
            None => chosen_by_address(cache, frames),
        });
        if let Some(cache) = largest {
            return Ok(cache);
        }
        let names = hierarchy.caches().iter().map(|cache| cache.name.as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        refuse(match named {
            Some(name) => format!("the machine has no cache called `{name}` (it has {names})"),
            None => "addresses choose the sets of no cache of this machine; name one with \
                     --colour-cache"
                .to_owned(),
        })
    }

    pub(super) fn frames(&self, seed: u64) -> Frames {
        frames(self.args, self.machine, seed)
    }

    /// `complete bst of 2 097 151 nodes of 32 B in 4k pages on the thesis's machine`.
    pub(super) fn describe(&self) -> String {
        let (keys, nodes) = (human_count(self.key_count), human_count(self.nodes));
        let bytes = human_bytes(f64::from(self.node_bytes()));
        let parts = if self.built.shape().is_empty() {
            format!("{keys} elements of {bytes}")
        } else if keys == nodes {
            format!("{nodes} nodes of {bytes}")
        } else {
            format!("{keys} keys in {nodes} nodes of {bytes}")
        };
        let shape = self.shape_name();
        let shape = shape.map_or(String::new(), |name| format!("{name} "));
        let (kind, pages, machine) = (&self.args.structure, self.args.pages, &self.machine.name);
        format!("{shape}{kind} of {parts} in {pages} pages on {machine}")
    }

    /// `a search, keys uniform`.
    pub(super) fn describe_operation(&self) -> String {
        let operation = match self.args.operation {
            Operation::Search => "a search",
            Operation::Miss => "a search for an absent key",
            Operation::Insert => "an insertion",
            Operation::Range { keys } => &format!("a range of {} keys", human_count(keys)),
            _ => return "a walk through all of it".to_owned(),
        };
        format!("{operation}, keys {}", self.args.keys)
    }

    /// The beginning of every answer in JSON.
    pub(super) fn report(&self) -> Value {
        let mut structure = json!({
            "kind": self.args.structure,
            "nodes": self.nodes,
            "keys": self.key_count,
            "node_bytes": self.node_bytes(),
        });
        if let Some(shape) = self.shape_name() {
            structure["shape"] = shape.into();
        }
        json!({
            "machine": self.machine.name,
            "origin": self.machine.origin,
            "structure": structure,
            "operation": self.args.operation.to_string(),
            "keys": self.args.keys,
            "pages": self.args.pages,
            "frames": frame_name(self.frames(0)),
            "state": match self.args.searches {
                Some(first) => json!({ "first": first }),
                None => json!("steady"),
            },
        })
    }

    fn node_bytes(&self) -> u32 {
        match self.built.shape().is_empty() {
            true => self.sizes.node.bytes,
            false => self.built.extent().bytes,
        }
    }

    /// How the structure came to be, where that makes a difference.
    fn shape_name(&self) -> Option<&'static str> {
        match self.structure? {
            Structure::SearchTree { growth }
            | Structure::Tree { growth, .. }
            | Structure::PointTree { growth, .. }
            | Structure::BTree { growth, .. } => Some(match growth {
                Growth::Complete => "complete",
                Growth::RandomInsert { .. } => "random",
            }),
            _ => None,
        }
    }
}

/// Where pages lie in memory: anywhere, unless the machine is a preset without translation, as
/// those of the thesis, whose caches see the program's addresses.
pub(super) fn frames(args: &QuestionArgs, machine: &Machine, seed: u64) -> Frames {
    let untranslated = machine.origin == Origin::Preset
        && (machine.hierarchy.as_ref()).is_some_and(|hierarchy| hierarchy.tlbs().is_empty());
    match args.frames {
        Some(FrameChoice::Identity) => Frames::Identity,
        None if untranslated => Frames::Identity,
        _ => Frames::Random {
            pages: args.pages,
            seed,
        },
    }
}

pub(super) fn frame_name(frames: Frames) -> &'static str {
    match frames {
        Frames::Identity => "identity",
        Frames::Random { .. } => "random",
    }
}

/// Whether the bits of an address below the page choose the cache's sets.
pub(super) fn chosen_by_address(cache: &CacheLevel, frames: Frames) -> bool {
    match frames {
        Frames::Identity => true,
        Frames::Random { pages, .. } => cache.geometry.way_bytes() <= pages.bytes(),
    }
}

/// Children of a node of a complete tree with one key a node; `None` for other structures.
pub(super) fn complete_arity(structure: Structure) -> Option<u32> {
    let (arity, growth) = match structure {
        Structure::SearchTree { growth } => (2, growth),
        Structure::Tree { arity, growth } => (arity, growth),
        Structure::PointTree { dimensions, growth } => (1 << dimensions, growth),
        _ => return None,
    };
    (growth == Growth::Complete).then_some(arity)
}

fn build(
    structure: Structure,
    keys: u32,
    sizes: &Sizes,
    args: &QuestionArgs,
) -> Result<Built, CliError> {
    let points_of_key = match structure {
        Structure::Hash { load, .. } if load > 0.0 => 1.0 + 1.0 / load,
        // Keys and values, and the nodes above them.
        Structure::BTree { .. } => 2.5,
        _ => 1.0,
    };
    let has_formula = complete_arity(structure).is_some()
        && args.operation == Operation::Search
        && args.searches.is_none()
        && args.keys == "uniform";
    check_memory(f64::from(keys) * points_of_key, args, has_formula)?;
    Ok(structure.build(keys, sizes)?)
}

/// About how much memory the answer for one layout takes: of each point, 128 bytes, 48 for each of
/// its first and last line, and 64 for the order of a walk. Measured at two million nodes of 32 and
/// 400 B, of all structures.
fn analysis_bytes(points: f64, args: &QuestionArgs) -> f64 {
    let lines = (f64::from(args.node_bytes) / 64.0).min(2.0);
    let is_walk = matches!(args.operation, Operation::Walk { .. });
    points * (128.0 + 48.0 * lines + 64.0 * f64::from(u8::from(is_walk)))
}

/// Refuses analyses that take more memory than this machine can spare. With a formula, some layouts
/// have an answer all the same.
fn check_memory(points: f64, args: &QuestionArgs, has_formula: bool) -> Result<(), CliError> {
    let (bytes, available) = (analysis_bytes(points, args), available_bytes());
    if bytes <= MEMORY_SHARE * available {
        return Ok(());
    }
    let (bytes, available) = (human_bytes(bytes), human_bytes(available));
    let formula = match has_formula {
        true => ", or for `predict --tier closed --layout random,bfs,cluster-veb`",
        false => "",
    };
    refuse(format!(
        "this takes about {bytes} of memory, and this machine has {available} free: ask for fewer \
         nodes{formula}"
    ))
}

/// Memory that programs can have, in bytes; all memory where the system does not say.
fn available_bytes() -> f64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    kilobytes.map_or_else(
        || Topology::this().memory_bytes.value as f64,
        |kilobytes: f64| 1024.0 * kilobytes,
    )
}

/// A node of `bytes` bytes, aligned as a compiler would: to the largest power of two in its size,
/// up to a word.
fn node_extent(bytes: u32) -> Result<NodeExtent, crate::Error> {
    NodeExtent::new(bytes, 1 << bytes.trailing_zeros().min(3))
}

fn structure(args: &QuestionArgs) -> Result<Structure, CliError> {
    let growth = args.shape;
    let text = args.structure.trim();
    let words = text.split_once(':');
    let (name, suffix) = words.map_or((text, None), |(name, suffix)| (name, Some(suffix)));
    let points = |dimensions| Ok(Structure::PointTree { dimensions, growth });
    let list = |links| Ok(Structure::List { links });
    let wanted = match (name, suffix) {
        ("bst", None) => return Ok(Structure::SearchTree { growth }),
        ("nary", suffix) => match suffix.unwrap_or_default().parse() {
            Ok(arity) => return Ok(Structure::Tree { arity, growth }),
            Err(_) => "a number of children, as in `nary:4`,",
        },
        ("quadtree", None) => return points(2),
        ("octree", None) => return points(3),
        ("btree", None) => {
            return Ok(Structure::BTree {
                fanout: args.fanout,
                fill: args.fill,
                in_node: args.in_node,
                growth,
            });
        }
        ("list", None) => return list(Links::Single),
        ("dlist", None) => return list(Links::Double),
        ("hash", suffix) => match suffix.unwrap_or("1").parse() {
            Ok(load) => return Ok(Structure::Hash { load, seed: SEED }),
            Err(_) => "keys to a bucket, as in `hash:0.75`,",
        },
        ("array", None) => return Ok(Structure::SortedArray),
        ("eytzinger", None) => return Ok(Structure::Eytzinger),
        ("edges", _) => "the name of a file",
        (known, Some(_)) if STRUCTURES.split(", ").any(|name| name == known) => "nothing",
        _ => {
            let advice = did_you_mean(nearest_of(name, STRUCTURES.split(", ")));
            let what = format!("unknown structure `{text}`{advice} (known: {STRUCTURES})");
            return refuse(what);
        }
    };
    let what = format!("bad structure `{text}`: `{name}` takes {wanted} after the name");
    refuse(what)
}

/// The structure of a file of edges, and where its nodes lie.
fn read_file(
    path: &Path,
    args: &QuestionArgs,
    sizes: &Sizes,
) -> Result<(Built, Option<Placement>), CliError> {
    /// Memory that a node takes while it is read, its name above all.
    const NODE_BYTES: f64 = 256.0;
    if args.nodes.is_some() {
        return refuse("--nodes cannot be given with edges:FILE, which says how many there are");
    }
    let most = MEMORY_SHARE * available_bytes() / NODE_BYTES;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the numbers of nodes"
    )]
    let most = most.clamp(1.0, f64::from(NO_NODE - 1)) as u32;
    let edges = read("edges", path, |file| match read_edges(file, most)? {
        edges if edges.shape.is_empty() => refuse("there is no edge in it"),
        edges => Ok(edges),
    })?;
    let whole = Lengths::Uniform(sizes.touched_bytes);
    let built = Built::of_nodes(edges.shape, sizes.node, edges.lengths.unwrap_or(whole));
    Ok((built, edges.placement))
}

fn keys(text: &str, built: &Built) -> Result<KeyDistribution, CliError> {
    let Some(path) = text.strip_prefix("trace:") else {
        return Ok(text.parse()?);
    };
    read("keys", Path::new(path), |file| {
        Ok(KeyDistribution::read_trace(file, built.keys())?)
    })
}
