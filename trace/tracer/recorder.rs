//! The recorder: what patched instructions call in place of a fault. It finds out whether an
//! operand is traced, writes the events, and says how far away the operand may be accessed.
//!
//! It is assembly because the program's vector registers are live, and takes no lock: it reads a
//! table with a byte for each page of the address space, which [`mark`] writes.

use core::mem::offset_of;
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use super::events::{MAP, ROOM};
use super::sys::{self, PAGE};
use super::threads::{MOST, THREADS, Thread};
use super::wire::{Event, HEADER, Header, Site};

/// Addresses that programs may have.
const SPACE: u64 = 1 << 47;
/// A byte for each page: 0, or which of [`DELTAS`] its alias is away. 0: there is no table.
static PAGES: AtomicU64 = AtomicU64::new(0);
/// Distances of aliases; 0: free, but for the first.
static DELTAS: [AtomicI64; 256] = [const { AtomicI64::new(0) }; 256];

unsafe extern "C" {
    fn ccscope_recorder();
    static ccscope_recorder_end: u8;
}

/// Makes the table; false if there is no address space for it.
pub(crate) fn init() -> bool {
    let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE;
    let both = sys::PROT_READ | sys::PROT_WRITE;
    // SAFETY: it is put where nothing is.
    let pages = unsafe { sys::map(sys::far(SPACE / PAGE), SPACE / PAGE, both, flags, -1, 0) };
    if sys::failed(pages) {
        return false;
    }
    PAGES.store(pages.cast_unsigned(), Relaxed);
    true
}

/// Where it is, for bodies.
pub(crate) fn address() -> u64 {
    ccscope_recorder as *const () as u64
}

/// Whether an instruction is one of its own.
pub(crate) fn contains(ip: u64) -> bool {
    (address()..&raw const ccscope_recorder_end as u64).contains(&ip)
}

/// Notes how far the alias of whole pages is away; 0: they are not traced, or closed to what the
/// program may not do.
pub(crate) fn mark(start: u64, end: u64, delta: i64) {
    let pages = PAGES.load(Relaxed);
    if pages == 0 {
        return;
    }
    let same = |slot: &&AtomicI64| [delta, 0].contains(&slot.load(Relaxed));
    let number = match delta {
        0 => 0,
        // With too many distances, some memory is left to faults.
        _ => (1..DELTAS.len())
            .find(|&at| same(&&DELTAS[at]))
            .unwrap_or(0),
    };
    DELTAS[number].store(delta * i64::from(number != 0), Relaxed);
    // SAFETY: within the table.
    unsafe { sys::fill(pages + start / PAGE, number as u8, (end - start) / PAGE) };
}

// In: `rdi` the operand's address, `rax` its site. Out: `rax` the distance. It changes `rcx`,
// `rdx`, `r8` to `r11` and flags. An answer of 0 has the instruction access what it names, which
// faults where that is traced: the slow path for operands over two pages, threads that are not
// known yet, and events that have no room.
//
// An event's last word has its kind and is written last, as in `events::push`.
core::arch::global_asm!(
    ".hidden ccscope_recorder",
    ".globl ccscope_recorder",
    "ccscope_recorder:",
    "mov rdx, [rax + {to_last}]",
    "add rdx, rdi",
    "mov rcx, rdi",
    "shr rdx, 12",
    "shr rcx, 12",
    "cmp rcx, rdx",
    "jne 9f",
    "mov rdx, rcx",
    "shr rdx, 35",
    "jnz 9f",
    "add rcx, [rip + {pages}]",
    "movzx ecx, byte ptr [rcx]",
    "test ecx, ecx",
    "jz 9f",
    // As in `threads::this`.
    "mov rdx, fs:[0]",
    "movabs r8, 0x9e3779b97f4a7c15",
    "imul r8, rdx",
    "shr r8, 40",
    "lea r10, [rip + {threads}]",
    "mov r11d, 64",
    "2:",
    "dec r11d",
    "js 9f",
    "and r8d, {mask}",
    "imul r9, r8, {thread}",
    "inc r8d",
    "cmp [r10 + r9 + {base}], rdx",
    "je 3f",
    "cmp qword ptr [r10 + r9 + {base}], 0",
    "jne 2b",
    "jmp 9f",
    "3:",
    "cmp dword ptr [r10 + r9 + {quiet}], 0",
    "jne 5f",
    "mov edx, [r10 + r9 + {number}]",
    "xor r10d, r10d",
    "4:",
    "mov r8, [rip + {map}]",
    "mov r9d, 1",
    "lock xadd [r8 + {count}], r9",
    "cmp r9, [rip + {room}]",
    "jae 9f",
    "shl r9, 5",
    "lea r9, [r8 + r9 + {header}]",
    "mov r8, [rax + {ip}]",
    "mov [r9 + {event_ip}], r8",
    "mov [r9 + {event_address}], rdi",
    "mov r8, [rax + 8 * r10 + {events}]",
    "or r8, rdx",
    "mov [r9 + {event_thread}], r8",
    "inc r10d",
    "cmp r10d, 2",
    "je 5f",
    "cmp qword ptr [rax + 8 * r10 + {events}], 0",
    "jne 4b",
    "5:",
    "lea rdx, [rip + {deltas}]",
    "mov rax, [rdx + 8 * rcx]",
    "ret",
    "9:",
    "xor eax, eax",
    "ret",
    ".hidden ccscope_recorder_end",
    ".globl ccscope_recorder_end",
    "ccscope_recorder_end:",
    to_last = const offset_of!(Site, to_last),
    ip = const offset_of!(Site, ip),
    events = const offset_of!(Site, events),
    pages = sym PAGES,
    threads = sym THREADS,
    mask = const MOST - 1,
    thread = const size_of::<Thread>(),
    base = const offset_of!(Thread, base),
    quiet = const offset_of!(Thread, quiet),
    number = const offset_of!(Thread, number),
    map = sym MAP,
    room = sym ROOM,
    count = const offset_of!(Header, count),
    header = const HEADER,
    event_ip = const offset_of!(Event, ip),
    event_address = const offset_of!(Event, address),
    event_thread = const offset_of!(Event, thread),
    deltas = sym DELTAS,
);

const _: () = assert!(size_of::<Event>() == 32 && PAGE == 1 << 12 && SPACE == 1 << (35 + 12));
const _: () = assert!(offset_of!(Event, kind) == offset_of!(Event, thread) + 4);
const _: () = assert!(offset_of!(Event, size) == offset_of!(Event, thread) + 6);
