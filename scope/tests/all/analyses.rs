//! What analyses say of programs that were made for them.

use ccscope::Profile;
use ccscope::analyses::findings::{self, Kind, findings};
use ccscope::analyses::scores::{self, Pattern, inferences, scores};
use tempfile::TempDir;

use super::programs::{CCSCOPE, Run, compile};

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
    let profile = profile(&["--rate=2"], "sharing");
    let found = findings(&profile, &findings::Options::default());
    let shared = found.iter().filter(|it| it.kind == Kind::FalseSharing);
    let shared: Vec<_> = shared.map(|it| (it.site, it.sentence.as_str())).collect();
    let sentence = "shared by 2 threads in one cache block: give each thread 64 bytes of its own";
    assert_eq!(shared, [(site_of(&profile, 64), sentence)]);
    // Both threads write the other one, too.
    let other = site_of(&profile, 128);
    assert_eq!(profile.sites[other].shared_chunks, 1);
}
