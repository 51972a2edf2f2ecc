//! A copy of a cargo package and its path dependencies, in which edits are made and built. The
//! user's own files are read only.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::commands::{error_lines, features, first_error, git, output, split, whole_output};
use super::dependencies::{Patched, built_from};
use super::edits::{self, Asked, Edit, Kind, Source, manifest};

/// Ends a manifest that has no such table: cargo would take a workspace around for the copy's.
const BOUNDARY: &str = "\n[workspace]\n";
/// Folders that are no source, where git does not say.
const NO_SOURCE: [&str; 3] = ["target", ".git", "node_modules"];

/// What a change is made of.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Edit(Kind),
    /// A patch of the user's, which `git apply` takes.
    Patch(PathBuf),
}

/// A kind of edit, a file, and the site's name there.
type Site = (Kind, PathBuf, String);

/// A package that is built with changes.
#[derive(Debug)]
pub(crate) struct Package {
    cargo: OsString,
    /// The options of cargo, for the copy.
    words: Vec<OsString>,
    /// What is copied: the user's files below this folder.
    root: PathBuf,
    /// The folder that patches are relative to: of the repository, or else of the workspace.
    top: PathBuf,
    /// Where cargo is started, relative to `root`.
    here: PathBuf,
    /// The user's files that are copied, relative to `root`.
    files: BTreeSet<PathBuf>,
    /// Files of crates of the registry: where they are in the copy, and where cargo has them.
    foreign: BTreeMap<PathBuf, PathBuf>,
    /// These crates.
    patched: Vec<Patched>,
    /// The workspace's manifest, relative to `root`.
    workspace: PathBuf,
    /// Manifests of the packages that are changed, relative to `root`.
    manifests: BTreeSet<PathBuf>,
    /// Has the copy, what is built, and the programs.
    folder: PathBuf,
    /// Of the program that is built.
    program: Target,
    /// The manifest that the copy ends by [`BOUNDARY`], relative to `root`.
    bounded: Option<PathBuf>,
    /// Files that were written for the latest build, other than those of the user's.
    written: BTreeSet<PathBuf>,
    /// What a profile asks for.
    asked: Asked,
    /// Sites of edits that the compiler refuses.
    refused: BTreeSet<Site>,
    /// Locked: two searches would build in one folder.
    _lock: File,
}

/// A site of an edit that was made.
struct Written {
    path: PathBuf,
    site: String,
    /// From 1.
    lines: Range<usize>,
    /// Whether there are probes.
    has_probe: bool,
}

/// A program of the package.
#[derive(Clone, Debug, Default)]
struct Target {
    /// Its crate root, and the manifest of its package, relative to `root`.
    source: PathBuf,
    manifest: PathBuf,
    /// As cargo calls it.
    package: String,
    name: String,
}

