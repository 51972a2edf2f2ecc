//! System calls. The kernel may not access zones where the program knows them, so it is given the
//! aliases; calls that change the program's memory are carried out on the zones.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::arguments::{ABSENT, ARRAYS, BLOCKS, KEPT, Len, NUMBERS};
use crate::context::{Context, Info};
use crate::faults::{record, release_stack};
use crate::numbers as nr;
use crate::sys::{self, PAGE};
use crate::wire;
use crate::{LOCK, gate, memory, signals, start, threads, zones};

/// What has to be done once a call is over, on the program's stack.
#[repr(C)]
struct Saved {
    magic: u64,
    next: u64,
    rsp: u64,
    r15: u64,
    number: u64,
    arguments: [u64; 6],
    /// What is told to the kernel in place of nested arguments, to be unmapped.
    scratch: u64,
    scratch_len: u64,
}
const SAVED: u64 = 0x7361_7665_6463_7363;
/// What compilers use below the stack pointer.
const RED_ZONE: u64 = 128;

/// A call that returns twice.
struct Pending {
    /// How often it still returns; 0: free.
    refs: AtomicU64,
    next: AtomicU64,
    r15: AtomicU64,
    mask: AtomicU64,
    flags: AtomicU64,
    /// For `fork`: the child's file.
    file: AtomicU64,
    parent: AtomicU64,
    /// As the program has them.
    arguments: [AtomicU64; 6],
    /// For `clone3`: what the kernel reads in place of the program's.
    words: [AtomicU64; CLONE_WORDS],
}
/// Words of what `clone3` takes, and some more.
const CLONE_WORDS: usize = 16;
static PENDING: [Pending; 64] = [const {
    Pending {
        refs: AtomicU64::new(0),
        next: AtomicU64::new(0),
        r15: AtomicU64::new(0),
        mask: AtomicU64::new(0),
        flags: AtomicU64::new(0),
        file: AtomicU64::new(0),
        parent: AtomicU64::new(0),
        arguments: [const { AtomicU64::new(0) }; 6],
        words: [const { AtomicU64::new(0) }; CLONE_WORDS],
    }
}; 64];

const CLONE_VM: u64 = 0x100;
const CLONE_FILES: u64 = 0x400;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_SETTLS: u64 = 0x8_0000;

const NO_CALL: i64 = -38;
/// Calls with a set of signals, and which argument it is.
const MASKS: [(u64, usize); 4] = [
    (nr::RT_SIGSUSPEND, 0),
    (nr::PPOLL, 3),
    (nr::EPOLL_PWAIT, 4),
    (nr::EPOLL_PWAIT2, 4),
];

/// Handles SIGSYS: a system call is about to be made.
///
/// # Safety
///
/// As the kernel calls it.
pub(crate) unsafe extern "C" fn on_call(signal: i32, info: *mut Info, context: *mut Context) {
    // SAFETY: the kernel's.
    let (info, context) = unsafe { (&mut *info, &mut *context) };
    const DISPATCHED: i32 = 2;
    if LOCK.keeps(info) {
        return;
    }
    if info.code != DISPATCHED {
        signals::deliver(signal, info, context);
        return;
    }
    LOCK.take();
    release_stack(context.rsp, context.rsp);
    const NATIVE: u32 = 0xc000_003e;
    let stays = if info.architecture == NATIVE {
        enter(context)
    } else {
        // Of 32 bits, by `int 0x80`: it has other numbers, and addresses where nothing is traced.
        let stub = gate::stub_to(context.rip, gate::INT_80);
        context.rip = stub.unwrap_or(context.rip);
        false
    };
    if !stays {
        LOCK.give();
    }
}

/// Most bytes that are copied for a call.
const LARGEST: u64 = 64 << 20;

