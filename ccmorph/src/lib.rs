// Modules, lowest first. A module uses only those of earlier rows, or before it in its row.
//
// | modules | what they do |
// |---|---|
// | `error`, `macros`, `nearness`, `prefetch`, `size` | basics |
// | `split` | the table of `#[split]` |
// | `link`, `pointers`, `visit` | what a traversal may show, and how it is recorded |
// | `links`, `any` | what shows links: boxes, collections, nodes of one type and of several |
// | `collect` | phase 1: walk a structure |
// | `colour`, `relocate` | phase 3: allocate the new places and move the nodes |
// | `plan`, `report` | phase 2: choose a layout; the result |
// | `map` | where nodes lie, as numbers and as a picture |
// | `morph`, `raw`, `index` | the entry points: boxes, raw pointers, slices |

//! Lays the nodes of a tree out for the cache, safely, in one call.
//!
//! The nodes of a tree that were allocated one by one lie anywhere, and each step of a search
//! misses the cache. This crate moves the boxes of a finished tree so that nodes that are used
//! together share cache lines and pages. It implements `ccmorph` of T. Chilimbi, *Cache-Conscious
//! Data Structures* (1999), section 4.1. Ownership proves that the nodes may move, each stays an
//! ordinary allocation, and a model of the machine chooses the layout.
//!
//! ```
//! #[global_allocator]
//! static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();
//!
//! use ccmorph::{TreeNode, ccmorph};
//!
//! #[derive(TreeNode)]
//! struct Node {
//!     key: u64,
//!     #[child]
//!     left: Option<Box<Node>>,
//!     #[child]
//!     right: Option<Box<Node>>,
//! }
//!
//! fn main() -> Result<(), ccmorph::MorphError> {
//!     let leaf = |key| Some(Box::new(Node { key, left: None, right: None }));
//!     let mut root = leaf(2);
//!     let node = root.as_mut().unwrap();
//!     (node.left, node.right) = (leaf(1), leaf(3));
//!
//!     let report = ccmorph(&mut root, Node::children)?;
//!     // Or, without the derive:
//!     let again = ccmorph(&mut root, |node, visit| {
//!         visit(&mut node.left);
//!         visit(&mut node.right);
//!     })?;
//!     assert_eq!((report.nodes, again.nodes), (3, 3));
//!     println!("{report}");
//!     Ok(())
//! }
//! ```
//!
//! # What can be morphed
//!
#![doc = include_str!("structures.md")]
//!
//! `Rc` and `Arc` do not move: others may point to what they hold. Use boxes, with raw pointers for
//! the other references. Nodes have to be `Unpin`: see [`Movable`].
//!
//! For plain boxes the global allocator has to be [`ccmalloc::CcMalloc`]. Under another one the
//! morph returns [`MorphError::NotCcMalloc`] and changes nothing, unless it [accepts any
//! allocator](Morph::under_any_allocator). [`Morph::run_slice`] permutes nodes in a slice that have
//! numbers for links, under any allocator, in safe code.
//!
//! # Which layout, and when
//!
//! The model chooses a layout for the [operation](Morph::operation): searches by default, paths or
//! walks. [`Morph::layout`] sets another layout, [`Morph::run_ordered_by`] another order, and
//! [`Morph::run_weighted`] takes counts. [`Morph::run_if_worthwhile`] is for structures that keep
//! changing. The [`Report`] says what changed, and [`map`] counts and draws where nodes lie.
//! `docs/use/ccmorph.md` in the repository says what to do about each error.
//!
//! # Why this is safe
//!
//! A traversal gets a node as `&'a mut T` and shows links as `&'a mut`, for any `'a`. It cannot
//! touch what it has shown, cannot show what does not live as long, and cannot keep a reference. So
//! after the last call all links are exclusively borrowed at once, and safe code could replace each
//! box by one at a better address. A traversal may hide links (their nodes stay), change a node
//! before showing its links, and panic: nothing has moved then. Once the first node has moved, no
//! destructor and no user code runs. Pointers back that are shown follow their nodes; code that
//! dereferences others is responsible for them.
//!
//! The docs of the modules `visit`, `collect` and `relocate` have the full proof.
//!
//! **Features.** `allocator-api2` (default) and `allocator-api2-04` add boxes of these versions of
//! that crate.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod any;
mod collect;
mod colour;
mod error;
mod index;
mod link;
mod links;
mod macros;
mod map;
mod morph;
mod nearness;
mod plan;
mod pointers;
mod prefetch;
mod raw;
mod relocate;
mod report;
mod size;
mod split;
mod visit;

