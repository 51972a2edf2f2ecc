//! The bounds that a machine's numbers keep.

use super::{Level, LookAhead, MACHINE_FORMAT, Machine, NeighbourShare, SearchCosts};
use crate::Error;

/// Bounds that no real machine leaves; files outside are refused.
const MAX_NS: f64 = 1e6;
const MAX_CAPACITY_BYTES: f64 = (1u64 << 50) as f64;
const MAX_BLOCK_BYTES: u64 = 1 << 30;
/// Each level and each block size costs a pass over the structure.
const MAX_LEVELS: usize = 16;
const MAX_STEPS: usize = 256;
const MAX_NOTES: usize = 32;
/// Smallest block whose lines are neighbours.
const MIN_NEIGHBOUR_BYTES: u64 = 64;
const MAX_OVERLAP: f64 = 1e4;

impl Machine {
    /// Checks every number and name. O(number of levels, squared, and of their steps).
    ///
    /// # Errors
    /// When a number is absurd (negative, not finite, out of any machine's range),
    /// a block size is no power of two, capacities or neighbours' block sizes do not ascend, there
    /// are more than 16 levels, or a name is empty, used twice or holds control characters.
    ///
    /// # Examples
    /// ```
    /// use ccmodel::Machine;
    ///
    /// let mut machine = Machine::thesis();
    /// machine.levels[1].steps[0].capacity_bytes *= 4.0;
    /// assert!(machine.check().is_ok());
    /// machine.levels[1].block_bytes = 48;
    /// assert!(machine.check().is_err());
    /// ```
    pub fn check(&self) -> Result<(), Error> {
        check_format(self.format.into())?;
        match self.fault() {
            Some(what) => Err(Error::new(format!("impossible machine: {what}"))),
            None => Ok(()),
        }
    }

    /// The first thing about it that no machine has.
    fn fault(&self) -> Option<String> {
        let SearchCosts {
            operation_ns,
            node_ns,
            misprediction_ns,
            branch_free_node_ns,
        } = self.search;
        let LookAhead {
            misses,
            nodes_ahead,
            branches,
        } = self.overlap;
        for (name, value, range) in [
            ("search.operation_ns", operation_ns, 0.0..=MAX_NS),
            ("search.node_ns", node_ns, 0.0..=MAX_NS),
            ("search.misprediction_ns", misprediction_ns, 0.0..=MAX_NS),
            (
                "search.branch_free_node_ns",
                branch_free_node_ns,
                0.0..=MAX_NS,
            ),
            ("overlap.misses", misses, 1.0..=MAX_OVERLAP),
            ("overlap.nodes_ahead", nodes_ahead, 0.0..=MAX_OVERLAP),
            ("overlap.branches", branches, 1.0..=MAX_OVERLAP),
        ] {
            if !range.contains(&value) {
                return Some(format!("{name} is {value}"));
            }
        }
        let mut texts = std::iter::once(&self.name).chain(&self.notes);
        if let Some(text) = texts.find(|text| text.contains(char::is_control)) {
            return Some(format!("name or note {text:?} has control characters"));
        }
        let (levels, notes) = (self.levels.len(), self.notes.len());
        if !(1..=MAX_LEVELS).contains(&levels) {
            return Some(format!("it has {levels} levels, not 1 to {MAX_LEVELS}"));
        }
        if notes > MAX_NOTES {
            return Some(format!("it has {notes} notes, more than {MAX_NOTES}"));
        }
        for (i, level) in self.levels.iter().enumerate() {
            let name = &level.name;
            if self.levels[..i].iter().any(|other| other.name == *name) {
                return Some(format!("level name {name:?} is used twice"));
            }
            if let Some(what) = level_fault(level) {
                return Some(format!("level {name:?}: {what}"));
            }
        }
        let neighbours = &self.neighbours;
        let shares: f64 = neighbours.iter().map(|neighbour| neighbour.share).sum();
        let fits = |neighbour: &NeighbourShare| {
            neighbour.block_bytes.is_power_of_two()
                && (MIN_NEIGHBOUR_BYTES..=MAX_BLOCK_BYTES).contains(&neighbour.block_bytes)
                && (0.0..=1.0).contains(&neighbour.share)
        };
        let ascend = neighbours.is_sorted_by(|a, b| a.block_bytes < b.block_bytes);
        let is_fine = ascend && shares <= 1.0 + 1e-9 && neighbours.iter().all(fits);
        let what = "neighbours are not shares of ascending power-of-two blocks that add up to 1 at \
                    most";
        (!is_fine).then(|| what.to_owned())
    }
}

pub(super) fn check_format(found: u64) -> Result<(), Error> {
    if found == u64::from(MACHINE_FORMAT) {
        return Ok(());
    }
    Err(Error::new(format!(
        "machine file has format {found}, this program reads format {MACHINE_FORMAT}: calibrate \
         again"
    )))
}

fn level_fault(level: &Level) -> Option<String> {
    let (block_bytes, steps) = (level.block_bytes, &level.steps);
    if level.name.is_empty() || level.name.contains(char::is_control) {
        return Some("the name is empty or has control characters".to_owned());
    }
    if !block_bytes.is_power_of_two() || block_bytes > MAX_BLOCK_BYTES {
        return Some(format!("block_bytes is {block_bytes}"));
    }
    if !(1..=MAX_STEPS).contains(&steps.len()) {
        return Some(format!("{} steps, not 1 to {MAX_STEPS}", steps.len()));
    }
    for step in steps {
        if !(1.0..=MAX_CAPACITY_BYTES).contains(&step.capacity_bytes) {
            return Some(format!("a capacity_bytes is {}", step.capacity_bytes));
        }
        if !(0.0..=MAX_NS).contains(&step.step_ns) {
            return Some(format!("a step_ns is {}", step.step_ns));
        }
    }
    let ascend = steps.is_sorted_by(|a, b| a.capacity_bytes < b.capacity_bytes);
    (!ascend).then(|| "its capacities do not ascend".to_owned())
}
