//! Events of accesses.

use core::sync::atomic::Ordering::Relaxed;

use super::wire::{self, Event};
use super::{events, threads, zones};

/// Writes an event unless the thread is within a function whose accesses are told as one.
pub(crate) fn record(kind: u8, ip: u64, address: u64, len: u64) {
    let thread = threads::this();
    // Calls are made while tracing is off, too.
    let is_off = (kind == wire::FILL || kind == wire::FETCH) && !zones::is_closed();
    if !is_off && thread.quiet.load(Relaxed) == 0 {
        let number = thread.number.load(Relaxed);
        let size = if kind == wire::LOAD || kind == wire::STORE {
            len as u16
        } else {
            0
        };
        let event = Event {
            ip,
            address,
            len,
            thread: number,
            kind,
            zero: 0,
            size,
        };
        events::push(event);
    }
}
