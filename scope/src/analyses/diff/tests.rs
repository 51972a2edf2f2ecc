use super::*;
use crate::analyses::test_profile::profile;
use crate::profile::Leaks;

fn changed(change: impl FnOnce(&mut Profile)) -> Profile {
    let mut run = profile();
    change(&mut run);
    run
}

/// The old and the new index of each pair, and how it was recognised.
fn matched(old: &Profile, new: &Profile) -> Vec<(Option<usize>, Option<usize>, Matched)> {
    let diff = diff(old, new, Machine::this());
    let mut all: Vec<_> = { diff.sites.iter() }
        .map(|it| (it.old, it.new, it.matched))
        .collect();
    all.sort_unstable_by_key(|it| (it.0, it.1));
    all
}

fn by(matched: Matched, sites: &[usize]) -> Vec<(Option<usize>, Option<usize>, Matched)> {
    { sites.iter().enumerate() }
        .map(|(old, &new)| (Some(old), Some(new), matched))
        .collect()
}

#[test]
fn sites_are_recognised_after_an_edit() {
    let old = profile();
    // Another order, other lines and addresses, another number of a closure.
    let new = changed(|run| {
        run.sites.rotate_left(1);
        run.edges.clear();
        for frame in &mut run.frames {
            frame.line += 17;
            frame.address += 0x1234;
        }
    });
    assert_eq!(matched(&old, &new), by(Matched::Functions, &[3, 0, 1, 2]));
    let closures = |number: u32| {
        changed(|run| {
            run.frames[2].function = format!("demo::collect::{{closure#{number}}}::h");
            run.frames[3].function = format!("demo::label.llvm.{number}");
        })
    };
    let all = by(Matched::Functions, &[0, 1, 2, 3]);
    assert_eq!(matched(&closures(0), &closures(1)), all);
    // A function of the standard library is gone from the stack.
    let inlined = changed(|run| run.sites[0].stack = vec![1, 5]);
    assert_eq!(matched(&old, &inlined)[0].2, Matched::OwnFunctions);
    // One of the program's own is between: most are as before.
    let between = changed(|run| {
        run.sites[0].stack = vec![0, 1, 4, 5];
        run.sites[3].stack = vec![0];
        run.sites[3].place = Some(0);
    });
    let all = matched(&old, &between);
    assert_eq!(all[1], (Some(0), Some(0), Matched::Similar));
    assert_eq!(all[0], (None, Some(3), Matched::Not));
    assert_eq!(all[4], (Some(3), None, Matched::Not));
}

/// Two calls in one function, of which one is gone: the line says which, or else the type.
#[test]
fn calls_in_one_function_are_told_apart() {
    let two = changed(|run| {
        let mut frame = run.frames[1].clone();
        frame.line = 99;
        run.frames.push(frame);
        run.sites[1].stack = vec![0, 6, 5];
        run.sites[1].place = Some(6);
    });
    let only_first = changed(|run| run.sites.truncate(1));
    assert_eq!(
        matched(&two, &only_first)[0],
        by(Matched::Functions, &[0])[0]
    );
    let only_second = changed(|run| {
        run.edges.clear();
        run.sites.remove(0);
        run.sites[0].stack = vec![0, 1, 5];
        run.frames[1].line = 120;
    });
    assert_eq!(
        matched(&two, &only_second)[1],
        (Some(1), Some(0), Matched::Functions)
    );
}

#[test]
fn what_costs_more_comes_first() {
    let old = profile();
    let new = changed(|run| {
        run.sites[3].peak_usable *= 2;
        run.sites[0].drag = 1e9;
        run.sites[2].allocations /= 2;
    });
    let diff = diff(&old, &new, Machine::this());
    let verdicts: Vec<_> = diff.sites.iter().map(|it| (it.new, it.verdict)).collect();
    assert_eq!(
        verdicts,
        [
            (Some(3), Verdict::Worse),
            (Some(0), Verdict::Worse),
            (Some(1), Verdict::Same),
            (Some(2), Verdict::Better),
        ]
    );
    // Twice 300 kB of the 1 MB of the process.
    assert!(
        (diff.sites[0].cost - 0.3).abs() < 1e-9,
        "{:?}",
        diff.sites[0]
    );
}

