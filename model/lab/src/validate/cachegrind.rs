//! `sim_vs_cachegrind`: the simulator compared with valgrind's tool cachegrind, on whole programs.
//!
//! ```text
//! valgrind --tool=cachegrind  ccmodel-lab probe-layout ...  -> misses of D1 and LL
//! valgrind --tool=lackey      ccmodel-lab probe-layout ...  -> each access -> Caches -> the same
//! ```
//!
//! The program builds a tree by a layout and searches it. Nothing is left out, so both runs must do
//! the same. The program prints the addresses of the tree and of its stack and what its searches
//! came to, and these must be equal.
//!
//! The numbers of references differ a little, with valgrind 3.19 by 34 to 3021 of millions: when a
//! Rust program starts, the C library reads the list of its mappings (`pthread_getattr_np`), which
//! contains those of valgrind's tool. The misses did not differ.

mod caches;

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ccmodel::simulator::{TextTrace, TraceError};
use ccmodel::{CacheGeometry, Layout};

use super::{Bound, Effort, Row};
use crate::progress;
use caches::{Caches, Counts};

const ALLOWED: f64 = 0.001;
/// Complete trees of 32 bytes a node: one fits into LL but not into D1, one into neither.
/// Depth-first, their nodes alias in the sets.
const NODES: [u32; 2] = [(1 << 12) - 1, (1 << 14) - 1];
const SEARCHES: u32 = 5000;
const LAYOUTS: [Layout; 8] = [
    Layout::Random { seed: 0 },
    Layout::DepthFirst,
    Layout::BreadthFirst,
    Layout::SubtreeCluster { block_bytes: 64 },
    Layout::VanEmdeBoas,
    Layout::ClusterVanEmdeBoas { block_bytes: 64 },
    Layout::Hierarchical,
    Layout::Weighted,
];
/// A read of the pipe; lackey writes a line at a time.
const BUFFER_BYTES: usize = 1 << 16;

/// The worst relative difference in misses of D1 and of LL by data: all layouts, trees that fit LL
/// (256 KiB) and that do not.
pub(super) fn row(effort: Effort) -> Row {
    progress("cachegrind and lackey");
    match std::env::current_exe() {
        Ok(program) => compare_all(OsStr::new("valgrind"), &program, effort),
        Err(error) => Row {
            name: "sim_vs_cachegrind",
            value: None,
            allowed: ALLOWED,
            bound: Bound::AtMost,
            note: format!("Not run: the path of this program is not known: {error}."),
        },
    }
}

fn compare_all(valgrind: &OsStr, program: &Path, effort: Effort) -> Row {
    let row = |value, note| Row {
        name: "sim_vs_cachegrind",
        value,
        allowed: ALLOWED,
        bound: Bound::AtMost,
        note,
    };
    let layouts = match effort {
        Effort::Quick => &LAYOUTS[..2],
        Effort::Full => &LAYOUTS[..],
    };
    let mut worst: Option<(f64, String)> = None;
    let (mut references, mut apart) = (0u64, 0u64);
    for nodes in NODES {
        for &layout in layouts {
            let case = Case {
                valgrind,
                program,
                layout,
                nodes,
            };
            let comparison = match case.compare() {
                Ok(comparison) => comparison,
                Err(Fault::NoValgrind) => {
                    return row(None, "Not run: valgrind not found.".to_owned());
                }
                // Whatever keeps the two from being compared is as bad as a difference.
                Err(fault) => {
                    return row(
                        Some(f64::INFINITY),
                        format!("{layout}, {nodes} nodes: {fault}"),
                    );
                }
            };
            references += comparison.theirs.instructions + comparison.theirs.data;
            apart = apart.max(comparison.apart());
            let (difference, what) = comparison.worst();
            if worst
                .as_ref()
                .is_none_or(|&(so_far, _)| difference > so_far)
            {
                worst = Some((difference, format!("{layout}, {nodes} nodes: {what}")));
            }
        }
    }
    let (value, what) = worst.unwrap_or_default();
    let runs = layouts.len() * NODES.len();
    let note = format!(
        "The worst of {runs} programs with {:.0} million references is {what}. Two runs of one \
         program are up to {apart} apart.",
        references as f64 / 1e6
    );
    row(Some(value), note)
}

