//! The command line's grammar.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

use super::arrangement::Arrangement;
use crate::{Growth, InNode, NO_NODE, Operation, Overlap, PageSize, SearchStyle, Tier};

/// Seed of random shapes and buckets.
pub(super) const SEED: u64 = 1;

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

`model COMMAND --help` has more; docs/use/model.md is the guide.";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show caches, pages and memory of this machine, and where each fact comes from
    Topology {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Measure latencies and effective capacities of this machine
    Calibrate(CalibrateArgs),
    /// Predict misses and nanoseconds of one operation for each layout
    Predict(Box<PredictArgs>),
    /// Say which layout is best, what it gains, what it costs, and whether it is worth it
    Advise(Box<AdviseArgs>),
    /// Answer the same question by simulation, or feed a trace of addresses to a simulated machine
    Simulate(Box<SimulateArgs>),
    /// Print the script that completes this command line in a shell
    #[command(after_help = "Examples:
  model completions bash > ~/.local/share/bash-completion/completions/model
  model completions zsh > ~/.zfunc/_model
  model completions fish > ~/.config/fish/completions/model.fish")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print a manual page, in roff
    #[command(after_help = "Examples:
  model man | man -l -
  model man predict > model-predict.1")]
    Man {
        /// The command that the page is about; the whole program without it
        #[arg(value_parser = ["topology", "calibrate", "predict", "advise", "simulate",
            "completions", "man"])]
        command: Option<String>,
    },
}

#[derive(Debug, ClapArgs)]
pub(super) struct CalibrateArgs {
    /// Take ten seconds instead of forty
    #[arg(long)]
    pub(super) quick: bool,
    /// Write the machine file here, for `predict --machine FILE`
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Print the machine file instead of a table
    #[arg(long)]
    pub(super) json: bool,
}

/// What is asked about: a structure, an operation on it, its keys, the memory and the machine.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Structure")]
pub(super) struct QuestionArgs {
    /// bst, nary:CHILDREN, quadtree, octree, btree, list, dlist, hash[:LOAD], array, eytzinger, or
    /// edges:FILE (lines `parent,child`)
    #[arg(long, default_value = "bst")]
    pub(super) structure: String,
    /// Number of keys, which is that of nodes but in B-trees; as 2000000 or 2e6
    #[arg(long, value_parser = parse_nodes)]
    pub(super) nodes: Option<u32>,
    /// Size of a node, or of an array's element, in bytes; a B-tree's follows from its keys
    #[arg(long, value_parser = parse_positive::<u32>, default_value = "32")]
    pub(super) node_bytes: u32,
    /// Form of a tree: complete, or as random insertions leave it
    #[arg(long, default_value = "complete", value_parser = one_of([
        ("complete", Growth::Complete), ("random", Growth::RandomInsert { seed: SEED })]))]
    pub(super) shape: Growth,
    /// B-trees: children of a full node
    #[arg(long, value_parser = parse_count::<u32>, default_value = "16")]
    pub(super) fanout: u32,
    /// B-trees: part of each node that is in use, above 0 to 1
    #[arg(long, default_value = "1")]
    pub(super) fill: f64,
    /// B-trees: how a node is searched: by halving, from the first key on, or by reading all of
    /// it, as SIMD does
    #[arg(long, default_value = "binary", value_parser = one_of([
        ("binary", InNode::Binary), ("linear", InNode::Linear), ("whole", InNode::Whole)]))]
    pub(super) in_node: InNode,
    /// B-trees: bytes of a key
    #[arg(long, value_parser = parse_count::<u32>, default_value = "8")]
    pub(super) key_bytes: u32,
    /// B-trees: bytes of a value
    #[arg(long, value_parser = parse_count::<u32>, default_value = "8")]
    pub(super) value_bytes: u32,
    /// search, miss (of absent keys), insert, range:KEYS, walk, or walk:returns (parents are read
    /// again on the way back)
    #[arg(long, default_value = "search", help_heading = "Operation")]
    pub(super) operation: Operation,
    /// Which keys are asked for: uniform, zipf:EXPONENT, hot:KEYS:OPERATIONS (two shares, as
    /// hot:0.1:0.9), or trace:FILE (the number of a key a line)
    #[arg(long, default_value = "uniform", help_heading = "Operation")]
    pub(super) keys: String,
    /// Misses of the first N operations from cold caches, instead of those of an operation in the
    /// steady state
    #[arg(long, value_parser = parse_positive::<u64>, value_name = "N", conflicts_with = "steady",
        help_heading = "Operation")]
    pub(super) searches: Option<u64>,
    /// An operation in the steady state, after many others (this is the default)
    #[arg(long, help_heading = "Operation")]
    pub(super) steady: bool,
    /// thesis, thesis-rsim or another preset, this (sizes of this one, usual latencies), calibrate
    /// (measure now), or a machine file
    #[arg(long, default_value = "this", help_heading = "Machine")]
    pub(super) machine: PathBuf,
    /// Pages that the structure lies in: 4 KiB or 2 MiB
    #[arg(long, default_value = "4k", help_heading = "Machine", value_parser = one_of([
        ("4k", PageSize::Small4K), ("2m", PageSize::Huge2M)]))]
    pub(super) pages: PageSize,
    /// The physical memory that caches see: random frames of the page's size, or the program's
    /// addresses (identity). The default is identity for the machines of the thesis and random for
    /// all others
    #[arg(long, value_enum, help_heading = "Machine")]
    pub(super) frames: Option<FrameChoice>,
    /// The cache that `coloured` layouts colour; without it, the largest whose sets addresses
    /// choose
    #[arg(long, value_name = "NAME", help_heading = "Layouts")]
    pub(super) colour_cache: Option<String>,
    /// The part of that cache that is kept for the hot nodes
    #[arg(long, default_value = "0.5", value_name = "SHARE", value_parser = parse_share,
        help_heading = "Layouts")]
    pub(super) colour_share: f64,
}

