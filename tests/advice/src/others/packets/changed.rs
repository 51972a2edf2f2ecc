//! Packets in blocks with others of their kind.

use super::before::receive;

pub fn hint(size: usize) -> u64 {
    receive(size, |byte, length| {
        ccmalloc::near(&(), || vec![byte; length].into_boxed_slice())
    })
}
