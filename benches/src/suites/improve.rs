//! What `ccscope improve` gains, and what its parts cost: rules against hints by hand, the filter
//! and the learner of `libccmalloc.so`, and the whole command on the programs of `tests/advice` and
//! on programs of others.
//!
//! A row `improve_of_NAME` is a program: time as it is over time as the command says to run it.
//! Times are the processor's, of the whole process; outputs must agree.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::advice_profiles::held;
use super::scope::{Built, ROOT, done};
use crate::programs::Scale;
use crate::rounds::Rounds;
use crate::sys::children_seconds;
use crate::timing::turns;
use crate::workload::{Comparison, Effort, Failure, Rows, Workload, agree};

/// Programs of `tests/advice` whose other version has hints by hand.
const HINTED: [&str; 4] = ["tree_growing", "hash_chains", "payload", "json_requests"];
/// Programs of `benches/subjects/c/nodes.c`, after those of Olden and Ptrdist.
const NODES: [&str; 6] = ["treeadd", "bst", "health", "mst", "ft", "anagram"];
/// Installed programs, with what the shell gives them; those that are missing are left out.
const INSTALLED: [(&str, &str); 8] = [
    (
        "lua5.4",
        "-e 'local t={} for i=1,300000 do t[#t+1]={i,tostring(i)} end local s=0 \
      for r=1,5 do for _,e in ipairs(t) do s=s+#e[2] end end print(s)'",
    ),
    (
        "jq",
        "-n '[range(200000)|{a:.,b:tostring}]|map(.b|length)|add'",
    ),
    (
        "perl",
        "-e 'my %h; $h{$_*7919%1000003}=[$_,\"x$_\"] for 1..300000; my $s=0; \
      for my $r (1..5) { $s+=length $h{$_}[1] for keys %h } print \"$s\\n\"'",
    ),
    (
        "sqlite3",
        ":memory: \"create table t(a integer primary key, b text); with recursive \
      n(i) as (select 1 union all select i+1 from n where i<300000) insert into t select \
      i*7919%1000003,'value '||i from n; create index u on t(b); select sum(length(b)), \
      count(distinct b) from t where a%7<3;\"",
    ),
    (
        "awk",
        "'BEGIN { for (i=0;i<400000;i++) h[i*7919%1000003]=\"x\" i; for (r=0;r<4;r++) \
      for (k in h) s+=length(h[k]); print s }'",
    ),
    (
        "python3",
        "-c 'd={i*7919%1000003:str(i) for i in range(300000)}\n\
      print(sum(len(d[k]) for _ in range(5) for k in d))'",
    ),
    ("tcc", "-xc -c INPUT -o INPUT.o"),
    ("povray", "+IINPUT +OINPUT.png +FN -D +W200 +H150 +WT1"),
];

/// What is written to `INPUT` for a program.
fn input(program: &str) -> Option<String> {
    let of = |count: u64, each: &dyn Fn(u64) -> String| (0..count).map(each).collect::<String>();
    match program {
        "tcc" => Some(of(100_000, &|i| {
            format!(
                "struct s{i} {{ int a; struct s{i} *next; }};\nint f{i}(int x, struct s{i} *p)\
                 {{ return p ? f{i}(x + {i}, p->next) : x; }}\n"
            )
        })),
        "povray" => {
            let spheres = of(100_000, &|i| {
                let hash = i.wrapping_mul(2_654_435_761) & 0xffff_ffff;
                let [x, y, z] = [0, 10, 20].map(|shift| (hash >> shift) % 1000);
                format!(
                    "sphere {{ <{x}, {y}, {z}>, 9 pigment {{ color rgb {} }} }}\n",
                    i % 3
                )
            });
            let view = "camera { location <500, 500, -900> look_at <500, 500, 500> }";
            Some(format!(
                "{view}\nlight_source {{ <0, 900, -900> rgb 1 }}\n{spheres}"
            ))
        }
        _ => None,
    }
}

