//! Lays the nodes of a tree out for the cache, safely, in one call.
//!
//! A tree whose nodes were allocated one by one has its children anywhere: each step of a search
//! misses the cache. This crate moves the boxes of a finished tree, so that a node and those
//! visited after it share cache lines and pages. It is the `ccmorph` of T. Chilimbi,
//! *Cache-Conscious Data Structures* (1999), section 4.1, with three differences: ownership proves
//! that the nodes may move, each of them stays an ordinary allocation, and a model of the machine
//! chooses the layout.
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
//!     let mut root = None;
//!     for i in 0..10_000u64 {
//!         insert(&mut root, i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
//!     }
//!
//!     let report = ccmorph(&mut root, Node::children)?;
//!     // Or, without the derive:
//!     let again = ccmorph(&mut root, |node, visit| {
//!         visit(&mut node.left);
//!         visit(&mut node.right);
//!     })?;
//!
//!     assert_eq!((report.nodes, again.nodes), (10_000, 10_000));
//!     println!("{report}");
//!     Ok(())
//! }
//!
//! fn insert(mut at: &mut Option<Box<Node>>, key: u64) {
//!     while let Some(node) = at {
//!         at = if key < node.key { &mut node.left } else { &mut node.right };
//!     }
//!     *at = Some(Box::new(Node { key, left: None, right: None }));
//! }
//! ```
//!
//! # What can be morphed
//!
#![doc = include_str!("structures.md")]
//!
//! `Rc` and `Arc` do not move. Others may point to what they hold; and even where the counts say
//! that all references lie inside the structure, the standard library does not tell where the
//! counts are, so that nobody else can move them. Use boxes, with raw pointers for the other
//! references.
//!
//! Nodes have to be `Unpin`: [`Movable`] says why, and what to write for generic ones.
//!
//! For plain boxes the program's global allocator has to be [`ccmalloc::CcMalloc`]; under another
//! one the morph gives [`MorphError::NotCcMalloc`] and changes nothing, or goes on [as well as it
//! can](Morph::under_any_allocator) when asked to.
//!
//! # Which layout, and when
//!
//! The model chooses the layout. [`Morph::operation`] says what for: searches, which are the
//! default, paths or walks; [`Morph::layout`] takes another layout, and [`Morph::run_ordered_by`]
//! another order. Where few nodes get most of the operations, [`Morph::run_weighted`] looks at the
//! counts. A structure that goes on changing is morphed again, every so often or [if it
//! pays](Morph::run_if_worthwhile). The [`Report`] says where parents and children lay and lie,
//! what the choice rests on, and what it took. The guide, `docs/ccmorph.md` in the repository, has
//! an example for each kind of structure, says which layout is for what, and what to do about each
//! error.
//!
//! # Index trees
//!
//! Nodes in a slice that have numbers for links are morphed by [`IndexMorph`]: permuted in place,
//! under any allocator, with the [`Permutation`] in the report. Shared children, cycles and parent
//! indices are fine.
//!
//! # Seeing a layout
//!
//! [`map`] says which nodes lie in which block and page, for any tree under any allocator, and
//! moves nothing. [`Map::to_svg`] draws it; `cargo run --release --example layout_map` in the
//! repository does so for a tree and a list, before and after a morph.
//!
//! # Why this is safe
//!
//! A traversal is given a node as `&'a mut T` and shows links as `&'a mut`, with the same `'a`,
//! whatever `'a` is. What it has shown it can therefore not touch again, nor can it show anything
//! that does not live as long, and it can keep no reference. So after it has been called for each
//! node, all links that were shown are exclusively borrowed at the same time, and replacing each
//! box by one at a better address is what safe code could do as well. In detail:
//!
//! * a traversal may hide links (the node behind stays where it is), and may change the node before
//!   it shows them. It is called once for each node, so that there are no second thoughts about how
//!   many children there are;
//! * one that panics does so before anything has moved;
//! * no node can be shown twice, and no cycle can be made, because a box has one owner. Raw
//!   pointers can, and are told ([`MorphError::SharedNode`]);
//! * pointers back are numbers to safe code. Those that are shown follow their nodes; whoever
//!   dereferences them answers for those that are not;
//! * no destructor runs, no user code at all, once the first node has moved;
//! * other global allocators are no danger: the places come from the global allocator in any case,
//!   unless the program [has declared](ccmalloc::declare_global) that it is `CcMalloc`, and whether
//!   they lie where they should is compared before anything moves;
//! * nodes that hold pointers into themselves are the one thing to mind. Safe code has none. Types
//!   with unsafe code inside opt out by not being `Unpin` ([`Movable`]).
//!
//! In the source, the docs of the modules `links`, `collect` and `relocate` have the proof in full.
//! Index trees need none: they are safe code.
//!
//! No memory for the nodes' new places, or for the lists of nodes and pointers, is an error. The
//! lists that the choice of a layout makes are ordinary vectors: where there is no memory for
//! these, the process ends as usual in Rust.
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
mod map;
mod morph;
mod plan;
mod pointers;
mod prefetch;
mod raw;
mod relocate;
mod report;

