//! The program itself says what is traced.

use std::env;
use std::fs;
use std::process::Command;

use tempfile::TempDir;

use super::raw;
use crate::programs::{TRACE, command, compile, succeed, text};

const CHILD: &str = "CCTRACE_TEST_MARKS";

#[test]
fn a_program_in_rust_says_what_is_traced() {
    if env::var_os(CHILD).is_some() {
        let mut numbers: Vec<u32> = (0..1000).map(|at| at * 7919 % 1000).collect();
        ccscope::trace_start();
        numbers.iter_mut().for_each(|it| *it += 1);
        ccscope::trace_stop();
        numbers.sort_unstable();
        println!("chunk {:?} {}", numbers.as_ptr(), numbers[999]);
        return;
    }
    let folder = TempDir::new().unwrap();
    let name = "whole::marks::a_program_in_rust_says_what_is_traced";
    let mut tool = command(TRACE);
    tool.args(["-q", "--paused", "--form=raw", "-o", "a.raw"]);
    tool.arg(env::current_exe().unwrap());
    tool.args([name, "--exact", "--nocapture"]).env(CHILD, "1");
    let output = succeed(tool.current_dir(folder.path()));
    let out = text(&output.stdout);
    let line = out.lines().find(|line| line.starts_with("chunk ")).unwrap();
    assert!(line.ends_with(" 1000"), "{line}");
    let start = line.split([' ', 'x']).nth(2).unwrap();
    let start = u64::from_str_radix(start, 16).unwrap();
    let trace = raw(&fs::read_to_string(folder.path().join("a.raw")).unwrap());
    let number = |kind: char| {
        let own = trace.iter().filter(|event| event.kind == kind);
        own.filter(|event| (start..start + 4000).contains(&event.address))
            .map(|event| event.len)
            .sum::<u64>()
    };
    // Each number once, however many at a time.
    assert_eq!([number('L'), number('S')], [4000, 4000]);
}

#[test]
fn a_program_in_c_says_what_is_traced() {
    let folder = TempDir::new().unwrap();
    let program = compile(folder.path(), &["cc"], "trace-marks.c", &["-O1"]);
    assert!(Command::new(&program).status().unwrap().success());
    let mut tool = command(TRACE);
    tool.args(["-q", "--paused", "--form=lackey", "-o", "-"]);
    let output = succeed(tool.arg(&program));
    let out = text(&output.stdout);
    let stores = out
        .lines()
        .filter(|line| line.starts_with(" S ") && line.ends_with(",4"));
    assert_eq!(stores.count(), 100, "{out}");
}