/// The tools and the programs.
struct Tools {
    built: Built,
    library: PathBuf,
}

impl Tools {
    fn new() -> Result<Self, Failure> {
        let built = Built::of("-p ccscope -p advice-programs -p ccmalloc-capi")?;
        let library = built.folder.join("libccmalloc.so");
        Ok(Tools { built, library })
    }

    fn scratch(&self, name: &str) -> PathBuf {
        self.built.scratch.path().join(name)
    }

    /// A program in C of this repository.
    fn compiled(&self, source: &str) -> Result<PathBuf, Failure> {
        let source = Path::new(ROOT).join(source);
        let program = self.scratch(source.file_stem().and_then(|it| it.to_str()).unwrap_or("c"));
        let mut cc = Command::new("cc");
        cc.args(["-O2", "-fno-builtin-malloc", "-o"]).arg(&program);
        done(cc.arg(source))?;
        Ok(program)
    }

    fn advice(&self, binary: &str, name: &str, version: &str) -> Vec<String> {
        let program = self.built.folder.join(binary);
        vec![
            program.display().to_string(),
            name.to_owned(),
            version.to_owned(),
        ]
    }

    /// `words` with the library, and with rules or learning.
    fn preloaded(&self, words: &[String], variable: Option<(&str, &Path)>) -> Command {
        let mut command = run(words);
        command.env("LD_PRELOAD", &self.library);
        if let Some((name, value)) = variable {
            command.env(name, value);
        }
        command
    }

    /// The file that the learner writes of a program; one without rules if it writes none.
    fn learned(&self, words: &[String]) -> Result<PathBuf, Failure> {
        let file = self.scratch("learned");
        let command = &mut self.preloaded(words, Some(("CCMALLOC_LEARN", &file)));
        let mut child = command.stdout(Stdio::null()).spawn()?;
        let written = file.with_extension(child.id().to_string());
        child.wait()?;
        if !written.exists() {
            std::fs::write(&written, "ccmalloc rules 1\n")?;
        }
        Ok(written)
    }
}

pub(super) fn run(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null());
    command
}

/// Seconds of each of the commands, in turns; all must print the same.
pub(super) fn seconds<const N: usize>(
    name: &str,
    rounds: usize,
    command: impl Fn(usize) -> Command,
) -> Result<[Vec<f64>; N], Failure> {
    let (mut times, mut expected) = ([const { Vec::new() }; N], None);
    for which in turns(rounds, N) {
        let started = children_seconds();
        let output = command(which).stderr(Stdio::inherit()).output()?;
        times[which].push(children_seconds() - started);
        let sum = output
            .stdout
            .iter()
            .fold(u64::from(output.status.success()), |sum, &byte| {
                sum.wrapping_mul(31).wrapping_add(byte.into())
            });
        agree(&mut expected, sum, name, "a variant")?;
    }
    Ok(times)
}

/// The rounds of `a` over `b`.
pub(super) fn ratios(a: &[f64], b: &[f64]) -> Rounds {
    Rounds::new(a.iter().zip(b).map(|(a, b)| a / b).collect())
}

/// A figure that is to be at least `least`.
pub(super) fn at_least(name: &str, unit: &str, ours: f64, least: f64) -> Comparison {
    let [figure, floor] = [ours, least].map(Rounds::once);
    Comparison {
        ratio: ours / least,
        ..Comparison::new(name, "the floor", unit, &figure, &floor)
    }
}

/// Rules that were learned, all of them, against hints by hand.
pub(super) fn against_hands(workload: &Workload, effort: &Effort) -> Rows {
    let tools = Tools::new()?;
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    for name in HINTED {
        let (ours, hand) = (
            tools.advice("plain", name, "before"),
            tools.advice("plain", name, "hint"),
        );
        let rules = tools.learned(&ours)?;
        let [ours, hand] = seconds(name, effort.process_rounds, |which| match which {
            0 => tools.preloaded(&ours, Some(("CCMALLOC_RULES", &rules))),
            _ => tools.preloaded(&hand, None),
        })?;
        let row = format!("{}_of_{name}", workload.name);
        rows.push(Comparison::new(
            row,
            "hints by hand",
            "s",
            &Rounds::new(ours.clone()),
            &Rounds::new(hand.clone()),
        ));
        all.push(ratios(&hand, &ours));
    }
    let mean = Rounds::geometric_mean(&all).median();
    rows.insert(0, at_least(workload.name, "x", mean, 0.95));
    Ok(rows)
}

