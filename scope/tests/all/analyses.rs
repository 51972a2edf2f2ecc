//! What analyses say of programs that were made for them.

use ccscope::Profile;
use ccscope::analyses::findings::{self, Kind, findings};
use ccscope::analyses::scores::{self, Pattern, inferences, scores};
use tempfile::TempDir;

use super::programs::{CCSCOPE, Run, cargo_run, cargo_run_with, compile};

fn profile(options: &[&str], which: &str) -> Profile {
    let folder = TempDir::new().unwrap();
    let flags = ["-O1", "-pthread"];
    let program = compile(folder.path(), &[CCSCOPE, "cc"], "analyses.c", &flags);
    Run::of(&[options, &[program.to_str().unwrap(), which]].concat()).profile()
}

/// Index of the site with this largest chunk.
fn site_of(profile: &Profile, size: u64) -> usize {
    let mut sites = profile.sites.iter();
    sites.position(|site| site.largest == size).unwrap()
}

/// Sites and sentences of the findings of this kind.
fn told(profile: &Profile, kind: Kind) -> Vec<(usize, String)> {
    let found = findings(profile, &findings::Options::default()).into_iter();
    let found = found.filter(|it| it.kind == kind);
    found.map(|it| (it.site, it.sentence)).collect()
}

#[test]
fn patterns_of_figure_3_are_recognised() {
    let profile = profile(&[], "patterns");
    let inferred = inferences(&profile, &scores(&profile, &scores::Options::default()));
    for (size, pattern) in [
        (400, Pattern::Loop),
        (256_000, Pattern::Growth),
        (300, Pattern::ShortUse),
    ] {
        let of_site = &inferred[site_of(&profile, size)];
        assert_eq!(of_site.patterns, [pattern], "{size}");
    }
}

#[test]
fn words_of_two_threads_in_a_block_are_false_sharing() {
    let profile = profile(&[], "sharing");
    let shared = told(&profile, Kind::FalseSharing);
    let [(site, sentence)] = &shared[..] else {
        panic!("{shared:?}")
    };
    assert_eq!(*site, site_of(&profile, 64));
    let (start, end) = (
        "2 threads write one cache line in turn, some ",
        " (bytes 0 and 8)",
    );
    assert!(
        sentence.starts_with(start) && sentence.contains(end),
        "{sentence}"
    );
    // Both threads write the other one, too.
    let other = site_of(&profile, 128);
    assert_eq!(profile.sites[other].shared_chunks, 1);
}

#[test]
fn objects_of_two_threads_in_a_line_are_false_sharing() {
    let run = profile(&[], "objects");
    let shared = told(&run, Kind::FalseSharing);
    let [first, second] = [16, 20].map(|size| site_of(&run, size));
    let [(site, sentence)] = &shared[..] else {
        panic!("{shared:?}")
    };
    assert_eq!(*site, first.min(second));
    let other = first.max(second);
    let of_other = format!("(byte 8, and byte 8 of #{other} at analyses.c:");
    let start = "2 threads write one cache line in turn, some ";
    assert!(
        sentence.starts_with(start) && sentence.contains(&of_other),
        "{sentence}"
    );
    // No thread has accessed the other's.
    for site in [first, second] {
        assert_eq!(run.sites[site].shared_chunks, 0);
    }
    // Both write in 6000 rounds, so that there is a turn at least in each; one in 8 is counted.
    let turns = run.lines.iter().map(|line| line.turns * 8).sum::<u64>();
    assert!((4000..=1_300_000).contains(&turns), "{turns}");
    let apart = profile(&[], "objects-apart");
    assert_eq!(told(&apart, Kind::FalseSharing), []);
}

#[test]
fn a_large_future_is_told_by_its_largest_local() {
    let source = include_str!("../programs/futures.rs");
    let line_of = |word: &str| source.lines().position(|it| it.ends_with(word)).unwrap() + 1;
    let found = told(&cargo_run("futures").profile, Kind::LargeFuture);
    let of = |local: &str, line| {
        format!("{local}, held at the await of futures.rs:{line}: drop it before, or box it, up to")
    };
    let expected = [
        of("3,000 of them `table: [u8; 3000]`", line_of("// table")),
        of(
            "16,384 of them `scratch: [u8; 16384]`",
            line_of("// scratch"),
        ),
        "12,000 of them `numbers: [u64; 1500]`, an argument: pass it in a box, up to".to_owned(),
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for part in expected {
        let is_it = |(_, sentence): &(usize, String)| sentence.contains(&part);
        assert!(found.iter().any(is_it), "{part} {found:#?}");
    }
}

#[test]
fn what_is_touched_after_the_peak_was_is_touched_at_the_peak() {
    let profile = profile(&[], "late");
    let large = &profile.sites[site_of(&profile, 700_000)];
    assert_eq!(large.at_peak_touched, 400_000);
    let touched = profile.sites.iter().map(|site| site.at_peak_touched);
    assert!((400_000..410_000).contains(&touched.sum::<u64>()));
}

#[test]
fn a_chunk_that_threads_use_all_the_run_is_of_use_all_the_run() {
    let profile = profile(&[], "late");
    let used = &profile.sites[site_of(&profile, 700)];
    assert_eq!(used.shared_chunks, 1);
    let life = used.lifetime as f64;
    assert!(used.active_ratio > 0.9, "{} of {life}", used.active_ratio);
    assert!(used.drag < 0.1 * 700.0 * life, "{} of {life}", used.drag);
}

#[test]
fn nothing_is_claimed_of_bytes_that_precompiled_code_uses() {
    let program = cargo_run_with("backtrace", |command| {
        command.env("RUST_BACKTRACE", "1");
    });
    let profile = program.profile;
    let functions = |site: usize| {
        let stack = profile.sites[site].stack.iter();
        stack.map(|&frame| &*profile.frames[frame as usize].function)
    };
    let of_backtrace = |site: &usize| functions(*site).any(|it| it.contains("gimli"));
    let backtrace: Vec<usize> = (0..profile.sites.len()).filter(of_backtrace).collect();
    assert!(backtrace.len() > 10);
    for site in backtrace {
        let stack: Vec<&str> = functions(site).collect();
        assert!(profile.sites[site].unseen, "{stack:#?}");
    }
    let found = findings(&profile, &findings::Options::default());
    // Calls of the allocator are seen.
    let told = { found.iter() }.filter(|it| !matches!(it.kind, Kind::Growth | Kind::Moved));
    let told: Vec<_> = told.map(|it| (it.site, it.kind)).collect();
    assert_eq!(told, [(site_of(&profile, 5_000_000), Kind::NeverTouched)]);
}

#[test]
fn a_realloc_in_place_counts_what_it_adds() {
    let profile = profile(&[], "resizes");
    assert!((100_000..110_000).contains(&profile.total.requested));
    let mut sites = profile.sites.iter();
    let site = sites.position(|site| site.same_size > 0).unwrap();
    let of_site = &profile.sites[site];
    let counts = (of_site.same_size, of_site.requested, of_site.kept_bytes);
    assert_eq!(counts, (2000, 0, 200_000_000));
    let found = findings(&profile, &findings::Options::default());
    let found = found.iter().filter(|it| it.site == site);
    let found: Vec<_> = found.map(|it| (it.kind, it.sentence.as_str())).collect();
    let sentence = "2,000 calls of `realloc` to the size that the chunk has: leave them out";
    assert_eq!(found, [(Kind::SameSize, sentence)]);
}