/// Decides what the thread goes on with; true if the lock is kept until it is over.
fn enter(context: &mut Context) -> bool {
    let number = context.rax;
    if start::modules_are_new() {
        start::tell_modules(context.rip);
    }
    match number {
        sys::RT_SIGACTION => context.rax = signals::set_action(context.arguments()).cast_unsigned(),
        sys::RT_SIGPROCMASK => {
            context.rax = signals::set_mask(context.arguments(), &mut context.mask).cast_unsigned();
        }
        sys::SIGALTSTACK => {
            let result = signals::set_stack(context.arguments(), context);
            let stack = &threads::this().stack;
            if result == 0 && stack[2].load(Relaxed) > context.stack[2] {
                // Where we are is not left at once, and sets nothing before it is.
                let place = (&raw const *stack) as u64;
                prepare(context, [place, 0, 0, 0, 0, 0], [0; 2]);
            } else {
                context.rax = result.cast_unsigned();
            }
        }
        sys::RT_SIGRETURN => {
            signals::on_return(context.rip, context.rsp);
            let stub = gate::stub_to(context.rip, gate::CALL_64);
            context.rip = stub.unwrap_or(gate::start() + gate::LAST);
        }
        sys::CLONE | sys::FORK | sys::VFORK | sys::CLONE3 => return twice(context),
        sys::MMAP
        | sys::MUNMAP
        | sys::MPROTECT
        | sys::PKEY_MPROTECT
        | sys::MREMAP
        | sys::MADVISE
        | sys::BRK => match memory::call(number, context.arguments(), context.rip) {
            Some(result) => context.rax = result.cast_unsigned(),
            None => pass(context),
        },
        sys::EXIT => {
            let thread = threads::this();
            record(wire::ENDED, context.rip, 0, 0);
            if thread.until.load(Relaxed) != 0 {
                // It does not return from `--from`'s function.
                zones::set_closed(false);
            }
            thread.end();
            release_locks();
            pass(context);
        }
        number if ABSENT.contains(&number) => context.rax = NO_CALL.cast_unsigned(),
        sys::CLOSE | nr::DUP2 | nr::DUP3 | nr::CLOSE_RANGE => descriptors(context),
        nr::ARCH_PRCTL => {
            const SET_FS: u64 = 0x1002;
            const GET: [u64; 2] = [0x1003, 0x1004];
            let [what, address, ..] = context.arguments();
            if what == SET_FS {
                release_block(address);
            }
            if GET.contains(&what) {
                aim(context);
            } else {
                pass(context);
            }
        }
        number if KEPT.contains(&number) => pass(context),
        _ => aim(context),
    }
    false
}

/// Calls that close descriptors: ours stays.
fn descriptors(context: &mut Context) {
    const BAD: i64 = -9;
    const TO_CLOSE_BY_EXEC: u64 = 4;
    let (own, [first, second, flags, ..]) = (zones::file(), context.arguments());
    match context.rax {
        // In a child of `vfork` descriptors are its own, but what we know of ours is not.
        _ if !start::is_own_process() => pass(context),
        sys::CLOSE if first as u32 == own as u32 => context.rax = BAD.cast_unsigned(),
        nr::DUP2 | nr::DUP3 if first as u32 == own as u32 => context.rax = BAD.cast_unsigned(),
        nr::DUP2 | nr::DUP3 if second as u32 == own as u32 => {
            zones::move_file();
            pass(context);
        }
        nr::CLOSE_RANGE
            if flags & TO_CLOSE_BY_EXEC == 0 && (first..=second & 0xffff_ffff).contains(&own) =>
        {
            let parts = [(first, own - 1), (own + 1, second)];
            let mut result = 0;
            for (from, to) in parts.into_iter().filter(|it| it.0 <= it.1) {
                // SAFETY: the program's own call, in two parts.
                let part = unsafe { sys::call(nr::CLOSE_RANGE, [from, to, flags, 0, 0, 0]) };
                result = result.min(part);
            }
            context.rax = result.cast_unsigned();
        }
        _ => pass(context),
    }
}

/// A thread's control block and what lies around it cannot be traced: our handlers need it.
fn release_block(address: u64) {
    const AROUND: u64 = 16 * PAGE;
    if let Some(zone) = zones::find(address) {
        let start = (address & !(PAGE - 1)).saturating_sub(AROUND);
        let end = (address & !(PAGE - 1)) + 2 * PAGE;
        zones::release(start.max(zone.start), end.min(zone.end));
    }
}

