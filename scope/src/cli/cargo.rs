//! `cargo ccscope`: cargo with instrumentation, and `ccscope run` as the runner of its programs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::args::{BuildArgs, Regions};
use super::built::Built;
use super::canary::{self, Canary};
use super::flags::{self, Compiler};
use super::{CliError, fail, runtime};

const HOST: &str = "x86_64-unknown-linux-gnu";

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

/// Becomes cargo; returns only with an error. `rest` are the arguments from `--` on.
pub(super) fn run(
    subcommand: &str,
    args: &BuildArgs,
    rest: &[OsString],
    err: &mut dyn Write,
) -> Result<u8, CliError> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let compiler = compiler(&rustc)?;
    let (user_args, target_dir) = take_target(&args.cargo)?;
    let regions = args.record.regions;
    let functions = regions == Some(Regions::All);
    let all_memory = args.record.all_memory;
    let Some(instrumentation) = flags::instrumentation(&compiler, functions, all_memory) else {
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
    let runtime = runtime::install()?;
    let mut flags = instrumentation;
    if !args.no_debuginfo {
        flags.extend(flags::debug_information());
    }
    let wrapping = runtime::wrapping().into_iter().map(OsString::from);
    let link = runtime::linking(&runtime, regions.is_some())
        .into_iter()
        .chain(wrapping);
    let link = link.flat_map(|word| ["-Xlinker".into(), word.display().to_string()]);
    let link = link.map(|word| format!("-Clink-arg={word}"));
    let all: Vec<String> = flags.iter().cloned().chain(link).collect();
    let fixed = [
        "--edition=2024",
        "--crate-name=canary",
        "-Copt-level=3",
        "-Awarnings",
        "--target",
        HOST,
    ];
    let words = fixed.into_iter().chain(all.iter().map(String::as_str));
    let canary = Canary {
        compiler: &rustc,
        version: &compiler.text,
        flags: words.map(OsStr::new).collect(),
        sources: canary::RUST,
        runtime: &runtime,
    };
    canary.check(err)?;

    let here = env::current_dir().map_err(|error| format!("no current folder: {error}"))?;
    let mut command = Command::new(&cargo);
    command
        .arg(subcommand)
        .args(["--target", HOST, "--target-dir"])
        .arg(target_dir.join(match (regions, all_memory) {
            // Other flags: none is to make another build anew.
            (Some(Regions::All), false) => "ccscope-regions",
            (Some(Regions::All), true) => "ccscope-regions-all",
            (Some(Regions::Spans), false) => "ccscope-spans",
            (Some(Regions::Spans), true) => "ccscope-spans-all",
            (None, _) => "ccscope",
        }));
    command.args([
        "--config",
        &config(
            "rustflags",
            &[user_flags(&cargo, &user_args, err)?, all].concat(),
        ),
    ]);
    command.args(["--config", &config("runner", &runner(args, &here)?)]);
    if args.record.quiet {
        command.arg("--quiet");
    }
    command.args(&user_args);
    if subcommand == "test" && !user_args.iter().any(|word| is_one_of(word, &TARGETS)) {
        // Documentation tests would be linked without the runtime.
        command.arg("--tests");
    }
    command.args(rest);
    // These would take the place of the flags above, which hold them.
    for name in [
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_BUILD_RUSTFLAGS",
    ] {
        command.env_remove(name);
    }
    command.env("CARGO_INCREMENTAL", "0");
    let built = Built {
        compiler: compiler.name().to_owned(),
        flags,
        folder: here,
    };
    built.tell(&mut command)?;
    let error = command.exec();
    fail(format!("{}: cannot be started: {error}", cargo.display()))
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

fn output(command: &mut Command) -> Result<Output, CliError> {
    let name = command.get_program().to_owned();
    let output = command.output();
    Ok(output.map_err(|error| format!("{}: cannot be started: {error}", name.display()))?)
}

/// The flags that cargo would use, as far as ours would take their place: of the environment, or
/// `build.rustflags`. Those of `target.*.rustflags` are added by cargo itself.
fn user_flags(
    cargo: &OsStr,
    args: &[OsString],
    err: &mut dyn Write,
) -> Result<Vec<String>, CliError> {
    let words = |text: &str, mark: char| {
        text.split(mark)
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    };
    if let Ok(text) = env::var("CARGO_ENCODED_RUSTFLAGS") {
        return Ok(words(&text, '\x1f'));
    }
    if let Ok(text) = env::var("RUSTFLAGS") {
        return Ok(words(&text, ' '));
    }
    // Cargo can say what its files hold, but not yet without this variable.
    let mut command = Command::new(cargo);
    command.args([
        "-Zunstable-options",
        "config",
        "get",
        "--format=json-value",
        "build.rustflags",
    ]);
    command.args(chosen(args, &["--config"]));
    command.env("RUSTC_BOOTSTRAP", "1");
    let output = output(&mut command)?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        if !why.contains("is not set") {
            let why = one_line(&why);
            writeln!(
                err,
                "ccscope: flags of `build.rustflags` are left out: {why}"
            )?;
        }
        return Ok(Vec::new());
    }
    Ok(match serde_json::from_slice(&output.stdout)? {
        serde_json::Value::String(text) => words(&text, ' '),
        serde_json::Value::Array(list) => {
            let text = |word: &serde_json::Value| word.as_str().map(str::to_owned);
            list.iter().filter_map(text).collect()
        }
        _ => Vec::new(),
    })
}

/// What cargo says of an error.
fn one_line(text: &str) -> String {
    let text = text.trim().strip_prefix("error: ").unwrap_or(text.trim());
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The command that cargo puts before each program.
fn runner(args: &BuildArgs, here: &Path) -> Result<Vec<String>, CliError> {
    let tool = env::current_exe().map_err(|error| format!("no path of this tool: {error}"))?;
    let mut record = args.record.clone();
    // Tests run in the folders of their packages.
    record.output = record.output.map(|path| here.join(path));
    let mut words = vec![
        tool.with_file_name("ccscope").into_os_string(),
        "run".into(),
    ];
    words.extend(record.to_args());
    words.push("--".into());
    let text = |word: OsString| match word.into_string() {
        Ok(text) => Ok(text),
        Err(word) => fail(format!(
            "{} is no Unicode text, which cargo asks for",
            word.display()
        )),
    };
    words.into_iter().map(text).collect()
}

/// An entry for the programs of this machine, as TOML.
fn config(name: &str, words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| toml_string(word)).collect();
    format!("target.{HOST}.{name}=[{}]", words.join(","))
}

fn toml_string(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
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
    fn words_become_toml() {
        let words = ["a \"b\"\\\n".to_owned(), "c".to_owned()];
        let expected = r#"target.x86_64-unknown-linux-gnu.runner=["a \"b\"\\\u000a","c"]"#;
        assert_eq!(config("runner", &words), expected);
    }

    #[test]
    fn names_of_options_are_compared_without_values() {
        assert!(is_one_of(OsStr::new("--bin=a"), &TARGETS));
        assert!(!is_one_of(OsStr::new("--binary"), &TARGETS));
    }
}
