//! `cargo-ccscope` as the program that cargo starts the compiler by.
//!
//! Cargo finds out which flags the user asks for, by whatever file or variable; ours follow them.
//! With `--target`, cargo names the target to the compiler unless it compiles a build script or a
//! procedural macro: these are left alone.

use std::ffi::{OsStr, OsString};
use std::io::{Write, stderr, stdout};
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::built::Built;
use super::{CliError, fail, launch, runtime};

/// Becomes the compiler of `args`, whose first word is its path, or waits for it.
pub(super) fn run(built: &Built, args: &[OsString]) -> Result<u8, CliError> {
    let words = built.wrapper.iter().chain(args);
    let (program, words) = { words.clone().next() }
        .zip(Some(words.skip(1)))
        .expect("not empty");
    let mut command = Command::new(program);
    if args.last().is_some_and(|word| word == "-vV") {
        // Cargo builds anew when this text changes, but not when our flags do.
        let output = command.args(words).output();
        let output = output.map_err(|error| cannot(program, &error))?;
        stderr().write_all(&output.stderr)?;
        stdout().write_all(&output.stdout)?;
        if output.status.success() {
            let hash = runtime::hash_of((&built.flags, &built.link));
            writeln!(stdout(), "ccscope: {hash:016x}")?;
        }
        return Ok(launch::exit_code(output.status));
    }
    let has = |name: &str| args.iter().any(|word| word == name);
    // Without a name, or of standard input, it is a question.
    if has("--target") && has("--crate-name") && !has("-") {
        let words: Vec<&OsString> = words.collect();
        let (kept, is_optimised) = without_lto(&words);
        let is_linked = ["bin", "cdylib", "dylib", "--test"].into_iter().any(has);
        if is_optimised && is_linked {
            // Cargo repeats it when nothing is to be built.
            writeln!(
                stderr(),
                "ccscope: built without link-time optimisation, which would run after loads and \
                 stores are marked and count some that the program does not execute"
            )?;
        }
        command.args(kept).args(&built.flags).args(&built.link);
    } else {
        command.args(words);
    }
    fail(cannot(program, &command.exec()))
}

fn cannot(program: &OsStr, error: &std::io::Error) -> String {
    format!("{}: cannot be started: {error}", program.display())
}

/// The words without those that ask for optimisation by the linker, and whether one did.
fn without_lto<'a>(words: &[&'a OsString]) -> (Vec<&'a OsString>, bool) {
    let (mut kept, mut is_optimised, mut at) = (Vec::new(), false, 0);
    while at < words.len() {
        let text = words[at].to_string_lossy();
        let next = words.get(at + 1).map(|word| word.to_string_lossy());
        let (option, len) = match &*text {
            "-C" | "--codegen" => (next.unwrap_or_default(), 2),
            text => match text.strip_prefix("-C").or(text.strip_prefix("--codegen=")) {
                Some(option) => (option.to_owned().into(), 1),
                None => ("".into(), 1),
            },
        };
        let (name, value) = option.split_once('=').unwrap_or((&option, ""));
        if ["lto", "linker-plugin-lto"].contains(&name) {
            is_optimised |= !["off", "no", "n", "false"].contains(&value);
        } else {
            kept.extend(&words[at..words.len().min(at + len)]);
        }
        at += len;
    }
    (kept, is_optimised)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_linker_s_optimisation_are_taken_out() {
        for (line, kept, is_optimised) in [
            (
                "-C opt-level=3 -C lto=thin a.rs",
                "-C opt-level=3 a.rs",
                true,
            ),
            ("-Clto -Ccodegen-units=9", "-Ccodegen-units=9", true),
            ("--codegen lto=fat --codegen=lto -C", "-C", true),
            ("-C linker-plugin-lto -Clinker-plugin-lto=x", "", true),
            ("-C lto=off --crate-name lto", "--crate-name lto", false),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let (found, on) = without_lto(&words.iter().collect::<Vec<_>>());
            let found: Vec<_> = found.iter().map(|word| word.to_str().unwrap()).collect();
            assert_eq!(
                (found.join(" ").as_str(), on),
                (kept, is_optimised),
                "{line}"
            );
        }
    }
}