/// What the kernel walks when a thread ends, so that others get its locks, cannot be traced.
fn release_locks() {
    const MOST: usize = 2048;
    let (mut head, mut len) = (0_u64, 0_u64);
    // SAFETY: the kernel writes two words.
    let result = unsafe {
        let words = [0, (&raw mut head) as u64, (&raw mut len) as u64, 0, 0, 0];
        sys::call(sys::GET_ROBUST_LIST, words)
    };
    // The first entry, where an entry's lock lies, and what is being locked.
    let mut words = [0_u64; 3];
    if sys::failed(result) || head == 0 || !zones::copy((&raw mut words) as u64, head, 24) {
        return;
    }
    let [mut entry, offset, pending] = words;
    let release = |entry: u64| {
        for address in [entry, entry.wrapping_add(offset)] {
            let page = address & !(PAGE - 1);
            zones::release(page, page.saturating_add(PAGE));
        }
    };
    release(head);
    release(pending & !1);
    for _ in 0..MOST {
        let place = entry & !1;
        if place == head || !zones::copy((&raw mut entry) as u64, place, 8) {
            break;
        }
        release(place);
    }
}

/// The thread does the call itself.
fn pass(context: &mut Context) {
    match gate::stub_to(context.rip, gate::CALL_64) {
        Some(stub) => context.rip = stub,
        // The table is full.
        None => {
            let arguments = context.arguments();
            prepare(context, arguments, [0; 2]);
        }
    }
}

/// The thread does the call with other arguments, and tells us when it is over.
fn prepare(context: &mut Context, arguments: [u64; 6], scratch: [u64; 2]) {
    let place = (context.rsp - RED_ZONE - size_of::<Saved>() as u64) & !15;
    let saved = Saved {
        magic: SAVED,
        next: context.rip,
        rsp: context.rsp,
        r15: context.r15,
        number: context.rax,
        arguments: context.arguments(),
        scratch: scratch[0],
        scratch_len: scratch[1],
    };
    // SAFETY: free space of the program's stack, below what it may use until the call is over.
    if !unsafe { sys::try_copy(place, (&raw const saved) as u64, size_of::<Saved>() as u64) } {
        sys::die(b"no room on the stack at a system call");
    }
    context.rsp = place;
    context.r15 = place;
    context.set_arguments(arguments);
    context.rip = gate::start() + gate::AFTER;
}

/// Gives the kernel aliases.
fn aim(context: &mut Context) {
    let (number, own) = (context.rax, context.arguments());
    release_nested(number, &own);
    let mut arguments = own;
    let numbers = NUMBERS
        .iter()
        .find(|it| it.0 == number)
        .map_or(0, |it| it.1);
    for (at, argument) in arguments.iter_mut().enumerate() {
        if numbers >> at & 1 == 0 {
            *argument = zones::usable(*argument);
        }
    }
    let mut scratch = [0; 2];
    if let Some((_, kind)) = ARRAYS.iter().find(|it| it.0 == number) {
        // Of those, the second array is of another process, or of this one, too.
        let both = matches!(number, nr::PROCESS_VM_READV | nr::PROCESS_VM_WRITEV)
            && own[0] == sys::process();
        let arrays = [
            (1, *kind),
            (
                3,
                if *kind == wire::FILL {
                    wire::FETCH
                } else {
                    wire::FILL
                },
            ),
        ];
        let arrays = &arrays[..usize::from(both) + 1];
        buffers(&mut arguments, &own, arrays, context.rip, &mut scratch);
    } else if number == nr::SENDMSG || number == nr::RECVMSG {
        messages(&mut arguments, own[1], 1, number, context.rip, &mut scratch);
    } else if number == nr::SENDMMSG || number == nr::RECVMMSG {
        let count = own[2] & 0xffff_ffff;
        messages(
            &mut arguments,
            own[1],
            count,
            number,
            context.rip,
            &mut scratch,
        );
    } else if let Some((_, at)) = MASKS.iter().find(|it| it.0 == number) {
        arguments[*at] = signals::filtered(own[*at], &mut scratch);
    } else if number == nr::PSELECT6 && arguments[5] != 0 {
        let mut pair = [0_u64; 2];
        if zones::copy((&raw mut pair) as u64, own[5], 16) {
            let mask = signals::filtered(pair[0], &mut scratch);
            if mask != pair[0] {
                if scratch[1] == 0 {
                    scratch_of(PAGE, &mut scratch);
                }
                // SAFETY: the scratch page has room behind the mask.
                unsafe {
                    sys::set_word(scratch[0] + 64, mask);
                    sys::set_word(scratch[0] + 72, pair[1]);
                }
                arguments[5] = scratch[0] + 64;
            }
        }
    } else if number == sys::EXECVE || number == sys::EXECVEAT {
        let first = usize::from(number == sys::EXECVEAT) + 1;
        texts(&mut arguments, &own, first, &mut scratch);
        record(wire::EXEC, context.rip, own[first - 1], 0);
    }
    blocks(number, &own, &mut arguments, context.rip, &mut scratch);
    if arguments == own {
        pass(context);
        return;
    }
    if number == sys::FUTEX {
        threads::this().waits_at.store(own[0], Relaxed);
    }
    prepare(context, arguments, scratch);
}

