//! What the program could not reach any more at its end.

use crate::profile::{Leaks, Profile};

/// All leaks; `None` if nobody has looked for them.
#[must_use]
pub fn total(profile: &Profile) -> Option<Leaks> {
    profile.leaks.iter().find(|it| it.site.is_none()).copied()
}

/// Those of a site: zeros if it has none, `None` if nobody has looked.
#[must_use]
pub fn of_site(profile: &Profile, site: usize) -> Option<Leaks> {
    total(profile)?;
    let is_it = |it: &&Leaks| it.site.is_some_and(|it| it as usize == site);
    Some(
        profile
            .leaks
            .iter()
            .find(is_it)
            .copied()
            .unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyses::test_profile::profile;

    #[test]
    fn no_leaks_are_other_than_unknown_ones() {
        let mut run = profile();
        assert_eq!((total(&run), of_site(&run, 0)), (None, None));
        run.leaks = vec![Leaks::default()];
        assert_eq!(of_site(&run, 0), Some(Leaks::default()));
        let leaked = Leaks {
            site: Some(0),
            chunks: 2,
            bytes: 30,
            ..Leaks::default()
        };
        run.leaks.push(leaked);
        assert_eq!(of_site(&run, 0), Some(leaked));
        assert_eq!(of_site(&run, 1), Some(Leaks::default()));
    }
}
