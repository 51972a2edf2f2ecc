//! What no machine is.

use super::{MACHINE_FORMAT, Machine, MachineError, NeighbourShare};

/// Bounds that no real machine leaves; files outside are refused as absurd.
const MAX_NS: f64 = 1e6;
const MAX_CAPACITY_BYTES: f64 = (1u64 << 50) as f64;
const MAX_BLOCK_BYTES: u64 = 1 << 30;
/// Each level costs a pass over the structure, each block size one more, so that a file must not
/// ask for many.
const MAX_LEVELS: usize = 16;
const MAX_STEPS: usize = 256;
const MAX_NOTES: usize = 32;
/// Smallest block whose lines are neighbours. Sizes ascend, so that up to `MAX_BLOCK_BYTES` there
/// are 25 of them.
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
        let absurd = |what: String| Err(MachineError::Absurd { what });
        let times = [
            ("search.operation_ns", self.search.operation_ns),
            ("search.node_ns", self.search.node_ns),
            ("search.misprediction_ns", self.search.misprediction_ns),
            (
                "search.branch_free_node_ns",
                self.search.branch_free_node_ns,
            ),
        ];
        if let Some((what, ns)) = times
            .into_iter()
            .find(|&(_, ns)| !(0.0..=MAX_NS).contains(&ns))
        {
            return absurd(format!("{what} is {ns}"));
        }
        let overlap = self.overlap;
        let overlaps = [
            ("overlap.misses", overlap.misses, 1.0),
            ("overlap.nodes_ahead", overlap.nodes_ahead, 0.0),
            ("overlap.branches", overlap.branches, 1.0),
        ];
        if let Some((what, value, _)) = overlaps
            .into_iter()
            .find(|&(_, value, least)| !(least..=MAX_OVERLAP).contains(&value))
        {
            return absurd(format!("{what} is {value}"));
        }
        let texts = std::iter::once(&self.name).chain(&self.notes);
        if let Some(text) = { texts }.find(|text| text.contains(char::is_control)) {
            return absurd(format!("name or note {text:?} has control characters"));
        }
        if self.notes.len() > MAX_NOTES {
            return absurd(format!("it has {} notes", self.notes.len()));
        }
        if self.levels.is_empty() || self.levels.len() > MAX_LEVELS {
            return absurd(format!(
                "it has {} levels, not 1 to {MAX_LEVELS}",
                self.levels.len()
            ));
        }
        for (i, level) in self.levels.iter().enumerate() {
            let name = &level.name;
            if name.is_empty() || self.levels[..i].iter().any(|other| other.name == *name) {
                return absurd(format!("level name {name:?} is empty or used twice"));
            }
            if name.contains(char::is_control) {
                return absurd(format!("level name {name:?} has control characters"));
            }
            if !level.block_bytes.is_power_of_two() || level.block_bytes > MAX_BLOCK_BYTES {
                return absurd(format!("block_bytes of {name} is {}", level.block_bytes));
            }
            if level.steps.is_empty() || level.steps.len() > MAX_STEPS {
                return absurd(format!(
                    "{name} has {} steps, not 1 to {MAX_STEPS}",
                    level.steps.len()
                ));
            }
            for step in &level.steps {
                if !(1.0..=MAX_CAPACITY_BYTES).contains(&step.capacity_bytes) {
                    return absurd(format!(
                        "a capacity_bytes of {name} is {}",
                        step.capacity_bytes
                    ));
                }
                if !(0.0..=MAX_NS).contains(&step.step_ns) {
                    return absurd(format!("a step_ns of {name} is {}", step.step_ns));
                }
            }
            if !level
                .steps
                .is_sorted_by(|a, b| a.capacity_bytes < b.capacity_bytes)
            {
                return absurd(format!("capacities of {name} do not ascend"));
            }
        }
        let shares: f64 = self
            .neighbours
            .iter()
            .map(|neighbour| neighbour.share)
            .sum();
        let fits = |neighbour: &NeighbourShare| {
            neighbour.block_bytes.is_power_of_two()
                && (MIN_NEIGHBOUR_BYTES..=MAX_BLOCK_BYTES).contains(&neighbour.block_bytes)
                && (0.0..=1.0).contains(&neighbour.share)
        };
        let ascending = self
            .neighbours
            .is_sorted_by(|a, b| a.block_bytes < b.block_bytes);
        if !ascending || shares > 1.0 + 1e-9 || !self.neighbours.iter().all(fits) {
            return absurd(
                "neighbours are not shares of ascending power-of-two blocks that add up to 1 at most"
                    .to_owned(),
            );
        }
        Ok(())
    }
}
