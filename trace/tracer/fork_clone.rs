//! System calls that return twice, as they make a thread or a process.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::accesses::record;
use super::context::Context;
use super::lock::LOCK;
use super::sys::{self, PAGE};
use super::wire;
use super::zones::{release_block, release_stack};
use super::{events, file, gate, masks, options, threads, ticks, zones};

/// A call that returns twice.
struct Pending {
    /// How often it still returns; 0: free.
    refs: AtomicU64,
    next: AtomicU64,
    r15: AtomicU64,
    mask: AtomicU64,
    flags: AtomicU64,
    /// For `fork`: the child's file, and without one what it has in place of zones.
    file: AtomicU64,
    copy: [AtomicU64; 2],
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
        copy: [const { AtomicU64::new(0) }; 2],
        parent: AtomicU64::new(0),
        arguments: [const { AtomicU64::new(0) }; 6],
        words: [const { AtomicU64::new(0) }; CLONE_WORDS],
    }
}; 64];

const CLONE_VM: u64 = 0x100;
const CLONE_FILES: u64 = 0x400;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_SETTLS: u64 = 0x8_0000;

/// A call that makes a thread or a process.
pub(crate) fn enter(context: &mut Context) -> bool {
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
        const NO_MEMORY: i64 = -12;
        let file = file::copy();
        let copy = match file {
            Some(_) => Some([0; 2]),
            None => file::private_copy(),
        };
        let Some(copy) = copy else {
            context.rax = NO_MEMORY.cast_unsigned();
            return false;
        };
        pending.file.store(file.unwrap_or(file::NONE), Relaxed);
        for (word, value) in pending.copy.iter().zip(copy) {
            word.store(value, Relaxed);
        }
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
    context.mask = !masks::OURS;
    context.rip = gate::start() + gate::TWICE;
    is_fork
}

/// Such a call is over, in one of the two.
pub(crate) fn after(context: &mut Context) {
    let pending = core::ptr::with_exposed_provenance::<Pending>(context.r15 as usize);
    // SAFETY: one of `PENDING`, which `enter` has set, and the kernel keeps `r15`.
    let pending = unsafe { &*pending };
    let flags = pending.flags.load(Relaxed);
    let result = context.rax.cast_signed();
    context.rip = pending.next.load(Relaxed);
    context.r15 = pending.r15.load(Relaxed);
    context.mask = pending.mask.load(Relaxed);
    context.set_arguments([0, 1, 2, 3, 4, 5].map(|it| pending.arguments[it].load(Relaxed)));
    if flags & CLONE_VM == 0 {
        // The lock is held since `enter`, here and in the child.
        let file = pending.file.load(Relaxed);
        pending.refs.store(0, Relaxed);
        if result == 0 {
            // Of threads that are not here.
            PENDING
                .iter()
                .for_each(|other| other.refs.store(0, Relaxed));
            let old = if file == file::NONE {
                let [copy, _] = &pending.copy;
                zones::leave_file(copy.load(Relaxed));
                file::swap(file)
            } else {
                zones::use_file(file)
            };
            if flags & CLONE_FILES == 0 && old != file::NONE {
                // SAFETY: the parent's file is not needed any more.
                unsafe { sys::call(sys::CLOSE, [old, 0, 0, 0, 0, 0]) };
            }
            threads::this().number.store(sys::thread(), Relaxed);
            LOCK.forget_sent();
            gate::dispatch();
            begin_process();
        } else {
            let copy = pending.copy.each_ref().map(|it| it.load(Relaxed));
            if copy[1] != 0 {
                // SAFETY: `enter` mapped it for the child, which has its own by now.
                unsafe { sys::call(sys::MUNMAP, [copy[0], copy[1], 0, 0, 0, 0]) };
            }
            if file != file::NONE && (result < 0 || flags & CLONE_FILES == 0) {
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
                ticks::forget(thread);
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

/// In a child of `fork`: a file of events of its own.
fn begin_process() {
    sys::begin_process();
    // SAFETY: a child of `fork` has one thread.
    unsafe { events::begin_process(options::most()) };
    if events::is_full() {
        zones::set_closed(false);
    }
}
