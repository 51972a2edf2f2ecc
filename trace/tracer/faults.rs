//! Faults: an access that the program made and that is to be recorded, carried out and left behind.

use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::accesses::record;
use super::context::{Context, IS_FETCH, IS_STORE, Info, TRAP_FLAG};
use super::lock::LOCK;
use super::masks::{OF_INSTRUCTIONS, SIGBUS, SIGSEGV};
use super::sys::{self, PAGE};
use super::threads::{self, Thread};
use super::thunks::{self, Thunk};
use super::wire::{self, Header, Plan};
use super::zones::{self, Zone};
use super::{
    arena, elements, events, patches, points, resume_point, signals, strings, syscall_exit,
};

/// Of a fault in [`sys::try_copy`], under the lock: address, code, error.
static MISSED: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// Handles SIGSEGV and SIGBUS.
///
/// # Safety
///
/// As the kernel calls it.
pub(crate) unsafe extern "C" fn on_fault(signal: i32, info: *mut Info, context: *mut Context) {
    // SAFETY: the kernel passes pointers to both, on this handler's stack, and nobody else has them
    // until it returns.
    let (info, context) = unsafe { (&mut *info, &mut *context) };
    let (at, behind) = sys::places_of_copy();
    if context.rip == at && info.code > 0 {
        // It is us, and the lock is held.
        let code = i64::from(info.code).cast_unsigned();
        for (word, value) in MISSED.iter().zip([info.address, code, context.error]) {
            word.store(value, Relaxed);
        }
        context.rax = 1;
        context.rip = behind;
        return;
    }
    if info.code > 0 && signal == SIGBUS && events::ends_at(info.address) {
        return;
    }
    if LOCK.keeps(info) {
        return;
    }
    LOCK.take();
    resume_point::stop(threads::this(), context);
    let is_ours = info.code > 0
        && signal == SIGSEGV
        && (handle(info, context) || is_of_the_past(info, context));
    if !is_ours && info.code > 0 {
        leave_thunk(info, context);
        end_step(threads::this(), context);
    }
    LOCK.give();
    if !is_ours {
        signals::deliver(signal, info, context);
    }
}

/// Whether the fault is explained by tracing.
fn handle(info: &mut Info, context: &mut Context) -> bool {
    let thread = threads::this();
    let away = patches::leave(info, context);
    let thunk = thunks::instruction_of(context.rip);
    let Some(zone) = zones::find(info.address) else {
        // Released since the recorder looked: now it finds that out.
        if away.is_some_and(|delta| delta != 0 && info.address != 0) {
            return true;
        }
        return match thunk {
            Some(thunk) => crosses(&thunk, info.address, context),
            None => aims_back(info.address, context),
        };
    };
    if !allows(&zone, context.error) {
        return false;
    }
    if away.is_none() && patches::is_patched(context.rip) {
        // Another thread has just done it.
        return true;
    }
    if !zones::is_closed() {
        // Tracing has just been turned off by another thread.
        return true;
    }
    if zones::find(context.rsp).is_some() {
        // Whatever it accesses: a signal, or a call, needs the stack.
        let is_near = context.rsp.abs_diff(info.address) < zones::STACK_BELOW;
        let other = if is_near { info.address } else { context.rsp };
        zones::release_stack(context.rsp, other);
        if zones::find(info.address).is_none() {
            return true;
        }
    }
    if events::is_full() {
        zones::set_closed(false);
        return true;
    }
    events::count(offset_of!(Header, faults), 1);
    if let Some(thunk) = thunk {
        // It has a second operand, in another zone.
        context.rip = thunk.ip;
        record_step(&thunk, info.address, context);
        step(&thunk, info.address, context);
        return true;
    }
    let mut bytes = [0; 16];
    let len = thunks::code_at(context.rip, &mut bytes);
    points::original(context.rip, &mut bytes);
    patches::original(context.rip, &mut bytes);
    let thunk = thunks::of(context.rip, zone.delta, &bytes, len)
        .unwrap_or_else(|| Thunk::unknown(context.rip, zone.delta));
    if context.eflags & TRAP_FLAG != 0 && is_stepping(thread) {
        // Another page of an instruction that is run in place. If it was tried as a thunk before,
        // all is recorded.
        if thunk.plan == Plan::Step as u8 {
            record_step(&thunk, info.address, context);
        }
        step(&thunk, info.address, context);
        return true;
    }
    // Whatever was stepped, a handler of signals came between.
    context.eflags &= !TRAP_FLAG;
    if [Plan::Copy as u8, Plan::Call as u8].contains(&thunk.plan)
        && patches::is_due(context.rip, thunk.faults)
        && !points::are_near(context.rip)
    {
        patches::consider(context.rip, &bytes, len);
    }
    access(&thunk, &zone, info, context)
}

