//! What the program is built from: the user's packages, and crates of the registry that are changed
//! on request.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The registry, as cargo names it and as `[patch]` does.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
/// Where a patch puts crates of the registry, below the workspace.
const FOLDER: &str = "patched";
/// Files that cargo writes beside a crate's own.
const BY_CARGO: [&str; 4] = [
    ".cargo-ok",
    ".cargo_vcs_info.json",
    "Cargo.lock",
    "Cargo.toml.orig",
];

/// A crate of the registry that is copied and built as `[patch]` does it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Patched {
    name: String,
    version: String,
    /// Where cargo has unpacked it.
    pub(crate) from: PathBuf,
    /// Its folder in the copy, relative to what is copied.
    pub(crate) folder: PathBuf,
}

impl Patched {
    /// The crate of this name, or `NAME@VERSION`, for a workspace in this folder of the copy.
    ///
    /// # Errors
    ///
    /// There is none or several, or it is not of the registry.
    pub(crate) fn find(metadata: &Value, asked: &str, workspace: &Path) -> Result<Patched, String> {
        let (name, version) = match asked.split_once('@') {
            Some((name, version)) => (name, Some(version)),
            None => (asked, None),
        };
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let found: Vec<&Value> = packages
            .filter(|it| {
                it["name"] == *name && version.is_none_or(|version| it["version"] == *version)
            })
            .collect();
        let [one] = found[..] else {
            return Err(match found.len() {
                0 => format!("the program does not depend on {asked}"),
                _ => format!("several versions of {name}: say which, as {name}@1.0.0"),
            });
        };
        if one["source"] != *REGISTRY {
            return Err(format!("{name} is not from crates.io"));
        }
        let manifest = one["manifest_path"].as_str().map(Path::new);
        let from = manifest.and_then(Path::parent);
        let from = from.ok_or("cargo metadata has no manifest")?.to_owned();
        let version = one["version"].as_str().unwrap_or_default().to_owned();
        Ok(Patched {
            folder: workspace.join(FOLDER).join(format!("{name}-{version}")),
            name: name.to_owned(),
            version,
            from,
        })
    }

    /// Its files, relative to its folder.
    ///
    /// # Errors
    ///
    /// A folder cannot be read.
    pub(crate) fn files(&self) -> io::Result<Vec<PathBuf>> {
        let (mut found, mut folders) = (Vec::new(), vec![self.from.clone()]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                let path = entry.path();
                let is_own =
                    folder != self.from || !BY_CARGO.iter().any(|it| entry.file_name() == **it);
                match entry.file_type()?.is_dir() {
                    true => folders.push(path),
                    false if is_own => {
                        found.extend(path.strip_prefix(&self.from).ok().map(Path::to_owned));
                    }
                    false => {}
                }
            }
        }
        Ok(found)
    }

    /// The options by which cargo takes the copy in `tree`.
    pub(crate) fn options(&self, tree: &Path) -> [OsString; 4] {
        let folder = tree.join(&self.folder).display().to_string();
        // Another version of the same name may be in the graph, too, so the key is not the name.
        let key = format!("{}-{}", self.name, self.version).replace(['.', '+'], "-");
        let member = |name: &str, value: &str| {
            OsString::from(format!("patch.crates-io.{key}.{name}={value:?}"))
        };
        let name = "--config".to_owned();
        [
            name.clone().into(),
            member("package", &self.name),
            name.into(),
            member("path", &folder),
        ]
    }

    /// The manifest of a workspace with its line.
    pub(crate) fn add_to(&self, manifest: &str) -> String {
        const TABLE: &str = "[patch.crates-io]";
        let path = format!("{FOLDER}/{}-{}", self.name, self.version);
        let line = format!("{} = {{ path = {path:?} }}\n", self.name);
        let mut at = 0;
        for text in manifest.split_inclusive('\n') {
            at += text.len();
            if text.split('#').next().unwrap_or_default().trim() == TABLE && text.ends_with('\n') {
                return format!("{}{line}{}", &manifest[..at], &manifest[at..]);
            }
        }
        let end = if manifest.ends_with('\n') { "" } else { "\n" };
        format!("{manifest}{end}\n{TABLE}\n{line}")
    }
}

