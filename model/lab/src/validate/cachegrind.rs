//! `sim_vs_cachegrind`: the simulator compared with valgrind's tool cachegrind, on whole programs.
//!
//! ```text
//! valgrind --tool=cachegrind  ccmodel-lab probe-layout ...  -> misses of D1 and LL
//! valgrind --tool=lackey      ccmodel-lab probe-layout ...  -> each access -> Caches -> the same
//! ```
//!
//! Both runs must print the same addresses and results. The numbers of references still differ by a
//! few thousand of millions, because the C library reads the list of its mappings at the start,
//! which contains those of valgrind's tool. The misses did not differ with valgrind 3.19.

mod caches;

use std::ffi::OsStr;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ccmodel::Layout;
use ccmodel::simulator::read_trace;

use super::{Effort, Row};
use crate::progress;
use caches::{Caches, Counts};

const NAME: &str = "sim_vs_cachegrind";
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
/// I1, D1 and LL, as the options of cachegrind call them: sets and ways of lines of 64 bytes.
const CACHES: [(&str, u64, u64); 3] = [("I1", 64, 8), ("D1", 64, 12), ("LL", 256, 16)];
/// A read of the pipe; lackey writes a line at a time.
const BUFFER_BYTES: usize = 1 << 16;

/// The worst relative difference in misses of D1 and of LL by data: all layouts, trees that fit LL
/// (256 KiB) and that do not.
pub(super) fn rows(effort: Effort) -> Vec<Row> {
    progress("cachegrind and lackey");
    let row = std::env::current_exe().map_or_else(
        |error| {
            let note = format!("Not run: the path of this program is not known: {error}.");
            Row::at_most(NAME, ALLOWED, None, note)
        },
        |program| compare_all(OsStr::new("valgrind"), &program, effort),
    );
    vec![row]
}

fn compare_all(valgrind: &OsStr, program: &Path, effort: Effort) -> Row {
    let row = |value, note| Row::at_most(NAME, ALLOWED, value, note);
    let layouts = match effort {
        Effort::Quick => &LAYOUTS[..2],
        Effort::Full => &LAYOUTS[..],
    };
    let mut worst = (0.0, String::new());
    let (mut references, mut apart) = (0u64, 0u64);
    let cases = NODES
        .into_iter()
        .flat_map(|nodes| layouts.iter().map(move |layout| (nodes, layout)));
    for (nodes, &layout) in cases {
        let case = format!("{layout}, {nodes} nodes");
        let (theirs, ours) = match compare(valgrind, program, layout, nodes) {
            Ok(Some(counts)) => counts,
            Ok(None) => return row(None, "Not run: valgrind not found.".to_owned()),
            // What keeps the two from being compared is as bad as a difference.
            Err(fault) => return row(Some(f64::INFINITY), format!("{case}: {fault}")),
        };
        references += theirs.instructions + theirs.data;
        apart = apart.max(theirs.apart(ours));
        let (difference, what) = theirs.worst(ours);
        if difference >= worst.0 {
            worst = (difference, format!("{case}: {what}"));
        }
    }
    let note = format!(
        "The worst of {} programs with {:.0} million references is {}. Two runs of one program \
         are up to {apart} apart.",
        layouts.len() * NODES.len(),
        references as f64 / 1e6,
        worst.1
    );
    row(Some(worst.0), note)
}

