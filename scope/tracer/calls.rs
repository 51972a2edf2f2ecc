//! System calls. The kernel may not access zones where the program knows them, so it is given the
//! aliases; calls that change the program's memory are carried out on the zones.

use core::sync::atomic::Ordering::Relaxed;

use crate::arguments::{ABSENT, BLOCKS, KEPT, NUMBERS};
use crate::context::{Context, Info};
use crate::faults::{record, release_stack};
use crate::nested::{self, Aimed};
use crate::numbers as nr;
use crate::sys::{self, PAGE};
use crate::wire;
use crate::{LOCK, file, gate, memory, signals, start, threads, twice, zones};

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

const NO_CALL: i64 = -38;

/// Handles SIGSYS: a system call is about to be made.
///
/// # Safety
///
/// As the kernel calls it.
pub(crate) unsafe extern "C" fn on_call(signal: i32, info: *mut Info, context: *mut Context) {
    // SAFETY: the kernel passes pointers to both, on this handler's stack, and nobody else has them
    // until it returns.
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
        sys::CLONE | sys::FORK | sys::VFORK | sys::CLONE3 => return twice::enter(context),
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
    let (own, [first, second, flags, ..]) = (file::descriptor(), context.arguments());
    match context.rax {
        // In a child of `vfork` descriptors are its own, but what we know of ours is not.
        _ if !start::is_own_process() => pass(context),
        sys::CLOSE if first as u32 == own as u32 => context.rax = BAD.cast_unsigned(),
        nr::DUP2 | nr::DUP3 if first as u32 == own as u32 => context.rax = BAD.cast_unsigned(),
        nr::DUP2 | nr::DUP3 if second as u32 == own as u32 => {
            file::move_descriptor();
            pass(context);
        }
        nr::CLOSE_RANGE
            if flags & TO_CLOSE_BY_EXEC == 0 && (first..=second & 0xffff_ffff).contains(&own) =>
        {
            let parts = [(first, own - 1), (own + 1, second)];
            let mut result = 0;
            for (from, to) in parts.into_iter().filter(|it| it.0 <= it.1) {
                // SAFETY: the program makes this call, but for our file, and gives up its own files
                // only.
                let part = unsafe { sys::call(nr::CLOSE_RANGE, [from, to, flags, 0, 0, 0]) };
                result = result.min(part);
            }
            context.rax = result.cast_unsigned();
        }
        _ => pass(context),
    }
}

/// A thread's control block and what lies around it cannot be traced: our handlers need it.
pub(crate) fn release_block(address: u64) {
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
    nested::release(number, &own);
    let numbers = NUMBERS
        .iter()
        .find(|it| it.0 == number)
        .map_or(0, |it| it.1);
    let mut call = Aimed {
        number,
        ip: context.rip,
        own,
        told: own,
        scratch: [0; 2],
    };
    for (at, argument) in call.told.iter_mut().enumerate() {
        if numbers >> at & 1 == 0 {
            *argument = zones::usable(*argument);
        }
    }
    call.nested();
    call.blocks();
    if call.told == own {
        pass(context);
        return;
    }
    if number == sys::FUTEX {
        threads::this().waits_at.store(own[0], Relaxed);
    }
    prepare(context, call.told, call.scratch);
}

/// A call through the gate is over; false if the trap is not from there.
pub(crate) fn after(context: &mut Context) -> bool {
    let start = gate::start();
    const BEHIND: u64 = 3;
    if context.rip == start + gate::TWICE + BEHIND {
        twice::after(context);
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
        nested::return_messages(saved.number, saved.arguments[1], told[1], result);
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
