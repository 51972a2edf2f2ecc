//! What each function and span touches, in a vector shadow memory (D. Jeon et al., *Skadu*, 2013).
//!
//! * [`fast_path`]: accesses that add nothing. [`shadow`]: all others.
//! * This module: threads' stacks of open regions. A call of a function that is open already opens
//!   nothing, unless each level of recursion is asked for.
//! * [`tree`]: regions by call path, with sums over their invocations. [`spans`]: regions that are
//!   entered more than once. [`stack_ranges`]: where threads' stacks are.
//!
//! **Track invariant**: a track, from its [`State`] to its links, stays mapped as long as the
//! process has its capture. Only the thread that has set its bit in [`IN_USE`] uses it, and that
//! within [`with_state`], which turns away signal handlers that come in meanwhile. Open regions,
//! calls and links below their counts are written, and name regions that were made.

mod events;
pub(crate) mod fast_path;
mod shadow;
mod spans;
mod stack_ranges;
#[cfg(test)]
mod tests;
mod tree;

use core::sync::atomic::{AtomicU64, Ordering, compiler_fence};

use super::capture::{at, header};
use super::clock::{self, QUOTA};
use super::local::{Local, local};
use super::track::State;
use super::{recording, sys, threads};
use crate::capture_format::{Open, layout};
use events::Event;

/// A bit for each track that a thread has.
static IN_USE: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
const _: () = assert!(layout::MAX_TRACKS == 128);

/// Where calls are in a track.
const CALLS: u64 = layout::OPENS_END;
const MAX_CALLS: u64 = (64 << 20) / size_of::<Call>() as u64;
const MAX_OPENS: u64 = (layout::OPENS_END - layout::OPENS) / size_of::<Open>() as u64;
/// Where a track's [links](tree) begin.
const LINKS: u64 = CALLS + (64 << 20);

