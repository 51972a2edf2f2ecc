//! System calls that the thread does with other arguments than the program's: how it is sent into
//! the gate, and what is done once it is back.

use core::sync::atomic::Ordering::Relaxed;

use super::accesses::record;
use super::arguments::BLOCKS;
use super::context::Context;
use super::lock::LOCK;
use super::numbers as nr;
use super::sys;
use super::{fork_clone, gate, indirect_args, threads, wire, zones};

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

/// The thread does the call with other arguments, and tells us when it is over.
pub(crate) fn prepare(context: &mut Context, arguments: [u64; 6], scratch: [u64; 2]) {
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

/// A call through the gate is over; false if the trap is not from there.
pub(crate) fn after(context: &mut Context) -> bool {
    let start = gate::start();
    const BEHIND: u64 = 3;
    if context.rip == start + gate::TWICE + BEHIND {
        fork_clone::after(context);
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
pub(crate) fn rewind(context: &mut Context) {
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
    // `r15`, and handlers do not see this one: `resume_point` comes before them.
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
        indirect_args::return_messages(saved.number, saved.arguments[1], told[1], result);
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
