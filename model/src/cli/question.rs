//! What `predict`, `advise` and `simulate` are asked, from words to what operations read.
//!
//! Everything that can be refused is refused here, in one line: sizes that this machine could not
//! even analyse, structures and operations that do not fit together, files that are not what they
//! should be.

use std::fmt;
use std::io;
use std::path::Path;

use serde::Serialize;

use super::CliError;
use super::args::{InNodeSearch, PlaceArgs, QuestionArgs, TreeShape};
use super::arrangement::Arrangement;
use super::machine::{frame_name, frames, open_regular};
use super::output::{human_bytes, human_count};
use crate::layout::did_you_mean;
use crate::machine::Origin;
use crate::structure::read_edges;
use crate::topology::Topology;
use crate::{
    Accesses, Built, CacheLevel, Colouring, Frames, Growth, InNode, KeyDistribution, Layout, Links,
    Machine, NO_NODE, NodeExtent, Operation, Placement, Sizes, Structure, Tier,
};

/// Seed of random shapes, of buckets, and of which keys are hot.
const SEED: u64 = 1;
/// A link, on the machines that are asked about.
const LINK_BYTES: u64 = 8;
/// Names of structures, for whoever mistypes one.
const STRUCTURES: [&str; 11] = [
    "bst",
    "nary",
    "quadtree",
    "octree",
    "btree",
    "list",
    "dlist",
    "hash",
    "array",
    "eytzinger",
    "edges",
];

/// What was asked, as it stands at the beginning of every answer in JSON.
#[derive(Clone, Debug, Serialize)]
pub(super) struct QuestionReport {
    pub(super) machine: String,
    origin: Origin,
    structure: StructureReport,
    operation: String,
    keys: String,
    pages: crate::PageSize,
    pub(super) frames: &'static str,
    state: State,
}

/// Which operations are meant.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Steady,
    First(u64),
}

/// The structure in a JSON object.
#[derive(Clone, Debug, Serialize)]
struct StructureReport {
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<&'static str>,
    nodes: u64,
    keys: u64,
    node_bytes: u64,
}

/// Where a structure comes from.
#[derive(Clone, Debug)]
enum Source {
    /// Built by its rules, so that it can be built in other sizes too.
    Rules(Structure),
    /// Read from a file, perhaps with addresses.
    Given(Option<Placement>),
}

/// A structure, an operation on it, its keys.
#[derive(Clone, Debug)]
pub(super) struct Question<'a> {
    args: &'a QuestionArgs,
    place: &'a PlaceArgs,
    machine: &'a Machine,
    source: Source,
    sizes: Sizes,
    built: Built,
    /// For how many nodes `built`, which has one, stands: no formula asks for them.
    stands_for: Option<u32>,
    operation: Operation,
    keys: KeyDistribution,
}

/// A structure whose nodes lie somewhere.
#[derive(Clone, Debug)]
pub(super) struct Arranged {
    pub(super) accesses: Accesses,
    pub(super) span_bytes: u64,
}

