//! The checksum of pages, index and header: 64 bits, a few bytes a cycle, in plain Rust.
//!
//! ```text
//! bytes:   w0 w1 w2 w3 | w4 w5 w6 w7 | ...          words of 8 B; the last stripe is filled up with zeros
//! lane j:  a = rotate(a + w * P2) * P1              one step for each word w_j, w_j+4, ...
//! sum:     h = length; for each lane: h = rotate((h ^ a) * P1) * P2; at last h is mixed with itself
//! ```
//!
//! The step of a lane is that of XXH64 (Y. Collet, <https://github.com/Cyan4973/xxHash>), with its
//! constants; the rest is folded more simply, so that the following holds.
//!
//! **What it finds for certain.** Each step is a bijection of the lane for a given word, and of the
//! word for a given lane; so is each step of the fold. Two inputs of one length that differ in one
//! word only, by a single flipped bit or by a burst inside the word, thus never have the same sum.
//! Any other damage goes unnoticed once in 2^64.
//!
//! **What it is not.** A checksum against accidents. Whoever writes a file on purpose computes the
//! sums that fit it, which is why nothing that keeps memory safe asks whether a sum was right.

const PRIME_1: u64 = 0x9E37_79B1_85EB_CA87;
const PRIME_2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const PRIME_3: u64 = 0x1656_67B1_9E37_79F9;

/// Words that are taken at a time, each by a lane of its own: their multiplications overlap.
const LANES: usize = 4;
const WORD_BYTES: usize = size_of::<u64>();
const STRIPE_BYTES: usize = LANES * WORD_BYTES;

/// One word into each lane.
#[inline(always)]
fn take_stripe(lanes: &mut [u64; LANES], stripe: &[u8; STRIPE_BYTES]) {
    for (lane, word) in lanes.iter_mut().zip(stripe.chunks_exact(WORD_BYTES)) {
        let word = u64::from_le_bytes(word.try_into().expect("chunks have the size of a word"));
        *lane = lane
            .wrapping_add(word.wrapping_mul(PRIME_2))
            .rotate_left(31)
            .wrapping_mul(PRIME_1);
    }
}

/// Sum of `bytes`, the same on machines of either byte order.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    let mut lanes = [
        PRIME_1.wrapping_add(PRIME_2),
        PRIME_2,
        0,
        PRIME_1.wrapping_neg(),
    ];
    let (stripes, rest) = bytes.as_chunks::<STRIPE_BYTES>();
    for stripe in stripes {
        take_stripe(&mut lanes, stripe);
    }
    if !rest.is_empty() {
        let mut last = [0; STRIPE_BYTES];
        last[..rest.len()].copy_from_slice(rest);
        take_stripe(&mut lanes, &last);
    }
    let mut sum = bytes.len() as u64;
    for lane in lanes {
        sum = (sum ^ lane)
            .wrapping_mul(PRIME_1)
            .rotate_left(27)
            .wrapping_mul(PRIME_2);
    }
    sum ^= sum >> 33;
    sum = sum.wrapping_mul(PRIME_3);
    sum ^ (sum >> 32)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::{STRIPE_BYTES, checksum};

    #[test]
    fn every_flip_of_a_bit_and_every_shorter_input_has_another_sum() {
        for len in [0, 1, 7, 8, 9, 31, 32, 33, 100, 4 * STRIPE_BYTES] {
            let bytes: Vec<u8> = (0..251).cycle().step_by(31).take(len).collect();
            let sum = checksum(&bytes);
            for bit in 0..8 * len {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(checksum(&flipped), sum, "bit {bit} of {len} B");
            }
            for shorter in 0..len {
                assert_ne!(
                    checksum(&bytes[..shorter]),
                    sum,
                    "the first {shorter} of {len} B"
                );
            }
            // Filling up with zeros is not the same as zeros that were there.
            let longer = [&bytes[..], &[0]].concat();
            assert_ne!(checksum(&longer), sum);
        }
    }

    /// Files outlive programs: these must never change.
    #[test]
    fn sums_are_those_of_version_one() {
        assert_eq!(
            [checksum(b""), checksum(b"ctree"), checksum(&[0; 4096])],
            SUMS
        );
    }

    const SUMS: [u64; 3] = [
        0xBCCD_5D4C_BFA8_395F,
        0xD8B1_636D_636C_6B22,
        0x41B3_DA2E_FCEA_51FE,
    ];
}
