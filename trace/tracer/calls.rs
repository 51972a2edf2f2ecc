//! System calls. The kernel may not access zones where the program knows them, so it is given the
//! aliases; calls that change the program's memory are carried out on the zones.

use core::sync::atomic::Ordering::Relaxed;

use super::accesses::record;
use super::arguments::{ABSENT, KEPT, NUMBERS};
use super::context::{Context, Info};
use super::indirect_args::{self, Aimed};
use super::lock::LOCK;
use super::numbers as nr;
use super::sys::{self, PAGE};
use super::syscall_exit::prepare;
use super::zones::{release_block, release_stack};
use super::{file, fork_clone, gate, maps, memory, signals, threads, wire, zones};

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
    if maps::modules_are_new() {
        maps::tell_modules(context.rip);
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
        sys::CLONE | sys::FORK | sys::VFORK | sys::CLONE3 => return fork_clone::enter(context),
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
        _ if !sys::is_own_process() => pass(context),
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

/// Gives the kernel aliases.
fn aim(context: &mut Context) {
    let (number, own) = (context.rax, context.arguments());
    indirect_args::release(number, &own);
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