#[doc(hidden)]
pub use any::derive as __derive;
pub use any::{Any, any};
pub use ccmodel::{CacheGeometry, Gain, Layout, Machine, PageSize};
pub use colour::ColourReport;
pub use error::MorphError;
pub use index::{IndexReport, IndexVisit, Indices, NodeIndex, Permutation};
pub use link::{Link, Movable};
pub use links::{Back, TreeNode, back};
pub use map::{Map, MapStyle, MappedNode, Piece, map};
pub use morph::{Morph, ccmorph};
pub use nearness::Nearness;
pub use plan::Operation;
pub use pointers::{Place, Pointers};
pub use raw::{RawStructure, RawVisit};
pub use report::{Outcome, PhaseTimes, Report, Verdict};
pub use split::{ColdIndex, ColdTable};
pub use visit::{AnyLinks, AnyVisitor, Links, Visit, Visitor};

/// Implements [`TreeNode`](trait@crate::TreeNode) and [`AnyLinks`] from the fields marked
/// `#[child]`.
///
/// | attribute | the field holds |
/// |---|---|
/// | `#[child]` | children: anything that implements [`Links`] or [`AnyLinks`] |
/// | `#[child(each)]` | a collection whose `iter_mut()` gives links, such as a small vector |
/// | `#[parent]`, `#[pointer]` | pointers to nodes that own nothing: [`Pointers`] |
///
/// Works for structs and enums, generic ones too, and shows the fields in the order of their
/// declaration. [`AnyLinks`] requires a generic type to be `Unpin`; of generic types that own each
/// other, require it of the parameters.
///
/// Links to nodes of the type itself are `Box<Self>`. Where a field's type has an allocator, as in
/// `Option<Box<Self, &'heap Heap>>`, they are of that kind, and all nodes are of one type. The
/// derive does not see through a type alias.
///
/// The generated code names this crate `::ccmorph`. Where a `Cargo.toml` renames the dependency,
/// write `extern crate morph as ccmorph;` at the root of the crate.
///
/// # Examples
/// ```
/// use ccmorph::TreeNode;
///
/// #[derive(TreeNode)]
/// enum Element<'text> {
///     Text(&'text str),
///     Tag {
///         #[child]
///         children: Vec<Box<Element<'text>>>,
///         #[parent]
///         parent: *const Element<'text>,
///     },
/// }
/// ```
///
/// Errors point at their place:
///
/// ```compile_fail
/// #[derive(ccmorph::TreeNode)]
/// struct Node(#[child] u32); // holds no links
/// ```
///
/// ```compile_fail
/// #[derive(ccmorph::TreeNode)]
/// struct Node(Option<Box<Node>>); // no field is marked
/// ```
///
/// ```compile_fail
/// #[derive(ccmorph::TreeNode)]
/// struct Node(#[child(weak)] Option<Box<Node>>); // takes no such argument
/// ```
///
/// ```compile_fail
/// #[derive(ccmorph::TreeNode)] // a field owns a node or not, but not both
/// struct Node(#[child] Option<Box<Node>>, #[child] #[parent] Option<Box<Node>>);
/// ```
///
/// ```compile_fail
/// #[derive(ccmorph::TreeNode)]
/// struct Node(#[child] Option<Box<Node>>, #[parent] Option<Box<Node>>); // the second owns
/// ```
///
/// ```compile_fail
/// #[derive(ccmorph::TreeNode)] // it is not known which field holds the links
/// union Node { #[child] left: std::mem::ManuallyDrop<Option<Box<Node>>> }
/// ```
pub use ccmorph_derive::TreeNode;

