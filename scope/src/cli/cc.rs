//! `ccscope cc` and `ccscope c++`: a compiler of C with the flags of instrumentation.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::canary::{self, Canary};
use super::{CliError, flags, runtime};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    C,
    Cxx,
}

/// Becomes the compiler; returns only with an error.
pub(super) fn become_compiler(
    language: Language,
    args: &[OsString],
    err: &mut dyn Write,
) -> CliError {
    let (variable, default) = match language {
        Language::C => ("CCSCOPE_CC", "cc"),
        Language::Cxx => ("CCSCOPE_CXX", "c++"),
    };
    if let Some(name) = args.first().filter(|word| is_compiler(word)) {
        let name = name.display();
        return format!(
            "`{name}` is no argument: leave it out, or name the compiler by {variable}={name}"
        )
        .into();
    }
    let compiler = env::var_os(variable).unwrap_or_else(|| default.into());
    let mut command = Command::new(&compiler);
    match added(&compiler, args, err) {
        Ok((before, after)) => command.args(before).args(args).args(after),
        Err(error) => return error,
    };
    let error = command.exec();
    format!(
        "{}: cannot be started: {error} (set {variable})",
        compiler.display()
    )
    .into()
}

/// Whether a word calls a compiler, as in `ccscope cc gcc a.c`: `x86_64-linux-gnu-gcc-12`.
fn is_compiler(word: &OsStr) -> bool {
    let path = Path::new(word);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
    let name = name.rsplit('-').next().unwrap_or_default();
    let is_known = ["cc", "c++", "gcc", "g++", "clang", "clang++"].contains(&name);
    // A file here may be what is linked.
    let is_option = word.to_string_lossy().starts_with('-');
    is_known && !is_option && (path.components().count() > 1 || !path.is_file())
}

/// What is put before and behind the user's arguments.
fn added(
    compiler: &OsStr,
    args: &[OsString],
    err: &mut dyn Write,
) -> Result<(Vec<OsString>, Vec<OsString>), CliError> {
    let work = Work::of(args);
    if work == Work::Question {
        return Ok((Vec::new(), Vec::new()));
    }
    let version = Command::new(compiler).arg("--version").output();
    let version = version.map_err(|error| format!("{}: {error}", compiler.display()))?;
    let version = String::from_utf8_lossy(&version.stdout);
    let regions = env::var_os("CCSCOPE_REGIONS").filter(|value| value != "0");
    let all_memory = regions.as_deref() == Some(OsStr::new("all"));
    let regions = regions.is_some();
    let is_clang = version.contains("clang");
    let mut flags = match is_clang {
        true => flags::clang(&version),
        false => flags::GCC.to_vec(),
    };
    if regions {
        flags.push(match is_clang {
            true => "-finstrument-functions-after-inlining",
            false => "-finstrument-functions",
        });
    }
    // gcc has no such option.
    if all_memory && is_clang {
        flags.extend(["-mllvm", flags::ALL_MEMORY]);
    }
    // First, so that the user's options win: theirs may be `-g0`.
    let before: Vec<OsString> = ["-g"].iter().chain(&flags).map(OsString::from).collect();
    let runtime = runtime::install_runtime()?;
    // To the linker directly: behind `-x c` a file name would be one of source.
    let wrapping = runtime::wrapping().into_iter().map(OsString::from);
    let after: Vec<OsString> = { runtime::linking(&runtime, regions).into_iter() }
        .chain(wrapping)
        .flat_map(|word| ["-Xlinker".into(), word])
        .collect();
    let words = before.iter().chain(&after).map(OsString::as_os_str);
    let canary = Canary {
        compiler,
        version: &version,
        flags: ["-O2", "-w"]
            .map(OsStr::new)
            .into_iter()
            .chain(words)
            .collect(),
        sources: canary::C,
        runtime: &runtime,
    };
    canary.check(err)?;
    let after = match work {
        Work::Link => after,
        _ => Vec::new(),
    };
    Ok((before, after))
}

/// What a compiler is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// To say something about itself or its input.
    Question,
    Compile,
    /// To compile, if there is something to compile, and link.
    Link,
}

impl Work {
    fn of(args: &[OsString]) -> Work {
        let mut work = Work::Question;
        let mut words = args.iter().map(|word| word.to_string_lossy());
        while let Some(word) = words.next() {
            match &*word {
                // Nothing is compiled, whatever else there is.
                "-E" | "-M" | "-MM" | "-fsyntax-only" | "-###" | "--version" | "--help"
                | "-dumpversion" | "-dumpfullversion" | "-dumpmachine" | "-dumpspecs" => {
                    return Work::Question;
                }
                word if word.starts_with("-print-") || word.starts_with("--print-") => {
                    return Work::Question;
                }
                "-c" | "-S" | "-r" => return Work::compile_unless_question(words),
                // Options whose value is no input.
                "-o" | "-x" | "-I" | "-L" | "-D" | "-U" | "-include" | "-isystem" | "-iquote"
                | "-MF" | "-MT" | "-MQ" | "-Xlinker" | "-T" | "-u" | "-z" | "-idirafter"
                | "-imacros" | "-Xassembler" | "-Xpreprocessor" | "-aux-info" | "-wrapper" => {
                    drop(words.next());
                }
                "-" => work = Work::Link,
                word if word.starts_with('-') => {}
                _ => work = Work::Link,
            }
        }
        work
    }

    fn compile_unless_question<T: AsRef<str>>(mut rest: impl Iterator<Item = T>) -> Work {
        let questions = ["-E", "-M", "-MM", "-fsyntax-only", "-###"];
        match rest.any(|word| questions.contains(&word.as_ref())) {
            true => Work::Question,
            false => Work::Compile,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_compiler_is_no_argument() {
        for word in [
            "gcc",
            "clang++-16",
            "/usr/bin/cc",
            "x86_64-linux-gnu-gcc-12.2",
        ] {
            assert!(is_compiler(OsStr::new(word)), "{word}");
        }
        for word in ["a.c", "gcc.c", "-cc", "clang-tidy.o", "dir/access"] {
            assert!(!is_compiler(OsStr::new(word)), "{word}");
        }
    }

    #[test]
    fn a_compiler_that_is_only_asked_is_left_alone() {
        for (line, expected) in [
            ("-v", Work::Question),
            ("--version", Work::Question),
            ("-E a.c", Work::Question),
            ("a.c -E", Work::Question),
            ("-c -MM a.c", Work::Question),
            ("-print-search-dirs", Work::Question),
            ("-O2 -c a.c -o a.o", Work::Compile),
            ("-r a.o b.o -o c.o", Work::Compile),
            ("-x c -c -", Work::Compile),
            ("conftest.c", Work::Link),
            ("-v a.o", Work::Link),
            ("-shared -o a.so a.o", Work::Link),
            ("-x c - -o a", Work::Link),
            ("-I include -o out", Work::Question),
        ] {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(Work::of(&args), expected, "{line}");
        }
    }
}
