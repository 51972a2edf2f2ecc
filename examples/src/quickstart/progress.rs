//! The bar on standard error while structures are built, and a line for each later step.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Insertions between two updates of the bar: often enough to move, too seldom to cost.
const UPDATE_EVERY: usize = 1 << 14;

/// A progress bar that is shown or silent.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    nodes: u64,
}

impl Progress {
    /// A bar for structures of `nodes` nodes each; silent unless `shown`.
    pub(crate) fn new(shown: bool, nodes: usize) -> Self {
        let bar = if shown {
            ProgressBar::new(0)
        } else {
            ProgressBar::hidden()
        };
        Progress {
            bar,
            nodes: nodes as u64,
        }
    }

    /// Yields `items` while the bar counts them.
    pub(crate) fn count<'a, T>(
        &'a self,
        what: &'static str,
        items: &'a [T],
    ) -> impl Iterator<Item = &'a T> {
        self.bar.reset();
        self.bar.set_length(self.nodes);
        self.bar.set_style(style(
            "{msg:28} {bar:40} {human_pos:>9} / {human_len} nodes",
        ));
        self.bar.set_message(what);
        items.iter().enumerate().map(|(index, item)| {
            if index % UPDATE_EVERY == 0 {
                self.bar.set_position(index as u64);
            }
            item
        })
    }

    /// Runs `work` with its name beside a spinner.
    pub(crate) fn step<R>(&self, what: &'static str, work: impl FnOnce() -> R) -> R {
        self.bar.reset();
        self.bar.set_style(style("{msg:28} {spinner}"));
        self.bar.set_message(what);
        self.bar.tick();
        self.bar.enable_steady_tick(Duration::from_millis(250));
        let result = work();
        self.bar.disable_steady_tick();
        result
    }

    /// Takes the bar off the terminal.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is one of two constants")
}
