//! Which fields of a type are cold enough to be kept apart (T. Chilimbi, 1999, section 6.1.2).

/// A cold part takes a link of so many bytes in the hot one, and must have at least as many.
pub const MIN_COLD: u64 = 8;
/// The normalised temperature differential must be larger (equation 2).
pub const MIN_DIFFERENTIAL: f64 = 0.5;

/// Fields that are accessed so many times as often as others may be the hot ones.
const STEP: f64 = 2.0;
/// The most splits of a type.
const MAX_CUTS: usize = 4;

/// A field as a profile sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldUse {
    /// In bytes.
    pub size: u64,
    /// Reads and writes, of all instances.
    pub accesses: u64,
}

/// Why a type stays whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// Too few of the program's accesses are to it (equation 1).
    NotLive,
    /// It has at most 8 bytes or two fields.
    Small,
    /// Its cold fields have less than [`MIN_COLD`] bytes.
    NoColdFields,
}

/// A split.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// Indices of the cold fields.
    pub cold: Vec<usize>,
    /// Their bytes.
    pub cold_bytes: u64,
    /// The normalised temperature differential: 1 if nobody accesses a cold field.
    pub differential: f64,
}

/// Equation 1: a type with `accesses` of a program's `all` to fields of `types` types.
#[must_use]
pub fn is_live(accesses: u64, all: u64, types: usize) -> bool {
    accesses as f64 > all as f64 / (100.0 * types.max(1) as f64)
}

/// The splits of a type of these fields, the likeliest first, or why there is none. `all` and
/// `types` are those of [`is_live`].
///
/// The first is the paper's. Fields with at most A / (2 F) of the A accesses, for F fields, are
/// cold. If they are accessed so often that going through a link would cost half of what is saved
/// (equation 2), only those with less than A / (5 F) are. The others are between fields of which
/// one is accessed twice as often as the next or more: the largest steps, four splits in all.
///
/// # Errors
/// Why it stays whole.
pub fn splits(fields: &[FieldUse], all: u64, types: usize) -> Result<Vec<Split>, Whole> {
    let accesses: u64 = fields.iter().map(|field| field.accesses).sum();
    if !is_live(accesses, all, types) {
        return Err(Whole::NotLive);
    }
    let bytes: u64 = fields.iter().map(|field| field.size).sum();
    if bytes <= MIN_COLD || fields.len() <= 2 {
        return Err(Whole::Small);
    }
    let mean = accesses as f64 / fields.len() as f64;
    let aggressive = marked(fields, |accesses| accesses <= mean / 2.0);
    let of_paper = { aggressive.filter(|split| split.differential > MIN_DIFFERENTIAL) }
        .or_else(|| marked(fields, |accesses| accesses < mean / 5.0));
    let mut found: Vec<Split> = of_paper.into_iter().collect();
    for most in steps(fields) {
        let split = marked(fields, |accesses| accesses <= most as f64);
        found.extend(split.filter(|split| found.iter().all(|it| it.cold != split.cold)));
    }
    found.truncate(MAX_CUTS);
    match found.is_empty() {
        true => Err(Whole::NoColdFields),
        false => Ok(found),
    }
}

/// Numbers of accesses up to which fields may be cold, since the next ones have so many more.
fn steps(fields: &[FieldUse]) -> Vec<u64> {
    let mut counts: Vec<u64> = fields.iter().map(|field| field.accesses).collect();
    counts.sort_unstable();
    let ratio = |pair: &[u64]| pair[1] as f64 / pair[0].max(1) as f64;
    let mut steps: Vec<(f64, u64)> = { counts.windows(2) }
        .map(|pair| (ratio(pair), pair[0]))
        .filter(|&(ratio, _)| ratio >= STEP)
        .collect();
    steps.sort_by(|a, b| b.0.total_cmp(&a.0));
    steps.into_iter().map(|(_, most)| most).collect()
}

