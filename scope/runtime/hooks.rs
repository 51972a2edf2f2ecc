//! The functions that this library takes over from libc: the `malloc` family, `mmap`, threads.
//!
//! Each calls the one that would have been called without us, and records the result in `chunks`.
//! While a thread is in here its `busy` flag is set, so that what those functions call among
//! themselves is passed on unseen.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use super::call_tree::{self, UNKNOWN};
use super::capture::{LOCK, header};
use super::chunks;
use super::local::{Local, local};
use super::real::{Real, early};
use super::stack_cache::{MAX_FRAMES, StackCache};
use super::sums::{Allocation, Detached};
use super::unwind::{SharedFrames, Stack};
use super::{modules, recording, regions, sampling, seats, sys, threads, unwind};

macro_rules! real {
    ($($constant:ident $name:literal fn($($argument:ty),*) -> $result:ty;)*) => {
        /// Looks up all functions, once and for all at the start. Later `dlsym` could wait for a
        /// lock of the dynamic linker that is held until our caller goes on, and it would forget
        /// what the program's `dlerror` is to tell.
        pub(crate) fn find_all() {
            $($constant::REAL.address();)*
            super::copies::find_all();
            super::programs::find_all();
            compare_libraries();
        }
        /// Finds out whether sizes can be asked for; after functions have been found.
        pub(crate) fn compare_libraries() {
            // SAFETY: `dladdr` fills in what it finds.
            let library = |function: &Real| unsafe {
                let mut symbol = core::mem::zeroed::<sys::Symbol>();
                sys::dladdr(function.address(), &raw mut symbol);
                symbol.base
            };
            let tells = library(&real_usable_size::REAL) == library(&real_malloc::REAL);
            TRUSTS_USABLE_SIZE.store(tells, Ordering::Relaxed);
        }
        /// Sets the function of this name, if it is one of these, for a library that came late.
        pub(crate) fn set_real(name: &core::ffi::CStr, address: u64) {
            let found = core::ptr::with_exposed_provenance_mut(address as usize);
            for real in [$(&$constant::REAL),*] {
                if real.name == name {
                    real.address.store(found, Ordering::Release);
                }
            }
        }
        $(
        /// The function that would have been called without us.
        ///
        /// # Safety
        ///
        /// Its own.
        #[allow(non_snake_case, reason = "called like the constant that it stands for")]
        #[allow(clippy::allow_attributes, reason = "not every name needs it")]
        pub(crate) mod $constant {
            use super::*;
            pub(crate) static REAL: Real = Real::new($name, true);
            pub(crate) type Function = unsafe extern "C" fn($($argument),*) -> $result;
            #[expect(clippy::disallowed_methods, reason = "what `dlsym` gives has no type")]
            pub(crate) fn get() -> Option<Function> {
                let address = REAL.address();
                // SAFETY: the function of this name has this type, and null is `None`.
                unsafe { core::mem::transmute::<*mut c_void, Option<Function>>(address) }
            }
        }
    )*};
}

real! {
    real_malloc c"malloc" fn(usize) -> *mut c_void;
    real_calloc c"calloc" fn(usize, usize) -> *mut c_void;
    real_realloc c"realloc" fn(*mut c_void, usize) -> *mut c_void;
    real_free c"free" fn(*mut c_void) -> ();
    real_memalign c"memalign" fn(usize, usize) -> *mut c_void;
    real_aligned_alloc c"aligned_alloc" fn(usize, usize) -> *mut c_void;
    real_posix_memalign c"posix_memalign" fn(*mut *mut c_void, usize, usize) -> c_int;
    real_usable_size c"malloc_usable_size" fn(*mut c_void) -> usize;
    real_mmap c"mmap" fn(*mut c_void, usize, c_int, c_int, c_int, i64) -> *mut c_void;
    real_munmap c"munmap" fn(*mut c_void, usize) -> c_int;
    real_pthread_create c"pthread_create"
        fn(*mut c_void, *const c_void, *const c_void, *mut c_void) -> c_int;
    real_thrd_create c"thrd_create" fn(*mut c_void, *const c_void, *mut c_void) -> c_int;
    real_mlockall c"mlockall" fn(c_int) -> c_int;
    real_fork c"_Fork" fn() -> c_int;
    real_dlclose c"dlclose" fn(*mut c_void) -> c_int;
}