impl<'a> Question<'a> {
    /// The question, with the structure built. O(nodes), O(nodes log nodes) for some structures;
    /// O(1) for a `tier` of formulas, which need no nodes.
    pub(super) fn new(
        args: &'a QuestionArgs,
        place: &'a PlaceArgs,
        machine: &'a Machine,
        tier: Tier,
    ) -> Result<Question<'a>, CliError> {
        if !(0.0..=1.0).contains(&place.colour_share) {
            return Err(CliError::Request(format!(
                "--colour-share is {}, not a share between 0 and 1",
                place.colour_share
            )));
        }
        if args.searches == Some(0) {
            return Err(CliError::Request(
                "--searches is 0: at least one operation is needed".to_owned(),
            ));
        }
        let sizes = sizes(args)?;
        let operation: Operation = args.operation.parse().map_err(request)?;
        let mut stands_for = None;
        let (source, built) = match args.structure.split_once(':') {
            Some(("edges", path)) => given(Path::new(path), args, &sizes)?,
            _ => {
                let structure = structure(args)?;
                let mut keys = check_size(args, &sizes)?;
                if tier == Tier::Closed && has_formulas(structure) {
                    stands_for = Some(std::mem::replace(&mut keys, 1));
                } else {
                    check_memory(points(structure, keys), &sizes, operation, machine)?;
                }
                let built = structure.build(keys, &sizes).map_err(request)?;
                (Source::Rules(structure), built)
            }
        };
        let keys = keys(&args.keys, &built)?;
        let question = Question {
            args,
            place,
            machine,
            source,
            sizes,
            built,
            stands_for,
            operation,
            keys,
        };
        if let Source::Given(_) = question.source {
            check_memory(question.built.points() as f64, &sizes, operation, machine)?;
        }
        Ok(question)
    }

    /// The same question with all nodes, where only one stands for them.
    pub(super) fn whole(&self) -> Result<Option<Question<'a>>, CliError> {
        let whole = (self.stands_for).and_then(|nodes| {
            let all = Question {
                stands_for: None,
                ..self.clone()
            };
            all.with_keys(nodes)
        });
        whole.transpose()
    }

    /// The same question of a structure with so many keys; `None` where its size is given, or
    /// depends on a file.
    pub(super) fn with_keys(&self, keys: u32) -> Option<Result<Question<'a>, CliError>> {
        let Source::Rules(structure) = &self.source else {
            return None;
        };
        let (stands_for, build) = match self.stands_for {
            Some(_) => (Some(keys), 1),
            None => (None, keys),
        };
        let built = check_memory(
            points(*structure, build),
            &self.sizes,
            self.operation,
            self.machine,
        )
        .and_then(|()| structure.build(build, &self.sizes).map_err(request));
        Some(built.map(|built| Question {
            args: self.args,
            place: self.place,
            machine: self.machine,
            source: self.source.clone(),
            sizes: self.sizes,
            built,
            stands_for,
            operation: self.operation,
            keys: self.keys.clone(),
        }))
    }

    /// How many nodes the structure has.
    pub(super) fn nodes(&self) -> u64 {
        let built = self.built.shape().len() as u64;
        self.stands_for.map_or(built, u64::from)
    }

    /// How many keys the structure has.
    pub(super) fn key_count(&self) -> u64 {
        let built = self.built.keys() as u64;
        self.stands_for.map_or(built, u64::from)
    }

    /// The same question with other settings of memory and machine.
    pub(super) fn in_place<'b>(&self, place: &'b PlaceArgs) -> Question<'b>
    where
        'a: 'b,
    {
        Question {
            place,
            ..self.clone()
        }
    }

    pub(super) fn place(&self) -> &'a PlaceArgs {
        self.place
    }

    pub(super) fn machine(&self) -> &'a Machine {
        self.machine
    }

    pub(super) fn built(&self) -> &Built {
        &self.built
    }

    pub(super) fn operation(&self) -> Operation {
        self.operation
    }

    pub(super) fn keys(&self) -> &KeyDistribution {
        &self.keys
    }

    /// The rules by which it was built; none of a file's.
    pub(super) fn structure(&self) -> Option<Structure> {
        match &self.source {
            Source::Rules(structure) => Some(*structure),
            Source::Given(_) => None,
        }
    }

    pub(super) fn pages(&self) -> crate::PageSize {
        self.place.pages.size()
    }

    /// How many operations from cold are asked about; none in the steady state.
    pub(super) fn first_operations(&self) -> Option<u64> {
        self.args.searches
    }

    /// How many layouts this machine can answer for at once.
    pub(super) fn answers_at_once(&self) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let points = self.built.points() as f64;
        let each = analysis_bytes(points, &self.sizes, self.operation, self.machine);
        let fit = MEMORY_SHARE * available_bytes() / each.max(1.0);
        (1..=processors)
            .rev()
            .find(|&threads| threads as f64 <= fit)
            .unwrap_or(1)
    }

    /// Whether some keys are asked for more often than others.
    pub(super) fn has_favourites(&self) -> bool {
        !matches!(self.keys, KeyDistribution::Uniform)
    }

    /// Puts the nodes where the arrangement says.
    pub(super) fn arrange(&self, arrangement: Arrangement) -> Result<Arranged, CliError> {
        let built = &self.built;
        let placement = match arrangement {
            Arrangement::Plain(Layout::Weighted) => built
                .place_weighted(Layout::Weighted, self.operation, &self.keys)
                .map_err(request)?,
            Arrangement::Plain(layout) => built.place(layout),
            Arrangement::Coloured(layout) => {
                let cache = self.colour_cache()?;
                let weights = match self.has_favourites() {
                    true => Some(
                        built
                            .node_ends(self.operation, &self.keys)
                            .map_err(request)?,
                    ),
                    false => None,
                };
                Colouring::new(cache.geometry, self.place.colour_share)
                    .and_then(|colouring| {
                        colouring.place(built.shape(), built.extent(), layout, weights.as_deref())
                    })
                    .map_err(request)?
                    .placement()
                    .clone()
            }
            Arrangement::Given => match &self.source {
                Source::Given(Some(placement)) => placement.clone(),
                _ => {
                    return Err(CliError::Request(
                        "--layout given: addresses come from the third column of edges:FILE"
                            .to_owned(),
                    ));
                }
            },
            Arrangement::Eliminated => {
                let (structure, sizes) = self.without_links()?;
                let keys = u32::try_from(built.keys()).unwrap_or(NO_NODE);
                let other = structure.build(keys, &sizes).map_err(request)?;
                let placement = other.place(Layout::BreadthFirst);
                return self.read(&other, &placement);
            }
        };
        self.read(built, &placement)
    }

    fn read(&self, built: &Built, placement: &Placement) -> Result<Arranged, CliError> {
        let accesses = built
            .accesses(placement, self.operation, &self.keys)
            .map_err(request)?;
        Ok(Arranged {
            accesses,
            span_bytes: built.span_bytes(placement),
        })
    }

    /// Whether the structure is one that can do without links.
    pub(super) fn can_eliminate(&self) -> bool {
        self.without_links().is_ok()
    }

    /// The same structure without links: a complete tree whose children's places are computed, a
    /// list whose nodes follow each other.
    fn without_links(&self) -> Result<(Structure, Sizes), CliError> {
        let refuse = |why: &str| {
            Err(CliError::Request(format!(
                "--layout eliminated: {} {why}",
                self.args.structure
            )))
        };
        let &Source::Rules(structure) = &self.source else {
            return refuse("has a shape of its own, which links have to say");
        };
        let growth = Growth::Complete;
        let (structure, links) = match structure {
            Structure::SearchTree { .. } => (Structure::SearchTree { growth }, 2),
            Structure::Tree { arity, .. } => (Structure::Tree { arity, growth }, u64::from(arity)),
            Structure::PointTree { dimensions, .. } => {
                (Structure::PointTree { dimensions, growth }, 1 << dimensions)
            }
            Structure::List { links } => {
                let number = match links {
                    Links::Single => 1,
                    Links::Double => 2,
                };
                (structure, number)
            }
            Structure::SortedArray | Structure::Eytzinger => return refuse("has no links"),
            _ => return refuse("cannot do without its links"),
        };
        let bytes = u64::from(self.sizes.node.bytes);
        let left = bytes.saturating_sub(links * LINK_BYTES);
        let Ok(node) = node_extent(left) else {
            return refuse(&format!(
                "has {links} links of {LINK_BYTES} B, more than its nodes of {bytes} B hold"
            ));
        };
        Ok((structure, Sizes::of(node)))
    }

    /// The cache that colours are of.
    pub(super) fn colour_cache(&self) -> Result<&'a CacheLevel, CliError> {
        let Some(hierarchy) = &self.machine.hierarchy else {
            return Err(CliError::Request(
                "coloured layouts need a machine whose sets and ways are known (presets have them)"
                    .to_owned(),
            ));
        };
        let caches = hierarchy.caches();
        if let Some(name) = &self.place.colour_cache {
            return caches
                .iter()
                .find(|cache| cache.name == *name)
                .ok_or_else(|| {
                    let names: Vec<&str> = caches.iter().map(|cache| cache.name.as_str()).collect();
                    CliError::Request(format!(
                        "the machine has no cache called `{name}` (it has {})",
                        names.join(", ")
                    ))
                });
        }
        // Bits of an address above the page choose no sets where frames are random.
        let chosen = match self.frames() {
            Frames::Identity => u64::MAX,
            Frames::Random { pages, .. } => pages.bytes(),
        };
        caches
            .iter()
            .rev()
            .find(|cache| cache.geometry.way_bytes() <= chosen)
            .ok_or_else(|| {
                CliError::Request(
                    "addresses choose the sets of no cache of this machine; name one with --colour-cache"
                        .to_owned(),
                )
            })
    }

    /// Which frames it are is of no matter to a prediction.
    pub(super) fn frames(&self) -> Frames {
        frames(self.place, self.machine, 0)
    }

    /// `complete bst of 2 097 151 nodes of 32 B in 4k pages`.
    pub(super) fn describe(&self) -> String {
        let built = &self.built;
        let (keys, nodes) = (self.key_count() as f64, self.nodes() as f64);
        let shape = self
            .shape_name()
            .map_or(String::new(), |shape| format!("{shape} "));
        let parts = if built.shape().is_empty() {
            format!(
                "{} elements of {}",
                human_count(keys),
                human_bytes(f64::from(self.sizes.node.bytes))
            )
        } else {
            let extent = human_bytes(f64::from(built.extent().bytes));
            if self.key_count() == self.nodes() {
                format!("{} nodes of {extent}", human_count(nodes))
            } else {
                format!(
                    "{} keys in {} nodes of {extent}",
                    human_count(keys),
                    human_count(nodes)
                )
            }
        };
        format!(
            "{shape}{} of {parts} in {} pages",
            self.args.structure,
            self.place.pages.size()
        )
    }

    /// `a search of uniform keys`.
    pub(super) fn describe_operation(&self) -> String {
        let operation = match self.operation {
            Operation::Search => "a search".to_owned(),
            Operation::Miss => "a search for an absent key".to_owned(),
            Operation::Insert => "an insertion".to_owned(),
            Operation::Range { keys } => {
                format!("a range of {} keys", human_count(f64::from(keys)))
            }
            _ => return "a walk through all of it".to_owned(),
        };
        format!("{operation}, keys {}", self.args.keys)
    }

    /// The question for JSON, answered with pages in `frames`.
    pub(super) fn report(&self, frames: Frames) -> QuestionReport {
        QuestionReport {
            machine: self.machine.name.clone(),
            origin: self.machine.origin.clone(),
            structure: self.structure_report(),
            operation: self.args.operation.clone(),
            keys: self.args.keys.clone(),
            pages: self.pages(),
            frames: frame_name(frames),
            state: self.first_operations().map_or(State::Steady, State::First),
        }
    }

    fn structure_report(&self) -> StructureReport {
        let built = &self.built;
        let node_bytes = if built.shape().is_empty() {
            self.sizes.node.bytes
        } else {
            built.extent().bytes
        };
        StructureReport {
            kind: self.args.structure.clone(),
            shape: self.shape_name(),
            nodes: self.nodes(),
            keys: self.key_count(),
            node_bytes: u64::from(node_bytes),
        }
    }

    /// How the structure came to be, where that makes a difference.
    fn shape_name(&self) -> Option<&'static str> {
        match self.source {
            Source::Rules(
                Structure::SearchTree { .. }
                | Structure::Tree { .. }
                | Structure::PointTree { .. }
                | Structure::BTree { .. },
            ) => Some(self.args.shape.name()),
            _ => None,
        }
    }

    /// What the reader should know of the machine before believing its figures.
    pub(super) fn notes(&self) -> Vec<String> {
        self.machine.notes.clone()
    }
}

