//! All runs of the Olden programs side by side, in the form of the thesis's figure 4-5: time,
//! normalised; memory; and the simulated machine.

use std::fmt::Write as _;

use super::Size;
use super::runner::{Setting, Variant};

/// A panel for each program and setting.
#[derive(Clone, Debug)]
pub struct OldenTable {
    /// In the order in which they were measured.
    pub panels: Vec<Panel>,
}

/// One program in one setting.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Its name.
    pub program: &'static str,
    /// Its heap.
    pub setting: Setting,
    /// Its input.
    pub size: Size,
    /// Bytes of its nodes, without what allocators add.
    pub node_bytes: usize,
    /// The rival that everything is normalised to.
    pub best: String,
    /// Rounds behind the medians.
    pub rounds: usize,
    /// The contestants.
    pub bars: Vec<Bar>,
}

/// One contestant: medians over the rounds.
#[derive(Clone, Debug)]
pub struct Bar {
    /// The allocator, in words.
    pub who: String,
    /// Where the nodes went.
    pub variant: Variant,
    /// Building.
    pub build_ns: f64,
    /// Laying out after the build; 0 without a morph.
    pub morph_ns: f64,
    /// Working, with what is laid out again meanwhile.
    pub work_ns: f64,
    /// Time of the whole over that of the best rival: below 1 is better than it.
    pub time_share: f64,
    /// Peak resident memory.
    pub peak_bytes: f64,
    /// Peak resident memory over that of the best rival.
    pub memory_share: f64,
    /// Cycles on the thesis's machine over those as allocated by the system's malloc, where it was
    /// simulated.
    pub simulated_share: Option<f64>,
}

impl OldenTable {
    /// What the columns are, in a sentence or two.
    pub const EXPLANATION: &'static str = "Time (build, layout and work together) and peak \
        memory over those of the best rival as allocated, below 1 being better. Layout is the one \
        after the build: programs that lay out again while they work, bisort and health, have \
        that time in work. Prefetched rows are the best rival's, not ours. Simulated: cycles on \
        the thesis's machine (table 4.1) over those of the system's malloc as allocated, on the \
        input that is simulated, in a fresh heap.";

    /// The titles of the columns.
    pub fn header() -> [&'static str; 10] {
        [
            "program",
            "heap",
            "allocator",
            "placement",
            "time",
            "build ms",
            "layout ms",
            "work ms",
            "memory",
            "simulated",
        ]
    }

    /// The cells, row by row.
    pub fn rows(&self) -> impl Iterator<Item = [String; 10]> + '_ {
        self.panels.iter().flat_map(|panel| {
            panel.bars.iter().map(move |bar| {
                let ms = |nanoseconds: f64| format!("{:.1}", nanoseconds / 1e6);
                let is_best = bar.who == panel.best && bar.variant == Variant::AsAllocated;
                let time = format!("{:.2}", bar.time_share);
                [
                    panel.program.to_owned(),
                    panel.setting.name().to_owned(),
                    bar.who.clone(),
                    bar.variant.name().to_owned(),
                    if is_best { format!("**{time}**") } else { time },
                    ms(bar.build_ns),
                    ms(bar.morph_ns),
                    ms(bar.work_ns),
                    format!("{:.2}", bar.memory_share),
                    bar.simulated_share
                        .map_or_else(|| "-".to_owned(), |share| format!("{share:.2}")),
                ]
            })
        })
    }

    /// A section of a report in Markdown.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("## The Olden programs\n\n{}\n\n", Self::EXPLANATION);
        let mut line = |cells: &[&str]| {
            writeln!(text, "| {} |", cells.join(" | "))
                .expect("a String takes all that is written to it");
        };
        line(&Self::header());
        line(&[
            "---", "---", "---", "---", "---:", "---:", "---:", "---:", "---:", "---:",
        ]);
        for row in self.rows() {
            line(&row.each_ref().map(String::as_str));
        }
        text
    }
}
