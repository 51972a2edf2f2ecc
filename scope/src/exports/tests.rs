use super::*;
use crate::analyses::test_profile::{point, profile};

fn bytes(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

/// Names with the separators of every format.
fn hostile() -> Profile {
    let mut run = profile();
    run.frames[5].function = "a;b \"\n\u{1b}[2J</script> 7".to_owned();
    run.frames[5].file = "\\src\"\u{0}.rs".to_owned();
    run
}

#[test]
fn collapsed_stacks_are_lines_with_a_number() {
    let out =
        bytes(|out| collapsed::write(&hostile(), Weight::Peak, Machine::this(), out).unwrap());
    let lines: Vec<String> = String::from_utf8(out)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    let main = "a:b \"  [2J</script> 7";
    // The site without bytes at the peak is left out.
    assert_eq!(
        lines,
        [
            format!("{main};demo::collect;alloc::alloc::alloc 300000"),
            format!("{main};demo::record::Record::new;alloc::alloc::alloc 400000"),
            format!("{main};demo::table::Table::load 300000"),
        ]
    );
}

#[test]
fn json_is_whole_with_any_names() {
    let run = hostile();
    let json = |out: Vec<u8>| serde_json::from_slice::<serde_json::Value>(&out).unwrap();
    let dhat = json(bytes(|out| dhat::write(&run, out).unwrap()));
    assert_eq!(dhat["pps"].as_array().unwrap().len(), 4);
    // Reads and writes of the record's bytes, as runs of the same number.
    assert_eq!(
        dhat["pps"][0]["acc"],
        serde_json::json!([-4, 2000, -96, 1000, -300, 0])
    );
    assert_eq!(dhat["pps"][0]["rb"], 4000);
    let speedscope = json(bytes(|out| {
        speedscope::write(&run, Machine::this(), out).unwrap();
    }));
    assert_eq!(
        speedscope["shared"]["frames"][5]["name"],
        run.frames[5].function
    );
    let firefox = json(bytes(|out| firefox::write(&run, out).unwrap()));
    assert_eq!(firefox["counters"].as_array().unwrap().len(), 3);
    let perfetto = bytes(|out| perfetto::write(&run, out).unwrap());
    assert!(perfetto.windows(9).any(|it| it == b"a;b \"\n\x1b[2"));
    let pprof = bytes(|out| pprof::write(&run, Machine::this(), out).unwrap());
    assert_eq!(pprof[..2], [0x1f, 0x8b]);
}

/// Firefox's viewer takes a free to be of all that was allocated at its address.
#[test]
fn what_is_freed_for_firefox_was_allocated() {
    let mut run = profile();
    // Up, down by a part, up, down by more than that.
    let steps = [(1, 400), (2, 300), (3, 350), (4, 100)];
    run.sites[0].curve = steps.map(|(time, usable)| point(time, usable, 0)).to_vec();
    let out = bytes(|out| firefox::write(&run, out).unwrap());
    let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let table = &json["threads"][0]["nativeAllocations"];
    let column = |name: &str| table[name].as_array().unwrap().iter().map(|it| it.as_i64());
    let mut retained = HashMap::new();
    for (address, weight) in column("memoryAddress").zip(column("weight")) {
        let weight = weight.unwrap();
        let before = retained.insert(address, weight);
        assert!(
            before.is_none_or(|before| weight == -before),
            "{weight} after {before:?}"
        );
    }
    let retained: i64 = retained.into_values().filter(|&weight| weight > 0).sum();
    let others = run.sites[1..].iter().map(|site| match site.curve.last() {
        Some(point) => point.usable,
        None => site.end_usable,
    });
    assert_eq!(retained, 100 + i64::try_from(others.sum::<u64>()).unwrap());
}

/// The viewer of DHAT refuses files in which two stacks are the same.
#[test]
fn equal_stacks_stay_apart_for_dhat() {
    let mut run = profile();
    run.sites[1].stack = run.sites[0].stack.clone();
    run.sites[2].stack.clear();
    let out = bytes(|out| dhat::write(&run, out).unwrap());
    let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let stack = |site: usize| json["pps"][site]["fs"].to_string();
    let stacks = [0, 1, 2, 3].map(stack);
    assert_eq!(stacks, ["[1,2,6]", "[1,2,6,7]", "[8]", "[5,6]"]);
    assert_eq!(json["ftbl"][7], "site 1");
    assert_eq!(json["ftbl"].as_array().unwrap().len(), 9);
}

#[test]
fn numbers_have_names() {
    assert_eq!("peak".parse(), Ok(Weight::Peak));
    let error = "size".parse::<Weight>().unwrap_err();
    assert!(
        error.starts_with("no number is called \"size\"; there are allocations,"),
        "{error}"
    );
    let run = profile();
    let drag = Weight::Drag.of_sites(&run, Machine::this());
    // Two microseconds an event.
    assert_eq!(drag, [0, 0, 0, 486_000]);
}

#[test]
fn collapsed_regions_add_up_to_what_the_threads_touch() {
    let mut profile = profile();
    profile.regions = crate::analyses::test_profile::regions();
    let fresh = [3_200_000, 3_200_000, 3_000_000, 2_000_000, 6400, 640];
    for (region, fresh) in profile.regions.iter_mut().zip(fresh) {
        region.fresh = fresh;
    }
    let lines = |profile: &Profile| {
        let out =
            bytes(|out| collapsed::write(profile, Weight::Peak, Machine::this(), out).unwrap());
        let text = String::from_utf8(out).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let main = "thread;demo::main";
    let expected = [
        format!("{main} 193600"),
        format!("{main};demo::product 1000000"),
        format!("{main};demo::product;demo::row 2000000"),
        format!("{main};demo::serve 5760"),
        format!("{main};demo::serve;re [31mquest 640"),
    ];
    assert_eq!(lines(&profile), expected);
    // `product` has called `serve`, within a recursion of `main`.
    profile.regions[4].fresh = 3_000_000;
    let expected = [
        format!("{main};demo::product 533334"),
        format!("{main};demo::product;demo::row 1066666"),
        format!("{main};demo::serve 1599659"),
        format!("{main};demo::serve;re [31mquest 341"),
    ];
    assert_eq!(lines(&profile), expected);
}
