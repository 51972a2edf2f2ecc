//! Predicted misses compared with simulated ones, level by level.

use ccmodel::{Accesses, Frames, Tier, predict_misses};

use super::Row;
use crate::sample::{Precision, Simulated, sample};

pub(super) struct Compared {
    /// What was simulated, on which machine.
    pub(super) case: String,
    pub(super) machine: &'static str,
    pub(super) level: String,
    /// Misses of an operation.
    pub(super) simulated: f64,
    pub(super) predicted: f64,
    /// Standard error of the simulation, relative.
    standard_error: f64,
    /// The relative error, or the absolute one over what counts as rare.
    pub(super) error: f64,
}

impl Compared {
    /// The same level with another prediction.
    pub(super) fn with(&self, predicted: f64, rare: f64) -> Compared {
        Compared {
            case: self.case.clone(),
            level: self.level.clone(),
            predicted,
            error: (predicted - self.simulated).abs() / self.simulated.max(rare),
            ..*self
        }
    }
}

/// Compares the best tier with the simulator on each level of each machine. Misses rarer than
/// `precision.rare` cost no time and cannot be simulated to a percent, so their differences are
/// taken over that.
pub(super) fn compare(
    case: &str,
    accesses: &Accesses,
    machines: &[Simulated],
    precision: Precision,
) -> Vec<Compared> {
    let simulated = sample(accesses, machines, precision);
    let mut all = Vec::new();
    for (machine, simulated) in machines.iter().zip(simulated) {
        let hierarchy = &machine.hierarchy;
        let predicted = predict_misses(accesses, hierarchy, Frames::Identity, Tier::Auto, None);
        for (simulated, predicted) in simulated.into_iter().zip(predicted) {
            let level = Compared {
                case: case.to_owned(),
                machine: machine.name,
                level: predicted.name,
                simulated: simulated.mean,
                standard_error: simulated.standard_error,
                predicted: 0.0,
                error: 0.0,
            };
            all.push(level.with(predicted.misses, precision.rare));
        }
    }
    all
}

/// The largest error of some levels. The note names every level that errs by more than `allowed`,
/// or the worst one.
pub(super) fn row<'a>(
    name: &'static str,
    allowed: f64,
    levels: impl IntoIterator<Item = &'a Compared>,
) -> Row {
    let mut levels: Vec<&Compared> = levels.into_iter().collect();
    levels.sort_by(|a, b| b.error.total_cmp(&a.error));
    let above = levels.iter().filter(|level| level.error > allowed).count();
    let named: Vec<String> = { levels.iter().take(above.max(1)) }
        .map(|level| {
            format!(
                "{}, {} {}: {:.4} misses predicted, {:.4} simulated",
                level.case, level.machine, level.level, level.predicted, level.simulated
            )
        })
        .collect();
    let noise = levels.iter().map(|level| level.standard_error);
    let note = format!(
        "{above} of {} levels err by more than is allowed. The worst: {}. The mean error is \
         {:.2} %, the simulation's standard error at most {:.2} %.",
        levels.len(),
        named.join("; "),
        100.0 * mean_error(&levels),
        100.0 * noise.fold(0.0, f64::max)
    );
    Row::at_most(name, allowed, levels.first().map(|worst| worst.error), note)
}

pub(super) fn mean_error(levels: &[&Compared]) -> f64 {
    levels.iter().map(|level| level.error).sum::<f64>() / levels.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_above_is_named_and_else_the_worst() {
        let level = |predicted| {
            let level = Compared {
                case: format!("case {predicted}"),
                machine: "server",
                level: "L1".to_owned(),
                simulated: 1.0,
                predicted: 1.0,
                standard_error: 0.0,
                error: 0.0,
            };
            level.with(predicted, 0.1)
        };
        let levels = [1.01, 1.05, 0.97].map(level);
        let worst = row("x", 0.02, &levels);
        assert!(worst.value.is_some_and(|value| (value - 0.05).abs() < 1e-9));
        assert!(worst.note.starts_with("2 of 3 levels"), "{}", worst.note);
        assert!(worst.note.contains("case 1.05") && worst.note.contains("case 0.97"));
        let fine = row("x", 0.1, &levels).note;
        assert!(
            fine.starts_with("0 of 3 levels") && fine.contains("case 1.05"),
            "{fine}"
        );
        assert!(!fine.contains("case 0.97"), "{fine}");
        assert_eq!(row("x", 0.1, &[]).value, None);
    }
}
