//! Gathers and scatters: which elements of a vector are accessed, and where.

use core::arch::x86_64::__cpuid_count;

use super::accesses::record;
use super::context::Context;
use super::sys;
use super::thunks::Thunk;
use super::wire::{Elements, MASKS};
use super::zones;

/// Parts of the processor's state, and their bits in its header.
const LOW_16: u32 = 1;
const HIGH_16: u32 = 2;
const MASK: u32 = 5;
const HIGH_32: u32 = 6;
const MORE_VECTORS: u32 = 7;

/// Records the elements that are traced, in order.
pub(crate) fn record_all(thunk: &Thunk, context: &Context) {
    let place = core::ptr::with_exposed_provenance::<Elements>(thunk.code as usize);
    // SAFETY: `thunks::ask` has put an `Elements` there for an instruction of this kind, and code
    // of thunks is never unmapped.
    let it = unsafe { place.read_unaligned() };
    let base = context.value_of(it.base);
    let size = u64::from(it.size);
    for at in 0..u64::from(it.count) {
        let is_wanted = if it.mask >= MASKS {
            part(context, MASK, u64::from(it.mask - MASKS) * 8) >> at & 1 != 0
        } else {
            // Its highest bit is the sign.
            signed(vector(context, it.mask, at * size), size) < 0
        };
        let index_size = u64::from(it.index_size);
        let index = signed(vector(context, it.index, at * index_size), index_size);
        let address = base
            .wrapping_add_signed(index.wrapping_mul(i64::from(it.scale)))
            .wrapping_add_signed(it.displacement);
        if is_wanted && zones::find(address).is_some() {
            record(it.kind, context.rip, address, size);
        }
    }
}

/// The lowest bytes of a word, as a number with a sign.
fn signed(word: u64, bytes: u64) -> i64 {
    let shift = 64 - 8 * bytes;
    (word << shift).cast_signed() >> shift
}

/// Eight bytes of a vector from `offset` on, which may go on behind it.
fn vector(context: &Context, number: u8, offset: u64) -> u64 {
    let number = u64::from(number);
    match offset {
        _ if number >= 16 => part(context, MORE_VECTORS, (number - 16) * 64 + offset),
        0..16 => part(context, LOW_16, number * 16 + offset),
        16..32 => part(context, HIGH_16, number * 16 + offset - 16),
        _ => part(context, HIGH_32, number * 32 + offset - 32),
    }
}

/// Eight bytes of a part of the state.
fn part(context: &Context, number: u32, offset: u64) -> u64 {
    const LOW_PLACE: u64 = 160;
    const HEADER: u64 = 512;
    let place = if number == LOW_16 {
        LOW_PLACE
    } else {
        #[allow(unused_unsafe, reason = "later compilers take it for safe")]
        // SAFETY: each processor of 64 bits has the instruction.
        let found = unsafe { __cpuid_count(0xd, number) };
        u64::from(found.ebx)
    };
    // SAFETY: the kernel stores the state so for handlers of signals, with room behind it. What the
    // header does not name is zero.
    unsafe {
        if sys::word(context.floating + HEADER) >> number & 1 == 0 {
            return 0;
        }
        sys::word(context.floating + place + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_words_have_signs() {
        assert_eq!(signed(0xff, 1), -1);
        assert_eq!(signed(0xffff_ff7f, 1), 0x7f);
        assert_eq!(signed(0x8000_0000, 4), i64::from(i32::MIN));
        assert_eq!(signed(u64::MAX, 8), -1);
    }
}
