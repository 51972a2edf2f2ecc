//! The fuzzer's bytes as two captures: what is made of them can be shown on a page, compared,
//! exported, and advised on.
#![no_main]

mod captured;

use ccmodel::Machine;
use ccscope::analyses::diff::diff;
use ccscope::exports::{Weight, collapsed, dhat, firefox, perfetto, pprof, speedscope};
use ccscope::views::{Options, advice, json, page, terminal};
use libfuzzer_sys::fuzz_target;
use std::io::sink;

fuzz_target!(|bytes: &[u8]| {
    let (new, old) = bytes.split_at(bytes.len() / 4 * 3);
    let (Ok(profile), Ok(old)) = (captured::profile(new), captured::profile(old)) else {
        return;
    };
    let machine = Machine::thesis();
    let options = Options {
        machine: Some(machine.clone()),
        ..Options::default()
    };
    let changes = diff(&old, &profile, &machine);
    drop(ccscope::views::diff::text(
        &old, &profile, &changes, &options,
    ));
    drop(ccscope::views::diff::json(&old, &profile, &changes));
    let chunks = std::iter::once(Ok::<_, String>(profile.chunks.clone()));
    page::to_html(&profile, Some((&old, &changes)), chunks, &options).expect("memory takes all");
    for seconds in [None, Some(1.0)] {
        if let Some(advised) = ccscope::advice::advise(&profile, &machine, seconds) {
            drop(advice::text(&profile, &advised, &options));
            drop(advice::json(&profile, &advised, &options));
        }
    }
    drop(terminal::summary(&profile, &options));
    drop(json::to_json(&profile, &options));
    for (_, weight) in Weight::NAMES {
        collapsed::write(&profile, weight, &machine, sink()).expect("it takes all");
    }
    dhat::write(&profile, sink()).expect("it takes all");
    firefox::write(&profile, sink()).expect("it takes all");
    perfetto::write(&profile, sink()).expect("it takes all");
    pprof::write(&profile, &machine, sink()).expect("it takes all");
    speedscope::write(&profile, &machine, sink()).expect("it takes all");
});