/// Marks the thread as busy; `None` if it was, or if this process is not recorded.
#[inline(always)]
fn enter() -> Option<*mut Local> {
    let local = local();
    // SAFETY: the block is this thread's.
    unsafe {
        if (*local).busy {
            return None;
        }
        (*local).busy = true;
        if seats::take(local) {
            if (*local).epoch != recording::epoch() {
                threads::give_number(local);
            }
            return Some(local);
        }
        (*local).busy = false;
        None
    }
}

#[inline(always)]
fn leave(local: *mut Local) {
    seats::give(local);
    // SAFETY: the block is this thread's.
    unsafe { (*local).busy = false }
}

/// Bytes that the allocator gave for a chunk, or 0 if it does not tell.
pub(crate) type Usable = fn(*mut c_void) -> u64;

/// Whether `malloc_usable_size` is of the library that `malloc` is of. An allocator without it
/// would have its chunks looked at by libc's, which takes what lies before them for sizes.
static TRUSTS_USABLE_SIZE: AtomicBool = AtomicBool::new(false);

fn usable(address: *mut c_void) -> u64 {
    if !TRUSTS_USABLE_SIZE.load(Ordering::Relaxed) {
        return 0;
    }
    // SAFETY: the allocator has given this address.
    real_usable_size::get().map_or(0, |function| unsafe { function(address) as u64 })
}

/// Runs an allocating function and records what it gives.
#[inline(always)]
pub(crate) fn allocate(
    size: usize,
    usable: Usable,
    work: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    if sampling::passes(size) {
        return work();
    }
    allocate_seen(size, usable, work)
}

// Not inlined, so that what passes saves no registers.
#[inline(never)]
fn allocate_seen(size: usize, usable: Usable, work: impl FnOnce() -> *mut c_void) -> *mut c_void {
    if !sampling::takes(size) {
        return work();
    }
    let Some(local) = enter() else { return work() };
    let address = work();
    if !address.is_null() {
        record(local, address, size, usable(address), None);
    }
    leave(local);
    address
}

/// Takes a chunk out of the records and runs the function that frees it: in this order, since its
/// memory can be another's from then on.
///
/// # Safety
///
/// `work` frees `old`, which `usable` may be asked of, and nobody uses it any more.
#[inline(always)]
pub(crate) unsafe fn release(old: *mut c_void, usable: Usable, work: impl FnOnce()) {
    if sampling::is_on() && !sampling::may_have(old as u64) {
        return work();
    }
    // SAFETY: all that it asks for is asked of callers (`# Safety`).
    unsafe { release_seen(old, usable, work) };
}

/// # Safety
///
/// As for [`release`].
#[inline(never)]
unsafe fn release_seen(old: *mut c_void, usable: Usable, work: impl FnOnce()) {
    let Some(local) = enter() else { return work() };
    // SAFETY: nobody uses the chunk (`# Safety`); `enter` has marked the thread as busy, and said
    // that the capture is mapped.
    unsafe { chunks::freed(local, old as u64, usable(old)) };
    work();
    leave(local);
}

/// Runs a function that resizes a chunk, perhaps elsewhere.
///
/// # Safety
///
/// `work` resizes `old`, which `usable` may be asked of, and nobody else uses it meanwhile.
#[inline(always)]
pub(crate) unsafe fn resize(
    old: *mut c_void,
    size: usize,
    usable: Usable,
    work: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    let passes = sampling::passes(size);
    if passes && !sampling::may_have(old as u64) {
        return work();
    }
    // SAFETY: all that they ask for is asked of callers (`# Safety`).
    unsafe {
        if sampling::is_on() {
            resize_sampled(old, size, passes, usable, work)
        } else {
            resize_seen(old, size, usable, work)
        }
    }
}

/// # Safety
///
/// As for [`resize`].
#[inline(never)]
unsafe fn resize_seen(
    old: *mut c_void,
    size: usize,
    usable: Usable,
    work: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    let Some(local) = enter() else { return work() };
    // SAFETY: nobody else uses the chunk (`# Safety`), so nobody accesses it until `work` has run.
    // `enter` has marked the thread as busy, and said that the capture is mapped.
    unsafe {
        let before = chunks::detached(old as u64, usable(old));
        let new = work();
        if !new.is_null() {
            record(local, new, size, usable(new), before);
        } else if let Some(before) = before {
            if size == 0 {
                chunks::gone(local, &before);
            } else {
                chunks::attach(&before);
            }
        }
        leave(local);
        new
    }
}

