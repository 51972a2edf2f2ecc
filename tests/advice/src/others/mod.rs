//! Programs, each in a folder: as an application programmer writes it, without a thought of the
//! cache, and with changes. The adviser had not seen them at first, and is fitted to them now.

#![expect(
    clippy::cast_possible_truncation,
    clippy::vec_box,
    unreachable_pub,
    reason = "each `before` is a program by itself, written as applications are"
)]

mod blur {
    pub(super) mod before;
    pub(super) mod changed;
}
mod bvh {
    pub(super) mod before;
    pub(super) mod changed;
}
mod config {
    pub(super) mod before;
    pub(super) mod changed;
}
mod dom {
    pub(super) mod before;
    pub(super) mod changed;
}
mod entities {
    pub(super) mod before;
    pub(super) mod changed;
}
mod events {
    pub(super) mod before;
    pub(super) mod changed;
}
mod file_tree {
    pub(super) mod before;
    pub(super) mod changed;
}
mod formulas {
    pub(super) mod before;
    pub(super) mod changed;
}
mod friends {
    pub(super) mod before;
    pub(super) mod changed;
}
mod grid {
    pub(super) mod before;
    pub(super) mod changed;
}
mod intervals {
    pub(super) mod before;
    pub(super) mod changed;
}
mod lru_cache {
    pub(super) mod before;
    pub(super) mod changed;
}
mod matrix_columns {
    pub(super) mod before;
    pub(super) mod changed;
}
mod memo {
    pub(super) mod before;
    pub(super) mod changed;
}
mod order_book {
    pub(super) mod before;
    pub(super) mod changed;
}
mod packets {
    pub(super) mod before;
    pub(super) mod changed;
}
mod pagerank {
    pub(super) mod before;
    pub(super) mod changed;
}
mod particles {
    pub(super) mod before;
    pub(super) mod changed;
}
mod postings {
    pub(super) mod before;
    pub(super) mod changed;
}
mod rope {
    pub(super) mod before;
    pub(super) mod changed;
}
mod routes {
    pub(super) mod before;
    pub(super) mod changed;
}
mod rules {
    pub(super) mod before;
    pub(super) mod changed;
}
mod skip_list {
    pub(super) mod before;
    pub(super) mod changed;
}
mod symbols {
    pub(super) mod before;
    pub(super) mod changed;
}
mod treap {
    pub(super) mod before;
    pub(super) mod changed;
}
mod trie_maps {
    pub(super) mod before;
    pub(super) mod changed;
}
mod undo {
    pub(super) mod before;
    pub(super) mod changed;
}
mod union_find {
    pub(super) mod before;
    pub(super) mod changed;
}
mod word_count {
    pub(super) mod before;
    pub(super) mod changed;
}

use crate::Kind::{Container, Hint, Idea, Morph, Smaller, Split};
use crate::{Change, Program};

/// All of them.
pub(crate) const PROGRAMS: &[Program] = programs! {
    Training [before::run] [changed::];
    lru_cache, 600_000, "cache of pages with a list through its slots", [Split => split];
    file_tree, 600_000, "directories of which sums and searches are made",
        [Morph => morph, Idea("vector") => idea];
    formulas, 650_000, "formulas that grew by random changes, evaluated",
        [Morph => morph, Idea("vector") => idea];
    dom, 500_000, "document of Rc and Weak, laid out repeatedly",
        [Hint => hint, Idea("vector") => idea];
    treap, 500_000, "treap of scores, filled, then asked for ranks", [Hint => hint, Morph => morph];
    skip_list, 300_000, "skip list in a vector",
        [Container("CTreeMap") => container, Idea("map") => idea];
    trie_maps, 300_000, "trie with a map of children in each node",
        [Idea("vector") => idea, Smaller => smaller];
    routes, 400_000, "routing table, a trie of sixteen ways", [Morph => morph, Smaller => smaller];
    events, 300_000, "simulation with a heap of boxed events",
        [Container("CTreeMap") => container, Idea("beside") => idea];
    pagerank, 300_000, "ranks of pages with much besides", [Smaller => smaller, Split => split];
    friends, 400_000, "breadth-first search through Rc nodes",
        [Idea("vector") => idea, Smaller => smaller];
    intervals, 1_500_000, "networks by their beginnings, looked up",
        [Container("CTreeMap") => dynamic, Container("FrozenCTreeMap") => frozen,
            Idea("vector") => idea];
    entities, 500_000, "creatures of a game that run after each other", [Split => split];
    particles, 1_000_000, "particles of which two fields are summed", [Split => split];
    matrix_columns, 120_000, "table of rows that is gone through by columns",
        [Idea("loop") => idea];
    union_find, 3_000_000, "boxed sets that are joined", [Smaller => smaller];
    grid, 450_000, "boxed bodies in a map of cells",
        [Hint => hint, Idea("vector") => idea, Smaller => smaller];
    rope, 750_000, "text that was edited as a rope, then read",
        [Morph => morph, Idea("vector") => idea];
    config, 28_000, "tree of values as of JSON, summed", [Morph => morph];
    bvh, 800_000, "ray tracer's tree of boxes", [Morph => morph, Smaller => smaller];
    memo, 8_000, "recursion with a BTreeMap of what is known",
        [Container("CTreeMap") => container, Idea("HashMap") => idea];
    order_book, 1_600_000, "orders by price and time", [Container("CTreeMap") => container];
    symbols, 11_000_000, "maps of names in scopes", [Container("CTreeMap") => container];
    undo, 16_000_000, "history of boxed edits", [Hint => hint];
    word_count, 6_000_000, "counts of words in a BTreeMap",
        [Container("CTreeMap") => container, Idea("HashMap") => idea];
    blur, 16_000, "picture that is blurred", [Idea("block") => idea];
    rules, 450_000, "small trees of conditions", [Morph => morph];
    packets, 380_000, "packets that are put together", [Hint => hint];
    postings, 270_000, "sorted lists of documents that are intersected",
        [Smaller => smaller, Container("CTreeMap") => container];
};
