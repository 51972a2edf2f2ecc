//! What is done to a structure.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// One operation; the unit of every prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Looks for a key that is there: the path from a root to it.
    Search,
    /// Looks for a key that is not there: to the null link where it would hang, the end of a list
    /// or chain, the place between two elements. Each such place is as likely as any other, unless
    /// the keys' distribution says otherwise.
    Miss,
    /// Inserts a key: the path of a [`Miss`](Operation::Miss), and what is written beside it. The
    /// new node is fresh memory and not counted; splits and growth are rare and not counted.
    ///
    /// - Trees and hash tables: the link that is set is in the last node or bucket read.
    /// - Lists: after a node that was searched for. A doubly linked list also writes the node that
    ///   follows.
    /// - B-trees: keys and values of the leaf move up by one from the new key's place on.
    /// - Arrays: so do all elements behind it; in Eytzinger order there is no such place, and the
    ///   array counts as a tree.
    Insert,
    /// Looks for a key that is there and goes on to the next ones in order, `keys` in all, or fewer
    /// at the end of the structure. Nodes that are entered are read; those on the way back are on a
    /// stack, and are read again when it is their key's turn.
    Range {
        /// Number of keys, at least 1.
        keys: u32,
    },
    /// Goes through the whole structure, depth-first along its links, or in key order where nodes
    /// have many keys.
    Walk {
        /// Whether a parent is read again after each of its children, as recursion does that goes
        /// on with the node's next link.
        returns: bool,
    },
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Search => f.write_str("search"),
            Operation::Miss => f.write_str("miss"),
            Operation::Insert => f.write_str("insert"),
            Operation::Range { keys } => write!(f, "range:{keys}"),
            Operation::Walk { returns: false } => f.write_str("walk"),
            Operation::Walk { returns: true } => f.write_str("walk:returns"),
        }
    }
}

impl FromStr for Operation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Operation, Error> {
        let range = text.strip_prefix("range:");
        match (text, range.and_then(|keys| keys.parse().ok())) {
            ("search", _) => Ok(Operation::Search),
            ("miss", _) => Ok(Operation::Miss),
            ("insert", _) => Ok(Operation::Insert),
            ("walk", _) => Ok(Operation::Walk { returns: false }),
            ("walk:returns", _) => Ok(Operation::Walk { returns: true }),
            (_, Some(keys)) if keys > 0 => Ok(Operation::Range { keys }),
            _ => Err(Error::new(
                "unknown operation: search, miss, insert, walk, walk:returns, or range:M with M \
                 keys, M at least 1",
            )),
        }
    }
}
