//! What chunks hold: told by the functions of the standard library in their stacks, which name the
//! type that they allocate for, or in C by the variable that is assigned; and laid out as the debug
//! information says. That tells the types of global variables, too.

mod assignments;
mod layout;
mod names;
mod variables;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::profile::{Frame, Type};
use crate::symbols::{self, Symbols};
use layout::Layout;
pub(crate) use layout::{AWAIT, CAPTURED};
use names::Name;
pub(crate) use names::shorten;

/// The types found so far.
#[derive(Debug, Default)]
pub struct Types {
    /// Each once; indices into it are `Site::type_id`.
    pub list: Vec<Type>,
    /// By whole name.
    index_of: HashMap<String, u32>,
    /// For each type, its whole name and that of an element.
    known: Vec<Holder>,
    /// Names of types that end with an array without a length: it goes on behind their size.
    pub tails: HashMap<usize, String>,
    /// What lines of C allocate for.
    of_line: HashMap<assignments::Line, Holder>,
}

/// What a function allocates for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Holder {
    /// With all its modules.
    name: String,
    /// Whole name of what the chunk begins with, or is an array of; empty if unknown.
    element: String,
}

impl Types {
    /// Finds out what lines of C allocate for.
    ///
    /// Comes before [`Types::of_stack`]; `places` are the frames where the user allocates.
    pub fn learn<'f>(&mut self, places: impl Iterator<Item = &'f Frame>, symbols: &Symbols) {
        let mut wanted = HashMap::new();
        for frame in places {
            if let Some(line) = assignments::line_of(frame) {
                wanted
                    .entry(line)
                    .or_insert_with(|| assignments::told(frame));
            }
        }
        if wanted.is_empty() {
            return;
        }
        for path in symbols.debug_files() {
            // Damaged debug information is as good as none.
            self.of_line
                .extend(assignments::find(path, &wanted).unwrap_or_default());
        }
    }

    /// Index of the type of chunks with this stack, whose user's frame is `place`.
    pub fn of_stack(&mut self, stack: &[u32], place: Option<u32>, frames: &[Frame]) -> u32 {
        let whole = stack.iter().map(|&index| &frames[index as usize]);
        let place = place.map(|index| &frames[index as usize]);
        let assigned = || self.of_line.get(&assignments::line_of(place?)?).cloned();
        let nobody = || Holder {
            name: "bytes".into(),
            element: String::new(),
        };
        let holder = holder(whole).or_else(assigned).unwrap_or_else(nobody);
        if let Some(&index) = self.index_of.get(&holder.name) {
            return index;
        }
        let index = u32::try_from(self.list.len()).expect("there are fewer types than sites");
        self.list.push(Type {
            name: holder.name.clone(),
            size: None,
            fields: Vec::new(),
        });
        self.index_of.insert(holder.name.clone(), index);
        self.known.push(holder);
        index
    }

    /// Completes the list: lays out the types by the debug information of the modules that
    /// `symbols` has opened, and shortens names as long as they differ.
    pub fn complete(&mut self, symbols: &Symbols) {
        let mut wanted = HashMap::new();
        for (index, holder) in self.known.iter().enumerate() {
            if let Some(size) = names::size_of_primitive(&holder.element) {
                self.list[index].size = Some(size);
            } else if !holder.element.is_empty() {
                wanted
                    .entry(holder.element.clone())
                    .or_insert_with(Vec::new)
                    .push(index);
            }
        }
        for path in symbols.debug_files() {
            if wanted.is_empty() {
                break;
            }
            // Damaged debug information is as good as none.
            for (name, found) in layout::find(path, &wanted).unwrap_or_default() {
                for index in wanted.remove(&name).unwrap_or_default() {
                    self.lay_out(index, &found);
                }
            }
        }
        let short: Vec<String> = self
            .known
            .iter()
            .map(|holder| shorten(&holder.name))
            .collect();
        let mut uses: HashMap<&str, usize> = HashMap::new();
        for name in &short {
            *uses.entry(name).or_default() += 1;
        }
        for (kind, name) in self.list.iter_mut().zip(&short) {
            if uses[&**name] == 1 {
                kind.name.clone_from(name);
            }
        }
    }

    fn lay_out(&mut self, index: usize, layout: &Layout) {
        self.list[index].size = Some(layout.size);
        self.list[index].fields.clone_from(&layout.fields);
        if let Some(tail) = &layout.tail {
            self.tails.insert(index, tail.clone());
        }
    }

    /// Indices of the types of global variables by their addresses in the file at `path`, as far as
    /// its debug information knows those that are `wanted`. Comes after [`Types::complete`].
    pub fn of_variables(&mut self, path: &Path, wanted: &HashSet<u64>) -> HashMap<u64, u32> {
        // Damaged debug information is as good as none.
        let found = variables::find(path, wanted).unwrap_or_default();
        let mut index_of = HashMap::new();
        for (address, (name, layout)) in found {
            let index = self.list.len();
            let (size, fields) = (None, Vec::new());
            self.list.push(Type { name, size, fields });
            self.lay_out(index, &layout);
            let index = u32::try_from(index).expect("there are fewer types than variables");
            index_of.insert(address, index);
        }
        index_of
    }
}

