//! What tests skip: counted in a line at the end of the test binary.

use std::sync::{Mutex, MutexGuard, PoisonError};

unsafe extern "C" {
    safe fn atexit(function: extern "C" fn()) -> std::ffi::c_int;
}

/// What was skipped, and how often.
static SKIPPED: Mutex<Vec<(String, usize)>> = Mutex::new(Vec::new());

fn all() -> MutexGuard<'static, Vec<(String, usize)>> {
    SKIPPED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts what is skipped because this machine cannot do it.
pub(crate) fn skipped(why: &str) {
    let mut all = all();
    if all.is_empty() {
        atexit(print);
    }
    match all.iter_mut().find(|(known, _)| known == why) {
        Some((_, times)) => *times += 1,
        None => all.push((why.to_owned(), 1)),
    }
}

extern "C" fn print() {
    let all = all();
    let each: Vec<String> = (all.iter())
        .map(|(why, times)| format!("{why} ({times})"))
        .collect();
    let times: usize = all.iter().map(|(_, times)| times).sum();
    eprintln!("skipped {times} times on this machine: {}", each.join(", "));
}
