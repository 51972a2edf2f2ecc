//! Changes of source that a machine can make.
//!
//! An edit replaces ranges of files, so that comments and formatting stay. Each kind is one file:
//! a function from what the package has to edits. Whether an edit compiles, the compiler decides;
//! whether it pays off, the clock.

use std::ops::Range;
use std::path::{Path, PathBuf};

use proc_macro2::Span;
use syn::spanned::Spanned;

pub(crate) use maps::Library;

mod allocator;
pub(crate) mod manifest;
mod maps;

/// Names an edit, also of sources that have been changed otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Allocator,
    /// All maps and sets of the package: they are given from file to file.
    Maps(Library),
}

/// All edits that can be made in the package of these sources, whose program has the crate root
/// `root`, by kind, each in one file; that of the allocator first.
pub(crate) fn all(root: &Path, sources: &[Source]) -> Vec<(Kind, Vec<Edit>)> {
    let root = sources.iter().find(|source| source.path == root);
    let allocator = root.map(|root| (Kind::Allocator, vec![allocator::edit(root, sources)]));
    let maps = Library::ALL.map(|library| {
        let edits = sources
            .iter()
            .filter_map(|source| maps::edit(source, library));
        (Kind::Maps(library), edits.collect::<Vec<_>>())
    });
    let maps = maps.into_iter().filter(|(_, edits)| !edits.is_empty());
    allocator.into_iter().chain(maps).collect()
}

/// What edits of one kind do, in one line.
pub(crate) fn describe(kind: &Kind, edits: &[Edit]) -> String {
    let mut names: Vec<&str> = edits
        .iter()
        .flat_map(|it| &it.names)
        .map(|it| &**it)
        .collect();
    names.sort_unstable();
    names.dedup();
    let names = names.join(" and ");
    let place = match edits {
        [one] => one.path.display().to_string(),
        _ => format!("{} files", edits.len()),
    };
    match kind {
        Kind::Allocator => names,
        Kind::Maps(Library::CTree) => {
            format!("{} for {names} in {place}", names.replace("BTree", "CTree"))
        }
        Kind::Maps(Library::Hashbrown) => {
            format!("hashbrown's {names} in {place}: a faster hash, not for keys of strangers")
        }
    }
}

/// A range of a file, and what takes its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub(crate) range: Range<usize>,
    pub(crate) text: String,
}

/// What a change does in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The types that it is about, or all that it does.
    pub(crate) names: Vec<String>,
    /// The file, relative to the copied folder.
    pub(crate) path: PathBuf,
    pub(crate) replacements: Vec<Replacement>,
    /// What the package then depends on.
    pub(crate) needs: manifest::Dependency,
}

impl Edit {
    /// The text of its file with what it makes of it.
    pub(crate) fn apply(&self, text: &str) -> String {
        let mut all: Vec<&Replacement> = self.replacements.iter().collect();
        all.sort_by_key(|it| it.range.start);
        let (mut out, mut at) = (String::new(), 0);
        for it in all {
            out.push_str(text.get(at..it.range.start).unwrap_or_default());
            out.push_str(&it.text);
            at = it.range.end;
        }
        out + text.get(at..).unwrap_or_default()
    }
}

/// A source file of the package.
pub(crate) struct Source {
    /// Relative to the copied folder.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) syntax: syn::File,
}

impl Source {
    /// `None` of what is no Rust: the compiler will say so, if it is asked.
    pub(crate) fn parse(path: PathBuf, text: String) -> Option<Source> {
        let syntax = syn::parse_file(&text).ok()?;
        Some(Source { path, text, syntax })
    }

    /// The bytes of a part of it.
    fn range(&self, part: &impl Spanned) -> Range<usize> {
        self.bytes(part.span())
    }

    fn bytes(&self, span: Span) -> Range<usize> {
        let range = span.byte_range();
        // The parser leaves a byte order mark and a first line `#!` out.
        let skipped = self.text.len() - self.parsed().len();
        range.start + skipped..range.end + skipped
    }

    /// What the parser has seen.
    fn parsed(&self) -> &str {
        let text = self.text.strip_prefix('\u{feff}').unwrap_or(&self.text);
        match &self.syntax.shebang {
            Some(line) => text.strip_prefix(&**line).unwrap_or(text),
            None => text,
        }
    }
}

/// Whether a path has these words.
fn is_path(path: &syn::Path, words: &[&str]) -> bool {
    let names = path
        .segments
        .iter()
        .map(|segment| segment.ident.to_string());
    names.eq(words.iter().map(|word| (*word).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_of_the_whole_file() {
        for head in ["", "\u{feff}", "#!/usr/bin/env run\n", "\u{feff}#!/x\n"] {
            let text = format!("{head}// ä\nfn main() {{}}\n");
            let source = Source::parse("a".into(), text.clone()).unwrap();
            let range = source.range(&source.syntax.items[0]);
            assert_eq!(&text[range], "fn main() {}", "{head:?}");
        }
    }
}