#[doc(hidden)]
pub use any::derive as __derive;
pub use any::{Any, AnyLinks, AnyVisitor, any};
pub use ccmodel::{CacheGeometry, Gain, Layout, Machine, PageSize};
pub use collect::Visitor;
pub use colour::ColourReport;
pub use error::MorphError;
pub use index::{IndexMorph, IndexReport, IndexVisit, Indices, NodeIndex, Permutation};
pub use link::{Link, Movable};
pub use links::{Links, TreeNode, Visit};
pub use map::{Map, MapStyle, MappedNode, Piece, map};
pub use morph::{Morph, ccmorph};
pub use plan::{LayoutChoice, Operation};
pub use pointers::{Back, Place, Pointers, back};
pub use raw::{RawStructure, RawVisit};
pub use report::{Nearness, Outcome, PhaseTimes, Report, Verdict};

/// Implements [`TreeNode`](trait@crate::TreeNode) and [`AnyLinks`] from the fields marked
/// `#[child]`.
///
/// | attribute | the field holds |
/// |---|---|
/// | `#[child]` | children: anything that implements [`Links`] or [`AnyLinks`] |
/// | `#[child(each)]` | a collection of another crate's, such as a small vector, whose `iter_mut()` gives links |
/// | `#[parent]`, `#[pointer]` | pointers to nodes that own nothing, [`Pointers`]: `*mut Self`, `*const Self`, `NonNull<Self>`, options, cells, arrays and vectors of these. The two mean the same |
///
/// Marked fields are shown in the order of their declaration. Works for structs and
/// enums, generic ones too; bounds and `where` clauses are kept. [`AnyLinks`] asks in addition that
/// a generic type be `Unpin`; of generic types that own each other, say so of the parameters.
///
/// Links to nodes of the type itself are `Box<Self>`. Where a field's type has an allocator, as in
/// `Option<Box<Self, &'heap Heap>>`, they are of that kind, and all nodes are of one type. The type
/// has to be written out: the derive does not see through an alias.
///
/// The code that it writes names this crate `::ccmorph`. Where a `Cargo.toml` renames the
/// dependency (`morph = { package = "ccmorph", .. }`), say `extern crate morph as ccmorph;` at the
/// root of the crate.
///
/// # Examples
///
/// ```
/// use ccmorph::TreeNode;
///
/// #[derive(TreeNode)]
/// enum Octree<P> {
///     Leaf(Vec<P>),
///     Inner(#[child] [Option<Box<Octree<P>>>; 8]),
/// }
///
/// #[derive(TreeNode)]
/// struct Element<'text> {
///     name: &'text str,
///     #[child]
///     first_child: Option<Box<Element<'text>>>,
///     #[child]
///     others: Vec<Box<Element<'text>>>,
///     #[parent]
///     parent: *const Element<'text>,
/// }
/// ```
///
/// What is wrong is said at its place:
///
/// ```compile_fail
/// #[derive(ccmorph::TreeNode)]
/// struct Node {
///     #[child]
///     count: u32, // holds no links
/// }
/// ```
///
/// ```compile_fail
/// #[derive(ccmorph::TreeNode)]
/// struct Node {
///     left: Option<Box<Node>>, // no field is marked
/// }
/// ```
///
/// ```compile_fail
/// #[derive(ccmorph::TreeNode)]
/// struct Node {
///     #[child(weak)] // takes no arguments
///     left: Option<Box<Node>>,
/// }
/// ```
///
/// ```compile_fail
/// #[derive(ccmorph::TreeNode)]
/// struct Node {
///     #[child]
///     left: Option<Box<Node>>,
///     #[child]
///     #[parent] // owns it or not, but not both
///     right: Option<Box<Node>>,
/// }
/// ```
///
/// ```compile_fail
/// #[derive(ccmorph::TreeNode)]
/// struct Node {
///     #[child]
///     left: Option<Box<Node>>,
///     #[parent]
///     up: Option<Box<Node>>, // owns what it points to
/// }
/// ```
///
/// ```compile_fail
/// #[derive(ccmorph::TreeNode)]
/// union Node { // which field holds the links is not known
///     #[child]
///     left: std::mem::ManuallyDrop<Option<Box<Node>>>,
/// }
/// ```
pub use ccmorph_derive::TreeNode;
