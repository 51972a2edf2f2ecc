//! The exported functions on AArch64.

use core::arch::naked_asm;
use core::mem::offset_of;

use super::{HOOKS, Hooks, ThreadState, hits, next_new, samples};
use crate::family;
use crate::rules::TABLE;

/// How many registers a call preserves, beside the stack pointer and the frame pointer.
pub(crate) const REGISTERS: usize = 10;
/// Number of the return address among the words of a [`Snapshot`](super::Snapshot): behind the
/// frame pointer.
pub(super) const RETURN_WORD: usize = REGISTERS + 1;
/// Number of the first word of the caller's stack.
pub(crate) const STACK_START: usize = REGISTERS + 2;
/// How rules call the words: the registers in the order in which they are saved; the stack pointer,
/// and the number of the word to which it points.
pub(crate) const PLACES: ([&str; REGISTERS], &str, usize) = (
    [
        "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28",
    ],
    "sp",
    STACK_START,
);

const COUNTDOWN: usize = offset_of!(ThreadState, countdown);

/// Exports functions: a jump each. What their callers promise is what they do of
/// [`family`](crate::family)'s.
macro_rules! export {
    ($($name:ident: $hook:ident,)*) => {
        $(
            /// # Safety
            /// - What C, POSIX and C++ ask of the function's callers.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name() {
                naked_asm!(
                    ".cfi_startproc",
                    "adrp x9, {hooks}",
                    "add x9, x9, :lo12:{hooks}",
                    "ldr x9, [x9, {at}]",
                    "br x9",
                    ".cfi_endproc",
                    hooks = sym HOOKS,
                    at = const offset_of!(Hooks, $hook),
                )
            }
        )*
    };
}

/// Leads to label 2 if the filter, the first 4,096 bytes of the table, has something for the
/// caller.
macro_rules! test_filter {
    () => {
        "adrp x9, {watched}
        ldr x9, [x9, :lo12:{watched}]
        cbz x9, 3f
        and x10, x30, 4095
        ldrb w9, [x9, x10]
        cbnz w9, 2f"
    };
}

/// Leads to label 2 once the thread's countdown has ended.
macro_rules! test_countdown {
    () => {
        "mrs x10, tpidr_el0
        adrp x9, :gottprel:ccmalloc_rules_thread
        ldr x9, [x9, :gottprel_lo12:ccmalloc_rules_thread]
        add x10, x10, x9
        ldr w11, [x10, {watched}]
        subs w11, w11, 1
        str w11, [x10, {watched}]
        b.mi 2f"
    };
}

/// Leads to label 3 with an object: only without one does `realloc` allocate.
macro_rules! only_without_object {
    () => {
        "cbnz x0, 3f"
    };
}

/// Leads to label 3 where there is no memory.
macro_rules! once_more {
    () => {
        "cbnz x0, 4f
        mov x0, x9
        b 3b
        4:"
    };
}

macro_rules! nothing {
    () => {
        ""
    };
}

/// Defines functions that go on with `$plain`, which has the same arguments, unless `$test` leads
/// to label 2. There the registers that calls preserve are saved, which makes a `Snapshot`: the
/// fourth argument of `$hit`, whose first three are the function's own. Label 3 leads to `$plain`.
macro_rules! watched {
    (
        $test:ident, $watched:ident $by:path, $after:ident;
        $($name:ident: $plain:path, $hit:path, $first:ident;)*
    ) => {
        $(
            /// # Safety
            /// - Reached by the jump of an exported function, with its arguments; a filter once
            ///   [`TABLE`] leads to a table.
            #[unsafe(naked)]
            pub(super) unsafe extern "C" fn $name() {
                naked_asm!(
                    ".cfi_startproc",
                    $first!(),
                    $test!(),
                    "3: b {plain}",
                    // The first word keeps what `new` needs again.
                    "2: sub sp, sp, 112",
                    ".cfi_def_cfa_offset 112",
                    "str x0, [sp]",
                    "stp x19, x20, [sp, 16]",
                    "stp x21, x22, [sp, 32]",
                    "stp x23, x24, [sp, 48]",
                    "stp x25, x26, [sp, 64]",
                    "stp x27, x28, [sp, 80]",
                    "stp x29, x30, [sp, 96]",
                    ".cfi_offset 29, -16",
                    ".cfi_offset 30, -8",
                    "add x3, sp, 16",
                    "bl {hit}",
                    "ldr x9, [sp]",
                    "ldp x29, x30, [sp, 96]",
                    "add sp, sp, 112",
                    ".cfi_restore 29",
                    ".cfi_restore 30",
                    ".cfi_def_cfa_offset 0",
                    $after!(),
                    "ret",
                    ".cfi_endproc",
                    plain = sym $plain,
                    hit = sym $hit,
                    watched = $watched $by,
                )
            }
        )*
    };
}

functions!();

/// `operator new`: `malloc`, and where there is no memory the C++ library's, which calls the
/// handler and throws.
///
/// # Safety
/// - Reached by a jump of the exported function, or of the functions above.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn new() {
    naked_asm!(
        ".cfi_startproc",
        "stp x0, x30, [sp, -16]!",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset 30, -8",
        "bl {malloc}",
        "cbnz x0, 2f",
        "bl {next}",
        "mov x9, x0",
        "ldp x0, x30, [sp], 16",
        ".cfi_remember_state",
        ".cfi_restore 30",
        ".cfi_def_cfa_offset 0",
        "br x9",
        ".cfi_restore_state",
        "2: ldp x9, x30, [sp], 16",
        ".cfi_restore 30",
        ".cfi_def_cfa_offset 0",
        "ret",
        ".cfi_endproc",
        malloc = sym family::malloc,
        next = sym next_new,
    )
}

/// Asks which `operator new` there is, and goes on there.
///
/// # Safety
/// - Reached by the jump of the exported function.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn choose_new() {
    naked_asm!(
        ".cfi_startproc",
        "stp x0, x30, [sp, -16]!",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset 30, -8",
        "bl {choose}",
        "mov x9, x0",
        "ldp x0, x30, [sp], 16",
        ".cfi_restore 30",
        ".cfi_def_cfa_offset 0",
        "br x9",
        ".cfi_endproc",
        choose = sym super::choose_new,
    )
}
