//! The part of `ccscope` inside the profiled process: it sees allocations and accesses and writes
//! them into a [capture](format).
//!
//! It is a shared library of its own, without `std` and without crates: `build.rs` compiles this
//! file by one call of the compiler. Nothing in it allocates by `malloc`, since it *is* `malloc`.
//!
//! * [`hooks`]: functions of libc that are taken over; [`allocators`]: those of other allocators;
//!   [`real`]: what they would be without us.
//!   [`callbacks`], [`hot`] and [`access`]: those of the instrumentation.
//!   [`copies`]: what other code copies; [`kernel`]: what the kernel does. [`programs`] and
//!   [`aside`]: which programs are left alone.
//! * [`chunks`]: the books, under one lock; with [`stacks`], [`sums`], [`maps`], [`groups`] and
//!   [`curves`].
//! * [`shadow`]: address to chunk; [`births`]: the same while no accesses are looked up.
//!   [`windows`]: bursts of whole accesses.
//! * [`regions`]: what each function and span touches.
//! * [`start`]: processes and threads; [`threads`]: what they begin with. [`arena`]: the capture's
//!   memory. [`unwind`]: call stacks.
#![cfg_attr(not(test), no_std)]
#![allow(
    clippy::cast_possible_truncation,
    reason = "x86-64 only: words have 64 bits"
)]

#[cfg(not(test))]
#[path = "../format/mod.rs"]
mod format;

mod access;
mod allocators;
mod arena;
#[cfg_attr(test, expect(dead_code, reason = "no program is started anew"))]
mod aside;
mod births;
mod callbacks;
mod chunks;
mod copies;
mod curves;
mod groups;
mod hooks;
mod hot;
mod kernel;
mod lines;
mod local;
mod maps;
#[cfg_attr(test, expect(dead_code, reason = "its functions are assembly"))]
mod programs;
mod real;
mod regions;
mod shadow;
mod stacks;
mod start;
mod sums;
mod sys;
#[cfg(test)]
mod tests;
mod threads;
mod unwind;
mod windows;

/// The file's name.
const LIBRARY: &[u8] = b"libccscope_runtime.so";

/// Where the tool is told of things, if this is the variable of the environment that says so.
#[cfg(not(test))]
fn folder_in(variable: &[u8]) -> Option<&[u8]> {
    let socket = variable.strip_prefix(crate::format::SOCKET_VARIABLE.as_bytes())?;
    socket.strip_prefix(b"=").map(programs::folder_of)
}

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