/// The same if some chunks are not recorded: one is freed, and another allocated.
///
/// # Safety
///
/// As for [`resize`].
#[inline(never)]
unsafe fn resize_sampled(
    old: *mut c_void,
    size: usize,
    passes: bool,
    usable: Usable,
    work: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    let was_seen = sampling::may_have(old as u64);
    let is_left_out = passes || !sampling::takes(size);
    if is_left_out && !was_seen {
        return work();
    }
    let Some(local) = enter() else { return work() };
    // SAFETY: as in `resize`.
    unsafe {
        let before = was_seen
            .then(|| chunks::detached(old as u64, usable(old)))
            .flatten();
        let new = work();
        if let Some(before) = before {
            if new.is_null() && size != 0 {
                chunks::attach(&before);
            } else {
                sampling::remove(old as u64);
                chunks::gone(local, &before);
            }
        }
        if !new.is_null() && !is_left_out {
            record(local, new, size, usable(new), None);
        }
        leave(local);
        new
    }
}

#[inline(always)]
fn record(
    local: *mut Local,
    address: *mut c_void,
    size: usize,
    usable: u64,
    from: Option<Detached>,
) {
    // SAFETY: the thread is marked as busy, so nothing else uses its room for frames; it is
    // recorded; the memory is new.
    unsafe {
        let options = recording::options();
        if options.sample != 0 {
            sampling::add(address as u64);
        }
        if options.regions > 0 {
            regions::allocated(size as u64);
        }
        let mut new = Allocation {
            start: address as u64,
            size: size as u64,
            usable: usable.max(size as u64),
            site: UNKNOWN,
            stack: &[],
            kept: SharedFrames::default(),
            nodes: None,
        };
        // Without sites nobody asks for the stack.
        if !options.stacks || !options.sites {
            chunks::allocated(local, &new, from);
            return;
        }
        let Some(StackCache {
            memo,
            frames,
            nodes,
        }) = call_tree::cache(local)
        else {
            record_walked(local, &new, from);
            return;
        };
        match unwind::stack(frames, Some(memo), (*local).stack, modules::note) {
            Stack::Known(site) => {
                new.site = site;
                chunks::allocated(local, &new, from);
            }
            Stack::Walked {
                len, kept, note, ..
            } => {
                (new.site, new.stack, new.kept) = (0, &frames[..len], kept);
                new.nodes = Some(nodes);
                let site = chunks::allocated(local, &new, from);
                if let Some(note) = note {
                    *note = site;
                }
            }
        }
    }
}

/// The same without a room for stacks.
///
/// # Safety
///
/// As for [`chunks::allocated`].
#[cold]
#[inline(never)]
unsafe fn record_walked(local: *mut Local, new: &Allocation<'_>, from: Option<Detached>) {
    let mut frames = [0; MAX_FRAMES];
    // SAFETY: the block is this thread's, and has the thread's stack, or zeros.
    let stack = unsafe { unwind::stack(&mut frames, None, (*local).stack, modules::note) };
    if let Stack::Walked { len, .. } = stack {
        let (site, stack) = (0, &frames[..len]);
        // SAFETY: the thread is busy, the capture mapped, and the bytes are the new chunk's (`#
        // Safety`).
        unsafe {
            chunks::allocated(
                local,
                &Allocation {
                    site,
                    stack,
                    ..*new
                },
                from,
            )
        };
    }
}

fn out_of_memory() -> *mut c_void {
    const ENOMEM: c_int = 12;
    // SAFETY: the address of this thread's `errno`.
    unsafe { *sys::__errno_location() = ENOMEM };
    core::ptr::null_mut()
}

/// `malloc`
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn malloc(size: usize) -> *mut c_void {
    let Some(real) = real_malloc::get() else {
        return early::take(size);
    };
    // SAFETY: any size may be asked for.
    allocate(size, usable, move || unsafe { real(size) })
}