/// Whether the fault may come of a zone that was forgotten while the thread waited for the lock, or
/// was on its way to the alias: the instruction is tried once more, as the program has it.
fn is_of_the_past(info: &Info, context: &mut Context) -> bool {
    const OF_A_PAGE: [i32; 2] = [1, 2];
    let now = zones::forgotten();
    let is_new = threads::this().forgotten.swap(now, Relaxed) != now;
    let may = is_new && OF_A_PAGE.contains(&info.code) && zones::find(info.address).is_none();
    if may
        && let Some(thunk) = thunks::instruction_of(context.rip)
        && context.rip == thunk.code
    {
        context.rip = thunk.ip;
    }
    may
}

/// Whether the program may do in the zone what it tried.
fn allows(zone: &Zone, error: u64) -> bool {
    let needed = match error {
        error if error & IS_FETCH != 0 => sys::PROT_EXEC,
        error if error & IS_STORE != 0 => sys::PROT_WRITE,
        _ => sys::PROT_READ,
    };
    // Memory that may be stored to can be read.
    let has = zone.protection
        | if zone.protection & sys::PROT_WRITE != 0 {
            sys::PROT_READ
        } else {
            0
        };
    has & needed != 0
}

/// A thunk's operand lies in its zone and, below or above that, where the alias does not: the
/// instruction is run in place. False if that does not explain the fault.
fn crosses(thunk: &Thunk, address: u64, context: &mut Context) -> bool {
    let own = address.wrapping_add_signed(-thunk.delta);
    let page = own & !(PAGE - 1);
    let pages = [page.wrapping_sub(PAGE), page, page.wrapping_add(PAGE)];
    let [below, at, above] = pages.map(zones::find);
    let may = match at {
        Some(zone) => allows(&zone, context.error),
        None => (own == page && below.is_some()) || above.is_some(),
    };
    if may {
        context.rip = thunk.ip;
        for page in pages {
            step(thunk, page, context);
        }
    }
    may
}

/// A block operation runs on an alias whose zone is gone by now: its instruction is aimed at what
/// the program knows. False if that does not explain the fault.
fn aims_back(address: u64, context: &mut Context) -> bool {
    let own = arena::aliased(address).filter(|&own| zones::find(own).is_none());
    let Some(own) = own.filter(|_| threads::this().quiet.load(Relaxed) != 0) else {
        return false;
    };
    let mut bytes = [0; 16];
    let len = thunks::code_at(context.rip, &mut bytes);
    let delta = own.wrapping_sub(address).cast_signed();
    let Some(thunk) = thunks::of(context.rip, delta, &bytes, len) else {
        return false;
    };
    if thunk.plan == Plan::Copy as u8 {
        context.rip = thunk.code;
    } else if thunk.plan == Plan::String as u8 {
        for register in [&mut context.rdi, &mut context.rsi] {
            *register = arena::aliased(*register).unwrap_or(*register);
        }
    } else {
        return false;
    }
    true
}

/// The program is told of its own instruction and address, if its fault happened in a thunk.
fn leave_thunk(info: &mut Info, context: &mut Context) {
    patches::leave(info, context);
    if let Some(thunk) = thunks::instruction_of(context.rip) {
        thunk.leave(context);
        let own = info.address.wrapping_add_signed(-thunk.delta);
        if zones::find(info.address).is_none() && zones::find(own).is_some() {
            info.address = own;
        }
    }
}

/// False if the program's instruction faults.
fn access(thunk: &Thunk, zone: &Zone, info: &mut Info, context: &mut Context) -> bool {
    let (plan, address) = (thunk.plan, info.address);
    let result = if plan == Plan::Copy as u8 {
        for access in thunk.accesses() {
            record(access.kind, context.rip, address, u64::from(access.size));
        }
        context.rip = thunk.code;
        Ok(())
    } else if plan == Plan::Call as u8 {
        record(wire::LOAD, context.rip, address, 8);
        events::count(offset_of!(Header, emulated), 1);
        call(thunk, zone, address, context)
    } else if plan == Plan::String as u8 {
        events::count(offset_of!(Header, emulated), 1);
        strings::run(thunk, context)
    } else {
        let accesses = thunk.accesses();
        if plan == Plan::Elements as u8 {
            elements::record_all(thunk, context);
            threads::this().elements.store(context.rip, Relaxed);
        } else if accesses.is_empty() || accesses.iter().any(|it| it.operand != accesses[0].operand)
        {
            record_step(thunk, address, context);
        } else {
            for access in accesses {
                record(access.kind, context.rip, address, u64::from(access.size));
            }
        }
        step(thunk, address, context);
        Ok(())
    };
    if let Err(address) = result {
        let [_, code, error] = [0, 1, 2].map(|it| MISSED[it].load(Relaxed));
        info.address = address;
        info.code = code as i32;
        context.error = error;
    }
    result.is_ok()
}

