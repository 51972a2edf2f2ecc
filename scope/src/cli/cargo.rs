//! `cargo ccscope`: cargo with instrumentation, and `ccscope run` as the runner of its programs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use super::args::{BuildArgs, Regions};
use super::built::Built;
use super::canary::{self, Canary};
use super::config::{Config, HOST, RUNNER_VARIABLE, one_line, output};
use super::flags::{self, Compiler};
use super::{CliError, fail, launch, runtime, signals};

/// Options of cargo that say which targets are tested.
const TARGETS: [&str; 11] = [
    "--lib",
    "--bin",
    "--bins",
    "--example",
    "--examples",
    "--test",
    "--tests",
    "--bench",
    "--benches",
    "--all-targets",
    "--doc",
];

/// Runs cargo; its status. `rest` are the arguments from `--` on.
pub(super) fn run(
    subcommand: &str,
    args: &BuildArgs,
    rest: &[OsString],
    err: &mut dyn Write,
) -> Result<u8, CliError> {
    if args.record.sample.is_some() {
        return super::usage(
            "`cargo ccscope` builds so that accesses are seen, which is slow. Build as always, and \
             then: ccscope run --sample target/release/PROGRAM",
        );
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let (user_args, target_dir) = take_target(&args.cargo)?;
    let config = Config::read(&cargo, &chosen(&user_args, &["--config"]), err)?;
    let rustc = config.rustc();
    let compiler = compiler(&rustc)?;
    let regions = args.record.regions;
    let functions = regions == Some(Regions::All);
    let all_memory = args.record.all_memory;
    let Some(mut flags) = flags::instrumentation(&compiler, functions, all_memory) else {
        let oldest = flags::oldest();
        return fail(format!(
            "{} is too old: {oldest} is the first that works",
            compiler.name()
        ));
    };
    let target_dir = match target_dir {
        Some(folder) => folder,
        None => target_folder(&cargo, &user_args)?,
    };
    let runtime = runtime::install_runtime()?;
    if !args.no_debuginfo {
        flags.extend(flags::debug_information());
    }
    let wrapping = runtime::wrapping().into_iter().map(OsString::from);
    let link = runtime::linking(&runtime, regions.is_some())
        .into_iter()
        .chain(wrapping);
    let link = link.flat_map(|word| ["-Xlinker".into(), word.display().to_string()]);
    let link: Vec<String> = link.map(|word| format!("-Clink-arg={word}")).collect();
    let fixed = [
        "--edition=2024",
        "--crate-name=canary",
        "-Copt-level=3",
        "-Awarnings",
        "--target",
        HOST,
    ];
    let words = fixed
        .into_iter()
        .chain(flags.iter().chain(&link).map(String::as_str));
    let canary = Canary {
        compiler: &rustc,
        version: &compiler.text,
        flags: words.map(OsStr::new).collect(),
        sources: canary::RUST,
        runtime: &runtime,
    };
    canary.check(err)?;

    let here = env::current_dir().map_err(|error| format!("no current folder: {error}"))?;
    let tool = env::current_exe().map_err(|error| format!("no path of this tool: {error}"))?;
    let mut record = args.record.clone();
    // Tests run in the folders of their packages.
    record.output = record.output.map(|path| here.join(path));
    let notes = tempfile::tempdir();
    let notes = notes.map_err(|error| format!("cannot make a temporary folder: {error}"))?;
    let built = Built {
        compiler: compiler.name().to_owned(),
        flags,
        link,
        wrapper: config.wrapper(),
        options: record.to_args(),
        folder: here,
        notes: notes.path().to_owned(),
    };
    let runner = config.runner(&rustc);
    let (option, variable) = runner.then(&tool.with_file_name("ccscope"), "run")?;
    let target_dir = target_dir.join(match (regions, all_memory) {
        // Other flags: none is to make another build anew.
        (Some(Regions::All), false) => "ccscope-regions",
        (Some(Regions::All), true) => "ccscope-regions-all",
        (Some(Regions::Spans), false) => "ccscope-spans",
        (Some(Regions::Spans), true) => "ccscope-spans-all",
        (None, _) => "ccscope",
    });
    let mut command = Command::new(&cargo);
    command.args([subcommand, "--target", HOST, "--target-dir"]);
    command.arg(&target_dir);
    if !variable.is_empty() {
        // What wins is not the same for all cargos.
        command.env(RUNNER_VARIABLE, variable);
    }
    if args.record.quiet {
        command.arg("--quiet");
    }
    // The last one wins.
    command.args(&user_args).args(["--config", &option]);
    if subcommand == "test" && !user_args.iter().any(|word| is_one_of(word, &TARGETS)) {
        // Documentation tests would be linked without the runtime.
        command.arg("--tests");
    }
    command.args(rest);
    command.env("RUSTC_WRAPPER", tool);
    // The compiler's answers are those of the wrapper, whose flags may change.
    command.env("CARGO_CACHE_RUSTC_INFO", "0");
    command.env("CARGO_INCREMENTAL", "0");
    built.tell(&mut command)?;
    let status = wait(&mut command)?;
    let starts_nothing = |word: &OsString| {
        ["--no-run", "--help", "-h"]
            .map(OsStr::new)
            .contains(&&**word)
    };
    let quiet = args.record.quiet;
    match subcommand {
        _ if !status.success() => {}
        "build" if !quiet => {
            let folder = target_dir.join(HOST);
            writeln!(
                err,
                "ccscope: built in {}: start programs from there, or those that load a library \
                 from there, by `ccscope run`",
                folder.display()
            )?;
        }
        "build" => {}
        _ if built.has_started() || user_args.iter().any(starts_nothing) => {}
        _ => writeln!(
            err,
            "ccscope: no profile: cargo started no program by `ccscope run`"
        )?,
    }
    Ok(launch::exit_code(status))
}

/// Runs cargo, to which signals go.
fn wait(command: &mut Command) -> Result<ExitStatus, CliError> {
    let name = command.get_program().to_owned();
    signals::outlive();
    let child = command.spawn();
    let mut child =
        child.map_err(|error| format!("{}: cannot be started: {error}", name.display()))?;
    signals::hand_on_to(child.id());
    let status = child.wait();
    let status = status.map_err(|error| format!("cannot wait for cargo: {error}"))?;
    signals::obey();
    Ok(status)
}

fn is_one_of(word: &OsStr, names: &[&str]) -> bool {
    let text = word.to_string_lossy();
    names.contains(&text.split('=').next().unwrap_or_default())
}

fn compiler(rustc: &OsStr) -> Result<Compiler, CliError> {
    let shown = rustc.display();
    let output = Command::new(rustc).arg("-vV").output();
    let output = output.map_err(|error| format!("{shown}: {error}"))?;
    let Some(compiler) = Compiler::parse(&String::from_utf8_lossy(&output.stdout)) else {
        return fail(format!("{shown} -vV does not tell its version and host"));
    };
    match compiler.host == HOST {
        true => Ok(compiler),
        false => fail(format!(
            "{} is for {}; only {HOST} is supported",
            compiler.name(),
            compiler.host
        )),
    }
}

/// The arguments without `--target-dir`, and that folder. A `--target` must be this machine.
fn take_target(args: &[OsString]) -> Result<(Vec<OsString>, Option<PathBuf>), CliError> {
    let (mut kept, mut folder) = (Vec::new(), None);
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        let (name, value) = text
            .split_once('=')
            .map_or((&*text, None), |(name, value)| (name, Some(value)));
        if name != "--target" && name != "--target-dir" {
            kept.push(word.clone());
            continue;
        }
        let value = value.map(OsString::from).or_else(|| words.next().cloned());
        match value {
            None => return super::usage(format!("{name} needs a value")),
            Some(value) if name == "--target-dir" => folder = Some(value.into()),
            Some(value) if value == HOST => {}
            Some(value) => {
                let value = value.display();
                return super::usage(format!("cannot run {value} here: only {HOST} is supported"));
            }
        }
    }
    Ok((kept, folder))
}