/// `calloc`
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let local = local();
    // SAFETY: the block is this thread's. `dlsym` calls `calloc`, and must not look it up again.
    let looked_up = unsafe { core::mem::replace(&mut (*local).resolving, true) };
    let real = if looked_up && real_calloc::REAL.address.load(Ordering::Acquire).is_null() {
        None
    } else {
        real_calloc::get()
    };
    // SAFETY: the block is this thread's.
    unsafe { (*local).resolving = looked_up };
    let Some(real) = real else {
        return early::take(count.saturating_mul(size));
    };
    // SAFETY: any size may be asked for.
    allocate(count.wrapping_mul(size), usable, move || unsafe {
        real(count, size)
    })
}

/// `realloc`
///
/// # Safety
///
/// As for `realloc`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    if old.is_null() {
        return malloc(size);
    }
    if early::owns(old) {
        return moved_out(old, size);
    }
    let Some(real) = real_realloc::get() else {
        return out_of_memory();
    };
    // SAFETY: `old` is a chunk that only the caller uses, as `realloc` demands (`# Safety`).
    unsafe { resize(old, size, usable, move || real(old, size)) }
}

/// Replaces a chunk of `early` by one of the allocator.
#[cold]
#[inline(never)]
fn moved_out(old: *mut c_void, size: usize) -> *mut c_void {
    let new = malloc(size);
    if !new.is_null() {
        // SAFETY: both have so many bytes.
        unsafe {
            let len = size.min(early::size(old));
            new.cast::<u8>().copy_from(old.cast(), len);
        };
    }
    new
}

/// `reallocarray`
///
/// # Safety
///
/// As for `realloc`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn reallocarray(
    old: *mut c_void,
    count: usize,
    size: usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: `old` is null or a chunk that only the caller uses (`# Safety`).
        Some(bytes) => unsafe { realloc(old, bytes) },
        None => out_of_memory(),
    }
}

/// `free`
///
/// # Safety
///
/// As for `free`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn free(old: *mut c_void) {
    if old.is_null() || early::owns(old) {
        return;
    }
    let Some(real) = real_free::get() else { return };
    // SAFETY: `old` is a chunk that nobody uses any more, as `free` demands (`# Safety`).
    unsafe { release(old, usable, move || real(old)) };
}

/// `memalign`
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    let Some(real) = real_memalign::get() else {
        return out_of_memory();
    };
    // SAFETY: any numbers may be passed.
    allocate(size, usable, move || unsafe { real(alignment, size) })
}

/// `aligned_alloc`
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    let Some(real) = real_aligned_alloc::get() else {
        return out_of_memory();
    };
    // SAFETY: any numbers may be passed.
    allocate(size, usable, move || unsafe { real(alignment, size) })
}

/// `valloc`
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn valloc(size: usize) -> *mut c_void {
    memalign(4096, size)
}

/// `pvalloc`
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn pvalloc(size: usize) -> *mut c_void {
    match size.checked_next_multiple_of(4096) {
        Some(size) => memalign(4096, size),
        None => out_of_memory(),
    }
}

/// `posix_memalign`
///
/// # Safety
///
/// As for `posix_memalign`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn posix_memalign(
    into: *mut *mut c_void,
    alignment: usize,
    size: usize,
) -> c_int {
    const ENOMEM: c_int = 12;
    let Some(real) = real_posix_memalign::get() else {
        return ENOMEM;
    };
    let mut status = 0;
    allocate(size, usable, || {
        // SAFETY: `into` is a place for a pointer (`# Safety`), which is written if the status is
        // 0.
        unsafe {
            status = real(into, alignment, size);
            if status == 0 {
                *into
            } else {
                core::ptr::null_mut()
            }
        }
    });
    status
}

/// `malloc_usable_size`
///
/// # Safety
///
/// As for `malloc_usable_size`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn malloc_usable_size(address: *mut c_void) -> usize {
    if early::owns(address) {
        // SAFETY: it was taken there.
        return unsafe { early::size(address) };
    }
    // SAFETY: `address` is null or a chunk (`# Safety`), and not of `early`.
    real_usable_size::get().map_or(0, |real| unsafe { real(address) })
}

