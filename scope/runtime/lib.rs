//! The part of `ccscope` inside the profiled process: it sees allocations and accesses and writes
//! them into a [capture](format).
//!
//! It is a shared library of its own, without `std` and without crates but the one that it shares
//! with the tracer: `build.rs` compiles both, by one call of the compiler each. Nothing in it
//! allocates by `malloc`, since it *is* `malloc`.
//!
//! Its layers, lowest first:
//!
//! * [`sys`]: libc and the kernel; [`real`]: functions as they would be without us. [`recording`]:
//!   whether and what is recorded. [`capture`]: the capture's memory; [`counts`] in it;
//!   [`modules`]: what is loaded.
//! * [`local`]: what a thread has of its own; [`own_stack`]: where it runs; [`stack_cache`]: for
//!   call stacks; [`track`]: for regions. [`clock`]: time in accesses. [`unwind`]: call stacks.
//! * [`shadow`]: address to chunk; [`compact`]: the same while no accesses are looked up.
//! * [`fast_path`]: what each access runs through; [`callbacks`]: what instrumented programs call.
//!   [`entries`]: what else accesses change; [`lines`]: those that threads share.
//! * [`chunks`]: records of chunks and sites, under one lock; with [`call_tree`], [`sums`],
//!   [`maps`], [`groups`] and [`curves`].
//! * [`windows`]: bursts of whole accesses. [`threads`]: what they begin with. [`regions`]: what
//!   each function and span touches. [`slow_path`]: what the fast path leaves.
//! * [`kernel`]: what the kernel reads and writes; [`copies`]: what other code copies;
//!   [`sanitizer`]: the rest of what instrumented programs call. [`programs`] and [`aside`]: which
//!   programs are left alone.
//! * [`hooks`]: functions of libc that are taken over; [`allocators`]: those of other allocators.
//!   [`measures`]: budgets of tests. [`start`]: processes, and the ends of threads. [`seats`]: who
//!   is within these functions. [`redirect`]: calls of a process that runs. [`live`]: recordings
//!   that begin and end then.

// Modules, lowest first: `capture_format`, `sys`, `real`, `recording`, `capture`, `counts`,
// `modules`, `stack_cache`, `track`, `local`, `sampling`, `own_stack`, `seats`, `clock`, `compact`,
// `shadow`, `fast_path`, `callbacks`, `maps`, `entries`, `lines`, `groups`, `curves`, `call_tree`,
// `sums`, `chunks`, `windows`, `threads`, `regions`, `slow_path`, `kernel`, `copies`, `sanitizer`,
// `programs`, `hooks`, `allocators`, `measures`, `start`, `redirect`, `live`.

#![cfg_attr(not(test), no_std)]
#![allow(
    clippy::cast_possible_truncation,
    reason = "x86-64 only: words have 64 bits"
)]

#[cfg(not(test))]
#[path = "../capture_format/mod.rs"]
mod capture_format;

use inside::{aside, unwind};

mod allocators;
mod call_tree;
mod callbacks;
mod capture;
mod chunks;
mod clock;
mod compact;
mod copies;
mod counts;
mod curves;
mod entries;
mod fast_path;
mod groups;
mod hooks;
mod kernel;
mod lines;
mod live;
mod local;
mod maps;
mod measures;
mod modules;
mod own_stack;
#[cfg_attr(test, expect(dead_code, reason = "its functions are assembly"))]
mod programs;
mod real;
mod recording;
mod redirect;
mod regions;
mod sampling;
mod sanitizer;
mod seats;
mod shadow;
mod slow_path;
mod stack_cache;
mod start;
mod sums;
mod sys;
#[cfg(test)]
mod tests;
mod threads;
mod track;
mod windows;

/// The file's name.
#[cfg(not(test))]
const LIBRARY: &[u8] = b"libccscope_runtime.so";

/// Where the tool is told of things, if this is the variable of the environment that says so.
#[cfg(not(test))]
fn folder_in(variable: &[u8]) -> Option<&[u8]> {
    let socket = variable.strip_prefix(crate::capture_format::SOCKET_VARIABLE.as_bytes())?;
    socket.strip_prefix(b"=").map(programs::folder_of)
}

#[cfg(not(test))]
inside::leave_sanitized_programs!(LIBRARY, folder_in);

#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    sys::die(b"internal error in the runtime")
}

// `core` as it comes with the compiler refers to the function by which unwinding asks what to do in
// a frame. Nothing here unwinds. Hidden, so that no program takes it for its own.
#[cfg(not(test))]
core::arch::global_asm!(
    ".globl rust_eh_personality",
    ".hidden rust_eh_personality",
    "rust_eh_personality:",
    "ud2",
);