/// An error of the library as a refusal.
fn request(error: impl fmt::Display) -> CliError {
    CliError::Request(error.to_string())
}

/// Refuses analyses that would take more than this share of the memory that is free.
const MEMORY_SHARE: f64 = 0.8;

/// Memory that the answer for one layout takes, about: points, spans, addresses and visits, and
/// what is kept of each block size.
fn analysis_bytes(points: f64, sizes: &Sizes, operation: Operation, machine: &Machine) -> f64 {
    /// Measured at two million nodes of 32 and 400 B, of all structures.
    const POINT_BYTES: f64 = 128.0;
    /// The order of a walk, and its blocks by sets.
    const WALK_BYTES: f64 = 64.0;
    /// A block's number and probabilities, in vectors that grow by doubling.
    const BLOCK_BYTES: f64 = 48.0;
    let levels = machine.levels.iter().map(|level| level.block_bytes);
    let neighbours = machine.neighbours.iter().map(|other| other.block_bytes);
    let block_sizes: std::collections::BTreeSet<u64> = levels.chain(neighbours).collect();
    // Of each point at most the first and the last block are kept one by one.
    let node_bytes = f64::from(sizes.node.bytes);
    let kept = |size: &u64| (node_bytes / *size as f64).min(2.0);
    let walk = if let Operation::Walk { .. } = operation {
        WALK_BYTES
    } else {
        0.0
    };
    points * (POINT_BYTES + walk + BLOCK_BYTES * block_sizes.iter().map(kept).sum::<f64>())
}

