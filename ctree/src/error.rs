//! What can be wrong with the input, or with a map.

use core::error::Error;
use core::fmt;

/// The keys given to `from_sorted_iter` are not strictly ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderError {
    index: usize,
}

impl OrderError {
    /// Error for the key at `index`.
    pub(crate) fn new(index: usize) -> OrderError {
        OrderError { index }
    }

    /// Place in the input, counted from 0, of the first key that is not greater than the key before
    /// it.
    pub fn index(&self) -> usize {
        self.index
    }
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the key at index {} is not greater than the key before it",
            self.index
        )
    }
}

impl Error for OrderError {}

/// What [`CTreeMap::check`](crate::CTreeMap::check) found: the order of the keys
/// contradicts itself, or memory was overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckError {
    fault: Fault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The key of this rank is not greater than the one before.
    Order { rank: usize },
    /// A search for the key of this rank ends elsewhere.
    Search { rank: usize },
    /// The lane at this offset does not hold its separator or filler.
    Lane { offset_bytes: usize },
    /// The parts do not have the lengths that they should have.
    Lengths,
    /// A node of a dynamic tree is not as it should be.
    Node { what: &'static str },
}

impl CheckError {
    pub(crate) fn new(fault: Fault) -> CheckError {
        CheckError { fault }
    }
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fault {
            Fault::Order { rank } => write!(
                f,
                "the key of rank {rank} is not greater than the key before it"
            ),
            Fault::Search { rank } => {
                write!(f, "a search for the key of rank {rank} does not find it")
            }
            Fault::Lane { offset_bytes } => write!(
                f,
                "the lane at byte {offset_bytes} of the block holds a wrong key"
            ),
            Fault::Lengths => write!(f, "the parts of the tree differ in length"),
            Fault::Node { what } => f.write_str(what),
        }
    }
}

impl Error for CheckError {}