impl Package {
    /// Copies what cargo, with these options, builds from, with the crates of the registry that are
    /// `asked_for`, and builds it as it is; the program.
    ///
    /// # Errors
    ///
    /// There is no package, it does not build, or not to one program; a crate is not there.
    pub(crate) fn copy(
        cargo: OsString,
        words: &[OsString],
        asked_for: &[String],
    ) -> Result<(Package, PathBuf), String> {
        let here =
            std::env::current_dir().map_err(|error| format!("no current folder: {error}"))?;
        let (metadata_words, words, manifest) = split(words, &here);
        let asked = |more: &[&str]| -> Result<Value, String> {
            let mut command = Command::new(&cargo);
            command.args(["metadata", "--format-version=1"]).args(more);
            command.args(&metadata_words);
            serde_json::from_slice(&output(&mut command)?.stdout)
                .map_err(|error| format!("cargo metadata: {error}"))
        };
        let path = |value: &Value| value.as_str().map(PathBuf::from);
        let workspace = path(&asked(&["--no-deps"])?["workspace_root"]);
        let workspace = workspace.ok_or("cargo metadata has no workspace")?;
        let lock = workspace.join("Cargo.lock");
        let had_lock = lock.exists();
        let metadata = asked(&[])?;
        if !had_lock {
            // Cargo has written one, which is the user's to want.
            removed(&lock).map_err(|error| format!("cannot remove {}: {error}", lock.display()))?;
        }
        let target = path(&metadata["target_directory"]).ok_or("cargo metadata has no target")?;
        let folders = metadata["packages"].as_array().into_iter().flatten();
        let folders: BTreeSet<PathBuf> = { folders.filter(|it| it["source"].is_null()) }
            .filter_map(|it| Some(path(&it["manifest_path"])?.parent()?.to_owned()))
            .chain([workspace.clone()])
            .collect();
        let top = repository(&workspace).unwrap_or_else(|| workspace.clone());
        let all = folders.iter().chain([&top]).cloned().collect();
        let root = common(&all).ok_or("the packages have no folder in common")?;
        let mut files = BTreeSet::new();
        for folder in &folders {
            let listed = listed(folder, &target);
            let listed = listed.map_err(|error| format!("{}: {error}", folder.display()))?;
            files.extend(
                listed
                    .iter()
                    .filter_map(|path| Some(path.strip_prefix(&root).ok()?.to_owned())),
            );
        }
        let start = manifest.as_deref().and_then(Path::parent).unwrap_or(&here);
        let start = start.canonicalize().unwrap_or_else(|_| start.to_owned());
        let start = start
            .strip_prefix(&root)
            .or_else(|_| workspace.strip_prefix(&root));
        let folder = target.join("ccscope-improve");
        let lock = fs::create_dir_all(&folder).and_then(|()| File::create(folder.join("lock")));
        let lock = lock.map_err(|error| format!("cannot write {}: {error}", folder.display()))?;
        if lock.try_lock().is_err() {
            let folder = folder.display();
            return Err(format!("another search is in progress in {folder}"));
        }
        let inner = workspace.strip_prefix(&root).unwrap_or(Path::new(""));
        let (mut patched, mut foreign) = (Vec::new(), BTreeMap::new());
        for asked in asked_for {
            let one = Patched::find(&metadata, asked, inner)?;
            let files = one.files();
            let files = files.map_err(|error| format!("{}: {error}", one.from.display()))?;
            foreign.extend(
                files
                    .iter()
                    .map(|file| (one.folder.join(file), one.from.join(file))),
            );
            patched.push(one);
        }
        let mut package = Package {
            cargo,
            words,
            top,
            here: start.unwrap_or(Path::new("")).to_owned(),
            workspace: inner.join("Cargo.toml"),
            root,
            files,
            foreign,
            patched,
            manifests: BTreeSet::new(),
            folder,
            program: Target::default(),
            bounded: None,
            written: BTreeSet::new(),
            asked: Asked::default(),
            refused: BTreeSet::new(),
            _lock: lock,
        };
        let manifest = workspace.join("Cargo.toml");
        let text = fs::read_to_string(&manifest);
        let text = text.map_err(|error| format!("cannot read {}: {error}", manifest.display()))?;
        let mut lines = text.lines().map(str::trim);
        if !lines.any(|line| line.starts_with("[workspace")) {
            package.bounded = Some(package.workspace.clone());
        }
        package.copy_files()?;
        let program = package.build_program("as-is", &[])?;
        package.manifests = package.changed(&metadata);
        Ok((package, program))
    }

    /// The manifests of packages whose sources may be changed: what the program is built from, as
    /// far as a patch reaches it.
    fn changed(&self, metadata: &Value) -> BTreeSet<PathBuf> {
        let own = self.root.join(&self.program.manifest);
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let is_own = |it: &&Value| it["manifest_path"].as_str().map(Path::new) == Some(&*own);
        let id = packages.into_iter().find(is_own);
        let id = id.and_then(|it| it["id"].as_str()).unwrap_or_default();
        let all = built_from(metadata, id).into_iter();
        let reached = all.filter(|path| path.starts_with(&self.top));
        reached
            .filter_map(|path| Some(path.strip_prefix(&self.root).ok()?.to_owned()))
            .chain(self.patched.iter().map(|it| it.folder.join("Cargo.toml")))
            .chain([self.program.manifest.clone()])
            .collect()
    }