/// Refuses analyses that take more memory than this machine can spare.
fn check_memory(
    points: f64,
    sizes: &Sizes,
    operation: Operation,
    machine: &Machine,
) -> Result<(), CliError> {
    let bytes = analysis_bytes(points, sizes, operation, machine);
    let available = available_bytes();
    if bytes <= MEMORY_SHARE * available {
        return Ok(());
    }
    Err(CliError::Request(format!(
        "this takes about {} of memory, and this machine has {} free: ask for fewer nodes, or for \
         `predict --tier closed`, which places none of them",
        human_bytes(bytes),
        human_bytes(available)
    )))
}

/// Memory that programs can have, in bytes; all there is where the system does not say.
fn available_bytes() -> f64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    kilobytes.map_or_else(
        || Topology::this().memory_bytes.value as f64,
        |kilobytes: f64| 1024.0 * kilobytes,
    )
}

/// About how many points the structure has.
fn points(structure: Structure, keys: u32) -> f64 {
    let each = match structure {
        Structure::Hash { load, .. } if load > 0.0 => 1.0 + 1.0 / load,
        // Keys and values, and the nodes above them.
        Structure::BTree { .. } => 2.5,
        _ => 1.0,
    };
    f64::from(keys) * each
}

/// Whether there are formulas for some of its layouts, of which all nodes need not be built.
fn has_formulas(structure: Structure) -> bool {
    let (Structure::SearchTree { growth }
    | Structure::Tree { growth, .. }
    | Structure::PointTree { growth, .. }) = structure
    else {
        return false;
    };
    growth == Growth::Complete
}