/// A function that has not returned, a span or a named region that was entered.
#[derive(Clone, Copy)]
#[repr(C)]
struct Call {
    /// The stack pointer.
    stack: u64,
    /// What leads to its region from that of the caller.
    key: u64,
    /// A span's number; 0 for a function.
    span: u64,
    /// Region in which it was called.
    before: u32,
    kind: CallKind,
    /// Whether it opened a region.
    opened: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum CallKind {
    Function,
    Named,
    Span,
}

/// Forgets tracks and spans, which are of another capture.
pub(crate) fn forget() {
    for word in &IN_USE {
        word.store(0, Ordering::Relaxed);
    }
    spans::forget();
    // SAFETY: the block is this thread's.
    unsafe { ((*local()).track, (*local()).trackless) = (core::ptr::null_mut(), false) };
}

/// Prepares a process, or a child of `fork`, whose threads begin with no regions.
pub(crate) fn begin(over: bool) {
    forget();
    if recording::options().regions == 0 {
        return;
    }
    events::begin();
    if !shadow::begin(over) {
        sys::say(b"300 GiB of address space are needed (see `ulimit -v`): no regions are recorded");
        // SAFETY: the block is this thread's.
        unsafe { (*local()).trackless = true };
    }
}

/// Libraries were closed: what was theirs may be of the heap.
pub(crate) fn modules_changed() {
    shadow::EPOCH.fetch_add(1, Ordering::Release);
}

fn state_of(number: u64) -> *mut State {
    at(layout::TRACKS + number * layout::TRACK_ROOM)
}

/// The open regions of a thread, the thread itself first.
///
/// # Safety
///
/// `state` is the calling thread's.
unsafe fn opens<'s>(state: *const State) -> &'s [Open] {
    // SAFETY: `state` is this thread's (`# Safety`). By the track invariant `depth` opens are
    // written.
    unsafe {
        let first = state.byte_add(layout::OPENS as usize).cast();
        core::slice::from_raw_parts(first, (*state).track.depth as usize)
    }
}

/// # Safety
///
/// As for [`opens`]; nobody else has a reference to one.
unsafe fn opens_mut<'s>(state: *mut State) -> &'s mut [Open] {
    // SAFETY: `state` is this thread's, which is at work (`# Safety`). By the track
    // invariant the track is mapped and nobody else uses it.
    unsafe {
        let first = state.byte_add(layout::OPENS as usize).cast();
        core::slice::from_raw_parts_mut(first, (*state).track.depth as usize)
    }
}

/// A place for a call.
///
/// # Safety
///
/// `index` is below [`MAX_CALLS`].
unsafe fn call(state: *mut State, index: u64) -> *mut Call {
    // SAFETY: `state` is this thread's, which is at work (`# Safety`). By the track
    // invariant the track is mapped and nobody else uses it.
    unsafe {
        state
            .byte_add(CALLS as usize)
            .cast::<Call>()
            .add(index as usize)
    }
}

/// Runs `work` with the thread's state unless this thread is at work already, below on its stack.
#[inline(always)]
fn with_state<R>(work: impl FnOnce(*mut Local, *mut State) -> R) -> Option<R> {
    let local = local();
    let mark = 0_u8;
    let here = (&raw const mark) as u64;
    // SAFETY: the block and the state are this thread's.
    unsafe {
        let mut state = (*local).track;
        if state.is_null() {
            state = begin_thread(local)?;
        }
        // A handler of signals; any other has left `work` by `siglongjmp`.
        if (*state).working != 0 && (here < (*state).working || sys::is_on_signal_stack()) {
            return None;
        }
        (*state).working = here;
        compiler_fence(Ordering::SeqCst);
        let result = work(local, state);
        compiler_fence(Ordering::SeqCst);
        (*state).working = 0;
        Some(result)
    }
}

/// Gives the thread a track if regions are recorded and one is free.
///
/// # Safety
///
/// `local` is the calling thread's.
#[cold]
unsafe fn begin_thread(local: *mut Local) -> Option<*mut State> {
    // SAFETY: `local` is this thread's (`# Safety`), and the capture is mapped, as `active` says.
    // The bit in `IN_USE` says that the track is nobody else's, and marked as busy the thread
    // records nothing.
    unsafe {
        if (*local).trackless || !recording::active() || recording::options().regions == 0 {
            return None;
        }
        if (*local).busy {
            return None;
        }
        (*local).busy = true;
        if (*local).thread == 0 {
            threads::give_number(local);
        }
        let state = take_track();
        if state.is_null() {
            (*local).trackless = true;
            AtomicU64::from_ptr(&raw mut (*header()).untracked).fetch_add(1, Ordering::Relaxed);
        } else {
            ((*state).stack, (*state).stack_len) = stack_ranges::own();
            shadow::EPOCH.fetch_add(1, Ordering::Release);
            shadow::forget_lines(state);
            (
                (*state).working,
                (*state).calls,
                (*state).missed,
                (*state).spans,
            ) = (0, 0, 0, 0);
            if (*state).root == 0 {
                (*state).root = tree::root();
            }
            (*state).node = (*state).root;
            (*state).track.depth = 0;
            open(state, (*state).root, 0);
            (*local).track = state;
        }
        (*local).busy = false;
        (!state.is_null()).then_some(state)
    }
}

/// A track that no thread has, or null.
///
/// # Safety
///
/// The capture is mapped.
unsafe fn take_track() -> *mut State {
    for number in 0..layout::MAX_TRACKS {
        let (word, bit) = (&IN_USE[number as usize / 64], 1 << (number % 64));
        if word.fetch_or(bit, Ordering::AcqRel) & bit == 0 {
            // SAFETY: the capture is mapped (`# Safety`), and the bit says that the track is ours.
            unsafe {
                let tracks = AtomicU64::from_ptr(&raw mut (*header()).tracks);
                tracks.fetch_max(number + 1, Ordering::Relaxed);
                (*state_of(number)).number = number as u32 + 1;
            }
            return state_of(number);
        }
    }
    core::ptr::null_mut()
}

/// Ends all regions of a thread, which opens no others.
///
/// # Safety
///
/// `local` is the calling thread's.
pub(crate) unsafe fn end_thread(local: *mut Local) {
    // SAFETY: `local` is this thread's, so by the track invariant its track is, until the bit is
    // cleared.
    unsafe {
        let state = core::mem::replace(&mut (*local).track, core::ptr::null_mut());
        (*local).trackless = true;
        if state.is_null() {
            return;
        }
        for depth in (0..(*state).track.depth as usize).rev() {
            close(state, depth, (*local).now);
        }
        (*state).stack_len = 0;
        let number = u64::from((*state).number) - 1;
        IN_USE[number as usize / 64].fetch_and(!(1 << (number % 64)), Ordering::Release);
        shadow::EPOCH.fetch_add(1, Ordering::Release);
    }
}

/// # Safety
///
/// `state` is the calling thread's, which is at work.
unsafe fn open(state: *mut State, region: u32, span: u64) {
    // SAFETY: `state` is this thread's (`# Safety`). Callers look at the depth, or it is 0, so
    // there is room for one more; `region` was made.
    unsafe {
        let depth = (*state).track.depth;
        let place: *mut Open = state.byte_add(layout::OPENS as usize).cast();
        place.add(depth as usize).write(Open {
            before: (*state).track,
            touched: [0; 3],
            reused: 0,
            grown: 0,
            version: u32::MAX,
            region,
            span,
        });
        (*tree::region(region)).active += 1;
        (*state).spans += u64::from(span != 0);
        // The process may be killed at any moment.
        compiler_fence(Ordering::SeqCst);
        (*state).track.depth = depth + 1;
        (*state).current = u32::MAX;
    }
}

/// Ends an open region at the time `now`. Those further in stay open.
///
/// # Safety
///
/// As for [`open`]; so many regions are open.
unsafe fn close(state: *mut State, index: usize, now: u64) {
    // SAFETY: `state` is this thread's, which is at work (`# Safety`). By the track
    // invariant the track is mapped and nobody else uses it.
    unsafe {
        let opens = opens_mut(state);
        // There are no such regions in a child that a handler of signals has forked.
        let Some((before, [ending, further @ ..])) = opens.split_at_mut_checked(index) else {
            return;
        };
        let own = ending.touched;
        for other in &*further {
            add_to(&mut ending.touched, other.touched);
        }
        (*tree::region(ending.region)).active -= 1;
        if ending.span == 0 {
            tree::add(ending, &(*state).track, now);
        } else {
            (*state).spans -= 1;
            spans::leave(ending, &(*state).track);
        }
        if let Some(caller) = before.last_mut() {
            add_to(&mut caller.touched, own);
        }
        opens.copy_within(index + 1.., index);
        let depth = opens.len() - 1;
        (*state).track.depth = depth as u64;
        (*state).current = opens[..depth].last().map_or(u32::MAX, |last| last.version);
    }
}

fn add_to(sums: &mut [i64; 3], counts: [i64; 3]) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum += count;
    }
}