#[test]
fn gates_bound_changes() {
    let old = profile();
    let new = changed(|run| {
        run.total.peak_usable = 1_060_000;
        run.sites[3].allocations += 1;
        run.sites[0].useful_bytes = 0;
    });
    let fails = |text: &str| breaches(&old, &new, &gates(text).unwrap());
    let fine = "peak>+6%,peak>+60000,end>+0,peak<-0%,usage<-0.5,site:src/main.rs:allocations>+0";
    assert_eq!(fails(fine), Ok(Vec::new()));
    assert_eq!(
        fails("peak>+5%, site:src/table.rs:allocations>+0,usage<-0.05,site:Table::load:bytes>+0"),
        Ok(vec![
            "peak>+5%: 1.00 MB -> 1.06 MB, +6.0 %".to_owned(),
            "site:src/table.rs:allocations>+0: 1 -> 2, +100.0 %".to_owned(),
            "usage<-0.05: 0.800 -> 0.738, -7.8 %".to_owned(),
        ])
    );
    let nowhere = fails("site:src/none.rs:bytes>+0").unwrap_err();
    assert_eq!(
        nowhere,
        "site:src/none.rs:bytes>+0: neither profile has a site there"
    );
    // Each is a number, and their sum is none.
    let beyond = changed(|run| {
        run.run.end = 1;
        run.sites.iter_mut().for_each(|it| it.drag = f64::MAX);
    });
    for (old, new) in [(&beyond, &beyond), (&beyond, &old), (&old, &beyond)] {
        let error = breaches(old, new, &gates("drag>+10%").unwrap()).unwrap_err();
        assert!(error.contains("is no number"), "{error}");
    }
    let blind = changed(|run| run.run.accesses = false);
    let error = breaches(&old, &blind, &gates("drag>+1%").unwrap()).unwrap_err();
    assert!(error.contains("instrumented"), "{error}");
    for (text, why) in [
        ("peak", "METRIC>+CHANGE"),
        ("peak>5%", "> goes with +"),
        ("peak>-5%", "> goes with +"),
        ("peak>-5", "> goes with +"),
        ("peak>+x", "number"),
        ("peak>+nan", "number"),
        ("seconds>+1", "metrics are peak"),
        ("site:bytes>+1", "site:PLACE:METRIC"),
        ("", "METRIC>+CHANGE"),
    ] {
        let error = gates(text).unwrap_err();
        assert!(error.contains(why), "{text:?}: {error}");
    }
    let value: Gate = "leaked>0".parse().unwrap();
    assert_eq!(value.to_string(), "leaked>0");
    let only = [value];
    let error = breaches(&old, &old, &only).unwrap_err();
    assert!(error.contains("--leaks"), "{error}");
    let leaks = |bytes| {
        changed(|run| {
            run.leaks = vec![Leaks {
                bytes,
                ..Leaks::default()
            }];
        })
    };
    assert_eq!(exceeded(&leaks(0), &only), Ok(Vec::new()));
    let failed = vec!["leaked>0: 7 B".to_owned()];
    assert_eq!(exceeded(&leaks(7), &only), Ok(failed.clone()));
    assert_eq!(breaches(&old, &leaks(7), &only), Ok(failed));
    let small = "peak<9000000000".parse().unwrap();
    assert_eq!(exceeded(&old, &[small]).unwrap().len(), 1);
    let change = "peak>+0".parse().unwrap();
    assert!(exceeded(&old, &[change]).is_err());
    let gate: Gate = "site:src/a.rs:useful-lifetime<-5%".parse().unwrap();
    assert_eq!(gate.to_string(), "site:src/a.rs:useful-lifetime<-5%");
    let text = r#"peak>+1%,site:"Map<K, V>::insert":bytes>+0,site:"a":end>+0"#;
    let found = gates(text).unwrap();
    let places: Vec<_> = found.iter().map(|gate| gate.place.as_deref()).collect();
    assert_eq!(places, [None, Some("Map<K, V>::insert"), Some("a")]);
    let quoted = r#"site:"Map<K, V>::insert":bytes>+0"#;
    assert_eq!(found[1].to_string(), quoted);
    assert_eq!(
        gates("site:Map<K, V>:bytes>+0")
            .unwrap_err()
            .lines()
            .count(),
        1
    );
}
