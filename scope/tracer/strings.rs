//! String instructions, which name no operand that could be aimed elsewhere.

use core::arch::asm;

use crate::context::{Context, DIRECTION};
use crate::faults::record;
use crate::sys;
use crate::thunks::Thunk;
use crate::wire::{
    LOAD, STORE, STRING_CMPS, STRING_LODS, STRING_MOVS, STRING_OPERATION, STRING_REP, STRING_REPNE,
    STRING_SCAS, STRING_STOS,
};
use crate::zones;

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
