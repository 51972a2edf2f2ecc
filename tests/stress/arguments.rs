//! What the user asks for.

/// How to call the program.
pub(crate) const USAGE: &str =
    "usage: stress [--operations N] [--threads N] [--seed N]      (N may be written as 1e9)";

/// See [`USAGE`].
#[derive(Debug, PartialEq)]
pub(crate) struct Arguments {
    pub(crate) operations: u64,
    pub(crate) threads: usize,
    pub(crate) seed: u64,
}

impl Arguments {
    /// Reads the command line, without the program's name.
    ///
    /// # Errors
    /// Says which argument is wrong, and in what.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self {
            operations: 20_000_000,
            threads: 2,
            seed: 1,
        };
        while let Some(name) = words.next() {
            let value = words.next().ok_or(format!("{name} needs a number"))?;
            let number = number(&value).ok_or(format!("{name}: {value} is no whole number"))?;
            match name.as_str() {
                "--operations" => arguments.operations = number,
                "--threads" if (1..=256).contains(&number) => {
                    arguments.threads =
                        usize::try_from(number).map_err(|error| error.to_string())?;
                }
                "--threads" => return Err(String::from("--threads must be 1 to 256")),
                "--seed" => arguments.seed = number,
                _ => return Err(format!("{name} is unknown")),
            }
        }
        Ok(arguments)
    }
}

/// A whole number, maybe in the form `2e7`.
fn number(text: &str) -> Option<u64> {
    match text.split_once('e') {
        None => text.replace('_', "").parse().ok(),
        Some((mantissa, exponent)) => {
            let power = 10u64.checked_pow(exponent.parse().ok()?)?;
            mantissa.parse::<u64>().ok()?.checked_mul(power)
        }
    }
}