/// What cachegrind counts and what the simulator does, of the same program; `None` without
/// valgrind.
fn compare(
    valgrind: &OsStr,
    program: &Path,
    layout: Layout,
    nodes: u32,
) -> Result<Option<(Counts, Counts)>, String> {
    let start = |tool: &str, options: &[String]| -> Result<Option<Child>, String> {
        let child = Command::new(valgrind)
            // No settings from files or the environment.
            .arg("--command-line-only=yes")
            .arg(format!("--tool={tool}"))
            .args(options)
            .arg(program)
            .arg("probe-layout")
            .args(["--layout", &layout.to_string()])
            .args(["--nodes", &nodes.to_string()])
            .args(["--searches", &SEARCHES.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        match child {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            child => child.map(Some).map_err(cannot_run),
        }
    };
    let mut options = ["--cache-sim=yes", "--cachegrind-out-file=/dev/null"]
        .map(str::to_owned)
        .to_vec();
    let cache = |(name, sets, ways)| format!("--{name}={},{ways},64", sets * ways * 64);
    options.extend(CACHES.map(cache));
    let Some(cachegrind) = start("cachegrind", &options)? else {
        return Ok(None);
    };
    // Both at once, on machines of two processors and more.
    let options = ["--trace-mem=yes", "--basic-counts=no"].map(str::to_owned);
    let Some(mut lackey) = start("lackey", &options)? else {
        return Ok(None);
    };
    let mut caches = Caches::new(CACHES.map(|(_, sets, ways)| (sets, ways)));
    let mut traced = Ok(());
    if let Some(trace) = lackey.stderr.take() {
        let trace = BufReader::with_capacity(BUFFER_BYTES, trace);
        // After an error the pipe is closed, which ends lackey.
        traced = read_trace(trace, |record| caches.see(record)).map_err(|error| error.to_string());
    }
    let mut said = String::new();
    if let Some(mut stdout) = lackey.stdout.take() {
        stdout.read_to_string(&mut said).map_err(cannot_run)?;
    }
    let status = lackey.wait().map_err(cannot_run)?;
    let output = cachegrind.wait_with_output().map_err(cannot_run)?;
    traced?;
    let summary = String::from_utf8_lossy(&output.stderr);
    if !status.success() || !output.status.success() {
        let last = summary.lines().last().unwrap_or_default();
        return Err(format!("a run under valgrind failed: {last}"));
    }
    let theirs = parse_summary(&summary).ok_or("cachegrind's counts are not understood")?;
    let said_before = String::from_utf8_lossy(&output.stdout);
    if said_before != said {
        return Err(format!(
            "the runs differ: {said_before:?} under cachegrind, {said:?} under lackey"
        ));
    }
    Ok(Some((theirs, caches.counts())))
}

fn cannot_run(error: std::io::Error) -> String {
    format!("valgrind cannot be run: {error}")
}

impl Counts {
    /// By how many references two runs differ.
    fn apart(self, ours: Counts) -> u64 {
        ours.instructions.abs_diff(self.instructions) + ours.data.abs_diff(self.data)
    }

    /// The larger relative difference of the two caches' misses by data, and what it is of.
    fn worst(self, ours: Counts) -> (f64, String) {
        let of = |name, theirs: u64, ours: u64| {
            let difference = ours.abs_diff(theirs) as f64 / theirs.max(1) as f64;
            (
                difference,
                format!("{name} misses {ours}, cachegrind {theirs}"),
            )
        };
        let d1 = of("D1", self.d1_misses, ours.d1_misses);
        let ll = of("LL", self.ll_data_misses, ours.ll_data_misses);
        if ll.0 > d1.0 { ll } else { d1 }
    }
}

/// The counts in what cachegrind prints at its end:
/// `==1== D1  misses:     12,345  (10,000 rd + 2,345 wr)`.
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
        data: count("D", "refs:")?,
        d1_misses: count("D1", "misses:")?,
        ll_data_misses: count("LLd", "misses:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMMARY: &str = "==7== Cachegrind, a cache and branch-prediction profiler
==7== I   refs:      1,234,567
==7== I1  misses:        1,100
==7== D   refs:        400,000  (300,000 rd   + 100,000 wr)
==7== D1  misses:       20,001  ( 15,000 rd   +   5,001 wr)
==7== LLd misses:        9,999  (  8,000 rd   +   1,999 wr)
==7== D1  miss rate:       5.0% (    5.0%     +     5.0%  )
";

    #[test]
    fn cachegrinds_summary_is_understood_and_compared() {
        let theirs = Counts {
            instructions: 1_234_567,
            data: 400_000,
            d1_misses: 20_001,
            ll_data_misses: 9999,
        };
        assert_eq!(parse_summary(SUMMARY), Some(theirs));
        assert_eq!(parse_summary(&SUMMARY.replace("LLd", "LLx")), None);
        assert_eq!(parse_summary(&SUMMARY.replace("20,001", "many")), None);
        let ours = Counts {
            data: theirs.data - 3,
            d1_misses: theirs.d1_misses + 20,
            ll_data_misses: theirs.ll_data_misses - 99,
            ..theirs
        };
        assert_eq!(theirs.apart(ours), 3);
        let (difference, what) = theirs.worst(ours);
        assert!((difference - 99.0 / 9999.0).abs() < 1e-12);
        assert_eq!(what, "LL misses 9900, cachegrind 9999");
    }

    #[test]
    fn without_valgrind_nothing_is_run_and_a_failure_is_no_agreement() {
        let run = |tool: &str| compare_all(OsStr::new(tool), Path::new("program"), Effort::Quick);
        let row = run("no-such-valgrind");
        assert_eq!((row.value, row.ok()), (None, true));
        assert_eq!(row.note, "Not run: valgrind not found.");
        // A program that does nothing and fails.
        assert!(!run("false").ok());
    }
}
