//! The command line's grammar.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

use super::probe_layout::ProbeLayoutArgs;
use crate::{Layout, PageSize};

/// Predicts cache misses and nanoseconds of a pointer structure before it is built.
#[derive(Debug, Parser)]
#[command(name = "model", version, about)]
pub(super) struct Args {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show caches, pages and memory of this machine, and where each fact comes from
    Topology(TopologyArgs),
    /// Measure latencies and effective capacities of this machine
    Calibrate(CalibrateArgs),
    /// Predict misses and nanoseconds of one operation for each layout
    Predict(PredictArgs),
    /// Build a tree by a layout and search it, to be watched by valgrind
    #[command(hide = true)]
    ProbeLayout(ProbeLayoutArgs),
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

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    model predict --structure bst --nodes 2097151 --node-bytes 32 --layout random,dfs,cluster,veb\n  \
    model predict --structure bst --nodes 1e6 --node-bytes 24 --shape random --machine calibrate --pages 2m")]
pub(super) struct PredictArgs {
    /// Kind of structure
    #[arg(long, value_enum, default_value = "bst")]
    pub(super) structure: Structure,
    /// Number of nodes
    #[arg(long, value_parser = parse_count)]
    pub(super) nodes: u64,
    /// Size of a node in bytes
    #[arg(long, value_parser = parse_count)]
    pub(super) node_bytes: u64,
    /// Layouts, separated by commas: random[:SEED], dfs, bfs, cluster[:BYTES], veb, cluster-veb[:BYTES],
    /// hierarchical, weighted
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "random,bfs,dfs,cluster,veb,cluster-veb,hierarchical"
    )]
    pub(super) layout: Vec<Layout>,
    /// Form of the tree: complete, or as random insertions leave it
    #[arg(long, value_enum, default_value = "complete")]
    pub(super) shape: TreeShape,
    /// Machine: thesis, this (sizes of this one, usual latencies), calibrate (measure now), or a machine file
    #[arg(long, default_value = "this")]
    pub(super) machine: PathBuf,
    /// Pages that the structure lies in: 4k or 2m
    #[arg(long, value_enum, default_value = "4k")]
    pub(super) pages: Pages,
    /// Add what the formulas of the thesis say
    #[arg(long)]
    pub(super) thesis: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Structure {
    /// Binary search tree
    Bst,
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
