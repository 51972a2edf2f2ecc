//! The exported functions that allocate, on processors where rules can be applied.
//!
//! Each is one jump through [`HOOKS`]. At first that leads to `family`; once there are rules, to a
//! *filter*: one byte of a table, by the low bits of the return address, says whether a rule may be
//! for this caller. While the program is learned from, it leads to a countdown. Only a hit saves
//! the registers that a call preserves, beside the return address and the stack: a [`Snapshot`].
//!
//! The functions are written in assembly, since the caller's registers are not to be touched before
//! they are looked at. Their `.cfi` lines let debuggers, profilers and exceptions pass through.

/// The functions of a processor's module, by the macros that it defines: what is exported, by the
/// field of [`Hooks`]; the filters; and the countdowns, each with what it goes on with, what
/// follows a hit, and what comes before the test.
macro_rules! functions {
    () => {
        export! {
            malloc: malloc,
            calloc: calloc,
            realloc: realloc,
            aligned_alloc: aligned_alloc,
            memalign: memalign,
            posix_memalign: posix_memalign,
            _Znwm: new,
        }

        watched! {
            test_filter, sym TABLE, nothing;
            filter_malloc: family::malloc, hits::malloc, nothing;
            filter_calloc: family::calloc, hits::calloc, nothing;
            filter_realloc: family::realloc, hits::realloc, only_without_object;
            filter_aligned_alloc: family::aligned_alloc, hits::aligned_alloc, nothing;
            filter_memalign: family::memalign, hits::memalign, nothing;
            filter_posix_memalign: family::posix_memalign, hits::posix_memalign, nothing;
        }

        watched! {
            test_filter, sym TABLE, once_more;
            filter_new: new, hits::malloc, nothing;
        }

        watched! {
            test_countdown, const COUNTDOWN, nothing;
            learn_malloc: family::malloc, samples::malloc, nothing;
            learn_calloc: family::calloc, samples::calloc, nothing;
            learn_realloc: family::realloc, samples::realloc, only_without_object;
            learn_aligned_alloc: family::aligned_alloc, samples::aligned_alloc, nothing;
            learn_memalign: family::memalign, samples::memalign, nothing;
            learn_posix_memalign: family::posix_memalign, samples::posix_memalign, nothing;
        }

        watched! {
            test_countdown, const COUNTDOWN, once_more;
            learn_new: new, samples::malloc, nothing;
        }
    };
}

#[cfg_attr(target_arch = "x86_64", path = "entry/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "entry/aarch64.rs")]
mod processor;
mod snapshot;
mod thread_state;