/// What a call site without a rule costs more while there are rules: nanoseconds.
pub(super) fn filter(workload: &Workload, effort: &Effort) -> Rows {
    const PAIRS: u32 = 20_000_000;

    let tools = Tools::new()?;
    let pairs = tools.compiled("ccmalloc/capi/tests/pairs.c")?;
    let words = [
        pairs.display().to_string(),
        "pair".to_owned(),
        PAIRS.to_string(),
    ];
    let learned = std::fs::read_to_string(tools.learned(&words)?)?;
    // Of the same module, at an address from which no call returns.
    let module = learned
        .lines()
        .find(|line| line.starts_with("module pairs "));
    let module = module.ok_or("the learner saw no allocation")?;
    let rules = tools.scratch("other.rules");
    std::fs::write(
        &rules,
        format!("ccmalloc rules 1\n{module}\n+0 size 24 near rbx\n"),
    )?;
    let [with, without] = seconds("pairs", effort.process_rounds.max(5), |which| match which {
        0 => tools.preloaded(&words, Some(("CCMALLOC_RULES", &rules))),
        _ => tools.preloaded(&words, None),
    })?;
    let more = with
        .iter()
        .zip(&without)
        .map(|(a, b)| (a - b) * 1e9 / f64::from(PAIRS));
    let more = Rounds::new(more.collect()).median();
    Ok(vec![held(workload.name, "ns", more.max(0.01), 1.0)])
}

/// What learning costs: time over time without, the worst of some programs.
pub(super) fn learner(workload: &Workload, effort: &Effort) -> Rows {
    let tools = Tools::new()?;
    let file = tools.scratch("learned");
    let mut all = Vec::new();
    for name in HINTED.into_iter().chain(["strings", "short_lived"]) {
        let words = tools.advice("plain", name, "before");
        let [with, without] = seconds(name, effort.process_rounds, |which| match which {
            0 => tools.preloaded(&words, Some(("CCMALLOC_LEARN", &file))),
            _ => tools.preloaded(&words, None),
        })?;
        all.push(ratios(&with, &without));
    }
    let mean = Rounds::geometric_mean(&all).median();
    Ok(vec![held(workload.name, "x", mean, 1.05)])
}

/// What came of the command for one program.
struct Improved {
    name: String,
    /// Whether rules were kept.
    has_rules: bool,
    /// Time as it is, with the allocator alone, and as the command says, by round.
    times: [Vec<f64>; 3],
    /// Peak memory with rules over without.
    memory: Option<f64>,
}