/// How the cost of an operation is counted.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Method")]
pub(super) struct CostArgs {
    /// How misses are found
    #[arg(long, default_value = "auto",
        value_parser = one_of(Tier::ALL.map(|tier| (tier.name(), tier))))]
    pub(super) tier: Tier,
    /// Operations do not wait for each other, so that their misses overlap
    #[arg(long)]
    pub(super) independent: bool,
    /// How a search goes from node to node: by a conditional jump, or by loading both links and
    /// selecting one
    #[arg(long, default_value = "branches", value_parser = one_of([
        ("branches", SearchStyle::Branches), ("branch-free", SearchStyle::BranchFree)]))]
    pub(super) style: SearchStyle,
}

impl CostArgs {
    pub(super) fn overlap(&self) -> Overlap {
        match self.independent {
            true => Overlap::Independent,
            false => Overlap::Dependent,
        }
    }
}

/// The layouts that are compared, and how they are printed.
#[derive(Clone, Debug, ClapArgs)]
pub(super) struct LayoutsArgs {
    /// Layouts, separated by commas: random[:SEED], allocated, hinted[:POLICY], dfs, preorder, bfs,
    /// cluster[:BYTES], veb, cluster-veb[:BYTES], hierarchical, weighted, coloured:LAYOUT,
    /// eliminated
    #[arg(
        long,
        value_delimiter = ',',
        help_heading = "Layouts",
        default_value = "random,bfs,dfs,cluster,veb,cluster-veb,hierarchical"
    )]
    pub(super) layout: Vec<Arrangement>,
    /// Print one JSON object
    #[arg(long, conflicts_with = "csv", help_heading = "Output")]
    pub(super) json: bool,
    /// Print comma-separated values
    #[arg(long, help_heading = "Output")]
    pub(super) csv: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  model predict --nodes 2097151 --node-bytes 32 --layout random,dfs,cluster,veb
  model predict --nodes 1e6 --shape random --keys zipf:0.99 --machine calibrate --pages 2m
  model predict --structure btree --fanout 16 --nodes 1e6 --node-bytes 16 --operation range:100
  model predict --structure list --nodes 1e5 --layout allocated,random --operation walk
  model predict --nodes 1e6 --layout random,dfs,veb --plot layouts.svg")]
