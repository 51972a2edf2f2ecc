//! String instructions, which name no operand that could be aimed elsewhere.

use core::arch::asm;

use super::accesses::record;
use super::context::{Context, DIRECTION};
use super::sys;
use super::thunks::Thunk;
use super::wire::{
    LOAD, STORE, STRING_CMPS, STRING_LODS, STRING_MOVS, STRING_OPERATION, STRING_REP, STRING_REPNE,
    STRING_SCAS, STRING_STOS,
};
use super::zones;

/// Elements for one fault, so that signals do not wait long.
const MOST: u64 = 1 << 14;
/// Carry, parity, adjust, zero, sign, overflow.
const FLAGS: u64 = 0x8d5;
const ZERO: u64 = 0x40;

/// Carries out the instruction, or a part of its turns; an error is where the program faults.
pub(crate) fn run(thunk: &Thunk, context: &mut Context) -> Result<(), u64> {
    let size = u64::from(thunk.element);
    let step = if context.eflags & DIRECTION != 0 {
        size.wrapping_neg()
    } else {
        size
    };
    let repeats = thunk.string & (STRING_REP | STRING_REPNE) != 0;
    let turns = if repeats { context.rcx.min(MOST) } else { 1 };
    let mut is_done = !repeats;
    for _ in 0..turns {
        let compares = turn(thunk.string & STRING_OPERATION, size, step, context)?;
        if repeats {
            context.rcx -= 1;
            let wanted = thunk.string & STRING_REP != 0;
            if compares && (context.eflags & ZERO != 0) != wanted {
                is_done = true;
                break;
            }
        }
    }
    if is_done || context.rcx == 0 {
        context.rip += u64::from(thunk.len);
    }
    Ok(())
}

/// One element; whether it was a comparison.
fn turn(operation: u8, size: u64, step: u64, context: &mut Context) -> Result<bool, u64> {
    let (ip, from, to) = (context.rip, context.rsi, context.rdi);
    match operation {
        STRING_MOVS => put(ip, to, size, get(ip, from, size)?)?,
        STRING_STOS => put(ip, to, size, context.rax)?,
        STRING_LODS => {
            let value = get(ip, from, size)?;
            context.rax = match size {
                1 => context.rax & !0xff | value,
                2 => context.rax & !0xffff | value,
                _ => value,
            };
        }
        STRING_CMPS => {
            // Processors do not say which comes first; this is lackey's order.
            let right = get(ip, to, size)?;
            compare(get(ip, from, size)?, right, size, context);
        }
        STRING_SCAS => compare(context.rax, get(ip, to, size)?, size, context),
        _ => {}
    }
    if operation == STRING_MOVS || operation == STRING_LODS || operation == STRING_CMPS {
        context.rsi = from.wrapping_add(step);
    }
    if operation != STRING_LODS {
        context.rdi = to.wrapping_add(step);
    }
    Ok(operation == STRING_CMPS || operation == STRING_SCAS)
}

/// Loads an element, and records that if it is traced.
fn get(ip: u64, address: u64, size: u64) -> Result<u64, u64> {
    if zones::find(address).is_some() {
        record(LOAD, ip, address, size);
    }
    let mut value = 0_u64;
    copy((&raw mut value) as u64, address, size, address)?;
    Ok(value)
}

/// Stores an element, and records that if it is traced.
fn put(ip: u64, address: u64, size: u64, value: u64) -> Result<(), u64> {
    if zones::find(address).is_some() {
        record(STORE, ip, address, size);
    }
    copy(address, (&raw const value) as u64, size, address)
}

/// Copies an element from or to `address`, one of both.
fn copy(to: u64, from: u64, size: u64, address: u64) -> Result<(), u64> {
    let usable = |other: u64| {
        if other == address {
            zones::usable(other)
        } else {
            other
        }
    };
    // SAFETY: one of both is `value`, or memory of ours; the other the program's instruction reads
    // or writes, and an alias shows the same memory.
    if unsafe { sys::try_copy(usable(to), usable(from), size) } {
        return Ok(());
    }
    // It may go on in another zone.
    for at in 0..size {
        let place = zones::usable(address + at);
        let [to, from] = [to, from].map(|it| if it == address { place } else { it + at });
        // SAFETY: a byte of the range above.
        if !unsafe { sys::try_copy(to, from, 1) } {
            return Err(address + at);
        }
    }
    Ok(())
}

