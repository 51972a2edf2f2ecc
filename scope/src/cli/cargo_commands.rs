//! The commands of `cargo ccscope`.

use std::ffi::OsString;

use clap::{Arg, CommandFactory, Parser, Subcommand};

use super::args::BuildArgs;
use super::improve::package::PackageArgs;

/// Builds with instrumentation, runs, and shows where memory went
#[derive(Debug, Parser)]
#[command(name = "cargo ccscope", bin_name = "cargo ccscope", version, about)]
#[command(
    after_help = "Options of cargo stand among those of this command; after `--` come those of \
    the program:
  cargo ccscope run --release --example quickstart -o first.ccscope -- 1000"
)]
pub(super) struct CargoArgs {
    #[command(subcommand)]
    pub(super) command: CargoCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum CargoCommand {
    /// Profile what `cargo run` runs
    Run(BuildArgs),
    /// Profile what `cargo test` runs, without documentation tests
    Test(BuildArgs),
    /// Profile what `cargo bench` runs
    Bench(BuildArgs),
    /// Build what `cargo build` builds, for `ccscope run`: also libraries that a program loads
    Build(BuildArgs),
    /// Try changes of source on what `cargo run` runs, and write those that gain as a patch
    Improve(Box<PackageArgs>),
}

/// The words before `--` of `cargo ccscope`, with our options before those that are cargo's.
pub(super) fn ours_first(words: Vec<OsString>) -> Vec<OsString> {
    let grammar = CargoArgs::command();
    let named = words.get(1).and_then(|name| name.to_str());
    let Some(command) = named.and_then(|name| grammar.find_subcommand(name)) else {
        return words;
    };
    let mut words = words.into_iter();
    let (mut ours, mut others) = (words.by_ref().take(2).collect::<Vec<_>>(), Vec::new());
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        let long = text
            .split('=')
            .next()
            .and_then(|name| name.strip_prefix("--"));
        let takes_value = |option: &Arg| option.get_action().takes_values();
        let is_it = |option: &&Arg| {
            let short = option.get_short().map(|short| format!("-{short}"));
            // `-oFILE` is ours; `-qr` is cargo's.
            long.is_some() && long == option.get_long()
                || short.is_some_and(|short| match takes_value(option) {
                    true => text.starts_with(&short),
                    false => text == short,
                })
        };
        match command.get_arguments().find(is_it) {
            Some(option) => {
                let has_value = if long.is_some() {
                    text.contains('=')
                } else {
                    text.len() > 2
                };
                let follows = takes_value(option) && !has_value && !option.is_require_equals_set();
                ours.push(word);
                ours.extend(follows.then(|| words.next()).flatten());
            }
            None => others.push(word),
        }
    }
    ours.extend(others);
    ours
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_cargo_and_ours_may_be_mixed() {
        for (line, sorted) in [
            (
                "c run --release -o f -p a --rate=9 --full",
                "c run -o f --rate=9 --full --release -p a",
            ),
            ("c run -r --regions p", "c run --regions -r p"),
            ("c test name -of -qr --quiet", "c test -of --quiet name -qr"),
            ("c run -p a -o", "c run -o -p a"),
            ("c install -o f", "c install -o f"),
            ("c", "c"),
        ] {
            let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
            assert_eq!(ours_first(words(line)), words(sorted));
        }
    }
}
