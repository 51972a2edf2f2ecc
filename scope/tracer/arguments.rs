//! What the arguments of system calls point to.

use crate::sys::PAGE;
use crate::{wire, zones};

/// How many bytes of memory a call reads or writes.
#[derive(Clone, Copy)]
pub(crate) enum Len {
    /// As this argument says, times this.
    Argument(usize, u64),
    /// Words for so many bits as this argument says.
    Bits(usize),
    /// As the result says, times this.
    Result(u64),
    /// So many.
    Fixed(u64),
    /// To the first 0.
    Text,
}

impl Len {
    /// How many bytes it may be at most, and how many it is once the result is known.
    pub(crate) fn bytes(self, arguments: &[u64; 6], argument: usize, result: Option<u64>) -> u64 {
        match (self, result) {
            (Len::Argument(of, times), _) => (arguments[of] & COUNT).saturating_mul(times),
            (Len::Bits(of), _) => (arguments[of] & 0xffff_ffff).div_ceil(64) * 8,
            (Len::Fixed(bytes), _) => bytes,
            (Len::Text, _) => text_len(arguments[argument]),
            (Len::Result(times), Some(result)) => result.saturating_mul(times),
            // How much there is room for always follows.
            (Len::Result(times), None) => arguments[argument + 1].saturating_mul(times),
        }
    }
}
/// What no length exceeds: half of the address space.
const COUNT: u64 = (1 << 47) - 1;

/// Which argument of a call points to what; `W` is written by the kernel, `G` read.
pub(crate) const BLOCKS: &[(u64, usize, u8, Len)] = &[
    (0, 1, wire::FILL, Len::Result(1)),
    (1, 1, wire::FETCH, Len::Argument(2, 1)),
    (2, 0, wire::FETCH, Len::Text),
    (4, 0, wire::FETCH, Len::Text),
    (4, 1, wire::FILL, Len::Fixed(144)),
    (5, 1, wire::FILL, Len::Fixed(144)),
    (6, 0, wire::FETCH, Len::Text),
    (6, 1, wire::FILL, Len::Fixed(144)),
    (7, 0, wire::FILL, Len::Argument(1, 8)),
    (17, 1, wire::FILL, Len::Result(1)),
    (18, 1, wire::FETCH, Len::Argument(2, 1)),
    (21, 0, wire::FETCH, Len::Text),
    (22, 0, wire::FILL, Len::Fixed(8)),
    (23, 1, wire::FILL, Len::Bits(0)),
    (23, 2, wire::FILL, Len::Bits(0)),
    (23, 3, wire::FILL, Len::Bits(0)),
    (35, 0, wire::FETCH, Len::Fixed(16)),
    (42, 1, wire::FETCH, Len::Argument(2, 1)),
    (44, 1, wire::FETCH, Len::Argument(2, 1)),
    (44, 4, wire::FETCH, Len::Argument(5, 1)),
    (45, 1, wire::FILL, Len::Result(1)),
    (49, 1, wire::FETCH, Len::Argument(2, 1)),
    (53, 3, wire::FILL, Len::Fixed(8)),
    (54, 3, wire::FETCH, Len::Argument(4, 1)),
    (59, 0, wire::FETCH, Len::Text),
    (61, 1, wire::FILL, Len::Fixed(4)),
    (63, 0, wire::FILL, Len::Fixed(390)),
    (78, 1, wire::FILL, Len::Result(1)),
    (79, 0, wire::FILL, Len::Result(1)),
    (80, 0, wire::FETCH, Len::Text),
    (82, 0, wire::FETCH, Len::Text),
    (82, 1, wire::FETCH, Len::Text),
    (83, 0, wire::FETCH, Len::Text),
    (87, 0, wire::FETCH, Len::Text),
    (89, 0, wire::FETCH, Len::Text),
    (89, 1, wire::FILL, Len::Result(1)),
    (96, 0, wire::FILL, Len::Fixed(16)),
    (97, 1, wire::FILL, Len::Fixed(16)),
    (98, 1, wire::FILL, Len::Fixed(144)),
    (99, 0, wire::FILL, Len::Fixed(112)),
    (100, 0, wire::FILL, Len::Fixed(32)),
    (137, 0, wire::FETCH, Len::Text),
    (137, 1, wire::FILL, Len::Fixed(120)),
    (138, 1, wire::FILL, Len::Fixed(120)),
    (202, 0, wire::FETCH, Len::Fixed(4)),
    (204, 2, wire::FILL, Len::Result(1)),
    (217, 1, wire::FILL, Len::Result(1)),
    (228, 1, wire::FILL, Len::Fixed(16)),
    (229, 1, wire::FILL, Len::Fixed(16)),
    (230, 2, wire::FETCH, Len::Fixed(16)),
    (232, 1, wire::FILL, Len::Result(12)),
    (233, 3, wire::FETCH, Len::Fixed(12)),
    (257, 1, wire::FETCH, Len::Text),
    (262, 1, wire::FETCH, Len::Text),
    (262, 2, wire::FILL, Len::Fixed(144)),
    (263, 1, wire::FETCH, Len::Text),
    (267, 1, wire::FETCH, Len::Text),
    (267, 2, wire::FILL, Len::Result(1)),
    (270, 1, wire::FILL, Len::Bits(0)),
    (270, 2, wire::FILL, Len::Bits(0)),
    (270, 3, wire::FILL, Len::Bits(0)),
    (271, 0, wire::FILL, Len::Argument(1, 8)),
    (281, 1, wire::FILL, Len::Result(12)),
    (293, 0, wire::FILL, Len::Fixed(8)),
    (302, 2, wire::FETCH, Len::Fixed(16)),
    (302, 3, wire::FILL, Len::Fixed(16)),
    (318, 0, wire::FILL, Len::Result(1)),
    (332, 1, wire::FETCH, Len::Text),
    (332, 4, wire::FILL, Len::Fixed(256)),
    (439, 1, wire::FETCH, Len::Text),
];