    /// The manifest of the package that has a file.
    fn manifest_of(&self, file: &Path) -> &Path {
        let of = |manifest: &&PathBuf| manifest.parent().is_some_and(|it| file.starts_with(it));
        let all = self.manifests.iter().filter(of);
        all.max_by_key(|it| it.components().count())
            .unwrap_or(&self.program.manifest)
    }

    fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    fn copy_files(&self) -> Result<(), String> {
        let tree = self.tree();
        let failed =
            |path: &Path, error: io::Error| format!("cannot copy {}: {error}", path.display());
        match fs::remove_dir_all(&tree) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(format!("cannot empty {}: {error}", tree.display()));
            }
            _ => {}
        }
        for file in self.files.iter().chain(self.foreign.keys()) {
            self.copy_one(file).map_err(|error| failed(file, error))?;
        }
        fs::create_dir_all(self.folder.join("programs")).map_err(|error| failed(&tree, error))
    }

    /// Where a file of the copy comes from.
    fn original(&self, file: &Path) -> PathBuf {
        let foreign = self.foreign.get(file).cloned();
        foreign.unwrap_or_else(|| self.root.join(file))
    }

    /// Makes a file of the copy as it was.
    fn copy_one(&self, file: &Path) -> io::Result<()> {
        let to = self.tree().join(file);
        copy_file(&self.original(file), &to)?;
        if self.bounded.as_deref() == Some(file) {
            fs::write(&to, fs::read_to_string(&to)? + BOUNDARY)?;
        }
        Ok(())
    }

    /// The edits that can be made in the files as they are.
    pub(crate) fn possible(&self) -> Vec<(Kind, Vec<Edit>)> {
        self.edits(|path| self.original(path))
    }

    /// Builds the program with changes of which the last one has sites: those that the compiler
    /// refuses are left out from now on.
    ///
    /// # Errors
    ///
    /// Why it does not build without them, or that none is left.
    pub(crate) fn fit(&mut self, name: &str, changes: &[&Change]) -> Result<PathBuf, String> {
        let Some(Change::Edit(kind)) = changes.last() else {
            return self.build(name, changes);
        };
        let mut is_probing = true;
        loop {
            let sites = self.write_with(changes, is_probing)?;
            let has_probes = sites.iter().any(|site| site.has_probe);
            let text = match self.cargo_build(changes) {
                Ok(_) if is_probing && has_probes => {
                    is_probing = false;
                    continue;
                }
                Ok(output) => return self.keep_program(name, &output),
                Err(text) => text,
            };
            let hit = [false, true].map(|all| {
                let lines = error_lines(&text, all);
                let is_hit = |site: &&Written| {
                    let is_in =
                        |(file, line)| site.path.ends_with(file) && site.lines.contains(line);
                    lines.iter().any(|(file, line)| is_in((file, line)))
                };
                sites.iter().filter(is_hit).collect::<Vec<_>>()
            });
            let hit = hit.iter().find(|hit| !hit.is_empty());
            match hit {
                Some(hit) if hit.len() < sites.len() => {
                    let names = hit
                        .iter()
                        .map(|it| (kind.clone(), it.path.clone(), it.site.clone()));
                    self.refused.extend(names);
                }
                _ => return Err(first_error(&text)),
            }
        }
    }

    /// The edits of the packages, whose files are at these places; what does not parse has none.
    fn edits(&self, place: impl Fn(&Path) -> PathBuf) -> Vec<(Kind, Vec<Edit>)> {
        let folders = self.manifests.iter().filter_map(|it| it.parent());
        let folders: Vec<&Path> = folders.collect();
        let is_built = |path: &Path, folder: &&&Path| {
            let inner = path.strip_prefix(folder).unwrap_or(Path::new(""));
            let first = inner.iter().next().and_then(OsStr::to_str);
            !matches!(first, None | Some("tests" | "benches" | "examples"))
        };
        let is_source = |path: &&PathBuf| {
            let is_rust = path.extension() == Some(OsStr::new("rs"));
            // `git apply` changes no link.
            let file = fs::symlink_metadata(self.original(path));
            let mut owners = folders.iter().filter(|folder| path.starts_with(folder));
            let is_of_package = *self.program.source == ***path
                || owners
                    .by_ref()
                    .max_by_key(|it| it.components().count())
                    .is_some_and(|folder| is_built(path, &folder));
            is_rust && is_of_package && file.is_ok_and(|it| it.is_file())
        };
        let parse = |path: &PathBuf| {
            // One that is no text is no source.
            let text = fs::read_to_string(place(path)).ok()?;
            Source::parse(path.clone(), text)
        };
        let all = self.files.iter().chain(self.foreign.keys());
        let sources: Vec<Source> = all.filter(is_source).filter_map(parse).collect();
        let mut all = edits::all(&self.program.source, &sources, &self.asked);
        for (kind, edits) in &mut all {
            let is_refused = |edit: &Edit| {
                edit.site.as_ref().is_some_and(|site| {
                    let site = (kind.clone(), edit.path.clone(), site.clone());
                    self.refused.contains(&site)
                })
            };
            edits.retain(|edit| !is_refused(edit));
        }
        all
    }

    /// Makes what a profile asks for possible edits.
    pub(crate) fn offer(&mut self, asked: Asked) {
        self.asked = asked;
    }

    /// The program's name.
    pub(crate) fn name(&self) -> String {
        self.program.name.clone()
    }

    /// The folder of the program's package, of the user's own files.
    pub(crate) fn manifest_folder(&self) -> PathBuf {
        let manifest = self.root.join(&self.program.manifest);
        manifest.parent().unwrap_or(&self.root).to_owned()
    }

    /// Builds the program with changes, and keeps it under a name.
    ///
    /// # Errors
    ///
    /// Why it does not build.
    pub(crate) fn build(&mut self, name: &str, changes: &[&Change]) -> Result<PathBuf, String> {
        self.write(changes)?;
        self.build_program(name, changes)
    }

    /// Makes the copy's files those of the user with changes. The sites of the last one, and the
    /// lines that they have become.
    fn write(&mut self, changes: &[&Change]) -> Result<Vec<Written>, String> {
        self.write_with(changes, false)
    }

    /// As [`Package::write`], if wanted with the probes of the last one: those before it have
    /// passed, and sites may be named by what is written.
    fn write_with(&mut self, changes: &[&Change], probes: bool) -> Result<Vec<Written>, String> {
        let mut sites = Vec::new();
        let tree = self.tree();
        let failed =
            |path: &Path, error: io::Error| format!("cannot write {}: {error}", path.display());
        for path in std::mem::take(&mut self.written) {
            let is_copied = self.files.contains(&path) || self.foreign.contains_key(&path);
            let restored = match is_copied {
                true => self.copy_one(&path),
                // A patch has made it, and another may have removed it.
                false => removed(&tree.join(&path)),
            };
            restored.map_err(|error| failed(&path, error))?;
        }
        // Patches first: they are for the files as they are, while edits go by syntax.
        for change in changes {
            if let Change::Patch(patch) = change {
                self.patch(patch)?;
            }
        }
        let rewrite = |path: &Path, new: &dyn Fn(String) -> String| {
            let to = tree.join(path);
            let text = fs::read_to_string(&to).map_err(|error| failed(&to, error))?;
            fs::write(&to, new(text)).map_err(|error| failed(&to, error))
        };
        for (number, change) in changes.iter().enumerate() {
            let Change::Edit(asked) = change else {
                continue;
            };
            let is_last = number + 1 == changes.len();
            // Where another change has made it needless it is left out.
            let all = self.edits(|path| tree.join(path)).into_iter();
            let edits: Vec<Edit> = all
                .filter(|(kind, _)| kind == asked)
                .flat_map(|(_, edits)| edits)
                .collect();
            sites.clear();
            for whole in edits::merged(&edits) {
                let path = &whole.path;
                let text = fs::read_to_string(tree.join(path));
                let text = text.map_err(|error| failed(path, error))?;
                let own = edits.iter().filter(|it| it.path == *path);
                sites.extend(own.filter_map(|it| {
                    Some(Written {
                        path: path.clone(),
                        site: it.site.clone()?,
                        lines: whole.lines_of(it, &text),
                        has_probe: !it.probes.is_empty(),
                    })
                }));
                let made = if probes && is_last {
                    whole.probing()
                } else {
                    whole.clone()
                };
                rewrite(path, &|text| made.apply(&text))?;
                self.written.insert(path.clone());
            }
            for edit in &edits {
                let Some(needs) = &edit.needs else { continue };
                let manifest = self.manifest_of(&edit.path).to_owned();
                rewrite(&manifest, &|text| manifest::with(&text, needs))?;
                self.written.insert(manifest);
            }
        }
        Ok(sites)
    }

    /// Applies a patch of the user's, whose paths are relative to the repository.
    fn patch(&mut self, patch: &Path) -> Result<(), String> {
        let inner = self.top.strip_prefix(&self.root).unwrap_or(Path::new(""));
        let inner = inner.to_owned();
        let apply = |options: &[&str]| {
            let mut git = git();
            // The copy may lie in a repository, which ignores it.
            git.env("GIT_CEILING_DIRECTORIES", &self.folder);
            git.current_dir(self.tree().join(&inner));
            output(git.arg("apply").args(options).arg(patch))
                .map_err(|why| format!("does not apply: {why}"))
        };
        let listed = apply(&["--numstat", "-z"])?.stdout;
        // It refuses paths that lead out of the copy, and then changes nothing.
        apply(&[])?;
        for entry in String::from_utf8_lossy(&listed).split('\0') {
            if let Some(path) = entry.split('\t').nth(2) {
                self.written.insert(inner.join(path));
            }
        }
        // What it has removed or given another name.
        let tree = self.tree();
        let is_gone = |path: &&PathBuf| fs::symlink_metadata(tree.join(path)).is_err();
        let gone: Vec<PathBuf> = self.files.iter().filter(is_gone).cloned().collect();
        self.written.extend(gone);
        Ok(())
    }

    fn build_program(&mut self, name: &str, changes: &[&Change]) -> Result<PathBuf, String> {
        let output = self
            .cargo_build(changes)
            .map_err(|text| first_error(&text))?;
        self.keep_program(name, &output)
    }

    /// Builds; what cargo prints, also of a failure.
    fn cargo_build(&self, changes: &[&Change]) -> Result<Output, String> {
        let mut command = Command::new(&self.cargo);
        command.args([
            "build",
            "--message-format=json-render-diagnostics",
            "--quiet",
        ]);
        command.args(&self.words);
        command.args(self.patched.iter().flat_map(|it| it.options(&self.tree())));
        command.arg("--target-dir").arg(self.folder.join("build"));
        // An edit may need a package more.
        let may_change =
            |word: &&OsString| !changes.is_empty() && (*word == "--locked" || *word == "--frozen");
        if self.words.iter().any(|word| may_change(&word)) {
            return Err("--locked and --frozen leave no room for another package".to_owned());
        }
        command.current_dir(self.tree().join(&self.here));
        whole_output(&mut command)
    }

    /// Keeps the program that was built under a name.
    fn keep_program(&mut self, name: &str, output: &Output) -> Result<PathBuf, String> {
        let mut found = BTreeMap::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Ok(message) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let kinds = message["target"]["kind"].as_array().into_iter().flatten();
            let is_program = kinds
                .into_iter()
                .any(|kind| kind == "bin" || kind == "example");
            let executable = message["executable"].as_str().filter(|_| is_program);
            if let Some(executable) = executable {
                found.insert(executable.to_owned(), message.clone());
            }
        }
        let (executable, message) = match found.len() {
            1 => found.pop_first().expect("there is one"),
            0 => return Err("cargo builds no program".to_owned()),
            _ => return Err("cargo builds several programs: name one by --bin".to_owned()),
        };
        let tree = self.tree();
        let inside = |value: &Value| {
            let path = Path::new(value.as_str()?).canonicalize().ok()?;
            Some(
                path.strip_prefix(tree.canonicalize().ok()?)
                    .ok()?
                    .to_owned(),
            )
        };
        self.program = Target {
            source: inside(&message["target"]["src_path"])
                .ok_or("the program's source is not copied")?,
            manifest: inside(&message["manifest_path"])
                .ok_or("the program's package is not copied")?,
            name: message["target"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            package: message["package_id"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        };
        let program = self.folder.join("programs").join(name);
        // A new file: the old one may still run.
        drop(fs::remove_file(&program));
        let copied = fs::copy(&executable, &program);
        copied.map_err(|error| format!("cannot copy {executable}: {error}"))?;
        Ok(program)
    }

    /// Runs the package's tests with changes.
    ///
    /// # Errors
    ///
    /// The first line that tells of a failure.
    pub(crate) fn test(&mut self, changes: &[&Change]) -> Result<(), String> {
        self.write(changes)?;
        let mut command = Command::new(&self.cargo);
        command.args(["test", "--quiet", "--package", &self.program.package]);
        command.args(features(&self.words));
        command.args(self.patched.iter().flat_map(|it| it.options(&self.tree())));
        command.arg("--target-dir").arg(self.folder.join("build"));
        command.current_dir(self.tree().join(&self.here));
        output(&mut command).map(|_| ())
    }

    /// How many lines changes add and remove, without those of the lock file.
    ///
    /// # Errors
    ///
    /// There is no git, or no room.
    pub(crate) fn lines(&mut self, changes: &[&Change]) -> Result<usize, String> {
        self.write(changes)?;
        let patch = self.diff(&self.written, true)?;
        let is_line = |line: &&[u8]| {
            let (marks, heads) = ([b'+', b'-'], [&b"+++ "[..], b"--- "]);
            let is_head = heads.iter().any(|it| line.starts_with(it));
            marks.contains(line.first().unwrap_or(&b' ')) && !is_head
        };
        Ok(patch.split(|&byte| byte == b'\n').filter(is_line).count())
    }

    /// A patch with changes that `git apply` takes in [`Package::top`].
    ///
    /// # Errors
    ///
    /// There is no git, or no room.
    pub(crate) fn patch_of(&mut self, changes: &[&Change]) -> Result<Vec<u8>, String> {
        self.write(changes)?;
        // This brings the lock file up to date.
        let mut command = Command::new(&self.cargo);
        command.args(["metadata", "--format-version=1"]);
        let is_changed =
            |it: &&Patched| self.written.iter().any(|path| path.starts_with(&it.folder));
        let changed: Vec<Patched> = self.patched.iter().filter(is_changed).cloned().collect();
        command.args(changed.iter().flat_map(|it| it.options(&self.tree())));
        command.current_dir(self.tree().join(&self.here));
        output(&mut command)?;
        let mut paths = self.written.clone();
        paths.extend(self.lock());
        for one in &changed {
            // All of it is new to the user.
            let all = self.foreign.keys();
            paths.extend(all.filter(|path| path.starts_with(&one.folder)).cloned());
            paths.insert(self.workspace.clone());
            let to = self.tree().join(&self.workspace);
            let text = fs::read_to_string(&to).map(|text| one.add_to(&text));
            let written = text.and_then(|text| fs::write(&to, text));
            written.map_err(|error| format!("cannot write {}: {error}", to.display()))?;
            self.written.insert(self.workspace.clone());
        }
        self.diff(&paths, false)
    }

    /// What differs between the copy and the files as they were; of the registry's, the user has
    /// none, if they are not `known`.
    fn diff(&self, paths: &BTreeSet<PathBuf>, known: bool) -> Result<Vec<u8>, String> {
        let sides = self.folder.join("diff");
        drop(fs::remove_dir_all(&sides));
        for path in paths {
            let target = self.root.join(path);
            let Ok(below) = target.strip_prefix(&self.top) else {
                continue;
            };
            let is_new = !known && self.foreign.contains_key(path);
            let pairs = [("a", self.original(path)), ("b", self.tree().join(path))];
            let pairs = pairs.iter().skip(usize::from(is_new));
            for (side, from) in pairs.filter(|(_, from)| from.exists()) {
                let to = sides.join(side).join(below);
                let copied = copy_file(from, &to).and_then(|()| {
                    if self.bounded.as_ref() != Some(path) || *side == "a" {
                        return Ok(());
                    }
                    fs::write(&to, fs::read_to_string(&to)?.replacen(BOUNDARY, "", 1))
                });
                copied.map_err(|error| format!("cannot copy {}: {error}", from.display()))?;
            }
        }
        for side in ["a", "b"] {
            let made = fs::create_dir_all(sides.join(side));
            made.map_err(|error| format!("cannot write {}: {error}", sides.display()))?;
        }
        let mut git = git();
        git.args([
            "diff",
            "--no-index",
            "--no-prefix",
            "--no-color",
            "--no-ext-diff",
            "a",
            "b",
        ]);
        git.env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        git.current_dir(&sides).stdin(Stdio::null());
        let output = git
            .output()
            .map_err(|error| format!("git cannot be started: {error}"))?;
        // 1: they differ.
        if !matches!(output.status.code(), Some(0 | 1)) {
            return Err(format!(
                "git diff: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            ));
        }
        Ok(output.stdout)
    }

    /// The lock file, if it is the user's.
    fn lock(&self) -> Option<PathBuf> {
        let mut folders = self
            .here
            .ancestors()
            .map(|folder| folder.join("Cargo.lock"));
        folders.find(|path| self.files.contains(path))
    }

    /// Where a patch is applied.
    pub(crate) fn top(&self) -> &Path {
        &self.top
    }
}

/// The innermost folder that has all.
fn common(folders: &BTreeSet<PathBuf>) -> Option<PathBuf> {
    let first = folders.first()?;
    let mut outer = first.ancestors();
    outer
        .find(|outer| folders.iter().all(|it| it.starts_with(outer)))
        .map(Path::to_owned)
}

/// The folder of the repository around a folder.
fn repository(folder: &Path) -> Option<PathBuf> {
    let mut git = git();
    git.args(["rev-parse", "--show-toplevel"])
        .current_dir(folder);
    let text = output(&mut git).ok()?.stdout;
    let path = String::from_utf8(text).ok()?;
    Some(PathBuf::from(path.trim_end())).filter(|path| folder.starts_with(path))
}

/// The files below a folder: those that git does not ignore, or else all but what is built.
fn listed(folder: &Path, target: &Path) -> io::Result<Vec<PathBuf>> {
    let mut git = git();
    git.args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "-z",
    ]);
    git.current_dir(folder);
    if let Ok(output) = output(&mut git)
        && !output.stdout.is_empty()
    {
        let names = output
            .stdout
            .split(|&byte| byte == 0)
            .filter(|name| !name.is_empty());
        let paths = names.map(|name| folder.join(String::from_utf8_lossy(name).as_ref()));
        // One that is deleted is listed, too; a module of git is a folder.
        let is_file = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|it| !it.is_dir());
        return Ok(paths
            .filter(|path| !path.starts_with(target) && is_file(path))
            .collect());
    }
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            let is_none = NO_SOURCE.iter().any(|name| entry.file_name() == *name) || path == target;
            match entry.file_type()?.is_dir() {
                _ if is_none => {}
                true => folders.push(path),
                false => found.push(path),
            }
        }
    }
    Ok(found)
}

/// Copies a file to a new one, with the folders that it needs. What a link leads to is copied, so
/// that no change of the copy reaches the user's file; a link to a folder stays one.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    removed(to)?;
    match fs::metadata(from) {
        Ok(file) if file.is_file() => {
            fs::write(to, fs::read(from)?)?;
            // Who may read it may change the copy.
            let mode = file.permissions().mode() | 0o200;
            fs::set_permissions(to, Permissions::from_mode(mode))
        }
        _ if fs::symlink_metadata(from)?.is_symlink() => symlink(fs::read_link(from)?, to),
        // Sockets and the like are no source.
        other => other.map(|_| ()),
    }
}

/// Removes a file, if there is one.
fn removed(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_have_the_innermost_in_common() {
        let folders = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<BTreeSet<_>>();
        assert_eq!(
            common(&folders(&["/a/b", "/a/b/c", "/a/d"])),
            Some("/a".into())
        );
        assert_eq!(common(&folders(&["/a/b"])), Some("/a/b".into()));
    }
}