/// Some calls take a struct whose second word points to more: rare enough not to be traced.
fn release_nested(number: u64, own: &[u64; 6]) {
    const SIOCGIFCONF: u64 = 0x8912;
    const SOL_SOCKET: u64 = 1;
    const FILTERS: [u64; 2] = [26, 51];
    const PR_SET_SECCOMP: u64 = 22;
    let (place, is_filter) = match (number, own) {
        (nr::IOCTL, [_, SIOCGIFCONF, place, ..]) => (*place, false),
        (nr::SETSOCKOPT, [_, SOL_SOCKET, option, place, ..]) if FILTERS.contains(option) => {
            (*place, true)
        }
        (nr::PRCTL, [PR_SET_SECCOMP, _, place, ..]) | (nr::SECCOMP, [_, _, place, ..]) => {
            (*place, true)
        }
        _ => return,
    };
    let mut words = [0_u64; 2];
    if zones::copy((&raw mut words) as u64, place, 16) {
        let [len, start] = words;
        // Instructions of 8 bytes, or bytes.
        let len = if is_filter {
            (len & 0xffff) * 8
        } else {
            len & 0xffff_ffff
        };
        let end = start.saturating_add(len);
        zones::release(start & !(PAGE - 1), (end | (PAGE - 1)).saturating_add(1));
    }
}

/// Records what the kernel will read; what is not one piece for the kernel, it gets a copy of.
fn blocks(number: u64, own: &[u64; 6], arguments: &mut [u64; 6], ip: u64, scratch: &mut [u64; 2]) {
    let is_free = scratch[1] == 0;
    let mut used = 0;
    for &(_, argument, kind, len) in BLOCKS.iter().filter(|it| it.0 == number) {
        let address = own[argument];
        let most = len.bytes(own, argument, None);
        let is_whole = zones::is_one_piece(address, most);
        if kind == wire::FETCH && !(arguments[argument] == address && is_whole) {
            record(kind, ip, address, most);
        }
        if is_whole {
            continue;
        }
        let bytes = most.min(LARGEST);
        if !is_free {
            // Other arguments have the memory.
            zones::release(address & !(PAGE - 1), ((address + bytes) | (PAGE - 1)) + 1);
            arguments[argument] = address;
            continue;
        }
        if scratch[1] == 0 {
            // For all that are copied: the others are small.
            scratch_of(bytes + 4 * PAGE, scratch);
        }
        let place = scratch[0] + used;
        // If it cannot be accessed, the kernel shall find out where.
        if used + bytes <= scratch[1]
            && (kind == wire::FETCH || zones::may_store(address, bytes))
            && zones::copy(place, address, bytes)
        {
            arguments[argument] = place;
            used += bytes.next_multiple_of(64);
            if most > LARGEST {
                // A part of what is asked for.
                match len {
                    Len::Argument(of, 1) => arguments[of] = LARGEST,
                    Len::Result(1) => arguments[argument + 1] = LARGEST,
                    _ => {}
                }
            }
        }
    }
}