/// Gives the open regions that have none a version: none has touched anything so far.
///
/// # Safety
///
/// As for [`open`].
#[cold]
#[inline(never)]
unsafe fn give_version(state: *mut State) {
    // SAFETY: `state` is this thread's, which is at work (`# Safety`). By the track
    // invariant the track is mapped and nobody else uses it.
    unsafe {
        if (*state).version >= u32::MAX - 1 {
            shadow::renumber(state);
        }
        (*state).version += 1;
        let version = (*state).version;
        for open in opens_mut(state).iter_mut().rev() {
            if open.version != u32::MAX {
                break;
            }
            open.version = version;
        }
        (*state).current = version;
    }
}

/// Adds what open regions have touched since the last time to their growth.
///
/// # Safety
///
/// As for [`open`].
unsafe fn grow(state: *mut State, now: u64) {
    // SAFETY: `state` is this thread's, which is at work (`# Safety`). By the track
    // invariant the track is mapped and nobody else uses it.
    unsafe {
        let mut sum = 0;
        for open in opens_mut(state).iter_mut().rev() {
            sum += open.touched[0];
            let footprint = sum.cast_unsigned();
            tree::grow(open.region, footprint.wrapping_sub(open.grown), now);
            open.grown = footprint;
        }
    }
}

/// Begins a call.
///
/// # Safety
///
/// As for [`open`].
unsafe fn enter(state: *mut State, kind: CallKind, key: u64, stack: u64, span: u64) {
    // SAFETY: `state` is this thread's, which is at work (`# Safety`); neither calls nor opens are
    // at their limit, so there is room for one more of each.
    unsafe {
        drop_dead(state, stack, kind == CallKind::Function);
        if (*state).calls == MAX_CALLS || (*state).track.depth == MAX_OPENS {
            (*state).missed += 1;
            return;
        }
        let before = (*state).node;
        let (node, opened) = tree::find(state, before, kind, key);
        call(state, (*state).calls).write(Call {
            stack,
            key,
            span,
            before,
            kind,
            opened: opened != 0,
        });
        (*state).calls += 1;
        (*state).node = node;
        if opened != 0 {
            open(state, opened, span);
        }
    }
}

