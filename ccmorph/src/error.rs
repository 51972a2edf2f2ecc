//! Why a morph did not happen.

use std::fmt;

/// Why a morph did not happen. The structure is as it was, in each case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MorphError {
    /// Plain boxes do not lie where they are asked for: the program's global allocator is not
    /// [`CcMalloc`](ccmalloc::CcMalloc), and that is not
    /// [accepted](crate::Morph::under_any_allocator).
    NotCcMalloc,
    /// There is no memory, or no address space, for the new places, or for the lists of nodes and
    /// pointers.
    OutOfMemory {
        /// How many bytes the new places span, or the lists need at least.
        bytes: u64,
    },
    /// The nodes, all of one type, are larger than a page. A layout would gain nothing for them.
    NodeTooLarge {
        /// The size of a node, a multiple of its alignment.
        node_bytes: usize,
        /// The largest size and alignment that can be placed.
        node_bytes_max: usize,
    },
    /// A node was reached twice, by a cycle or by two links; only raw pointers can.
    SharedNode,
    /// The boxes are not all in the same [`Heap`](ccmalloc::Heap).
    TwoHeaps,
    /// The share of a cache for hot nodes is not between 0 and 1.
    ColourShare,
    /// A node does not fit into the part of a cache's way that its colour has.
    ColourRoom {
        /// The size of a node.
        node_bytes: usize,
        /// The size of that part.
        room_bytes: u64,
    },
    /// The ways of the cache are too large to be coloured.
    ColourWay {
        /// The size of a way.
        way_bytes: u64,
        /// The largest that can be coloured.
        way_bytes_max: u64,
    },
    /// There are `u32::MAX` nodes or more.
    TooManyNodes,
    /// An index of an index tree is of a type that cannot hold the number that its node would get.
    IndexTooNarrow {
        /// The number.
        index: usize,
    },
    /// The machine to predict for does not pass [`Machine::check`](ccmodel::Machine::check).
    InvalidMachine,
}

impl fmt::Display for MorphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use MorphError as E;
        let text = match self {
            E::NotCcMalloc => "the global allocator does not place objects where they are asked \
                               for; declare `#[global_allocator] static GLOBAL: \
                               ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();`"
                .to_owned(),
            E::OutOfMemory { bytes } => {
                format!("no room for {bytes} bytes of new places, or of lists of nodes")
            }
            E::NodeTooLarge {
                node_bytes: bytes,
                node_bytes_max: most,
            } => {
                format!("nodes of {bytes} bytes cannot be placed, {most} is the most")
            }
            E::SharedNode => "a node was reached twice: the structure is no tree".to_owned(),
            E::TwoHeaps => "the nodes are in more than one heap".to_owned(),
            E::ColourShare => {
                "the share of the sets for hot nodes must be between 0 and 1".to_owned()
            }
            E::ColourRoom {
                node_bytes: bytes,
                room_bytes: room,
            } => {
                format!("a node of {bytes} bytes does not fit into the {room} of its colour")
            }
            E::ColourWay {
                way_bytes: bytes,
                way_bytes_max: most,
            } => {
                format!("ways of {bytes} bytes cannot be coloured, {most} is the most")
            }
            E::TooManyNodes => {
                format!(
                    "a structure of {} nodes or more cannot be morphed",
                    u32::MAX
                )
            }
            E::IndexTooNarrow { index } => {
                format!("the type of an index cannot hold {index}, the new number of its node")
            }
            E::InvalidMachine => "the machine to predict for does not pass its check".to_owned(),
        };
        f.write_str(&text)
    }
}

impl std::error::Error for MorphError {}