/// One program to be watched.
struct Case<'a> {
    valgrind: &'a OsStr,
    program: &'a Path,
    layout: Layout,
    nodes: u32,
}

/// What cachegrind counted and what we did, of the same program.
#[derive(Debug)]
struct Comparison {
    theirs: Counts,
    ours: Counts,
}

impl Case<'_> {
    fn compare(&self) -> Result<Comparison, Fault> {
        let [(i1_name, i1), (d1_name, d1), (ll_name, ll)] = geometries();
        let option = |name: &str, geometry: CacheGeometry| {
            let (block, ways) = (geometry.block_bytes(), geometry.associativity());
            format!("--{name}={},{ways},{block}", geometry.sets() * block * ways)
        };
        let cachegrind = self.start(
            "cachegrind",
            &[
                "--cache-sim=yes",
                "--cachegrind-out-file=/dev/null",
                &option(i1_name, i1),
                &option(d1_name, d1),
                &option(ll_name, ll),
            ],
        )?;
        // Both at once, on machines of two processors and more.
        let mut lackey = self.start("lackey", &["--trace-mem=yes", "--basic-counts=no"])?;
        let mut caches = Caches::new(i1, d1, ll);
        if let Some(trace) = lackey.stderr.take() {
            let trace = TextTrace::new(BufReader::with_capacity(BUFFER_BYTES, trace));
            if let Err(error) = caches.simulate(trace) {
                // The pipe is closed by now, which ends lackey.
                drop((lackey.wait(), cachegrind.wait_with_output()));
                return Err(Fault::Trace(error));
            }
        }
        let mut said = String::new();
        if let Some(mut stdout) = lackey.stdout.take() {
            stdout.read_to_string(&mut said)?;
        }
        let status = lackey.wait()?;
        let output = cachegrind.wait_with_output()?;
        let summary = String::from_utf8_lossy(&output.stderr);
        if !status.success() || !output.status.success() {
            let last = summary.lines().last().unwrap_or_default();
            return Err(Fault::Failed(last.to_owned()));
        }
        let theirs = parse_summary(&summary).ok_or(Fault::Summary)?;
        let said_before = String::from_utf8_lossy(&output.stdout);
        if said_before != said {
            return Err(Fault::Addresses {
                cachegrind: said_before.trim().to_owned(),
                lackey: said.trim().to_owned(),
            });
        }
        Ok(Comparison {
            theirs,
            ours: caches.counts(),
        })
    }

    /// Starts the program under a tool of valgrind.
    fn start(&self, tool: &str, options: &[&str]) -> Result<Child, Fault> {
        let child = Command::new(self.valgrind)
            // No settings from files or the environment.
            .arg("--command-line-only=yes")
            .arg(format!("--tool={tool}"))
            .args(options)
            .arg(self.program)
            .arg("probe-layout")
            .args(["--layout", &self.layout.to_string()])
            .args(["--nodes", &self.nodes.to_string()])
            .args(["--searches", &SEARCHES.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        child.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Fault::NoValgrind,
            _ => Fault::Io(error),
        })
    }
}

/// I1, D1 and LL, as the options of cachegrind call them.
fn geometries() -> [(&'static str, CacheGeometry); 3] {
    [("I1", 64, 8), ("D1", 64, 12), ("LL", 256, 16)].map(|(name, sets, ways)| {
        match CacheGeometry::new(sets, 64, ways) {
            Ok(geometry) => (name, geometry),
            Err(error) => unreachable!("these are caches: {error}"),
        }
    })
}

impl Comparison {
    /// By how many references the two runs differ.
    fn apart(&self) -> u64 {
        let [theirs, ours] = [&self.theirs, &self.ours];
        ours.instructions.abs_diff(theirs.instructions) + ours.data.abs_diff(theirs.data)
    }

    /// The larger relative difference of the two caches' misses, and what it is one of.
    fn worst(&self) -> (f64, String) {
        let of = |name, theirs: u64, ours: u64| {
            let difference = ours.abs_diff(theirs) as f64 / theirs.max(1) as f64;
            (
                difference,
                format!("{name} misses {ours}, cachegrind {theirs}"),
            )
        };
        let d1 = of("D1", self.theirs.d1_misses, self.ours.d1_misses);
        let ll = of("LL", self.theirs.ll_data_misses, self.ours.ll_data_misses);
        if ll.0 > d1.0 { ll } else { d1 }
    }
}

/// The counts in what cachegrind says at its end: `==1== D1  misses:     12,345  (10,000 rd + 2,345
/// wr)`.
fn parse_summary(summary: &str) -> Option<Counts> {
    let count = |name: &str, what: &str| {
        summary.lines().find_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            let found = words.next() == Some(name) && words.next() == Some(what);
            let number = words.next().filter(|_| found)?;
            number.replace(',', "").parse::<u64>().ok()
        })
    };
    Some(Counts {
        instructions: count("I", "refs:")?,
        i1_misses: count("I1", "misses:")?,
        ll_instruction_misses: count("LLi", "misses:")?,
        data: count("D", "refs:")?,
        d1_misses: count("D1", "misses:")?,
        ll_data_misses: count("LLd", "misses:")?,
    })
}

