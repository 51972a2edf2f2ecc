use super::curve::{FIRST_BYTES, MIN_STEP_NS};
use super::fit::fit_steps;
use super::*;
use crate::machine::{CurvePoint, Evidence, TranslationLevel};

/// The curve of known levels at 28 sizes, two to the doubling.
fn curve(base: f64, steps: &[(f64, f64)]) -> Vec<CurvePoint> {
    let point = |i| {
        let bytes = FIRST_BYTES * 2f64.powf(f64::from(i) / 2.0);
        let step_ns = steps.iter().map(|&(c, ns)| ns * (1.0 - c / bytes).max(0.0));
        CurvePoint {
            at: bytes,
            ns: base + step_ns.sum::<f64>(),
        }
    };
    (0..28).map(point).collect()
}

fn weights(points: &[CurvePoint]) -> Vec<f64> {
    points.iter().map(|point| 1.0 / point.ns).collect()
}

#[test]
fn known_levels_are_found_again() {
    let levels = [(32_768.0, 4.0), (2_097_152.0, 40.0), (16_777_216.0, 80.0)];
    let points = curve(2.0, &levels);
    let steps = fit_steps(&points, &weights(&points), MIN_STEP_NS);
    let total: f64 = steps.iter().map(|step| step.step_ns).sum();
    assert!((total - 124.0).abs() < 1.0, "{steps:?}");
    for (capacity, step_ns) in levels {
        let is_near = |step: &&crate::Step| (0.6..1.7).contains(&(step.capacity_bytes / capacity));
        let near: f64 = steps.iter().filter(is_near).map(|step| step.step_ns).sum();
        assert!((near / step_ns - 1.0).abs() < 0.1, "{capacity}: {steps:?}");
    }
}

#[test]
fn noise_does_not_invent_negative_or_wild_steps() {
    let mut points = curve(2.0, &[(100_000.0, 10.0), (5e6, 100.0)]);
    for (i, point) in points.iter_mut().enumerate() {
        point.ns *= if i % 2 == 0 { 1.03 } else { 0.97 };
    }
    let steps = fit_steps(&points, &weights(&points), MIN_STEP_NS);
    let total: f64 = steps.iter().map(|step| step.step_ns).sum();
    assert!(steps.iter().all(|step| step.step_ns > 0.0));
    assert!((total / 110.0 - 1.0).abs() < 0.15, "{steps:?}");
}

#[test]
fn a_flat_or_empty_curve_has_no_steps() {
    let flat = curve(3.0, &[]);
    assert_eq!(fit_steps(&flat, &weights(&flat), MIN_STEP_NS), []);
    assert_eq!(fit_steps(&[], &[], MIN_STEP_NS), []);
}

#[test]
fn search_costs_are_finite_and_not_negative() {
    let mut machine = Machine::this().clone();
    machine.search = search::costs(1).unwrap();
    assert_eq!(machine.check(), Ok(()));
}

#[test]
fn small_working_sets_give_sane_points() {
    let memory = PagedMemory::new(1 << 15, PageSize::Small4K).unwrap();
    let mut chase = Chase { state: 1 };
    let point = chase.point(&memory, 1e12, 1);
    // Limited to the memory.
    assert!((point.at - f64::from(1 << 18)).abs() < 1e-9);
    assert!(point.ns > 0.0);
}

#[test]
fn a_measurement_that_is_no_machine_falls_back_with_a_reason() {
    let measured = Machine::thesis();
    assert_eq!(checked(measured.clone()), measured);
    let mut stopped_clock = measured;
    stopped_clock.levels.clear();
    let fallback = checked(stopped_clock);
    assert_eq!(fallback.origin, Origin::Defaults);
    assert_eq!(fallback.levels, Machine::this().levels);
    assert!(fallback.notes[0].contains("0 levels"), "{fallback:?}");
    assert_eq!(fallback.check(), Ok(()));
}

#[test]
fn steps_without_a_known_cache_are_left_out() {
    let mut topology = Topology::this();
    topology.caches.clear();
    let evidence = Evidence {
        huge_pages: curve(3.0, &[(48e3, 5.0)]),
        ..Evidence::default()
    };
    assert_eq!(data_levels(&evidence, &topology), []);
}

#[test]
fn what_drowned_in_noise_is_said() {
    let root = std::path::Path::new("/nonexistent");
    let topology = Topology::read(root, crate::topology::Processor::default());
    let point = |ns| CurvePoint { at: 8192.0, ns };
    let level = |entries, miss_ns| TranslationLevel { entries, miss_ns };
    let probe = |levels: &[TranslationLevel], huge_ns| TranslationProbe {
        small_pages: vec![point(20.0)],
        huge_pages: vec![point(huge_ns)],
        levels: levels.to_vec(),
    };
    let quiet = Quietness::new(Vec::new(), None, None);
    let loud = Quietness::new(Vec::new(), Some(0.5), None);
    let both = [level(96, 2.0), level(2048, 18.0)];
    let said = |probe, quietness| doubts(&topology, &Some(probe), quietness);
    let nothing = said(probe(&both, 0.5), &quiet);
    assert_eq!(nothing, topology.notes, "only what the system leaves open");
    assert!(said(probe(&both, 0.5), &loud)[0].contains("loud"));
    assert!(said(probe(&both, 15.0), &quiet)[0].contains("huge pages"));
    assert!(said(probe(&both[..1], 0.5), &quiet)[0].contains("1 of the two"));
    // As a hierarchy: with those TLBs that showed.
    let caches = topology.hierarchy().unwrap();
    let whole = with_tlbs(caches.clone(), Some(&probe(&both, 0.5)));
    let geometries: Vec<(u64, u64)> = whole
        .tlbs()
        .iter()
        .map(|tlb| (tlb.geometry.sets(), tlb.geometry.associativity()))
        .collect();
    assert_eq!(geometries, [(16, 6), (256, 8)]);
    assert_eq!(with_tlbs(caches.clone(), None), caches);
}

/// A measurement in which memory takes so many nanoseconds.
fn with_memory(ns: f64) -> Machine {
    let mut machine = Machine::thesis();
    machine.levels = vec![Level::new("L1", LevelKind::Data, 64, 32768.0, ns)];
    machine
}

/// What is agreed on, of these measurements.
fn agreed_of(all: &[f64]) -> Machine {
    let mut rest = all.iter();
    agreed(|| with_memory(*rest.next().expect("no more are needed")))
}

#[test]
fn measurements_that_agree_are_believed() {
    for (all, ns) in [
        (&[100.0, 110.0][..], 110.0),
        (&[250.0, 110.0, 100.0], 100.0),
    ] {
        assert_eq!(agreed_of(all), with_memory(ns));
    }
}

#[test]
fn contradictions_are_said_and_the_fastest_is_taken() {
    let found = agreed_of(&[300.0, 100.0, 200.0]);
    assert_eq!(found.levels, with_memory(100.0).levels);
    let [note] = &found.notes[..] else {
        panic!("{:?}", found.notes);
    };
    assert!(note.contains("took 100 ns, and then 200 ns"), "{note}");
}