/// The manifests of the user's packages that a package is built from, itself among them, by its id.
pub(crate) fn built_from(metadata: &Value, id: &str) -> BTreeSet<PathBuf> {
    let nodes = metadata["resolve"]["nodes"].as_array();
    let of = |id: &str| nodes?.iter().find(|node| node["id"] == *id);
    let (mut seen, mut todo) = (BTreeSet::new(), vec![id]);
    while let Some(id) = todo.pop() {
        if !seen.insert(id) {
            continue;
        }
        let is_built = |dependency: &&Value| {
            let kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
            kinds.into_iter().any(|kind| kind["kind"].is_null())
        };
        let dependencies = of(id).and_then(|node| node["deps"].as_array());
        let dependencies = dependencies.into_iter().flatten().filter(is_built);
        todo.extend(dependencies.filter_map(|it| it["pkg"].as_str()));
    }
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .filter(|it| {
            it["source"].is_null() && it["id"].as_str().is_some_and(|id| seen.contains(id))
        })
        .filter_map(|it| it["manifest_path"].as_str().map(PathBuf::from))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata() -> Value {
        let package = |name: &str, version: &str, source: Option<&str>| {
            json!({"name": name, "version": version, "id": format!("{name}@{version}"),
                "source": source, "manifest_path": format!("/c/{name}-{version}/Cargo.toml")})
        };
        let node = |id: &str, deps: &[(&str, Value)]| {
            let deps = deps
                .iter()
                .map(|(pkg, kind)| json!({"pkg": pkg, "dep_kinds": [{"kind": kind}]}));
            json!({"id": id, "deps": deps.collect::<Vec<_>>()})
        };
        let dev = json!("dev");
        json!({
            "packages": [
                package("program", "1.0.0", None), package("own", "1.0.0", None),
                package("helper", "1.0.0", None), package("a", "1.0.0", Some(REGISTRY)),
                package("a", "2.0.0", Some(REGISTRY)), package("b", "0.1.0", Some(REGISTRY)),
                package("g", "1.0.0", Some("git+https://example.org/g")),
            ],
            "resolve": {"nodes": [
                node("program@1.0.0", &[("own@1.0.0", Value::Null), ("helper@1.0.0", dev)]),
                node("own@1.0.0", &[("b@0.1.0", Value::Null)]),
            ]},
        })
    }

    #[test]
    fn the_program_is_built_from_what_it_depends_on() {
        let manifests = built_from(&metadata(), "program@1.0.0");
        let expected = ["/c/own-1.0.0/Cargo.toml", "/c/program-1.0.0/Cargo.toml"];
        assert!(
            manifests.iter().eq(expected.map(Path::new)),
            "{manifests:?}"
        );
    }

    #[test]
    fn crates_are_found_by_name_and_version() {
        let find = |asked: &str| Patched::find(&metadata(), asked, Path::new("w"));
        let b = find("b").unwrap();
        assert_eq!(b.folder, Path::new("w/patched/b-0.1.0"));
        assert_eq!(b.from, Path::new("/c/b-0.1.0"));
        let [_, package, _, path] = b.options(Path::new("/t"));
        assert_eq!(package, "patch.crates-io.b-0-1-0.package=\"b\"");
        assert_eq!(
            path,
            "patch.crates-io.b-0-1-0.path=\"/t/w/patched/b-0.1.0\""
        );
        assert_eq!(find("a@2.0.0").unwrap().version, "2.0.0");
        assert!(find("a").unwrap_err().starts_with("several versions"));
        assert_eq!(find("c").unwrap_err(), "the program does not depend on c");
        assert_eq!(
            find("a@3.0.0").unwrap_err(),
            "the program does not depend on a@3.0.0"
        );
        assert_eq!(find("g").unwrap_err(), "g is not from crates.io");
        assert_eq!(find("own").unwrap_err(), "own is not from crates.io");
    }

    #[test]
    fn a_manifest_gets_a_line() {
        let b = Patched::find(&metadata(), "b", Path::new("")).unwrap();
        let line = "b = { path = \"patched/b-0.1.0\" }\n";
        assert_eq!(b.add_to("[a]"), format!("[a]\n\n[patch.crates-io]\n{line}"));
        let table = "[patch.crates-io] # ours\nc = \"1\"\n";
        let expected = table.replace("ours\n", &format!("ours\n{line}"));
        assert_eq!(b.add_to(table), expected);
    }
}
