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