/// `mmap`, of which only totals are kept.
///
/// # Safety
///
/// As for `mmap`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn mmap(
    address: *mut c_void,
    len: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    let failed = core::ptr::without_provenance_mut(usize::MAX);
    let Some(real) = real_mmap::get() else {
        out_of_memory();
        return failed;
    };
    // SAFETY: `mmap` and `munmap` ask of us what they ask of the caller (`# Safety`).
    let mapped = unsafe { real(address, len, protection, flags, file, offset) };
    if mapped != failed && flags & sys::MAP_ANONYMOUS as i32 != 0 {
        map_total(len as i64);
    }
    mapped
}

/// `mmap64`, the same function.
///
/// # Safety
///
/// As for `mmap`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn mmap64(
    address: *mut c_void,
    len: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: what `mmap` asks for holds (`# Safety`).
    unsafe { mmap(address, len, protection, flags, file, offset) }
}

/// `munmap`
///
/// # Safety
///
/// As for `munmap`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn munmap(address: *mut c_void, len: usize) -> c_int {
    let Some(real) = real_munmap::get() else {
        return -1;
    };
    // SAFETY: `mmap` and `munmap` ask of us what they ask of the caller (`# Safety`).
    let status = unsafe { real(address, len) };
    if status == 0 {
        map_total(-(len as i64));
    }
    status
}

fn map_total(change: i64) {
    let Some(local) = enter() else { return };
    LOCK.with(|| {
        // SAFETY: the lock is held, under which the header's totals are changed. Files are mapped
        // and unmapped, too, hence saturating.
        unsafe {
            let header = header();
            (*header).mapped = (*header).mapped.saturating_add_signed(change);
            (*header).mapped_peak = (*header).mapped_peak.max((*header).mapped);
        }
    });
    leave(local);
}

/// Before a second thread: from here on counts that are nobody's own are atomic.
fn count_threads() {
    recording::SEVERAL_THREADS.store(true, Ordering::Relaxed);
    // SAFETY: the block is this thread's.
    unsafe {
        // A handler may have interrupted what is done under the lock.
        if (*local()).thread == 1 && !(*local()).busy {
            LOCK.will_be_shared();
        }
    }
}

/// `thrd_create`, within which libc calls its own `pthread_create`.
///
/// # Safety
///
/// As for `thrd_create`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn thrd_create(
    thread: *mut c_void,
    start: *const c_void,
    argument: *mut c_void,
) -> c_int {
    const ERROR: c_int = 2;
    count_threads();
    let Some(real) = real_thrd_create::get() else {
        return ERROR;
    };
    // SAFETY: the arguments are those of a call of `thrd_create` (`# Safety`).
    unsafe { real(thread, start, argument) }
}

/// `mlockall`: pages are locked once they are there, or the kernel would fill all of the capture.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn mlockall(flags: c_int) -> c_int {
    const MCL_ONFAULT: c_int = 4;
    let Some(real) = real_mlockall::get() else {
        return -1;
    };
    // SAFETY: any flags may be passed.
    unsafe { real(flags | MCL_ONFAULT) }
}

/// `pthread_create`.
///
/// # Safety
///
/// As for `pthread_create`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn pthread_create(
    thread: *mut c_void,
    attributes: *const c_void,
    function: *const c_void,
    argument: *mut c_void,
) -> c_int {
    const EAGAIN: c_int = 11;
    count_threads();
    let Some(real) = real_pthread_create::get() else {
        return EAGAIN;
    };
    let prepared = if recording::active() {
        threads::prepare(function, argument)
    } else {
        None
    };
    let Some((begin, prepared)) = prepared else {
        // SAFETY: the arguments are those of a call of `pthread_create` (`# Safety`).
        return unsafe { real(thread, attributes, function, argument) };
    };
    // SAFETY: the arguments are valid for `pthread_create` (`# Safety`). `begin` takes `prepared`,
    // and calls `function` with `argument` once, as the real function would.
    let status = unsafe { real(thread, attributes, begin as *const c_void, prepared) };
    if status != 0 {
        threads::take_back(prepared);
    }
    status
}

/// `dlclose`: what was known of the library's code is forgotten.
///
/// # Safety
///
/// As for `dlclose`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn dlclose(library: *mut c_void) -> c_int {
    let Some(real) = real_dlclose::get() else {
        return -1;
    };
    // SAFETY: `library` is a handle that the caller gives up (`# Safety`).
    let status = unsafe { real(library) };
    unwind::forget();
    regions::modules_changed();
    status
}