/// Runs the command on a program, and then the program as it says.
fn improved(
    tools: &Tools,
    name: &str,
    words: &[String],
    effort: &Effort,
) -> Result<Improved, Failure> {
    let rules = tools.scratch(&format!("{name}.ccrules"));
    let budget = effort.scale.pick("60s", "10m");
    let mut command = Command::new(tools.built.folder.join("ccscope"));
    command.args([
        "improve", "--json", "--quiet", "--no-log", "--metric", "user", "--budget", budget,
    ]);
    command
        .arg("--allocator")
        .arg(&tools.library)
        .arg("--output")
        .arg(&rules);
    let output = command
        .args(words)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    let said: Value = serde_json::from_slice(&output.stdout)?;
    let kept = &said["kept"];
    let has_rules = kept["rules"]
        .as_array()
        .is_some_and(|rules| !rules.is_empty());
    let has_allocator = kept["allocator"] == true;
    let mut times = seconds(name, effort.process_rounds, |which| match which {
        1 => tools.preloaded(words, None),
        2 if has_rules => tools.preloaded(words, Some(("CCMALLOC_RULES", &rules))),
        _ => run(words),
    })?;
    // Of what runs by the same command, the figures are the same.
    if !has_rules {
        times[2] = times[usize::from(has_allocator)].clone();
    }
    let tries = said["tries"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let last = tries.iter().rev().filter(|_| has_rules);
    let memory = last
        .filter(|it| it["base"].is_array())
        .find_map(|it| it["memory"].as_f64());
    Ok(Improved {
        name: name.to_owned(),
        has_rules,
        times,
        memory,
    })
}

/// The command on programs of `tests/advice` and of others.
pub(super) fn command(workload: &Workload, effort: &Effort) -> Rows {
    let tools = Tools::new()?;
    let list = tools.built.folder.join("plain");
    let list = Command::new(list).arg("--list").output()?;
    let list = String::from_utf8(list.stdout)?;
    let mut programs: Vec<(String, Vec<String>, bool)> = Vec::new();
    // The others are what `advise` is tested by.
    for (name, _) in list
        .lines()
        .filter_map(|line| line.split_once(" training "))
    {
        programs.push((
            name.to_owned(),
            tools.advice("plain", name, "before"),
            false,
        ));
    }
    let nodes = tools
        .compiled("benches/subjects/c/nodes.c")?
        .display()
        .to_string();
    for name in NODES {
        programs.push((name.to_owned(), vec![nodes.clone(), name.to_owned()], true));
    }
    for (program, words) in INSTALLED {
        let found = Command::new("sh")
            .args(["-c", &format!("command -v {program}")])
            .output()?;
        if !found.status.success() {
            eprintln!("left out: {program}, which is not installed");
            continue;
        }
        let path = tools.scratch(&format!("{program}.input"));
        if let Some(text) = input(program) {
            std::fs::write(&path, text)?;
        }
        let words = words.replace("INPUT", &path.display().to_string());
        let line = format!("exec {program} {words}");
        let shell = ["sh".to_owned(), "-c".to_owned(), line];
        programs.push((program.to_owned(), shell.to_vec(), true));
    }
    let asked = effort
        .only
        .as_deref()
        .and_then(|only| only.strip_prefix("improve_of_"));
    let is_few = effort.scale == Scale::Quick;
    programs.retain(|(name, _, is_other)| match asked {
        Some(asked) => asked == name,
        None => !is_few || *is_other || HINTED.contains(&&**name) || name == "in_cache",
    });
    let (mut rows, mut kept, mut worst, mut memory, mut others) =
        (Vec::new(), Vec::new(), f64::INFINITY, Vec::new(), 0.0);
    for (name, words, is_other) in &programs {
        let it = improved(&tools, name, words, effort)?;
        let [before, allocator, after] = &it.times;
        let what = if it.has_rules {
            "as it is; rules kept"
        } else {
            "as it is"
        };
        let [ours, theirs] = [after, before].map(|times| Rounds::new(times.clone()));
        rows.push(Comparison::new(
            format!("improve_of_{}", it.name),
            what,
            "s",
            &ours,
            &theirs,
        ));
        let gain = ratios(before, after).median();
        worst = f64::min(worst, gain);
        others += f64::from(*is_other && gain >= 1.1);
        if it.has_rules {
            kept.push(ratios(allocator, after));
            memory.extend(it.memory.map(Rounds::once));
        }
    }
    if asked.is_some() {
        return Ok(rows);
    }
    let mean = |all: &[Rounds]| match all.is_empty() {
        true => 1.0,
        false => Rounds::geometric_mean(all).median(),
    };
    rows.splice(
        0..0,
        [
            at_least(workload.name, "x", mean(&kept), 1.3),
            at_least("improve_worst", "x", worst, 0.98),
            at_least("improve_others", "programs", others, 4.0),
            held("improve_memory", "x", mean(&memory), 1.25),
        ],
    );
    Ok(rows)
}
