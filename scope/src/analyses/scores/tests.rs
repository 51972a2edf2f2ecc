use super::*;
use crate::analyses::test_profile::{group, profile};

#[track_caller]
fn assert_near(value: Option<f64>, expected: f64) {
    let value = value.expect("a score");
    assert!((value - expected).abs() < 1e-12, "{value} != {expected}");
}

/// Lifetimes 10, 10 and 20, allocated at 100, 110, 120, the last free at 140.
/// `S_g = (10 + 10 + 20) / (3 * (140 - 100)) = 40 / 120 = 1/3`.
#[test]
fn lifetime_of_one_group_is_mean_life_over_group_life() {
    assert_near(
        lifetime(&[group(100, 120, 3, 40, 140)], 0.0, None),
        1.0 / 3.0,
    );
}

/// Two groups that are far apart: `S_g` is 1/3 and, for a single chunk, `30 / (1 * 30) = 1`;
/// `S_l = (1/3 + 1) / 2 = 2/3`.
///
/// Within a threshold of 380 events the gap 500 - 120 closes:
/// `S_g = (40 + 30) / (4 * (530 - 100)) = 70 / 1720`.
#[test]
fn groups_merge_up_to_the_threshold() {
    let groups = [group(100, 120, 3, 40, 140), group(500, 500, 1, 30, 530)];
    assert_near(lifetime(&groups, 379.0, None), 2.0 / 3.0);
    assert_near(lifetime(&groups, 380.0, None), 70.0 / 1720.0);
}

/// The default threshold is 0.1 % of the run: 100 events of 100,000, and 99 of 99,000.
#[test]
fn threshold_is_a_thousandth_of_the_run() {
    let mut run = profile();
    run.sites.truncate(1);
    run.sites[0].groups = vec![
        group(1000, 1000, 1, 10, 1010),
        group(1100, 1100, 1, 10, 1110),
    ];
    run.run.end = 100_000;
    // (10 + 10) / (2 * 110)
    assert_near(scores(&run, &Options::default())[0].lifetime, 20.0 / 220.0);
    run.run.end = 99_000;
    // Two groups of one chunk each.
    assert_near(scores(&run, &Options::default())[0].lifetime, 1.0);
}

/// A latest free that is not that of the last group: `(1000 + 5) / (2 * (1100 - 100))`.
#[test]
fn group_life_ends_with_the_latest_free() {
    let groups = [group(100, 100, 1, 1000, 1100), group(105, 105, 1, 5, 110)];
    assert_near(lifetime(&groups, 10.0, None), 1005.0 / 2000.0);
}

/// Mean life 40 / 3 = 13.3: the group is short up to a limit of 13, and from 14 on counts.
#[test]
fn groups_of_long_lives_score_one_when_short_is_given() {
    let groups = [group(100, 120, 3, 40, 140)];
    assert_near(lifetime(&groups, 0.0, Some(13.0)), 1.0);
    assert_near(lifetime(&groups, 0.0, Some(14.0)), 1.0 / 3.0);
}

#[test]
fn no_chunks_have_no_scores() {
    assert_eq!(lifetime(&[], 1.0, None), None);
    assert_eq!(lifetime(&[group(1, 1, 0, 0, 1)], 1.0, None), None);
    assert_eq!(usage(&Site::default()), None);
    assert_eq!(useful_lifetime(&Site::default()), None);
    assert_eq!(Scores::default().severity(), None);
    assert_eq!(global(&[]).lifetime, None);
}

/// Two chunks of 400 bytes. One was read and written in 4 bytes (U = 1), the other written in 100
/// and never read (U = 0): `S_u = (1 * 4 + 0 * 100) / 800 = 0.005`.
#[test]
fn usage_counts_bytes_of_chunks_that_were_read_and_written() {
    let site = Site {
        allocations: 2,
        requested: 800,
        touched_bytes: 104,
        useful_bytes: 4,
        ..Site::default()
    };
    assert_near(usage(&site), 0.005);
}

/// Lives of 100 and 50, active for 80 and 10: `(80/100 + 10/50) / 2 = 0.5`.
#[test]
fn useful_lifetime_is_the_mean_active_part() {
    let site = Site {
        allocations: 2,
        active_ratio: 80.0 / 100.0 + 10.0 / 50.0,
        ..Site::default()
    };
    assert_near(useful_lifetime(&site), 0.5);
}

#[test]
fn usage_is_unknown_without_accesses() {
    let mut run = profile();
    run.run.accesses = false;
    for scores in scores(&run, &Options::default()) {
        assert!(scores.lifetime.is_some());
        assert_eq!((scores.usage, scores.useful_lifetime), (None, None));
        assert_eq!(scores.severity().is_some(), scores.lifetime.is_some());
    }
}

/// The mean of 1/2, 1/4 and 1/8: `(1/64)^(1/3) = 1/4`. Without the last: `(1/8)^(1/2)`.
#[test]
fn severity_is_the_geometric_mean() {
    let mut scores = Scores {
        lifetime: Some(0.5),
        usage: Some(0.25),
        useful_lifetime: Some(0.125),
    };
    assert_near(scores.severity(), 0.25);
    // 0.25 = 3/12
    assert_eq!(scores.colour(), Some(3));
    scores.useful_lifetime = None;
    assert_near(scores.severity(), 0.125f64.sqrt());
    scores.usage = Some(0.0);
    assert_near(scores.severity(), 0.0);
    assert_eq!(scores.colour(), Some(0));
    let best = Scores {
        lifetime: Some(1.0),
        ..Scores::default()
    };
    assert_eq!(best.colour(), Some(11));
}

