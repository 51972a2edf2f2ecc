//! What `ccscope::measure` costs.

use std::process::Command;

use super::scope::{Built, floor};
use crate::rounds::Rounds;
use crate::workload::{Effort, Rows, Workload};

/// Nanoseconds that an allocation in `measure` may take more than outside.
const MOST_NS: f64 = 3.0;

/// An allocation and its free within `measure`, over the same outside, in a process each.
pub(super) fn overhead(workload: &Workload, effort: &Effort) -> Rows {
    let built = Built::of("-p subjects --features subjects/measured --bin measured")?;
    let program = built.way("", "measured");
    let mut times = Vec::new();
    for _ in 0..effort.process_rounds {
        let output = Command::new(&program[0]).output()?;
        times.push(String::from_utf8(output.stdout)?.trim().parse()?);
    }
    Ok(vec![floor(
        workload.name,
        "ns",
        &Rounds::new(times),
        MOST_NS,
    )])
}
