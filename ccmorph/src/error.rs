//! Why a morph did not happen.

/// Why a morph did not happen. The structure is as it was, in each case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MorphError {
    /// Plain boxes do not lie where they are asked for: the program's global allocator is not
    /// [`CcMalloc`](ccmalloc::CcMalloc), and that is not
    /// [accepted](crate::Morph::under_any_allocator).
    #[error(
        "the global allocator does not place objects where they are asked for; declare \
         `#[global_allocator] static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();`"
    )]
    NotCcMalloc,
    /// There is no memory, or no address space, for the new places, or for the lists of nodes and
    /// pointers.
    #[error("no room for {bytes} bytes of new places, or of lists of nodes")]
    OutOfMemory {
        /// How many bytes the new places span, or the lists need at least.
        bytes: u64,
    },
    /// The nodes, all of one type, are larger than a page. A layout would gain nothing for them.
    #[error("nodes of {node_bytes} bytes cannot be placed, {node_bytes_max} is the most")]
    NodeTooLarge {
        /// The size of a node, a multiple of its alignment.
        node_bytes: usize,
        /// The largest size and alignment that can be placed.
        node_bytes_max: usize,
    },
    /// A node was reached twice, by a cycle or by two links; only raw pointers can.
    #[error("a node was reached twice: the structure is no tree")]
    SharedNode,
    /// The boxes are not all in the same [`Heap`](ccmalloc::Heap).
    #[error("the nodes are in more than one heap")]
    TwoHeaps,
    /// The share of a cache for hot nodes is not between 0 and 1.
    #[error("the share of the sets for hot nodes must be between 0 and 1")]
    ColourShare,
    /// A node does not fit into the part of a cache's way that its colour has.
    #[error("a node of {node_bytes} bytes does not fit into the {room_bytes} of its colour")]
    ColourRoom {
        /// The size of a node.
        node_bytes: usize,
        /// The size of that part.
        room_bytes: u64,
    },
    /// The ways of the cache are too large to be coloured.
    #[error("ways of {way_bytes} bytes cannot be coloured, {way_bytes_max} is the most")]
    ColourWay {
        /// The size of a way.
        way_bytes: u64,
        /// The largest that can be coloured.
        way_bytes_max: u64,
    },
    /// There are `u32::MAX` nodes or more.
    #[error("a structure of {} nodes or more cannot be morphed", u32::MAX)]
    TooManyNodes,
    /// An index of an index tree is of a type that cannot hold the number that its node would get.
    #[error("the type of an index cannot hold {index}, the new number of its node")]
    IndexTooNarrow {
        /// The number.
        index: usize,
    },
    /// The machine to predict for does not pass [`Machine::check`](ccmodel::Machine::check).
    #[error("the machine to predict for does not pass its check")]
    InvalidMachine,
}
