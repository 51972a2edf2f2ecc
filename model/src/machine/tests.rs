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
    let level = |block, capacity, ns| vec![Level::new("L1", LevelKind::Data, block, capacity, ns)];
    let refused = |levels| {
        matches!(
            Machine::new("x", search, levels),
            Err(MachineError::Absurd { .. })
        )
    };
    assert!(!refused(level(64, 1000.0, 1.0)));
    assert!(refused(level(48, 1000.0, 1.0)));
    assert!(refused(level(0, 1000.0, 1.0)));
    assert!(refused(level(64, 0.0, 1.0)));
    assert!(refused(level(64, f64::NAN, 1.0)));
    assert!(refused(level(64, 1000.0, -1.0)));
    assert!(refused(level(64, 1000.0, f64::INFINITY)));
    assert!(refused(vec![]));
    assert!(refused(
        [level(64, 1000.0, 1.0), level(64, 1000.0, 1.0)].concat()
    ));
}

#[test]
fn machines_that_would_take_forever_are_refused() {
    let level = |i: u32| Level::new(&format!("L{i}"), LevelKind::Data, 64, 1e4, 1.0);
    let with = |levels: u32| {
        Machine::new(
            "x",
            Machine::thesis().search,
            (0..levels).map(level).collect(),
        )
    };
    assert!(with(16).is_ok());
    assert!(with(17).is_err());
    let neighbours = |sizes: &[u64]| {
        let mut machine = Machine::thesis();
        let share = 1.0 / sizes.len() as f64;
        machine.neighbours = sizes
            .iter()
            .map(|&block_bytes| NeighbourShare { block_bytes, share })
            .collect();
        machine.check()
    };
    let all: Vec<u64> = (6..=30).map(|bits| 1 << bits).collect();
    assert_eq!(neighbours(&all), Ok(()));
    assert!(neighbours(&[256, 256]).is_err());
    assert!(neighbours(&[4096, 256]).is_err());
    assert!(neighbours(&[256, 1 << 31]).is_err());
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
fn machine_files_come_back_as_they_went() {
    for machine in [&Machine::thesis(), Machine::this()] {
        assert_eq!(Machine::from_json(&machine.to_json()).as_ref(), Ok(machine));
    }
}

#[cfg(feature = "json")]
#[test]
fn other_versions_and_broken_files_are_told_apart() {
    let text = Machine::thesis().to_json();
    let other = text.replacen("\"format\": 1", "\"format\": 2", 1);
    assert_eq!(
        Machine::from_json(&other),
        Err(MachineError::Format { found: 2 })
    );
    for broken in ["", "{}", "[1]", "{\"format\": 1}", &text[..text.len() / 2]] {
        assert!(
            matches!(Machine::from_json(broken), Err(MachineError::Syntax { .. })),
            "{broken}"
        );
    }
    let absurd = text.replacen("\"block_bytes\": 16", "\"block_bytes\": 17", 1);
    assert!(matches!(
        Machine::from_json(&absurd),
        Err(MachineError::Absurd { .. })
    ));
    let unknown = text.replacen("\"name\"", "\"nome\"", 1);
    assert!(matches!(
        Machine::from_json(&unknown),
        Err(MachineError::Syntax { .. })
    ));
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