/// Memory for arguments that are told to the kernel in place of the program's.
fn scratch_of(len: u64, scratch: &mut [u64; 2]) -> u64 {
    let len = len.next_multiple_of(PAGE);
    *scratch = [sys::memory(len), len];
    scratch[0]
}

/// Arrays of buffers, as `readv` takes them: which arguments, and what the kernel does there.
fn buffers(
    arguments: &mut [u64; 6],
    own: &[u64; 6],
    arrays: &[(usize, u8)],
    ip: u64,
    scratch: &mut [u64; 2],
) {
    const MOST: u64 = 1024;
    let count: u64 = arrays
        .iter()
        .map(|&(at, _)| own[at + 1].min(MOST + 1))
        .sum();
    if count == 0 || arrays.iter().any(|&(at, _)| own[at + 1] > MOST) {
        return;
    }
    let mut to = scratch_of(count * 16, scratch);
    for &(at, kind) in arrays {
        let count = own[at + 1];
        if zones::copy(to, own[at], count * 16) {
            aim_buffers(to, count, kind, ip);
            arguments[at] = to;
        }
        to += count * 16;
    }
}

fn aim_buffers(at: u64, count: u64, kind: u8, ip: u64) {
    for buffer in (0..count).map(|index| at + index * 16) {
        // SAFETY: the array is ours.
        unsafe {
            let address = sys::word(buffer);
            // The kernel takes no more.
            let len = sys::word(buffer + 8).min(0x7fff_f000);
            if !zones::is_one_piece(address, len) {
                let end = (address.saturating_add(len) | (PAGE - 1)) + 1;
                zones::release(address & !(PAGE - 1), end);
            }
            let usable = zones::usable(address);
            if usable != address {
                record(kind, ip, address, sys::word(buffer + 8));
                sys::set_word(buffer, usable);
            }
        }
    }
}

/// Bytes of a message for `sendmsg` and `recvmsg`, which is seven words.
const MESSAGE: u64 = 56;

/// How far one message lies behind the other.
fn step_of_messages(number: u64) -> u64 {
    // With its length behind it.
    if number == nr::SENDMMSG || number == nr::RECVMMSG {
        MESSAGE + 8
    } else {
        MESSAGE
    }
}

/// Messages.
fn messages(
    arguments: &mut [u64; 6],
    from: u64,
    count: u64,
    number: u64,
    ip: u64,
    scratch: &mut [u64; 2],
) {
    const MOST: u64 = 1024;
    let (count, step) = (count.min(MOST), step_of_messages(number));
    let kind = if number == nr::SENDMSG || number == nr::SENDMMSG {
        wire::FETCH
    } else {
        wire::FILL
    };
    let mut words = [0_u64; 7];
    let mut buffers = 0;
    for at in 0..count {
        if !zones::copy((&raw mut words) as u64, from + at * step, MESSAGE) || words[3] > MOST {
            return;
        }
        buffers += words[3];
    }
    if count == 0 {
        return;
    }
    let to = scratch_of(count * step + buffers * 16, scratch);
    let mut place = to + count * step;
    for at in 0..count {
        zones::copy((&raw mut words) as u64, from + at * step, MESSAGE);
        let len = words[3].min(buffers);
        buffers -= len;
        if len > 0 && !zones::copy(place, words[2], len * 16) {
            return;
        }
        aim_buffers(place, len, kind, ip);
        words[0] = zones::usable(words[0]);
        words[2] = place;
        words[4] = zones::usable(words[4]);
        place += len * 16;
        // SAFETY: the scratch memory is ours.
        unsafe { sys::copy(to + at * step, (&raw const words) as u64, MESSAGE) };
    }
    arguments[1] = to;
    if number == nr::SENDMMSG || number == nr::RECVMMSG {
        arguments[2] = count;
    }
}

