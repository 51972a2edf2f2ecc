//! The command line's grammar.
//!
//! `predict`, `advise` and `simulate` ask about the same thing, so that they share its description:
//! [`QuestionArgs`] is the structure, what is done with it and which keys are asked for;
//! [`PlaceArgs`] is the memory and the machine.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

use super::CliError;
use super::arrangement::Arrangement;
use crate::layout::did_you_mean;
use crate::{Overlap, PageSize, ParseTierError, SearchStyle, Tier};

/// Predicts cache misses and nanoseconds of a pointer structure before it is built.
#[derive(Debug, Parser)]
#[command(name = "model", version, about, after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(subcommand)]
    pub(super) command: Command,
}

const EXAMPLES: &str = "Examples:
  model predict --structure bst --nodes 1e6 --node-bytes 32      how do the layouts compare?
  model advise --structure hash:0.75 --nodes 1e6 --node-bytes 24 is it worth changing anything?
  model calibrate -o machine.json                                measure this machine first

`model COMMAND --help` has more; docs/model.md is the guide.";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show caches, pages and memory of this machine, and where each fact comes from
    Topology(TopologyArgs),
    /// Measure latencies and effective capacities of this machine
    Calibrate(CalibrateArgs),
    /// Predict misses and nanoseconds of one operation for each layout
    Predict(PredictArgs),
    /// Say which layout is best, what it gains, what it costs, and whether it is worth it
    Advise(AdviseArgs),
    /// Answer the same question by simulation, or feed a trace of addresses to a simulated machine
    Simulate(SimulateArgs),
    /// Print the script that completes this command line in a shell
    Completions(CompletionsArgs),
    /// Print a manual page, in roff
    Man(ManArgs),
}

#[derive(Debug, ClapArgs)]
pub(super) struct TopologyArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct CalibrateArgs {
    /// Take five seconds instead of twenty
    #[arg(long)]
    pub(super) quick: bool,
    /// Write the machine file here, for `predict --machine FILE`
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Print the machine file instead of a table
    #[arg(long)]
    pub(super) json: bool,
}

/// What is asked about: a structure, an operation on it, and its keys.
#[derive(Clone, Debug, ClapArgs)]
pub(super) struct QuestionArgs {
    /// bst, nary:CHILDREN, quadtree, octree, btree, list, dlist, hash[:LOAD], array, eytzinger, or
    /// edges:FILE (lines `parent,child`)
    #[arg(long, default_value = "bst", help_heading = "Structure")]
    pub(super) structure: String,
    /// Number of keys, which is that of nodes but in B-trees; as 2000000 or 2e6
    #[arg(long, value_parser = parse_count, help_heading = "Structure")]
    pub(super) nodes: Option<u64>,
    /// Size of a node, or of an array's element, in bytes; a B-tree's follows from its keys
    #[arg(long, value_parser = parse_count, default_value = "32", help_heading = "Structure")]
    pub(super) node_bytes: u64,
    /// Form of a tree: complete, or as random insertions leave it
    #[arg(
        long,
        value_enum,
        default_value = "complete",
        help_heading = "Structure"
    )]
    pub(super) shape: TreeShape,
    /// B-trees: children of a full node
    #[arg(long, value_parser = parse_count, default_value = "16", help_heading = "Structure")]
    pub(super) fanout: u64,
    /// B-trees: part of each node that is in use, above 0 to 1
    #[arg(long, default_value = "1", help_heading = "Structure")]
    pub(super) fill: f64,
    /// B-trees: how a node is searched
    #[arg(long, value_enum, default_value = "binary", help_heading = "Structure")]
    pub(super) in_node: InNodeSearch,
    /// B-trees: bytes of a key
    #[arg(long, value_parser = parse_count, default_value = "8", help_heading = "Structure")]
    pub(super) key_bytes: u64,
    /// B-trees: bytes of a value
    #[arg(long, value_parser = parse_count, default_value = "8", help_heading = "Structure")]
    pub(super) value_bytes: u64,
    /// search, miss (of absent keys), insert, range:KEYS, walk, or walk:returns (parents are read
    /// again on the way back)
    #[arg(long, default_value = "search", help_heading = "Operation")]
    pub(super) operation: String,
    /// Which keys are asked for: uniform, zipf:EXPONENT, hot:KEYS:OPERATIONS (two shares, as
    /// hot:0.1:0.9), or trace:FILE (the number of a key a line)
    #[arg(long, default_value = "uniform", help_heading = "Operation")]
    pub(super) keys: String,
    /// Misses of the first N operations from cold caches, instead of those of an operation in the
    /// steady state
    #[arg(long, value_parser = parse_count, value_name = "N", conflicts_with = "steady", help_heading = "Operation")]
    pub(super) searches: Option<u64>,
    /// An operation in the steady state, after many others (this is the default)
    #[arg(long, help_heading = "Operation")]
    pub(super) steady: bool,
}