/// Moves fields that are rarely used out of a struct, behind a link, so that more of the hot ones
/// fit into a cache line: structure splitting, *Cache-Conscious Data Structures*, section 6.1.
///
/// For `#[split(cold(name, notes))] struct Node { key, name, left, right, notes }` there are then
///
/// | type | fields |
/// |---|---|
/// | `Node` | `key`, `left`, `right`, and the link `cold: Box<NodeCold>` |
/// | `NodeCold` | `name`, `notes` |
/// | `NodeFields` | all in the source's order, to make one: `Node::from(NodeFields { .. })` |
///
/// and the methods `name`, `name_mut`, `notes` and `notes_mut` of `Node`. The names of both structs
/// stand in patterns: `let Node { key, cold, .. } = node; let NodeCold { name, .. } = *cold;`.
///
/// The box of `NodeCold` is never placed beside the node, also within [`ccmalloc::near`].
///
/// | argument | |
/// |---|---|
/// | `cold(FIELD, ..)` | the fields that go |
/// | `cold = "table"` | the link is a [`ColdIndex`] of four bytes into a [`ColdTable`] of yours |
/// | `no_accessors` | no methods, where you have such names: the fields are in `self.cold` |
///
/// Generics, bounds, lifetimes, visibility and attributes of fields stay. Write `#[split]` above
/// `#[derive]`: both structs then have the derives, except [`TreeNode`], which only the node has.
/// `repr(C)` holds for both, `repr(align)` for the node. `Debug` prints the cold fields within
/// `cold`. A clone's cold fields lie where the allocator puts them.
///
/// The node is `Send`, `Sync`, `Unpin`, `UnwindSafe` and `RefUnwindSafe` exactly if it would be
/// without the split. For that the macro writes the `impl Unpin`, so you cannot. Without a table,
/// fields are dropped in the order of the source.
///
/// With a table, methods take it: `node.name(&table)`, and `fields.split_into(&mut table)` makes a
/// node. A node does not free its entry: `table.remove(node.cold)` does.
///
/// # Errors
///
/// Compile errors name the field or derive: one that does not exist, a `#[child]` that would be
/// cold, `Copy`, an order of comparing or dropping that the move would change, other layouts than
/// C's, cold fields no larger than the link.
///
/// # Examples
/// ```
/// use ccmorph::{TreeNode, split};
///
/// #[split(cold(name, created))]
/// #[derive(TreeNode, Clone, Debug, PartialEq)]
/// pub struct Node<K> {
///     pub key: K,
///     /// For people.
///     pub name: String,
///     created: u64,
///     #[child]
///     left: Option<Box<Node<K>>>,
///     #[child]
///     right: Option<Box<Node<K>>>,
/// }
///
/// let (left, right) = (None, None);
/// let fields = NodeFields { key: 1, name: "one".to_owned(), created: 1999, left, right };
/// let mut node = Node::from(fields);
/// node.name_mut().push('!');
/// assert_eq!((node.key, &**node.name(), *node.created()), (1, "one!", 1999));
/// assert_eq!(size_of::<Node<u64>>(), 32); // was 64
///
/// let Node { key, cold, .. } = node;
/// let NodeCold { name, .. } = *cold;
/// assert_eq!((key, &*name), (1, "one!"));
/// ```
///
/// In a table:
///
/// ```
/// use ccmorph::{ColdTable, split};
///
/// #[split(cold(name), cold = "table")]
/// struct Item { key: u32, name: String }
///
/// let mut names = ColdTable::new();
/// let item = ItemFields { key: 7, name: "seven".to_owned() }.split_into(&mut names);
/// assert_eq!((item.key, &**item.name(&names)), (7, "seven"));
/// assert_eq!(size_of::<Item>(), 8); // was 32
/// let ItemCold { name } = names.remove(item.cold);
/// assert_eq!(name, "seven");
/// ```
///
/// ```compile_fail
/// #[ccmorph::split(cold(nmae))] // no such field
/// struct Node { key: u64, name: String }
/// ```
///
/// ```compile_fail
/// #[ccmorph::split(cold(small))] // a link is larger
/// struct Node { key: u64, small: u32 }
/// ```
///
/// ```compile_fail
/// #[ccmorph::split(cold(name, notes))]
/// #[derive(PartialEq, PartialOrd)] // `notes` would be compared before `key`
/// struct Node { name: String, key: u64, notes: String }
/// ```
///
/// ```compile_fail,E0080
/// #[ccmorph::split(cold(name, notes))] // `notes` would be dropped before `keys`
/// struct Node { name: String, keys: Vec<u64>, notes: String }
/// ```
///
/// ```compile_fail,E0277
/// #[ccmorph::split(cold(name, pin))]
/// struct Node { key: u64, name: String, pin: std::marker::PhantomPinned }
/// fn moves(node: impl Unpin) {}
/// moves(Node::from(NodeFields { key: 1, name: String::new(), pin: std::marker::PhantomPinned }));
/// ```
///
/// ```compile_fail,E0277
/// #[ccmorph::split(cold(name, owner), cold = "table")]
/// struct Node { key: u64, name: String, owner: std::rc::Rc<u64> }
/// fn sends<T: Send>() {}
/// sends::<Node>(); // its number stands for an `Rc`
/// ```
///
/// ```compile_fail,E0597
/// #[ccmorph::split(cold(slot))] // invariant in the lifetime, as `slot` is
/// struct Node<'a> { key: u64, slot: (std::cell::Cell<&'a str>, u64) }
/// fn stores<'a>(node: &Node<'a>, text: &'a str) { node.slot().0.set(text) }
/// let node = Node::from(NodeFields { key: 1, slot: (std::cell::Cell::new("long"), 1) });
/// { let text = String::from("short"); stores(&node, &text); }
/// node.slot();
/// ```
///
/// ```compile_fail
/// #[ccmorph::split(cold(name), cold = "table")]
/// #[derive(Clone)] // two nodes would have one name
/// struct Node { key: u64, name: String }
/// ```
pub use ccmorph_derive::split;

