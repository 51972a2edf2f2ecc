//! Hints for C: `ccmalloc.h`.

use core::ffi::{c_int, c_void};
use core::ptr::{NonNull, null_mut};

use allocator::{PlacementReport, Policy, raw};

use crate::errno::{fail, or_out_of_memory};

/// The policy that `number` stands for in `ccmalloc.h`.
fn policy_of(number: c_int) -> Option<Policy> {
    match number {
        0 => Some(Policy::Closest),
        1 => Some(Policy::FirstFit),
        2 => Some(Policy::NewBlock),
        _ => None,
    }
}

/// Allocates near `hint`, which may be any number; null hints at nothing.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ccmalloc(bytes: usize, hint: *const c_void) -> *mut c_void {
    let hint = NonNull::new(hint.cast_mut().cast());
    or_out_of_memory(raw::allocate(bytes, raw::natural_align(bytes), hint))
}

/// As [`ccmalloc()`], by a policy of the call's own.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ccmalloc_policy(
    bytes: usize,
    hint: *const c_void,
    policy: c_int,
) -> *mut c_void {
    let Some(policy) = policy_of(policy) else {
        return fail(libc::EINVAL);
    };
    let align = raw::natural_align(bytes);
    or_out_of_memory(match NonNull::new(hint.cast_mut().cast()) {
        Some(hint) => raw::allocate_with(bytes, align, hint, policy),
        None => raw::allocate(bytes, align, None),
    })
}

/// Changes the size of an object; where it must move, near `hint`.
///
/// # Safety
/// - `object` is null or a live object of this library. It is not used any more, unless null is
///   returned and `bytes` is not 0.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ccrealloc(
    object: *mut c_void,
    bytes: usize,
    hint: *const c_void,
) -> *mut c_void {
    if bytes == 0 && !object.is_null() {
        // SAFETY: the caller promises a live object of this library, and gives it up.
        unsafe { raw::deallocate(object.cast()) };
        return null_mut();
    }
    let hint = NonNull::new(hint.cast_mut().cast());
    // SAFETY: the caller passes null or a live object of this library, and uses the result.
    or_out_of_memory(unsafe { raw::reallocate(object.cast(), bytes, hint) })
}

/// Frees an object of any function of this library.
///
/// # Safety
/// - `object` is null or a live object of this library, and is not used any more.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ccfree(object: *mut c_void) {
    // SAFETY: the caller promises null or a live object of this library, and gives it up.
    unsafe { raw::deallocate(object.cast()) };
}

/// Sets the policy of calls that name none. Returns 0, or EINVAL when there is no such policy.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ccmalloc_set_policy(policy: c_int) -> c_int {
    policy_of(policy).map_or(libc::EINVAL, |policy| {
        allocator::set_default_policy(policy);
        0
    })
}

/// Leaves `blocks` of the 64 blocks of each page to hints at what lies on it.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ccmalloc_set_reserved_blocks(blocks: usize) {
    allocator::set_reserved_blocks(blocks);
}

/// Whether an address lies in memory that this library manages.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ccmalloc_contains(address: *const c_void) -> c_int {
    allocator::contains(address.cast()).into()
}

/// Writes the first `bytes` bytes of the report to `report`; what is beyond this version's report
/// is set to 0.
///
/// # Safety
/// - `report` may be written for `bytes` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ccmalloc_get_placement(report: *mut PlacementReport, bytes: usize) {
    let now = allocator::placement();
    let known = bytes.min(size_of::<PlacementReport>());
    let report: *mut u8 = report.cast();
    // SAFETY: at most as many bytes as `now` has, without padding because its fields are `u64`, and
    // as the caller's structure has.
    unsafe { core::ptr::copy_nonoverlapping((&raw const now).cast(), report, known) };
    // SAFETY: the rest of the caller's structure.
    unsafe { report.add(known).write_bytes(0, bytes - known) };
}
