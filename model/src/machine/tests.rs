use super::*;

#[test]
fn defaults_pass_their_own_check() {
    assert_eq!(Machine::this().check(), Ok(()));
    assert!(core::ptr::eq(Machine::this(), Machine::this()));
}

#[test]
fn a_level_of_several_steps_has_their_mean_capacity() {
    let mut level = Level::new("L3", LevelKind::Data, 64, 100.0, 30.0);
    level.steps.push(Step {
        capacity_bytes: 400.0,
        step_ns: 10.0,
    });
    assert!((level.capacity_bytes() - 175.0).abs() < 1e-9);
    assert!((level.step_ns() - 40.0).abs() < 1e-9);
}

fn set_levels(machine: &mut Machine, count: u32) {
    let level = |i: u32| Level::new(&format!("L{i}"), LevelKind::Data, 64, 1e4, 1.0);
    machine.levels = (0..count).map(level).collect();
}

fn set_neighbours(machine: &mut Machine, sizes: impl IntoIterator<Item = u64>) {
    let share = 0.04;
    let neighbour = |block_bytes| NeighbourShare { block_bytes, share };
    machine.neighbours = sizes.into_iter().map(neighbour).collect();
}

#[test]
fn what_no_machine_has_is_refused() {
    type Change = fn(&mut Machine);
    let changed = |change: Change| {
        let mut machine = Machine::thesis();
        change(&mut machine);
        machine.check().map_err(|error| error.to_string())
    };
    let accepted: [Change; 3] = [
        |m| set_levels(m, 16),
        |m| set_neighbours(m, (6..=30).map(|bits| 1 << bits)),
        |m| m.name.push('é'),
    ];
    for change in accepted {
        assert_eq!(changed(change), Ok(()));
    }
    let refused: [(Change, &str); 21] = [
        (|m| m.levels[0].block_bytes = 48, "block_bytes is 48"),
        (|m| m.levels[0].block_bytes = 0, "block_bytes is 0"),
        (
            |m| m.levels[0].steps[0].capacity_bytes = 0.0,
            "capacity_bytes is 0",
        ),
        (|m| m.levels[0].steps[0].capacity_bytes = f64::NAN, "NaN"),
        (|m| m.levels[0].steps[0].step_ns = -1.0, "step_ns is -1"),
        (|m| m.levels[0].steps[0].step_ns = f64::INFINITY, "inf"),
        (|m| m.levels[0].steps.clear(), "0 steps"),
        (|m| set_levels(m, 0), "0 levels"),
        (|m| set_levels(m, 17), "17 levels"),
        (|m| m.levels[1].name = "L1".to_owned(), "used twice"),
        (|m| set_neighbours(m, [256, 256]), "neighbours"),
        (|m| set_neighbours(m, [4096, 256]), "neighbours"),
        (|m| set_neighbours(m, [256, 1 << 31]), "neighbours"),
        // What a terminal would obey.
        (|m| m.name.push('\u{1b}'), "control characters"),
        (|m| m.levels[0].name.push('\n'), "control characters"),
        (|m| m.notes.push("\r".to_owned()), "control characters"),
        (|m| m.search.node_ns = -1.0, "search.node_ns"),
        (|m| m.overlap.misses = 0.5, "overlap.misses"),
        (|m| m.overlap.misses = 1e9, "overlap.misses"),
        (|m| m.overlap.nodes_ahead = -1.0, "overlap.nodes_ahead"),
        (|m| m.overlap.branches = f64::NAN, "overlap.branches"),
    ];
    for (change, expected) in refused {
        let message = changed(change).unwrap_err();
        assert!(message.contains(expected), "{expected}: {message}");
        assert!(!message.contains(char::is_control), "{message:?}");
    }
}

#[cfg(feature = "json")]
#[test]
fn files_that_describe_no_machine_are_refused_with_a_reason() {
    let text = Machine::thesis().to_json();
    let half = &text[..text.len() / 2];
    for broken in ["", "{}", "[1]", "{\"format\": 2}", half] {
        let message = Machine::from_json(broken).unwrap_err().to_string();
        assert!(message.starts_with("not a machine file"), "{message}");
    }
    for (from, to, reason) in [
        ("\"format\": 2", "\"format\": 1", "format 1"),
        ("\"block_bytes\": 16", "\"block_bytes\": 17", "17"),
        ("\"name\"", "\"nome\"", "not a machine file"),
        ("\"name\"", "\"\\u001b[31m\\n\"", "[31m"),
        (
            "\"sets\": 1024",
            "\"sets\": 2048",
            "are 32768 bytes, not 16384",
        ),
        ("\"sets\": 1024", "\"sets\": 1000", "1000 sets"),
        ("\"ways\": 1", "\"ways\": 0", "0 blocks"),
        ("\"ways\": 1", "\"ways\": 65536", "more than 16384 ways"),
        ("\"non-inclusive\"", "\"victim-last\"", "victim"),
        ("\"policy\": \"lru\"", "\"policy\": \"clock\"", "clock"),
        ("\"hierarchy\": {", "\"hierarchie\": {", "hierarchie"),
        ("\"step_ns\"", "\"extra\": 1, \"step_ns\"", "extra"),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        let refused = Machine::from_json(&text.replacen(from, to, 1));
        let message = refused.unwrap_err().to_string();
        assert!(message.contains(reason), "{reason}: {message}");
        assert!(!message.contains(char::is_control), "{message:?}");
    }
}

