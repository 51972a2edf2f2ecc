//! Accesses of a [`Window`](super::Window), in as few bytes as they need.
//!
//! An access begins with a byte of what it is, and how far it is from the last access, each in the
//! heap and outside. Then there is what that does not tell. Numbers have 7 bits in a byte, the
//! lowest first; the high bit says that more follow. Signed ones are mapped to
//! 0, -1, 1, -2, and so on.

/// Most bytes of an access.
pub const MAX_BYTES: usize = 40;

/// The low bits of the first byte: the size is two to the power of this, or in the next byte.
const OTHER_SIZE: u8 = 7;
const WRITE: u8 = 1 << 3;
const IN_HEAP: u8 = 1 << 4;
/// In the same chunk as the last access in the heap.
const SAME_CHUNK: u8 = 1 << 5;
const POINTER: u8 = 1 << 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub address: u64,
    /// Longer ones are cut into pieces.
    pub size: u8,
    pub write: bool,
    /// For a load of eight bytes that point into a chunk: these bytes, and the chunk's site. Or 0.
    pub pointer: u64,
    pub target: u32,
    /// Site of the accessed chunk, or 0 outside the heap; and the offset from its start, at most
    /// `u32::MAX`.
    pub site: u32,
    pub offset: u32,
}

/// What the next access is told from.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Coder {
    /// Addresses of the last accesses outside the heap and in it.
    last: [u64; 2],
    /// Start and site of the last chunk.
    start: u64,
    site: u32,
    padding: u32,
}

impl Coder {
    /// Writes `access` to the start of `into`; returns how many bytes that takes.
    pub fn put(&mut self, access: &Access, into: &mut [u8; MAX_BYTES]) -> usize {
        let in_heap = access.site != 0;
        let start = access.address.wrapping_sub(u64::from(access.offset));
        let is_same = in_heap && (start, access.site) == (self.start, self.site);
        let code = match access.size {
            1 | 2 | 4 | 8 | 16 | 32 | 64 => access.size.trailing_zeros().to_le_bytes()[0],
            _ => OTHER_SIZE,
        };
        let flag = |condition: bool, flag: u8| if condition { flag } else { 0 };
        into[0] = code
            | flag(access.write, WRITE)
            | flag(in_heap, IN_HEAP)
            | flag(is_same, SAME_CHUNK)
            | flag(access.target != 0, POINTER);
        let mut len = 1;
        if code == OTHER_SIZE {
            into[1] = access.size;
            len = 2;
        }
        let mut number = |mut number: u64| {
            while number >= 0x80 {
                into[len] = number.to_le_bytes()[0] | 0x80;
                number >>= 7;
                len += 1;
            }
            into[len] = number.to_le_bytes()[0];
            len += 1;
        };
        let last = &mut self.last[usize::from(in_heap)];
        number(unsigned(access.address.wrapping_sub(*last)));
        *last = access.address;
        if in_heap && !is_same {
            number(u64::from(access.site));
            number(u64::from(access.offset));
            (self.start, self.site) = (start, access.site);
        }
        if access.target != 0 {
            number(unsigned(access.pointer.wrapping_sub(access.address)));
            number(u64::from(access.target));
        }
        len
    }

    /// Reads what [`Coder::put`] has written, and takes it off `bytes`. `None` if that is not
    /// whole.
    pub fn take(&mut self, bytes: &mut &[u8]) -> Option<Access> {
        let what = byte(bytes)?;
        let size = match what & OTHER_SIZE {
            OTHER_SIZE => byte(bytes)?,
            bits => 1 << bits,
        };
        let in_heap = what & IN_HEAP != 0;
        let last = &mut self.last[usize::from(in_heap)];
        let address = last.wrapping_add(signed(number(bytes)?));
        *last = address;
        if in_heap && what & SAME_CHUNK == 0 {
            self.site = u32::try_from(number(bytes)?).ok()?;
            self.start = address.wrapping_sub(number(bytes)?);
        }
        let (mut pointer, mut target) = (0, 0);
        if what & POINTER != 0 {
            pointer = address.wrapping_add(signed(number(bytes)?));
            target = u32::try_from(number(bytes)?).ok()?;
        }
        let (site, offset) = if in_heap {
            let offset = address.wrapping_sub(self.start);
            (self.site, u32::try_from(offset).ok()?)
        } else {
            (0, 0)
        };
        Some(Access {
            address,
            size,
            write: what & WRITE != 0,
            pointer,
            target,
            site,
            offset,
        })
    }
}

fn unsigned(difference: u64) -> u64 {
    difference << 1 ^ (difference.cast_signed() >> 63).cast_unsigned()
}

fn signed(number: u64) -> u64 {
    number >> 1 ^ (number & 1).wrapping_neg()
}

fn byte(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = byte(bytes)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}