/// Where the nodes lie and on what machine.
#[derive(Clone, Debug, ClapArgs)]
pub(super) struct PlaceArgs {
    /// thesis, thesis-rsim or another preset, this (sizes of this one, usual latencies), calibrate
    /// (measure now), or a machine file
    #[arg(long, default_value = "this", help_heading = "Machine")]
    pub(super) machine: PathBuf,
    /// Pages that the structure lies in
    #[arg(long, value_enum, default_value = "4k", help_heading = "Machine")]
    pub(super) pages: Pages,
    /// How caches are found that addresses beyond the page choose sets of: random frames of the
    /// page's size, or identity; without it, identity for the machines of the thesis and random for
    /// all others
    #[arg(long, value_enum, help_heading = "Machine")]
    pub(super) frames: Option<FrameChoice>,
    /// The cache that `coloured` layouts colour; without it, the largest whose sets addresses
    /// choose
    #[arg(long, value_name = "NAME", help_heading = "Layouts")]
    pub(super) colour_cache: Option<String>,
    /// The part of that cache that is kept for the hot nodes
    #[arg(
        long,
        default_value = "0.5",
        value_name = "SHARE",
        help_heading = "Layouts"
    )]
    pub(super) colour_share: f64,
}

/// How the cost of an operation is counted.
#[derive(Clone, Debug, ClapArgs)]
pub(super) struct CostArgs {
    /// How misses are found: auto, closed, footprint, poisson or per-set
    #[arg(long, default_value = "auto", help_heading = "Method")]
    pub(super) tier: String,
    /// Operations do not wait for each other, so that their misses overlap
    #[arg(long, help_heading = "Method")]
    pub(super) independent: bool,
    /// How a search goes from node to node
    #[arg(long, value_enum, default_value = "branches", help_heading = "Method")]
    pub(super) style: Style,
}

impl CostArgs {
    pub(super) fn tier(&self) -> Result<Tier, CliError> {
        self.tier.parse().map_err(|error: ParseTierError| {
            let known = Tier::ALL.iter().map(|tier| tier.name());
            CliError::Request(format!("{error}{}", did_you_mean(&self.tier, known)))
        })
    }

    pub(super) fn overlap(&self) -> Overlap {
        if self.independent {
            Overlap::Independent
        } else {
            Overlap::Dependent
        }
    }
}

const LAYOUTS_HELP: &str = "Layouts, separated by commas: random[:SEED], allocated, \
    hinted[:POLICY], dfs, preorder, bfs, cluster[:BYTES], veb, cluster-veb[:BYTES], hierarchical, \
    weighted, coloured:LAYOUT, eliminated";

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  model predict --nodes 2097151 --node-bytes 32 --layout random,dfs,cluster,veb
  model predict --nodes 1e6 --node-bytes 24 --shape random --keys zipf:0.99 --machine calibrate --pages 2m
  model predict --structure btree --fanout 16 --nodes 1e6 --node-bytes 16 --operation range:100
  model predict --structure list --nodes 1e5 --layout allocated,random --operation walk
  model predict --nodes 2097151 --node-bytes 20 --machine thesis --thesis --layout random,dfs,cluster,coloured:cluster
  model predict --nodes 1e6 --layout random,dfs,veb --plot layouts.svg")]
pub(super) struct PredictArgs {
    #[command(flatten)]
    pub(super) question: QuestionArgs,
    #[command(flatten)]
    pub(super) place: PlaceArgs,
    #[command(flatten)]
    pub(super) cost: CostArgs,
    #[arg(long, value_delimiter = ',', help = LAYOUTS_HELP, help_heading = "Layouts",
        default_value = "random,bfs,dfs,cluster,veb,cluster-veb,hierarchical")]
    pub(super) layout: Vec<Arrangement>,
    /// The layout that speedups are relative to
    #[arg(long, default_value = "random", help_heading = "Layouts")]
    pub(super) baseline: Arrangement,
    /// Add what the formulas of the thesis say
    #[arg(long, help_heading = "Output")]
    pub(super) thesis: bool,
    /// Print one JSON object
    #[arg(long, conflicts_with = "csv", help_heading = "Output")]
    pub(super) json: bool,
    /// Print comma-separated values, a line a layout
    #[arg(long, help_heading = "Output")]
    pub(super) csv: bool,
    /// Draw a sweep into this SVG file; its values become the output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) plot: Option<PathBuf>,
    /// What the plot runs over: nodes (nanoseconds and misses from 1024 nodes to --nodes) or
    /// coloured (speedup over the baseline by the share of the cache that is kept for the hot
    /// nodes)
    #[arg(
        long,
        value_enum,
        default_value = "nodes",
        requires = "plot",
        help_heading = "Output"
    )]
    pub(super) sweep: Sweep,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  model advise --nodes 1e6 --node-bytes 32 --shape random
  model advise --structure quadtree --nodes 5e5 --node-bytes 40 --now allocated --operations 1e7
  model advise --structure list --nodes 1e5 --node-bytes 24 --operation walk --machine machine.json