/// What the kernel has set in messages.
fn return_messages(number: u64, to: u64, from: u64, result: i64) {
    let step = step_of_messages(number);
    let count = if step == MESSAGE { 1 } else { result };
    for at in (0..count.cast_unsigned()).map(|at| at * step) {
        let receives = number == nr::RECVMSG || number == nr::RECVMMSG;
        // Lengths of name and control data, flags; the length.
        let parts: &[(u64, u64)] = match (receives, step == MESSAGE) {
            (true, true) => &[(8, 4), (40, 8), (48, 4)],
            (true, false) => &[(8, 4), (40, 8), (48, 4), (56, 4)],
            (false, true) => &[],
            (false, false) => &[(56, 4)],
        };
        for (offset, len) in parts {
            zones::copy(to + at + offset, from + at + offset, *len);
        }
    }
}

/// Arrays of texts, as `execve` takes them.
fn texts(arguments: &mut [u64; 6], own: &[u64; 6], first: usize, scratch: &mut [u64; 2]) {
    const MOST: u64 = 1 << 20;
    let count = |array: u64| {
        let mut len = 0;
        let mut word = 0_u64;
        while array != 0 && len < MOST {
            if !zones::copy((&raw mut word) as u64, array + len * 8, 8) || word == 0 {
                break;
            }
            len += 1;
        }
        len + 1
    };
    let arrays = [own[first], own[first + 1]];
    let lens = arrays.map(count);
    let mut to = scratch_of((lens[0] + lens[1]) * 8, scratch);
    if !start::is_own_process() {
        // A child of `vfork` does not come back to give this back.
        for (word, value) in threads::this().kept.iter().zip(*scratch) {
            word.store(value, Relaxed);
        }
    }
    for (index, (array, len)) in arrays.into_iter().zip(lens).enumerate() {
        if array == 0 {
            continue;
        }
        arguments[first + index] = to;
        for at in 0..len {
            let mut word = 0_u64;
            if at + 1 < len {
                zones::copy((&raw mut word) as u64, array + at * 8, 8);
            }
            // SAFETY: within the scratch memory.
            unsafe { sys::set_word(to, zones::usable(word)) };
            to += 8;
        }
    }
}

/// A call that makes a thread or a process.
fn twice(context: &mut Context) -> bool {
    let own = context.arguments();
    let mut words = [0_u64; CLONE_WORDS];
    let words_len = own[1].min(size_of_val(&words) as u64);
    let mut flags = match context.rax {
        sys::VFORK => CLONE_VM | CLONE_VFORK,
        sys::CLONE => own[0],
        _ => 0,
    };
    // Stacks and control blocks are not traced.
    if context.rax == sys::CLONE {
        release_stack(own[1].wrapping_sub(8), own[1].wrapping_sub(8));
        if flags & CLONE_SETTLS != 0 {
            release_block(own[4]);
        }
    } else if context.rax == sys::CLONE3 {
        zones::copy((&raw mut words) as u64, own[0], words_len);
        flags = words[0];
        let [_, _, _, _, _, stack, len, block, ..] = words;
        zones::release(stack & !(PAGE - 1), (stack + len) & !(PAGE - 1));
        if flags & CLONE_SETTLS != 0 {
            release_block(block);
        }
    }
    let Some(pending) = PENDING.iter().find(|it| it.refs.load(Relaxed) == 0) else {
        sys::die(b"too many threads are made at once");
    };
    let is_fork = flags & CLONE_VM == 0;
    if flags & (CLONE_VM | CLONE_VFORK | CLONE_SETTLS) == CLONE_VM {
        threads::share_blocks();
    }
    if is_fork {
        const TRY_AGAIN: i64 = -11;
        let Some(file) = zones::copy_file() else {
            context.rax = TRY_AGAIN.cast_unsigned();
            return false;
        };
        pending.file.store(file, Relaxed);
    }
    // After memory was released: of `clone`, the kernel sets numbers of threads there; of `clone3`,
    // all is in a struct.
    let mut arguments = own;
    if context.rax == sys::CLONE {
        for at in [2, 3] {
            arguments[at] = zones::usable(own[at]);
        }
    } else if context.rax == sys::CLONE3 && own[1] <= words_len {
        // For the process, the child and the parent, and numbers of threads.
        for at in [1, 2, 3, 8] {
            words[at] = zones::usable(words[at]);
        }
        for (place, word) in pending.words.iter().zip(words) {
            place.store(word, Relaxed);
        }
        arguments[0] = (&raw const pending.words) as u64;
    }
    pending.refs.store(if is_fork { 1 } else { 2 }, Relaxed);
    pending.next.store(context.rip, Relaxed);
    pending.r15.store(context.r15, Relaxed);
    pending.mask.store(context.mask, Relaxed);
    pending.flags.store(flags, Relaxed);
    for (word, value) in pending.arguments.iter().zip(own) {
        word.store(value, Relaxed);
    }
    pending
        .parent
        .store(u64::from(threads::this().number.load(Relaxed)), Relaxed);
    context.set_arguments(arguments);
    context.r15 = core::ptr::from_ref(pending).expose_provenance() as u64;
    context.mask = !signals::OURS;
    context.rip = gate::start() + gate::TWICE;
    is_fork
}