#[test]
fn readings_give_a_verdict() {
    let reading = |spread, after_ns| ChaseReading {
        name: "L1".to_owned(),
        before_ns: 4.0,
        after_ns,
        spread,
    };
    for (readings, steal, load, expected) in [
        (vec![reading(0.05, 4.1)], None, None, Verdict::Quiet),
        (vec![reading(0.2, 4.1)], None, None, Verdict::Busy),
        // Drift up and down.
        (vec![reading(0.05, 5.0)], None, None, Verdict::Busy),
        (vec![reading(0.05, 2.0)], None, None, Verdict::Loud),
        (Vec::new(), Some(0.2), None, Verdict::Loud),
        (Vec::new(), Some(0.0), Some(1.0), Verdict::Busy),
    ] {
        assert_eq!(Quietness::new(readings, steal, load).verdict, expected);
    }
    let heard = Quietness::new(vec![reading(0.2, 4.0)], Some(0.01), Some(0.5));
    let expected = "busy: L1 spread 20 % drift 0 %, stolen time 1.0 %, load 0.50 a processor";
    assert_eq!(heard.to_string(), expected);
}

#[test]
fn colours_reach_what_a_probe_has_shown() {
    let mut machine = Machine::thesis();
    assert_eq!(machine.colour_way_bytes(), 4096);
    let probe = |way_bytes, other_ns| ColourProbe {
        way_bytes,
        other_ns,
        same_ns: 20.0,
        miss_ns: 10.0,
    };
    machine.evidence.colours = vec![probe(4096, 15.0), probe(1 << 17, 19.9)];
    assert_eq!(machine.colour_way_bytes(), 4096);
    machine.evidence.colours[1] = probe(1 << 17, 14.0);
    assert_eq!(machine.colour_way_bytes(), 1 << 17);
    // A miss that costs nothing can save nothing.
    machine.evidence.colours[1].miss_ns = 0.0;
    assert_eq!(machine.colour_way_bytes(), 4096);
}

#[cfg(feature = "json")]
#[test]
fn machine_files_come_back_as_they_went() {
    let mut machine = Machine::thesis();
    let point = CurvePoint { at: 16.0, ns: 0.25 };
    let reading = ChaseReading {
        name: "L1".to_owned(),
        before_ns: 1.0,
        after_ns: 1.125,
        spread: 0.5,
    };
    machine.evidence = Evidence {
        hit_ns: Some(1.5),
        translation: Some(TranslationProbe {
            small_pages: vec![point],
            huge_pages: Vec::new(),
            levels: vec![TranslationLevel {
                entries: 96,
                miss_ns: 2.0,
            }],
        }),
        overlap: vec![point],
        quietness: Some(Quietness::new(vec![reading], None, Some(0.25))),
        ..Evidence::default()
    };
    let presets = Machine::presets().map(Preset::machine);
    for machine in presets.chain([Machine::this().clone(), machine.clone()]) {
        assert_eq!(Machine::from_json(&machine.to_json()), Ok(machine));
    }
    // Calibrations before 0.1 named the points after their units, and measured more.
    let text = machine.to_json();
    let old = text.replace("\"at\"", "\"pages\"");
    let old = old.replacen("\"overlap\": [", "\"granule\": {}, \"overlap\": [", 1);
    assert_eq!(Machine::from_json(&old), Ok(machine));
}

#[cfg(feature = "json")]
quickcheck::quickcheck! {
    /// Whatever a file holds, reading it ends with a machine that passes its check or a message
    /// that can be printed.
    fn damaged_files_are_machines_or_messages(damages: Vec<(u16, u8)>) -> bool {
        let mut bytes = Machine::thesis().to_json().into_bytes();
        for (place, byte) in damages.into_iter().take(3) {
            let place = usize::from(place) % bytes.len();
            bytes[place] = byte;
        }
        match Machine::from_json(&String::from_utf8_lossy(&bytes)) {
            Ok(machine) => machine.check().is_ok(),
            Err(error) => !error.to_string().contains(char::is_control),
        }
    }
}
