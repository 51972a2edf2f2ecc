//! What `ccscope` costs on programs of others: eight published crates, two programs whose code is
//! made as they run, and one that does nothing.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::scope::{
    Built, Case, INSTRUMENTED, PEAK, PROCESSOR, PROFILED, Real, WALL, Way, floor, measure,
    overhead, rounds, worst,
};
use crate::programs::Scale;
use crate::rounds::Rounds;
use crate::workload::{Comparison, Effort, Failure, Rows, Workload};

const REPORTED: &str = "PROFILER run --output PROFILE";

const fn published(
    name: &'static str,
    package: &'static str,
    program: &'static str,
    words: [fn(u64) -> String; 2],
) -> Real {
    Real {
        name,
        package,
        target: ["--bin", program],
        threads: &[1],
        lines: u64::MAX,
        words,
    }
}

/// They run long enough that their start has little part in a full run's figures.
const OTHERS: [Real; 8] = [
    published(
        "fd",
        "fd-find@10.5.0",
        "fd",
        [
            |_| "-j1 --color=never rs .".to_owned(),
            |_| format!("-j1 --color=never rs{}", " .".repeat(20)),
        ],
    ),
    published(
        "sd",
        "sd@1.0.0",
        "sd",
        [|_| "-p [a-f]+[0-9] x SCRATCH/table.csv".to_owned(); 2],
    ),
    published(
        "jaq",
        "jaq@3.1.2",
        "jaq",
        [|_| "map(.b[0])|add SCRATCH/table.json".to_owned(); 2],
    ),
    published(
        "xsv",
        "xsv@0.13.0",
        "xsv",
        [|_| "stats --everything SCRATCH/table.csv".to_owned(); 2],
    ),
    library("rhai", [|_| "5".to_owned(), |_| "50".to_owned()]),
    library("resvg", [|_| "200".to_owned(), |_| "4000".to_owned()]),
    library("axum", [|_| "1000".to_owned(), |_| "10000".to_owned()]),
    library("pubgrub", [|_| "200".to_owned(), |_| "700".to_owned()]),
];

const fn library(name: &'static str, words: [fn(u64) -> String; 2]) -> Real {
    published(name, "benches/others", name, words)
}

/// Tables with three columns, for the programs to read.
fn tables(folder: &Path, scale: Scale) -> Result<(), Failure> {
    let (mut csv, mut json) = (String::new(), String::new());
    for n in 0..scale.pick(10_000, 100_000) {
        let (b, name) = (n * 7919 % 20011, n % 97);
        writeln!(csv, "{n},{b},name{name}")?;
        let before = if n == 0 { "[" } else { "," };
        write!(
            json,
            r#"{before}{{"a":{n},"b":[{b},null],"c":"name{name}"}}"#
        )?;
    }
    fs::write(folder.join("table.csv"), csv)?;
    Ok(fs::write(folder.join("table.json"), json + "]")?)
}

fn count(effort: &Effort) -> usize {
    effort.scale.pick(1, effort.process_rounds.div_ceil(3))
}

/// Instrumented, with time and memory, and as they are. One alone where its row is asked for.
pub(super) fn programs(workload: &Workload, effort: &Effort) -> Rows {
    // Minutes, to build them.
    if !effort.wants(workload, workload.if_full[0]) {
        return Ok(Vec::new());
    }
    let built = Built::of("-p ccscope -p subjects")?;
    tables(built.scratch.path(), effort.scale)?;
    let ways = ["", PROFILED, PROFILED].map(|words| built.way(words, "subjects"));
    let kinds = ["of", "alloc_of", "memory_of"].map(|kind| format!("{}_{kind}", workload.name));
    let asked = effort.only.as_deref().unwrap_or_default();
    let one = kinds
        .iter()
        .find_map(|kind| asked.strip_prefix(&**kind)?.strip_prefix('_'));
    let (mut rows, mut overheads) = (Vec::new(), [const { Vec::new() }; 3]);
    for real in OTHERS
        .iter()
        .filter(|real| one.is_none_or(|one| one == real.name))
    {
        let cases = match built.real(real, effort.scale, &ways) {
            Ok(cases) => cases,
            Err(error) => {
                eprintln!("left out: {} ({error})", real.name);
                continue;
            }
        };
        for case in &cases {
            let runs = measure(case, count(effort))?;
            let figures = [(1, PROCESSOR, "ms"), (2, PROCESSOR, "ms"), (1, PEAK, "MiB")];
            for ((sum, kind), (way, figure, unit)) in overheads.iter_mut().zip(&kinds).zip(figures)
            {
                sum.push(overhead(&runs[way], &runs[0], figure));
                let [with, without] = [way, 0].map(|way| rounds(&runs[way], figure));
                let name = format!("{kind}_{}", real.name);
                rows.push(Comparison::new(name, "not profiled", unit, &with, &without));
            }
        }
    }
    if rows.is_empty() || one.is_some() {
        return Ok(rows);
    }
    let [heap, alloc, memory] = &overheads;
    let mean = |all: &[Rounds]| Rounds::geometric_mean(all);
    let floors = [
        ("geomean", &mean(heap), 6.0),
        ("max", worst(heap), 12.0),
        ("memory_geomean", &mean(memory), 2.0),
        ("alloc_geomean", &mean(alloc), 1.3),
        ("alloc_max", worst(alloc), 3.0),
    ];
    let floors = floors.map(|(name, overhead, largest)| {
        floor(&format!("{}_{name}", workload.name), "x", overhead, largest)
    });
    rows.splice(0..0, floors);
    Ok(rows)
}