/// Refuses structures that have no numbers.
fn check_size(args: &QuestionArgs, sizes: &Sizes) -> Result<u32, CliError> {
    let refuse = |message: String| Err(CliError::Request(message));
    let Some(nodes) = args.nodes else {
        return refuse("--nodes is missing: how large is the structure?".to_owned());
    };
    if nodes == 0 {
        return refuse("--nodes is 0: a structure needs at least one node".to_owned());
    }
    let node_bytes = u64::from(sizes.node.bytes);
    // The last number says "no node".
    let keys = u32::try_from(nodes).ok().filter(|&nodes| nodes < NO_NODE);
    let (Some(keys), Some(_)) = (keys, nodes.checked_mul(node_bytes)) else {
        return refuse(format!(
            "{nodes} nodes of {node_bytes} bytes are more than can be predicted: at most {} nodes of at most {} bytes",
            NO_NODE - 1,
            u32::MAX
        ));
    };
    Ok(keys)
}

/// Sizes of nodes, keys and values.
fn sizes(args: &QuestionArgs) -> Result<Sizes, CliError> {
    if args.node_bytes == 0 {
        return Err(CliError::Request(
            "--node-bytes is 0: a node has at least one byte".to_owned(),
        ));
    }
    let small = |option: &str, bytes: u64| {
        u32::try_from(bytes).map_err(|_| {
            CliError::Request(format!("{option} is {bytes}, more than can be predicted"))
        })
    };
    let node = node_extent(args.node_bytes).map_err(|()| {
        CliError::Request(format!(
            "nodes of {} bytes are more than can be predicted: at most {}",
            args.node_bytes,
            u32::MAX
        ))
    })?;
    Ok(Sizes::of(node).with_pairs(
        small("--key-bytes", args.key_bytes)?,
        small("--value-bytes", args.value_bytes)?,
    ))
}

/// A node of so many bytes, aligned as a compiler would: to the largest power of two in its size,
/// up to a word.
fn node_extent(bytes: u64) -> Result<NodeExtent, ()> {
    let bytes = u32::try_from(bytes).map_err(|_| ())?;
    NodeExtent::new(bytes, 1 << bytes.trailing_zeros().min(3)).map_err(|_| ())
}

