use super::*;

#[test]
fn presets_and_defaults_pass_their_own_check() {
    assert_eq!(Machine::thesis().check(), Ok(()));
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

#[test]
fn absurd_numbers_are_refused() {
    let search = Machine::thesis().search;
    let level = |i: u32| Level::new(&format!("L{i}"), LevelKind::Data, 64, 1e4, 1.0);
    let with = |levels| Machine::new("x", search, levels).map(|_| ());
    assert_eq!(with((0..16).map(level).collect()), Ok(()));
    let one = |block, capacity, ns| vec![Level::new("L1", LevelKind::Data, block, capacity, ns)];
    for levels in [
        one(48, 1000.0, 1.0),
        one(0, 1000.0, 1.0),
        one(64, 0.0, 1.0),
        one(64, f64::NAN, 1.0),
        one(64, 1000.0, -1.0),
        one(64, 1000.0, f64::INFINITY),
        vec![],
        vec![level(1), level(1)],
        (0..17).map(level).collect(),
    ] {
        assert!(matches!(with(levels), Err(MachineError::Absurd { .. })));
    }
    let neighbours = |sizes: &[u64]| {
        let mut machine = Machine::thesis();
        let share = 1.0 / sizes.len() as f64;
        let neighbour = |&block_bytes| NeighbourShare { block_bytes, share };
        machine.neighbours = sizes.iter().map(neighbour).collect();
        machine.check()
    };
    let all: Vec<u64> = (6..=30).map(|bits| 1 << bits).collect();
    assert_eq!(neighbours(&all), Ok(()));
    for sizes in [[256, 256], [4096, 256], [256, 1 << 31]] {
        assert!(neighbours(&sizes).is_err());
    }
}

#[test]
fn names_that_a_terminal_would_obey_are_refused() {
    let changed = |change: fn(&mut Machine)| {
        let mut machine = Machine::thesis();
        change(&mut machine);
        machine.check()
    };
    for refused in [
        changed(|machine| machine.name.push('\u{1b}')),
        changed(|machine| machine.levels[0].name.push('\n')),
        changed(|machine| machine.notes.push("\r".to_owned())),
    ] {
        let message = refused.unwrap_err().to_string();
        assert!(message.contains("control characters"), "{message}");
        assert!(!message.contains(char::is_control), "{message:?}");
    }
    assert_eq!(changed(|machine| machine.name.push('é')), Ok(()));
}

#[cfg(feature = "json")]
#[test]
fn complaints_about_a_file_are_printable() {
    let text = Machine::thesis()
        .to_json()
        .replacen("\"name\"", "\"\\u001b[31m\\n\"", 1);
    let message = Machine::from_json(&text).unwrap_err().to_string();
    assert!(message.contains("[31m"), "{message:?}");
    assert!(!message.contains(char::is_control), "{message:?}");
}

#[cfg(feature = "json")]
#[test]
fn other_versions_and_broken_files_are_told_apart() {
    let text = Machine::thesis().to_json();
    let other = text.replacen("\"format\": 2", "\"format\": 1", 1);
    assert_eq!(
        Machine::from_json(&other),
        Err(MachineError::Format { found: 1 })
    );
    for broken in ["", "{}", "[1]", "{\"format\": 2}", &text[..text.len() / 2]] {
        let refused = Machine::from_json(broken);
        assert!(
            matches!(refused, Err(MachineError::Syntax { .. })),
            "{broken}"
        );
    }
    let absurd =
        Machine::from_json(&text.replacen("\"block_bytes\": 16", "\"block_bytes\": 17", 1));
    assert!(matches!(absurd, Err(MachineError::Absurd { .. })));
    let unknown = Machine::from_json(&text.replacen("\"name\"", "\"nome\"", 1));
    assert!(matches!(unknown, Err(MachineError::Syntax { .. })));
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
    assert!((machine.evidence.colours[1].saved_share() - 0.6).abs() < 1e-9);
    assert_eq!(machine.colour_way_bytes(), 1 << 17);
    // A miss that costs nothing can save nothing.
    machine.evidence.colours[1].miss_ns = 0.0;
    assert_eq!(machine.colour_way_bytes(), 4096);
}

#[test]
fn nothing_overlaps_less_than_not_at_all() {
    for change in [
        |look: &mut LookAhead| look.misses = 0.5,
        |look: &mut LookAhead| look.nodes_ahead = -1.0,
        |look: &mut LookAhead| look.branches = f64::NAN,
        |look: &mut LookAhead| look.misses = 1e9,
    ] {
        let mut machine = Machine::thesis();
        change(&mut machine.overlap);
        let message = machine.check().unwrap_err().to_string();
        assert!(message.contains("overlap."), "{message}");
    }
}

#[cfg(feature = "json")]
#[test]
fn contradictory_caches_are_refused() {
    let text = Machine::thesis().to_json();
    let changed = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}: {text}");
        Machine::from_json(&text.replacen(from, to, 1))
            .unwrap_err()
            .to_string()
    };
    let inclusion = (
        "\"inclusion\": \"non-inclusive\"",
        "\"inclusion\": \"victim-last\"",
    );
    for ((from, to), reason) in [
        (
            ("\"sets\": 1024", "\"sets\": 2048"),
            "are 32768 bytes, not 16384",
        ),
        (("\"sets\": 1024", "\"sets\": 1000"), "1000 sets"),
        (("\"ways\": 1", "\"ways\": 0"), "0 blocks"),
        (inclusion, "victim"),
        (("\"policy\": \"lru\"", "\"policy\": \"clock\""), "clock"),
    ] {
        let message = changed(from, to);
        assert!(message.contains(reason), "{message}");
    }
    let none = text.replace("\"hierarchy\": {", "\"hierarchie\": {");
    assert!(Machine::from_json(&none).is_err());
}

#[cfg(feature = "json")]
#[test]
fn machine_files_come_back_as_they_went() {
    let this = Machine::this();
    assert_eq!(Machine::from_json(&this.to_json()).as_ref(), Ok(this));
    for preset in Machine::presets() {
        let machine = preset.machine();
        assert_eq!(Machine::from_json(&machine.to_json()), Ok(machine));
    }
    let mut machine = Machine::thesis();
    machine.evidence = Evidence {
        hit_ns: Some(1.5),
        translation: Some(TranslationProbe {
            small_pages: vec![PagePoint {
                pages: 16,
                ns: 0.25,
            }],
            huge_pages: Vec::new(),
            levels: vec![TranslationLevel {
                entries: 96,
                miss_ns: 2.0,
            }],
        }),
        granule: Some(GranuleProbe {
            far_ns: 100.0,
            near: vec![CurvePoint {
                bytes: 128.0,
                ns: 20.0,
            }],
        }),
        overlap: vec![OverlapPoint {
            chains: 2,
            ns: 50.0,
        }],
        quietness: Some(Quietness::new(
            vec![ChaseReading {
                name: "L1".to_owned(),
                before_ns: 1.0,
                after_ns: 1.125,
                spread: 0.5,
            }],
            None,
            Some(0.25),
        )),
        ..Evidence::default()
    };
    assert_eq!(Machine::from_json(&machine.to_json()), Ok(machine));
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
