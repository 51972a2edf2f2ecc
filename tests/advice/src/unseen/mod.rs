//! Programs that the adviser is not fitted to, each in a folder: as an application programmer
//! writes it, without a thought of the cache, and with changes.

#![expect(
    clippy::cast_possible_truncation,
    unreachable_pub,
    reason = "each `before` is a program by itself, written as applications are"
)]

mod accounts {
    pub(super) mod before;
    pub(super) mod changed;
}
mod bk_tree {
    pub(super) mod before;
    pub(super) mod changed;
}
mod boggle {
    pub(super) mod before;
    pub(super) mod changed;
}
mod build_graph {
    pub(super) mod before;
    pub(super) mod changed;
}
mod bytecode {
    pub(super) mod before;
    pub(super) mod changed;
}
mod calculator {
    pub(super) mod before;
    pub(super) mod changed;
}
mod calendar {
    pub(super) mod before;
    pub(super) mod changed;
}
mod chat {
    pub(super) mod before;
    pub(super) mod changed;
}
mod collector {
    pub(super) mod before;
    pub(super) mod changed;
}
mod completion {
    pub(super) mod before;
    pub(super) mod changed;
}
mod compress {
    pub(super) mod before;
    pub(super) mod changed;
}
mod huffman {
    pub(super) mod before;
    pub(super) mod changed;
}
mod invoices {
    pub(super) mod before;
    pub(super) mod changed;
}
mod memtable {
    pub(super) mod before;
    pub(super) mod changed;
}
mod merge_runs {
    pub(super) mod before;
    pub(super) mod changed;
}
mod path_find {
    pub(super) mod before;
    pub(super) mod changed;
}
mod roads {
    pub(super) mod before;
    pub(super) mod changed;
}
mod run_queue {
    pub(super) mod before;
    pub(super) mod changed;
}
mod scene_graph {
    pub(super) mod before;
    pub(super) mod changed;
}
mod series {
    pub(super) mod before;
    pub(super) mod changed;
}
mod sparse_solver {
    pub(super) mod before;
    pub(super) mod changed;
}
mod timers {
    pub(super) mod before;
    pub(super) mod changed;
}
mod versions {
    pub(super) mod before;
    pub(super) mod changed;
}
mod walk_sat {
    pub(super) mod before;
    pub(super) mod changed;
}
mod widgets {
    pub(super) mod before;
    pub(super) mod changed;
}

use crate::Kind::{Container, FieldOrder, Hint, Idea, Morph, Smaller, Split};
use crate::{Change, Program};

/// All of them.
pub(crate) const PROGRAMS: &[Program] = programs! {
    Test [before::run] [changed::];
    memtable, 450_000, "sorted table in memory of a log-structured store",
        [Container("CTreeMap") => container, Idea("HashMap") => idea];
    bytecode, 2_000_000, "virtual machine of a scripting language", [Smaller => smaller];
    invoices, 900_000, "articles of baskets in a catalogue",
        [Container("CTreeMap") => container, Container("get_many") => many,
            Idea("HashMap") => idea];
    walk_sat, 60_000, "configurations by local search", [Idea("vector") => idea];
    scene_graph, 60_000, "nodes of a game in an arena with generations",
        [Morph => morph, Idea("vector") => idea];
    path_find, 200_000, "ways over a map by A*",
        [Container("CTreeMap") => container, Idea("vector") => idea];
    timers, 600_000, "connections of a server with deadlines",
        [Container("CTreeSet") => container, Idea("heap") => idea];
    collector, 3_000_000, "heap of an interpreter that is marked and swept",
        [Idea("beside") => idea];
    roads, 100_000, "shortest ways over roads with names",
        [Split => split, Idea("vector") => idea];
    sparse_solver, 150_000, "equations with a sorted map for each row",
        [Container("CTreeMap") => container, Idea("vector") => idea];
    completion, 300_000, "queries by what was typed so far",
        [Container("CTreeMap") => container, Container("FrozenCTreeMap") => frozen];
    accounts, 300_000, "accounts in a hash map, and transfers",
        [Split => split, FieldOrder => field_order];
    build_graph, 80_000, "targets of a build by name", [Idea("vector") => idea];
    widgets, 60_000, "widgets behind a trait, clicked and drawn",
        [Idea("vector") => vector, Idea("beside") => beside];
    boggle, 60_000, "words on boards by a trie in a vector",
        [Smaller => smaller, Morph => morph];
    huffman, 15_000_000, "compressor by frequencies of bytes",
        [Morph => morph, Smaller => smaller];
    bk_tree, 8_000, "spell checker's tree of distances", [Hint => hint, Morph => morph];
    chat, 100_000, "messages in the inboxes of users", [Hint => hint];
    merge_runs, 8_000_000, "sorted runs that become one",
        [Container("CTreeMap") => container, Smaller => smaller];
    compress, 40_000_000, "compressor with chains of hashes", [Smaller => smaller];
    calculator, 600_000, "formulas that are read, calculated and forgotten",
        [Morph => morph];
    run_queue, 200_000, "scheduler with linked lists of tasks", [Idea("vector") => idea];
    versions, 100_000, "versions of a search tree that share nodes", [Hint => hint];
    calendar, 4_000_000, "events of a firm by day",
        [Container("CTreeMap") => container, Idea("vector") => idea];
    series, 3_000_000, "measurements by name and time", [Split => split];
};
