//! The part of `ccscope` inside the profiled process: it sees allocations and accesses and writes
//! them into a [capture](format).
#![cfg_attr(not(test), no_std)]

#[path = "../format/mod.rs"]
mod format;

#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
