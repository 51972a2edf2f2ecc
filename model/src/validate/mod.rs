//! The model held against what it predicts: the simulator, cachegrind, the clock, the thesis.
//!
//! Each check yields a [`Row`]: what was found, what is allowed, and a line that says how it was
//! found. `model validate` prints them.

mod cachegrind;
pub mod clock;
pub mod steady;
pub mod structures;
pub mod thesis;

pub use cachegrind::sim_vs_cachegrind;

/// How a value is held against what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The value may be this and less: errors, seconds.
    AtMost,
    /// The value may be this and more: rates, shares.
    AtLeast,
}

/// One checked claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Stable name, as `steady_error_max`.
    pub name: &'static str,
    /// What was found; errors are relative, 0.02 is 2 %. `None` when the check could not run here,
    /// which `note` explains.
    pub value: Option<f64>,
    /// What is allowed.
    pub allowed: f64,
    /// Which side of `allowed` is allowed.
    pub bound: Bound,
    /// The worst case, what was left out, why a check could not run.
    pub note: String,
}

impl Row {
    /// Whether the value is as allowed; also when there is none.
    pub fn ok(&self) -> bool {
        match (self.value, self.bound) {
            (None, _) => true,
            (Some(value), Bound::AtMost) => value <= self.allowed,
            (Some(value), Bound::AtLeast) => value >= self.allowed,
        }
    }
}

/// How much is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Effort {
    /// A few sizes and geometries of each kind: about a minute for all rows.
    Quick,
    /// Everything that a row's name promises.
    #[default]
    Full,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_look_the_right_way() {
        let row = |value, bound| Row {
            name: "x",
            value,
            allowed: 0.5,
            bound,
            note: String::new(),
        };
        assert!(row(Some(0.5), Bound::AtMost).ok());
        assert!(!row(Some(0.6), Bound::AtMost).ok());
        assert!(row(Some(0.6), Bound::AtLeast).ok());
        assert!(!row(Some(f64::NAN), Bound::AtLeast).ok());
        assert!(row(None, Bound::AtMost).ok());
    }
}
