//! The Olden programs compute the same wherever their nodes lie, and what they compute is right;
//! each run is a process of its own, as in `report`.
//!
//! `cargo test --workspace` leaves it out, because it needs the rivals:
//! `cargo test --release -p measure --test olden`.

use std::process::{Command, Output};

use measure::dispatch::ALLOCATOR_VARIABLE;
use measure::olden::Size;
use measure::olden::runner::{
    Extent, Finished, PROGRAMS, Program, Run, Setting, Stages, Target, Variant,
};
use measure::olden::table::{Bar, OldenTable, Panel};
use measure::rivals::{ALLOCATORS, ARENAS, ours};

fn worker(name: &str, allocator: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_measure"))
        .args(["--worker", name])
        .env(ALLOCATOR_VARIABLE, allocator)
        .output()
        .expect("report is built beside its tests")
}

fn finished(run: &Run, allocator: &str) -> Stages {
    let output = worker(&run.to_string(), allocator);
    assert!(
        output.status.success(),
        "{run} under {allocator}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let line = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    let finished: Finished = serde_json::from_str(&line).expect("one object");
    assert_eq!(
        (finished.run, finished.allocator.as_str()),
        (run.to_string(), allocator)
    );
    finished.stages
}

/// All runs of a program that check themselves.
fn runs(program: &'static Program) -> impl Iterator<Item = (Run, &'static str)> {
    let rivals = ALLOCATORS
        .iter()
        .chain(ARENAS)
        .map(|rival| rival.methods.name);
    let allocators: Vec<&str> = rivals.chain([ours::METHODS.name]).collect();
    Setting::ALL.iter().flat_map(move |&setting| {
        let allocators = allocators.clone();
        Variant::ALL.iter().flat_map(move |&variant| {
            let run = Run {
                program,
                setting,
                variant,
                size: Size::Tiny,
                extent: Extent::Checked,
                target: Target::This,
            };
            let allocators = allocators.clone().into_iter();
            allocators
                .filter(move |&name| name == ours::METHODS.name || !variant.needs_ours())
                .map(move |name| (run, name))
        })
    })
}

#[test]
fn programs_compute_the_same_wherever_their_nodes_lie() {
    for program in PROGRAMS {
        let mut expected = None;
        for (run, allocator) in runs(program) {
            let stages = finished(&run, allocator);
            let expected = *expected.get_or_insert(stages.checksum);
            assert_eq!(stages.checksum, expected, "{run} under {allocator}");
            assert!(
                stages.build_ns > 0 && stages.work_ns > 0,
                "{run}: {stages:?}"
            );
            let is_morphed = matches!(run.variant, Variant::Clustered | Variant::Coloured);
            assert_eq!(stages.morph_ns > 0, is_morphed, "{run}: {stages:?}");
        }
    }
}

#[test]
fn a_layout_for_the_simulated_machine_changes_no_result() {
    for program in PROGRAMS {
        let run = Run {
            program,
            setting: Setting::Fresh,
            variant: Variant::Coloured,
            size: Size::Tiny,
            extent: Extent::Checked,
            target: Target::Rsim,
        };
        let plain = Run {
            variant: Variant::AsAllocated,
            ..run
        };
        let ours = ours::METHODS.name;
        assert_eq!(
            finished(&run, ours).checksum,
            finished(&plain, ours).checksum
        );
    }
}

#[test]
fn a_run_that_ends_before_the_build_computes_nothing() {
    let stages = finished(
        &Run {
            program: &PROGRAMS[0],
            setting: Setting::Aged,
            variant: Variant::NewBlock,
            size: Size::Tiny,
            extent: Extent::Input,
            target: Target::This,
        },
        ours::METHODS.name,
    );
    assert_eq!((stages.total_ns(), stages.checksum), (0, 0));
}

#[test]
fn sizes_are_what_the_guide_says() {
    // More than twice the second-level cache of the simulated machine, 256 KB; and four times the 8
    // MiB that a program gets of a shared last-level cache.
    let least = [(Size::Tiny, 0.6), (Size::Large, 32.0)];
    for (size, least_mebibytes) in least {
        let sizes = PROGRAMS.iter().map(|program| {
            let mebibytes = program.node_bytes(size) as f64 / f64::from(1 << 20);
            (program.name, mebibytes)
        });
        let sizes: Vec<(&str, f64)> = sizes.collect();
        assert!(
            sizes
                .iter()
                .all(|&(_, mebibytes)| mebibytes >= least_mebibytes),
            "{size:?}: {sizes:?}"
        );
    }
}

#[test]
fn names_of_runs_are_read_as_they_are_written() {
    for program in PROGRAMS {
        for (run, _) in runs(program) {
            let again: Run = run.to_string().parse().expect("it was written so");
            assert_eq!(again.to_string(), run.to_string());
        }
    }
    let short: Run = "olden:treeadd:aged:new-block:quick"
        .parse()
        .expect("the rest may be left out");
    assert_eq!((short.extent, short.target), (Extent::Run, Target::This));
}

#[test]
fn unknown_names_are_refused_in_words() {
    for (name, word) in [
        ("olden:nonesuch:aged:new-block:quick", "nonesuch"),
        ("olden:treeadd:young:new-block:quick", "young"),
        ("olden:treeadd:aged:anywhere:quick", "anywhere"),
        ("olden:treeadd:aged:new-block:huge", "huge"),
        ("olden:treeadd:aged", "variant"),
    ] {
        let output = worker(name, ours::METHODS.name);
        assert!(!output.status.success(), "{name}");
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(complaint.contains(word), "{name}: {complaint}");
    }
}

#[test]
fn a_table_has_a_row_for_each_bar() {
    let bar = |who: &str, variant, time_share| Bar {
        who: who.to_owned(),
        variant,
        build_ns: 1e6,
        morph_ns: 0.0,
        work_ns: 2.5e6,
        time_share,
        peak_bytes: 1e6,
        memory_share: 1.25,
        simulated_share: (variant == Variant::NewBlock).then_some(0.5),
    };
    let table = OldenTable {
        panels: vec![Panel {
            program: "treeadd",
            setting: Setting::Aged,
            size: Size::Tiny,
            node_bytes: 24,
            best: "mimalloc".to_owned(),
            rounds: 1,
            bars: vec![
                bar("mimalloc", Variant::AsAllocated, 1.0),
                bar("ccmalloc", Variant::NewBlock, 0.8),
            ],
        }],
    };
    let text = table.to_markdown();
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("| treeadd"))
        .collect();
    assert_eq!(
        rows,
        [
            "| treeadd | aged | mimalloc | as-allocated | **1.00** | 1.0 | 0.0 | 2.5 | 1.25 | - |",
            "| treeadd | aged | ccmalloc | new-block | 0.80 | 1.0 | 0.0 | 2.5 | 1.25 | 0.50 |",
        ]
    );
}