/// The structure of this name.
fn structure(args: &QuestionArgs) -> Result<Structure, CliError> {
    let growth = match args.shape {
        TreeShape::Complete => Growth::Complete,
        TreeShape::Random => Growth::RandomInsert { seed: SEED },
    };
    let text = args.structure.trim();
    let (name, suffix) = match text.split_once(':') {
        Some((name, suffix)) => (name, Some(suffix)),
        None => (text, None),
    };
    let wrong_suffix = |wanted: &str| {
        Err(CliError::Request(format!(
            "bad structure `{text}`: `{name}` takes {wanted} after the name"
        )))
    };
    let structure = match (name, suffix) {
        ("bst", None) => Structure::SearchTree { growth },
        ("nary", Some(arity)) => match arity.parse() {
            Ok(arity) => Structure::Tree { arity, growth },
            Err(_) => return wrong_suffix("a number of children"),
        },
        ("nary", None) => return wrong_suffix("a number of children, as in `nary:4`,"),
        ("quadtree", None) => Structure::PointTree {
            dimensions: 2,
            growth,
        },
        ("octree", None) => Structure::PointTree {
            dimensions: 3,
            growth,
        },
        ("btree", None) => Structure::BTree {
            fanout: u32::try_from(args.fanout).unwrap_or(u32::MAX),
            fill: args.fill,
            in_node: match args.in_node {
                InNodeSearch::Binary => InNode::Binary,
                InNodeSearch::Linear => InNode::Linear,
                InNodeSearch::Whole => InNode::Whole,
            },
            growth,
        },
        ("list", None) => Structure::List {
            links: Links::Single,
        },
        ("dlist", None) => Structure::List {
            links: Links::Double,
        },
        ("hash", suffix) => match suffix.unwrap_or("1").parse() {
            Ok(load) => Structure::Hash { load, seed: SEED },
            Err(_) => return wrong_suffix("keys to a bucket, as in `hash:0.75`,"),
        },
        ("array", None) => Structure::SortedArray,
        ("eytzinger", None) => Structure::Eytzinger,
        ("edges", _) => return wrong_suffix("the name of a file"),
        (known, Some(_)) if STRUCTURES.contains(&known) => return wrong_suffix("nothing"),
        _ => {
            return Err(CliError::Request(format!(
                "unknown structure `{text}`{} (known: {})",
                did_you_mean(name, STRUCTURES),
                STRUCTURES.join(", ")
            )));
        }
    };
    Ok(structure)
}

/// The structure of a file of edges.
fn given(path: &Path, args: &QuestionArgs, sizes: &Sizes) -> Result<(Source, Built), CliError> {
    /// What reading takes for a node, in bytes: its names above all.
    const NODE_BYTES: f64 = 256.0;
    if args.nodes.is_some() {
        return Err(CliError::Request(
            "--nodes cannot be given with edges:FILE, which says how many there are".to_owned(),
        ));
    }
    let refuse = |error: &dyn fmt::Display| {
        CliError::Request(format!("cannot read edges {}: {error}", path.display()))
    };
    let file = open_regular(path).map_err(|error| refuse(&error))?;
    let most = MEMORY_SHARE * available_bytes() / NODE_BYTES;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the numbers of nodes"
    )]
    let most = most.clamp(1.0, f64::from(NO_NODE - 1)) as u32;
    let edges = read_edges(file, most).map_err(|error| refuse(&error))?;
    if edges.shape.is_empty() {
        return Err(refuse(&"there is no edge in it"));
    }
    let shape = edges.shape.clone();
    let built = match &edges.lengths {
        Some(lengths) => Built::of_nodes(shape, sizes.node, lengths.clone()),
        None => Built::of_shape(shape, sizes),
    };
    Ok((Source::Given(edges.placement), built))
}

/// The distribution of this name.
fn keys(text: &str, built: &Built) -> Result<KeyDistribution, CliError> {
    let Some(path) = text.strip_prefix("trace:") else {
        return text.parse().map_err(request);
    };
    let refuse =
        |error: &dyn fmt::Display| CliError::Request(format!("cannot read keys {path}: {error}"));
    let file = open_regular(Path::new(path)).map_err(|error: io::Error| refuse(&error))?;
    KeyDistribution::read_trace(file, built.keys()).map_err(|error| refuse(&error))
}
