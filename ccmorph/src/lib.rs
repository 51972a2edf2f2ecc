// Modules, lowest first. A module uses only those of earlier rows, or before it in its row.
//
// | modules | what they do |
// |---|---|
// | `error`, `macros`, `nearness`, `prefetch`, `size` | basics |
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
//! changing. The [`Report`] says what changed, and [`map`] counts and draws where nodes lie. The
//! guide, `docs/ccmorph.md` in the repository, has an example for each kind of structure, and what
//! to do about each error.
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
