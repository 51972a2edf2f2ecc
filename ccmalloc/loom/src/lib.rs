//! Runs the protocols of `ccmalloc/src/protocol`, the very files, under the model checker [loom].
//!
//! Each test is a small program of two or three threads. loom runs it for every order of the
//! threads' operations on atomics (with at most [`PREEMPTIONS`] preemptions) and for every value
//! that the memory model lets a load see, and checks each access to an `UnsafeCell` for a data
//! race. Objects, chunks and heaps are such cells here: a free bit that is set too early, a heap
//! that two threads own or a chunk that is unmapped while a thread reads it is a race.
//!
//! loom does not give sequential consistency to a location's initial value, so the models run a
//! protocol once (`warm_up`) before they start their threads. Counters show that some interleavings
//! reached the case that a test is about.
#![cfg(test)]

#[path = "../../src/protocol/mod.rs"]
mod protocol;

mod handover;
mod primitive;
mod remote_frees;

/// How often loom may take the processor from a thread that could go on; `LOOM_MAX_PREEMPTIONS`
/// sets another number. loom's documentation calls two or three enough for nearly all bugs. Seconds
/// for all models, on two cores: 0.4 with three, 4 with five, 61 with eight.
const PREEMPTIONS: usize = 5;

/// Checks every interleaving of `program`.
fn explore(program: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(PREEMPTIONS));
    model.check(program);
}

/// Runs `body` on `shared` in a thread of its own.
fn spawn<S: 'static, T: 'static>(
    shared: &loom::sync::Arc<S>,
    body: impl FnOnce(&S) -> T + 'static,
) -> loom::thread::JoinHandle<T> {
    let shared = loom::sync::Arc::clone(shared);
    loom::thread::spawn(move || body(&shared))
}
