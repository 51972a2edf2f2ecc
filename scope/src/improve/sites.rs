//! Where rules allocate, and what they say of the sites of a profile.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::rules::{Learned, Proposal};
use crate::profile::{Frame, Profile};
use crate::symbols::{self, Loaded, Symbols};

/// The user's own function and line of each proposal, as far as symbols tell. `program` is where
/// the module of its name lies now.
pub(crate) fn frames(proposals: &[Proposal], program: Option<&Path>) -> Vec<Option<Frame>> {
    let mut paths: HashMap<String, PathBuf> = HashMap::new();
    if let Some((path, name)) = program.and_then(|path| Some((path, path.file_name()?))) {
        paths.insert(name.to_string_lossy().into_owned(), path.to_owned());
    }
    for proposal in proposals {
        if let (name, Some(path)) = proposal.module() {
            paths.insert(name, path.into());
        }
    }
    let mut symbols = Symbols::default();
    let mut frame_of = |proposal: &Proposal| {
        let site = proposal.site()?;
        let loaded = [Loaded::at_rest(paths.get(&site.module)?.clone())];
        let frames = symbols.frames(site.offset, &loaded);
        let stack: Vec<u32> = (0..).take(frames.len()).collect();
        let own = symbols::place(&stack, &frames)?;
        let frame = frames.get(usize::try_from(own).ok()?)?;
        // Without symbols it is named by its address, as in the rule.
        let is_named = !frame.file.is_empty() || !frame.function.contains("+0x");
        is_named.then(|| frame.clone())
    };
    proposals.iter().map(&mut frame_of).collect()
}

/// By index of a site, what a file of rules says of it: its rule, or why it has none. A profile of
/// the same binary has the rule's address, one of another build the line.
pub(crate) fn of_sites<'l>(
    profile: &Profile,
    learned: &'l Learned,
) -> HashMap<usize, (&'l Proposal, bool)> {
    let mut said = HashMap::new();
    for (proposals, is_rule) in [(&learned.proposals, true), (&learned.refused, false)] {
        let frames = frames(proposals, None);
        for (proposal, place) in proposals.iter().zip(frames) {
            let at = proposal.site();
            let is_there = |frame: &Frame| {
                let same_address = at
                    .as_ref()
                    .is_some_and(|at| at.module == frame.module && at.offset == frame.address);
                let same_line = place.as_ref().is_some_and(|place| {
                    let of = |it: &Frame| (it.line, it.function.clone());
                    place.line > 0 && of(place) == of(frame)
                });
                same_address || same_line
            };
            for (index, site) in profile.sites.iter().enumerate() {
                let mut stack = crate::views::stack(profile, site);
                let fits = proposal
                    .bytes()
                    .is_none_or(|bytes| (site.smallest..=site.largest).contains(&bytes));
                if fits && stack.any(is_there) {
                    said.entry(index).or_insert((proposal, is_rule));
                }
            }
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Site;

    #[test]
    fn rules_are_told_of_the_sites_that_they_are_about() {
        let frame = |module: &str, address, function: &str| Frame {
            module: module.to_owned(),
            address,
            function: function.to_owned(),
            ..Frame::default()
        };
        let site = |stack: &[u32], bytes| Site {
            stack: stack.to_vec(),
            smallest: bytes,
            largest: bytes,
            ..Site::default()
        };
        let profile = Profile {
            frames: vec![
                frame("prog", 0x1117, "push"),
                frame("libc.so", 0x1117, "other"),
                frame("prog", 0x2000, "main"),
            ],
            sites: vec![
                site(&[0, 2], 24),
                site(&[0, 2], 48),
                site(&[1, 2], 24),
                site(&[2], 8),
            ],
            ..Profile::default()
        };
        let file = "ccmalloc rules 1
module prog build-id 1 /no/such/prog
+1117 size 24 near r14  # sampled 4, linked 98 %, new object at +8 of it, alive 9 bytes
+1117 size 48 near rbp  # sampled 4, linked 80 %, it at +16 of the new object, alive 9 bytes
# +2000 size 8: allocations 5, sampled 31: two do not fit a cache block
";
        let learned = Learned::parse(file.as_bytes()).unwrap();
        let said = of_sites(&profile, &learned);
        let text = |site: usize| said.get(&site).map(|(it, is_rule)| (it.parent(), *is_rule));
        let into =
            "the object whose byte 8 will point to the new one; r14 has it at 98 % of the calls";
        let from = "the object to which byte 16 of the new one will point; \
                    rbp has it at 80 % of the calls";
        assert_eq!(text(0), Some((Some(into.to_owned()), true)));
        assert_eq!(text(1), Some((Some(from.to_owned()), true)));
        assert_eq!(text(2), None);
        assert_eq!(text(3), Some((None, false)));
        assert_eq!(said[&3].0.refusal(), "two do not fit a cache block");
    }
}
