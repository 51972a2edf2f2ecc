//! A global allocator that the environment chooses when the process starts.
//!
//! A whole program under an allocator means: *everything* in the process comes from it, what the standard library and the runtime allocate included.
//! Allocators are linked, though, not passed, and a binary for each would have to be built, found and kept alike. So `report` is one binary with all of them, starts
//! itself once for each measurement, and says in the variable [`ALLOCATOR_VARIABLE`] who serves that process:
//!
//! ```text
//! first allocation:   getenv(ALLOCATOR_VARIABLE) -> CHOICE      (before `main`; getenv allocates nothing)
//! each call:          match CHOICE { .. }                       one load and one branch that never changes its mind
//! ```
//!
//! What that costs is the same for all: the branch, and one jump into a function that holds the allocator's own code as a `#[global_allocator]` of it would. The jump
//! is there on purpose: inlined side by side, the arms would share one prologue, and whoever needs the fewest registers would pay for the others.
//!
//! A process without the variable, which `report` itself is, gets [`SwitchAllocator`]: there each thread chooses between the system's malloc and `CcMalloc`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::CStr;
use std::sync::atomic::{AtomicU8, Ordering};

use ccmalloc::CcMalloc;
use examples::switch::SwitchAllocator;

/// The environment variable that names the allocator of a process, by one of the names that [`served_by`] returns.
pub const ALLOCATOR_VARIABLE: &str = "BENCHES_ALLOCATOR";

const ALLOCATOR_VARIABLE_C: &CStr = c"BENCHES_ALLOCATOR";

const UNDECIDED: u8 = 0;
const SWITCH: u8 = 1;
const SYSTEM: u8 = 2;
const CCMALLOC: u8 = 3;
#[cfg(feature = "mimalloc")]
const MIMALLOC: u8 = 4;
#[cfg(feature = "jemalloc")]
const JEMALLOC: u8 = 5;
#[cfg(feature = "snmalloc")]
const SNMALLOC: u8 = 6;

/// What may stand in the variable; anything else means the switch.
const NAMES: &[(&CStr, u8)] = &[
    (c"glibc", SYSTEM),
    (c"ccmalloc", CCMALLOC),
    #[cfg(feature = "mimalloc")]
    (c"mimalloc", MIMALLOC),
    #[cfg(feature = "jemalloc")]
    (c"jemalloc", JEMALLOC),
    #[cfg(feature = "snmalloc")]
    (c"snmalloc", SNMALLOC),
];

/// Written once, by [`decide`]: memory must go back to where it came from.
static CHOICE: AtomicU8 = AtomicU8::new(UNDECIDED);

/// The name of this process's allocator, or `switch`.
pub fn served_by() -> &'static str {
    let choice = CHOICE.load(Ordering::Relaxed);
    NAMES
        .iter()
        .find(|&&(_, named)| named == choice)
        .and_then(|(name, _)| name.to_str().ok())
        .unwrap_or("switch")
}

/// Looks the choice up. Allocates nothing.
#[cold]
#[inline(never)]
fn decide() {
    // SAFETY: the name ends in NUL. Nothing in this package changes the environment, so no other thread can be changing it now.
    let value = unsafe { libc::getenv(ALLOCATOR_VARIABLE_C.as_ptr()) };
    let choice = if value.is_null() {
        SWITCH
    } else {
        // SAFETY: getenv returned a string that ends in NUL and stays as it is while nobody changes the environment.
        let value = unsafe { CStr::from_ptr(value) };
        let known = NAMES.iter().find(|&&(name, _)| name == value);
        known.map_or(SWITCH, |&(_, named)| named)
    };
    // Two threads in here at once agree anyway; the exchange makes that no condition.
    let _first = CHOICE.compare_exchange(UNDECIDED, choice, Ordering::Relaxed, Ordering::Relaxed);
}

/// The allocator that the environment chose: `#[global_allocator] static GLOBAL: DispatchAllocator = DispatchAllocator;`
#[derive(Clone, Copy, Debug, Default)]
pub struct DispatchAllocator;

