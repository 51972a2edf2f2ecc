//! `probe-layout`: the program that `validate` runs under valgrind.
//!
//! It builds a tree of 32-byte nodes by a layout, searches it, and prints where it lies. Two runs
//! that print the same have done the same at the same addresses, so their misses can be compared.

use std::error::Error;
use std::io::Write;

use ccmodel::{Layout, NodeExtent, PageSize, SearchStyle, Shape, TreeProbe};

/// Runs under valgrind must end.
const NODES_MAX: i64 = 1 << 24;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Layout of the tree
    #[arg(long)]
    layout: Layout,
    /// Number of nodes
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=NODES_MAX))]
    nodes: u32,
    /// Number of searches for random keys
    #[arg(long)]
    searches: u32,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let node = NodeExtent::new(32, 8)?;
    let shape = Shape::complete_binary(args.nodes);
    let placement = args.layout.place(&shape, node);
    let mut tree = TreeProbe::new(&shape, &placement, node, PageSize::Small4K)?;
    // The time means nothing under valgrind.
    tree.random_search_ns(SearchStyle::Branches, args.searches);
    let on_stack = 0u8;
    writeln!(
        out,
        "tree at {:#x}, stack at {:p}, end {:#x}",
        tree.address(),
        &raw const on_stack,
        tree.state()
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the searches came to.
    fn end(layout: Layout) -> String {
        let args = Args {
            layout,
            nodes: 1000,
            searches: 50,
        };
        let mut out = Vec::new();
        run(&args, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out.lines().count(), 1);
        out.rsplit(' ').next().unwrap().to_owned()
    }

    #[test]
    fn a_probe_prints_what_its_searches_came_to() {
        assert_eq!(end(Layout::VanEmdeBoas), end(Layout::VanEmdeBoas));
        assert_ne!(end(Layout::VanEmdeBoas), end(Layout::DepthFirst));
    }
}
