//! Names and source lines of code addresses, from debug information or, without any, from the
//! symbol table.

pub(crate) mod debug_info;
pub(crate) mod generics;
mod instances;
mod instrumented;

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use object::Object;

use crate::capture_format;
use crate::profile::Frame;
use generics::with_arguments;
use instances::Instances;
use instrumented::InstrumentedCode;
pub(crate) use instrumented::is_for_caller;

/// Where Linux distributions put debug information that is apart from its executable.
const DEBUG_FOLDER: &str = "/usr/lib/debug";

/// An executable or library at its place in a process.
#[derive(Clone, Debug)]
pub struct Loaded {
    start: u64,
    end: u64,
    bias: u64,
    path: PathBuf,
    name: String,
}

impl Loaded {
    /// The module that a capture describes.
    #[must_use]
    pub fn new(module: &capture_format::Module) -> Loaded {
        let path = module
            .path
            .split(|&byte| byte == 0)
            .next()
            .unwrap_or_default();
        let path = PathBuf::from(String::from_utf8_lossy(path).into_owned());
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        Loaded {
            start: module.start,
            end: module.end,
            bias: module.bias,
            path,
            name,
        }
    }

    /// The module at `path`, not loaded: its addresses are those in its file.
    #[cfg(feature = "cli")]
    pub(crate) fn at_rest(path: PathBuf) -> Loaded {
        let name = path.file_name().unwrap_or_default();
        Loaded {
            start: 0,
            end: u64::MAX,
            bias: 0,
            name: name.to_string_lossy().into_owned(),
            path,
        }
    }
}

/// The return address in a node's `pc`.
const RETURN_ADDRESS: u64 = (1 << capture_format::NUMBER_SHIFT) - 1;

/// The module that the `pc` of a node is of, and the address of the call in its file.
fn called(pc: u64, loaded: &[Loaded]) -> Option<(&Loaded, u64)> {
    let number = usize::try_from(pc >> capture_format::NUMBER_SHIFT).unwrap_or(usize::MAX);
    // The call is what comes before; what comes after may be of another line or function.
    let call = (pc & RETURN_ADDRESS).saturating_sub(1);
    let mut candidates = loaded.iter().skip(number);
    let module = candidates.find(|module| (module.start..module.end).contains(&call))?;
    Some((module, call.wrapping_sub(module.bias)))
}

/// The modules that were opened, and what they have told.
#[derive(Default)]
pub struct Symbols {
    /// `None` for what is no executable or cannot be read.
    modules: HashMap<PathBuf, Option<Module>>,
    /// Those that were asked for since [`Symbols::begin_process`].
    asked: HashSet<PathBuf>,
    /// By module and address in its file.
    frames: HashMap<(PathBuf, u64), Vec<Frame>>,
}

impl std::fmt::Debug for Symbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Symbols")
            .field("modules", &self.modules.len())
            .finish_non_exhaustive()
    }
}

impl Symbols {
    /// What is asked from now on is of another process, which may be of another program.
    #[cfg(feature = "cli")]
    pub fn begin_process(&mut self) {
        self.asked.clear();
    }

    /// The frames that the `pc` of a node stands for, innermost first: the function that called
    /// there, and before it what was inlined into that function. There is always at least one.
    pub fn frames(&mut self, pc: u64, loaded: &[Loaded]) -> Vec<Frame> {
        let Some((module, address)) = called(pc, loaded) else {
            let return_address = pc & RETURN_ADDRESS;
            let function = format!("{return_address:#x}");
            return vec![Frame {
                function,
                address: return_address,
                ..Frame::default()
            }];
        };
        let key = (module.path.clone(), address);
        if let Some(frames) = self.frames.get(&key) {
            self.asked.insert(key.0);
            return frames.clone();
        }
        let opened = self.open(&module.path);
        let mut frames = opened.map_or_else(Vec::new, |opened| opened.frames(address));
        if frames.is_empty() {
            let function = format!("{}+{address:#x}", module.name);
            frames.push(Frame {
                function,
                ..Frame::default()
            });
        }
        for frame in &mut frames {
            frame.module.clone_from(&module.name);
            frame.address = address.wrapping_add(1);
        }
        self.frames.insert(key, frames.clone());
        frames
    }

    /// Whether the code that called there calls the runtime for its accesses, too.
    pub(crate) fn is_seen(&mut self, pc: u64, loaded: &[Loaded]) -> bool {
        let Some((module, address)) = called(pc, loaded) else {
            return false;
        };
        self.open(&module.path).is_some_and(|opened| {
            let read = || InstrumentedCode::read(&module.path, &opened.debug_file);
            opened.seen.get_or_init(read).has(address)
        })
    }

    fn open(&mut self, path: &Path) -> Option<&Module> {
        self.asked.insert(path.to_path_buf());
        let module = self.modules.entry(path.to_path_buf());
        module.or_insert_with(|| Module::open(path)).as_ref()
    }