/// The path and the arguments of a type's name; `None` for what is no path.
pub(crate) fn parts(name: &str) -> Option<(String, Vec<String>)> {
    let found = names::parse(name)?;
    Some((found.path, found.args))
}

/// What functions of libc allocate for, by a part of their names.
const LIBC: [(&str, &str); 10] = [
    ("alloc_dir", "DIR"),
    ("opendir", "DIR"),
    ("allocate_dtv", "thread-local storage"),
    ("dl_allocate_tls", "thread-local storage"),
    ("thread_atexit", "thread-local storage"),
    ("pthread_create", "thread-local storage"),
    ("file_doallocate", "FILE"),
    ("fopen", "FILE"),
    ("strdup", "char"),
    ("getdelim", "char"),
];

/// What the innermost functions of the standard library allocate for.
///
/// The innermost type that holds chunks counts; functions around it only say more of it: the
/// `Vec<u8>` in a `String` is the string, that in a `Vec<Vec<u8>>` that is being cloned is not.
fn holder<'f>(frames: impl Iterator<Item = &'f Frame> + Clone) -> Option<Holder> {
    let mut found: Option<Holder> = None;
    let library = { frames.clone() }
        .skip(symbols::in_allocator(frames))
        .skip_while(|frame| symbols::is_allocator(frame))
        .take_while(|frame| symbols::is_library(frame));
    for frame in library {
        let own = LIBC.iter().find(|(part, _)| frame.function.contains(part));
        if let Some((_, name)) = own.filter(|_| found.is_none() && symbols::is_libc(frame)) {
            let (name, element) = ((*name).to_owned(), String::new());
            return Some(Holder { name, element });
        }
        let name = names::of_self(&frame.function).or_else(|| names::of_path(&frame.function));
        let Some(name) = name.or_else(|| names::by_file(frame)) else {
            continue;
        };
        match &mut found {
            None => found = known(&name),
            Some(inner) => {
                if let Some(outer) = around(inner, &name) {
                    *inner = outer;
                }
            }
        }
    }
    found
}