/// Calls whose address is kept by the kernel, which compares it with the program's.
pub(crate) const KEPT: [u64; 3] = [158, 218, 273];
/// Arguments that are numbers, as bits: one may look like an address of a program at low addresses.
pub(crate) const NUMBERS: &[(u64, u8)] = &[
    (0, 0b101),
    (1, 0b101),
    (2, 0b110),
    (3, 0b1),
    (7, 0b110),
    (8, 0b111),
    (16, 0b11),
    (17, 0b1101),
    (18, 0b1101),
    (19, 0b101),
    (20, 0b101),
    (40, 0b1011),
    (42, 0b101),
    (44, 0b10_1101),
    (45, 0b1101),
    (46, 0b101),
    (47, 0b101),
    (62, 0b11),
    (72, 0b11),
    (76, 0b10),
    (77, 0b11),
    (78, 0b101),
    (79, 0b10),
    (83, 0b10),
    (89, 0b100),
    (90, 0b10),
    (149, 0b10),
    (157, 0b1),
    (187, 0b111),
    (202, 0b10_0110),
    (217, 0b101),
    (221, 0b1111),
    (231, 0b1),
    (232, 0b1101),
    (257, 0b1101),
    (275, 0b11_0101),
    (277, 0b1111),
    (281, 0b10_1101),
    (285, 0b1111),
    (295, 0b1_1101),
    (296, 0b1_1101),
    (310, 0b11_0101),
    (311, 0b11_0101),
    (318, 0b110),
    (326, 0b11_0101),
    (327, 0b11_1101),
    (328, 0b11_1101),
];
/// Calls by which the kernel accesses memory on its own later: there are none under tracing.
/// `io_setup`, `io_uring_setup`.
pub(crate) const ABSENT: [u64; 2] = [206, 425];

/// Calls with an array of buffers: the kernel writes there, or reads.
pub(crate) const ARRAYS: [(u64, u8); 9] = [
    (278, wire::FETCH),
    (19, wire::FILL),
    (20, wire::FETCH),
    (295, wire::FILL),
    (296, wire::FETCH),
    (310, wire::FILL),
    (311, wire::FETCH),
    (327, wire::FILL),
    (328, wire::FETCH),
];

/// Bytes of a text with its 0, or up to what cannot be read.
fn text_len(address: u64) -> u64 {
    const MOST: u64 = 4096;
    let mut part = [0_u8; 64];
    let mut at = 0;
    while at < MOST {
        // It may end just before what cannot be read.
        let place = address.wrapping_add(at);
        let len = (PAGE - place % PAGE).min(part.len() as u64);
        if !zones::copy(part.as_mut_ptr() as u64, place, len) {
            return at;
        }
        if let Some(end) = part[..len as usize].iter().position(|&byte| byte == 0) {
            return at + end as u64 + 1;
        }
        at += len;
    }
    MOST
}