/// A call through the gate is over; false if the trap is not from there.
pub(crate) fn after(context: &mut Context) -> bool {
    let start = gate::start();
    const BEHIND: u64 = 3;
    if context.rip == start + gate::TWICE + BEHIND {
        after_twice(context);
        return true;
    }
    if context.rip != start + gate::AFTER + BEHIND {
        return false;
    }
    let saved = leave(context);
    let told = context.arguments();
    context.set_arguments(saved.arguments);
    finish(context, &saved, told);
    true
}

/// Takes a thread that was interrupted in a call through the gate out of it: to behind the
/// program's call, or to before it, if it is still to be made or made again.
pub(crate) fn settle(context: &mut Context) {
    let at = context.rip.wrapping_sub(gate::start() + gate::AFTER);
    if at != 0 && at != gate::SYSCALL {
        return;
    }
    let saved = leave(context);
    let told = context.arguments();
    context.set_arguments(saved.arguments);
    if at == 0 {
        context.rax = saved.number;
        context.rip -= gate::SYSCALL;
        forget(&saved);
    } else {
        finish(context, &saved, told);
    }
}

/// Puts a thread to behind the program's call.
fn leave(context: &mut Context) -> Saved {
    let saved = core::ptr::with_exposed_provenance::<Saved>(context.r15 as usize);
    // SAFETY: `prepare` wrote it, where the thread's stack pointer is since. The kernel keeps
    // `r15`, and handlers do not see this one: `settle` comes before them.
    let saved = unsafe { saved.read() };
    if saved.magic != SAVED {
        sys::die(b"a system call returned without its stack");
    }
    context.rip = saved.next;
    context.rsp = saved.rsp;
    context.r15 = saved.r15;
    saved
}

/// Gives memory for arguments back.
fn forget(saved: &Saved) {
    if saved.scratch_len != 0 {
        { threads::this().kept.iter() }.for_each(|word| word.store(0, Relaxed));
        // SAFETY: it was mapped for this call.
        unsafe { sys::call(sys::MUNMAP, [saved.scratch, saved.scratch_len, 0, 0, 0, 0]) };
    }
}

/// A call is over: what the kernel has set goes to the program, and is recorded.
fn finish(context: &mut Context, saved: &Saved, told: [u64; 6]) {
    const FAULT: i64 = -14;
    let result = context.rax.cast_signed();
    if saved.number == sys::FUTEX {
        threads::this().waits_at.store(0, Relaxed);
    }
    if result == FAULT && is_stale(saved, told) {
        context.rax = saved.number;
        context.rip -= gate::SYSCALL;
    }
    let has_messages =
        [nr::SENDMSG, nr::RECVMSG, nr::SENDMMSG, nr::RECVMMSG].contains(&saved.number);
    if has_messages && saved.scratch != 0 && told[1] == saved.scratch && result >= 0 {
        LOCK.take();
        return_messages(saved.number, saved.arguments[1], told[1], result);
        LOCK.give();
    }
    if result >= 0 {
        for &(_, argument, kind, len) in BLOCKS.iter().filter(|it| it.0 == saved.number) {
            let [own, told] = [saved.arguments[argument], told[argument]];
            if kind == wire::FILL && own != told {
                let bytes = |result| len.bytes(&saved.arguments, argument, result);
                // It may be more than there is room for: `MSG_TRUNC`.
                let bytes = bytes(Some(result.cast_unsigned())).min(bytes(None));
                LOCK.take();
                record(kind, saved.next, own, bytes);
                if told.wrapping_sub(saved.scratch) < saved.scratch_len {
                    zones::copy(
                        own,
                        told,
                        bytes.min(saved.scratch + saved.scratch_len - told),
                    );
                }
                LOCK.give();
            }
        }
    }
    forget(saved);
}