/// Pins the order of a struct's fields: when its size or an offset changes, it no longer compiles.
///
/// The fields are laid out as they are written, by `#[repr(C)]`; without, rustc may reorder them in
/// any version. So an order that was found to touch fewer cache lines stays, also when somebody
/// adds a field.
///
/// | argument | |
/// |---|---|
/// | `size = BYTES` | of the struct |
/// | `offsets(FIELD = BYTES, ..)` | of those fields that matter |
/// | `of = TYPE` | what is measured, for a struct with parameters: `Node<'static, u64>` |
///
/// Sizes of pointers differ between targets: write `cfg_attr(target_pointer_width = "64",
/// field_order(..))` where others are built, too.
///
/// # Examples
/// ```
/// use ccmorph::field_order;
///
/// #[field_order(size = 40, offsets(key = 0, next = 8, notes = 16))]
/// struct Node {
///     key: u64,
///     next: Option<Box<Node>>,
///     notes: String,
/// }
///
/// #[field_order(of = Pair<u8>, size = 16, offsets(1 = 8))]
/// struct Pair<T>(T, u64);
/// # let node = Node { key: 1, next: None, notes: String::new() };
/// # let Node { key, next, notes } = node;
/// # assert_eq!((key, next.is_none(), notes.len()), (1, true, 0));
/// # assert_eq!((Pair(1, 2).0, Pair(1, 2).1), (1, 2));
/// ```
///
/// ```compile_fail
/// #[ccmorph::field_order(size = 16, offsets(key = 0))]
/// struct Node { added: bool, key: u64 } // `key` is at 8
/// ```
pub use ccmorph_derive::field_order;