    /// Path of the file with the debug information of the module at `path`.
    pub fn debug_file(&mut self, path: &Path) -> Option<&Path> {
        Some(&self.open(path)?.debug_file)
    }

    /// Paths of the files with debug information of the process's modules that were asked for:
    /// first those that are not the system's, so that the user's types win.
    pub(crate) fn debug_files(&self) -> Vec<&Path> {
        let modules = self
            .asked
            .iter()
            .filter_map(|path| self.modules.get(path)?.as_ref());
        let mut files: Vec<&Path> = modules.map(|it| it.debug_file.as_path()).collect();
        let is_of_system = |path: &Path| ["/usr", "/lib"].iter().any(|it| path.starts_with(it));
        files.sort_by_key(|path| (is_of_system(path), *path));
        files
    }
}

struct Module {
    loader: Loader,
    /// Has the symbol table of the executable where `loader` is of a separate file.
    executable: Option<Loader>,
    debug_file: PathBuf,
    /// Read when needed.
    instances: OnceCell<Instances>,
    seen: OnceCell<InstrumentedCode>,
}

impl Module {
    fn open(path: &Path) -> Option<Module> {
        let own = Loader::new(path).ok()?;
        if own.get_section_range(b".debug_info").is_none() {
            let separate = separate_debug_file(path);
            let loader = separate
                .as_ref()
                .and_then(|debug_file| Loader::new(debug_file).ok());
            if let (Some(debug_file), Some(loader)) = (separate, loader) {
                return Some(Module {
                    loader,
                    executable: Some(own),
                    debug_file,
                    instances: OnceCell::new(),
                    seen: OnceCell::new(),
                });
            }
        }
        Some(Module {
            loader: own,
            executable: None,
            debug_file: path.to_path_buf(),
            instances: OnceCell::new(),
            seen: OnceCell::new(),
        })
    }

    fn frames(&self, address: u64) -> Vec<Frame> {
        let mut frames = Vec::new();
        // Damaged debug information is as good as none.
        if let Ok(mut found) = self.loader.find_frames(address) {
            while let Ok(Some(frame)) = found.next() {
                let name = frame
                    .function
                    .as_ref()
                    .and_then(|function| function.raw_name().ok());
                let location = frame.location.as_ref();
                frames.push(Frame {
                    function: name.map_or_else(String::new, |name| self.function(&name)),
                    file: location
                        .and_then(|at| at.file)
                        .unwrap_or_default()
                        .to_owned(),
                    line: location.and_then(|at| at.line).unwrap_or_default(),
                    inlined: true,
                    ..Frame::default()
                });
            }
        }
        if frames.is_empty() {
            frames.push(Frame::default());
        }
        // The outermost is the function that the code is of.
        if let Some(outermost) = frames.last_mut() {
            outermost.inlined = false;
            if outermost.function.is_empty() {
                let tables = [Some(&self.loader), self.executable.as_ref()];
                let symbol = tables
                    .iter()
                    .flatten()
                    .find_map(|table| table.find_symbol(address));
                outermost.function = symbol.map_or_else(String::new, demangle);
            }
        }
        frames.retain(|frame| !frame.function.is_empty());
        frames
    }

    /// The name of a symbol in debug information, with generic arguments.
    fn function(&self, symbol: &str) -> String {
        let function = demangle(symbol);
        if !instances::is_legacy(symbol) {
            return function;
        }
        // Damaged debug information is as good as none.
        let read = || instances::read(&self.debug_file).unwrap_or_default();
        let instances = self.instances.get_or_init(read);
        match instances.get(symbol) {
            Some(arguments) => with_arguments(&function, arguments),
            None => function,
        }
    }
}

/// Finds the debug information of the executable at `path` by its build id or its link.
fn separate_debug_file(path: &Path) -> Option<PathBuf> {
    let file = File::open(path).ok()?;
    // SAFETY: nobody is expected to change the executable meanwhile; whoever does ends this
    // process, as with every other tool that maps executables. The loader does the same.
    let map = unsafe { memmap2::Mmap::map(&file) }.ok()?;
    let object = object::File::parse(&*map).ok()?;
    let mut candidates = Vec::new();
    if let Ok(Some([first, rest @ ..])) = object.build_id() {
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        candidates.push(format!("{DEBUG_FOLDER}/.build-id/{first:02x}/{rest}.debug").into());
    }
    if let Ok(Some((name, _))) = object.gnu_debuglink() {
        let (name, folder) = (String::from_utf8_lossy(name), path.parent()?);
        candidates.push(folder.join(&*name));
        candidates.push(folder.join(".debug").join(&*name));
        let below = folder.strip_prefix("/").unwrap_or(folder);
        candidates.push(Path::new(DEBUG_FOLDER).join(below).join(&*name));
    }
    candidates
        .into_iter()
        .find(|candidate: &PathBuf| candidate.is_file() && candidate != path)
}