/// Ends the innermost call of this kind that is alive.
///
/// # Safety
///
/// As for [`open`].
unsafe fn leave(state: *mut State, local: *mut Local, kind: CallKind, stack: u64) {
    // SAFETY: `state` is this thread's, which is at work (`# Safety`). By the track
    // invariant the track is mapped and nobody else uses it.
    unsafe {
        if (*state).missed > 0 {
            (*state).missed -= 1;
            return;
        }
        let mut index = (*state).calls;
        while index > 0 {
            index -= 1;
            let it = *call(state, index);
            if it.kind == kind {
                remove(state, index, (*local).now);
                // A function below the stack pointer has been left by `longjmp`.
                if kind != CallKind::Function || it.stack >= stack {
                    return;
                }
            }
        }
    }
}

/// Ends a call. What was called there and has not ended was called from its caller: functions by
/// which a program enters a span return while it is open.
///
/// # Safety
///
/// As for [`open`]; there are more calls than `index`.
unsafe fn remove(state: *mut State, index: u64, now: u64) {
    // SAFETY: `state` is this thread's, which is at work (`# Safety`). By the track
    // invariant the track is mapped and nobody else uses it.
    unsafe {
        let ending = *call(state, index);
        let calls = (*state).calls;
        if index + 1 == calls {
            if ending.opened {
                close(state, ((*state).track.depth as usize).wrapping_sub(1), now);
            }
            ((*state).calls, (*state).node) = (index, ending.before);
            return;
        }
        let within = (index + 1..calls)
            .filter(|&at| (*call(state, at)).opened)
            .count();
        let depth = ((*state).track.depth as usize).wrapping_sub(within);
        if ending.opened {
            close(state, depth.wrapping_sub(1), now);
        }
        let mut node = ending.before;
        let mut place = depth.wrapping_sub(usize::from(ending.opened));
        for at in index + 1..calls {
            let mut moved = *call(state, at);
            moved.before = node;
            node = tree::next(state, node, moved.kind, moved.key);
            if moved.opened
                && let Some(open) = opens_mut(state).get_mut(place)
            {
                let before = core::mem::replace(&mut open.region, node);
                (*tree::region(before)).active -= 1;
                (*tree::region(node)).active += 1;
                place += 1;
                if moved.kind == CallKind::Span {
                    spans::moved(moved.span, before, node);
                }
            }
            call(state, at - 1).write(moved);
        }
        (*state).calls = calls - 1;
        (*state).node = node;
    }
}

/// Ends calls of functions whose frames are gone: the program has left them by `longjmp`. They lie
/// below the stack pointer, or `at` it.
///
/// # Safety
///
/// As for [`open`].
#[inline(always)]
unsafe fn drop_dead(state: *mut State, stack: u64, at: bool) {
    // SAFETY: `state` is this thread's, which is at work (`# Safety`). By the track
    // invariant the track is mapped and nobody else uses it.
    unsafe {
        for index in (0..(*state).calls).rev() {
            let last = *call(state, index);
            let is_alive = last.stack > stack || last.stack == stack && !at;
            if is_alive || last.kind != CallKind::Function {
                return;
            }
            // Another stack: a handler of signals, or a coroutine.
            if stack.wrapping_sub((*state).stack) >= (*state).stack_len {
                return;
            }
            remove(state, index, (*local()).now);
        }
    }
}

