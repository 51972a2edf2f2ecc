//! Dependencies of a package.

use std::path::Path;

/// The repository that this tool was built from has the libraries, each in a folder of its name.
const CLONE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A library that an edit needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    name: &'static str,
    value: String,
}

impl Dependency {
    /// On a package of ours, whose library has this `name`: on its folder if this tool's clone is
    /// still there, else on the version of the registry.
    pub(crate) fn of_ours(name: &'static str, package: &str) -> Dependency {
        let folder = Path::new(CLONE).join(name);
        let mut words = vec![format!("version = \"{}\"", env!("CARGO_PKG_VERSION"))];
        if folder.join("Cargo.toml").is_file() {
            let folder = folder.canonicalize().unwrap_or(folder);
            words = vec![format!("path = {:?}", folder.display().to_string())];
        }
        words.extend((package != name).then(|| format!("package = \"{package}\"")));
        let value = format!("{{ {} }}", words.join(", "));
        Dependency { name, value }
    }

    pub(crate) fn of_registry(name: &'static str, version: &str) -> Dependency {
        let value = format!("\"{version}\"");
        Dependency { name, value }
    }
}

/// The manifest with a dependency in its table, which is made if there is none. As it is if the
/// package depends on it already.
pub(crate) fn with(manifest: &str, dependency: &Dependency) -> String {
    let Dependency { name, value } = dependency;
    let mut at = 0;
    let (mut table, mut place) = ("", None);
    for line in manifest.split_inclusive('\n') {
        let text = line.split('#').next().unwrap_or_default().trim();
        let key = text.split(['=', '.']).next().unwrap_or_default().trim();
        at += line.len();
        if text.starts_with('[') {
            table = text;
            if table == "[dependencies]" {
                place = Some(at);
            }
            if table == format!("[dependencies.{name}]") {
                return manifest.to_owned();
            }
        } else if table == "[dependencies]" && key.trim_matches('"') == *name {
            return manifest.to_owned();
        }
    }
    let line = format!("{name} = {value}\n");
    match place {
        // The table's line may lack its end.
        Some(at) if !manifest[..at].ends_with('\n') => format!("{manifest}\n{line}"),
        Some(at) => format!("{}{line}{}", &manifest[..at], &manifest[at..]),
        None => format!("{manifest}\n[dependencies]\n{line}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(manifest: &str) -> String {
        let (name, value) = ("a", "\"1\"".to_owned());
        super::with(manifest, &Dependency { name, value })
    }

    #[test]
    fn a_line_is_added_where_dependencies_are() {
        let manifest = "[package]\nname = \"p\"\n";
        let table = "[dependencies] # of ours\nb = \"2\"\n\n[features]\na = []\n";
        assert_eq!(
            with(&format!("{manifest}{table}")),
            format!("{manifest}{}", table.replace("ours\n", "ours\na = \"1\"\n"))
        );
        assert_eq!(
            with(manifest),
            format!("{manifest}\n[dependencies]\na = \"1\"\n")
        );
        assert_eq!(with("[dependencies]"), "[dependencies]\na = \"1\"\n");
        // A table of one dependency is no place for another.
        assert!(
            with("[dependencies.b]\nversion = \"2\"\n").ends_with("\n[dependencies]\na = \"1\"\n")
        );
        for there in [
            "[dependencies]\na = \"1\"\n",
            "[dependencies]\nb = \"1\"\n\"a\" = { version = \"1\" }\n",
            "[dependencies]\na.workspace = true\n",
            "[dependencies.a]\nversion = \"1\"\n",
        ] {
            assert_eq!(with(there), there);
        }
        let other = "[dev-dependencies]\na = \"1\"\n[dependencies]\n";
        assert!(with(other).ends_with("[dependencies]\na = \"1\"\n"));
    }
}
