//! The part of `ccscope trace` inside the traced process: every load and store of data, bss and
//! heap, without a change to the program's code.
//!
//! It follows MadT (Cesati, Mancuso, Betti, Caccamo, "MadT: A Memory Access Detection Tool for
//! Symbolic Memory Profiling"), whose sections are named in brackets: memory is closed, so that
//! each access faults and the handler notes it (II.A). MadT then opens the page, lets the processor
//! trap after one instruction, and closes it. Here the memory is mapped a second time, open, and
//! the thread goes on in a copy of the instruction that is aimed there: one fault, no trap, and
//! what other threads do meanwhile is seen.
//!
//! It is a shared library of its own, without `std` and without crates, and is preloaded.
//! `build.rs` compiles this file by one call of the compiler.
//!
//! * [`zones`]: memory that is mapped twice; [`table`]: all of it; [`file`]: what is in it;
//!   [`arena`]: from where `mmap` gets it; [`held`]: what else lies there.
//! * [`faults`]: accesses; [`thunks`]: copies of instructions; [`answers`]: what all processes
//!   know of these; [`strings`]: instructions that are
//!   carried out by hand; [`elements`]: gathers and scatters. [`points`]: `--from` and `--to`.
//! * [`patches`]: instructions that no longer fault (`--patch`); [`recorder`]: what they call.
//! * [`lock`]: who may change all that.
//! * [`calls`]: system calls, which come to us; [`numbers`], [`arguments`], [`nested`]: what they
//!   point to; [`memory`]: those that change memory; [`twice`]: those that return twice; [`gate`]:
//!   how they reach the kernel. [`signals`]: the program's handlers; [`settle`]: what they see.
//!   [`ticks`]: those of timers.
//! * [`hooks`]: allocation and block operations (III.F). [`unwind`]: who allocates. [`aside`]:
//!   programs that are left alone.
//! * [`events`]: what is written; [`wire`]: its form. [`start`]: processes; [`threads`].
#![no_std]
#![allow(
    clippy::cast_possible_truncation,
    reason = "x86-64 only: words have 64 bits"
)]

mod answers;
mod arena;
mod arguments;
#[path = "../runtime/aside.rs"]
mod aside;
mod calls;
mod context;
mod elements;
mod events;
mod faults;
mod file;
#[path = "../format/mod.rs"]
#[expect(
    dead_code,
    reason = "it is the runtime's; the unwinder needs a number of it"
)]
mod format;
mod gate;
mod held;
mod hooks;
mod lock;
mod memory;
mod nested;
mod numbers;
mod patches;
mod points;
mod recorder;
mod settle;
mod signals;
mod start;
mod strings;
mod sys;
mod table;
mod threads;
mod thunks;
mod ticks;
mod twice;
#[path = "../runtime/unwind/mod.rs"]
#[expect(dead_code, reason = "the runtime uses all of it")]
mod unwind;
#[expect(dead_code, reason = "the tool uses all of it")]
mod wire;
mod zones;

/// The tracer's lock.
///
/// **Lock invariant**: `table`, `held`, `thunks`, `patches` and the text of `/proc/self/maps`
/// are used by its owner only, or, before `start` has begun and in a child of `fork`, by the only
/// thread. From `twice::enter` to `twice::after` of a `fork` it is kept, and given back
/// in both processes.
pub(crate) static LOCK: lock::Lock = lock::Lock::new();

/// The file's name.
const LIBRARY: &[u8] = b"libccscope_tracer.so";

/// Where the tool is told of things, if this is the variable of the environment that says so.
fn folder_in(variable: &[u8]) -> Option<&[u8]> {
    start::option(variable.strip_prefix(b"CCSCOPE_TRACE=")?, b"folder")
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    sys::die(b"internal error in the tracer")
}

// As in the runtime: nothing here unwinds.
core::arch::global_asm!(
    ".globl rust_eh_personality",
    ".hidden rust_eh_personality",
    "rust_eh_personality:",
    "ud2",
);
