//! The bounds that a machine's numbers keep.

use super::{Level, MACHINE_FORMAT, Machine, MachineError, NeighbourShare};

/// Bounds that no real machine leaves; files outside are refused as absurd.
const MAX_NS: f64 = 1e6;
const MAX_CAPACITY_BYTES: f64 = (1u64 << 50) as f64;
const MAX_BLOCK_BYTES: u64 = 1 << 30;
/// Each level and each block size costs a pass over the structure, so a file must not have many.
const MAX_LEVELS: usize = 16;
const MAX_STEPS: usize = 256;
const MAX_NOTES: usize = 32;
/// Smallest block whose lines are neighbours.
const MIN_NEIGHBOUR_BYTES: u64 = 64;
/// No processor looks further ahead.
const MAX_OVERLAP: f64 = 1e4;

impl Machine {
    /// Checks every number and name. O(number of levels, squared, and of their steps).
    ///
    /// # Errors
    /// [`MachineError`] when a number is absurd (negative, not finite, out of any machine's range),
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
    pub fn check(&self) -> Result<(), MachineError> {
        if self.format != MACHINE_FORMAT {
            return Err(MachineError::Format {
                found: u64::from(self.format),
            });
        }
        match self.absurdity() {
            Some(what) => Err(MachineError::Absurd { what }),
            None => Ok(()),
        }
    }

    /// The first thing about it that no machine has.
    fn absurdity(&self) -> Option<String> {
        let (search, overlap) = (self.search, self.overlap);
        let numbers = [
            ("search.operation_ns", search.operation_ns, 0.0..=MAX_NS),
            ("search.node_ns", search.node_ns, 0.0..=MAX_NS),
            (
                "search.misprediction_ns",
                search.misprediction_ns,
                0.0..=MAX_NS,
            ),
            (
                "search.branch_free_node_ns",
                search.branch_free_node_ns,
                0.0..=MAX_NS,
            ),
            ("overlap.misses", overlap.misses, 1.0..=MAX_OVERLAP),
            (
                "overlap.nodes_ahead",
                overlap.nodes_ahead,
                0.0..=MAX_OVERLAP,
            ),
            ("overlap.branches", overlap.branches, 1.0..=MAX_OVERLAP),
        ];
        if let Some((what, value, _)) = { numbers.iter() }.find(|(_, n, range)| !range.contains(n))
        {
            return Some(format!("{what} is {value}"));
        }
        let texts = std::iter::once(&self.name).chain(&self.notes);
        if let Some(text) = { texts }.find(|text| text.contains(char::is_control)) {
            return Some(format!("name or note {text:?} has control characters"));
        }
        let (levels, notes) = (self.levels.len(), self.notes.len());
        if notes > MAX_NOTES {
            return Some(format!("it has {notes} notes"));
        }
        if !(1..=MAX_LEVELS).contains(&levels) {
            return Some(format!("it has {levels} levels, not 1 to {MAX_LEVELS}"));
        }
        for (i, level) in self.levels.iter().enumerate() {
            if self.levels[..i]
                .iter()
                .any(|other| other.name == level.name)
            {
                return Some(format!("level name {:?} is used twice", level.name));
            }
            if let Some(what) = level_absurdity(level) {
                return Some(format!("level {:?}: {what}", level.name));
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
        (!is_fine).then(|| {
            "neighbours are not shares of ascending power-of-two blocks that add up to 1 at most"
                .to_owned()
        })
    }
}

fn level_absurdity(level: &Level) -> Option<String> {
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