The answer is also 0 when nothing is worth doing: the verdict says so.")]
pub(super) struct AdviseArgs {
    #[command(flatten)]
    pub(super) question: QuestionArgs,
    #[command(flatten)]
    pub(super) place: PlaceArgs,
    #[command(flatten)]
    pub(super) cost: CostArgs,
    /// The layout as it is now: as `random`, what an old heap gives, `allocated`, a young one, or
    /// `hinted`
    #[arg(long, default_value = "random", help_heading = "Layouts")]
    pub(super) now: Arrangement,
    /// How many operations are to come before the structure changes or goes
    #[arg(long, value_parser = parse_count, value_name = "N", help_heading = "Operation")]
    pub(super) operations: Option<u64>,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  model simulate --nodes 1e5 --node-bytes 32 --layout random,veb --machine thesis
  model simulate --nodes 1e5 --layout dfs --searches 1000
  valgrind --tool=lackey --trace-mem=yes ./program 2>&1 | model simulate --trace - --machine thesis")]
pub(super) struct SimulateArgs {
    #[command(flatten)]
    pub(super) question: QuestionArgs,
    #[command(flatten)]
    pub(super) place: PlaceArgs,
    #[arg(long, value_delimiter = ',', help = LAYOUTS_HELP, help_heading = "Layouts",
        default_value = "random,bfs,dfs,cluster,veb,cluster-veb,hierarchical")]
    pub(super) layout: Vec<Arrangement>,
    /// How many operations are counted in the steady state; without it, enough for an error of
    /// about one percent
    #[arg(long, value_parser = parse_count, value_name = "N", conflicts_with = "searches", help_heading = "Operation")]
    pub(super) operations: Option<u64>,
    /// Chooses the operations, and the frames where they are random
    #[arg(
        long,
        default_value = "1",
        value_name = "NUMBER",
        help_heading = "Operation"
    )]
    pub(super) seed: u64,
    /// Simulate this trace of valgrind's lackey instead; `-` is the standard input
    #[arg(long = "trace", id = "trace_file", value_name = "FILE", help_heading = "Trace",
        conflicts_with_all = ["nodes", "operations", "searches"])]
    pub(super) trace: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long, conflicts_with = "csv", help_heading = "Output")]
    pub(super) json: bool,
    /// Print comma-separated values, a line a layout and level
    #[arg(long, help_heading = "Output")]
    pub(super) csv: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  model completions bash > ~/.local/share/bash-completion/completions/model
  model completions zsh > ~/.zfunc/_model
  model completions fish > ~/.config/fish/completions/model.fish")]
pub(super) struct CompletionsArgs {
    /// The shell
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  model man | man -l -
  model man predict > model-predict.1")]
pub(super) struct ManArgs {
    /// The command that the page is about; the program as a whole without it
    pub(super) command: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum TreeShape {
    /// All levels full but the last
    Complete,
    /// What random insertions leave
    Random,
}

impl TreeShape {
    pub(super) fn name(self) -> &'static str {
        match self {
            TreeShape::Complete => "complete",
            TreeShape::Random => "random",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum InNodeSearch {
    /// Halving
    Binary,
    /// From the first key on
    Linear,
    /// All of it is read, as SIMD does
    Whole,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Pages {
    /// 4 KiB
    #[value(name = "4k")]
    Small,
    /// 2 MiB
    #[value(name = "2m")]
    Huge,
}

impl Pages {
    pub(super) fn size(self) -> PageSize {
        match self {
            Pages::Small => PageSize::Small4K,
            Pages::Huge => PageSize::Huge2M,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FrameChoice {
    /// Addresses are physical
    Identity,
    /// Pages lie anywhere in physical memory
    Random,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Style {
    /// With a conditional jump at each node
    Branches,
    /// Both links are loaded, one is selected
    BranchFree,
}

impl Style {
    pub(super) fn search_style(self) -> SearchStyle {
        match self {
            Style::Branches => SearchStyle::Branches,
            Style::BranchFree => SearchStyle::BranchFree,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Sweep {
    /// Nanoseconds and misses against the number of nodes
    Nodes,
    /// Speedup against the share of the cache that is kept for hot nodes
    Coloured,
}

/// A whole number, also as `2_097_151` or `1e6`.
pub(super) fn parse_count(text: &str) -> Result<u64, String> {
    let digits = text.replace('_', "");
    let fail = || "a whole number is needed".to_owned();
    match digits.split_once(['e', 'E']) {
        None => digits.parse().map_err(|_| fail()),
        Some((mantissa, exponent)) => {
            let mantissa: u64 = mantissa.parse().map_err(|_| fail())?;
            let exponent: u32 = exponent.parse().map_err(|_| fail())?;
            10u64
                .checked_pow(exponent)
                .and_then(|power| mantissa.checked_mul(power))
                .ok_or_else(|| "the number is too large".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_grammar_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn counts_have_three_spellings() {
        assert_eq!(parse_count("2_097_151"), Ok(2_097_151));
        assert_eq!(parse_count("3e6"), Ok(3_000_000));
        for bad in [
            "",
            "-1",
            "1.5",
            "e",
            "1e",
            "1e99",
            "nan",
            "99999999999999999999",
        ] {
            assert!(parse_count(bad).is_err(), "{bad}");
        }
    }
}
