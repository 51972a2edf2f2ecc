//! What valgrind's tool lackey traces. The tests of `cctrace` have this file, too.

use std::io::{BufReader, Read, Seek};
use std::process::Stdio;

use ccmodel::simulator::{TraceKind, TraceRecord, read_trace};

use crate::tools::{command, numbers};

/// What lackey has seen of a program.
pub(crate) struct Trace {
    /// Address and size, in the order in which the program prints them.
    pub(crate) chunks: Vec<(u64, u64)>,
    /// Loads and stores of its own text.
    pub(crate) accesses: Vec<TraceRecord>,
    /// Those of other code.
    #[allow(dead_code, reason = "only the tests of `cctrace` look at them")]
    pub(crate) others: Vec<TraceRecord>,
}

pub(crate) fn trace(executable: &str, words: &[&str]) -> Trace {
    // A file: nobody would empty a pipe while the trace is read.
    let mut file = tempfile::tempfile().unwrap();
    let mut child = command("valgrind")
        .args(["--tool=lackey", "--trace-mem=yes", executable])
        .args(words)
        .stdout(file.try_clone().unwrap())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = BufReader::with_capacity(1 << 20, child.stderr.take().unwrap());
    let (mut all, mut instruction) = (Vec::new(), 0);
    read_trace(log, |record| match record.kind {
        TraceKind::Instruction => instruction = record.address,
        _ => all.push((instruction, record)),
    })
    .unwrap();
    assert!(child.wait().unwrap().success());
    let mut out = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut out).unwrap();
    let text = &numbers(&out, "text")[0];
    let chunks = numbers(&out, "chunk").into_iter();
    let (mut accesses, mut others) = (Vec::new(), Vec::new());
    for (instruction, record) in all {
        let is_own = (text[0]..text[1]).contains(&instruction);
        if is_own { &mut accesses } else { &mut others }.push(record);
    }
    Trace {
        chunks: chunks.map(|chunk| (chunk[0], chunk[1])).collect(),
        accesses,
        others,
    }
}
