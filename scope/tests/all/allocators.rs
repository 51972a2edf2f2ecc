//! Programs in Rust with a `#[global_allocator]` of their own: what is seen of it, and that nobody
//! is told to wrap what is seen.

use ccscope::Profile;
use ccscope::views::terminal::{self, Options};
use tempfile::TempDir;

use super::programs::{cargo_run, cargo_run_with, compile};

/// A vector of `size` bytes that grows by 2000, and one of zeros, in `main`, are each a site.
fn are_seen(profile: &Profile, size: u64) {
    let site_of = |size: u64| {
        let mut sites = profile.sites.iter().filter(|site| site.largest == size);
        let site = sites
            .next()
            .unwrap_or_else(|| panic!("no site of {size} bytes"));
        assert!(sites.next().is_none() && site.smallest == size);
        let place = &profile.frames[site.place.unwrap() as usize];
        assert!(place.function.ends_with("::main"), "{place:?}");
        let type_name = &profile.types[site.type_id.unwrap() as usize].name;
        assert_eq!(type_name, "Vec<u8>", "{size}");
        (site.allocations, site.frees, site.reallocs)
    };
    assert_eq!(
        [size, size + 2000, size - 990].map(site_of),
        [(1, 1, 1), (1, 1, 0), (1, 1, 0)]
    );
    assert_eq!(profile.run.caveats, Vec::<String>::new());
}

#[test]
fn mimalloc_and_jemalloc_are_seen() {
    let folder = TempDir::new().unwrap();
    let object = compile(folder.path(), &["cc"], "allocators.c", &["-O1", "-c"]);
    let program = cargo_run_with("allocators", |command| {
        command.env("RUSTFLAGS", format!("-Clink-arg={}", object.display()));
    });
    are_seen(&program.profile, 4321);
    are_seen(&program.profile, 4322);
    assert!(program.profile.total.mapped_peak > 16_000_000);
}

#[test]
fn an_allocator_in_rust_is_seen_when_it_is_wrapped() {
    are_seen(&cargo_run("profiled").profile, 4321);
}

#[test]
fn a_measure_that_failed_names_its_sites() {
    let program = cargo_run("measured");
    let [it] = &program.profile.exceeded[..] else {
        panic!("{:?}", program.profile.exceeded);
    };
    assert!(it.place.contains("measured.rs:18:"), "{}", it.place);
    let counts = it.sites.iter().map(|it| it.allocations);
    assert_eq!(counts.sum::<u64>(), 4);
    let text = terminal::summary(&program.profile, &Options::default());
    let lines: Vec<&str> = text.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.starts_with("over budget"));
    let next = lines[at.unwrap() + 1];
    assert!(next.contains("4 allocations, 107 B, #"), "{text}");
    assert!(next.contains("measured.rs:13 measured::"), "{text}");
}
