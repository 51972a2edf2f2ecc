//! `model probe-layout`, which no help shows: the program that `model validate` runs under
//! valgrind.
//!
//! It builds a tree of nodes of 32 bytes by a layout, searches it, and says where it lies: two runs
//! that say the same have done the same at the same addresses, which is what comparing their misses
//! takes.

use std::io::Write;

use clap::Parser;

use super::CliError;
use super::args::parse_count;
use crate::{Layout, NodeExtent, PageSize, SearchStyle, Shape, TreeProbe};

const NODE_BYTES: u32 = 32;
const NODE_ALIGN: u32 = 8;
/// Runs under valgrind are to end.
const NODES_MAX: u64 = 1 << 24;

/// The first argument that asks for it, which the command line's grammar does not know.
pub(super) const NAME: &str = "probe-layout";

/// Builds a tree by a layout and searches it, to be watched by valgrind.
#[derive(Debug, Parser)]
#[command(name = NAME)]
pub(super) struct ProbeLayoutArgs {
    /// Layout of the tree
    #[arg(long)]
    layout: Layout,
    /// Number of nodes
    #[arg(long, value_parser = parse_count)]
    nodes: u64,
    /// Number of searches for random keys
    #[arg(long)]
    searches: u32,
}

pub(super) fn run(args: &ProbeLayoutArgs, out: &mut dyn Write) -> Result<(), CliError> {
    let refuse = |what: String| CliError::Request(what);
    let nodes = u32::try_from(args.nodes)
        .ok()
        .filter(|&nodes| (1..=NODES_MAX).contains(&u64::from(nodes)))
        .ok_or_else(|| {
            refuse(format!(
                "a probe has 1 to {NODES_MAX} nodes, not {}",
                args.nodes
            ))
        })?;
    let node = NodeExtent {
        bytes: NODE_BYTES,
        align: NODE_ALIGN,
    };
    let shape = Shape::complete_binary(nodes);
    let placement = args.layout.place(&shape, node);
    let mut tree = TreeProbe::new(&shape, &placement, node, PageSize::Small4K)
        .map_err(|error| refuse(error.to_string()))?;
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
    use std::ffi::OsString;

    /// Exit code, output and error output of a command line.
    fn run(args: &str) -> (u8, String, String) {
        let args = format!("model {args}");
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = crate::cli::run(args.split(' ').map(OsString::from), &mut out, &mut err);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (code, text(out), text(err))
    }

    #[test]
    fn a_probe_says_where_it_was_and_what_it_came_to() {
        let (code, out, err) = run("probe-layout --layout veb --nodes 1000 --searches 50");
        assert_eq!((code, err.as_str()), (0, ""));
        assert_eq!(out.lines().count(), 1);
        let end = |out: &str| out.rsplit(' ').next().unwrap().to_owned();
        let (_, again, _) = run("probe-layout --layout veb --nodes 1000 --searches 50");
        let (_, other, _) = run("probe-layout --layout dfs --nodes 1000 --searches 50");
        assert_eq!(end(&out), end(&again));
        assert_ne!(end(&out), end(&other));
    }

    #[test]
    fn what_makes_no_probe_is_refused_with_a_line() {
        for args in [
            "--layout veb --nodes 0 --searches 5",
            "--layout veb --nodes 1e9 --searches 5",
            "--layout veb --nodes 5000000000 --searches 5",
            "--layout vebb --nodes 10 --searches 5",
            "--layout veb --nodes 10 --searches -1",
            "--layout veb --nodes 10",
        ] {
            let (code, out, err) = run(&format!("probe-layout {args}"));
            assert_eq!((code, out.as_str()), (2, ""), "{args}");
            assert_eq!(err.lines().count(), 1, "{err}");
        }
    }

    #[test]
    fn no_help_shows_it() {
        let (code, out, _) = run("--help");
        assert_eq!(code, 0);
        assert!(out.contains("topology") && !out.contains("probe-layout"));
    }
}
