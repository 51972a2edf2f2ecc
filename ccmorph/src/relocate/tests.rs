use super::is_packed;

/// Slots whose addresses are these offsets.
fn slots(offsets: &[u64]) -> Vec<*mut u8> {
    let slot = |&offset: &u64| std::ptr::without_provenance_mut(usize::try_from(offset).unwrap());
    offsets.iter().map(slot).collect()
}

#[test]
fn packed_offsets_are_recognised() {
    let is_packed = |offsets: &[u64], stride| is_packed(&slots(offsets), stride);
    let packed = |nodes: u64, stride: u64| -> Vec<u64> {
        let in_segment = 65536 / stride;
        let offset = |i: u64| i / in_segment * 65536 + i % in_segment * stride;
        (0..nodes).map(offset).rev().collect()
    };
    assert!(is_packed(&[], 24) && is_packed(&[0], 65536));
    assert!(!is_packed(&[0, 24], 48) && !is_packed(&[0], 0));
    for stride in [8, 24, 40, 56, 1000, 4096] {
        let all = packed(65536 / stride * 3 - 5, stride);
        assert!(is_packed(&all, stride), "{stride}");
        assert!(!is_packed(&all, stride + 8), "{stride}");
    }
    let mut offsets = packed(8000, 24);
    offsets.swap(7, 2000);
    assert!(is_packed(&offsets, 24));
    for (at, wrong) in [
        (0, offsets[1]),
        (9, offsets[9] + 8),
        (9, offsets[9] + 24 * 65536),
        (0, 65536 / 24 * 24),
        (1, u64::MAX),
    ] {
        let mut offsets = offsets.clone();
        offsets[at] = wrong;
        assert!(!is_packed(&offsets, 24), "{wrong} at {at}");
    }
}