/// The split at the fields with so few accesses, if it has enough bytes.
fn marked(fields: &[FieldUse], is_cold: impl Fn(f64) -> bool) -> Option<Split> {
    let is_cold = |field: &FieldUse| is_cold(field.accesses as f64);
    let cold = || fields.iter().filter(|field| is_cold(field));
    let hot = fields.iter().filter(|field| !is_cold(field));
    let cold_bytes: u64 = cold().map(|field| field.size).sum();
    let hottest = hot.map(|field| field.accesses).max().unwrap_or(0) as f64;
    let through_link: u64 = cold().map(|field| field.accesses).sum();
    (cold_bytes >= MIN_COLD).then(|| Split {
        cold: (0..fields.len())
            .filter(|&at| is_cold(&fields[at]))
            .collect(),
        cold_bytes,
        differential: (hottest - 2.0 * through_link as f64) / hottest.max(f64::MIN_POSITIVE),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(of: &[(u64, u64)]) -> Vec<FieldUse> {
        of.iter()
            .map(|&(size, accesses)| FieldUse { size, accesses })
            .collect()
    }

    /// The splits in a program whose accesses are all to these fields.
    fn splits(fields: &[FieldUse]) -> Result<Vec<Split>, Whole> {
        super::splits(fields, fields.iter().map(|field| field.accesses).sum(), 1)
    }

    /// The paper's split.
    fn split(fields: &[FieldUse]) -> Result<Split, Whole> {
        splits(fields).map(|mut splits| splits.swap_remove(0))
    }

    /// Among 10,000 accesses in 20 types, a type is live with more than 10,000 / 2000 = 5.
    #[test]
    fn live_types_have_their_part_of_the_accesses() {
        assert!(is_live(6, 10_000, 20) && !is_live(5, 10_000, 20));
        assert!(!is_live(0, 0, 0));
        let five = fields(&[(8, 5), (8, 0), (8, 0)]);
        assert_eq!(super::splits(&five, 10_000, 20), Err(Whole::NotLive));
        let six = fields(&[(8, 6), (8, 0), (8, 0)]);
        assert!(super::splits(&six, 10_000, 20).is_ok());
    }

    /// With 1000 accesses to 4 fields, at most 1000 / 8 = 125 make a field cold: the last two, of
    /// 24 bytes. TD = 600 - 2 * 30 = 540, normalised 0.9.
    #[test]
    fn cold_fields_have_half_of_the_mean() {
        let split = split(&fields(&[(8, 600), (8, 370), (8, 30), (16, 0)])).unwrap();
        assert_eq!((&*split.cold, split.cold_bytes), (&[2, 3][..], 24));
        assert!((split.differential - 0.9).abs() < 1e-12);
    }

    /// Aggressively, of 1000 / 10 = 100 accesses, the last three are cold with 90 + 80 + 10, so
    /// that (420 - 360) / 420 = 0.14 is too little. Conservatively, of 1000 / 25 = 40, it is the
    /// last one.
    #[test]
    fn warm_fields_stay() {
        let five = fields(&[(8, 420), (8, 400), (8, 90), (8, 80), (16, 10)]);
        let split = split(&five).unwrap();
        assert_eq!((&*split.cold, split.cold_bytes), (&[4][..], 16));
        assert!((split.differential - 400.0 / 420.0).abs() < 1e-12);
    }

    /// From 400 to 90 accesses, and from 80 to 10, are steps; from 90 to 80 is none.
    #[test]
    fn other_cuts_are_at_steps() {
        let five = fields(&[(8, 420), (8, 400), (8, 90), (8, 80), (16, 10)]);
        let cold: Vec<Vec<usize>> = { splits(&five).unwrap().into_iter() }
            .map(|split| split.cold)
            .collect();
        assert_eq!(cold, [vec![4], vec![2, 3, 4]]);
    }

    #[test]
    fn small_and_evenly_used_types_stay_whole() {
        assert_eq!(split(&fields(&[(8, 9), (64, 0)])), Err(Whole::Small));
        assert_eq!(split(&fields(&[(2, 9), (2, 0), (4, 0)])), Err(Whole::Small));
        let even = fields(&[(8, 10), (8, 11), (8, 12)]);
        assert_eq!(split(&even), Err(Whole::NoColdFields));
        // Seven cold bytes do not pay for a link.
        let bytes = fields(&[(8, 100), (8, 100), (7, 0)]);
        assert_eq!(split(&bytes), Err(Whole::NoColdFields));
    }
}