/// Scores 0.2 and 0.8: geometric mean `0.16^(1/2) = 0.4`, mean 0.5, variance
/// `(0.3^2 + 0.3^2) / 2 = 0.09`. With a third site of 0: geometric mean 0, of the others still 0.4,
/// mean 1/3, variance `(0.04 + 0.64 + 0) / 3 - 1/9 = 0.68/3 - 1/9`.
#[test]
fn global_scores_are_geometric_means() {
    let of = |usage| Scores {
        usage: Some(usage),
        ..Scores::default()
    };
    let spread = global(&[of(0.2), of(0.8)]).usage.expect("two sites");
    assert_near(Some(spread.geometric_mean), 0.4);
    assert_near(Some(spread.mean), 0.5);
    assert_near(Some(spread.variance), 0.09);
    assert_eq!((spread.sites, spread.zeros), (2, 0));

    let spread = global(&[of(0.2), of(0.0), of(0.8)])
        .usage
        .expect("three sites");
    assert_near(Some(spread.geometric_mean), 0.0);
    assert_near(Some(spread.geometric_mean_of_others), 0.4);
    assert_near(Some(spread.variance), 0.68 / 3.0 - 1.0 / 9.0);
    assert_eq!((spread.sites, spread.zeros), (3, 1));
}

/// A product of 1,000 scores of 0.001 is 10^-3000, less than any number; its root is 0.001.
#[test]
fn geometric_mean_of_many_small_scores_does_not_vanish() {
    let small = Scores {
        usage: Some(0.001),
        ..Scores::default()
    };
    let spread = global(&vec![small; 1000]).usage.expect("sites");
    assert!((spread.geometric_mean - 0.001).abs() < 1e-12);
}

fn of_sites(sites: Vec<Site>) -> Vec<Inferences> {
    let mut run = profile();
    run.sites = sites;
    let scores = scores(&run, &Options::default());
    inferences(&run, &scores)
}

/// A tenth of 20 sites with peaks 1 to 20 are two: those of 20 and 19. Their chunks are equal but
/// for one site of 5, so the second place is shared by all.
#[test]
fn top_tenth_is_marked() {
    let site = |peak_usable| Site {
        peak_usable,
        allocations: if peak_usable == 7 { 5 } else { 1 },
        ..Site::default()
    };
    let marks = of_sites((1..=20).map(site).collect());
    let largest = marks.iter().filter(|mark| mark.most_bytes).count();
    assert_eq!(
        (largest, marks[18].most_bytes, marks[19].most_bytes),
        (2, true, true)
    );
    assert!(marks.iter().all(|mark| mark.most_chunks));
    // Of 10 sites it is one, of 11 two.
    let counts = |n| {
        let marks = of_sites((1..=n).map(site).collect());
        marks.iter().filter(|mark| mark.most_bytes).count()
    };
    assert_eq!((counts(1), counts(10), counts(11)), (1, 1, 2));
}

#[test]
fn read_only_and_write_only_chunks_are_told() {
    let marks = of_sites(vec![Site {
        allocations: 9,
        unread_chunks: 4,
        unwritten_chunks: 3,
        ..Site::default()
    }]);
    assert_eq!(
        (marks[0].write_only_chunks, marks[0].read_only_chunks),
        (4, 3)
    );
}

/// Sizes in random order: 5 of 5 grow with probability 1/120, 3 of 3 with 1/6. A run of 6 in
/// 1,000 is expected: 995 / 720 > 1. One of 9 is not: 992 / 362,880 = 0.3 %.
#[test]
fn runs_of_growing_sizes_are_held_against_chance() {
    assert!(is_growing(5, 5));
    assert!(!is_growing(3, 3));
    assert!(!is_growing(6, 1000));
    assert!(is_growing(9, 1000));
    assert!(!is_growing(1, 1));
    assert!(!is_growing(0, 0));
}

/// Figure 3b: one chunk at a time, a hundred times.
#[test]
fn a_loop_is_recognised() {
    let site = |allocations| Site {
        allocations,
        peak_chunks: 2,
        ..Site::default()
    };
    let marks = of_sites(vec![site(20), site(19)]);
    assert_eq!(marks[0].patterns, [Pattern::Loop]);
    assert_eq!(marks[1].patterns, []);
}

/// Figure 3c: by `realloc`, and as C++ does it, with sizes 4, 8, 16, 32, 64.
#[test]
fn growth_is_recognised() {
    let by_realloc = Site {
        allocations: 3,
        peak_chunks: 1,
        longest_chain: 3,
        ..Site::default()
    };
    let by_copy = Site {
        allocations: 5,
        peak_chunks: 2,
        longest_run: 5,
        ..Site::default()
    };
    for marks in of_sites(vec![by_realloc, by_copy]) {
        assert_eq!(marks.patterns, [Pattern::Growth]);
    }
}

/// Figure 3d: active for 5 % of their lives. A chunk that was never accessed is no short use.
#[test]
fn short_use_is_recognised() {
    let used = Site {
        allocations: 4,
        peak_chunks: 4,
        reads: 4,
        active_ratio: 4.0 * 0.05,
        ..Site::default()
    };
    let unused = Site {
        reads: 0,
        active_ratio: 0.0,
        ..used.clone()
    };
    let marks = of_sites(vec![used, unused]);
    assert_eq!(marks[0].patterns, [Pattern::ShortUse]);
    assert_eq!(marks[1].patterns, []);
}