/// Sets the flags as the processor does.
fn compare(left: u64, right: u64, size: u64, context: &mut Context) {
    // The upper end of a word has the flags of its part.
    let shift = 64 - 8 * size;
    let (left, right) = (left << shift, right << shift);
    let flags: u64;
    // SAFETY: pushes and pops one word.
    unsafe {
        asm!(
            "cmp {}, {}",
            "pushfq",
            "pop {}",
            in(reg) left,
            in(reg) right,
            out(reg) flags,
        );
    }
    // Parity and adjust are of the lowest byte.
    let low = (left >> shift).wrapping_sub(right >> shift);
    let parity = u64::from((low as u8).count_ones().is_multiple_of(2)) << 2;
    let adjust = ((left >> shift) ^ (right >> shift) ^ low) & 0x10;
    let flags = flags & !0x14 | parity | adjust;
    context.eflags = context.eflags & !FLAGS | flags & FLAGS;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracer::tests::context;

    fn thunk(string: u8, element: u8) -> Thunk {
        let mut thunk = Thunk::unknown(0, 0);
        (thunk.string, thunk.element, thunk.len) = (string, element, 3);
        thunk
    }

    /// The flags that a processor sets for two parts of words.
    fn flags_of(left: u64, right: u64, size: u64) -> u64 {
        let flags: u64;
        macro_rules! compare {
            ($form:literal) => {
                // SAFETY: pushes and pops one word.
                unsafe {
                    asm!(concat!("cmp {0:", $form, "}, {1:", $form, "}"), "pushfq", "pop {2}",
                        in(reg_abcd) left, in(reg_abcd) right, out(reg) flags)
                }
            };
        }
        match size {
            1 => compare!("l"),
            2 => compare!("x"),
            4 => compare!("e"),
            _ => compare!("r"),
        }
        flags & FLAGS
    }

    #[test]
    fn comparisons_set_flags_as_processors_do() {
        fn property(left: u64, right: u64, alike: bool) -> bool {
            let right = if alike {
                left ^ right & 0x1_0101
            } else {
                right
            };
            [1, 2, 4, 8].into_iter().all(|size| {
                let mut context = context();
                let part = |word: u64| word & (u64::MAX >> (64 - 8 * size));
                compare(part(left), part(right), size, &mut context);
                context.eflags & FLAGS == flags_of(left, right, size)
            })
        }
        quickcheck::QuickCheck::new()
            .tests(2000)
            .quickcheck(property as fn(u64, u64, bool) -> bool);
    }

    #[test]
    fn elements_are_copied_in_both_directions() {
        let _turn = crate::tracer::tests::turn();
        let from = [1_u32, 2, 3, 4];
        for direction in [0, DIRECTION] {
            let mut to = [0_u32; 4];
            let mut it = context();
            it.eflags = direction;
            let last = if direction == 0 { 0 } else { 12 };
            it.rsi = from.as_ptr() as u64 + last;
            it.rdi = to.as_mut_ptr().expose_provenance() as u64 + last;
            it.rcx = 3;
            assert_eq!(run(&thunk(STRING_MOVS | STRING_REP, 4), &mut it), Ok(()));
            let expected = if direction == 0 {
                [1, 2, 3, 0]
            } else {
                [0, 2, 3, 4]
            };
            assert_eq!((to, it.rcx, it.rip), (expected, 0, 3));
        }
    }

    #[test]
    fn a_search_ends_at_what_it_looks_for() {
        let _turn = crate::tracer::tests::turn();
        let text = b"abcdef";
        let mut it = context();
        (it.rdi, it.rcx, it.rax) = (text.as_ptr() as u64, 6, u64::from(b'd'));
        assert_eq!(run(&thunk(STRING_SCAS | STRING_REPNE, 1), &mut it), Ok(()));
        assert_eq!((it.rcx, it.eflags & ZERO, it.rip), (2, ZERO, 3));
        assert_eq!(it.rdi, text.as_ptr() as u64 + 4);
    }
}