/// Cargo's folder for what it builds.
fn target_folder(cargo: &OsStr, args: &[OsString]) -> Result<PathBuf, CliError> {
    let mut command = Command::new(cargo);
    command.args(["metadata", "--no-deps", "--format-version=1"]);
    const NAMES: [&str; 5] = [
        "--manifest-path",
        "--config",
        "--offline",
        "--locked",
        "--frozen",
    ];
    command.args(chosen(args, &NAMES));
    let output = output(&mut command)?;
    if !output.status.success() {
        return fail(one_line(&String::from_utf8_lossy(&output.stderr)));
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    match metadata["target_directory"].as_str() {
        Some(folder) => Ok(folder.into()),
        None => fail("cargo metadata does not tell the target folder"),
    }
}

/// The options of these names, with their values.
fn chosen<'a>(args: &'a [OsString], names: &[&str]) -> Vec<&'a OsString> {
    let (mut chosen, mut words) = (Vec::new(), args.iter());
    while let Some(word) = words.next() {
        if is_one_of(word, names) {
            chosen.push(word);
            let has_value = word.as_encoded_bytes().contains(&b'=');
            if is_one_of(word, &["--manifest-path", "--config"]) && !has_value {
                chosen.extend(words.next());
            }
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn targets_are_taken_out() {
        let args = words("--release --target x86_64-unknown-linux-gnu --target-dir=/t -p a");
        let (kept, folder) = take_target(&args).unwrap();
        assert_eq!(kept, words("--release -p a"));
        assert_eq!(folder, Some("/t".into()));
        let error = take_target(&words("--target=wasm32-wasip1")).unwrap_err();
        assert!(error.to_string().contains("wasm32-wasip1"), "{error}");
        assert!(take_target(&words("--target")).is_err());
    }

    #[test]
    fn names_of_options_are_compared_without_values() {
        assert!(is_one_of(OsStr::new("--bin=a"), &TARGETS));
        assert!(!is_one_of(OsStr::new("--binary"), &TARGETS));
    }
}