use core::ffi::{CStr, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use allocator::raw;

pub(crate) use processor::{PLACES, REGISTERS, STACK_START};
pub(crate) use snapshot::{STACK_WORDS, Snapshot, copy_from};
pub(crate) use thread_state::{LASTS, ThreadState, thread_state};

use crate::{family, learn, rules};

/// Where the exported functions lead.
#[repr(C)]
pub(crate) struct Hooks {
    malloc: AtomicPtr<c_void>,
    calloc: AtomicPtr<c_void>,
    realloc: AtomicPtr<c_void>,
    aligned_alloc: AtomicPtr<c_void>,
    memalign: AtomicPtr<c_void>,
    posix_memalign: AtomicPtr<c_void>,
    new: AtomicPtr<c_void>,
}

/// Addresses of functions with the arguments and the result of those that they stand for.
static HOOKS: Hooks = Hooks {
    malloc: AtomicPtr::new(family::malloc as *mut c_void),
    calloc: AtomicPtr::new(family::calloc as *mut c_void),
    realloc: AtomicPtr::new(family::realloc as *mut c_void),
    aligned_alloc: AtomicPtr::new(family::aligned_alloc as *mut c_void),
    memalign: AtomicPtr::new(family::memalign as *mut c_void),
    posix_memalign: AtomicPtr::new(family::posix_memalign as *mut c_void),
    new: AtomicPtr::new(processor::choose_new as *mut c_void),
};

/// Defines functions of the processor's module for each exported one.
macro_rules! install {
    ($($hook:ident: $function:ident,)*) => {
        $(HOOKS.$hook.store(processor::$function as *mut c_void, Ordering::Release);)*
    };
}

/// From now on, calls go through the filter, whose table [`rules`] has published.
pub(crate) fn apply_rules() {
    install! {
        malloc: filter_malloc,
        calloc: filter_calloc,
        realloc: filter_realloc,
        aligned_alloc: filter_aligned_alloc,
        memalign: filter_memalign,
        posix_memalign: filter_posix_memalign,
    }
    if is_new_ours() {
        install! { new: filter_new, }
    }
}

/// From now on, every so many calls of a thread are learned from.
pub(crate) fn learn() {
    install! {
        malloc: learn_malloc,
        calloc: learn_calloc,
        realloc: learn_realloc,
        aligned_alloc: learn_aligned_alloc,
        memalign: learn_memalign,
        posix_memalign: learn_posix_memalign,
    }
    if is_new_ours() {
        install! { new: learn_new, }
    }
}

/// What follows a hit of the filter: the arguments of the function, which not all have three, and
/// the state of the caller. The processor's module calls these.
mod hits {
    use super::{Snapshot, c_int, c_void, family, null_mut, raw, rules};

    /// What a rule gives for a call, if there is one; else, or if there is no memory, what `plain`
    /// does.
    fn ruled(
        bytes: usize,
        align: usize,
        at: &Snapshot,
        plain: impl FnOnce() -> *mut c_void,
    ) -> *mut c_void {
        match rules::find(bytes, align, at) {
            Some(rule) if rule.is_huge() => {
                let object = plain();
                rule.advise(object.cast());
                object
            }
            Some(rule) => match rule.allocate(align, at) {
                object if object.is_null() => plain(),
                object => object.cast(),
            },
            None => plain(),
        }
    }

    pub(super) extern "C" fn malloc(
        bytes: usize,
        _: usize,
        _: usize,
        at: &Snapshot,
    ) -> *mut c_void {
        ruled(bytes, raw::natural_align(bytes), at, || {
            family::malloc(bytes)
        })
    }

    pub(super) extern "C" fn calloc(
        count: usize,
        bytes: usize,
        _: usize,
        at: &Snapshot,
    ) -> *mut c_void {
        let total = count.saturating_mul(bytes);
        let mut is_zero = false;
        let object = ruled(total, raw::natural_align(total), at, || {
            is_zero = true;
            family::calloc(count, bytes)
        });
        if !is_zero {
            // SAFETY: fresh, of this size, and not null, which only `calloc` may give.
            unsafe { object.write_bytes(0, total) };
        }
        object
    }

    /// Reached only where the object is null.
    pub(super) extern "C" fn realloc(
        _: usize,
        bytes: usize,
        _: usize,
        at: &Snapshot,
    ) -> *mut c_void {
        malloc(bytes, 0, 0, at)
    }

    pub(super) extern "C" fn aligned_alloc(
        align: usize,
        bytes: usize,
        _: usize,
        at: &Snapshot,
    ) -> *mut c_void {
        aligned(align, bytes, at, || family::aligned_alloc(align, bytes))
    }

    pub(super) extern "C" fn memalign(
        align: usize,
        bytes: usize,
        _: usize,
        at: &Snapshot,
    ) -> *mut c_void {
        aligned(align, bytes, at, || family::memalign(align, bytes))
    }

    /// # Safety
    /// - `place` may be written to, as `posix_memalign` asks of its caller.
    pub(super) unsafe extern "C" fn posix_memalign(
        place: *mut *mut c_void,
        align: usize,
        bytes: usize,
        at: &Snapshot,
    ) -> c_int {
        let mut result = 0;
        let mut object = null_mut();
        let is_valid = align.is_multiple_of(size_of::<*mut c_void>());
        let mut plain = || {
            // SAFETY: writes to the variable above.
            result = unsafe { family::posix_memalign(&raw mut object, align, bytes) };
            object
        };
        let object = match is_valid {
            true => aligned(align, bytes, at, plain),
            false => plain(),
        };
        if result == 0 {
            // SAFETY: the caller promises that `place` may be written to.
            unsafe { place.write(object) };
        }
        result
    }

    /// [`ruled`] at an alignment that the caller names.
    fn aligned(
        align: usize,
        bytes: usize,
        at: &Snapshot,
        plain: impl FnOnce() -> *mut c_void,
    ) -> *mut c_void {
        match align.is_power_of_two() {
            true => ruled(bytes, align.max(raw::natural_align(bytes)), at, plain),
            false => plain(),
        }
    }
}

/// What follows a countdown that has ended: the call as it would be, seen by [`learn`].
mod samples {
    use super::{Snapshot, c_int, c_void, family, learn};

    pub(super) extern "C" fn malloc(
        bytes: usize,
        _: usize,
        _: usize,
        at: &Snapshot,
    ) -> *mut c_void {
        learn::see(family::malloc(bytes), bytes, at)
    }

    pub(super) extern "C" fn calloc(
        count: usize,
        bytes: usize,
        _: usize,
        at: &Snapshot,
    ) -> *mut c_void {
        learn::see(
            family::calloc(count, bytes),
            count.saturating_mul(bytes),
            at,
        )
    }

    /// Reached only where the object is null.
    pub(super) extern "C" fn realloc(
        _: usize,
        bytes: usize,
        _: usize,
        at: &Snapshot,
    ) -> *mut c_void {
        learn::see(family::malloc(bytes), bytes, at)
    }

    pub(super) extern "C" fn aligned_alloc(
        align: usize,
        bytes: usize,
        _: usize,
        at: &Snapshot,
    ) -> *mut c_void {
        learn::see(family::aligned_alloc(align, bytes), bytes, at)
    }

    pub(super) extern "C" fn memalign(
        align: usize,
        bytes: usize,
        _: usize,
        at: &Snapshot,
    ) -> *mut c_void {
        learn::see(family::memalign(align, bytes), bytes, at)
    }

    /// # Safety
    /// - `place` may be written to, as `posix_memalign` asks of its caller.
    pub(super) unsafe extern "C" fn posix_memalign(
        place: *mut *mut c_void,
        align: usize,
        bytes: usize,
        at: &Snapshot,
    ) -> c_int {
        // SAFETY: the caller promises that `place` may be written to.
        let error = unsafe { family::posix_memalign(place, align, bytes) };
        if error == 0 {
            // SAFETY: written by the call, which has succeeded.
            learn::see(unsafe { *place }, bytes, at);
        }
        error
    }
}

/// Where `operator new` leads: this library's, unless another one is loaded that replaces the C++
/// library's. What that one allocates, its `operator delete` frees, which stays.
///
/// Of the other forms none is exported: the C++ library's lead here, or to what replaces this one.
pub(crate) extern "C" fn choose_new() -> *mut c_void {
    let ours = processor::new as *mut c_void;
    let next = symbol(libc::RTLD_NEXT);
    let chosen = match next.is_null() || is_cpp_library(next) {
        true => ours,
        false => next,
    };
    let undecided = processor::choose_new as *mut c_void;
    let order = Ordering::AcqRel;
    match HOOKS
        .new
        .compare_exchange(undecided, chosen, order, Ordering::Acquire)
    {
        Ok(_) => chosen,
        // Decided before, and perhaps a filter by now.
        Err(decided) => decided,
    }
}

fn is_new_ours() -> bool {
    choose_new() == processor::new as *mut c_void
}

/// `operator new` in a library or a scope.
fn symbol(library: *mut c_void) -> *mut c_void {
    // SAFETY: the name is a C string, and so is the answer's.
    unsafe {
        let symbol = libc::dlsym(library, c"_Znwm".as_ptr());
        if symbol.is_null() {
            // The program is not to find this error.
            libc::dlerror();
        }
        symbol
    }
}

/// Whether a function is one of GNU's or LLVM's C++ library, whose `operator new` calls `malloc`.
fn is_cpp_library(function: *mut c_void) -> bool {
    let mut info = core::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: fills in what is known, if it gives anything but 0.
    let is_known = unsafe { libc::dladdr(function, info.as_mut_ptr()) } != 0;
    if !is_known {
        return false;
    }
    // SAFETY: filled in; the name, if there is one, is that of a loaded library.
    let name = unsafe {
        let name = info.assume_init().dli_fname;
        if name.is_null() {
            return false;
        }
        CStr::from_ptr(name).to_bytes()
    };
    let name = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    name.starts_with(b"libstdc++") || name.starts_with(b"libc++")
}

/// Finds the C++ library's `operator new`, which calls the handler and throws. Ends the process if
/// there is none: in a static program, where nothing can throw for it.
pub(crate) extern "C" fn next_new() -> *mut c_void {
    let mut next = symbol(libc::RTLD_NEXT);
    if next.is_null() {
        // Loaded for a library of `dlopen` alone.
        // SAFETY: the name is a C string; opens what is loaded only, so that nothing of it runs.
        let library = unsafe {
            libc::dlopen(
                c"libstdc++.so.6".as_ptr(),
                libc::RTLD_LAZY | libc::RTLD_NOLOAD,
            )
        };
        if !library.is_null() {
            next = symbol(library);
        }
    }
    if next.is_null() {
        crate::statistics::say(format_args!("operator new: out of memory"));
        // SAFETY: has no preconditions.
        unsafe { libc::abort() };
    }
    next
}
