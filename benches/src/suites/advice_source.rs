//! `cargo ccscope improve` on packages: programs of the test half of `tests/advice`, each as a
//! package of its own, with what is kept checked by runs that the command knows nothing of.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use super::advice::{Program, RATE};
use super::advice_profiles::held;
use super::improve::{at_least, ratios, run, seconds};
use super::scope::{Built, ROOT, done};
use crate::rounds::Rounds;
use crate::workload::{Comparison, Effort, Failure, Rows, Workload};

/// A quick report has these alone: a sorted map, boxes, records, and a parser.
const QUICK: [&str; 4] = ["invoices", "bk_tree", "accounts", "calculator"];

/// What came of the command for a package.
struct Improved {
    kept: usize,
    minutes: f64,
    /// Time as it is over time with the patch, by round.
    gain: Rounds,
}

/// Each package, and the figures of all.
pub(super) fn packages(workload: &Workload, effort: &Effort) -> Rows {
    let built = Built::of("-p ccscope -p advice-programs")?;
    let mut rows = Vec::new();
    let mut all = Vec::new();
    let asked = effort
        .only
        .as_deref()
        .and_then(|it| it.strip_prefix("improve_source_of_"));
    for program in Program::all(&built)?.iter().filter(|it| it.is_test) {
        let name = &*program.name;
        let is_wanted = match asked {
            Some(asked) => asked == name,
            None => effort.scale.pick(QUICK.contains(&name), true),
        };
        if !is_wanted {
            continue;
        }
        let it = improved(&built, program, effort)?;
        let what = format!("as it is; {} kept in {:.1} min", it.kept, it.minutes);
        rows.push(Comparison {
            ratio: it.gain.median(),
            ..Comparison::new(
                format!("improve_source_of_{name}"),
                &what,
                "x",
                &it.gain,
                &Rounds::once(1.0),
            )
        });
        all.push(it);
    }
    if asked.is_some() || all.is_empty() {
        return Ok(rows);
    }
    let kept: Vec<&Improved> = all.iter().filter(|it| it.kept > 0).collect();
    let confirmed = kept.iter().filter(|it| it.gain.median() > 1.0).count();
    let gains: Vec<Rounds> = kept.iter().map(|it| it.gain.clone()).collect();
    let worst = all
        .iter()
        .map(|it| it.gain.median())
        .fold(f64::INFINITY, f64::min);
    let slowest = all.iter().map(|it| it.minutes).fold(0.0, f64::max);
    if !gains.is_empty() {
        let right = confirmed as f64 / gains.len() as f64;
        let mean = Rounds::geometric_mean(&gains).median();
        rows.insert(0, at_least(workload.name, "x", mean, 1.4));
        rows.push(at_least("improve_right", "of the patches", right, 1.0));
    }
    rows.push(at_least("improve_source_worst", "x", worst, 0.98));
    rows.push(held("improve_minutes", "min", slowest, 12.0));
    Ok(rows)
}

/// Runs the command on a package, and then the package with its patch and without.
fn improved(built: &Built, program: &Program, effort: &Effort) -> Result<Improved, Failure> {
    let folder = built.scratch.path().join(&program.name);
    write(&folder, program)?;
    let before = binary(&folder, "before")?;
    // As a user comes from it: splits and orders of fields need a profile.
    let mut profile = Command::new(built.folder.join("cargo-ccscope"));
    profile.args(["ccscope", "run", "--quiet", RATE, "--output"]);
    profile.args(["program.1.ccscope", "--release", "--offline"]);
    done(profile.current_dir(&folder).stdout(Stdio::null()))?;
    let patch = folder.join("improve.patch");
    let mut command = Command::new(built.folder.join("cargo-ccscope"));
    command.args([
        "ccscope", "improve", "--json", "--quiet", "--no-log", "--metric", "user",
    ]);
    command.args([
        "--budget",
        effort.scale.pick("90s", "10m"),
        "--release",
        "--offline",
    ]);
    let started = Instant::now();
    let output = command.current_dir(&folder).output()?;
    let minutes = started.elapsed().as_secs_f64() / 60.0;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {why}", program.name).into());
    }
    let said: Value = serde_json::from_slice(&output.stdout)?;
    let kept = &said["kept"];
    let changes = kept["rules"].as_array().map_or(0, Vec::len);
    let kept = changes + usize::from(kept["allocator"] == true);
    let mut after = before.clone();
    if patch.exists() {
        done(
            Command::new("git")
                .current_dir(&folder)
                .args(["apply", "improve.patch"]),
        )?;
        after = binary(&folder, "after")?;
    }
    let words = [before, after].map(|it| vec![it.display().to_string()]);
    let rounds = effort.process_rounds.max(5);
    let [before, after] = seconds(&program.name, rounds, |which| run(&words[which]))?;
    Ok(Improved {
        kept,
        minutes,
        gain: match patch.exists() {
            true => ratios(&before, &after),
            false => Rounds::once(1.0),
        },
    })
}

/// The program as a package.
fn write(folder: &Path, program: &Program) -> Result<(), Failure> {
    fs::create_dir_all(folder.join("src"))?;
    let source = format!("tests/advice/src/unseen/{}/before.rs", program.name);
    fs::copy(Path::new(ROOT).join(source), folder.join("src/program.rs"))?;
    let manifest = "[package]\nname = \"program\"\nedition = \"2024\"\n\n\
         [dependencies]\nfastrand = \"2\"\n\n[workspace]\n";
    fs::write(folder.join("Cargo.toml"), manifest)?;
    let main = format!(
        "mod program;\n\nfn main() {{\n    println!(\"{{:016x}}\", program::run({}));\n}}\n",
        program.size
    );
    fs::write(folder.join("src/main.rs"), main)?;
    Ok(())
}

/// Builds the package as it is; the program under another name.
fn binary(folder: &Path, name: &str) -> Result<PathBuf, Failure> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args([
        "build",
        "--quiet",
        "--release",
        "--offline",
        "--target-dir",
        "built",
    ]);
    done(cargo.current_dir(folder))?;
    let path = folder.join(name);
    fs::copy(folder.join("built/release/program"), &path)?;
    Ok(path)
}