/// Calls `$function` with the chosen allocator in front of the arguments.
macro_rules! dispatch {
    ($function:ident($($argument:expr),*)) => {
        match CHOICE.load(Ordering::Relaxed) {
            UNDECIDED => {
                decide();
                // Decided now, so this arm is not taken again.
                again::$function($($argument),*)
            }
            SYSTEM => $function(System, $($argument),*),
            CCMALLOC => $function(CcMalloc, $($argument),*),
            #[cfg(feature = "mimalloc")]
            MIMALLOC => $function(mimalloc::MiMalloc, $($argument),*),
            #[cfg(feature = "jemalloc")]
            JEMALLOC => $function(tikv_jemallocator::Jemalloc, $($argument),*),
            #[cfg(feature = "snmalloc")]
            SNMALLOC => $function(snmalloc_rs::SnMalloc, $($argument),*),
            _ => $function(SwitchAllocator, $($argument),*),
        }
    };
}

// SAFETY: all calls of a process go to one and the same allocator, which keeps the contract: the choice is made before the first
// block is handed out, and never again. Nothing here unwinds.
unsafe impl GlobalAlloc for DispatchAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        unsafe { dispatch!(alloc(layout)) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        unsafe { dispatch!(alloc_zeroed(layout)) }
    }

    #[inline]
    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { dispatch!(dealloc(object, layout)) }
    }

    #[inline]
    unsafe fn realloc(&self, object: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        unsafe { dispatch!(realloc(object, layout, new_size)) }
    }
}

/// # Safety
/// - As [`GlobalAlloc::alloc`].
#[inline(never)]
unsafe fn alloc<A: GlobalAlloc>(allocator: A, layout: Layout) -> *mut u8 {
    // SAFETY: the caller's promises are passed on.
    unsafe { allocator.alloc(layout) }
}

/// # Safety
/// - As [`GlobalAlloc::alloc_zeroed`].
#[inline(never)]
unsafe fn alloc_zeroed<A: GlobalAlloc>(allocator: A, layout: Layout) -> *mut u8 {
    // SAFETY: the caller's promises are passed on.
    unsafe { allocator.alloc_zeroed(layout) }
}

/// # Safety
/// - As [`GlobalAlloc::dealloc`].
#[inline(never)]
unsafe fn dealloc<A: GlobalAlloc>(allocator: A, object: *mut u8, layout: Layout) {
    // SAFETY: the caller's promises are passed on.
    unsafe { allocator.dealloc(object, layout) }
}

/// # Safety
/// - As [`GlobalAlloc::realloc`].
#[inline(never)]
unsafe fn realloc<A: GlobalAlloc>(
    allocator: A,
    object: *mut u8,
    layout: Layout,
    new_size: usize,
) -> *mut u8 {
    // SAFETY: the caller's promises are passed on.
    unsafe { allocator.realloc(object, layout, new_size) }
}

/// The calls once more, out of line, so that the first one of a process costs the others no code.
mod again {
    use super::{DispatchAllocator, GlobalAlloc, Layout};

    /// # Safety
    /// - As [`GlobalAlloc::alloc`].
    #[cold]
    pub(super) unsafe fn alloc(layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        unsafe { DispatchAllocator.alloc(layout) }
    }

    /// # Safety
    /// - As [`GlobalAlloc::alloc_zeroed`].
    #[cold]
    pub(super) unsafe fn alloc_zeroed(layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        unsafe { DispatchAllocator.alloc_zeroed(layout) }
    }

    /// # Safety
    /// - As [`GlobalAlloc::dealloc`].
    #[cold]
    pub(super) unsafe fn dealloc(object: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { DispatchAllocator.dealloc(object, layout) }
    }

    /// # Safety
    /// - As [`GlobalAlloc::realloc`].
    #[cold]
    pub(super) unsafe fn realloc(object: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        unsafe { DispatchAllocator.realloc(object, layout, new_size) }
    }
}