pub(super) struct PredictArgs {
    #[command(flatten)]
    pub(super) question: QuestionArgs,
    #[command(flatten)]
    pub(super) cost: CostArgs,
    #[command(flatten)]
    pub(super) layouts: LayoutsArgs,
    /// The layout that speedups are relative to
    #[arg(long, default_value = "random", help_heading = "Layouts")]
    pub(super) baseline: Arrangement,
    /// Draw a sweep into this SVG file; its values become the output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) plot: Option<PathBuf>,
    /// What the plot runs over
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
  model advise --structure list --nodes 1e5 --operation walk --machine machine.json

The exit code is also 0 when nothing is worth doing: the verdict says so.")]
pub(super) struct AdviseArgs {
    #[command(flatten)]
    pub(super) question: QuestionArgs,
    #[command(flatten)]
    pub(super) cost: CostArgs,
    /// The layout as it is now: as `random`, what an old heap gives, `allocated`, a young one, or
    /// `hinted`
    #[arg(long, default_value = "random", help_heading = "Layouts")]
    pub(super) now: Arrangement,
    /// How many operations are to come before the structure changes or goes
    #[arg(long, value_parser = parse_count::<u64>, value_name = "N", help_heading = "Operation")]
    pub(super) operations: Option<u64>,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  model simulate --nodes 1e5 --node-bytes 32 --layout random,veb --machine thesis
  model simulate --nodes 1e5 --layout dfs --searches 1000
  valgrind --tool=lackey --trace-mem=yes ./program 2>&1 | model simulate --trace -
  ccscope trace -o t.parquet ./program && model simulate --trace t.parquet")]
pub(super) struct SimulateArgs {
    #[command(flatten)]
    pub(super) question: QuestionArgs,
    #[command(flatten)]
    pub(super) layouts: LayoutsArgs,
    /// How many operations are counted in the steady state; without it, enough for an error of
    /// about half a percent
    #[arg(long, value_parser = parse_count::<u64>, value_name = "N", conflicts_with = "searches",
        help_heading = "Operation")]
    pub(super) operations: Option<u64>,
    /// Chooses the operations, and the frames where they are random
    #[arg(
        long,
        default_value = "1",
        value_name = "NUMBER",
        help_heading = "Operation"
    )]
    pub(super) seed: u64,
    /// Simulate this trace instead: text of valgrind's lackey (`-` is the standard input), or a
    /// table of `ccscope trace`, if `model` is built with the feature `parquet`
    #[arg(long = "trace", id = "trace_file", value_name = "FILE", help_heading = "Trace",
        conflicts_with_all = ["nodes", "operations", "searches"])]
    pub(super) trace: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FrameChoice {
    /// Addresses are physical
    Identity,
    /// Pages lie anywhere in physical memory
    Random,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Sweep {
    /// Nanoseconds and misses against the number of nodes, from 1024 to --nodes
    Nodes,
    /// Speedup against the share of the cache that is kept for hot nodes
    Coloured,
}

/// Reads one of these words.
fn one_of<T, const N: usize>(values: [(&'static str, T); N]) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let names = values.map(|(name, _)| name);
    PossibleValuesParser::new(names).try_map(move |text| {
        let value = values.iter().find(|(name, _)| *name == text);
        value.map(|&(_, value)| value).ok_or("no such value")
    })
}

/// A whole number, also as `2_097_151` or `1e6`.
pub(super) fn parse_count<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let digits = text.replace('_', "");
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((&digits, "0"));
    let (Ok(mantissa), Ok(exponent)) = (mantissa.parse::<u64>(), exponent.parse::<u32>()) else {
        return Err("a whole number is needed".to_owned());
    };
    10u64
        .checked_pow(exponent)
        .and_then(|power| mantissa.checked_mul(power))
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| "it is more than can be predicted".to_owned())
}

fn parse_positive<T: TryFrom<u64> + Into<u64> + Copy>(text: &str) -> Result<T, String> {
    let number: T = parse_count(text)?;
    if number.into() == 0 {
        return Err("at least one is needed".to_owned());
    }
    Ok(number)
}

fn parse_nodes(text: &str) -> Result<u32, String> {
    let nodes: u64 = parse_positive(text)?;
    // The last number says "no node".
    let fitting = u32::try_from(nodes).ok().filter(|&nodes| nodes < NO_NODE);
    fitting.ok_or_else(|| format!("at most {} nodes can be predicted", NO_NODE - 1))
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok();
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number between 0 and 1".to_owned())
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
    fn every_command_has_a_manual_page() {
        let program = Args::command();
        let commands = program.get_subcommands().map(clap::Command::get_name);
        let mut arguments = program.find_subcommand("man").unwrap().get_arguments();
        let pages = arguments.next().unwrap().get_possible_values();
        assert!(commands.eq(pages.iter().map(|page| page.get_name())));
    }

    #[test]
    fn counts_have_three_spellings() {
        assert_eq!(parse_count("2_097_151"), Ok(2_097_151u64));
        assert_eq!(parse_count("3e6"), Ok(3_000_000u32));
        let too_large = "99999999999999999999";
        for bad in ["", "-1", "1.5", "e", "1e", "1e99", "nan", too_large] {
            assert!(parse_count::<u64>(bad).is_err(), "{bad}");
        }
    }
}
