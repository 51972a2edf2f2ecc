//! What each suite measures, in words, for the report and its page.

/// What a suite measures, against whom, and what to know before believing it. Empty for an unknown
/// suite.
pub fn suite(name: &str) -> &'static str {
    match name {
        "ccmalloc" => {
            "The allocator. Rows named bst_ and chain_ ask trees and hash chains whose nodes were \
             allocated with hints, against the same structures from allocators without hints. \
             Rows named unhinted_ are whole programs without a hint, each run in a process of its \
             own; rss_ is their peak memory. A row without a rival in its name is the one against \
             the best rival."
        }
        "ccmorph" => {
            "A structure as each allocator left it, against the same structure after one morph in \
             the layout that the model chose; all are asked the same, in turns. auto_regret is \
             the best measured layout's time over that of the model's choice, so 1 is the best \
             possible. morph_vs_clone is the time of a morph against that of a recursive copy."
        }
        "ctree" => {
            "Ordered maps and sets with the same keys, each workload in a young process served by \
             the system's malloc. Dependent lookups wait for the answer before, independent ones \
             are a plain loop over a list, many passes the list at once where a map takes that. \
             Keys are drawn evenly, the hardest case for caches, unless the name says otherwise."
        }
        "model" => {
            "The model against the clock. Ours is the prediction and theirs the measurement of \
             the same tree, node for node where it lies; the ratio is the smaller over the \
             larger, so 1 is exact."
        }
        "olden" => {
            "The Olden programs, written from their published descriptions: whole programs, \
             building included, with hints or morphs, against the best of the allocators without, \
             or with _vs_heaps the best of those that take memory back. fresh is a young heap; \
             aged one in which other objects were allocated and half of them freed before. Rows \
             with _sim in their names are cycles simulated for the thesis's machine, not \
             measured."
        }
        "scaling" => {
            "Two threads against one, and costs as a structure grows. A ratio of scalings says \
             how much better ours uses the second processor than the rival does."
        }
        "apps" => {
            "Published programs on real input, changed by a few lines each: hints or morphs \
             against the same program under the best of the other allocators."
        }
        _ => "",
    }
}

/// What holds for all figures.
pub const ALL: &str = "A ratio above 1 means that ours is better. Figures are medians over \
    rounds in which ours and the rivals took turns, with their answers checked in each. The \
    range beside a ratio is the middle half of the ratios of single rounds: how much the run \
    disagrees with itself, not how far another machine will differ. Where 1 lies inside, the run \
    does not say which is better.";

/// How to read the pictures of ratios.
pub const BARS: &str = "Bars begin at 1 on a logarithmic axis: to the right ours is better, to \
    the left worse. The thin line is the middle half of the rounds; a bar is grey when 1 lies \
    inside.";