/// What chunks are that functions of `name` allocate, if it is a type that is known to.
fn known(name: &Name) -> Option<Holder> {
    let arg = |index: usize| name.args.get(index).cloned();
    let holder = |name: String, element: String| Some(Holder { name, element });
    match &*name.path {
        "alloc::boxed::Box" => {
            let inner = arg(0)?;
            if let Some(known) = names::parse(&inner).as_ref().and_then(known_within_box) {
                return Some(known);
            }
            match names::slice_element(&inner) {
                Some(element) => holder(format!("alloc::boxed::Box<{inner}>"), element),
                None => holder(format!("alloc::boxed::Box<{inner}>"), inner),
            }
        }
        "alloc::rc::Rc" | "alloc::sync::Arc" => {
            let counted = arg(0)?;
            let unsized_element = counted == "str" || names::slice_element(&counted).is_some();
            let block = if name.path.ends_with("Rc") {
                "alloc::rc::RcInner"
            } else {
                "alloc::sync::ArcInner"
            };
            let element = match unsized_element {
                true => String::new(),
                false => format!("{block}<{counted}>"),
            };
            holder(format!("{}<{counted}>", name.path), element)
        }
        "alloc::raw_vec::RawVec" | "alloc::vec::Vec" => {
            let element = arg(0)?;
            holder(format!("alloc::vec::Vec<{element}>"), element)
        }
        "alloc::collections::vec_deque::VecDeque"
        | "alloc::collections::binary_heap::BinaryHeap" => {
            let element = arg(0)?;
            holder(format!("{}<{element}>", name.path), element)
        }
        "alloc::string::String" => holder(name.path.clone(), "u8".into()),
        "std::__new_allocator" | "__gnu_cxx::new_allocator" => holder(arg(0)?, arg(0)?),
        "hashbrown::raw::RawTable" => {
            let element = arg(0)?;
            let pair = names::tuple(&element)?;
            match &pair[..] {
                [key, value] if value == "()" => {
                    holder(format!("std::collections::HashSet<{key}>"), element)
                }
                [key, value] => holder(
                    format!("std::collections::HashMap<{key}, {value}>"),
                    element,
                ),
                _ => holder(format!("hashbrown::HashTable<{element}>"), element),
            }
        }
        _ => known_within_box(name),
    }
}

/// What a box of the standard library's own is part of.
fn known_within_box(name: &Name) -> Option<Holder> {
    let args = &name.args;
    let holder = match (&*name.path, &args[..]) {
        ("alloc::rc::RcInner" | "alloc::rc::RcBox", [counted]) => {
            format!("alloc::rc::Rc<{counted}>")
        }
        ("alloc::sync::ArcInner", [counted]) => format!("alloc::sync::Arc<{counted}>"),
        ("alloc::collections::linked_list::Node", [element]) => {
            format!("alloc::collections::LinkedList<{element}>")
        }
        (
            "alloc::collections::btree::node::LeafNode"
            | "alloc::collections::btree::node::InternalNode",
            [key, value],
        ) => {
            if value.ends_with("::SetValZST") {
                format!("alloc::collections::BTreeSet<{key}>")
            } else {
                format!("alloc::collections::BTreeMap<{key}, {value}>")
            }
        }
        _ => return None,
    };
    Some(Holder {
        name: holder,
        element: format!("{}<{}>", name.path, args.join(", ")),
    })
}

/// What `inner` is as part of a type that owns it, if `outer` is such a type.
fn around(inner: &Holder, outer: &Name) -> Option<Holder> {
    let named = |name: String| {
        Some(Holder {
            name,
            element: inner.element.clone(),
        })
    };
    let array = inner.name.starts_with("alloc::vec::Vec<");
    let same = outer.args.first() == Some(&inner.element);
    match &*outer.path {
        "alloc::collections::vec_deque::VecDeque"
        | "alloc::collections::binary_heap::BinaryHeap"
            if array && same =>
        {
            named(format!("{}<{}>", outer.path, inner.element))
        }
        "alloc::string::String"
        | "std::path::PathBuf"
        | "std::ffi::os_str::OsString"
        | "alloc::ffi::c_str::CString"
            if inner.element == "u8" && (array || inner.name == "alloc::string::String") =>
        {
            named(outer.path.clone())
        }
        "std::vector" | "std::deque" if same => named(format!("{}<{}>", outer.path, inner.element)),
        "std::__cxx11::basic_string" if same => named("std::string".into()),
        "str" if array && inner.element == "u8" => named("alloc::string::String".into()),
        "alloc::rc::Rc" | "alloc::sync::Arc"
            if outer.args == ["str"] && inner.name == format!("{}<[u8]>", outer.path) =>
        {
            named(format!("{}<str>", outer.path))
        }
        _ => None,
    }
}
