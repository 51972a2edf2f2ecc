//! Placeholder until the walker lands.
pub fn stack(_: &mut [u64]) -> (usize, bool) {
    (0, false)
}
pub fn forget() {}
