//! Commands of a search, cargo's and git's: their options, and what they say if they fail.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The options that choose features.
pub(super) fn features(words: &[OsString]) -> Vec<&OsString> {
    let (mut chosen, mut words) = (Vec::new(), words.iter());
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        match text.split('=').next().unwrap_or_default() {
            "--features" | "-F" => {
                chosen.push(word);
                chosen.extend((!text.contains('=')).then(|| words.next()).flatten());
            }
            "--all-features" | "--no-default-features" => chosen.push(word),
            _ => {}
        }
    }
    chosen
}

/// Options for `cargo metadata`, those for `cargo build` in the copy, and the manifest that the
/// user names.
pub(super) fn split(
    words: &[OsString],
    here: &Path,
) -> (Vec<OsString>, Vec<OsString>, Option<PathBuf>) {
    let (mut metadata, mut build, mut manifest) = (Vec::new(), Vec::new(), None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (&*text, None),
        };
        match name {
            "--manifest-path" => {
                let value = value.or_else(|| words.next().cloned());
                manifest = value.map(|value| here.join(value));
            }
            "--config" => {
                let value = value.or_else(|| words.next().cloned()).unwrap_or_default();
                let both = [OsString::from(name), value];
                metadata.extend(both.clone());
                build.extend(both);
            }
            // Builds of the copy have a folder of their own.
            "--target-dir" => {
                if value.is_none() {
                    words.next();
                }
            }
            "--offline" => {
                metadata.push(word.clone());
                build.push(word.clone());
            }
            _ => build.push(word.clone()),
        }
    }
    if let Some(manifest) = &manifest {
        metadata.extend(["--manifest-path".into(), manifest.clone().into()]);
    }
    (metadata, build, manifest)
}

/// Runs a command; its output, or its first error with the place.
pub(super) fn output(command: &mut Command) -> Result<Output, String> {
    whole_output(command).map_err(|text| first_error(&text))
}

/// Runs a command; its output, or all that it has printed if it fails.
pub(super) fn whole_output(command: &mut Command) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null());
    let output = command.output();
    let output = output.map_err(|error| format!("{name} cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let text = [&*output.stderr, &output.stdout].concat();
    Err(String::from_utf8_lossy(&text).into_owned())
}

/// The lines that the compiler's errors are about, each with its file: where they are, or `all`
/// that they show.
pub(super) fn error_lines(text: &str, all: bool) -> Vec<(&str, usize)> {
    let (mut found, mut file, mut is_error, mut is_first) = (Vec::new(), "", false, false);
    for line in text.lines() {
        let trimmed = line.trim_start();
        if line.starts_with("error") || line.starts_with("warning") {
            (is_error, is_first) = (line.starts_with("error"), true);
        } else if let Some(place) = trimmed.trim_start_matches("::: ").strip_prefix("--> ")
            && let Some((path, rest)) = place.split_once(':')
        {
            file = path;
            let number = rest.split(':').next().unwrap_or_default();
            if is_error && is_first {
                found.extend(number.parse().ok().map(|number| (file, number)));
            }
            is_first = false;
        } else if let Some((number, _)) = trimmed.split_once(" |")
            && is_error
            && all
        {
            found.extend(number.parse().ok().map(|number| (file, number)));
        }
    }
    found
}

/// The first error of cargo, of the compiler or of a test, in one line.
pub(super) fn first_error(text: &str) -> String {
    let mut lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .peekable();
    let first = lines.peek().copied().unwrap_or("it fails");
    let is_error = |line: &str| {
        let starts = ["error", "fatal"].iter().any(|word| line.starts_with(word));
        starts && !line.starts_with("error: test failed") || line.starts_with("thread '")
    };
    while let Some(line) = lines.next() {
        if is_error(line) {
            let place = lines.peek().and_then(|next| next.strip_prefix("--> "));
            let text = ["error: ", "fatal: "]
                .iter()
                .find_map(|word| line.strip_prefix(word));
            let place = place.map(|place| format!(" ({place})"));
            return text.unwrap_or(line).to_owned() + &place.unwrap_or_default();
        }
    }
    first.to_owned()
}

/// `git`, which takes the repository from where it is started.
pub(super) fn git() -> Command {
    let mut git = Command::new("git");
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        git.env_remove(name);
    }
    git
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_one_line_with_a_place() {
        for (text, expected) in [
            (
                "warning: unused\n --> src/a.rs:1:1\nerror[E0425]: cannot find `x`\n   \
                 --> src/main.rs:3:5\n",
                "error[E0425]: cannot find `x` (src/main.rs:3:5)",
            ),
            (
                "error: could not find `Cargo.toml` in `/x`\n",
                "could not find `Cargo.toml` in `/x`",
            ),
            (
                "error: test failed, to rerun pass `--lib`\nrunning 1 test\n\
                 thread 'a' panicked at src/lib.rs:2:1:\n",
                "thread 'a' panicked at src/lib.rs:2:1:",
            ),
            ("something\n", "something"),
            ("", "it fails"),
        ] {
            assert_eq!(first_error(text), expected);
        }
    }

    #[test]
    fn errors_are_about_lines() {
        let text = "warning: unused\n --> src/a.rs:1:1\n\nerror[E0502]: cannot borrow `*at`\n  \
                    --> src/main.rs:13:5\n   |\n12 |     at.insert(\n   |     -- first\n13 |     \
                    f(at)\n   |       ^^\n\nerror: aborting\n";
        assert_eq!(error_lines(text, false), [("src/main.rs", 13)]);
        let all = [13, 12, 13].map(|line| ("src/main.rs", line));
        assert_eq!(error_lines(text, true), all);
    }

    #[test]
    fn options_are_those_of_the_copy() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        let line = words("--release -F a --no-default-features --bin b --features=c");
        let chosen: Vec<OsString> = features(&line).into_iter().cloned().collect();
        assert_eq!(chosen, words("-F a --no-default-features --features=c"));
        let line = "--release --manifest-path=a/Cargo.toml --config x=1 -p b --offline \
                    --target-dir t";
        let (metadata, build, manifest) = split(&words(line), Path::new("/h"));
        assert_eq!(build, words("--release --config x=1 -p b --offline"));
        assert_eq!(
            metadata,
            words("--config x=1 --offline --manifest-path /h/a/Cargo.toml")
        );
        assert_eq!(manifest, Some("/h/a/Cargo.toml".into()));
    }
}
