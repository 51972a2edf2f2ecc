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
//! It is a shared library of its own, without `std` and without crates but the one that it shares
//! with the runtime, and is preloaded.
//! `build.rs` compiles this file by one call of the compiler; under test it is a module of the
//! tool, whose lints hold for it, and handles no fault.
//!
//! Its layers, lowest first:
//!
//! * System calls: [`sys`], [`numbers`]; [`options`] and the [`folder`] for this run; [`wire`] and
//!   [`context`]: what the tool and the kernel tell; [`masks`]; [`maps`]: what is mapped.
//! * [`events`]: what is written. [`questions`], and [`answers`] that all processes know.
//! * [`threads`], their [`ticks`] of timers, and the [`lock`]: who may change what follows.
//!   [`gate`]: how system calls reach the kernel.
//! * Memory: [`arena`]: from where `mmap` gets it; [`used_pages`]: what else lies there;
//!   [`zone_table`] and [`file`] of [`zones`], which are mapped twice; [`accesses`]: events of
//!   them.
//! * Code: [`thunks`]: copies of instructions; [`patches`]: instructions that no longer fault
//!   (`--patch`); [`recorder`]: what they call; [`points`]: `--from` and `--to`; [`elements`]:
//!   gathers and scatters; [`strings`]: instructions that are carried out by hand.
//! * System calls of the program: [`arguments`], [`indirect_args`]: what they point to;
//!   [`fork_clone`]: those that return twice; [`syscall_exit`]: those that are over.
//! * [`signals`]: the program's handlers; [`resume_point`]: where they find the program.
//!   [`faults`]: accesses. [`calls`]: system calls, which come to us; [`memory`]: those that change
//!   memory.
//! * [`hooks`]: allocation and block operations (III.F). [`unwind`]: who allocates. [`aside`]:
//!   programs that are left alone. [`start`]: processes.

// Modules, lowest first: `numbers`, `wire`, `context`, `folder`, `sys`, `options`, `masks`, `maps`,
// `events`, `answers`, `questions`, `threads`, `ticks`, `lock`, `gate`, `used_pages`, `arena`,
// `zone_table`, `file`, `recorder`, `zones`, `accesses`, `thunks`, `patches`, `points`, `elements`,
// `strings`, `resume_point`, `arguments`, `indirect_args`, `fork_clone`, `syscall_exit`, `signals`,
// `faults`, `memory`, `calls`, `hooks`, `start`.

#![cfg_attr(not(test), no_std)]
#![expect(
    clippy::cast_possible_truncation,
    reason = "x86-64 only: words have 64 bits"
)]

#[cfg(test)]
use super::wire;
use inside::{aside, unwind};

mod accesses;
mod answers;
mod arena;
mod arguments;
mod calls;
mod context;
mod elements;
mod events;
mod faults;
mod file;
mod folder;
mod fork_clone;
mod gate;
mod hooks;
mod indirect_args;
mod lock;
mod maps;
mod masks;
mod memory;
mod numbers;
mod options;
mod patches;
mod points;
mod questions;
mod recorder;
mod resume_point;
mod signals;
mod start;
mod strings;
mod sys;
mod syscall_exit;
#[cfg(test)]
mod tests;
mod threads;
mod thunks;
mod ticks;
mod used_pages;
#[cfg(not(test))]
#[expect(dead_code, reason = "the tool uses all of it")]
mod wire;
mod zone_table;
mod zones;

/// The file's name.
#[cfg(not(test))]
const LIBRARY: &[u8] = b"libccscope_tracer.so";

/// Where the tool is told of things, if this is the variable of the environment that says so.
#[cfg(not(test))]
fn folder_in(variable: &[u8]) -> Option<&[u8]> {
    options::option(variable.strip_prefix(b"CCSCOPE_TRACE=")?, b"folder")
}

#[cfg(not(test))]
inside::leave_sanitized_programs!(LIBRARY, folder_in);

#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    sys::die(b"internal error in the tracer")
}

// As in the runtime: nothing here unwinds.
#[cfg(not(test))]
core::arch::global_asm!(
    ".globl rust_eh_personality",
    ".hidden rust_eh_personality",
    "rust_eh_personality:",
    "ud2",
);