/// A call through memory; an error is where the program faults.
fn call(thunk: &Thunk, zone: &Zone, address: u64, context: &mut Context) -> Result<(), u64> {
    let mut target = 0_u64;
    let next = context.rip + u64::from(thunk.len);
    let place = context.rsp - 8;
    // SAFETY: the program's instruction reads `address`, of which the alias shows the same memory,
    // and writes the word below its stack pointer; `target` and `next` are ours.
    unsafe {
        let alias = address.wrapping_add_signed(zone.delta);
        if !sys::try_copy((&raw mut target) as u64, alias, 8) {
            return Err(address);
        }
        if !sys::try_copy(place, (&raw const next) as u64, 8) {
            return Err(place);
        }
    }
    context.rsp = place;
    context.rip = target;
    Ok(())
}

fn record_step(thunk: &Thunk, address: u64, context: &Context) {
    let kind = if context.error & IS_STORE != 0 {
        wire::STORE
    } else {
        wire::LOAD
    };
    let size = thunk.accesses().first().map_or(0, |access| access.size);
    record(kind, context.rip, address, u64::from(size));
}

/// Runs the instruction in place, with its page open.
fn step(thunk: &Thunk, address: u64, context: &mut Context) {
    events::count(offset_of!(Header, stepped), 1);
    let thread = threads::this();
    if patches::is_patched(context.rip) {
        patches::without(context.rip, || ());
    }
    let page = address & !(PAGE - 1);
    if !is_stepping(thread) {
        // A handler would find the page open, and might never come back.
        thread.mask.store(context.mask, Relaxed);
        context.mask |= !OF_INSTRUCTIONS;
    }
    open(thread, page);
    // An operand may go on in the next page.
    let size = thunk.accesses().first().map_or(0, |access| access.size);
    let last = (address + u64::from(size).max(1) - 1) & !(PAGE - 1);
    if last != page && zones::find(last).is_some() {
        open(thread, last);
    }
    context.eflags |= TRAP_FLAG;
}

/// Whether an instruction of the thread is run in place.
fn is_stepping(thread: &Thread) -> bool {
    thread.open.iter().any(|slot| slot.load(Relaxed) != 0)
}

/// The instruction that was run in place is done, or its fault is the program's.
fn end_step(thread: &Thread, context: &mut Context) -> bool {
    let was = is_stepping(thread);
    if was {
        thread.elements.store(0, Relaxed);
        for slot in &thread.open {
            let page = slot.swap(0, Relaxed);
            if page != 0 {
                zones::close_page(page);
            }
        }
        context.eflags &= !TRAP_FLAG;
        context.mask = thread.mask.load(Relaxed);
    }
    was
}

fn open(thread: &Thread, page: u64) {
    let slot = { thread.open.iter() }
        .find(|slot| slot.load(Relaxed) == page)
        .or_else(|| thread.open.iter().find(|slot| slot.load(Relaxed) == 0));
    match slot {
        Some(slot) => slot.store(page, Relaxed),
        // A gather over many pages: those before are closed, and the instruction goes on from the
        // elements that it has.
        None => {
            for slot in &thread.open {
                zones::close_page(slot.swap(0, Relaxed));
            }
            thread.open[0].store(page, Relaxed);
        }
    }
    zones::open_page(page);
}

/// Handles SIGTRAP: a stepped instruction is done, or a call through the gate, or a breakpoint.
///
/// # Safety
///
/// As the kernel calls it.
pub(crate) unsafe extern "C" fn on_trap(signal: i32, info: *mut Info, context: *mut Context) {
    // SAFETY: the kernel passes pointers to both, on this handler's stack, and nobody else has them
    // until it returns.
    let (info, context) = unsafe { (&mut *info, &mut *context) };
    if syscall_exit::after(context) || LOCK.keeps(info) {
        return;
    }
    LOCK.take();
    let thread = threads::this();
    let mut is_ours = resume_point::went_on(thread, context)
        || points::hit(info, context)
        || patches::trapped(context);
    if !is_ours && info.code > 0 {
        // Processors may trap before all elements are done.
        let is_part = is_stepping(thread) && thread.elements.load(Relaxed) == context.rip;
        is_ours = is_part || end_step(thread, context);
    }
    LOCK.give();
    if !is_ours {
        signals::deliver(signal, info, context);
    }
}