/// Why two runs cannot be compared.
#[derive(Debug)]
enum Fault {
    NoValgrind,
    Io(io::Error),
    Trace(TraceError),
    /// A run did not succeed; the last that it said.
    Failed(String),
    /// Cachegrind did not say what it counted.
    Summary,
    /// The two runs did not do the same.
    Addresses {
        cachegrind: String,
        lackey: String,
    },
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Io(error)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoValgrind => f.write_str("valgrind not found"),
            Fault::Io(error) => write!(f, "valgrind cannot be run: {error}"),
            Fault::Trace(error) => write!(f, "{error}"),
            Fault::Failed(last) => write!(f, "a run under valgrind failed: {last}"),
            Fault::Summary => f.write_str("cachegrind's counts are not understood"),
            Fault::Addresses { cachegrind, lackey } => write!(
                f,
                "the runs differ: {cachegrind:?} under cachegrind, {lackey:?} under lackey"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMMARY: &str = "==7== Cachegrind, a cache and branch-prediction profiler
==7== I   refs:      1,234,567
==7== I1  misses:        1,100
==7== LLi misses:        1,000
==7== I1  miss rate:      0.09%
==7==
==7== D   refs:        400,000  (300,000 rd   + 100,000 wr)
==7== D1  misses:       20,001  ( 15,000 rd   +   5,001 wr)
==7== LLd misses:        9,999  (  8,000 rd   +   1,999 wr)
==7== D1  miss rate:       5.0% (    5.0%     +     5.0%  )
==7== LL misses:        10,999  (  9,000 rd   +   1,999 wr)
";

    #[test]
    fn cachegrinds_summary_is_understood() {
        let counts = Counts {
            instructions: 1_234_567,
            i1_misses: 1100,
            ll_instruction_misses: 1000,
            data: 400_000,
            d1_misses: 20_001,
            ll_data_misses: 9999,
        };
        assert_eq!(parse_summary(SUMMARY), Some(counts));
        assert_eq!(parse_summary(&SUMMARY.replace("LLd", "LLx")), None);
        assert_eq!(parse_summary(&SUMMARY.replace("20,001", "many")), None);
    }

    #[test]
    fn the_larger_difference_counts() {
        let theirs = parse_summary(SUMMARY).unwrap();
        let mut ours = theirs;
        ours.data -= 3;
        ours.d1_misses += 20;
        ours.ll_data_misses -= 99;
        let comparison = Comparison { theirs, ours };
        assert_eq!(comparison.apart(), 3);
        let (difference, what) = comparison.worst();
        assert!((difference - 99.0 / 9999.0).abs() < 1e-12);
        assert_eq!(what, "LL misses 9900, cachegrind 9999");
    }

    #[test]
    fn without_valgrind_nothing_is_run() {
        let row = compare_all(
            OsStr::new("no-such-valgrind"),
            Path::new("program"),
            Effort::Quick,
        );
        assert_eq!(row.value, None);
        assert_eq!(row.note, "Not run: valgrind not found.");
        assert!(row.ok());
    }

    #[test]
    fn a_program_that_fails_is_no_agreement() {
        // What is started instead of valgrind does nothing and fails.
        let row = compare_all(OsStr::new("false"), Path::new("program"), Effort::Quick);
        assert!(!row.ok(), "{row:?}");
    }
}
