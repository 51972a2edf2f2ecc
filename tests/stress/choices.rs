//! Random numbers that follow from a seed.

/// xorshift64*: Vigna, *An experimental exploration of Marsaglia's xorshift generators, scrambled*
/// (2016).
pub(crate) struct Choices(u64);

impl Choices {
    /// The sequence number `stream` of `seed`.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut choices = Self(
            seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ stream.wrapping_mul(0xd134_2543_de82_ef95)
                | 1,
        );
        for _ in 0..8 {
            choices.number();
        }
        choices
    }

    /// Any number.
    pub(crate) fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (((self.number() >> 32) * end as u64) >> 32) as usize
    }
}