macro_rules! accesses {
    ($name:ident $write:literal) => {
        /// An access of any size that may add to a footprint.
        #[cold]
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name(address: u64, size: u64) {
            if recording::options().regions == 0 && recording::active() {
                return super::fast_path::access::<$write>(address, size);
            }
            touch::<$write>(address, size);
        }
    };
}
accesses!(ccscope_region_load false);
accesses!(ccscope_region_store true);

/// One access, of any size, that the program makes next.
pub(crate) fn touch<const WRITE: bool>(address: u64, size: u64) {
    with_state(|local, state| {
        // SAFETY: both are this thread's, which is at work.
        unsafe {
            if !shadow::touch(state, address, size) {
                return fast_path::elsewhere::<WRITE>(local);
            }
            let event = if WRITE { Event::Store } else { Event::Load };
            events::put(local, event, address, size);
            fast_path::count::<WRITE>(local, state);
            if (*local).now > (*local).limit {
                (*local).limit = clock::sync(local) + QUOTA;
                grow(state, (*local).now);
            }
        }
    });
}

/// Counts an allocation.
pub(crate) fn allocated(size: u64) {
    // SAFETY: the state is this thread's, and counts are its own.
    unsafe {
        let local = local();
        let state = (*local).track;
        if !state.is_null() {
            events::put(local, Event::Allocation, 0, size);
            (*state).track.allocations += 1;
            (*state).track.allocated += size;
        }
    }
}

/// A function begins: called with an address within it and its stack pointer.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn ccscope_function_begins(address: u64, stack: u64) {
    with_state(|local, state| {
        events::put(local, Event::Begins, address, stack);
        // SAFETY: the state is this thread's, which is at work.
        unsafe { enter(state, CallKind::Function, address, stack, 0) };
    });
}

/// The function ends that the innermost call without an end is of.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn ccscope_function_ends(stack: u64) {
    with_state(|local, state| {
        events::put(local, Event::Ends, 0, stack);
        // SAFETY: the state is this thread's, which is at work.
        unsafe { leave(state, local, CallKind::Function, stack) };
    });
}

macro_rules! callbacks {
    ($($(#[$doc:meta])* $name:ident $to:ident $($line:literal)*;)*) => {$(
        $(#[$doc])*
        #[cfg(not(test))]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub(crate) extern "C" fn $name() {
            core::arch::naked_asm!($($line,)* "jmp {}", sym $to)
        }
    )*};
}

callbacks! {
    /// At the entry of a function, by LLVM.
    __tsan_func_entry ccscope_function_begins "mov rdi, [rsp]" "lea rsi, [rsp + 8]";
    /// Before a function returns.
    __tsan_func_exit ccscope_function_ends "lea rdi, [rsp + 8]";
    /// At the entry of a function, by compilers of C: with the address of its first byte.
    __cyg_profile_func_enter ccscope_function_begins "inc rdi" "lea rsi, [rsp + 8]";
    /// Before a function returns.
    __cyg_profile_func_exit ccscope_function_ends "lea rdi, [rsp + 8]";
}

/// A region with a name begins.
///
/// # Safety
///
/// `name` is `len` bytes long, and stays as it is as long as the process runs.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn ccscope_region_enter(name: *const u8, len: usize) {
    let mark = 0_u8;
    let here = (&raw const mark) as u64;
    with_state(|local, state| {
        // SAFETY: the state is this thread's, which is at work; the name is `len` bytes long and
        // stays (`# Safety`).
        unsafe {
            let key = tree::name(local, state, name, len);
            events::put(local, Event::Enter, key & 0xFFFF_FFFF, here);
            enter(state, CallKind::Named, key, here, 0);
        }
    });
}

/// The innermost region with a name ends.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn ccscope_region_exit() {
    let mark = 0_u8;
    let here = (&raw const mark) as u64;
    with_state(|local, state| {
        events::put(local, Event::Exit, 0, here);
        // SAFETY: the state is this thread's.
        unsafe { leave(state, local, CallKind::Named, here) };
    });
}