/// Whether a zone that an argument lies in was released since the kernel was told its alias.
fn is_stale(saved: &Saved, told: [u64; 6]) -> bool {
    LOCK.take();
    let is_scratch = |at: u64| at.wrapping_sub(saved.scratch) < saved.scratch_len;
    let pairs = || saved.arguments.into_iter().zip(told);
    let result =
        pairs().any(|(own, told)| own != told && !is_scratch(told) && told != zones::usable(own));
    LOCK.give();
    result
}

fn after_twice(context: &mut Context) {
    let pending = core::ptr::with_exposed_provenance::<Pending>(context.r15 as usize);
    // SAFETY: one of `PENDING`, which `twice` has set, and the kernel keeps `r15`.
    let pending = unsafe { &*pending };
    let flags = pending.flags.load(Relaxed);
    let result = context.rax.cast_signed();
    context.rip = pending.next.load(Relaxed);
    context.r15 = pending.r15.load(Relaxed);
    context.mask = pending.mask.load(Relaxed);
    context.set_arguments([0, 1, 2, 3, 4, 5].map(|it| pending.arguments[it].load(Relaxed)));
    if flags & CLONE_VM == 0 {
        // The lock is held since `twice`, here and in the child.
        let file = pending.file.load(Relaxed);
        pending.refs.store(0, Relaxed);
        if result == 0 {
            // Of threads that are not here.
            PENDING
                .iter()
                .for_each(|other| other.refs.store(0, Relaxed));
            let old = zones::use_file(file);
            if flags & CLONE_FILES == 0 {
                // SAFETY: the parent's file is not needed any more.
                unsafe { sys::call(sys::CLOSE, [old, 0, 0, 0, 0, 0]) };
            }
            threads::this().number.store(sys::thread(), Relaxed);
            LOCK.forget_sent();
            gate::dispatch();
            start::begin_process();
        } else {
            if result < 0 || flags & CLONE_FILES == 0 {
                // SAFETY: the file is the child's, which has a descriptor of its own.
                unsafe { sys::call(sys::CLOSE, [file, 0, 0, 0, 0, 0]) };
            }
            record(wire::FORK, context.rip, context.rax, 0);
        }
        LOCK.give();
        return;
    }
    if result != 0 && flags & CLONE_VFORK != 0 {
        let [place, len] = { &threads::this().kept }
            .each_ref()
            .map(|it| it.swap(0, Relaxed));
        if len != 0 {
            // SAFETY: the child, which has our control block, mapped it for a call that is over.
            unsafe { sys::call(sys::MUNMAP, [place, len, 0, 0, 0, 0]) };
        }
    }
    if result == 0 {
        gate::dispatch();
        if flags & CLONE_VFORK == 0 {
            LOCK.take();
            // The kernel has dropped the stack for handlers.
            if flags & CLONE_SETTLS != 0 {
                let thread = threads::this();
                thread.begin();
                context.stack = thread.stack_of_handlers();
                record(wire::THREAD, context.rip, pending.parent.load(Relaxed), 0);
            } else {
                // To us it is the thread that made it, whose control block it has.
                context.stack = threads::new_stack(threads::STACK);
            }
            LOCK.give();
        }
    }
    pending
        .refs
        .fetch_sub(if result < 0 { 2 } else { 1 }, Relaxed);
}