/// The name as its language writes it, with generic arguments and without hashes.
pub fn demangle(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    // What does not begin so is C, where a function may be called `f`: the code of a type.
    let cpp = name
        .starts_with("_Z")
        .then(|| cpp_demangle::Symbol::new(name).ok());
    let cpp = cpp.flatten().and_then(|symbol| symbol.demangle().ok());
    cpp.unwrap_or_else(|| name.to_owned())
}

/// Functions that allocate for their caller.
const ALLOCATORS: [&str; 19] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "aligned_alloc",
    "posix_memalign",
    "memalign",
    "valloc",
    "operator new",
    "void* operator new",
    "__rust_alloc",
    "__rust_realloc",
    "__rust_alloc_zeroed",
    "__rdl_alloc",
    "__rdl_realloc",
    "__rdl_alloc_zeroed",
    "__rg_alloc",
    "__rg_realloc",
    "__rg_alloc_zeroed",
];

/// Paths of standard libraries and of what is compiled into them.
const STANDARD: [&str; 7] = [
    "alloc::",
    "core::",
    "std::",
    "hashbrown::",
    "__rustc::",
    "__gnu_cxx::",
    "__rustc[",
];

/// Files of standard libraries.
const STANDARD_FILES: [&str; 3] = ["/rustc/", "/rust/deps/", "library/"];

/// Libraries whose functions are nobody's own.
const LIBRARIES: [&str; 5] = [
    "libc.so",
    "libc-",
    "ld-linux",
    "libstdc++",
    "libccscope_runtime",
];

/// The index of the innermost frame of the user's own code: not of an allocator or a standard
/// library and, if there is such a frame, of no package from a registry. Else the innermost frame.
#[must_use]
pub fn place(stack: &[u32], frames: &[Frame]) -> Option<u32> {
    let frame = |index: &&u32| &frames[**index as usize];
    let stack = &stack[in_allocator(stack.iter().map(|index| frame(&index)))..];
    let others = |index: &&u32| !is_library(frame(index));
    let own = |index: &&u32| {
        let file = &frame(index).file;
        let package = file.contains("/registry/src/") || file.contains("/git/checkouts/");
        others(index) && !file.is_empty() && !package
    };
    let found = stack.iter().find(own).or_else(|| stack.iter().find(others));
    found.or(stack.first()).copied()
}

/// The innermost frame that is of no standard library, if it is of a package and not the place.
pub(crate) fn library_frame<'f>(
    stack: &[u32],
    place: Option<u32>,
    frames: &'f [Frame],
) -> Option<&'f Frame> {
    let frame = |index: &u32| frames.get(usize::try_from(*index).ok()?);
    let place = frame(&place?)?;
    let skipped = in_allocator(stack.iter().filter_map(frame));
    let inner = stack.iter().filter_map(frame).skip(skipped);
    let found = inner.into_iter().find(|frame| !is_library(frame))?;
    (found != place && found.line > 0).then_some(found)
}

/// Whether the frame is of a function that allocates for its caller.
pub(crate) fn is_allocator(frame: &Frame) -> bool {
    ALLOCATORS.contains(&allocator(frame)) || frame.module.starts_with("libccscope_runtime")
}

/// The function's name as [`ALLOCATORS`] has it.
fn allocator(frame: &Frame) -> &str {
    let function = &*frame.function;
    let function = function.strip_prefix("__rustc::").unwrap_or(function);
    // C++ names have their parameters.
    function.split(['(', '[']).next().unwrap_or(function)
}

/// How many of the innermost frames are of a `#[global_allocator]`, which may be the user's own:
/// up to the function by which the compiler hands calls on to it. A wrapper that this function has
/// jumped to stands for it.
pub(crate) fn in_allocator<'f>(frames: impl Iterator<Item = &'f Frame>) -> usize {
    let handed_on = |name: &str| name.starts_with("__r") && ALLOCATORS.contains(&name);
    let is_wrapper = |frame: &Frame| frame.function.contains("ccscope::profiled::Profiled<");
    let mut skipped = 0;
    for (at, frame) in frames.enumerate() {
        if handed_on(allocator(frame)) {
            return at + 1;
        }
        if is_wrapper(frame) {
            skipped = at + 1;
        }
    }
    skipped
}

/// Whether the frame is of the library of C.
pub(crate) fn is_libc(frame: &Frame) -> bool {
    ["libc.so", "libc-", "ld-linux"]
        .iter()
        .any(|name| frame.module.starts_with(name))
}

/// Whether the frame is of an allocator or a standard library.
pub(crate) fn is_library(frame: &Frame) -> bool {
    // The function of a user's type is the user's: `<Node as core::clone::Clone>::clone`.
    let function = frame.function.trim_start_matches(['<', '&', '[', '(']);
    is_allocator(frame)
        || STANDARD.iter().any(|path| function.starts_with(path))
        || LIBRARIES
            .iter()
            .any(|library| frame.module.starts_with(library))
        || STANDARD_FILES
            .iter()
            .any(|folder| frame.file.starts_with(folder))
        || frame.file.contains("/lib/rustlib/src/rust/library/")
        // Functions that are inlined have their names without `std::`.
        || frame.file.contains("/include/c++/")
}
