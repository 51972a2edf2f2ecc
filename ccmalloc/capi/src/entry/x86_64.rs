//! The exported functions on x86-64.

use core::arch::naked_asm;
use core::mem::offset_of;

use super::{HOOKS, Hooks, ThreadState, hits, next_new, samples};
use crate::family;
use crate::rules::TABLE;

/// How many registers a call preserves, beside the stack pointer.
pub(crate) const REGISTERS: usize = 6;
/// Number of the return address among the words of a [`Snapshot`](super::Snapshot).
pub(super) const RETURN_WORD: usize = REGISTERS;
/// Number of the first word of the caller's stack.
pub(crate) const STACK_START: usize = REGISTERS + 1;
/// How rules call the words: the registers in the order in which they are saved; the stack pointer,
/// and the number of the word to which it points.
pub(crate) const PLACES: ([&str; REGISTERS], &str, usize) = (
    ["rbx", "rbp", "r12", "r13", "r14", "r15"],
    "rsp",
    RETURN_WORD,
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
                    "jmp qword ptr [rip + {hooks} + {at}]",
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
        "mov eax, dword ptr [rsp]
        mov r10, qword ptr [rip + {watched}]
        and eax, 4095
        cmp byte ptr [r10 + rax], 0
        jne 2f"
    };
}

/// Leads to label 2 once the thread's countdown has ended.
macro_rules! test_countdown {
    () => {
        "mov rax, qword ptr [rip + ccmalloc_rules_thread@GOTTPOFF]
        sub dword ptr fs:[rax + {watched}], 1
        js 2f"
    };
}

/// Leads to label 3 with an object: only without one does `realloc` allocate.
macro_rules! only_without_object {
    () => {
        "test rdi, rdi
        jne 3f"
    };
}

/// Leads to label 3 where there is no memory.
macro_rules! once_more {
    () => {
        "test rax, rax
        je 3b"
    };
}

macro_rules! nothing {
    () => {
        ""
    };
}

/// Defines functions that go on with `$plain`, which has the same arguments, unless `$test` leads
/// to label 2. There the registers that calls preserve are saved below the return address, which
/// makes a `Snapshot`: the fourth argument of `$hit`, whose first three are the function's own.
/// Label 3 leads to `$plain`.
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
                    "3: jmp {plain}",
                    "2: push r15",
                    ".cfi_adjust_cfa_offset 8",
                    "push r14",
                    ".cfi_adjust_cfa_offset 8",
                    "push r13",
                    ".cfi_adjust_cfa_offset 8",
                    "push r12",
                    ".cfi_adjust_cfa_offset 8",
                    "push rbp",
                    ".cfi_adjust_cfa_offset 8",
                    "push rbx",
                    ".cfi_adjust_cfa_offset 8",
                    "mov rcx, rsp",
                    // An even number of words keeps the stack aligned, and `new` needs it again.
                    "push rdi",
                    ".cfi_adjust_cfa_offset 8",
                    "call {hit}",
                    "pop rdi",
                    ".cfi_adjust_cfa_offset -8",
                    "add rsp, 48",
                    ".cfi_adjust_cfa_offset -48",
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
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "call {malloc}",
        "test rax, rax",
        "je 2f",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "ret",
        ".cfi_adjust_cfa_offset 8",
        "2: call {next}",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "jmp rax",
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
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "call {choose}",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "jmp rax",
        ".cfi_endproc",
        choose = sym super::choose_new,
    )
}
