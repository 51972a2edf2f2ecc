//! Sampled profiles are right on average and within their intervals, and exact for large chunks.

use ccscope::Profile;
use ccscope::analyses::sampled::within;
use ccscope::profile::Site;
use tempfile::TempDir;

use super::programs::{CCSCOPE, Run, cargo_run, command, compile, text};

/// The sum over the sites that this function is the place of.
fn site<'p>(profile: &'p Profile, function: &str) -> &'p Site {
    let of = |site: &&Site| {
        let frame = &profile.frames[site.place.unwrap() as usize];
        frame.function == function
    };
    profile.sites.iter().find(of).unwrap()
}

#[test]
fn sums_are_right_on_average() {
    const RUNS: u32 = 16;
    const CHUNKS: f64 = 400_000.0;
    const LIVE: f64 = 4_000.0;
    let folder = TempDir::new().unwrap();
    let flags = ["-O1", "-g", "-pthread"];
    let program = compile(folder.path(), &["cc"], "sampled.c", &flags);
    let (mut errors, mut hits) = (0.0, [0; 3]);
    for _ in 0..RUNS {
        let run = Run::of(&["--sample=65536", program.to_str().unwrap()]);
        assert!(run.output.status.success(), "{}", run.err());
        let profile = run.profile();
        assert_eq!(profile.run.sample, 65_536);
        assert!(profile.run.caveats[0].starts_with("Sampled: of chunks under 65.5 kB about one"));
        assert_eq!(profile.total.unknown_frees, 0);
        let large = site(&profile, "large");
        assert_eq!(
            (large.allocations, large.requested, large.end_chunks),
            (40, 40_000_000, 10)
        );
        assert_eq!(within(&profile, [large]), within(&Profile::default(), []));
        let small = site(&profile, "small");
        assert_eq!((small.smallest, small.largest), (100, 100));
        assert_eq!(small.requested, small.allocations * 100);
        assert_eq!(small.allocations - small.frees, small.end_chunks);
        let half = within(&profile, [small]);
        let error = small.allocations as f64 - CHUNKS;
        errors += error / CHUNKS;
        hits[0] += u32::from(error.abs() <= half.allocations);
        hits[1] += u32::from((small.requested as f64 - CHUNKS * 100.0).abs() <= half.requested);
        hits[2] += u32::from((small.end_chunks as f64 - LIVE).abs() <= half.end_chunks);
    }
    // A standard deviation of one run is 4 %: of the mean, 1 %.
    assert!((errors / f64::from(RUNS)).abs() < 0.05, "{errors}");
    assert!(hits.iter().all(|&hits| hits > RUNS / 2), "{hits:?}");
}

#[test]
fn what_cannot_be_sampled_is_refused() {
    for (words, why) in [
        (["--sample=0", "--quiet"], "0 is not in 1..="),
        (["--sample=9x", "--quiet"], "invalid digit"),
        (["--sample", "--full"], "cannot be used with"),
    ] {
        let output = command(CCSCOPE)
            .arg("run")
            .args(words)
            .arg("true")
            .output()
            .unwrap();
        let err = text(&output.stderr);
        assert!(!output.status.success() && err.contains(why), "{err}");
    }
    let instrumented = cargo_run("list").executable;
    let run = Run::of(&["--sample", instrumented.to_str().unwrap()]);
    assert!(
        run.err()
            .contains("`--sample` is for programs as they are shipped"),
        "{}",
        run.err()
    );
}
