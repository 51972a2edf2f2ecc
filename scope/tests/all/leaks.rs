//! Leaks are those that `LeakSanitizer` finds.

use ccscope::profile::{Leaks, Profile};
use ccscope::views::terminal::{self, Options};
use tempfile::TempDir;

use super::programs::{CCSCOPE, Run, command, compile, is_installed, succeed, text};

/// Chunks and bytes, as they are known where `LeakSanitizer` is not there; by number.
const C: [(u64, u64); 24] = [
    (0, 0),
    (1, 24),
    (100, 5050),
    (0, 0),
    (20, 480),
    (0, 0),
    (2, 48),
    (1, 24),
    (1, 24),
    (0, 0),
    (1, 96),
    (1, 80),
    (1, 72),
    (5, 220),
    (1, 1000),
    (0, 0),
    (0, 0),
    (0, 0),
    (2, 333),
    (0, 0),
    (0, 0),
    (0, 0),
    (4, (1 << 20) + 216),
    (0, 0),
];

/// Chunks and bytes that are leaked, in all.
fn of_profile(profile: &Profile) -> (u64, u64) {
    let [all, ..] = profile.leaks[..] else {
        panic!("nobody has looked: {:?}", profile.run.caveats);
    };
    assert_eq!(all.site, None);
    (all.all_chunks(), all.all_bytes())
}

/// What `LeakSanitizer` says at the end: `SUMMARY: LeakSanitizer: 24 byte(s) leaked in 1
/// allocation(s).`
fn of_sanitizer(program: &std::path::Path, number: usize) -> Option<(u64, u64)> {
    let mut command = command(program);
    command
        .arg(number.to_string())
        .env("LSAN_OPTIONS", "exitcode=0");
    let output = command.output().unwrap();
    let said = text(&output.stderr);
    // It stops the threads by a debugger's means, which may be forbidden.
    if said.contains("has encountered a fatal error") || !output.status.success() {
        return None;
    }
    let summary = said
        .lines()
        .find_map(|line| line.strip_prefix("SUMMARY: LeakSanitizer: "));
    let words: Vec<&str> = summary.unwrap_or_default().split_whitespace().collect();
    let number = |at: usize| words.get(at).map_or(0, |word| word.parse().unwrap());
    Some((number(4), number(0)))
}

#[test]
fn leaks_of_programs_in_c_are_those_of_the_sanitizer() {
    let folder = TempDir::new().unwrap();
    let flags = ["-O1", "-g", "-pthread"];
    let program = compile(folder.path(), &["cc"], "leaks.c", &flags);
    let sanitized = is_installed("gcc").then(|| {
        let folder = TempDir::new().unwrap();
        let flags = ["-O1", "-g", "-pthread", "-fsanitize=leak"];
        let program = compile(folder.path(), &["gcc"], "leaks.c", &flags);
        (folder, program)
    });
    let run = |number: usize| {
        let number = number.to_string();
        Run::of(&["--leaks", program.to_str().unwrap(), &number])
    };
    for (number, known) in C.into_iter().enumerate() {
        assert_eq!(of_profile(&run(number).profile()), known, "of {number}");
        let theirs = sanitized.as_ref();
        if let Some(theirs) = theirs.and_then(|it| of_sanitizer(&it.1, number)) {
            assert_eq!(theirs, known, "LeakSanitizer of {number}");
        }
    }
}

#[test]
fn leaks_of_programs_in_rust_are_known() {
    let folder = TempDir::new().unwrap();
    let program = compile(
        folder.path(),
        &["rustc", "--edition=2024"],
        "leaks.rs",
        &["-O"],
    );
    // Two nodes of 48 bytes; a vector of five and their texts.
    let known = [
        (0, 0),
        (2, 96),
        (0, 0),
        (6, 120 + 130),
        (0, 0),
        (0, 0),
        (0, 0),
    ];
    for (number, known) in known.into_iter().enumerate() {
        let number = number.to_string();
        let run = Run::of(&["--leaks", program.to_str().unwrap(), &number]);
        assert_eq!(of_profile(&run.profile()), known, "of {number}");
    }
}

#[test]
fn leaks_are_shown_by_site_and_gated() {
    let folder = TempDir::new().unwrap();
    let program = compile(
        folder.path(),
        &["cc"],
        "leaks.c",
        &["-O1", "-g", "-pthread"],
    );
    let run = Run::of(&["--leaks", program.to_str().unwrap(), "4"]);
    let profile = run.profile();
    let direct = Leaks {
        site: profile.leaks[1].site,
        chunks: 1,
        bytes: 24,
        indirect_chunks: 19,
        indirect_bytes: 456,
    };
    assert_eq!(profile.leaks[1..], [direct]);
    let site = profile.sites[direct.site.unwrap() as usize].place.unwrap();
    assert_eq!(profile.frames[site as usize].function, "node");
    let shown = terminal::leaks(&profile, &Options::default());
    let sums = "leaked       24 B in 1 chunk, 456 B in 19 other chunks that only these lead to";
    assert_eq!(shown.lines().next(), Some(sums), "{shown}");
    assert!(shown.contains("leaks.c:30 node"), "{shown}");
    let first = terminal::summary(&profile, &Options::default());
    assert!(
        first.contains("20 chunks leaked, 480 B: nothing leads to them"),
        "{first}"
    );
    let gate = |gates: &str| {
        let mut command = command(CCSCOPE);
        command.args(["show", "--leaks", "--fail-on", gates, "main.ccscope"]);
        command.current_dir(run.folder.path()).output().unwrap()
    };
    let failed = gate("leaked>0,end>1000000,site:leaks.c:leaked>480");
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(text(&failed.stderr), "ccscope: gate leaked>0: 480 B\n");
    assert_eq!(gate("leaked>480").status.code(), Some(0));
    assert_eq!(gate("leaked>+0").status.code(), Some(2));
    let without = Run::of(&[program.to_str().unwrap(), "4"]);
    let mut command = command(CCSCOPE);
    command.args(["show", "--fail-on", "leaked>0", "main.ccscope"]);
    let refused = command.current_dir(without.folder.path()).output().unwrap();
    assert!(text(&refused.stderr).contains("made by `ccscope run --leaks`"));
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn a_process_that_does_not_exit_has_no_leaks() {
    let run = Run::of(&["--leaks", "sh", "-c", "kill -9 $$"]);
    let profile = run.profile();
    assert_eq!(profile.leaks, []);
    let caveats = profile.run.caveats.join(" ");
    assert!(caveats.contains("has not ended by `exit`"), "{caveats}");
    succeed(command(CCSCOPE).args(["run", "-q", "--leaks", "-o"]).args([
        run.folder.path().join("true.ccscope").to_str().unwrap(),
        "true",
    ]));
}
