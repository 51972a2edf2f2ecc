//! Runs the protocols of `ccmalloc/src/protocol`, the very files, under the model checker [loom].
//!
//! Each test is a small program of two or three threads. loom runs it again for every order in
//! which the threads' operations on atomics can follow each other (with at most [`PREEMPTIONS`]
//! preemptions) and for every value that the memory model lets a load see, and checks each access
//! to an `UnsafeCell` for a data race. What stands for an object, a chunk or a heap here is such a
//! cell: a free bit that came too early, a heap that two threads own or a chunk that is unmapped
//! while somebody looks at it shows as a race.
//!
//! loom does not give sequential consistency to a location's initial value, which is why the models
//! run a protocol once (`warm_up`) before they start their threads. Where a model could check
//! nothing, because no interleaving gets to what it is about, a counter of the interleavings that
//! did says so.
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