/// A compiler of Java and a script of Node, as they are: programs whose code no file has.
pub(super) fn jitted(workload: &Workload, effort: &Effort) -> Rows {
    if !effort.wants(workload, workload.if_full[0]) {
        return Ok(Vec::new());
    }
    let program = workload.name.trim_start_matches("scope_");
    if Command::new(program).arg("--version").output().is_err() {
        eprintln!("left out: {program} (it is not on this machine)");
        return Ok(Vec::new());
    }
    let built = Built::of("-p ccscope -p subjects")?;
    let scratch = built.scratch.path();
    let classes = effort.scale.pick(50, 300);
    let words = match program {
        "javac" => {
            let source: String = (0..classes).map(class).collect();
            fs::write(scratch.join("Made.java"), source)?;
            format!("-d {0} {0}/Made.java", scratch.display())
        }
        _ => {
            fs::write(scratch.join("made.js"), SCRIPT)?;
            format!("{}/made.js {classes}", scratch.display())
        }
    };
    let of = |mut way: Way| {
        way.extend(["of", "1", program].map(str::to_owned));
        way
    };
    let case = Case {
        name: program.to_owned(),
        ways: ["", PROFILED]
            .map(|words| of(built.way(words, "subjects")))
            .to_vec(),
        words: words.split(' ').map(str::to_owned).collect(),
        threads: 1,
    };
    let runs = measure(&case, count(effort))?;
    let overhead = overhead(&runs[1], &runs[0], PROCESSOR);
    Ok(vec![floor(workload.name, "x", &overhead, 1.5)])
}

fn class(number: u32) -> String {
    format!(
        "class C{number} {{
            static java.util.Map<String, Integer> counts(String[] words) {{
                var counts = new java.util.TreeMap<String, Integer>();
                for (String word : words) counts.merge(word + {number}, 1, Integer::sum);
                counts.entrySet().removeIf(entry -> entry.getValue() < {number});
                return counts;
            }}
        }}\n"
    )
}

const SCRIPT: &str = "let sum = 0;
for (let round = 0; round < process.argv[2]; round++) {
    const rows = [];
    for (let n = 0; n < 2000; n++) rows.push({ n, name: `name ${n * 7919 % 997}` });
    const read = JSON.parse(JSON.stringify(rows));
    read.sort((a, b) => a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
    sum += read[0].n + new Map(read.map((row) => [row.name, row])).size;
}
console.log(sum);
";

/// Time and memory that a profile adds to a program that does nothing, with its symbols and its
/// screen.
pub(super) fn hello(workload: &Workload, effort: &Effort) -> Rows {
    let built = Built::of("-p ccscope -p subjects")?;
    built.instrument("-p subjects --bin hello".split(' '))?;
    let profiled = built.way(REPORTED, &format!("{INSTRUMENTED}/hello"));
    let of = |program: Way| {
        built
            .way("", "subjects")
            .into_iter()
            .chain(words("of 1"))
            .chain(program)
    };
    let case = Case {
        name: "hello".to_owned(),
        ways: [built.way("", "hello"), profiled]
            .map(|way| of(way).collect())
            .to_vec(),
        words: Vec::new(),
        threads: 1,
    };
    let runs = measure(&case, effort.process_rounds)?;
    let more = |figure: fn(&_) -> f64| {
        let pairs = runs[1].iter().zip(&runs[0]);
        Rounds::new(
            pairs
                .map(|(with, without)| figure(with) - figure(without))
                .collect(),
        )
    };
    let name = |what: &str| format!("{}_{what}", workload.name);
    Ok(vec![
        floor(&name("seconds"), "ms", &more(WALL), 150.0),
        floor(
            &name("memory"),
            "MiB",
            &more(PEAK),
            60e6 / f64::from(1 << 20),
        ),
    ])
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(' ').map(str::to_owned)
}
