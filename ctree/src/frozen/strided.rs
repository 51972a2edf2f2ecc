//! Addresses of things that lie in groups at a fixed distance: the keys, or the values, of leaves;
//! a slice is the simplest case.

use core::marker::PhantomData;
use core::ptr::NonNull;

/// Thing number `i` lies in group `i >> group_bits`, at slot `i` modulo the group's size; groups
/// are `stride_bytes` apart.
///
/// Plain arithmetic that keeps provenance: [`Strided::at`] promises nothing about what it points
/// to, and every use of the pointer has to argue for itself.
pub(super) struct Strided<T> {
    base: NonNull<u8>,
    stride_bytes: usize,
    group_bits: u32,
    marker: PhantomData<T>,
}

impl<T> Strided<T> {
    #[inline(always)]
    pub(super) fn new(base: NonNull<u8>, group_bits: u32, stride_bytes: usize) -> Strided<T> {
        Strided {
            base,
            stride_bytes,
            group_bits,
            marker: PhantomData,
        }
    }

    /// The elements of a slice, for reading.
    #[inline(always)]
    pub(super) fn from_slice(slice: &[T]) -> Strided<T> {
        Strided::new(NonNull::from(slice).cast(), 0, size_of::<T>())
    }

    /// The elements of a slice, for writing as well.
    #[inline(always)]
    pub(super) fn from_mut_slice(slice: &mut [T]) -> Strided<T> {
        Strided::new(NonNull::from(slice).cast(), 0, size_of::<T>())
    }

    #[inline(always)]
    pub(super) fn at_slot(self, group: usize, slot: usize) -> *mut T {
        let offset_bytes = group
            .wrapping_mul(self.stride_bytes)
            .wrapping_add(slot * size_of::<T>());
        self.base.as_ptr().wrapping_add(offset_bytes).cast::<T>()
    }

    /// Address of number `index`, inside the allocation of `base` if there is such a thing.
    #[inline(always)]
    pub(super) fn at(self, index: usize) -> *mut T {
        let group = index >> self.group_bits;
        let slot = index - (group << self.group_bits);
        let offset_bytes = group
            .wrapping_mul(self.stride_bytes)
            .wrapping_add(slot * size_of::<T>());
        self.base.as_ptr().wrapping_add(offset_bytes).cast::<T>()
    }
}

impl<T> Clone for Strided<T> {
    fn clone(&self) -> Strided<T> {
        *self
    }
}

impl<T> Copy for Strided<T> {}

// SAFETY: an address is not an access; whoever uses one holds a borrow or the ownership that
// decides about threads (the iterators say so by the markers beside their `Strided` fields).
unsafe impl<T> Send for Strided<T> {}
// SAFETY: shared or not, an address is not an access; whoever uses one argues about threads.
unsafe impl<T> Sync for Strided<T> {}

#[cfg(test)]
mod tests {
    use super::Strided;
    use core::ptr::NonNull;

    #[test]
    fn groups_lie_their_stride_apart() {
        let memory = [0u64; 64];
        let pairs: Strided<u32> = Strided::new(NonNull::from(&memory).cast(), 1, 24);
        let offsets: Vec<usize> = (0..6)
            .map(|i| pairs.at(i).addr() - memory.as_ptr().addr())
            .collect();
        assert_eq!(offsets, [0, 4, 24, 28, 48, 52]);
        let slice: Strided<u64> = Strided::from_slice(&memory);
        assert_eq!(slice.at(63).cast_const(), &raw const memory[63]);
    }
}
