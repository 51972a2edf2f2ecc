//! Dependencies of a package.

use std::path::Path;

/// The repository that this tool was built from has the libraries, each in a folder of its name.
const CLONE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A library that an edit needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    name: &'static str,
    /// What its value has between braces.
    words: Vec<String>,
    /// Features by which its types have the traits of the library of the same name.
    traits: &'static [&'static str],
}

impl Dependency {
    /// On a package of ours, whose library has this `name`: on its folder if this tool's clone is
    /// still there, else on the version of the registry.
    pub(crate) fn of_ours(
        name: &'static str,
        package: &str,
        traits: &'static [&'static str],
    ) -> Dependency {
        let folder = Path::new(CLONE).join(name);
        let mut words = vec![format!("version = \"{}\"", env!("CARGO_PKG_VERSION"))];
        if folder.join("Cargo.toml").is_file() {
            let folder = folder.canonicalize().unwrap_or(folder);
            words = vec![format!("path = {:?}", folder.display().to_string())];
        }
        words.extend((package != name).then(|| format!("package = \"{package}\"")));
        Dependency {
            name,
            words,
            traits,
        }
    }

    pub(crate) fn of_registry(
        name: &'static str,
        version: &str,
        traits: &'static [&'static str],
    ) -> Dependency {
        Dependency {
            name,
            words: vec![format!("version = \"{version}\"")],
            traits,
        }
    }
}

/// The manifest with a dependency in its table, which is made if there is none. As it is if the
/// package depends on it already.
pub(crate) fn with(manifest: &str, dependency: &Dependency) -> String {
    let (named, place) = dependencies(manifest);
    if named.contains(&dependency.name) {
        return manifest.to_owned();
    }
    let mut words = dependency.words.clone();
    let traits = dependency
        .traits
        .iter()
        .filter(|name| named.contains(*name));
    let traits: Vec<String> = traits.map(|name| format!("\"{name}\"")).collect();
    if !traits.is_empty() {
        words.push(format!("features = [{}]", traits.join(", ")));
    }
    let line = format!("{} = {{ {} }}\n", dependency.name, words.join(", "));
    match place {
        // The table's line may lack its end.
        Some(at) if !manifest[..at].ends_with('\n') => format!("{manifest}\n{line}"),
        Some(at) => format!("{}{line}{}", &manifest[..at], &manifest[at..]),
        None => format!("{manifest}\n[dependencies]\n{line}"),
    }
}

/// The libraries that a package depends on, and where the lines of the table begin.
fn dependencies(manifest: &str) -> (Vec<&str>, Option<usize>) {
    let (mut named, mut place, mut at, mut table) = (Vec::new(), None, 0, "");
    for line in manifest.split_inclusive('\n') {
        at += line.len();
        let text = line.split('#').next().unwrap_or_default().trim();
        if text.starts_with('[') {
            table = text;
            if table == "[dependencies]" {
                place = Some(at);
            }
            let one = table.strip_prefix("[dependencies.");
            named.extend(one.and_then(|name| name.strip_suffix(']')));
        } else if table == "[dependencies]" {
            let key = text.split(['=', '.']).next().unwrap_or_default().trim();
            named.push(key.trim_matches('"'));
        }
    }
    (named, place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(manifest: &str) -> String {
        super::with(
            manifest,
            &Dependency::of_registry("a", "1", &["serde", "rayon"]),
        )
    }

    #[test]
    fn a_line_is_added_where_dependencies_are() {
        let manifest = "[package]\nname = \"p\"\n";
        let line = "a = { version = \"1\" }\n";
        let table = "[dependencies] # of ours\nb = \"2\"\n\n[features]\na = []\n";
        let expected = table.replace("ours\n", &format!("ours\n{line}"));
        assert_eq!(
            with(&format!("{manifest}{table}")),
            format!("{manifest}{expected}")
        );
        let new = format!("\n[dependencies]\n{line}");
        assert_eq!(with(manifest), format!("{manifest}{new}"));
        assert_eq!(with("[dependencies]"), format!("[dependencies]\n{line}"));
        // A table of one dependency is no place for another.
        assert!(with("[dependencies.b]\nversion = \"2\"\n").ends_with(&new));
        let other = "[dev-dependencies]\na = \"1\"\n[dependencies]\n";
        assert_eq!(with(other), format!("{other}{line}"));
        // Types have the traits of what the package uses.
        let both = "[dependencies]\nserde.workspace = true\n\n[dependencies.rayon]\n";
        let features = "a = { version = \"1\", features = [\"serde\", \"rayon\"] }\n";
        assert!(with(both).contains(features), "{}", with(both));
        for there in [
            "[dependencies]\na = \"1\"\n",
            "[dependencies]\nb = \"1\"\n\"a\" = { version = \"1\" }\n",
            "[dependencies]\na.workspace = true\n",
            "[dependencies.a]\nversion = \"1\"\n",
        ] {
            assert_eq!(with(there), there);
        }
    }
}
